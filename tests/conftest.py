"""What several test files share: the real embedded model, loaded once."""

from __future__ import annotations

import pytest

from qwen_tools import models
from qwen_tools.engines.transformers import TransformersEngine, load
from qwen_tools.errors import UserError


@pytest.fixture(scope="session")
def embedded() -> TransformersEngine:
    """The embedded model; the first use on a machine converts it."""
    try:
        folder = models.prepare(models.resolve("embedded"))
    except UserError as error:
        pytest.skip(f"the embedded model is not installed: {error}")
    return load(folder, name="embedded")

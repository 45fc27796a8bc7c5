"""What several test files share: the real embedded model, loaded once, and a home for the program."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from qwen_tools import models
from qwen_tools.engines.transformers import TransformersEngine, load
from qwen_tools.errors import UserError

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as in a shell's background jobs
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def embedded() -> TransformersEngine:
    """The embedded model; the first use on a machine converts it."""
    try:
        folder = models.prepare(models.resolve("embedded"))
    except UserError as error:
        pytest.skip(f"the embedded model is not installed: {error}")
    # In float32 all CPUs agree on its answers; in bfloat16 kernels differ in how they round, and then in a word.
    return load(folder, name="embedded", dtype="float32")


@pytest.fixture
def home(tmp_path, monkeypatch) -> Path:
    """A user's home of its own: nothing of the real one is read or written."""
    for name in ("HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME"):
        monkeypatch.setenv(name, str(tmp_path / "home"))
    monkeypatch.delenv("NO_COLOR", raising=False)
    return tmp_path

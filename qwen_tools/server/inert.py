"""Fields that the formats have and we do not: those that could not change the answer are let through, any other is
refused by its name. docs/serve.md lists them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from .errors import ApiError

# Who asks, what is kept, cached or billed, and what only decorates a message.
INERT = frozenset(
    {
        "annotations",
        "cache_control",
        "citations",
        "client_metadata",
        "container",
        "context_management",
        "defer_loading",
        "encrypted_content",
        "id",
        "include",
        "include_obfuscation",
        "inference_geo",
        "input_examples",
        "metadata",
        "name",
        "obfuscation",
        "prediction",
        "prompt_cache_key",
        "prompt_cache_options",
        "prompt_cache_retention",
        "refusal",
        "safety_identifier",
        "service_tier",
        "signature",
        "speed",
        "status",
        "store",
        "strict",
        "user",
    }
)

# What a field says that asks for nothing special, beside null, false, 0 and what is empty.
_USUAL: dict[str, tuple[Any, ...]] = {
    "best_of": (1,),
    "modalities": (["text"],),
    "n": (1,),
    "repetition_penalty": (1,),
    "summary": ("auto",),
    "thinking": ({"type": "disabled"},),
    "tool_choice": ("auto",),
    "truncation": ("disabled",),
    "verbosity": ("medium",),
}

_STEP = re.compile(r"([^.\[\]]+)|\[(\d+)\]")


def check(body: Any, paths: Iterable[str]) -> None:
    """Raises ApiError (status 400) for the first of these fields of a body that asks for something we cannot do."""
    for path in paths:
        name = path.rpartition(".")[2]
        value = _value(body, path)
        if name not in INERT and value and value not in _USUAL.get(name, ()):
            raise ApiError(400, "is not supported: leave it out", field=path, code="unsupported_parameter")


def _value(body: Any, path: str) -> Any:
    """What stands at a place such as ``messages[2].name``. A place that is not found counts as given."""
    for key, index in _STEP.findall(path):
        try:
            body = body[key] if key else body[int(index)]
        except (LookupError, TypeError):
            return True
    return body

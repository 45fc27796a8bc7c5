"""Fields that the formats have and we do not: those that could not change the answer are let through, any other is
refused by its name. docs/serve.md lists them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from ..wire.responses import MOVED
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
        "eager_input_streaming",
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

# What a field says that asks for nothing special, beside null and what is empty.
_USUAL: dict[str, tuple[Any, ...]] = {
    "allowed_callers": (["direct"],),
    "background": (False,),
    "best_of": (1,),
    "echo": (False,),
    "frequency_penalty": (0,),
    "function_call": ("auto",),
    "ignore_eos": (False,),
    "logprobs": (False,),
    "min_p": (0,),
    "modalities": (["text"],),
    "n": (1,),
    "presence_penalty": (0,),
    "repetition_penalty": (1,),
    "summary": ("auto",),
    "thinking": ({"type": "disabled"},),
    "tool_choice": ("auto",),
    "top_k": (0,),
    "top_logprobs": (0,),
    "truncation": ("disabled",),
    "verbosity": ("medium",),
}

_STEP = re.compile(r"([^.\[\]]+)|\[(\d+)\]")


def check(body: Any, paths: Iterable[str]) -> None:
    """Raises ApiError (status 400) for the first of these fields of a body that asks for something we cannot do."""
    for path in paths:
        name = path.rpartition(".")[2]
        value = _value(body, path)
        if path.endswith(f": {MOVED}"):  # a raw prompt has it behind its call, which says the same
            continue
        if name not in INERT and value is not None and not _is_usual(name, value):
            raise ApiError(400, "is not supported: leave it out", field=path, code="unsupported_parameter")


def _is_usual(name: str, value: Any) -> bool:
    """In Python 0 is False; in a request ``logprobs: 0`` is not ``logprobs: false``."""
    return any(value == usual and isinstance(value, bool) == isinstance(usual, bool) for usual in _USUAL.get(name, ()))


def _value(body: Any, path: str) -> Any:
    """What stands at a place such as ``messages[2].name``. A place that is not found counts as given."""
    for key, index in _STEP.findall(path):
        try:
            body = body[key] if key else body[int(index)]
        except (LookupError, TypeError):
            return True
    return body

"""The JSON object that stands for a call, ``{"name": ..., "arguments": {...}}``, and the few ways of writing it wrong
that leave no doubt about what was meant. No quotes are invented, no names are guessed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .coerce import loads
from .validate import problem


class EnvelopeError(ValueError):
    """Why a JSON text is no call; ``kind`` is that of a Problem."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


@dataclass(frozen=True)
class Envelope:
    """A call as it was written, and what had to be mended to read it."""

    name: str
    arguments: Any
    repairs: tuple[str, ...]


def read(text: str) -> Envelope:
    """Read the object of a call. Raises EnvelopeError: ``invalid_json`` or ``missing_name``."""
    try:
        value = loads(text)
    except json.JSONDecodeError as error:
        behind = text[max(0, error.pos - 25) : error.pos]
        raise EnvelopeError("invalid_json", f"{error.msg} at character {error.pos}, behind {behind!r}") from None
    except ValueError as error:
        raise EnvelopeError("invalid_json", str(error)) from None
    return from_value(value)


def why_not(text: str) -> str:
    """Why a JSON text that ended too early is no call."""
    try:
        read(text)
    except EnvelopeError as error:
        return str(error)
    return "the call is not whole"


def from_value(value: Any) -> Envelope:
    """The call that a JSON value stands for. Raises EnvelopeError."""
    if not isinstance(value, dict):
        raise EnvelopeError("invalid_json", "a call must be a JSON object with name and arguments")
    name = value.get("name")
    if not isinstance(name, str) or not name:
        raise EnvelopeError("missing_name", 'the call has no "name"')
    repairs = []
    arguments = value.get("arguments")
    if "arguments" not in value and "parameters" in value:
        arguments = value["parameters"]
        repairs.append("parameters")
    if isinstance(arguments, str):
        arguments, repair = _decoded(arguments)
        repairs += repair
    return Envelope(name, {} if arguments is None else arguments, tuple(repairs))


def _decoded(text: str) -> tuple[Any, list[str]]:
    """Arguments that were encoded twice."""
    if not text.strip():
        return {}, ["empty_arguments"]
    try:
        value = loads(text)
    except ValueError:
        return text, []
    return ({}, ["empty_arguments"]) if value is None else (value, ["encoded_arguments"])


def check(name: str, arguments: Any, schemas: Mapping[str, Mapping[str, Any]]) -> tuple[str, str] | None:
    """What keeps a call from running, as (kind, message), or None. ``schemas`` are those of the offered tools by
    name; where it is empty no name is checked.
    """
    if schemas and name not in schemas:
        return "unknown_tool", f"there is no tool {_short(name)}; the tools are {_some(list(schemas))}"
    wrong = problem(arguments, schemas.get(name, {}))
    return ("schema", wrong) if wrong else None


def _short(name: str) -> str:
    return repr(name if len(name) <= 80 else name[:80] + "…")


def _some(names: list[str], limit: int = 30) -> str:
    more = f" and {len(names) - limit} more" if len(names) > limit else ""
    return ", ".join(names[:limit]) + more

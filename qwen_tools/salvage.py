"""Calls that are not in tags: an answer that is nothing but calls in one of the known wrong forms.

Models that were not trained on tags write a Markdown fence, bare JSON, the ``<tools>`` tag of their prompt or one of
their own making, or leave out the opening tag. Reading those is a mode that somebody chose; only calls of offered
tools with valid arguments are read, and each is marked. ``wrong_opening`` sees such an answer coming.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from . import events as ev
from .coerce import loads
from .envelope import Envelope, check, from_value
from .events import Event
from .messages import ToolCall

# How far an answer may go without naming a tool before it is text, in characters.
PATIENCE = 300

_FENCE = r"(?:```|~~~)[\w+-]*"
_TAG_NAME = r"\w{0,20}(?:tool|function|call|json|action)\w{0,20}"
_TAG = rf"</?{_TAG_NAME}>"
_WRAPPING = re.compile(rf"(?:\s|{_FENCE}|{_TAG}|[\[\],;])*", re.IGNORECASE)
# Where an answer may still turn out to be calls: white space, wrapping, perhaps half of one, and then JSON.
_MAY_BE = re.compile(rf"(?:\s|{_FENCE}|{_TAG})*(?:[{{\[]|`{{0,2}}\Z|~{{0,2}}\Z|</?\w*\Z)", re.IGNORECASE)
_LANGUAGES = ("json", "jsonc", "json5", "xml", "text", "plaintext", "txt", "tool", "tool_call", "tool_code", "tools")

# Other words for the keys of a call.
_NAMES = ("name", "function", "tool", "tool_name")
_WRAPPERS = ("function", "tool", "tool_call", "function_call")
_TYPES = ("function", "function_call", "tool_call", "tool_use")
_TOKEN = re.compile(r'\s*(?:"((?:[^"\\]|\\.)*)("?)|([{:,])|(\S))', re.DOTALL)


@dataclass(frozen=True)
class Salvaged:
    """A call, and where its JSON stands in the text."""

    call: Envelope
    span: tuple[int, int]


def salvage(text: str, schemas: Mapping[str, Mapping[str, Any]]) -> tuple[str, list[Salvaged]] | None:
    """The calls of a text that is nothing but calls to offered tools with valid arguments, else None; in front of
    them the form it has: ``fence``, ``tag``, ``missing_opener`` or ``bare``.
    """
    try:
        found = [Salvaged(from_value(_canonical(value)), span) for value, span in _objects(text)]
    except (ValueError, RecursionError):
        return None
    calls = [each.call for each in found]
    if not calls or any(call.name not in schemas or check(call.name, call.arguments, schemas) for call in calls):
        return None
    return _form(text[: found[0].span[0]], text[found[-1].span[1] :]), found


def _form(before: str, behind: str) -> str:
    """How calls are wrapped, by what stands around them."""
    if "```" in before or "~~~" in before:
        return "fence"
    if "<" in before:
        return "tag"
    return "missing_opener" if "</tool_call>" in behind else "bare"


def _objects(text: str) -> Iterator[tuple[Any, tuple[int, int]]]:
    """The JSON objects of a text and their places; raises ValueError where there is anything else."""
    decoder = json.JSONDecoder(strict=False)
    at = _unwrapped(text, 0)
    while at < len(text):
        _, end = decoder.raw_decode(text, at)
        yield loads(text[at:end]), (at, end)
        at = _unwrapped(text, end)


def _unwrapped(text: str, at: int) -> int:
    found = _WRAPPING.match(text, at)
    return found.end() if found else at


def _canonical(value: Any) -> Any:
    """The object of a call with its keys as they should be, out of ``{"type": "function", "function": {...}}`` and
    the like.
    """
    if not isinstance(value, dict) or "name" in value:
        return value
    for key in _WRAPPERS:
        if isinstance(value.get(key), dict):
            return _canonical(value[key])
    for key in _NAMES:
        if isinstance(value.get(key), str):
            return {**value, "name": value[key]}
    return value


class Withheld:
    """Holds back the text of an answer as long as it may be nothing but calls, and reads it at the end."""

    def __init__(self, schemas: Mapping[str, Mapping[str, Any]]) -> None:
        self._schemas = schemas
        self._held: list[Event] | None = []
        self._text = ""  # the beginning of it

    def filter(self, events: list[Event], start: int) -> list[Event]:
        """The events that may be told now. ``start`` is where the text begins in the answer."""
        told: list[Event] = []
        for event in events:
            if self._held is None or isinstance(event, (ev.ReasoningStart, ev.Reasoning, ev.ReasoningEnd)):
                told.append(event)
            elif isinstance(event, ev.Text):
                self._held.append(event)
                if len(self._text) < PATIENCE:
                    self._text = (self._text + event.delta)[:PATIENCE]
                    if not _MAY_BE.match(self._text):
                        told += self._released()
            elif isinstance(event, ev.End):
                told += self._read(start, event.finish)
                told.append(event)
            else:
                told += [*self._released(), event]
        return told

    def _released(self) -> list[Event]:
        held, self._held = self._held or [], None
        return held

    def _read(self, start: int, finish: str) -> list[Event]:
        held = self._released()
        text = "".join(event.delta for event in held if isinstance(event, ev.Text))
        found = salvage(text, self._schemas) if finish == "stop" else None
        if found is None:
            return held
        form, salvaged = found
        told: list[Event] = []
        for index, each in enumerate(salvaged):
            call, (begin, end) = each.call, each.span
            told += [
                ev.CallStart(index),
                ev.CallName(index, call.name),
                ev.CallArgs(index, json.dumps(call.arguments, ensure_ascii=False)),
                ev.CallEnd(
                    index,
                    ToolCall(
                        call.name,
                        call.arguments,
                        text[begin:end],
                        (start + begin, start + end),
                        (f"salvaged:{form}", *call.repairs),
                    ),
                ),
            ]
        return told


def wrong_opening(text: str, names: Collection[str]) -> str:
    """Whether an answer, known from its beginning on, begins like a call in a wrong form.

    ``call``: it has got as far as the whole name of an offered tool. ``pending``: it may still get there, which it
    must within PATIENCE characters. ``text``: it is something else, and so is everything that goes on from it.
    """
    verdict = _opening(text[:PATIENCE], names)
    return "text" if verdict == "pending" and len(text) >= PATIENCE else verdict


def _opening(text: str, names: Collection[str]) -> str:
    rest = text.lstrip()
    for fence in ("```", "~~~"):
        if fence.startswith(rest):
            return "pending"
        if rest.startswith(fence):
            language, rest = re.fullmatch(r"(\S*)(.*)", rest[3:], re.DOTALL).groups()  # type: ignore[union-attr]
            if not rest:
                return "pending" if any(each.startswith(language) for each in _LANGUAGES) else "text"
            if language and language not in _LANGUAGES:
                return "text"
            rest = rest.lstrip()
    tag = re.match(r"<(\w{0,50})(>?)", rest)
    if tag:
        rest = rest[tag.end() :]
        if not tag.group(2):
            return "text" if rest else "pending"
        if not re.fullmatch(_TAG_NAME, tag.group(1), re.IGNORECASE):
            return "text"
        rest = rest.lstrip()
    rest = rest.removeprefix("[").lstrip()
    if not rest:
        return "pending"
    return _naming(rest, names) if rest[0] == "{" else "text"


def _naming(text: str, names: Collection[str]) -> str:
    """Whether an object, known from its beginning on, names an offered tool before it says anything else."""
    expected, key = "{", ""
    for found in _TOKEN.finditer(text):
        string, quote, mark, _ = found.groups()
        if string is not None:
            if expected == "key":
                allowed: Collection[str] = (*_NAMES, *_WRAPPERS, "type", "id")
            elif expected == "value" and key in _NAMES:
                allowed = names
            elif expected == "value" and key == "type":
                allowed = _TYPES
            elif expected == "value" and key == "id":
                allowed = (string,)
            else:
                return "text"
            if not quote:
                return "pending" if any(each.startswith(string) for each in allowed) else "text"
            if string not in allowed:
                return "text"
            if expected == "key":
                expected, key = ":", string
            elif key in _NAMES:
                return "call"
            else:
                expected = ","
        elif mark == "{" and (expected == "{" or (expected == "value" and key in _WRAPPERS)):
            expected = "key"
        elif mark and mark == expected:
            expected = "value" if mark == ":" else "key"
        else:
            return "text"
    return "pending"

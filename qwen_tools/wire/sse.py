"""Server-sent events, as chat APIs frame their streams: text on one side, JSON objects on the other.

The format is https://html.spec.whatwg.org/multipage/server-sent-events.html, of which APIs use ``data`` and ``event``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ..fields import WireError, short

# How Chat Completions ends a stream; the other formats end theirs with an event.
DONE = "data: [DONE]\n\n"


def write(data: Mapping[str, Any], *, named: bool = False) -> str:
    """An object as one event; ``named`` puts its ``type`` on an ``event:`` line, as Anthropic and Responses do."""
    line = f"data: {json.dumps(data, ensure_ascii=False, separators=(',', ':'))}\n\n"
    return f"event: {data['type']}\n{line}" if named else line


class Reader:
    """Objects from the text of a stream, in whatever pieces it comes.

    An event without an end is no event. ``done`` is true once ``[DONE]`` was read; what follows is ignored. ``limit``
    is the size, in characters, from which on an event is refused.
    """

    def __init__(self, limit: int = 8_000_000) -> None:
        self.done = False
        self._limit = limit
        self._pieces: list[str] = []
        self._size = 0
        self._data: list[str] = []
        self._held_return = False

    def feed(self, text: str) -> list[Any]:
        """The objects that are whole now. Raises WireError for data that is no JSON or an event that is too large."""
        # A line ends in \n, \r or \r\n, and a piece may end between the two.
        if self._held_return and text:
            text, self._held_return = "\r" + text, False
        if text.endswith("\r"):
            text, self._held_return = text[:-1], True
        lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
        found = []
        for index, line in enumerate(lines):
            self._pieces.append(line)
            self._size += len(line)
            if self._size > self._limit:
                raise WireError("", f"an event of the stream is longer than {self._limit} characters")
            if index < len(lines) - 1:
                whole = "".join(self._pieces)
                self._pieces = []
                found += self._line(whole)
        return found

    def _line(self, line: str) -> list[Any]:
        if not line:
            data, self._data, self._size = "\n".join(self._data), [], 0
            if self.done or not data:
                return []
            if data.strip() == "[DONE]":
                self.done = True
                return []
            try:
                return [json.loads(data)]
            except (ValueError, RecursionError) as error:
                raise WireError("", f"the stream has data that is no JSON: {short(data)}") from error
        name, _, value = line.partition(":")
        if name == "data":
            self._data.append(value.removeprefix(" "))
        return []

"""The attempts at a call in one answer: counted, limited, checked, and each ended by one event.

How a call is written is known to the bodies (``json_body``, ``xml_body``), which report to here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .. import envelope
from .. import events as ev
from ..messages import Problem, ToolCall
from .output import Output
from .source import Source

# Of an attempt that is too large only the beginning is shown.
_HEAD = 200


class Attempts:
    """At most one attempt is open at a time; it reaches from the source's mark to the cursor."""

    def __init__(self, source: Source, output: Output, schemas: Mapping[str, Mapping[str, Any]], limit: int) -> None:
        self.schemas = schemas
        self._source = source
        self._output = output
        self._limit = limit
        self._index = -1
        self._open = False
        self._at = 0  # of the message's text, where the attempt stands
        self._written: list[str] = []

    def open(self) -> None:
        """An attempt begins, at the mark where there is one."""
        self._open = True
        self._source.limit()
        self._index += 1
        self._output.call(self._index)
        self._at, self._written = self._output.said, []

    def name(self, name: str) -> None:
        """The name is known."""
        self._output.event(ev.CallName(self._index, name))

    def arguments(self, delta: str) -> None:
        """A piece of the arguments as JSON text."""
        if not self._source.too_large:
            self._output.arguments(delta)
            self._written.append(delta)

    def whole(self, name: str, arguments: Any, repairs: list[str], raw: str | None = None) -> None:
        """The attempt is a whole call; ``raw`` where it ends before the cursor does."""
        if self._source.too_large:
            self._too_large()
            return
        span, raw = self._stretch(raw)
        wrong = envelope.check(name, arguments, self.schemas)
        problems = (Problem(*wrong, span, raw),) if wrong else ()
        # A repair that was needed twice is named once.
        text = "".join(self._written) or None
        call = ToolCall(
            name, arguments, raw, span, tuple(dict.fromkeys(repairs)), problems, at=self._at, arguments_text=text
        )
        self._over(ev.CallEnd(self._index, call))

    def failed(self, kind: str, message: str, raw: str | None = None) -> None:
        """The attempt gives no call. One that was not opened yet is opened now."""
        if not self._open:
            self.open()
        if self._source.too_large:
            self._too_large()
        else:
            self._over(ev.CallError(self._index, Problem(kind, message, *self._stretch(raw))))

    def _too_large(self) -> None:
        source = self._source
        message = f"the call is longer than the limit of {self._limit} characters"
        span = (max(source.start, 0), source.position)
        self._over(ev.CallError(self._index, Problem("too_large", message, span, source.kept()[:_HEAD])))

    def _over(self, event: ev.CallEnd | ev.CallError) -> None:
        self._output.call_over(event)
        self._open = False
        self._source.forget()

    def _stretch(self, raw: str | None) -> tuple[tuple[int, int], str]:
        """Span and raw text of the attempt. White space behind it is no part of it, nor is a prefill in front."""
        start = self._source.start
        raw = (self._source.kept() if raw is None else raw).rstrip()
        if start < 0:
            raw, start = raw[-start:], 0
        return (start, start + len(raw)), raw

"""Events in the making: neighbours of a kind become one event, and white space waits until words follow it."""

from __future__ import annotations

from collections.abc import Callable

from .. import events as ev
from ..events import Event


class Output:
    """What is certain but not yet handed out. Prose goes in by ``words`` and ``space``, the arguments of the open call
    by ``arguments``, everything else by ``event``.
    """

    def __init__(self) -> None:
        self._events: list[Event] = []
        self._kind: Callable[[str], Event] = ev.Text
        self._pieces: list[str] = []
        self._gap: list[str] = []
        self._said = False
        self.said = 0  # characters of plain text handed over

    def prose(self, kind: type[ev.Text] | type[ev.Reasoning]) -> None:
        """What follows is of this kind, and white space at its beginning is not part of it."""
        self._flush()
        self._kind = kind
        self._gap, self._said = [], False

    def words(self, text: str) -> None:
        """A piece that does not begin or end with white space."""
        if self._gap:
            if self._said:
                self._pieces += self._gap
            self._gap = []
        self._said = True
        self._pieces.append(text)

    def space(self, text: str) -> None:
        """White space: it waits to be seen from both sides."""
        self._gap.append(text)

    def call(self, index: int) -> None:
        """A call opens. White space in front of its markup is not content."""
        self._gap = []
        self.event(ev.CallStart(index))
        self._kind = lambda delta: ev.CallArgs(index, delta)

    def arguments(self, delta: str) -> None:
        """A piece of the arguments of the open call."""
        if delta:
            self._pieces.append(delta)

    def call_over(self, event: ev.CallEnd | ev.CallError) -> None:
        """The open call ends; text follows."""
        self.event(event)
        self._kind = ev.Text

    def event(self, event: Event) -> None:
        """Any other event."""
        self._flush()
        self._events.append(event)

    def taken(self) -> list[Event]:
        """Hand out everything so far."""
        self._flush()
        events, self._events = self._events, []
        return events

    def _flush(self) -> None:
        if self._pieces:
            text = "".join(self._pieces)
            self._events.append(self._kind(text))
            self.said += len(text) if self._kind is ev.Text else 0
            self._pieces = []

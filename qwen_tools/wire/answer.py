"""An answer on its way between events, a message and the parts of a wire format; what the three formats share."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from .. import events as ev
from ..events import Event
from ..messages import Message, Problem, ToolCall, read_call

# White space in JSON.
_WHITE = " \t\r\n"
# JSON text up to an escape that is not whole, or none; half of a surrogate pair is none.
_ESCAPED = re.compile(
    r'(?:[^\\]+|\\["\\/bfnrt]|\\u(?![dD][89a-fA-F])[0-9a-fA-F]{4}'
    r"|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})*"
)
_LONGEST_ESCAPE = len(r"\ud83d\ude00")
# Not a letter of an id.
_NO_ID = re.compile(r"[^A-Za-z0-9]")


def call_id(prefix: str, response_id: str, number: int) -> str:
    """The id of a call that has none, from the answer's own id and the call's number, counted from 1."""
    return f"{prefix}_{_NO_ID.sub('', response_id.rpartition('-')[2])[-40:]}_{number}"


def parts(message: Message) -> Iterator[str | ToolCall]:
    """Text and whole calls in the order in which they were said.

    An attempt that gave no call is the text that the model wrote, unless it was cut off: then it is left out.
    """
    done = 0
    pending = ""
    for call in message.calls:
        at = len(message.content) if call.at is None else max(done, call.at)
        pending += message.content[done:at]
        done = at
        if call.name:
            if pending:
                yield pending
            pending = ""
            yield call
        elif not is_cut(call):
            pending += call.raw
    pending += message.content[done:]
    if pending:
        yield pending


def is_cut(call: ToolCall) -> bool:
    """Whether an attempt gave no call because the answer ended in it."""
    return not call.name and any(problem.kind == "unterminated" for problem in call.problems)


def cut_off(message: Message) -> list[str]:
    """Which calls of an answer that was cut are none."""
    return [
        f"tool_calls[{index}]: a call that was cut off" for index, call in enumerate(message.calls) if call.problems
    ]


def message_of(events: Iterable[Event], finish: str = "stop") -> Message:
    """The assistant's message that the events of an answer describe; an attempt that gave no call is in it as a call
    without a name, with its problem.
    """
    content: list[str] = []
    reasoning: list[str] = []
    calls: list[ToolCall] = []
    length = 0
    for event in events:
        if isinstance(event, ev.Text):
            content.append(event.delta)
            length += len(event.delta)
        elif isinstance(event, ev.Reasoning):
            reasoning.append(event.delta)
        elif isinstance(event, ev.CallEnd):
            calls.append(event.call if event.call.at is not None else replace(event.call, at=length))
        elif isinstance(event, ev.CallError):
            problem = event.problem
            calls.append(ToolCall("", {}, problem.raw, problem.span, problems=(problem,), at=length))
    return Message("assistant", "".join(content), "".join(reasoning), tuple(calls), finish=finish)


def events_of(message: Message) -> Iterator[Event]:
    """The events that a whole message stands for."""
    if message.reasoning:
        yield from (ev.ReasoningStart(), ev.Reasoning(message.reasoning), ev.ReasoningEnd())
    index = 0
    for part in parts(message):
        if isinstance(part, str):
            yield ev.Text(part)
            continue
        yield ev.CallStart(index, part.id)
        yield ev.CallName(index, part.name)
        yield ev.CallArgs(index, part.arguments_json)
        yield ev.CallEnd(index, part)
        index += 1
    yield ev.End(message.finish)


class Reading:
    """Makes events of what a wire format says piece by piece. Calls are told apart by a key that the format chooses.

    The methods return the events that are new; ``close`` the last ones. ``message`` is then whole.
    """

    def __init__(self) -> None:
        self.message = Message("assistant")
        self._said: list[Event] = []
        self._thinking = False
        self._length = 0
        self._calls: dict[object, _OpenCall] = {}
        self._count = 0

    def text(self, delta: str) -> list[Event]:
        """More of the text."""
        if not delta:
            return []
        self._length += len(delta)
        return self._new([*self._thought_over(), ev.Text(delta)])

    def reasoning(self, delta: str) -> list[Event]:
        """More of the thought."""
        if not delta:
            return []
        start: list[Event] = [] if self._thinking else [ev.ReasoningStart()]
        self._thinking = True
        return self._new([*start, ev.Reasoning(delta)])

    def call(self, key: object, id: str | None = None, name: str | None = None) -> list[Event]:  # noqa: A002
        """A call is begun, or more of it is known."""
        new: list[Event] = []
        if key not in self._calls:
            new += self._thought_over()
            self._calls[key] = _OpenCall(self._count, self._length)
            self._count += 1
        call = self._calls[key]
        call.id = call.id or id
        if name and not call.name:
            call.name = name
            new += [ev.CallStart(call.index, call.id), ev.CallName(call.index, name)]
            new += [ev.CallArgs(call.index, piece) for piece in call.pieces]
        return self._new(new)

    def arguments(self, key: object, delta: str) -> list[Event]:
        """More of the arguments of a call."""
        call = self._calls[key]
        if not delta:
            return []
        call.pieces.append(delta)
        return self._new([ev.CallArgs(call.index, delta)] if call.name else [])

    def wrote(self, key: object) -> bool:
        """Whether some of the arguments of a call are known."""
        return key in self._calls and bool(self._calls[key].pieces)

    def looks_whole(self, key: object) -> bool:
        """Whether the arguments of a call end like an object; told cheaply."""
        call = self._calls.get(key)
        return call is not None and bool(call.name) and bool(call.pieces) and call.pieces[-1].rstrip().endswith("}")

    def has(self, key: object) -> bool:
        """Whether such a call is open."""
        return key in self._calls

    def call_over(self, key: object, cut: bool = False, whole_only: bool = False) -> list[Event]:
        """A call ends. ``cut``: the answer ended there; a call whose arguments are not whole was cut off.
        With ``whole_only`` one that is not whole stays open.
        """
        open_call = self._calls.get(key)
        if open_call is None:
            return []
        text = "".join(open_call.pieces)
        call = read_call(open_call.name, text, id=open_call.id) if open_call.name else None
        broken = call is None or bool(call.problems) or (cut and not text.strip())
        if whole_only and (broken or not text.strip()):
            return []
        del self._calls[key]
        if call is None or (broken and cut):
            kind, words = ("unterminated", "the call was cut off") if cut else ("missing_name", "the call has no name")
            start: list[Event] = [] if open_call.name else [ev.CallStart(open_call.index, open_call.id)]
            problem = Problem(kind, words, (0, len(text)), text)
            return self._new([*start, ev.CallError(open_call.index, problem)])
        return self._new([ev.CallEnd(open_call.index, replace(call, at=open_call.at))])

    def close(self, finish: str) -> list[Event]:
        """The answer is over."""
        new: list[Event] = [event for key in list(self._calls) for event in self.call_over(key, cut=finish != "stop")]
        last = self._new([*self._thought_over(), ev.End(finish)])
        self.message = message_of(self._said, finish)
        return [*new, *last]

    def _thought_over(self) -> list[Event]:
        thinking, self._thinking = self._thinking, False
        return [ev.ReasoningEnd()] if thinking else []

    def _new(self, events: list[Event]) -> list[Event]:
        self._said += events
        return events


class _OpenCall:
    """A call of which not all is known."""

    def __init__(self, index: int, at: int) -> None:
        self.index = index
        self.at = at
        self.id: str | None = None
        self.name = ""
        self.pieces: list[str] = []


class InOrder:
    """Events so that calls do not interleave: while one is open, what belongs to anything else waits for its end."""

    def __init__(self) -> None:
        self._open: int | None = None
        self._waiting: list[Event] = []

    def feed(self, event: Event) -> list[Event]:
        """The events whose turn has come."""
        if self._open is not None and getattr(event, "index", None) != self._open:
            self._waiting.append(event)
            return []
        if isinstance(event, ev.CallStart):
            self._open = event.index
        elif isinstance(event, (ev.CallEnd, ev.CallError)):
            self._open = None
            waiting, self._waiting = self._waiting, []
            return [event, *(each for later in waiting for each in self.feed(later))]
        return [event]

    def close(self) -> list[Event]:
        """What still waits, for a call that never ended."""
        waiting, self._waiting, self._open = self._waiting, [], None
        return waiting


class CallsOut:
    """The calls of an answer on their way out: what must be announced, and what of the arguments was sent."""

    def __init__(self, prefix: str, response_id: str) -> None:
        self._mint: Callable[[int], str] = lambda number: call_id(prefix, response_id, number)
        self._ids: dict[int, str | None] = {}
        self._held: dict[int, list[str]] = {}
        self._sent: set[int] = set()
        self._stuck: set[int] = set()
        self._announced = 0
        self.whole = 0
        self.broken = False

    def start(self, event: ev.CallStart) -> None:
        """A call opens; nothing is sent yet."""
        self._ids[event.index] = event.id

    def announce(self, index: int) -> tuple[int, str]:
        """The name is known: the call's number on the wire, from 0, and its id."""
        number = self._announced
        self._announced += 1
        self._held[index] = []
        return number, self._ids.get(index) or self._mint(number + 1)

    def announced(self, index: int) -> bool:
        """Whether the client knows of the call."""
        return index in self._held

    def piece(self, index: int, delta: str) -> str:
        """What of the arguments may go out. Held back are the last closing brace, so that a call that never becomes
        whole does not look like it, and an escape that is not whole or no escape at all, at which a client's
        reader would give up.
        """
        held = self._held[index]
        if index in self._stuck or (held and not delta.strip(_WHITE)):
            held.append(delta)
            return ""
        text = "".join(held) + delta
        found = _ESCAPED.match(text)
        cut = found.end() if found else 0
        if len(text) - cut > _LONGEST_ESCAPE:
            self._stuck.add(index)
        end = text[:cut].rstrip(_WHITE)
        if cut == len(text) and end.endswith("}"):
            cut = len(end) - 1
        self._held[index] = [text[cut:]] if cut < len(text) else []
        self._sent.add(index)
        return text[:cut]

    def rest(self, index: int, call: ToolCall) -> str:
        """The call is whole: what must still be sent."""
        self.whole += 1
        return "".join(self._held[index]) if index in self._sent else call.arguments_json

    def failed(self, event: ev.CallError) -> str:
        """The attempt gives no call: the text to show in its place, where the client knows nothing of it."""
        if self.announced(event.index):
            self.broken = True
            return ""
        return "" if event.problem.kind == "unterminated" else event.problem.raw

    def finish(self, finish: str) -> str:
        """How the answer ended as far as the client may know: one with a call that was announced and is not whole is
        not whole either.
        """
        return "length" if finish == "interrupted" or (self.broken and finish == "stop") else finish

"""Read a model's answer as it is generated: text, reasoning and tool calls, in JSON or XML tags.

A state machine without I/O. ``feed`` takes any piece of the answer and returns events, ``close`` says how the answer
ended and returns the rest. The same answer in any pieces gives the same events but for where text is cut. Input is
looked at once; what is held back is a beginning of a tag, or white space whose meaning is still open, so
the work is linear in the input.

The rules that decide what is a call:

- ``<tool_call>`` opens one only when ``{``, ``[`` or ``<function=`` follows; a bare ``<function=NAME>`` only when
  NAME is an offered tool. Everything else is text, and so is all markup inside a Markdown fence.
- The body decides the dialect. In JSON a closing tag counts only outside of strings, where ``<`` cannot be JSON, so
  it also ends a broken body. In XML a closing tag counts only when what must follow it does.
- Inside a thought nothing is a call, unless the thought is never closed and the answer ends in one.
- A whole call whose closing tag is missing at the end is accepted when the model stopped by itself, never when it
  was cut.
- What is mended is named in ``ToolCall.repairs``. Nothing is guessed: no quotes are invented, no names.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from . import coerce, envelope
from . import events as ev
from .envelope import EnvelopeError
from .events import Event
from .messages import Problem, ToolCall
from .salvage import salvage as read_salvaged
from .tools import as_tool

# The states of the machine, and where each signal leads. Nothing else changes the state.
TRANSITIONS: dict[str, dict[str, str]] = {
    # Nothing but white space so far: an answer may open with a thought.
    "start": {"think": "think", "content": "text", "end": "done"},
    "think": {"end_think": "text", "draft": "draft", "end": "done"},
    # Behind what may be a call in a thought; whether it is one is known at the end.
    "draft": {"end_think": "text", "replay": "text", "end": "done"},
    "text": {"fence": "fence", "tag": "opener", "function": "bare", "end": "done"},
    "fence": {"fence_end": "text", "end": "done"},
    # Behind <tool_call>, white space allowed.
    "opener": {"json": "json", "function": "name", "tag": "opener", "not_a_call": "text", "end": "done"},
    # Behind a <function= without <tool_call> in front.
    "bare": {"named": "parameters", "not_a_call": "text", "end": "done"},
    "json": {"whole": "json_end", "closed": "after", "tag": "opener", "end": "done"},
    # Behind a whole JSON value.
    "json_end": {"json": "json", "closed": "after", "tag": "opener", "not_a_call": "after", "end": "done"},
    "name": {"named": "parameters", "closed": "after", "tag": "opener", "end": "done"},
    "parameters": {
        "parameter": "key",
        "whole": "xml_end",
        "closed": "after",
        "tag": "opener",
        "function": "name",
        "end": "done",
    },
    "key": {"value": "value", "broken": "parameters", "end": "done"},
    "value": {"closer": "look", "next": "key", "end": "done"},
    # Behind a closing tag in a value: it counts when the right thing follows.
    "look": {"no": "value", "parameter_end": "parameters", "whole": "xml_end", "end": "done"},
    # Behind </function>.
    "xml_end": {"closed": "after", "tag": "opener", "function": "name", "not_a_call": "after", "end": "done"},
    # Behind a call: stray closing tags and white space.
    "after": {"content": "text", "end": "done"},
    "done": {},
}

MAX_CALL = 1_000_000  # characters
_MAX_NAME = 1000

_OPEN, _CLOSE = "<tool_call>", "</tool_call>"
_FUNCTION, _FUNCTION_END = "<function=", "</function>"
_PARAMETER, _PARAMETER_END = "<parameter=", "</parameter>"
_THINK, _THINK_END = "<think>", "</think>"
_END_TOKENS = ("<|im_end|>", "<|endoftext|>", "<|im_start|>")

_SPACE = re.compile(r"\s+")
_TEXT = re.compile(r"[^\s<`~]+")
_NO_TAG = re.compile(r"[^<]+")
_THOUGHT = re.compile(r"[^\s<]+")
_STRING = re.compile(r'[^"\\\x00-\x1f]+')
_JSON_PLAIN = re.compile(r'[^"{}\[\],:<]+')
_FOREIGN = re.compile(r"</[\w:.-]{1,40}>")
_FOREIGN_PREFIX = re.compile(r"<(/[\w:.-]{0,40})?$")
_DRAFT_END = re.compile(r"</think>|<\|im_end\|>|<\|endoftext\|>|<\|im_start\|>")
_DRAFT_CALL = re.compile(r"(?:^|\n)[ \t]*(?=<tool_call>\s*(?:[{\[]|<function=)|<function=([^>\n]+)>)")
_ESCAPES = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


@dataclass(frozen=True)
class ParsedTurn:
    """An answer, read. ``calls`` are the whole calls in order, also those with problems; ``problems`` are all
    problems in the order of the text, a call's own among them.
    """

    content: str
    reasoning: str
    calls: tuple[ToolCall, ...]
    problems: tuple[Problem, ...]


def parse(
    text: str,
    tools: Iterable[Any] = (),
    prefill: str = "",
    finish: str = "stop",
    salvage: bool = False,
) -> ParsedTurn:
    """Read a whole answer: ``fold`` of what StreamParser says, which takes the same arguments.

    ``finish`` is ``stop``, or anything else for an answer that was cut.
    """
    parser = StreamParser(tools, prefill, salvage)
    return fold(parser.feed(text) + parser.close(finish))


def fold(events: Iterable[Event]) -> ParsedTurn:
    """The result that a sequence of events describes."""
    content: list[str] = []
    reasoning: list[str] = []
    calls: list[ToolCall] = []
    problems: list[Problem] = []
    for event in events:
        if isinstance(event, ev.Text):
            content.append(event.delta)
        elif isinstance(event, ev.Reasoning):
            reasoning.append(event.delta)
        elif isinstance(event, ev.CallEnd):
            calls.append(event.call)
            problems += event.call.problems
        elif isinstance(event, ev.CallError):
            problems.append(event.problem)
    return ParsedTurn("".join(content), "".join(reasoning), tuple(calls), tuple(problems))


class StreamParser:
    r"""Reads one answer, piece by piece.

    ``tools`` are Tools or OpenAI-style dicts; without any, names and arguments are not checked. ``prefill`` is what the
    generation prompt had opened, such as ``"<think>\n"``. ``salvage`` also reads a turn that is nothing but a call
    in a wrong form (a fence, bare JSON, ``<tools>``, a missing opener), where it names an offered tool
    and its arguments are valid; such a call has a repair ``salvaged:...``.
    """

    def __init__(self, tools: Iterable[Any] = (), prefill: str = "", salvage: bool = False) -> None:
        self._schemas: dict[str, Mapping[str, Any]] = {tool.name: tool.parameters for tool in map(as_tool, tools)}
        self._buffer = ""
        self._at = 0  # the cursor in the buffer
        self._base = 0  # where the buffer begins in the answer
        self._events: list[Event] = []
        self._out: list[str] = []  # text or reasoning of this feed, not yet an event
        self._gap: list[str] = []  # white space, not yet known to be content
        self._said = False  # whether there was text, or a thought, that white space could stand behind
        self._line_start = True
        self._indent = 0
        self._run = ("", 0)  # backticks or tildes that began a line: which, how many
        self._fence = ("", 0)
        self._info = False  # in the line that opens the fence
        self._draft: list[str] = []
        self._draft_start = 0
        self._index = -1  # of the attempt
        self._arguments_out: list[str] = []  # pieces of its arguments of this feed
        self._size = 0  # of it, in characters
        self._call: _Json | _Xml | None = None
        self._salvage = _Salvage(self._schemas) if salvage else None
        self._handlers: dict[str, Callable[[], bool]] = {state: getattr(self, f"_in_{state}") for state in TRANSITIONS}
        self._state = "start"
        _, opened, rest = prefill.rpartition(_THINK)
        if opened and _THINK_END not in rest:
            self._go("think")
            self._events.append(ev.ReasoningStart())
        elif opened:
            self._go("content")

    def feed(self, text: str) -> list[Event]:
        """Take the next piece of the answer; returns what became certain."""
        if self._at:
            self._base += self._at
            self._buffer = self._buffer[self._at :] + text
            self._at = 0
        else:
            self._buffer += text
        self._advance()
        self._flush()
        return self._taken()

    def close(self, finish: str = "stop") -> list[Event]:
        """The answer is over. ``finish`` is ``stop``, or anything else when it was cut; returns the last events,
        End at the end.
        """
        if self._state != "done":
            self._finish(finish == "stop")
        self._flush()
        self._state = "done"
        self._events.append(ev.End(finish))
        return self._taken()

    # ---- the machine

    def _go(self, signal: str) -> None:
        self._state = TRANSITIONS[self._state][signal]

    def _advance(self) -> None:
        while self._at < len(self._buffer) and self._handlers[self._state]():
            pass

    def _taken(self) -> list[Event]:
        events, self._events = self._events, []
        return self._salvage.filter(events) if self._salvage else events

    def _tag(self, *tags: str) -> str | None:
        """Which of the tags stands at the cursor; ``""`` when the buffer ends before that is known, else None."""
        buffer, at = self._buffer, self._at
        for tag in tags:
            if buffer.startswith(tag, at):
                return tag
        rest = buffer[at : at + 20]
        if at + len(rest) == len(buffer) and any(tag.startswith(rest) for tag in tags):
            return ""
        return None

    def _skip_space(self) -> str:
        found = _SPACE.match(self._buffer, self._at)
        if not found:
            return ""
        self._at = found.end()
        return found.group()

    @property
    def _position(self) -> int:
        return self._base + self._at

    # ---- text

    def _flush(self) -> None:
        """Text of this feed becomes one event."""
        if self._out:
            text = "".join(self._out)
            self._out = []
            self._events.append(ev.Reasoning(text) if self._state in ("think", "draft") else ev.Text(text))
        if self._arguments_out:
            pieces, self._arguments_out = self._arguments_out, []
            if self._size <= MAX_CALL:
                self._events.append(ev.CallArgs(self._index, "".join(pieces)))

    def _emit(self, text: str) -> None:
        """Content, or a piece of a thought, with the white space in front of it where that is inner."""
        if self._gap:
            if self._said:
                self._out += self._gap
            self._gap = []
        self._said = True
        self._out.append(text)

    def _space(self, text: str) -> None:
        """White space: it waits to be seen from both sides."""
        self._gap.append(text)
        _, newline, last_line = text.rpartition("\n")
        if newline:
            if self._state == "fence":
                if not self._info and self._run[0] == self._fence[0] and self._run[1] >= self._fence[1]:
                    self._go("fence_end")
                self._info = False
            self._line_start, self._indent, self._run = True, len(last_line), ("", 0)
        elif self._line_start:
            self._indent += len(text)

    def _in_start(self) -> bool:
        space = self._skip_space()
        if space:
            self._space(space)
            return True
        tag = self._tag(_THINK)
        if tag == "":
            return False
        if tag:
            self._at += len(tag)
            self._gap = []
            self._go("think")
            self._events.append(ev.ReasoningStart())
        else:
            self._go("content")
        return True

    def _in_think(self) -> bool:
        space = self._skip_space()
        if space:
            self._space(space)
            return True
        found = _THOUGHT.match(self._buffer, self._at)
        if found:
            self._at = found.end()
            self._line_start = False
            self._emit(found.group())
            return True
        calls = (_OPEN, _FUNCTION) if self._line_start else ()
        tag = self._tag(_THINK_END, *calls, *_END_TOKENS)
        if tag == "":
            return False
        if tag is None:
            self._at += 1
            self._line_start = False
            self._emit("<")
        elif tag in calls:
            self._draft, self._draft_start = [], self._position
            self._go("draft")
        else:
            self._at += len(tag)
            self._end_think()
            self._go("end_think" if tag == _THINK_END else "end")
        return True

    def _end_think(self) -> None:
        self._flush()
        self._events.append(ev.ReasoningEnd())
        self._gap, self._said = [], False
        self._line_start, self._indent = True, 0

    def _in_draft(self) -> bool:
        found = _DRAFT_END.search(self._buffer, self._at)
        if not found:
            # All but what may be the beginning of an end.
            keep = self._buffer.rfind("<", max(self._at, len(self._buffer) - 14))
            end = len(self._buffer) if keep < 0 else keep
            self._draft.append(self._buffer[self._at : end])
            self._at = end
            return False
        self._draft.append(self._buffer[self._at : found.start()])
        self._at = found.end()
        if found.group() == _THINK_END:
            self._emit_draft()
            self._end_think()
            self._go("end_think")
        else:
            self._replay("")
            if self._state != "done":
                self._finish(stopped=True)
                self._end()
        return True

    def _emit_draft(self) -> None:
        text = "".join(self._draft)
        kept = text.rstrip()
        if kept:
            self._emit(kept)

    def _replay(self, rest: str) -> None:
        """The thought was never closed: what looked like a call in it is read as one."""
        text = "".join(self._draft) + rest
        for found in _DRAFT_CALL.finditer(text):
            if found.group(1) is None or found.group(1) in self._schemas:
                self._draft = [text[: found.end()]]
                self._emit_draft()
                self._end_think()
                self._go("replay")
                self._base, self._buffer, self._at = self._draft_start + found.end(), text[found.end() :], 0
                self._advance()
                return
        self._draft = [text]
        self._emit_draft()
        self._end_think()
        self._go("end")

    def _in_text(self) -> bool:
        if self._prose():
            return True
        tag = self._tag(_OPEN, _FUNCTION, *_END_TOKENS)
        if tag == "":
            return False
        if tag is None:
            self._word("<")
        elif tag in _END_TOKENS:
            self._end()
        else:
            self._open(tag)
        return True

    def _in_fence(self) -> bool:
        if self._prose():
            return True
        tag = self._tag(*_END_TOKENS)
        if tag == "":
            return False
        if tag is None:
            self._word("<")
        else:
            self._end()
        return True

    def _prose(self) -> bool:
        """Take what is no ``<``; whether there was any."""
        space = self._skip_space()
        if space:
            self._space(space)
            return True
        letter = self._buffer[self._at]
        if letter in "`~":
            self._fence_letter(letter)
            return True
        found = _TEXT.match(self._buffer, self._at)
        if found:
            self._word(found.group())
        return found is not None

    def _word(self, word: str) -> None:
        self._at += len(word)
        self._run = ("", 0)
        self._line_start = False
        self._emit(word)

    def _fence_letter(self, letter: str) -> None:
        """A backtick or tilde: three of a kind at the beginning of a line open a fence, as many close it
        (CommonMark 4.5).
        """
        self._at += 1
        if self._line_start and self._indent <= 3:
            self._run = (letter, 1)
        elif self._run[0] == letter and not self._gap:
            self._run = (letter, self._run[1] + 1)
        else:
            self._run = ("", 0)
        self._line_start = False
        self._emit(letter)
        if self._state == "text" and self._run[1] == 3:
            self._fence, self._info = self._run, True
            self._go("fence")
        elif self._state == "fence" and self._info:
            if self._run[1]:
                self._fence = self._run
            elif letter == self._fence[0] == "`":
                # An info string holds no backtick: this is inline code.
                self._go("fence_end")

    def _end(self) -> None:
        """A token that ends the turn: nothing behind it is read."""
        self._at = len(self._buffer)
        self._gap = []
        self._go("end")

    def _in_after(self) -> bool:
        space = self._skip_space()
        if space:
            self._space(space)
            return True
        tag = self._tag(_CLOSE)
        if tag:
            self._at += len(tag)
            return True
        if tag is None:
            self._go("content")
        return tag is None

    def _in_done(self) -> bool:
        self._at = len(self._buffer)
        return False

    # ---- calls

    def _open(self, tag: str) -> None:
        """An opening tag in the text; what follows decides whether it opens a call."""
        self._flush()
        self._raw: list[str] = []
        self._size = 0
        self._start = self._position
        self._wrapped = tag == _OPEN
        self._call = None
        self._take(len(tag))
        self._go("tag" if self._wrapped else "function")

    def _take(self, count: int) -> str:
        """Consume markup or body of an attempt; its raw text is kept up to the limit."""
        text = self._buffer[self._at : self._at + count]
        self._at += count
        # The first MAX_CALL characters are kept, however the answer was cut.
        if self._size < MAX_CALL:
            self._raw.append(text[: MAX_CALL - self._size])
        self._size += count
        return text

    def _not_a_call(self) -> None:
        """What was taken is text after all."""
        first, *rest = self._raw
        self._emit(first)
        self._run, self._line_start = ("", 0), False
        for piece in rest:
            if piece.isspace():
                self._space(piece)
            else:
                self._emit(piece)
        self._go("not_a_call")

    def _begin(self) -> int:
        """A call has begun: its number."""
        self._gap = []
        self._index += 1
        self._events.append(ev.CallStart(self._index))
        return self._index

    def _again(self) -> bool:
        """A fresh ``<tool_call>`` where the attempt before has been dealt with."""
        self._raw, self._size, self._start, self._wrapped = [], 0, self._position, True
        self._call = None
        self._take(len(_OPEN))
        self._go("tag")
        return True

    def _in_opener(self) -> bool:
        space = _SPACE.match(self._buffer, self._at)
        if space:
            self._take(len(space.group()))
            return True
        if self._buffer[self._at] in "{[":
            self._call = _Json(self, self._buffer[self._at] == "[")
            self._go("json")
            return True
        tag = self._tag(_FUNCTION, _OPEN)
        if tag == "":
            return False
        if tag == _OPEN:
            return self._again()
        if tag == _FUNCTION:
            self._begin_function()
            self._go("function")
        else:
            self._not_a_call()
        return True

    def _begin_function(self) -> None:
        self._take(len(_FUNCTION))
        self._call = _Xml(self)
        self._call.index = self._begin()

    def _in_bare(self) -> bool:
        """The name behind a ``<function=`` that stands by itself: only an offered one makes it a call."""
        end = self._buffer.find(">", self._at)
        so_far = self._buffer[self._at : end if end >= 0 else len(self._buffer)]
        if end < 0:
            if any(name.startswith(so_far) for name in self._schemas):
                return False
        elif so_far in self._schemas:
            self._call = _Xml(self)
            self._call.index = self._begin()
            self._take(len(so_far) + 1)
            self._call.named(so_far)
            self._go("named")
            return True
        self._not_a_call()
        return True

    def _in_json(self) -> bool:
        assert isinstance(self._call, _Json)  # noqa: S101 - what the state means
        return self._call.body()

    def _in_json_end(self) -> bool:
        assert isinstance(self._call, _Json)  # noqa: S101 - what the state means
        return self._call.tail()

    def _in_name(self) -> bool:
        return self._xml().name_part()

    def _in_parameters(self) -> bool:
        return self._xml().between()

    def _in_key(self) -> bool:
        return self._xml().key_part()

    def _in_value(self) -> bool:
        return self._xml().value_part()

    def _in_look(self) -> bool:
        return self._xml().look()

    def _in_xml_end(self) -> bool:
        return self._xml().tail()

    def _xml(self) -> _Xml:
        assert isinstance(self._call, _Xml)  # noqa: S101 - what the state means
        return self._call

    def _foreign(self) -> str | None:
        """A closing tag at the cursor that is none of ours; ``""`` when the buffer ends before that is known."""
        found = _FOREIGN.match(self._buffer, self._at)
        if found:
            return found.group()
        if len(self._buffer) - self._at <= 43 and _FOREIGN_PREFIX.match(self._buffer, self._at):
            return ""
        return None

    def _delta(self, text: str) -> None:
        """A piece of the arguments of the open call."""
        self._arguments_out.append(text)

    def _whole(
        self, index: int, name: str, arguments: Any, repairs: tuple[str, ...], span: tuple[int, int], raw: str
    ) -> None:
        """A whole call, with what keeps it from running."""
        wrong = envelope.check(name, arguments, self._schemas)
        problems = (Problem(*wrong, span, raw),) if wrong else ()
        self._events.append(ev.CallEnd(index, ToolCall(name, arguments, raw, span, repairs, problems)))

    def _fail(self, index: int, kind: str, message: str, start: int, raw: str) -> None:
        # Of a call that is too large only the beginning is kept.
        end = self._position if kind == "too_large" else start + len(raw)
        self._events.append(ev.CallError(index, Problem(kind, message, (start, end), raw)))

    def _finish(self, stopped: bool) -> None:
        """The end of the answer, in each state."""
        rest = self._buffer[self._at :]
        if self._state == "start":
            if rest:
                self._emit(rest)  # the beginning of <think> and no more
        elif self._state == "think":
            if rest:
                self._emit(rest)
            self._end_think()
        elif self._state == "draft":
            if stopped:
                self._replay(rest)
                self._finish(stopped)
                return
            self._draft.append(rest)
            self._emit_draft()
            self._end_think()
        elif self._state in ("text", "fence"):
            if rest:
                self._emit(rest)
        elif self._state == "bare":
            if rest:
                self._raw.append(rest)
            self._not_a_call()
        elif self._state == "opener":
            self._gap = []
            self._flush()
            self._index += 1
            self._raw.append(rest)
            self._events.append(ev.CallStart(self._index))
            raw = "".join(self._raw).rstrip()
            self._fail(self._index, "unterminated", "the answer ended where a call opens", self._start, raw)
        elif self._call is not None and self._state != "after":
            self._call.end(rest, stopped)


class _Json:
    """The JSON body of an attempt: one object, or a list of them, each a call."""

    def __init__(self, parser: StreamParser, is_list: bool) -> None:
        self._p = parser
        self._list = is_list
        self._base = 2 if is_list else 1  # the depth of the keys of a call
        self._depth = 0
        self._calls = 0
        self._open = False  # an object has begun and is not dealt with
        self._pending: tuple[int, str, int] | None = None  # a whole object: number, text, start
        self._end = 0  # of the pending object, in the raw pieces
        self._end_position = 0
        self._repairs: list[str] = []
        self._object_from = 0
        self._object_start = 0
        self._index = -1
        self._new_object()

    def _new_object(self) -> None:
        self._in_string = self._escaped = self._streaming = self._streamed = False
        self._key = ""
        self._expect = ""
        self._piece: list[str] | None = None
        self._seen: set[str] = set()
        self._twice = ""

    def body(self) -> bool:
        """Inside the value."""
        if self._in_string:
            return self._string()
        p = self._p
        found = _JSON_PLAIN.match(p._buffer, p._at)
        if found:
            text = p._take(len(found.group()))
            if self._streaming:
                p._delta(text)
            return True
        letter = p._buffer[p._at]
        if letter == "<":
            return self._markup()
        if letter in "{[":
            self._opens(letter)
        elif letter in "}]":
            self._closes(letter)
        else:
            p._take(1)
            if self._streaming:
                p._delta(letter)
            if letter == '"':
                self._in_string = True
                wanted = self._depth == self._base and (
                    self._expect == "key" or (self._expect == "value" and self._key == "name")
                )
                self._piece = [] if wanted else None
            elif self._depth == self._base and letter == ",":
                self._expect = "key"
            elif self._depth == self._base and letter == ":" and self._expect == "colon":
                self._expect = "value"
            elif self._depth == 1 and self._list and letter == ",":
                self._accept()
        return True

    def _opens(self, letter: str) -> None:
        p = self._p
        if self._depth == self._base - 1 and letter == "{":
            self._accept()
            self._new_object()
            self._index = p._begin()
            self._calls += 1
            self._open = True
            self._object_from, self._object_start = len(p._raw), p._position
            self._expect = "key"
        elif (
            self._depth == self._base
            and letter == "{"
            and self._key == "arguments"
            and self._expect == "value"
            and not self._streamed
        ):
            self._streaming = self._streamed = True
        p._take(1)
        self._depth += 1
        if self._streaming:
            p._delta(letter)

    def _closes(self, letter: str) -> None:
        p = self._p
        p._take(1)
        self._depth -= 1
        if self._streaming:
            p._delta(letter)
            if self._depth <= self._base:
                self._streaming = False
        if self._depth == self._base - 1 and self._index >= 0 and self._pending is None and self._calls:
            self._pending = (self._index, "".join(p._raw[self._object_from :]), self._object_start)
            self._end, self._end_position = len(p._raw), p._position
        if self._depth == 0:
            p._go("whole")

    def _string(self) -> bool:
        p = self._p
        found = None if self._escaped else _STRING.match(p._buffer, p._at)
        text = p._take(len(found.group()) if found else 1)
        if found or self._escaped:
            self._escaped = False
        elif text == "\\":
            self._escaped = True
        elif text == '"':
            self._in_string = False
            if self._streaming:
                p._delta(text)
            self._string_ends()
            return True
        else:
            # JSON wants control characters escaped; models write line breaks as they are.
            if "control_characters" not in self._repairs:
                self._repairs.append("control_characters")
            if self._streaming:
                p._delta(json.dumps(text)[1:-1])
            if self._piece is not None:
                self._piece.append(text)
            return True
        if self._streaming:
            p._delta(text)
        if self._piece is not None:
            self._piece.append(text)
        return True

    def _string_ends(self) -> None:
        if self._piece is None:
            return
        try:
            text = json.loads('"' + "".join(self._piece) + '"', strict=False)
        except ValueError:
            text = ""
        self._piece = None
        if self._expect == "key":
            if text in self._seen and text in ("name", "arguments"):
                self._twice = text
            self._seen.add(text)
            self._key, self._expect = text, "colon"
        else:
            self._expect = ""
            if text and not self._twice:
                self._p._events.append(ev.CallName(self._index, text))

    def _markup(self) -> bool:
        """``<`` outside of a string cannot be JSON: the body ends here, whole or not."""
        p = self._p
        tag = p._tag(_CLOSE, _OPEN, *_END_TOKENS)
        if tag == "":
            return False
        if tag is None:
            p._take(1)
        elif tag == _CLOSE:
            self._broken(closed=True)
            p._go("closed")
        elif tag == _OPEN:
            self._broken(closed=False)
            p._again()
        else:
            self.end("", stopped=True)
            p._end()
        return True

    def _broken(self, closed: bool) -> None:
        """The body is not whole where it ends."""
        p = self._p
        if self._pending is not None and self._depth == self._base - 1:
            if closed:
                p._take(len(_CLOSE))
            self._repairs.append("missing_bracket")
            self._accept()
            return
        text = "".join(p._raw[self._object_from :])
        end = len(p._raw)
        if closed:
            p._take(len(_CLOSE))
            if self._depth == self._base and self._calls and not self._in_string:
                try:
                    envelope.read(text + "}")
                except EnvelopeError:
                    pass
                else:
                    self._repairs.append("missing_brace")
                    self._pending = (self._index, text + "}", self._object_start)
                    self._end, self._end_position = end, p._position - len(_CLOSE)
                    self._accept(closed=True)
                    return
        self._accept()
        self._lost("invalid_json", _reason(text))

    def tail(self) -> bool:
        """Behind the whole value."""
        p = self._p
        space = _SPACE.match(p._buffer, p._at)
        if space:
            p._take(len(space.group()))
            return True
        letter = p._buffer[p._at]
        if letter in "}],":
            if letter != ",":
                self._repairs.append("surplus_bracket")
            p._take(1)
            return True
        if letter == "{":
            self._accept()
            self._list, self._base, self._depth = False, 1, 0
            p._go("json")
            return True
        tag = p._tag(_CLOSE, _OPEN, *_END_TOKENS)
        if tag == "":
            return False
        if tag == _CLOSE:
            p._take(len(tag))
            self._accept(closed=True)
            p._go("closed")
        elif tag == _OPEN:
            self._repairs.append("missing_closer")
            self._accept()
            p._again()
        elif tag:
            self.end("", stopped=True)
            p._end()
        else:
            foreign = p._foreign()
            if foreign == "":
                return False
            if foreign:
                p._take(len(foreign))
            else:
                self._repairs.append("missing_closer")
                self._accept()
                p._go("not_a_call")
        return True

    def end(self, rest: str, stopped: bool) -> None:
        """The answer ends inside the attempt, or behind its value."""
        p = self._p
        if p._state == "json_end" and stopped:
            self._repairs.append("missing_closer")
            self._accept()
            return
        if self._pending is not None and p._state == "json" and stopped:
            self._repairs.append("missing_bracket")
            self._accept()
            return
        if rest:
            p._raw.append(rest)
        self._pending = None
        self._lost("unterminated", "the answer ended before the call did")

    def _lost(self, kind: str, message: str) -> None:
        """What stands here gives no call: the open object, or what is left behind those that were dealt with."""
        p = self._p
        start, raw = p._start, "".join(p._raw)
        if self._calls and (self._list or self._calls > 1):
            start, raw = self._object_start, "".join(p._raw[self._object_from :])
        if not self._open and self._calls:
            bare = raw.lstrip(" \t\r\n,]")
            start, raw = start + len(raw) - len(bare), bare
            if not raw or raw == _CLOSE:
                return
        p._flush()
        if not self._open:
            self._index = p._begin()
        raw = raw.rstrip()
        if p._size > MAX_CALL:
            kind, message, raw = "too_large", f"the call is longer than {MAX_CALL} characters", raw[:200]
        p._fail(self._index, kind, message, start, raw)
        self._open = False

    def _accept(self, closed: bool = False) -> None:
        """The whole object that waits is an attempt: a call, or not."""
        p = self._p
        if self._pending is None:
            if closed and not self._calls:
                self._lost("invalid_json", "there is no call inside the tags")
            return
        index, text, start = self._pending
        self._pending = None
        p._flush()
        # A single object owns its tags; of several, each owns itself.
        if self._list or self._calls > 1:
            raw = "".join(p._raw[self._object_from : self._end])
        else:
            start = p._start
            raw = "".join(p._raw if closed else p._raw[: self._end])
        self._open = False
        self._object_from, self._object_start = self._end, self._end_position
        repairs, self._repairs = self._repairs, []
        if p._size > MAX_CALL:
            message = f"the call is longer than {MAX_CALL} characters"
            p._fail(index, "too_large", message, start, raw[:200])
            return
        try:
            if self._twice:
                raise EnvelopeError("invalid_json", f'the call has "{self._twice}" twice')
            found = envelope.read(text)
        except EnvelopeError as error:
            p._fail(index, error.kind, str(error), start, raw)
            return
        if not self._streamed or not isinstance(found.arguments, dict) or "arguments" not in self._seen:
            p._events.append(ev.CallArgs(index, json.dumps(found.arguments, ensure_ascii=False)))
        p._whole(index, found.name, found.arguments, (*repairs, *found.repairs), (start, start + len(raw)), raw)


def _reason(text: str) -> str:
    """Why a broken body is no JSON."""
    try:
        envelope.read(text)
    except EnvelopeError as error:
        return str(error)
    return "the closing tag comes before the end of the JSON"


class _Xml:
    """The XML body of an attempt: ``<function=NAME>`` and its parameters."""

    index = -1

    def __init__(self, parser: StreamParser) -> None:
        self._p = parser
        self._name = ""
        self._schema: Mapping[str, Any] = {}
        self._arguments: dict[str, Any] = {}
        self._repairs: list[str] = []
        self._broken = ""
        self._key = ""
        self._kinds: frozenset[str] = frozenset()
        self._value: list[str] = []
        self._fresh = False  # nothing of the value yet
        self._newline = False  # a line break that may be the last
        self._line_begins = True
        self._looked: list[str] = []
        self._end = 0

    def named(self, name: str) -> None:
        """The name is known."""
        self._name = name
        self._schema = self._p._schemas.get(name, {})
        self._p._events.append(ev.CallName(self.index, name))

    def name_part(self) -> bool:
        """In ``<function=NAME>``."""
        p = self._p
        for at in range(p._at, min(len(p._buffer), p._at + _MAX_NAME)):
            if p._buffer[at] in ">\n<":
                break
        else:
            if len(p._buffer) - p._at < _MAX_NAME:
                return False
            at = p._at + _MAX_NAME
        name = p._buffer[p._at : at].strip()
        if p._buffer[at : at + 1] == ">":
            p._take(at + 1 - p._at)
        else:
            p._take(at - p._at)
            self._broken = "the function's tag is not closed"
        if not name:
            self._broken = "missing_name"
        else:
            self.named(name)
        p._go("named")
        return True

    def between(self) -> bool:
        """Between parameters."""
        p = self._p
        space = _SPACE.match(p._buffer, p._at)
        if space:
            p._take(len(space.group()))
            return True
        found = _NO_TAG.match(p._buffer, p._at)
        if found:
            p._take(len(found.group()))
            self._broken = self._broken or "there is text outside of the parameters"
            return True
        tag = p._tag(_PARAMETER, _FUNCTION_END, _CLOSE, _OPEN, _FUNCTION, *_END_TOKENS)
        if tag == "":
            return False
        if tag == _PARAMETER:
            p._take(len(tag))
            p._go("parameter")
        elif tag == _FUNCTION_END:
            p._take(len(tag))
            self._end = len(p._raw)
            p._go("whole")
        elif tag == _CLOSE:
            self._repairs.append("missing_function_end")
            p._take(len(tag))
            self._end = len(p._raw)
            self._accept()
            p._go("closed")
        elif tag == _OPEN:
            self._fail("unterminated", "a new call begins before this one ends")
            p._again()
        elif tag == _FUNCTION:
            self._fail("unterminated", "a new call begins before this one ends")
            p._raw, p._size, p._start = [], 0, p._position
            p._begin_function()
            p._go("function")
        elif tag:
            self.end("", stopped=True)
            p._end()
        else:
            foreign = p._foreign()
            if foreign == "":
                return False
            if foreign:
                p._take(len(foreign))
            else:
                p._take(1)
                self._broken = self._broken or "there is text outside of the parameters"
        return True

    def key_part(self) -> bool:
        """In ``<parameter=KEY>``."""
        p = self._p
        for at in range(p._at, min(len(p._buffer), p._at + _MAX_NAME)):
            if p._buffer[at] in ">\n<":
                break
        else:
            if len(p._buffer) - p._at < _MAX_NAME:
                return False
            at = p._at + _MAX_NAME
        key = p._buffer[p._at : at].strip()
        if p._buffer[at : at + 1] != ">" or not key:
            p._take(at - p._at)
            self._broken = self._broken or "the tag of a parameter is not closed"
            p._go("broken")
            return True
        p._take(at + 1 - p._at)
        self._begin_value(key)
        p._go("value")
        return True

    def _begin_value(self, key: str) -> None:
        properties = self._schema.get("properties")
        schema = properties.get(key, {}) if isinstance(properties, Mapping) else {}
        self._key = key
        self._kinds = coerce.kinds(schema, self._schema)
        self._value = []
        self._fresh, self._newline, self._line_begins = True, False, True
        self._p._delta(("{" if not self._arguments else ", ") + json.dumps(key, ensure_ascii=False) + ": ")
        self._arguments[key] = ""
        if self._kinds == {"string"}:
            self._p._delta('"')

    def value_part(self) -> bool:
        """In a value. Every ``<`` may be a closing tag, or the next parameter at the beginning of a line."""
        p = self._p
        found = _NO_TAG.match(p._buffer, p._at)
        if found:
            self._grow(p._take(len(found.group())))
            return True
        tags = (_PARAMETER_END, _FUNCTION_END, _PARAMETER) if self._line_begins else (_PARAMETER_END, _FUNCTION_END)
        tag = p._tag(*tags)
        if tag == "":
            return False
        if tag is None:
            self._grow(p._take(1))
        elif tag == _PARAMETER:
            return self._next_parameter()
        else:
            self._looked = [p._take(len(tag))]
            p._go("closer")
        return True

    def _next_parameter(self) -> bool:
        """``<parameter=`` at the beginning of a line: with a known name it ends a value that was not closed."""
        p = self._p
        properties = self._schema.get("properties")
        known = properties if isinstance(properties, Mapping) else {}
        at = p._at + len(_PARAMETER)
        end = p._buffer.find(">", at, at + _MAX_NAME)
        if end < 0:
            so_far = p._buffer[at:]
            if any(name.startswith(so_far) for name in known):
                return False
            self._grow(p._take(1))
            return True
        if p._buffer[at:end] not in known:
            self._grow(p._take(1))
            return True
        self._repairs.append("missing_parameter_end")
        self._finish_value()
        p._take(len(_PARAMETER))
        p._go("next")
        return True

    def look(self) -> bool:
        """Behind a closing tag in a value: what follows says whether it was one."""
        p = self._p
        space = _SPACE.match(p._buffer, p._at)
        if space:
            self._looked.append(p._take(len(space.group())))
            return True
        parameter = self._looked[0] == _PARAMETER_END
        tags = (_PARAMETER, _FUNCTION_END, _CLOSE) if parameter else (_CLOSE, _OPEN, _FUNCTION)
        tag = p._tag(*tags)
        if tag == "":
            return False
        if tag is None:
            for piece in self._looked:
                self._grow(piece)
            p._go("no")
            return True
        self._finish_value()
        if parameter:
            p._go("parameter_end")
        else:
            self._repairs.append("missing_parameter_end")
            self._end = len(p._raw)
            p._go("whole")
        return True

    def _grow(self, text: str) -> None:
        """More of the value. The line breaks next to its tags are markup, one on each side."""
        self._line_begins = text.endswith("\n")
        if self._fresh:
            self._fresh = False
            text = text.removeprefix("\n")
        if self._newline and text:
            text, self._newline = "\n" + text, False
        if text.endswith("\n"):
            text, self._newline = text[:-1], True
        if text:
            self._value.append(text)
            if self._kinds == {"string"}:
                self._p._delta(json.dumps(text, ensure_ascii=False)[1:-1])

    def _finish_value(self) -> None:
        p = self._p
        text = "".join(self._value)
        value = coerce.value(text, self._kinds)
        if self._key in self._arguments:
            self._arguments[self._key] = value
        p._delta('"' if self._kinds == {"string"} else json.dumps(value, ensure_ascii=False))

    def tail(self) -> bool:
        """Behind ``</function>``."""
        p = self._p
        space = _SPACE.match(p._buffer, p._at)
        if space:
            p._take(len(space.group()))
            return True
        tag = p._tag(_CLOSE, _OPEN, _FUNCTION, *_END_TOKENS)
        if tag == "":
            return False
        if tag == _CLOSE:
            p._take(len(tag))
            self._end = len(p._raw)
            self._accept()
            p._go("closed")
        elif tag == _OPEN:
            self._repairs.append("missing_closer")
            self._accept()
            p._again()
        elif tag == _FUNCTION and p._wrapped:
            self._accept()
            p._raw, p._size, p._start = [], 0, p._position
            p._begin_function()
            p._go("function")
        elif tag in _END_TOKENS:
            self.end("", stopped=True)
            p._end()
        else:
            foreign = None if tag == _FUNCTION else p._foreign()
            if foreign == "":
                return False
            if foreign:
                p._take(len(foreign))
            else:
                self._repairs.append("missing_closer")
                self._accept()
                p._go("not_a_call")
        return True

    def end(self, rest: str, stopped: bool) -> None:
        """The answer ends inside the call, or behind it."""
        p = self._p
        if p._state == "xml_end" and stopped:
            self._repairs.append("missing_closer")
            self._accept()
            return
        if rest:
            p._raw.append(rest)
        self._end = len(p._raw)
        self._fail("unterminated", "the answer ended before the call did")

    def _fail(self, kind: str, message: str) -> None:
        p = self._p
        p._flush()
        raw = "".join(p._raw).rstrip() if kind == "unterminated" else "".join(p._raw[: self._end])
        if p._size > MAX_CALL:
            kind, message, raw = "too_large", f"the call is longer than {MAX_CALL} characters", raw[:200]
        p._fail(self.index, kind, message, p._start, raw)

    def _accept(self) -> None:
        p = self._p
        if p._size > MAX_CALL:
            self._fail("too_large", "")
        elif self._broken == "missing_name":
            self._fail("missing_name", "the call has no name")
        elif self._broken:
            self._fail("invalid_json", self._broken)
        else:
            p._delta("}" if self._arguments else "{}")
            p._flush()
            raw = "".join(p._raw[: self._end])
            span = (p._start, p._start + len(raw))
            p._whole(self.index, self._name, self._arguments, tuple(self._repairs), span, raw)


class _Salvage:
    """Holds back text that may be nothing but a call in a wrong form, and reads it at the end."""

    def __init__(self, schemas: Mapping[str, Mapping[str, Any]]) -> None:
        self._schemas = schemas
        self._held: list[Event] | None = []

    def filter(self, events: list[Event]) -> list[Event]:
        """The events that may be told now."""
        told: list[Event] = []
        for event in events:
            if self._held is None or isinstance(event, (ev.ReasoningStart, ev.Reasoning, ev.ReasoningEnd)):
                told.append(event)
            elif isinstance(event, ev.Text):
                self._held.append(event)
                first = self._held[0]
                if isinstance(first, ev.Text) and first.delta[0] not in "`~{[<":
                    told += self._released()
            elif isinstance(event, ev.End):
                told += self._read(event.finish)
                told.append(event)
            else:
                told += self._released()
                told.append(event)
        return told

    def _released(self) -> list[Event]:
        held, self._held = self._held or [], None
        return held

    def _read(self, finish: str) -> list[Event]:
        held = self._released()
        text = "".join(event.delta for event in held if isinstance(event, ev.Text))
        found = read_salvaged(text, self._schemas) if finish == "stop" else None
        if found is None:
            return held
        form, calls = found
        told: list[Event] = []
        for index, each in enumerate(calls):
            call = ToolCall(each.name, each.arguments, text, (0, len(text)), (f"salvaged:{form}", *each.repairs))
            told += [
                ev.CallStart(index),
                ev.CallName(index, each.name),
                ev.CallArgs(index, json.dumps(each.arguments, ensure_ascii=False)),
                ev.CallEnd(index, call),
            ]
        return told

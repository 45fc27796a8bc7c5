"""The parser: text and thoughts, fences and opening tags; what is inside of a call is left to the bodies.

Each state has one method. It reads from the source and returns the signal that leads to the next state, ``""`` to
go on in the same, or None to wait for more input. So all work is done at the cursor, and each character is read at
most twice: a second time where it had to be known first whether a tag or a draft opens a call.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from .. import events as ev
from ..events import Event
from ..messages import Problem, ToolCall
from ..salvage import Withheld
from ..tools import as_tool
from .attempts import Attempts
from .json_body import JsonBody
from .output import Output
from .source import (
    CLOSE,
    END_TOKENS,
    FUNCTION,
    FUNCTION_END,
    LONGEST_TAG,
    MAX_NAME,
    OPEN,
    PARAMETER,
    THINK,
    THINK_END,
    Source,
)
from .transitions import DONE, START, TRANSITIONS
from .xml_body import XmlBody

MAX_CALL = 1_000_000

_WORDS = re.compile(r"[^\s<`~]+")
_THOUGHT = re.compile(r"[^\s<]+")
_RUN = re.compile(r"`+|~+")
_NAME_END = re.compile(r"[>\n]")
_DRAFT_END = re.compile("|".join(map(re.escape, (THINK_END, *END_TOKENS))))
# How a generation prompt begins, for callers that pass the whole of it.
_HEADER = "<|im_start|>assistant\n"


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
    generation prompt had opened, such as ``"<think>\n"`` or the beginning of a call. ``salvage`` also reads a turn that
    is nothing but calls in a wrong form (see ``salvage.py``). ``max_call`` is the size of a call, in
    characters, from which on it is a problem.
    """

    def __init__(
        self,
        tools: Iterable[Any] = (),
        prefill: str = "",
        salvage: bool = False,
        max_call: int = MAX_CALL,
    ) -> None:
        self._schemas: dict[str, Mapping[str, Any]] = {tool.name: tool.parameters for tool in map(as_tool, tools)}
        opened = prefill.rpartition(_HEADER)[2]
        self._source = source = Source(-len(opened), max_call)
        self._output = Output()
        attempts = Attempts(source, self._output, self._schemas, max_call)
        self._json = json = JsonBody(source, attempts)
        self._xml = xml = XmlBody(source, attempts)
        self._attempts = attempts
        self._withheld = Withheld(self._schemas) if salvage else None
        self._state = START
        self._line_start = True
        self._indent = 0
        self._run = ("", 0)  # the backticks or tildes that the line begins with: which, how many
        self._fence = ("", 0, 0)  # what opened the fence, and how far it is indented
        self._last = ""  # whether the last character was a backtick or tilde: which
        self._text_start = -1
        self._methods: dict[str, Callable[[], str | None]] = {
            "start": self._in_start,
            "think": self._in_think,
            "think_opener": self._in_opener,
            "think_bare": self._in_bare,
            "think_bare_body": self._in_bare_body,
            "draft": self._in_draft,
            "text": self._in_text,
            "info": self._in_fence,
            "fence": self._in_fence,
            "opener": self._in_opener,
            "bare": self._in_bare,
            "bare_body": self._in_bare_body,
            "json": json.value,
            "string": json.string,
            "list": json.elements,
            "json_end": json.tail,
            "broken": json.broken,
            "name": xml.name,
            "parameters": xml.parameters,
            "key": xml.key,
            "value": xml.value,
            "look": xml.look,
            "xml_end": xml.tail,
            "after": self._in_after,
            "done": self._in_done,
        }
        self._pending = _still_open(self._read(opened))
        self._text_start = -1  # where the text begins, once it does

    @property
    def state(self) -> str:
        """Where the parser is: a key of TRANSITIONS."""
        return self._state

    def feed(self, text: str) -> list[Event]:
        """Take the next piece of the answer; returns what became certain."""
        events, self._pending = self._pending + self._read(text), []
        return self._withheld.filter(events, self._text_start) if self._withheld else events

    def close(self, finish: str = "stop") -> list[Event]:
        """The answer is over. ``finish`` is ``stop``, or anything else when it was cut; returns the last events, at
        their end End.
        """
        self._end(stopped=finish == "stop")
        self._output.event(ev.End(finish))
        return self.feed("")

    # ---- the machine

    def _read(self, text: str) -> list[Event]:
        self._source.add(text)
        self._advance()
        return self._output.taken()

    def _advance(self) -> None:
        source = self._source
        while source.at < len(source.text):
            signal = self._methods[self._state]()
            if signal is None:
                return
            if signal == "end":
                source.drop()
                self._end(stopped=True)
            elif signal:
                self._go(signal)

    def _go(self, signal: str) -> None:
        self._state = TRANSITIONS[self._state][signal]

    def _end(self, stopped: bool) -> None:
        """The end of the answer, in each state. What is still unread began something that never came."""
        state, source = self._state, self._source
        if state == DONE:
            return
        if state == "draft" and stopped:
            # The thought never ended: what looked like a call in it is one.
            source.rewind()
            source.forget()
            self._thought_over()
            self._go("replay")
            self._advance()
            self._end(stopped)
            return
        source.at, rest = len(source.text), source.text[source.at :]
        if state in _JSON_STATES:
            self._json.end(stopped)
        elif state in _XML_STATES:
            self._xml.end(stopped, whole=state == "xml_end")
        elif state == "opener" or (state == "bare_body" and self._schemas):
            self._attempts.failed("unterminated", "the answer ended where a call opens")
        elif state in _UNDECIDED_STATES:
            self._not_a_call()
        elif rest:
            self._say(rest)
        if state in _THOUGHT_STATES:
            self._thought_over()
        self._go("end")

    # ---- thoughts

    def _in_start(self) -> str | None:
        space = self._source.space()
        if space:
            return self._space(space)
        tag = self._source.tag(THINK)
        if tag is None:
            return "content"
        if tag == "":
            return None
        self._source.at += len(tag)
        self._output.event(ev.ReasoningStart())
        self._output.prose(ev.Reasoning)
        return "think"

    def _in_think(self) -> str | None:
        source = self._source
        space = source.space()
        if space:
            return self._space(space)
        found = _THOUGHT.match(source.text, source.at)
        if found:
            source.at = found.end()
            return self._say(found.group())
        calls = (OPEN, FUNCTION) if self._line_start else ()
        tag = source.tag(THINK_END, *calls, *END_TOKENS)
        if tag == "":
            return None
        if tag is None:
            source.at += 1
            return self._say("<")
        if tag == THINK_END:
            source.at += len(tag)
            self._thought_over()
            return "end_think"
        return "end" if tag in END_TOKENS else self._opens(tag)

    def _in_draft(self) -> str | None:
        source = self._source
        found = _DRAFT_END.search(source.text, source.at)
        if not found:
            # A tag may have begun.
            begun = source.text.rfind("<", max(source.at, len(source.text) - LONGEST_TAG))
            source.at = begun if begun >= 0 else len(source.text)
            return None
        source.at = found.start()
        if found.group() != THINK_END:
            return "end"
        self._say(source.kept())
        source.forget()
        source.at = found.end()
        self._thought_over()
        return "end_think"

    def _thought_over(self) -> None:
        self._output.event(ev.ReasoningEnd())
        self._output.prose(ev.Text)
        self._line_start, self._indent, self._last = True, 0, ""
        self._text_start = -1

    # ---- text and fences

    def _in_text(self) -> str | None:
        source = self._source
        space = source.space()
        if space:
            return self._space(space)
        if source.text[source.at] != "<":
            return self._prose()
        tag = source.tag(OPEN, FUNCTION, *END_TOKENS)
        if tag == "":
            return None
        if tag in END_TOKENS:
            return "end"
        # Directly behind a backtick a tag is quoted.
        if tag is None or self._last == "`":
            source.at += 1
            return self._say("<")
        return self._opens(tag)

    def _in_fence(self) -> str | None:
        source = self._source
        space = source.space()
        if space:
            return self._space(space)
        if source.text[source.at] != "<":
            return self._prose()
        tag = source.tag(*END_TOKENS)
        if tag == "":
            return None
        if tag:
            return "end"
        source.at += 1
        return self._say("<")

    def _prose(self) -> str:
        """A word, or a run of backticks or tildes: three at the beginning of a line open a fence (CommonMark 4.5)."""
        source = self._source
        found = _WORDS.match(source.text, source.at)
        if found:
            source.at = found.end()
            return self._say(found.group())
        found = _RUN.match(source.text, source.at)
        run = found.group() if found else ""
        letter = run[:1]
        source.at += len(run)
        if self._line_start:
            self._run = (letter, len(run))
        elif self._last == letter == self._run[0]:  # the same run, cut by the input
            self._run = (letter, self._run[1] + len(run))
        else:
            self._run = ("", 0)
        if self._text_start < 0:
            self._text_start = source.position - len(run)
        self._line_start, self._last = False, letter
        self._output.words(run)
        if self._state == "text" and self._run[1] >= 3:
            self._fence = (*self._run, self._indent)
            return "fence"
        if self._state == "info":
            if self._run[1]:
                self._fence = (*self._run, self._indent)
            elif letter == "`" == self._fence[0]:
                return "inline"  # an info string holds no backtick
        return ""

    def _say(self, text: str) -> str:
        """Words, perhaps with white space behind them."""
        words = text.rstrip()
        if self._text_start < 0:
            self._text_start = self._source.position - len(text)
        self._output.words(words)
        self._run, self._last, self._line_start = ("", 0), "", False
        return self._space(text[len(words) :]) if len(words) < len(text) else ""

    def _space(self, text: str) -> str:
        """White space. At the end of a line a fence begins, or ends when as much closes it as opened it."""
        self._output.space(text)
        self._last = ""
        _, newline, last_line = text.rpartition("\n")
        if not newline:
            if self._line_start:
                self._indent += len(text)
            return ""
        run, (letter, count, indent) = self._run, self._fence
        closes = run[0] == letter and run[1] >= count and self._indent <= indent + 3
        self._line_start, self._indent, self._run = True, len(last_line), ("", 0)
        if self._state == "info":
            return "line"
        return "fence_end" if self._state == "fence" and closes else ""

    # ---- where a call may open

    def _opens(self, tag: str) -> str:
        """An opening tag at the cursor; what follows it decides."""
        self._source.open(tag)
        return "tag" if tag == OPEN else "function"

    def _not_a_call(self) -> str:
        """What was read since the mark is prose after all."""
        self._say(self._source.kept())
        self._source.forget()
        return "not_a_call"

    def _in_opener(self) -> str | None:
        source = self._source
        source.space()
        letter = source.text[source.at : source.at + 1]
        if not letter:
            return ""
        if letter == "{":
            self._json.open(listed=False)
            return "json"
        if letter == "[":
            self._json.open(listed=True)
            source.at += 1
            return "list"
        tag = source.tag(FUNCTION, OPEN, *END_TOKENS)
        if tag is None:
            return self._not_a_call()
        if tag == "":
            return None
        if tag == FUNCTION:
            self._xml.open(wrapped=True)
            return "function"
        return "end" if tag in END_TOKENS else self._opens(tag)

    def _in_bare(self) -> str | None:
        """In the name of a ``<function=NAME>`` without ``<tool_call>``: it must be that of an offered tool."""
        source = self._source
        found = _NAME_END.search(source.text, source.at, source.at + MAX_NAME)
        name = source.text[source.at : found.start() if found else source.at + MAX_NAME]
        if not found and len(name) < MAX_NAME:
            if not self._schemas or any(known.startswith(name) for known in self._schemas):
                return None
        elif found and found.group() == ">" and (name in self._schemas or not self._schemas):
            source.at = found.end()
            return "known"
        return self._not_a_call()

    def _in_bare_body(self) -> str | None:
        """Behind it: only a body makes it a call, since prose names functions too."""
        source = self._source
        source.space()
        if source.at == len(source.text):
            return ""
        tag = source.tag(PARAMETER, FUNCTION_END, CLOSE, *END_TOKENS)
        if tag == "":
            return None
        if tag is None:
            return self._not_a_call()
        if tag in END_TOKENS:
            return "end"
        source.rewind()
        self._xml.open(wrapped=False)
        return "function"

    # ---- behind a call, and behind everything

    def _in_after(self) -> str | None:
        source = self._source
        space = source.space()
        if space:
            return self._space(space)
        tag = source.tag(CLOSE)
        if tag is None:
            return "content"
        if tag == "":
            return None
        source.at += len(tag)
        return ""

    def _in_done(self) -> None:
        self._source.drop()


_JSON_STATES = ("json", "string", "list", "json_end", "broken")
_XML_STATES = ("name", "parameters", "key", "value", "look", "xml_end")
_UNDECIDED_STATES = ("bare", "bare_body", "think_opener", "think_bare", "think_bare_body", "draft")
_THOUGHT_STATES = ("think", "think_opener", "think_bare", "think_bare_body", "draft")


def _still_open(events: list[Event]) -> list[Event]:
    """Of what a prefill says only what the answer goes on with: an open thought or call."""
    opened: list[Event] = []
    for event in events:
        if isinstance(event, (ev.ReasoningStart, ev.CallStart)):
            opened = [event]
        elif isinstance(event, (ev.CallName, ev.CallArgs)):
            opened.append(event)
        elif isinstance(event, (ev.ReasoningEnd, ev.CallEnd, ev.CallError)):
            opened = []
    return opened

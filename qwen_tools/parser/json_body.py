"""The JSON dialect: what stands between ``<tool_call>`` and ``</tool_call>`` when it begins with ``{`` or ``[``.

Each state's method reads from the source, reports to the attempts and returns a signal: ``""`` goes on in the
same state, None waits for more input. Strings are known from the rest, so that a tag in a string is a
string; outside of strings ``<`` cannot be JSON, so that there a tag ends even a broken body.
"""

from __future__ import annotations

import json
import re

from .. import envelope
from ..coerce import loads
from ..envelope import EnvelopeError
from .attempts import Attempts
from .source import CLOSE, END_TOKENS, OPEN, Source

_IN_STRING = re.compile(r'["\\\x00-\x1f]')
_OUTSIDE = re.compile(r'["{}\[\],:<]')


class JsonBody:
    """One object, a list of objects, or objects one after the other: each is a call."""

    def __init__(self, source: Source, attempts: Attempts) -> None:
        self._source = source
        self._attempts = attempts
        self.open(listed=False)

    def open(self, listed: bool) -> None:
        """A body begins."""
        self._listed = listed
        self._calls = 0
        # A whole object that is no call yet, since the answer may be cut behind it: as it is read, and as written.
        self._waiting: tuple[str, str] | None = None
        self._depth = 0
        self._broken = False  # an attempt is open that is no object
        self._in_string = False  # of that

    def _begin(self) -> None:
        """An object begins at the cursor. The first, unless it is in a list, owns the opening tag."""
        source = self._source
        if self._listed:
            source.mark()
        self._attempts.open()
        self._calls += 1
        self._object = source.position - source.start  # where it begins in what is kept
        self._repairs: list[str] = []
        self._key, self._expect = "", "key"  # of the object itself: the last key, and what comes next
        self._seen: set[str] = set()  # of the two keys that must not come twice
        self._twice = ""
        self._piece: list[str] | None = None  # of a key or of the name
        self._streaming = self._streamed = False

    # ---- the states

    def value(self) -> str | None:
        """In an object, outside of strings. Arguments are handed on as they are written: they are JSON already."""
        if not self._depth:
            self._begin()
        source = self._source
        text, start = source.text, source.at
        for found in _OUTSIDE.finditer(text, start):
            letter, source.at = found.group(), found.end()
            if letter == '"':
                named = self._expect == "value" and self._key == "name"
                self._piece = [] if self._depth == 1 and (self._expect == "key" or named) else None
                self._hand_on(text[start : source.at])
                return "quote"
            if letter == "<":
                source.at -= 1
                self._hand_on(text[start : source.at])
                return self._markup(stray="")
            if letter in "{[":
                if letter == "{" and self._depth == 1 and self._expect == "value" and self._key == "arguments":
                    self._streaming = self._streamed = True
                    start = source.at - 1
                self._depth += 1
            elif letter in "}]":
                self._depth -= 1
                if self._depth == 1:
                    self._hand_on(text[start : source.at])
                    self._streaming = False
                elif not self._depth:
                    written = source.kept()[self._object :]
                    self._waiting = written, written
                    return "element" if self._listed else "whole"
            elif self._depth == 1:
                self._expect = "key" if letter == "," else "value"
        source.at = len(text)
        self._hand_on(text[start:])
        return ""

    def string(self) -> str | None:
        """In a string of an object."""
        source = self._source
        text, start = source.text, source.at
        while True:
            found = _IN_STRING.search(text, source.at)
            source.at = found.start() if found else len(text)
            letter = text[source.at : source.at + 1]
            if letter != '"' and letter >= " ":  # a backslash: two characters belong together
                if source.at + 1 == len(text):
                    self._hand_on_string(text[start : source.at])
                    return None
                source.at += 2
                continue
            if letter == '"':
                self._hand_on_string(text[start : source.at])
                source.at += 1
                self._hand_on(letter)
                self._string_over()
                return "unquote"
            self._hand_on_string(text[start : source.at])
            if not letter:
                return ""
            # JSON wants control characters escaped; models write line breaks as they are.
            self._repairs.append("control_characters")
            source.at += 1
            start = source.at
            self._hand_on_string(json.dumps(letter)[1:-1])

    def _hand_on(self, text: str) -> None:
        if self._streaming:
            self._attempts.arguments(text)

    def _hand_on_string(self, text: str) -> None:
        self._hand_on(text)
        if self._piece is not None:
            self._piece.append(text)

    def _string_over(self) -> None:
        """A key of the object is known, or the name."""
        if self._piece is None:
            return
        try:
            text = str(loads('"' + "".join(self._piece) + '"'))
        except ValueError:
            text = ""  # an invalid escape; the whole will be found invalid too
        self._piece = None
        if self._expect == "key":
            self._key = text
            if text in ("name", "arguments"):
                self._twice = text if text in self._seen else self._twice
                self._seen.add(text)
        else:
            if text and self._twice != "name":
                self._attempts.name(text)
            self._key = ""

    def elements(self) -> str | None:
        """In a list, between its objects."""
        source = self._source
        source.space()
        if source.at == len(source.text):
            return ""
        letter = source.text[source.at]
        if letter == "<":
            return self._markup(stray="odd")
        if letter == "]":
            source.at += 1
            return "whole"
        if letter in ",{":
            self._accept()
            if letter == "{":
                return "json"
            source.at += 1
            return ""
        return self._odd()

    def _odd(self) -> str:
        """Something in a list that is no object."""
        self._accept()
        self._attempts.open()
        self._broken = True
        return "odd"

    def broken(self) -> str | None:
        """In a list that is not one of calls. Only its end is looked for, outside of strings."""
        source = self._source
        while source.at < len(source.text):
            found = (_IN_STRING if self._in_string else _OUTSIDE).search(source.text, source.at)
            source.at = found.start() if found else len(source.text)
            letter = source.text[source.at : source.at + 1]
            if letter == "<":
                return self._markup(stray="")
            if letter == "\\":
                if source.at + 1 == len(source.text):
                    return None
                source.at += 1
            elif letter == '"':
                self._in_string = not self._in_string
            source.at += 1 if letter else 0
        return ""

    def tail(self) -> str | None:
        """Behind the whole value."""
        source = self._source
        source.space()
        if source.at == len(source.text):
            return ""
        letter = source.text[source.at]
        if letter in "}],":
            if letter != ",":
                self._repairs.append("surplus_bracket")
            source.at += 1
            return ""
        if letter == "{":
            self._settle()
            self._listed = False
            return "json"
        tag = source.tag(CLOSE, OPEN, *END_TOKENS)
        if tag is None:
            tag = source.foreign()
            if tag:
                source.at += len(tag)
                return ""
            if tag is None:
                self._settle("missing_closer")
                return "not_a_call"
        if tag == "":
            return None
        if tag in END_TOKENS:
            return "end"
        if tag == CLOSE:
            source.at += len(tag)
            self._settle()
            return "closed"
        self._settle("missing_closer")
        source.open(OPEN)
        return "tag"

    def _markup(self, stray: str) -> str | None:
        """At a ``<`` outside of strings: the body ends here, whole or not; or the signal for a stray one."""
        source = self._source
        tag = source.tag(CLOSE, OPEN, *END_TOKENS)
        if tag == "":
            return None
        if tag is None:
            if stray:
                return self._odd()
            source.at += 1
            return ""
        if tag in END_TOKENS:
            return "end"
        closed = tag == CLOSE
        source.at += len(tag) if closed else 0
        self._cut(closed)
        if closed:
            return "closed"
        source.open(OPEN)
        return "tag"

    # ---- what became of an attempt

    def _cut(self, closed: bool) -> None:
        """A tag ends the body before its brackets do."""
        if self._broken:
            self._attempts.failed("invalid_json", "a list in a call's tags must hold calls only")
            return
        if not self._depth:
            self._settle("missing_bracket")
            return
        text = self._source.kept()[self._object :].removesuffix(CLOSE if closed else "")
        if closed and self._depth == 1:
            try:
                envelope.read(text + "}")
            except EnvelopeError:
                pass
            else:
                # Exactly the last brace is missing, and the closing tag says that nothing else is.
                self._waiting = text + "}", text
                self._settle("missing_brace")
                return
        self._attempts.failed("invalid_json", envelope.why_not(text))

    def end(self, stopped: bool) -> None:
        """The answer ends in the body or behind it; a whole object counts when the model stopped by itself."""
        source = self._source
        source.at = len(source.text)
        if self._waiting is not None and stopped:
            self._settle("missing_closer")
        elif self._waiting is not None or self._depth or self._broken or not self._calls:
            self._attempts.failed("unterminated", "the answer ended before the call did")

    def _settle(self, repair: str = "") -> None:
        """The body ends: the object that waits is accepted; a body without any object is an attempt too."""
        if self._waiting is not None and repair:
            self._repairs.append(repair)
        self._accept()
        if not self._calls:
            self._attempts.failed("invalid_json", "there is no call in the list")

    def _accept(self) -> None:
        """The object that waits becomes a call, or not."""
        if self._waiting is None:
            return
        (text, written), self._waiting = self._waiting, None
        attempts = self._attempts
        raw = written if self._listed else None  # the list's brackets are no part of it
        if self._twice:
            attempts.failed("invalid_json", f'the call has "{self._twice}" twice', raw)
            return
        try:
            found = envelope.read(text)
        except EnvelopeError as error:
            attempts.failed(error.kind, str(error), raw)
            return
        if not self._streamed:
            attempts.arguments(json.dumps(found.arguments, ensure_ascii=False))
        attempts.whole(found.name, found.arguments, [*self._repairs, *found.repairs], raw)

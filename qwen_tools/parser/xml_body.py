"""The XML dialect: ``<function=NAME>``, its ``<parameter=KEY>`` values, ``</function>``.

Values are raw text without any escaping, so a closing tag counts only when what must follow it does, and in a value
nothing else is markup. States, sources and signals as in ``json_body``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from .. import coerce
from .attempts import Attempts
from .source import (
    CLOSE,
    END_TOKENS,
    FUNCTION,
    FUNCTION_END,
    MAX_NAME,
    OPEN,
    PARAMETER,
    PARAMETER_END,
    Source,
)

_NAME_END = re.compile(r"[>\n]")
_OUTSIDE = "there is text outside of the parameters"
_STRING = frozenset(("string",))
_encode = json.JSONEncoder(ensure_ascii=False).encode


class XmlBody:
    """One function at a time; a ``<tool_call>`` may hold several."""

    def __init__(self, source: Source, attempts: Attempts) -> None:
        self._source = source
        self._attempts = attempts
        self.open(wrapped=False)

    def open(self, wrapped: bool) -> None:
        """A body begins, in ``<tool_call>`` or without."""
        self._wrapped = wrapped

    def _begin(self) -> None:
        self._name = ""
        self._schema: Mapping[str, Any] = {}
        self._known: Mapping[str, Any] = {}  # the parameters of the tool
        self._arguments: dict[str, Any] = {}
        self._repairs = [] if self._wrapped else ["missing_opener"]
        self._broken = ("", "")  # kind and message of what makes it no call
        self._attempts.open()

    def _wrong(self, kind: str, message: str) -> None:
        """It is no call; the first reason counts."""
        if not self._broken[0]:
            self._broken = (kind, message)

    # ---- the states

    def name(self) -> str | None:
        """At ``<function=NAME>``."""
        found = self._in_tag(FUNCTION)
        if found is None:
            return None
        name, closed = found
        self._begin()
        if not name:
            self._wrong("missing_name", "the call has no name")
        elif not closed:
            self._wrong("invalid_json", f"the tag {FUNCTION}{name[:50]} is not closed")
        if name:
            self._name = name
            self._schema = self._attempts.schemas.get(name, {})
            properties = self._schema.get("properties")
            self._known = properties if isinstance(properties, Mapping) else {}
            self._attempts.name(name)
        return "named"

    def parameters(self) -> str | None:
        """Between parameters."""
        source = self._source
        source.space()
        if source.at == len(source.text):
            return ""
        if source.text[source.at] != "<":
            self._wrong("invalid_json", _OUTSIDE)
            end = source.text.find("<", source.at)
            source.at = end if end >= 0 else len(source.text)
            return ""
        tag = source.tag(PARAMETER, FUNCTION_END, CLOSE, OPEN, FUNCTION, *END_TOKENS)
        if tag is None:
            tag = source.foreign()
            if tag is None:
                self._wrong("invalid_json", _OUTSIDE)
            if tag != "":
                source.at += len(tag or "<")
                return ""
        if tag == "":
            return None
        if tag == PARAMETER:
            return "parameter"
        if tag in END_TOKENS:
            return "end"
        if tag == FUNCTION_END:
            source.at += len(tag)
            return "whole"
        if tag == CLOSE:
            source.at += len(tag)
            self._repairs.append("missing_function_end")
            self._accept()
            return "closed"
        self._attempts.failed("unterminated", "a new call begins before this one ends")
        return self._again(tag)

    def key(self) -> str | None:
        """At ``<parameter=KEY>``."""
        found = self._in_tag(PARAMETER)
        if found is None:
            return None
        key, closed = found
        if not closed or not key:
            self._wrong(
                "invalid_json", f"the tag {PARAMETER}{key[:50]} is not closed" if key else "a parameter has no name"
            )
            return "broken"
        self._key = key
        self._kinds = coerce.kinds(self._known.get(key, {}), self._schema)
        self._value: list[str] = []
        self._fresh = True  # nothing of the value was read yet
        self._newline = False  # a line break that may be the last is held back
        self._line_begins = True
        start = ", " if self._arguments else "{"
        self._arguments[key] = None
        self._attempts.arguments(start + _encode(key) + ": " + ('"' if self._kinds == _STRING else ""))
        return "value"

    def value(self) -> str | None:
        """In a value. Every ``<`` may begin a closing tag, or the next parameter at the beginning of a line."""
        source = self._source
        while source.at < len(source.text):
            text, at = source.text, source.at
            if text[at] != "<":
                end = text.find("<", at)
                source.at = end if end >= 0 else len(text)
                self._grow(text[at : source.at])
                continue
            tag = source.tag(PARAMETER_END, FUNCTION_END, *((PARAMETER,) if self._line_begins else ()))
            if tag == "":
                return None
            if tag == PARAMETER:
                known = self._known_parameter()
                if known is None:
                    return None
                if known:
                    self._repairs.append("missing_parameter_end")
                    self._value_over()
                    return "next"
            elif tag:
                source.at += len(tag)
                self._looked = [tag]
                return "closer"
            source.at += 1
            self._grow("<")
        return ""

    def _known_parameter(self) -> bool | None:
        """Whether ``<parameter=KEY>`` at the cursor names a parameter of the tool; None while that is not known."""
        source = self._source
        begin = source.at + len(PARAMETER)
        found = _NAME_END.search(source.text, begin, begin + MAX_NAME)
        if found:
            return found.group() == ">" and source.text[begin : found.start()] in self._known
        so_far = source.text[begin:]
        return None if any(name.startswith(so_far) for name in self._known) else False

    def look(self) -> str | None:
        """Behind a closing tag in a value: what follows says whether it was one."""
        source = self._source
        space = source.space()
        if space:
            self._looked.append(space)
        if source.at == len(source.text):
            return ""
        parameter = self._looked[0] == PARAMETER_END
        tag = source.tag(*((PARAMETER, FUNCTION_END, CLOSE) if parameter else (CLOSE, OPEN, FUNCTION)))
        if tag == "":
            return None
        if tag is None:
            self._grow("".join(self._looked))
            return "no"
        self._value_over()
        if parameter:
            return "parameter_end"
        self._repairs.append("missing_parameter_end")
        return "whole"

    def tail(self) -> str | None:
        """Behind ``</function>``."""
        source = self._source
        source.space()
        if source.at == len(source.text):
            return ""
        tag = source.tag(CLOSE, OPEN, *END_TOKENS, *((FUNCTION,) if self._wrapped else ()))
        if tag is None and self._wrapped:
            tag = source.foreign()
            if tag:
                source.at += len(tag)
                return ""
        if tag == "":
            return None
        if tag in END_TOKENS:
            return "end"
        if tag == CLOSE:
            source.at += len(tag)
            self._accept()
            return "closed"
        if tag == FUNCTION:
            self._accept()
            return self._again(tag)
        if self._wrapped:
            self._repairs.append("missing_closer")
        self._accept()
        return "not_a_call" if tag is None else self._again(tag)

    # ---- parts of the states

    def _in_tag(self, begin: str) -> tuple[str, bool] | None:
        """The name in the tag at the cursor, and whether the tag is closed; None while it is not all there."""
        source = self._source
        start = source.at + len(begin)
        found = _NAME_END.search(source.text, start, start + MAX_NAME)
        if not found and len(source.text) < start + MAX_NAME:
            return None
        end = found.start() if found else start + MAX_NAME
        closed = source.text.startswith(">", end)
        source.at = end + closed
        return source.text[start:end], closed

    def _again(self, tag: str) -> str:
        """Another call begins at the cursor."""
        if tag == OPEN:
            self._source.open(OPEN)
            return "tag"
        self._source.mark()
        return "function"

    def _grow(self, text: str) -> None:
        """More of the value. Of the line breaks next to its tags one on each side is markup."""
        if self._source.too_large:
            return
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
            if self._kinds == _STRING:
                self._attempts.arguments(_encode(text)[1:-1])

    def _value_over(self) -> None:
        """The value is known, and with it what it means."""
        value = coerce.value("".join(self._value), self._kinds)
        self._arguments[self._key] = value
        self._attempts.arguments('"' if self._kinds == _STRING else _encode(value))

    # ---- what became of an attempt

    def end(self, stopped: bool, whole: bool) -> None:
        """The answer ends in the body or behind it (``whole``), which counts when the model stopped by itself."""
        source = self._source
        source.at = len(source.text)
        if whole and stopped:
            if self._wrapped:
                self._repairs.append("missing_closer")
            self._accept()
        else:
            self._attempts.failed("unterminated", "the answer ended before the call did")

    def _accept(self) -> None:
        if self._broken[0]:
            self._attempts.failed(*self._broken)
            return
        self._attempts.arguments("}" if self._arguments else "{}")
        self._attempts.whole(self._name, self._arguments, self._repairs)

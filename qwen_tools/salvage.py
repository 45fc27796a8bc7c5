"""Calls that are not in tags: an answer that is nothing but a call in one of the known wrong forms.

Models that were not trained on tags write a Markdown fence, bare JSON, the ``<tools>`` tag of their prompt, or leave
out the opening tag. Reading those is a mode that somebody chose; its results are always marked.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from typing import Any

from .envelope import Envelope, EnvelopeError, check, from_value

_FENCE = re.compile(r"(```|~~~)[\w-]*[ \t]*\n(.*)\n?\1`*~*", re.DOTALL)
_TAGGED = re.compile(r"<(tools|function_call|function|call|json|tool)>(.*)</\1>", re.DOTALL)
_CLOSE = "</tool_call>"

# How far an answer may go without naming a tool before it is text.
_PATIENCE = 300


def salvage(text: str, schemas: Mapping[str, Mapping[str, Any]]) -> tuple[str, list[Envelope]] | None:
    """The form and the calls of a turn that is nothing but calls to offered tools with valid arguments, else None."""
    text = text.strip()
    form, body = "bare", text
    fence, tagged = _FENCE.fullmatch(text), _TAGGED.fullmatch(text)
    if fence:
        form, body = "fence", fence.group(2)
    elif tagged:
        form, body = "tag", tagged.group(2)
    elif text.endswith(_CLOSE):
        form, body = "missing_opener", text.removesuffix(_CLOSE)
    try:
        calls = [from_value(value) for value in _values(body.strip())]
    except (ValueError, RecursionError):
        return None
    if not calls or any(call.name not in schemas or check(call.name, call.arguments, schemas) for call in calls):
        return None
    return form, calls


def _values(text: str) -> list[Any]:
    """JSON values, one after the other; the elements of a list count one by one."""
    decoder = json.JSONDecoder(strict=False, parse_constant=_refuse)
    values: list[Any] = []
    at = 0
    while at < len(text):
        value, at = decoder.raw_decode(text, at)
        values += value if isinstance(value, list) else [value]
        while at < len(text) and text[at] in " \t\r\n,;":
            at += 1
    return values


def _refuse(name: str) -> Any:
    raise EnvelopeError("invalid_json", f"{name} is not JSON")


_LEAD = re.compile(r"\s*(?:(?:```|~~~)[\w-]*\s*)?(?:<[a-z_]+>\s*)?\[?\s*")
_LEAD_BEGUN = re.compile(r"\s*(?:`{0,3}|~{0,3})[\w-]*\s*(?:<[a-z_]*)?>?\s*\[?\s*")
# The name, perhaps inside {"type": "function", "function": {...}} or under another key.
_NAMED = re.compile(
    r'\{\s*(?:"type"\s*:\s*"function"\s*,\s*)?(?:"function"\s*:\s*\{\s*)?"(?:name|function|tool|tool_name)"\s*:\s*"([^"\\]*)"'
)
_KEYS = ("type", "function", "name", "tool", "tool_name")


def wrong_opening(text: str, names: Collection[str]) -> str:
    """Whether an answer, known from its beginning on, begins like a call in a wrong form.

    ``call``: it has got as far as the whole name of an offered tool. ``pending``: it may still get
    there. ``text``: it is something else.
    """
    lead = _LEAD.match(text)
    rest = text[lead.end() :] if lead else text
    if not rest or _LEAD_BEGUN.fullmatch(text):
        return "pending" if len(text) < _PATIENCE else "text"
    named = _NAMED.match(rest)
    if named:
        return "call" if named.group(1) in names else "text"
    if len(text) >= _PATIENCE or rest[0] != "{":
        return "text"
    return "pending" if _may_name(rest, names) else "text"


def _may_name(rest: str, names: Collection[str]) -> bool:
    """Whether an unfinished object may still name an offered tool: its keys so far are those of a call."""
    strings = re.findall(r'"([^"\\]*)("?)', rest)
    expect_key = True
    key = ""
    for string, closed in strings:
        if expect_key:
            key = string
            if not (string in _KEYS if closed else any(each.startswith(string) for each in _KEYS)):
                return False
            # {"function": { goes on with a key.
            expect_key = key == "function" and bool(re.search(r'"function"\s*:\s*\{', rest))
        else:
            allowed = ("function",) if key == "type" else names
            if not (string in allowed if closed else any(each.startswith(string) for each in allowed)):
                return False
            expect_key = True
    # Nothing but strings and punctuation can stand in front of the name.
    return bool(re.fullmatch(r"[\s{:,]*", re.sub(r'"[^"\\]*"?', "", rest)))

"""What an invented tool is: its schema, ways of asking for it, results, ways of answering.

A way of asking is a template: ``{slot}`` is an argument in the words of the question, ``[...]`` a part that may be left
out. A slot that stands only in such parts is optional. An answer's ``{...}`` are slots and keys of the result.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any

from .values import Kind

Result = Callable[[Mapping[str, Any], Random], Any]


@dataclass(frozen=True)
class Invented:
    """A tool with everything that is needed to talk about it.

    ``topics`` are the areas of its answers: a tool that shares one might answer the question too. ``slots`` maps the
    placeholder to (names of the parameter, descriptions, kind). ``asks`` and ``says`` are by language.
    """

    topics: frozenset[str]
    names: tuple[str, ...]
    about: tuple[str, ...]
    slots: dict[str, tuple[tuple[str, ...], tuple[str, ...], Kind]]
    asks: dict[str, list[str]]
    says: dict[str, list[str]]
    result: Result
    required: frozenset[str] = field(default_factory=frozenset)


def tool(
    topics: str,
    names: str,
    about: str,
    slots: Mapping[str, tuple[str, Kind]],
    result: Result,
    asks: Mapping[str, list[str]],
    says: Mapping[str, list[str]],
) -> Invented:
    """A tool. In the keys of ``slots`` and in the texts, alternatives stand between bars."""
    table = {
        key.split("|")[0]: (tuple(key.split("|")), tuple(about_slot.split("|")), kind)
        for key, (about_slot, kind) in slots.items()
    }
    always = set(table)
    for template in (each for templates in asks.values() for each in templates):
        always &= set(re.findall(r"\{(\w+)\}", re.sub(r"\[[^][]*\]", "", template)))
    return Invented(
        frozenset(topics.split()), tuple(names.split("|")), tuple(about.split("|")), table,
        dict(asks), dict(says), result, frozenset(always),
    )  # fmt: skip


def rounded(value: float, digits: int = 2) -> float | int:
    """Rounded; whole numbers without a fraction."""
    value = round(value, digits)
    return int(value) if float(value).is_integer() else value

"""What ``--tools`` means: where tools come from, and what they are called when two sources have the same names.

A name that two sources have is prefixed in both: ``search`` of the files ``a.py`` and ``b.py`` is ``a__search`` and
``b__search``, whatever their order. The name of a source has no ``__``, so the first one ends the prefix.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path

from . import mcp, tool_file
from .builtin_tools import BUILTIN, SETS, open_set
from .errors import UserError
from .tools import Tool, Toolbox, from_file, from_module
from .validate import check_schema

HELP = (
    "tools, separated by commas: builtin or names of built-in ones, files:DIR, docs:DIR, python, web_fetch, .py files, "
    "module:NAME, .json files (tools, or MCP servers), none"
)


@dataclass(frozen=True)
class Source:
    """Tools that come from one place; ``name`` is the prefix of those whose names clash, ``origin`` is for people."""

    name: str
    origin: str
    tools: list[Tool]


def load(selection: str | Iterable[str] | None) -> Toolbox:
    """The tools that ``--tools`` names: one list with commas, or several; None for the built-in ones.

    Raises UserError for what is not there, with the closest that is, and for a tool with a broken definition.
    """
    toolbox = Toolbox(named(source for word in words(selection) for source in sources(word)))
    for tool in toolbox:
        check(tool)
    return toolbox


def words(selection: str | Iterable[str] | None) -> list[str]:
    """The single words of a selection, each once."""
    parts = ["builtin"] if selection is None else [selection] if isinstance(selection, str) else selection
    found = (word.strip() for part in parts for word in part.split(","))
    return [word for word in dict.fromkeys(found) if word and word != "none"]


def sources(word: str) -> list[Source]:
    """What one word names; more than one source where a file has several servers. Raises UserError."""
    kind, _, argument = word.partition(":")
    if word == "builtin":
        return [Source("builtin", "builtin", list(BUILTIN.values()))]
    if word in BUILTIN:
        return [Source("builtin", "builtin", [BUILTIN[word]])]
    if kind in SETS:
        return [Source(kind, word, open_set(kind, argument))]
    if kind == "module" and argument:
        return [Source(argument.rpartition(".")[2], word, from_module(argument))]
    if word.endswith(".py"):
        return [Source(Path(word).stem, word, from_file(word))]
    if word.endswith(".json"):
        data = tool_file.read_json(word)
        if not mcp.is_config(data):
            return [Source(Path(word).stem, word, tool_file.from_value(data, word))]
        servers = mcp.read_config(data, word)
        found = zip(servers, mcp.connect(servers), strict=True)
        return [Source(server.name, f"{word}: {server.name}", tools) for server, tools in found]
    known = [*BUILTIN, *SETS, "builtin", "none"]
    close = get_close_matches(kind.lower(), known, 1)
    hint = f"did you mean {close[0]}?" if close else f"there are {', '.join(known)}, module:NAME, .py and .json files"
    raise UserError(f"no tool {word!r}: {hint}")


def named(found: Iterable[Source]) -> Iterator[Tool]:
    """The tools of all sources, with their origin, and with names that differ.

    Raises UserError when a source has two tools of one name.
    """
    found = _merged(found)
    taken = Counter(tool.name for source in found for tool in source.tools)
    prefixes: set[str] = set()
    for source in found:
        prefix = _prefix(source.name, prefixes)
        prefixes.add(prefix)
        own = Counter(tool.name for tool in source.tools)
        for tool in source.tools:
            if own[tool.name] > 1:
                raise UserError(f"{source.origin} has two tools of the name {tool.name!r}: rename one")
            name = tool.name if taken[tool.name] == 1 else f"{prefix}__{tool.name}"
            yield replace(_renamed(tool, name), origin=source.origin)


def _merged(found: Iterable[Source]) -> list[Source]:
    """Built-in tools that were named one by one are one source, each tool once."""
    merged: dict[str, Source] = {}
    for source in found:
        if source.origin in merged:
            tools = merged[source.origin].tools
            source = replace(source, tools=[*tools, *(tool for tool in source.tools if tool not in tools)])
        merged[source.origin] = source
    return list(merged.values())


def _prefix(name: str, taken: set[str]) -> str:
    """The name of a source as the beginning of a tool's name, not the same as one before."""
    base = re.sub(r"[^A-Za-z0-9-]+|_+", "_", name).strip("_") or "tools"
    number, prefix = 1, base
    while prefix in taken:
        number += 1
        prefix = f"{base}{number}"
    return prefix


def _renamed(tool: Tool, name: str) -> Tool:
    if name == tool.name:
        return tool
    source = tool.source
    if source is not None and "function" in source:
        source = {**source, "function": {**source["function"], "name": name}}
    elif source is not None:
        source = {**source, "name": name}
    return replace(tool, name=name, source=source)


def check(tool: Tool) -> None:
    """Raises UserError naming what is wrong with a tool's definition."""
    # A name becomes part of the prompt, and the model has to copy it.
    if not re.fullmatch(r"[^\s\x00-\x1f\x7f<>\"'\\{}]{1,128}", tool.name):
        raise UserError(f"tool {tool.name!r}: a name has 1 to 128 characters, and no spaces, quotes or brackets")
    check_schema(tool.parameters, tool.name)
    if tool.parameters and tool.parameters.get("type", "object") != "object":
        raise UserError(f"tool {tool.name!r}: its parameters must be a schema of type object")

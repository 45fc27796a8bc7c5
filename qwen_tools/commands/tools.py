"""``tools``: list the tools that ``--tools`` names, show what the model reads of one, check them, try one by hand."""

from __future__ import annotations

import argparse
import json
import sys
import unicodedata
from difflib import get_close_matches
from typing import Any

from .. import tool_sources
from ..coerce import loads
from ..errors import UserError
from ..executor import execute
from ..families import get
from ..messages import ToolCall
from ..tools import Tool
from .terminal import counted, say, visible


def configure(parser: argparse.ArgumentParser) -> None:
    """The arguments of tools."""
    _options(parser, None)
    actions = parser.add_subparsers(dest="action", metavar="[list|show NAME|check|call NAME JSON]")
    # Without defaults of their own, so that the options count in either place.
    shared = argparse.ArgumentParser(add_help=False, argument_default=argparse.SUPPRESS)
    _options(shared, argparse.SUPPRESS)
    actions.add_parser("list", parents=[shared], help="list them (what is done without an action)")
    showing = actions.add_parser("show", parents=[shared], help="one tool: what it is, and as the prompt has it")
    showing.add_argument("name", metavar="NAME")
    actions.add_parser("check", parents=[shared], help="one line for each definition that is wrong, and exit code 1")
    calling = actions.add_parser("call", parents=[shared], help="run one now, as a model's call is run")
    calling.add_argument("name", metavar="NAME")
    calling.add_argument("arguments", metavar="JSON", nargs="?", default="{}", help='such as \'{"city": "Paris"}\'')


def _options(parser: argparse.ArgumentParser, default: Any) -> None:
    parser.add_argument("--tools", action="append", default=default, metavar="SPEC", help=tool_sources.HELP)
    parser.add_argument("--json", action="store_true", help="one JSON object instead of text")


def run(args: argparse.Namespace) -> int:
    """List, show, check or call; returns the exit code."""
    if args.action == "check":
        return _check(args.tools, args.json)
    toolbox = tool_sources.load(args.tools)
    if args.action is None or args.action == "list":
        if args.json:
            print(json.dumps({"tools": [_as_json(tool) for tool in toolbox]}, ensure_ascii=False))
        elif len(toolbox):
            print("\n".join(_table(list(toolbox))))
        else:
            say("no tools")
        return 0
    tool = toolbox.get(args.name)
    if tool is None:
        close = get_close_matches(args.name, toolbox.names(), 1)
        hint = f"did you mean {close[0]}?" if close else f"there are {', '.join(toolbox.names()) or 'none'}"
        raise UserError(f"no tool {args.name!r}; {hint}")
    if args.action == "show":
        return _show(tool, args.json)
    try:
        arguments = loads(args.arguments)
    except ValueError as error:
        raise UserError(f"the arguments are not JSON: {error}") from error
    # Who types a call has approved it.
    result = execute(ToolCall(tool.name, arguments), toolbox, approve=lambda call, tool: True)  # noqa: ARG005
    if args.json:
        fields = ("name", "ok", "kind", "content", "full", "references", "seconds")
        print(json.dumps({field: getattr(result, field) for field in fields}, ensure_ascii=False))
    else:
        print(visible(result.content, keep="\n\t") if sys.stdout.isatty() else result.content)
        for reference in result.references:
            say(visible(reference))
    return 0 if result.ok else 1


def _as_json(tool: Tool) -> dict[str, Any]:
    return {
        "name": tool.name,
        "read_only": tool.read_only,
        "runs": tool.function is not None,
        "source": tool.origin,
        "tool": tool.to_dict(),
    }


def _effect(tool: Tool) -> str:
    return "not run" if tool.function is None else "reads" if tool.read_only else "asks"


def _table(tools: list[Tool]) -> list[str]:
    """Aligned columns: the name, whether it asks before it runs, where it is from, what it is for."""
    rows = [("NAME", "RUNS", "SOURCE", "WHAT IT DOES")]
    rows += [
        (visible(tool.name), _effect(tool), visible(tool.origin), _shortened(visible(_first(tool.description))))
        for tool in tools
    ]
    widths = [max(_width(row[column]) for row in rows) for column in range(3)]
    return [
        "  ".join([*(cell + " " * (width - _width(cell)) for cell, width in zip(row, widths, strict=False)), row[3]])
        for row in rows
    ]


def _first(description: str) -> str:
    return description.strip().split("\n", 1)[0]


def _shortened(text: str, limit: int = 80) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"


def _width(text: str) -> int:
    """Columns in a terminal: Chinese characters take two."""
    return sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in text)


def _show(tool: Tool, as_json: bool) -> int:
    if as_json:
        print(json.dumps(_as_json(tool), ensure_ascii=False))
        return 0
    print(f"{visible(tool.name)}: {visible(tool.description, keep=chr(10))}")
    effect = {"reads": "only reads, and runs at once", "asks": "asks before it runs", "not run": "cannot be run here"}
    print(f"from {visible(tool.origin)}; {effect[_effect(tool)]}\n")
    print(visible(json.dumps(tool.parameters or {}, ensure_ascii=False, indent=2), keep="\n"))
    print("\nin the prompt (qwen3):")
    print(visible(get("qwen3").tool(tool.to_dict())))
    return 0


def _check(selection: list[str] | None, as_json: bool) -> int:
    """Every word and every tool by itself, so that all that is wrong is told at once."""
    problems: list[str] = []
    found: list[tool_sources.Source] = []
    for word in tool_sources.words(selection):
        try:
            found += tool_sources.sources(word)
        except UserError as error:
            problems.append(str(error))
    tools: list[Tool] = []
    try:
        tools = list(tool_sources.named(found))
    except UserError as error:
        problems.append(str(error))
        tools = [tool for source in found for tool in source.tools]
    for tool in tools:
        try:
            tool_sources.check(tool)
        except UserError as error:
            problems.append(f"{tool.origin}: {error}" if tool.origin else str(error))
    if as_json:
        print(json.dumps({"tools": len(tools), "problems": problems}, ensure_ascii=False))
    else:
        for problem in problems:
            print(visible(problem))
        say(f"{counted(len(tools), 'tool')}, {counted(len(problems), 'problem')}")
    return 1 if problems else 0

"""``parse``: read a model's raw answer from stdin and say what is in it: what is a call, and why something is not."""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..errors import UserError
from ..messages import Problem, ToolCall
from ..parser import ParsedTurn, StreamParser, fold
from ..tools import Tool, as_tool


def configure(parser: argparse.ArgumentParser) -> None:
    """The arguments of parse."""
    parser.add_argument("--tools", metavar="FILE", help="JSON list of the offered tools; without it no name is checked")
    parser.add_argument("--prefill", default="", help=r"what the generation prompt had opened, such as '<think>\n'")
    parser.add_argument("--finish", choices=("stop", "length"), default="stop", help="how the answer ended")
    parser.add_argument(
        "--salvage", action="store_true", help="also read a turn that is nothing but a call in a wrong form"
    )
    parser.add_argument(
        "--chunk", metavar="N|char|random:SEED", help="feed the answer in pieces; the result must be the same"
    )
    parser.add_argument("--json", action="store_true", help="one JSON object instead of a report")


def run(args: argparse.Namespace) -> int:
    """Read stdin and report. Problems in the answer are the result, not a failure: 0."""
    try:
        text = sys.stdin.buffer.read().decode("utf-8")
    except UnicodeDecodeError as error:
        raise UserError(f"stdin is not UTF-8 text: byte {error.start}") from error
    tools = _tools(args.tools)
    # A shell passes backslash and n; nobody means those two characters.
    parser = StreamParser(tools, args.prefill.replace("\\n", "\n"), args.salvage)
    events = [event for piece in _pieces(text, args.chunk) for event in parser.feed(piece)]
    turn = fold(events + parser.close(args.finish))
    if args.json:
        print(json.dumps(as_json(turn), ensure_ascii=False))
    else:
        for line in report(text, turn, colour=sys.stdout.isatty() and not os.environ.get("NO_COLOR")):
            print(line)
    return 0


def as_json(turn: ParsedTurn) -> dict[str, Any]:
    """The turn as JSON values."""
    return {
        "content": turn.content,
        "reasoning": turn.reasoning,
        "calls": [
            {
                "name": call.name,
                "arguments": call.arguments,
                "span": list(call.span),
                "raw": call.raw,
                "repairs": list(call.repairs),
                "problems": [_problem(problem) for problem in call.problems],
            }
            for call in turn.calls
        ],
        "problems": [_problem(problem) for problem in turn.problems],
    }


def _problem(problem: Problem) -> dict[str, Any]:
    return {"kind": problem.kind, "message": problem.message, "span": list(problem.span), "raw": problem.raw}


def _tools(path: str | None) -> list[Tool]:
    if path is None:
        return []
    try:
        data = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}") from error
    except ValueError as error:
        raise UserError(f"{path} is not JSON: {error}") from error
    data = data.get("tools") if isinstance(data, dict) and "tools" in data else data
    if not isinstance(data, list):
        raise UserError(f"{path} must be a JSON list of tools")
    try:
        return [as_tool(each) for each in data]
    except UserError as error:
        raise UserError(f"{path}: {error}") from error


def _pieces(text: str, chunk: str | None) -> Iterator[str]:
    if chunk is None:
        yield text
        return
    seed = re.fullmatch(r"random:(\d+)", chunk)
    size = 1 if chunk == "char" else int(chunk) if re.fullmatch(r"[1-9]\d*", chunk) else None
    if seed is None and size is None:
        raise UserError(f"--chunk {chunk!r} must be a number of characters, char, or random:SEED")
    numbers = random.Random(int(seed.group(1))) if seed else None  # noqa: S311 - where to cut is no secret
    at = 0
    while at < len(text):
        step = numbers.randint(1, 12) if numbers else size or 1
        yield text[at : at + step]
        at += step


def report(text: str, turn: ParsedTurn, colour: bool) -> Iterator[str]:
    """The turn for a person: each part with its line and column, and each problem with the place it is at."""

    def paint(words: str, code: str) -> str:
        return f"\x1b[{code}m{words}\x1b[0m" if colour else words

    if turn.reasoning:
        yield paint("reasoning", "1")
        yield from _quoted(turn.reasoning)
    if turn.content:
        yield paint("text", "1")
        yield from _quoted(turn.content)
    attempts: list[ToolCall | Problem] = [*turn.calls]
    own = [problem for call in turn.calls for problem in call.problems]
    attempts += [problem for problem in turn.problems if problem not in own]
    for attempt in sorted(attempts, key=lambda each: each.span):
        where = f"{_place(text, attempt.span[0])} to {_place(text, attempt.span[1])}"
        if isinstance(attempt, Problem):
            yield paint(f"no call: {attempt.kind}", "1;31") + f"  at {where}"
            yield f"  {attempt.message}"
            yield from _quoted(attempt.raw)
            continue
        yield paint(f"call: {_visible(attempt.name)}", "1;33" if attempt.problems else "1;32") + f"  at {where}"
        yield f"  {_visible(json.dumps(attempt.arguments, ensure_ascii=False))}"
        for problem in attempt.problems:
            yield paint(f"  must not run: {problem.kind}", "31") + f": {problem.message}"
        if attempt.repairs:
            yield paint(f"  mended: {', '.join(attempt.repairs)}", "33")
    yield from _hints(text, turn, paint)


def _hints(text: str, turn: ParsedTurn, paint: Any) -> Iterator[str]:
    """What looks like markup and was read as text, and why."""
    for found in re.finditer(r"<tool_call>|</tool_call>|<function=[^>\n]*>", turn.content):
        tag = found.group()
        before = turn.content[: found.start()]
        fences = sum(1 for line in before.splitlines() if re.match(r" {0,3}(```|~~~)", line))
        if fences % 2:
            reason = "it stands in a Markdown fence"
        elif tag == "<tool_call>":
            reason = "no {, [ or <function= follows it"
        elif tag == "</tool_call>":
            reason = "no call is open there"
        else:
            reason = "its name is not that of an offered tool"
        at = text.find(tag)
        yield paint(f"text, not a call: {tag}", "2") + f"  at {_place(text, at)}: {reason}"


def _place(text: str, position: int) -> str:
    """``line:column``, both counted from 1."""
    line_start = text.rfind("\n", 0, position) + 1
    return f"{text.count(chr(10), 0, position) + 1}:{position - line_start + 1}"


def _quoted(text: str, limit: int = 20) -> Iterator[str]:
    lines = text.split("\n")
    for line in lines[:limit]:
        yield f"  │ {_visible(line[:400])}{'…' if len(line) > 400 else ''}"
    if len(lines) > limit:
        yield f"  │ … {len(lines) - limit} more lines"


def _visible(text: str) -> str:
    """Control characters made visible: an answer must not steer the terminal."""
    return "".join(letter if letter.isprintable() else json.dumps(letter)[1:-1] for letter in text)

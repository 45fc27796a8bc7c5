"""``parse``: read a model's raw answer from stdin and say what is in it: what is a call, and why something is not."""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from ..errors import UserError
from ..messages import Problem, ToolCall
from ..parser import ParsedTurn, StreamParser, fold
from ..salvage import salvage, wrong_opening
from ..tool_file import from_json_file
from ..tools import Tool
from .terminal import colours, visible


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
    tools = [] if args.tools is None else from_json_file(args.tools)
    # A shell passes backslash and n; nobody means those two characters.
    prefill = args.prefill.replace("\\n", "\n")
    parser = StreamParser(tools, prefill, args.salvage)
    events = [event for piece in _pieces(text, args.chunk) for event in parser.feed(piece)]
    turn = fold(events + parser.close(args.finish))
    if args.json:
        print(json.dumps(as_json(turn), ensure_ascii=False))
    else:
        looked = list(look_alikes(text, turn, StreamParser(tools, prefill), [tool.name for tool in tools]))
        hint = salvage_hint(turn, tools, args.salvage, args.finish)
        for line in report(text, turn, looked, hint, colour=colours(sys.stdout)):
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


def report(text: str, turn: ParsedTurn, looked: list[Look], hint: str, colour: bool) -> Iterator[str]:
    """The turn for a person: what was read, each attempt with its lines, and why other markup is no call."""

    def paint(words: str, code: str) -> str:
        return f"\x1b[{code}m{words}\x1b[0m" if colour else words

    place = places(text)
    for title, said in (("reasoning", turn.reasoning), ("text", turn.content)):
        if said:
            yield paint(title, "1")
            yield from (f"  │ {line}" for line in _shortened(said.split("\n")))
    own = [problem for call in turn.calls for problem in call.problems]
    attempts: list[ToolCall | Problem] = [*turn.calls, *(each for each in turn.problems if each not in own)]
    attempts.sort(key=lambda each: each.span)
    for attempt in attempts:
        start, end = attempt.span
        where = f"  {place(start)} to {place(max(start, end - 1))}"
        if isinstance(attempt, Problem):
            yield paint(f"no call: {attempt.kind}", "1;31") + where
            yield f"  {visible(attempt.message)}"
        else:
            yield paint(f"call: {visible(attempt.name)}", "1;33" if attempt.problems else "1;32") + where
            yield f"  {visible(json.dumps(attempt.arguments, ensure_ascii=False))}"
            for problem in attempt.problems:
                yield paint(f"  must not run: {problem.kind}", "31") + f": {visible(problem.message)}"
            if attempt.repairs:
                yield paint(f"  mended: {', '.join(attempt.repairs)}", "33")
        if isinstance(attempt, Problem) or attempt.problems or attempt.repairs:
            yield from _numbered(text, attempt)
    for look in looked[:_MANY]:
        yield paint(f"not a call: {visible(look.tag)}", "2") + f"  {place(look.position)}: {look.reason}"
    if len(looked) > _MANY:
        yield f"… {len(looked) - _MANY} more that are no calls"
    if hint:
        yield paint("hint: ", "1;36") + hint
    if not (turn.reasoning or turn.content or attempts):
        yield "nothing: the answer is empty"


_MANY = 20


@dataclass(frozen=True)
class Look:
    """Markup that is in no attempt, and what the parser took it for."""

    tag: str
    position: int
    reason: str


def look_alikes(text: str, turn: ParsedTurn, parser: StreamParser, names: list[str]) -> Iterator[Look]:
    """Markup outside of calls, and why it opens or closes none. ``parser`` is a fresh one; what it says of the
    place decides, not a second reading of the rules.
    """
    spans = iter(sorted([call.span for call in turn.calls] + [problem.span for problem in turn.problems]))
    inside = (0, 0)
    place = places(text)
    at, fence = 0, ""
    for found in _MARKUP.finditer(text):
        parser.feed(text[at : found.start()])
        at = found.start()
        state = parser.state
        tag = found.group()
        if tag[0] in "`~":
            parser.feed(tag)
            at = found.end()
            if parser.state == "info" and state == "text":
                fence = place(found.start())
            continue
        while inside[1] <= found.start() and (following := next(spans, None)):
            inside = following
        if not inside[0] <= found.start() < inside[1]:
            quoted = text.startswith("`", at - 1) if at else False
            reason = _reason(tag, state, quoted, text[found.end() : found.end() + 100], fence, names)
            if reason:
                yield Look(tag, found.start(), reason)


_MARKUP = re.compile(r"</?tool_call>|<function=[^>\n]{0,100}>?|</?think>|<\|im_(?:start|end)\|>|`{3,}|~{3,}")


def _reason(tag: str, state: str, quoted: bool, behind: str, fence: str, names: list[str]) -> str:
    """Why the tag is none, in the state that the parser is in where it stands; empty when it was markup after all."""
    if state == "done":
        return "the turn has ended before it"
    if state in ("info", "fence"):
        return f"it stands in the Markdown fence that opens at {fence}, so it is an example"
    if state.startswith(("think", "draft")):
        hidden = tag in ("<think>", "</think>") or tag.startswith("<|")
        return "" if hidden else "it stands in the thought, where calls are drafts"
    if tag == "<think>":
        return "" if state == "start" else "a thought opens an answer, and nothing comes before it"
    if tag == "</think>":
        return r"no thought is open; when the prompt opened it, say so: --prefill '<think>\n'"
    if tag == "</tool_call>":
        return "" if state == "after" else "no call is open there"
    if tag.startswith("<|"):
        return ""
    if quoted:
        return "the backtick in front of it quotes it"
    follows = repr(" ".join(behind.split())[:20]) if behind.strip() else "the end"
    if tag == "<tool_call>":
        if behind.lstrip().startswith(tag):
            return ""
        return f"{{, [ or <function= must follow, not {follows}"
    name = tag.removeprefix("<function=").removesuffix(">")
    if names and name not in names:
        return f"without <tool_call> its name must be that of an offered tool: {', '.join(names)}"
    return f"without <tool_call> <parameter= or </function> must follow, not {follows}"


def salvage_hint(turn: ParsedTurn, tools: list[Tool], on: bool, finish: str) -> str:
    """What a salvage would do, or why it did nothing, where the answer begins like a call in a wrong form."""
    if turn.calls or turn.problems:
        return ""
    schemas = {tool.name: tool.parameters for tool in tools}
    found = salvage(turn.content, schemas)
    if found and not on:
        return f"the whole answer is a call in a wrong form ({found[0]}); --salvage reads it"
    if found and finish != "stop":
        return "the answer is a call in a wrong form, but it was cut, and what was cut is never a call"
    if not found and wrong_opening(turn.content, list(schemas)) == "call":
        return "the answer begins like a call, but is not one from end to end, or its arguments do not fit the schema"
    if not tools and re.match(
        r'\s*(?:```\w*\s*)?(?:<\w+>\s*)?\[?\s*\{\s*"(?:name|arguments|function|tool)"', turn.content
    ):
        return "the answer looks like a call in a wrong form; --salvage with --tools reads calls of offered tools"
    return ""


def places(text: str) -> Callable[[int], str]:
    """A function from a position in the text to ``line:column``, both counted from 1."""
    starts = [0, *(found.end() for found in re.finditer("\n", text))]

    def place(position: int) -> str:
        line = bisect_right(starts, position)
        return f"{line}:{position - starts[line - 1] + 1}"

    return place


def _numbered(text: str, attempt: ToolCall | Problem) -> Iterator[str]:
    """The lines of the answer that the attempt stands in, with their numbers."""
    first = text.count("\n", 0, attempt.span[0]) + 1
    start = text.rfind("\n", 0, attempt.span[0]) + 1
    lines = text[start : attempt.span[1]].split("\n")
    for number, line in enumerate(_shortened(lines), start=first):
        yield f"  {number:>4} │ {line}"


def _shortened(lines: list[str], limit: int = 12, width: int = 300) -> Iterator[str]:
    for line in lines[:limit]:
        yield visible(line[:width]) + ("…" if len(line) > width else "")
    if len(lines) > limit:
        yield f"… {len(lines) - limit} more lines"

"""``why``: how likely a model is to answer in text or to call each tool, and how sure it is of each argument."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from .. import report, tasks
from ..engines import open_engine
from ..engines.transformers import TransformersEngine
from ..errors import UserError
from ..families import read_options
from ..messages import Message
from ..profiles import profile, system_text
from ..tool_sources import load as load_tools
from ..tools import Toolbox
from ..why import ask, begins, verdict, walk
from .results import asking_arguments, check_folder, columns, write_page
from .terminal import say, visible

_TEXT = "text"


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "prompt", nargs="+", metavar="PROMPT|FILE", help="questions, or .jsonl files of tasks (docs/compare.md)"
    )
    parser.add_argument("--tools", help="as in chat")
    parser.add_argument("--tools-b", metavar="TOOLS", help="other descriptions of the same tools, to compare with")
    parser.add_argument("--expect", metavar="TOOL", help="the tool that is right for every PROMPT, or text for none")
    asking_arguments(parser, "a model that runs here, as in chat")
    parser.add_argument("--json", action="store_true", help="everything, for programs")
    parser.add_argument("--html", metavar="FILE", help="write it as one page that needs no network")


def run(args: argparse.Namespace) -> int:
    """Score, and print; returns the exit code."""
    asked = [task for word in args.prompt for task in tasks.named(word)]
    if args.html:
        check_folder(args.html)
    versions = {"A": load_tools(args.tools)}
    if args.tools_b:
        versions["B"] = load_tools(args.tools_b)
    if args.expect not in (None, _TEXT) and not all(args.expect in toolbox for toolbox in versions.values()):
        raise UserError(f"--expect {args.expect!r} is not an offered tool")
    options = read_options(args.option)
    engine = open_engine(args.model, family=args.family, device=args.device, dtype=args.dtype)
    if not isinstance(engine, TransformersEngine):
        raise UserError(f"{engine.name} gives no probabilities: why needs a model that runs here")
    questions = []
    for number, task in enumerate(asked, start=1):
        if len(asked) > 1:
            say(f"{number} of {len(asked)}: {visible(task.question)}")
        told = {
            version: _explained(engine, task, toolbox if task.tools is None else task.tools, args.system, options)
            for version, toolbox in versions.items()
        }
        questions.append(
            {"id": task.id, "question": task.question, "right": _right(task, args.expect), "versions": told}
        )
    data = {
        "model": engine.name,
        "family": engine.family,
        "versions": {version: [tool.to_dict() for tool in toolbox] for version, toolbox in versions.items()},
        "questions": questions,
        "verdict": _verdict(questions),
    }
    if args.html:
        write_page(args.html, report.beginnings(data))
    if args.json:
        print(json.dumps(data, ensure_ascii=False))
        return 0
    for question in questions:
        print("\n".join(_view(question)))
    if data["verdict"]:
        print(data["verdict"])
    return 0


def _verdict(questions: list[dict[str, Any]]) -> str:
    """Which version makes the right beginning likelier; where calls are hardly opened, the right one of the tools."""
    known = [question for question in questions if question["right"] and len(question["versions"]) == 2]
    choosing = all(_hardly_calls(question) and question["right"] != _TEXT for question in known)
    measure = "among_tools" if choosing else "begins"
    pairs = [
        (versions["A"][measure][question["right"]], versions["B"][measure][question["right"]])
        for question in known
        for versions in [question["versions"]]
    ]
    words = verdict(pairs)
    return f"{words[:-1]} among the tools." if words and choosing else words


def _hardly_calls(question: Mapping[str, Any]) -> bool:
    return all(each["opened"] < report.HARDLY for each in question["versions"].values())


def _right(task: tasks.Task, expected: str | None) -> str | None:
    """The beginning that is right: a tool's name, ``text``, or None where it is not known."""
    if task.expect is None:
        return expected
    return task.expect[0].name if task.expect else _TEXT


def _explained(
    engine: TransformersEngine, task: tasks.Task, toolbox: Toolbox, system: str | None, options: Mapping[str, Any]
) -> dict[str, Any]:
    """One question with one version of the tools, as JSON values."""
    if not len(toolbox):
        raise UserError("no tools are offered: why compares the calls of tools")
    messages = list(task.messages)
    if messages[0].role != "system":
        usual = system_text(profile(engine.name), toolbox) if system is None else system
        messages[:0] = [] if usual is None else [Message("system", usual)]
    question = ask(engine, messages, toolbox, **options)
    start = begins(engine, question)
    likeliest = max(start.tools, key=lambda name: start.tools[name])
    return {
        "begins": {_TEXT: start.text, **start.tools, "other": start.other},
        "opened": start.opened,
        "among_tools": {name: start.share(name) for name in start.tools},
        "call": asdict(walk(engine, question, toolbox, likeliest)),
    }


def _view(question: Mapping[str, Any]) -> list[str]:
    versions = question["versions"]
    names = list(dict.fromkeys(name for each in versions.values() for name in each["begins"]))
    head = ["  begins as"]
    for version in versions:
        suffix = f" {version}" if len(versions) > 1 else ""
        head += [f"probability{suffix}", f"of tools{suffix}"]
    rows = [head]
    for name in names:
        row = [("✓ " if name == question["right"] else "  ") + visible(name)]
        for each in versions.values():
            p, share = each["begins"].get(name), each["among_tools"].get(name)
            row += ["–" if p is None else report.percent(p), "" if share is None else report.percent(share)]
        rows.append(row)
    lines = [visible(question["question"]), *columns(rows)]
    for version, each in versions.items():
        call = each["call"]
        lines.append(f"the likeliest call{f' of {version}' if len(versions) > 1 else ''}: {visible(call['text'])}")
        if call["problem"]:
            lines.append(f"  ✗ {visible(call['problem'])}")
        for argument in call["arguments"]:
            others = "".join(f", or {visible(value)} {report.percent(p)}" for value, p in argument["others"])
            value = f"{visible(argument['name'])} = {visible(argument['value'])}"
            lines.append(f"  {value}  {report.percent(argument['p'])}{others}")
    if _hardly_calls(question):
        lines.append(
            "This model hardly opens a call in tags by itself; 'of tools' says which it would take if it had to."
        )
    return [*lines, ""]

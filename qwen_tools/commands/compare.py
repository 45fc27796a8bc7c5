"""``compare``: one task, or a file of tasks, asked in several ways side by side."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from .. import report, tasks
from ..compare import ARMS, Outcome, compare, summary
from ..engines import Settings, open_engine
from ..errors import UserError
from ..families import read_options
from ..tool_sources import load as load_tools
from .results import COSTS, arms_argument, arms_of, asking_arguments, check_folder, columns, model_of, write_page
from .terminal import say, visible

_MARKS = {True: "yes", False: "no", None: "–"}


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("task", metavar="PROMPT|FILE", help="a question, or a .jsonl file of tasks (docs/compare.md)")
    arms_argument(parser)
    asking_arguments(parser, "as in chat; scripted:FILE plays one answer an arm that asks")
    parser.add_argument("--tools", help="as in chat; a task that brings its own keeps them")
    parser.add_argument("--max-new-tokens", type=int, default=512, help="tokens at most in one answer (default 512)")
    parser.add_argument("--json", action="store_true", help="everything, for programs")
    parser.add_argument("--html", metavar="FILE", help="write it as one page that needs no network")


def run(args: argparse.Namespace) -> int:
    """Ask, and print what came of it; returns the exit code."""
    chosen = tasks.named(args.task)
    arms = arms_of(args.arms)
    if args.max_new_tokens < 1:
        raise UserError("--max-new-tokens must be at least 1")
    if args.html:
        check_folder(args.html)
    tools, options = load_tools(args.tools), read_options(args.option)
    engine = open_engine(model_of(args.model, arms), family=args.family, device=args.device, dtype=args.dtype)
    settings = Settings(max_new_tokens=args.max_new_tokens)
    by_arm: dict[str, list[Outcome]] = {arm: [] for arm in arms}
    told: list[dict[str, Any]] = []
    for number, task in enumerate(chosen, start=1):
        if len(chosen) > 1:
            say(f"{number} of {len(chosen)}: {visible(task.question)}")
        outcomes = []
        for outcome in compare(engine, task, arms, tools, settings, system=args.system, options=options):
            by_arm[outcome.arm].append(outcome)
            outcomes.append(asdict(outcome))
            if len(chosen) == 1 and not args.json:
                print("\n".join(_answer_view(outcomes[-1])), flush=True)
        told.append({**task.to_dict(), "outcomes": outcomes})
    rows = {arm: summary(outcomes) for arm, outcomes in by_arm.items()}
    data = {
        "model": engine.name,
        "family": engine.family,
        "max_new_tokens": args.max_new_tokens,
        "arms": {arm: ARMS.get(arm, "an API's own tool calls") for arm in arms},
        "summary": rows,
        "tasks": told,
    }
    if args.html:
        write_page(args.html, report.comparison(data))
    if args.json:
        print(json.dumps(data, ensure_ascii=False))
    else:
        print("\n".join(_table_view(told[0]) if len(told) == 1 else _summary_view(data)))
    # An arm that could not be run is part of the answer; when none could, there is no answer.
    return 0 if any(row["ran"] for row in rows.values()) else 1


def _summary_view(data: Mapping[str, Any]) -> list[str]:
    """Counts and means by arm, and what went wrong by task."""
    rows = [[arm, *report.costs(row)] for arm, row in data["summary"].items()]
    lines = columns([["arm", *COSTS], *rows])
    for task in data["tasks"]:
        wrong = [each for each in task["outcomes"] if each["why"]]
        if wrong:
            lines += ["", visible(f"{task['id']}: {task['question']}")]
            lines += [f"  {each['arm']}: {visible(each['why'])}" for each in wrong]
    return lines


def _answer_view(outcome: Mapping[str, Any]) -> list[str]:
    """What one arm wrote."""
    lines = [f"── {visible(outcome['arm'])} ".ljust(60, "─")]
    if outcome["taken_back"]:
        lines.append(f"(taken back: {visible(outcome['taken_back'])})")
    if outcome["answer"]:
        lines.append(visible(outcome["answer"], keep="\n\t"))
    if outcome["why"]:
        lines.append(f"✗ {visible(outcome['why'])}")
    return lines


def _table_view(task: Mapping[str, Any]) -> list[str]:
    """A row for each arm."""
    head = ["arm", "calls", "valid", "right", "prompt", "new", "first s", "end s"]
    rows = [
        [
            each["arm"],
            str(len(each["calls"])),
            _MARKS[each["valid"]],
            _MARKS[each["right"]],
            str(each["prompt_tokens"] or "–"),
            str(each["new_tokens"]),
            f"{each['first_token_s']:.2f}",
            f"{each['total_s']:.2f}",
        ]
        for each in task["outcomes"]
    ]
    return ["", *columns([head, *rows])]

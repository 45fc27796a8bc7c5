"""``bench``: BFCL in several ways of asking, resumable, with what may be called a difference and what may not."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from .. import bench, evaluate, report
from ..compare import ARMS, is_api
from ..engines import Settings, open_engine
from ..errors import UserError
from ..families import read_options
from .activity import Activity
from .results import (
    COSTS,
    arms_argument,
    arms_of,
    asking_arguments,
    check_folder,
    columns,
    model_of,
    words_of,
    write_page,
)
from .terminal import positive, say, steerable, visible

_DEFAULT = "simple_python,multiple,parallel,irrelevance"
# Where there is no terminal, a line of progress so often, in seconds.
_EVERY = 60.0


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "--categories",
        default=_DEFAULT,
        help=f"separated by commas: {', '.join(bench.CATEGORIES)}, or patterns such as live_* (default {_DEFAULT})",
    )
    parser.add_argument(
        "--limit", type=positive, help="questions at most of each category, evenly spread over it (default all)"
    )
    arms_argument(parser)
    asking_arguments(parser, "as in chat")
    parser.add_argument(
        "--quantize", choices=("auto", "none", "int8", "int4"), default="auto", help="weights in fewer bits, as in chat"
    )
    parser.add_argument(
        "--max-new-tokens", type=positive, default=512, help="tokens at most in one answer (default 512)"
    )
    parser.add_argument(
        "--temperature",
        type=float,
        help="sample (default: always the likeliest token here, and as it likes for an API)",
    )
    parser.add_argument("--seed", type=int, help="the same seed draws the same answers")
    parser.add_argument(
        "--out",
        default="bench.jsonl",
        help="the results, a JSON line a question; it goes on where it was (%(default)s)",
    )
    parser.add_argument("--json", action="store_true", help="the figures for programs")
    parser.add_argument("--html", metavar="FILE", help="write them as one page that needs no network")


def run(args: argparse.Namespace) -> int:
    """Ask what is not answered yet, and print what came of it all; returns the exit code."""
    arms, categories = arms_of(args.arms), bench.categories(words_of(args.categories))
    for path in filter(None, (args.out, args.html)):
        check_folder(path)
    options = read_options(args.option)
    api_settings = Settings(max_new_tokens=args.max_new_tokens, temperature=args.temperature, seed=args.seed)
    items = [item for category in categories for item in evaluate.items(category, args.limit)]
    engine = open_engine(
        model_of(args.model, arms),
        family=args.family,
        device=args.device,
        dtype=args.dtype,
        quantize=args.quantize,
    )
    greedy = args.temperature is None and not is_api(engine.name)
    settings = replace(api_settings, temperature=0.0) if greedy else api_settings
    about = {
        "bfcl": evaluate.bfcl_version(),
        "model": engine.name,
        "family": engine.family,
        "categories": categories,
        "limit": args.limit,
        "arms": arms,
        "max_new_tokens": args.max_new_tokens,
        "temperature": args.temperature,
        "seed": args.seed,
        "system": args.system,
        "options": options,
        "dtype": args.dtype,
        "quantize": args.quantize,
    }

    def question(item: evaluate.Item) -> bench.Row:
        return bench.ask(engine, item, arms, settings, api_settings=api_settings, system=args.system, options=options)

    results = bench.Results(Path(args.out), about, [item.id for item in items])
    try:
        _ask(items, results, question)
    finally:
        results.close()
    rows = [results.rows[item.id] for item in items if item.id in results.rows]
    if not rows:
        raise UserError("no question could be put to every arm", code=1)
    data = {
        **about,
        "arms": {arm: ARMS.get(arm, "an API's own tool calls") for arm in arms},
        "decoding": _decoding(args.temperature, any(map(is_api, [engine.name, *arms]))),
        "questions": len(items),
        "asked": len(rows),
        "summary": bench.summary(rows),
        "pairs": bench.pairs(rows),
    }
    if args.html:
        write_page(args.html, report.benchmark({**data, "rows": [row.to_dict() for row in rows]}))
    print(json.dumps(data, ensure_ascii=False) if args.json else "\n".join(_view(data)))
    if len(rows) < len(items):
        say(f"{len(items) - len(rows)} questions could not be put to every arm; the same command asks them again")
    return 0 if len(rows) == len(items) else 1


def _ask(
    items: Sequence[evaluate.Item], results: bench.Results, question: Callable[[evaluate.Item], bench.Row]
) -> None:
    """Ask what is left, and say how far it is."""
    before = len(results.rows)
    if before:
        say(f"{before} of {len(items)} questions are answered in {results.path}")
    left = len(items) - before
    activity, started = Activity(), time.monotonic()
    told = started
    if left:
        activity.start(f"{before} of {len(items)}")
    try:
        for done, row in enumerate(bench.run(items, results, question), start=1):
            now = time.monotonic()
            rest = (now - started) / done * (left - done)
            far = f"{before + done} of {len(items)}, {row.category}, about {span(rest)} left,"
            activity.what = far
            missing = [outcome for outcome in row.outcomes if not outcome.finish]
            if missing:
                activity.stop()
                say("\n".join(f"{row.id}: {each.arm}: {visible(each.why)}" for each in missing))
                activity.start(far, started)
            if not steerable(sys.stderr) and (now - told >= _EVERY or done == left):
                say(f"{far} {span(now - started)} gone")
                told = now
    except KeyboardInterrupt:
        activity.stop()
        say(f"{len(results.rows)} of {len(items)} questions are answered; the same command goes on")
        raise
    finally:
        activity.stop()


def _decoding(temperature: float | None, api: bool) -> str:
    if temperature is not None:
        return f"temperature {temperature:g}"
    return "greedy, but an API decodes as it likes" if api else "greedy"


def span(seconds: float) -> str:
    """A stretch of time for people."""
    minutes = round(seconds / 60)
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{minutes} min" if minutes < 100 else f"{minutes // 60} h {minutes % 60:02} min"


def _view(data: Mapping[str, Any]) -> list[str]:
    """What is right by category, what it cost over all of them, and the arms in pairs."""
    overall = data["summary"][bench.ALL]
    lines = [
        f"{data['model']}: {data['asked']} of {data['questions']} questions of BFCL {data['bfcl']}, {data['decoding']}"
    ]
    right = [[arm, *(_share(of_arm[arm]) for of_arm in data["summary"].values())] for arm in overall]
    lines += ["", *columns([["right (95 %)", *data["summary"]], *right])]
    cost = [
        [arm, *report.costs(row), report.number(row["tokens_per_right"], 0), report.number(row["seconds_per_right"], 2)]
        for arm, row in overall.items()
    ]
    lines += ["", *columns([["all", *COSTS, "tokens/right", "s/right"], *cost])]
    if data["pairs"]:
        tested = [
            [
                " | ".join(pair["arms"]),
                *map(str, pair["only"]),
                report.p_value(pair["p"]),
                report.p_value(pair["p_holm"]),
                report.which_is_better(pair),
            ]
            for pair in data["pairs"]
        ]
        lines += ["", *columns([["one | other", "only one", "only other", "p", "p, Holm", ""], *tested])]
    return lines


def _share(row: Mapping[str, Any]) -> str:
    return f"{row['right']}/{row['judged']} ({report.interval(row)})"

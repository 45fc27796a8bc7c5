"""Fuzz the parser for a while: python tests/fuzz_parser.py SECONDS [SEED]. Not collected by pytest.

Answers are grown from tags, halves of tags, JSON and XML, and from mutations of valid answers. Each is read whole and in random
pieces: nothing may raise, both must agree, attempts must not overlap, streamed arguments must be JSON. Every so often a long answer made
of one repeated piece is timed at two lengths: four times the length may cost at most ten times the time.
"""

from __future__ import annotations

import json
import random
import sys
import time
from itertools import pairwise

from test_parser_properties import MARKUP, TOOLS

from qwen_tools import StreamParser, events
from qwen_tools.parser import ParsedTurn, fold

VALID = [
    '<think>\nhm\n</think>\n\nOk.<tool_call>\n{"name": "lookup", "arguments": {"n": 1, "town": "a\\nb"}}\n</tool_call>',
    "<tool_call>\n<function=lookup>\n<parameter=town>\nOslo\n</parameter>\n<parameter=n>\n3\n</parameter>\n</function>\n</tool_call>",
    '<tool_call>[{"name": "lookup", "arguments": {"n": 1}}, {"name": "write", "parameters": "{}"}]</tool_call>',
    '```json\n{"name": "lookup", "arguments": {"town": "Oslo"}}\n```\n',
    '<tools>\n{"name": "write", "arguments": {"deep": {"a": [1, {"b": null}]}}}\n</tools>',
]


def answer(rng: random.Random) -> str:
    if rng.random() < 0.5:
        return "".join(rng.choice(MARKUP) for _ in range(rng.randint(1, 40)))
    text = "".join(rng.choice(VALID) for _ in range(rng.randint(1, 3)))
    for _ in range(rng.randint(1, 8)):
        at = rng.randint(0, len(text))
        text = text[:at] + rng.choice(["", *MARKUP, chr(rng.randint(0, 0x2FFF))]) + text[at + rng.randint(0, 10) :]
    return text


def read(pieces: list[str], how: dict) -> tuple[ParsedTurn, list]:
    parser = StreamParser(TOOLS if how["tools"] else (), how["prefill"], how["salvage"])
    seen = [event for piece in pieces for event in parser.feed(piece)] + parser.close(how["finish"])
    return fold(seen), seen


def check(text: str, rng: random.Random) -> None:
    how = {
        "tools": rng.random() < 0.8,
        "prefill": rng.choice(["", "<think>\n", "<think>\n\n</think>\n\n"]),
        "salvage": rng.random() < 0.3,
        "finish": rng.choice(["stop", "length"]),
    }
    whole, seen = read([text], how)
    cuts = sorted({0, len(text), *(rng.randint(0, len(text)) for _ in range(rng.randint(0, 10)))})
    assert read([text[a:b] for a, b in pairwise(cuts)], how)[0] == whole, (how, cuts)
    assert read(list(text), how)[0] == whole, how
    deltas: dict[int, str] = {}
    for event in seen:
        if isinstance(event, events.CallArgs):
            deltas[event.index] = deltas.get(event.index, "") + event.delta
        elif isinstance(event, events.CallEnd):
            assert json.loads(deltas[event.index]) == event.call.arguments, how
    if not how["salvage"]:
        own = {id(problem) for call in whole.calls for problem in call.problems}
        spans = sorted([c.span for c in whole.calls] + [p.span for p in whole.problems if id(p) not in own])
        assert all(end <= start for (_, end), (start, _) in pairwise(spans)), (how, spans)


def seconds(text: str, size: int, prefill: str) -> float:
    parser = StreamParser(TOOLS, prefill)
    started = time.perf_counter()
    for at in range(0, len(text), size):
        parser.feed(text[at : at + size])
    parser.close()
    return time.perf_counter() - started


def check_growth(rng: random.Random) -> None:
    opening = rng.choice(["", "<tool_call>", "<tool_call>\n{", *(text[: rng.randint(0, len(text))] for text in VALID)])
    piece = "".join(rng.choice(MARKUP) for _ in range(rng.randint(1, 3)))
    size, prefill = rng.choice([1, 4, 100_000]), rng.choice(["", "<think>\n"])
    short, long = (opening + piece * (count // len(piece)) for count in (10_000, 40_000))
    times = [min(seconds(text, size, prefill) for _ in range(2)) for text in (short, long)]
    if times[1] > 10 * times[0] and times[1] > 0.2:  # once more: the machine may have been busy
        times = [min(seconds(text, size, prefill) for _ in range(3)) for text in (short, long)]
    assert times[1] <= 10 * times[0] or times[1] <= 0.2, (opening, piece, size, prefill, times)


def main() -> int:
    budget = float(sys.argv[1])
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else random.randrange(10**9)
    rng = random.Random(seed)
    started, count, grown = time.monotonic(), 0, 0
    print(f"seed {seed}", flush=True)
    while time.monotonic() - started < budget:
        text = answer(rng)
        try:
            check(text, rng)
        except Exception:
            print(f"after {count} answers: {text!r}", flush=True)
            raise
        count += 1
        if count % 500 == 0:
            check_growth(rng)
            grown += 1
    print(f"{count} answers and {grown} growth checks in {budget:g} s: no fault")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""The parser on the language-neutral cases: whole, by character, at every cut, and in any chunks."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from qwen_tools import StreamParser, parse
from qwen_tools.parser import fold

CASES = [
    json.loads(line)
    for name in ("parse.jsonl", "salvage.jsonl", "found.jsonl")
    for line in (Path(__file__).parent / "cases" / name).read_text(encoding="utf-8").splitlines()
]


def in_pieces(pieces, case):
    parser = StreamParser(case["tools"], case.get("prefill", ""), salvage=case.get("mode") == "salvage")
    events = [event for piece in pieces for event in parser.feed(piece)]
    return fold(events + parser.close(case.get("finish", "stop")))


def check(turn, expect):
    if expect["content"] is not None:
        assert turn.content == expect["content"]
    position = 0
    for piece in expect.get("content_contains", ()):
        position = turn.content.index(piece, position) + len(piece)
    assert turn.reasoning == expect["reasoning"]
    assert [{"name": call.name, "arguments": call.arguments} for call in turn.calls] == expect["calls"]
    assert [problem.kind for problem in turn.problems] == expect["errors"]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['id']}-{case['kind']}")
def test_case(case):
    text = case["text"]
    whole = in_pieces([text], case)
    check(whole, case["expect"])
    assert in_pieces(list(text), case) == whole
    for cut in range(len(text) + 1):
        assert in_pieces([text[:cut], text[cut:]], case) == whole, text[:cut]
    for call in whole.calls:
        if not any(repair.startswith("salvaged") for repair in call.repairs):
            assert text[slice(*call.span)] == call.raw
    assert parse(text, case["tools"], case.get("prefill", ""), salvage=case.get("mode") == "salvage") == whole

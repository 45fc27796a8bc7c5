"""Recorded outputs with the parse that a right engine returns (canitoolcall), read by us."""

from __future__ import annotations

import json
import re

import pytest

from qwen_tools import StreamParser, parse
from qwen_tools.parser import fold

pytest.importorskip("canitoolcall", reason="canitoolcall is not installed (extra: test)")

from canitoolcall.chunking import DEFAULT_STRATEGIES, split
from canitoolcall.fixtures import load_fixtures
from canitoolcall.pytest_plugin import assert_conforms
from canitoolcall.results import ParsedToolCall, ParseResult

FIXTURES = load_fixtures()
OURS = [fixture for fixture in FIXTURES if fixture.family in ("qwen3-hermes", "qwen3-xml")]
SPECIAL = frozenset(("<tool_call>", "</tool_call>", "<think>", "</think>", "<|im_end|>"))
UNIT = re.compile("|".join(map(re.escape, sorted(SPECIAL))) + "|.{1,3}", re.DOTALL)
OTHERS = [fixture for fixture in FIXTURES if fixture.family not in ("qwen3-hermes", "qwen3-xml")]


def setting(fixture):
    prefill = (fixture.generation_prompt or "").partition("assistant\n")[2]
    return fixture.tools or (), prefill, "length" if fixture.truncated else "stop"


def result(turn) -> ParseResult:
    calls = tuple(
        ParsedToolCall(call.name, json.dumps(call.arguments, ensure_ascii=False))
        for call in turn.calls
        if not any(problem.kind == "unknown_tool" for problem in call.problems)
    )
    return ParseResult(turn.content or None, turn.reasoning or None, calls)


def in_pieces(fixture, pieces):
    tools, prefill, finish = setting(fixture)
    parser = StreamParser(tools, prefill)
    return fold([event for piece in pieces for event in parser.feed(piece)] + parser.close(finish))


def test_the_corpus_is_the_one_we_know():
    assert (len(OURS), len(OTHERS)) == (104, 365)


@pytest.mark.parametrize("fixture", OURS, ids=lambda fixture: fixture.id)
def test_ours(fixture):
    tools, prefill, finish = setting(fixture)
    whole = parse(fixture.raw_output, tools, prefill, finish)
    assert_conforms(fixture, result(whole))
    assert in_pieces(fixture, list(fixture.raw_output)) == whole
    for strategy in DEFAULT_STRATEGIES:
        # Its strategies group tokens: tags are one each, and a few letters stand for any other.
        units = UNIT.findall(fixture.raw_output)
        pieces = ["".join(group) for group in split(units, strategy, special=SPECIAL)]
        assert "".join(pieces) == fixture.raw_output
        assert in_pieces(fixture, pieces) == whole, strategy


@pytest.mark.parametrize("fixture", OTHERS, ids=lambda fixture: fixture.id)
def test_the_output_of_another_family_is_no_valid_call(fixture):
    turn = parse(fixture.raw_output, fixture.tools or ())
    assert [call for call in turn.calls if not call.problems] == []

"""Recorded outputs with the parse that a right engine returns (canitoolcall), read by us."""

from __future__ import annotations

import json
import re

import pytest
from parser_laws import read

from qwen_tools import events, parse
from qwen_tools.parser import fold

pytest.importorskip("canitoolcall", reason="canitoolcall is not installed (extra: test)")

from canitoolcall.chunking import DEFAULT_STRATEGIES, split
from canitoolcall.fixtures import load_fixtures
from canitoolcall.pytest_plugin import assert_conforms
from canitoolcall.results import ParsedToolCall, ParseResult, StreamAccumulator

FIXTURES = load_fixtures()
OURS = [fixture for fixture in FIXTURES if fixture.family in ("qwen3-hermes", "qwen3-xml")]
OTHERS = [fixture for fixture in FIXTURES if fixture.family not in ("qwen3-hermes", "qwen3-xml")]

# Its chunkings group tokens. Without the models' tokenizers these pieces stand in for them: the tags that are
# one token each, and otherwise words, numbers and signs.
SPECIAL = ("<tool_call>", "</tool_call>", "<think>", "</think>", "<|im_end|>", "<|im_start|>", "<|endoftext|>")
TOKENS = re.compile("|".join(map(re.escape, SPECIAL)) + r"| ?\w{1,8}|\s+|.", re.DOTALL)


def setting(fixture):
    return {
        "tools": fixture.tools,
        "prefill": fixture.generation_prompt or "",
        "finish": "length" if fixture.truncated else "stop",
    }


def result(turn) -> ParseResult:
    calls = tuple(ParsedToolCall(call.name, json.dumps(call.arguments)) for call in turn.calls)
    return ParseResult(turn.content or None, turn.reasoning or None, calls)


def streamed(told) -> ParseResult:
    """What a client puts together from the pieces. Calls that fail in the end must not be run by a client that was
    told so, as CallError does.
    """
    client = StreamAccumulator()
    failed = {event.index for event in told if isinstance(event, events.CallError)}
    for event in told:
        if isinstance(event, events.Text):
            client.add_content(event.delta)
        elif isinstance(event, events.Reasoning):
            client.add_reasoning(event.delta)
        elif isinstance(event, events.CallName) and event.index not in failed:
            client.add_tool_call(event.index, name=event.name)
        elif isinstance(event, events.CallArgs) and event.index not in failed:
            client.add_tool_call(event.index, arguments=event.delta)
    return client.result()


def test_the_corpus_is_the_one_we_know():
    assert (len(OURS), len(OTHERS)) == (104, 365)


@pytest.mark.parametrize("fixture", OURS, ids=lambda fixture: fixture.id)
def test_ours(fixture):
    text, way = fixture.raw_output, setting(fixture)
    turn = parse(text, **way)
    assert_conforms(fixture, result(turn))
    assert fold(read(list(text), **way)) == turn
    tokens = TOKENS.findall(text)
    assert "".join(tokens) == text
    for strategy in DEFAULT_STRATEGIES:
        pieces = ["".join(group) for group in split(tokens, strategy, special=SPECIAL)]
        told = read(pieces, **way)
        assert fold(told) == turn, strategy
        assert_conforms(fixture, streamed(told), soft=True)


@pytest.mark.parametrize("fixture", OTHERS, ids=lambda fixture: fixture.id)
def test_the_output_of_another_family_is_no_valid_call(fixture):
    for tools in (fixture.tools, ()):
        turn = parse(fixture.raw_output, tools)
        assert [call for call in turn.calls if not call.problems] == []

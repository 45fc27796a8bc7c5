"""What must be true of every answer, whatever stands in it."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qwen_tools import StreamParser, events, parse
from qwen_tools.families import get
from qwen_tools.messages import ToolCall
from qwen_tools.parser import MAX_CALL, fold

TEXT, WHOLE, THING = {"type": "string"}, {"type": "integer"}, {"type": "object"}
TOOLS = [
    {"name": "lookup", "parameters": {"type": "object", "properties": {"town": TEXT, "n": WHOLE}}},
    {"name": "write", "parameters": {"type": "object", "properties": {"text": TEXT, "deep": THING}}},
]
MARKUP = [
    *("<tool_call>", "</tool_call>", "<tool_call>\n", "\n</tool_call>", "<tools>", "</tools>", "</function_calls>"),
    *("<function=lookup>", "<function=write>\n", "<function=nobody>\n", "</function>"),
    *("<parameter=town>", "<parameter=n>\n", "\n</parameter>\n", "</parameter>"),
    *("<think>", "</think>", "```json\n", "\n```\n", "~~~", "`", "<|im_end|>", "<|im", "<|endoftext|>"),
    *('{"name": "lookup", "arguments": {"town": "Oslo"}}', '{"name": "', '", "arguments": ', '"town"', "1e999"),
    *("{", "}", "[", "]", '"', "\\", ",", ":", "12", "null", "true", "Oslo", " ", "\n", "\n\n", "<", "<t", "</"),
    *("text", "é📝", "\x00"),
]
answers = st.lists(st.one_of(st.sampled_from(MARKUP), st.text(max_size=4)), max_size=40).map("".join)
finishes = st.sampled_from(["stop", "length"])
prefills = st.sampled_from(["", "<think>\n", "<think>\n\n</think>\n\n"])


def cut(text, cuts):
    places = sorted({at % (len(text) + 1) for at in cuts} | {0, len(text)})
    return [text[start:end] for start, end in pairwise(places)]


def read(pieces, prefill="", finish="stop", salvage=False, tools=TOOLS):
    parser = StreamParser(tools, prefill, salvage)
    return [event for piece in pieces for event in parser.feed(piece)] + parser.close(finish)


@settings(max_examples=1500, deadline=None)
@given(
    answers, st.lists(st.integers(0, 10_000), max_size=12), prefills, st.sampled_from(["stop", "length"]), st.booleans()
)
def test_any_cut_gives_the_same_result(text, cuts, prefill, finish, salvage):
    whole = fold(read([text], prefill, finish, salvage))
    assert fold(read(cut(text, cuts), prefill, finish, salvage)) == whole
    assert fold(read(list(text), prefill, finish, salvage)) == whole


@settings(max_examples=1000, deadline=None)
@given(answers, prefills)
def test_streamed_arguments_join_to_the_final_ones(text, prefill):
    deltas: dict[int, str] = {}
    opened, named, ended = [], {}, []
    for event in read(list(text), prefill):
        if isinstance(event, events.CallStart):
            opened.append(event.index)
        elif isinstance(event, events.CallName):
            named[event.index] = event.name
        elif isinstance(event, events.CallArgs):
            deltas[event.index] = deltas.get(event.index, "") + event.delta
        elif isinstance(event, events.CallEnd):
            ended.append(event.index)
            assert json.loads(deltas[event.index]) == event.call.arguments
            assert named[event.index] == event.call.name
        elif isinstance(event, events.CallError):
            ended.append(event.index)
    assert opened == list(range(len(opened)))
    assert ended == opened


@settings(max_examples=1000, deadline=None)
@given(answers, prefills)
def test_the_result_covers_the_answer_without_overlap(text, prefill):
    turn = parse(text, TOOLS, prefill)
    own = {id(problem) for call in turn.calls for problem in call.problems}
    spans = sorted([call.span for call in turn.calls] + [p.span for p in turn.problems if id(p) not in own])
    for (_, end), (start, _) in pairwise(spans):
        assert end <= start
    for attempt in (*turn.calls, *turn.problems):
        assert text[slice(*attempt.span)] == attempt.raw
    # What stands outside of the attempts is content, reasoning, or markup and white space next to it, in order.
    outside, at = "", 0
    for start, end in spans:
        outside, at = outside + text[at:start], end
    outside += text[at:]
    remaining = iter("".join(outside.split()))
    said = "".join((turn.reasoning + turn.content).split())
    assert all(letter in remaining for letter in said)


@settings(max_examples=1000, deadline=None)
@given(answers)
def test_text_holds_no_tag_that_was_recognised(text):
    content = parse(text, TOOLS).content
    again = parse(content, TOOLS)
    # Read again, the text of an answer is text: whatever was markup is gone from it.
    if not again.reasoning:
        fenced = "```" in content or "~~~" in content
        assert fenced or "<|im_end|>" not in content


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
texts = st.text(st.characters(blacklist_categories=["Cs"])) | st.lists(st.sampled_from(MARKUP), max_size=4).map("".join)


@settings(max_examples=500, deadline=None)
@given(st.text(min_size=1), st.dictionaries(texts, json_values | texts, max_size=4), st.booleans())
def test_a_call_in_json_comes_back(name, arguments, ascii_only):
    body = json.dumps({"name": name, "arguments": arguments}, ensure_ascii=ascii_only)
    turn = parse(f"Well.\n<tool_call>\n{body}\n</tool_call>")
    assert [(call.name, call.arguments) for call in turn.calls] == [(name, arguments)]
    assert (turn.content, turn.problems, turn.calls[0].repairs) == ("Well.", (), ())


plain = st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="<"))
names = st.text(st.characters(whitelist_categories=["L", "N"], whitelist_characters="._- "), min_size=1).filter(
    lambda name: name == name.strip()
)


@settings(max_examples=500, deadline=None)
@given(names, st.dictionaries(names, plain | st.integers() | st.booleans() | st.lists(st.integers()), max_size=4))
def test_a_call_in_xml_comes_back(name, arguments):
    kinds = {bool: "boolean", int: "integer", str: "string", list: "array"}
    properties = {key: {"type": kinds[type(value)]} for key, value in arguments.items()}
    tools = [{"name": name, "parameters": {"type": "object", "properties": properties}}]
    body = get("qwen3-coder").call(ToolCall(name, arguments))
    turn = parse(f"<tool_call>\n{body}\n</tool_call>", tools)
    assert [(call.name, call.arguments) for call in turn.calls] == [(name, arguments)]
    assert turn.problems == ()


@settings(max_examples=500, deadline=None)
@given(st.data())
def test_a_mutation_of_a_valid_answer_never_raises(data):
    text = data.draw(
        st.sampled_from(
            [
                '<think>\nhm\n</think>\n\nOk.<tool_call>\n{"name": "lookup", "arguments": {"n": 1}}\n</tool_call>',
                "<tool_call>\n<function=lookup>\n<parameter=town>\nOslo\n</parameter>\n</function>\n</tool_call>",
                '<tool_call>[{"name": "lookup", "arguments": {"n": 1}}, {"name": "write"}]</tool_call>',
                '```json\n{"name": "lookup", "arguments": {"town": "Oslo"}}\n```',
            ]
        )
    )
    for _ in range(data.draw(st.integers(1, 6))):
        at = data.draw(st.integers(0, len(text)))
        end = min(len(text), at + data.draw(st.integers(0, 8)))
        text = text[:at] + data.draw(st.sampled_from(["", *MARKUP])) + text[end:]
    for salvage in (False, True):
        for call in parse(text, TOOLS, salvage=salvage).calls:
            assert isinstance(call.name, str)


@pytest.mark.parametrize(
    "opening",
    ['<tool_call>\n{"name": "write", "arguments": {"text": "', "<tool_call>\n<function=write>\n<parameter=text>\n"],
)
def test_a_call_that_is_too_large_is_a_problem_and_the_rest_is_read(opening):
    closing = '"}}\n</tool_call>' if opening.endswith('"') else "\n</parameter>\n</function>\n</tool_call>"
    good = '<tool_call>\n{"name": "lookup", "arguments": {"town": "Oslo"}}\n</tool_call>'
    text = opening + "a" * (MAX_CALL + 10) + closing + "\nSo.\n" + good
    turn = parse(text, TOOLS)
    assert [problem.kind for problem in turn.problems] == ["too_large"]
    assert [call.name for call in turn.calls] == ["lookup"]
    assert turn.content == "So."
    assert len(turn.problems[0].raw) < 1000
    assert turn.problems[0].span == (0, text.index("\nSo."))
    assert fold(read([text[at : at + 1000] for at in range(0, len(text), 1000)])) == turn

"""What must be true of every answer, whatever stands in it, and of every call that is written and read again."""

from __future__ import annotations

import json

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from parser_laws import check, cut, read

from qwen_tools import parse
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
VALID = [
    '<think>\nhm\n</think>\n\nOk.<tool_call>\n{"name": "lookup", "arguments": {"n": 1}}\n</tool_call>',
    "<tool_call>\n<function=lookup>\n<parameter=town>\nOslo\n</parameter>\n</function>\n</tool_call>",
    '<tool_call>[{"name": "lookup", "arguments": {"n": 1}}, {"name": "write"}]</tool_call>',
    '```json\n{"name": "lookup", "arguments": {"town": "Oslo"}}\n```',
]
answers = st.lists(st.one_of(st.sampled_from(MARKUP), st.text(max_size=4)), max_size=40).map("".join)


@st.composite
def mutants(draw):
    """Valid answers with something left out, put in or replaced."""
    text = draw(st.sampled_from(VALID))
    for _ in range(draw(st.integers(1, 6))):
        at = draw(st.integers(0, len(text)))
        end = min(len(text), at + draw(st.integers(0, 8)))
        text = text[:at] + draw(st.sampled_from(["", *MARKUP])) + text[end:]
    return text


ways = st.fixed_dictionaries(
    {
        "tools": st.sampled_from([TOOLS, ()]),
        "prefill": st.sampled_from(["", "<think>\n", "<think>\n\n</think>\n\n", '<tool_call>\n{"name": "look']),
        "finish": st.sampled_from(["stop", "length", "interrupted"]),
        "salvage": st.booleans(),
        "max_call": st.sampled_from([MAX_CALL, 20]),
    }
)


@settings(max_examples=2000, deadline=None)
@given(answers | mutants(), st.lists(st.integers(0, 10_000), max_size=12), ways)
def test_the_laws_of_every_answer(text, places, way):
    check(text, places, **way)


@settings(max_examples=1000, deadline=None)
@given(answers | mutants())
def test_text_holds_no_tag_that_was_recognised(text):
    turn = parse(text, TOOLS)
    # A second reading of the text finds no call in it, unless taking the calls out has brought one together.
    if not turn.calls and not turn.problems and not turn.reasoning:
        # Words behind it, since a tag at the very end would be one that the end of the answer cut.
        again = parse(turn.content + "\nx", TOOLS)
        assert again.content == (turn.content + "\nx").strip()
        assert not again.calls


scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
json_values = st.recursive(
    scalars | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
texts = st.text() | st.lists(st.sampled_from(MARKUP), max_size=4).map("".join)


@settings(max_examples=500, deadline=None)
@given(st.text(min_size=1), st.dictionaries(texts, json_values | texts, max_size=4), st.booleans())
def test_a_call_in_json_comes_back(name, arguments, ascii_only):
    body = json.dumps({"name": name, "arguments": arguments}, ensure_ascii=ascii_only)
    turn = check(f"Well.\n<tool_call>\n{body}\n</tool_call>", [20, 60])
    assert [(call.name, call.arguments) for call in turn.calls] == [(name, arguments)]
    assert (turn.content, turn.problems, turn.calls[0].repairs) == ("Well.", (), ())


TAGS = ("<parameter=", "</parameter>", "</function>", "<tool_call>", "</tool_call>", "<function=")
names = st.text(min_size=1).filter(lambda name: not set(name) & {">", "\n"})
plain = texts.filter(lambda text: not any(tag in text for tag in TAGS))
typed = st.one_of(
    plain.map(lambda value: (TEXT, value)),
    st.integers().map(lambda value: (WHOLE, value)),
    st.booleans().map(lambda value: ({"type": "boolean"}, value)),
    st.floats(allow_nan=False, allow_infinity=False).map(lambda value: ({"type": "number"}, value)),
    st.lists(json_values, max_size=3).map(lambda value: ({"type": "array"}, value)),
    st.dictionaries(st.text(), json_values, max_size=3).map(lambda value: ({"type": "object"}, value)),
    (st.none() | st.integers()).map(lambda value: ({"anyOf": [WHOLE, {"type": "null"}]}, value)),
).filter(lambda pair: not any(tag in json.dumps(pair[1], ensure_ascii=False) for tag in TAGS))


@settings(max_examples=500, deadline=None)
@given(names, st.dictionaries(names, typed, max_size=4))
@example(" a<b ", {"x<y": (TEXT, "\n\n a\r\n")})
@example("f", {"a": (TEXT, "a\n<parameter"), "b": (WHOLE, 10**40)})
def test_a_call_in_xml_comes_back(name, parameters):
    arguments = {key: value for key, (_, value) in parameters.items()}
    schema = {"type": "object", "properties": {key: kind for key, (kind, _) in parameters.items()}}
    body = get("qwen3-coder").call(ToolCall(name, arguments))
    turn = check(f"<tool_call>\n{body}\n</tool_call>", [20, 60], tools=[{"name": name, "parameters": schema}])
    assert [(call.name, call.arguments) for call in turn.calls] == [(name, arguments)]
    assert (turn.content, turn.problems, turn.calls[0].repairs) == ("", (), ())


@pytest.mark.parametrize(
    ("opening", "closing"),
    [
        ('<tool_call>\n{"name": "write", "arguments": {"text": "', '"}}\n</tool_call>'),
        ("<tool_call>\n<function=write>\n<parameter=text>\n", "\n</parameter>\n</function>\n</tool_call>"),
    ],
)
def test_a_call_that_is_too_large_is_a_problem_and_the_rest_is_read(opening, closing):
    good = '<tool_call>\n{"name": "lookup", "arguments": {"town": "Oslo"}}\n</tool_call>'
    fits = opening + "a" * (MAX_CALL - len(opening + closing)) + closing
    assert [call.name for call in parse(fits, TOOLS).calls] == ["write"]
    text = fits.replace("a" * 9, "a" * 10, 1) + "\nSo.\n" + good
    turn = parse(text, TOOLS)
    assert [problem.kind for problem in turn.problems] == ["too_large"]
    assert [call.name for call in turn.calls] == ["lookup"]
    assert turn.content == "So."
    assert len(turn.problems[0].raw) < 1000
    assert turn.problems[0].span == (0, text.index("\nSo."))
    assert fold(read(cut(text, list(range(0, len(text), 1000))))) == turn


def test_the_limit_is_that_of_each_call_not_of_the_answer():
    one = '{"name": "lookup", "arguments": {"town": "Oslo"}}'
    for text in (f"<tool_call>[{', '.join([one] * 50)}]</tool_call>", f"<tool_call>{one}</tool_call>\n" * 50):
        assert len(fold(read([text], TOOLS, max_call=100)).calls) == 50
        turn = fold(read([text], TOOLS, max_call=40))
        assert [problem.kind for problem in turn.problems] == ["too_large"] * 50

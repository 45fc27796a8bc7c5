"""Calls in wrong forms: read only as a whole answer, seen coming as early as possible."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qwen_tools.salvage import PATIENCE, salvage, wrong_opening

NAMES = ["get_weather", "get", "clock"]
SCHEMAS = {
    "get_weather": {"type": "object", "properties": {"town": {"type": "string"}}, "required": ["town"]},
    "clock": {"type": "object", "properties": {}},
}
CALL = '{"name": "get_weather", "arguments": {"town": "Oslo"}}'


@pytest.mark.parametrize(
    "opening",
    [
        '{"name": "clock"',
        '{"name":"clock"',
        '{ "name" : "clock"',
        ' \n{\n  "name": "clock"',
        '```json\n{"name": "clock"',
        '```\n{"name": "clock"',
        '~~~json\n{"name": "clock"',
        '```json\n[\n  {"name": "clock"',
        '[{"name": "clock"',
        '<tools>\n{"name": "clock"',
        '<function_call>{"name": "clock"',
        '<toolcall>{"name": "clock"',
        '<tool_calls>\n[{"name": "clock"',
        '```xml\n<tool_call>\n{"name": "clock"',
        '{"type": "function", "function": {"name": "clock"',
        '{"type": "function", "name": "clock"',
        '{"id": "call_1", "type": "function", "function": {"name": "clock"',
        '{"function": {"name": "clock"',
        '{"function": "clock"',
        '{"tool": "clock"',
        '{"tool_name": "clock"',
        '{"tool_call": {"name": "clock"',
    ],
)
def test_a_call_in_a_wrong_form_is_seen_at_the_end_of_its_name(opening):
    assert wrong_opening(opening, NAMES) == "call"
    assert wrong_opening(opening + ', "arguments": {', NAMES) == "call"
    for end in range(len(opening)):
        assert wrong_opening(opening[:end], NAMES) == "pending", opening[:end]


@pytest.mark.parametrize(
    ("text", "known_at"),
    [
        ("Hello", "H"),
        ("It is {", "I"),
        ('{"name": "John"', '{"name": "J'),
        ('{"name": "get_time"', '{"name": "get_t'),
        ('{"name": "clock_2"', '{"name": "clock_'),
        ('{"name": ["clock"', '{"name": ['),
        ('{"name": 3', '{"name": 3'),
        ('{"person": {"name": "clock"', '{"p'),
        ('{"names": 1', '{"names'),
        ('{"type": "object"', '{"type": "o'),
        ('{"function": ["clock"', '{"function": ['),
        ("{clock", "{c"),
        ("{}", "{}"),
        ('[1, {"name": "clock"', "[1"),
        ('["name"', '["'),
        ("```python\nprint(1)", "```py"),
        ("```json\nnull", "```json\nn"),
        ("```jsonx", "```jsonx"),
        ("`clock`", "`c"),
        ("``x", "``x"),
        ("<b>clock", "<b>"),
        ("<p class", "<p "),
        ("<think>", "<think>"),
        ("<function=clock>", "<function="),
        ("<tools>clock", "<tools>c"),
        ("</tool", "</"),
        ('"name": "clock"', '"'),
    ],
)
def test_text_is_known_as_early_as_it_can_be(text, known_at):
    assert wrong_opening(text, NAMES) == "text"
    assert wrong_opening(known_at, NAMES) == "text"
    assert wrong_opening(known_at[:-1], NAMES) == "pending"


def test_patience_has_an_end():
    assert wrong_opening(" " * (PATIENCE - 1), NAMES) == "pending"
    assert wrong_opening(" " * PATIENCE, NAMES) == "text"
    assert wrong_opening(" " * PATIENCE + '{"name": "clock"', NAMES) == "text"
    assert wrong_opening('{"id": "' + "x" * 10_000, NAMES) == "text"


def test_without_tools_there_is_nothing_to_wait_for():
    assert wrong_opening('{"name": "', []) == "text"
    assert wrong_opening('{"name": "x"', []) == "text"


PIECES = [
    *(
        "```json",
        "```",
        "\n",
        " ",
        "{",
        "[",
        '"name"',
        ": ",
        '"clock"',
        '"get',
        '"',
        "<tools>",
        "<",
        ">",
        '"type"',
        ",",
    ),
    *('"function"', '"id"', "x", "\\", "name", "clock", "\u00e9"),
]


@settings(max_examples=1000, deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=20).map("".join), st.integers(1, 400))
def test_a_verdict_stands(text, end):
    """Who reads piece by piece and who reads all at once come to the same."""
    before, after = wrong_opening(text[:end], NAMES), wrong_opening(text, NAMES)
    assert before in ("pending", after)


@pytest.mark.parametrize(
    ("text", "form", "names"),
    [
        (CALL, "bare", ["get_weather"]),
        (f"```json\n{CALL}\n```", "fence", ["get_weather"]),
        (f"```\n{CALL}```", "fence", ["get_weather"]),
        (f"```python\n{CALL}\n```", "fence", ["get_weather"]),
        (f"```json\n{CALL}", "fence", ["get_weather"]),
        (f"<tools>{CALL}</tools>", "tag", ["get_weather"]),
        (f"<function_calls>\n<call>{CALL}</call>\n</function_calls>", "tag", ["get_weather"]),
        (f"{CALL}\n</tool_call>", "missing_opener", ["get_weather"]),
        (f'[{CALL}, {{"name": "clock"}}]', "bare", ["get_weather", "clock"]),
        (f'{CALL}\n{{"name": "clock"}}', "bare", ["get_weather", "clock"]),
        ('{"arguments": {"town": "Oslo"}, "name": "get_weather"}', "bare", ["get_weather"]),
        ('{"function": "clock", "arguments": {}}', "bare", ["clock"]),
        ('{"tool_call": {"tool": "clock"}}', "bare", ["clock"]),
    ],
)
def test_a_whole_answer_of_calls_is_read(text, form, names):
    found = salvage(text, SCHEMAS)
    assert found is not None
    assert found[0] == form
    assert [each.call.name for each in found[1]] == names
    for each in found[1]:
        assert json.loads(text[slice(*each.span)]).keys() & {"name", "function", "tool_call"}


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            "Hello.",
            "```json\n```",
            "[]",
            "{}",
            "null",
            '"clock"',
            '{"name": "clock"',
            '{"name": "John", "age": 3}',
        ),
        f"{CALL} It is done.",
        f"So: {CALL}",
        '{"name": "get_weather", "arguments": {}}',
        '{"name": "get_weather", "arguments": {"town": 3}}',
        f'{CALL}\n{{"name": "John"}}',
        f"<div>{CALL}</div>",
        "{'name': 'clock'}",
        '{"name": "clock", "arguments": NaN}',
        '{"name": "clock", "arguments": ' + "[" * 100_000 + "}",
        "<" + "tool" * 50_000,
        "```" * 50_000,
    ],
    ids=lambda text: text[:30],
)
def test_anything_else_is_not(text):
    assert salvage(text, SCHEMAS) is None

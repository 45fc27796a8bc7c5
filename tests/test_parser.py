"""The parser on language-neutral cases, each whole, by character and at every cut."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from parser_laws import check, read

from qwen_tools import events, parse
from qwen_tools.parser import fold

CASES = [
    json.loads(line)
    for name in ("parse.jsonl", "salvage.jsonl", "rules.jsonl", "found.jsonl")
    for line in (Path(__file__).parent / "cases" / name).read_text(encoding="utf-8").splitlines()
]


def setting(case):
    return {
        "tools": case["tools"],
        "prefill": case.get("prefill", ""),
        "finish": case.get("finish", "stop"),
        "salvage": case.get("mode") == "salvage",
    }


def test_every_case_has_a_name_of_its_own():
    assert len({case["id"] for case in CASES}) == len(CASES)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['id']}-{case['kind']}")
def test_case(case):
    text, expect = case["text"], case["expect"]
    turn = check(text, [len(text) // 2], **setting(case))
    if expect["content"] is not None:
        assert turn.content == expect["content"]
    position = 0
    for piece in expect.get("content_contains", ()):
        position = turn.content.index(piece, position) + len(piece)
    assert turn.reasoning == expect["reasoning"]
    assert [{"name": call.name, "arguments": call.arguments} for call in turn.calls] == expect["calls"]
    assert [problem.kind for problem in turn.problems] == expect["errors"]
    for at in range(len(text) + 1):
        assert fold(read([text[:at], text[at:]], **setting(case))) == turn, text[:at]
    assert parse(text, **setting(case)) == turn


# ---- what the cases cannot say: repairs, places, streaming


OSLO = '{"name": "lookup", "arguments": {"town": "Oslo"}}'
XML = "<function=lookup>\n<parameter=town>\nOslo\n</parameter>\n</function>"


@pytest.mark.parametrize(
    ("text", "repairs"),
    [
        (f"<tool_call>{OSLO}</tool_call>", ()),
        (f"<tool_call>{OSLO}", ("missing_closer",)),
        (f"<tool_call>{OSLO[:-1]}</tool_call>", ("missing_brace",)),
        (f"<tool_call>{OSLO}}}</tool_call>", ("surplus_bracket",)),
        (f"<tool_call>[{OSLO}</tool_call>", ("missing_bracket",)),
        ('<tool_call>{"name": "lookup", "arguments": {"town": "O\ns"}}</tool_call>', ("control_characters",)),
        ('<tool_call>{"name": "lookup", "parameters": {}}</tool_call>', ("parameters",)),
        ('<tool_call>{"name": "lookup", "arguments": "{}"}</tool_call>', ("encoded_arguments",)),
        ('<tool_call>{"name": "lookup", "arguments": ""}</tool_call>', ("empty_arguments",)),
        (f"<tool_call>{XML}</tool_call>", ()),
        (f"<tool_call>{XML}", ("missing_closer",)),
        (XML, ("missing_opener",)),
        (f"<tool_call>{XML.replace('</parameter>', '')}</tool_call>", ("missing_parameter_end",)),
        (f"<tool_call>{XML.replace('</function>', '')}</tool_call>", ("missing_function_end",)),
    ],
)
def test_what_was_mended_is_named(text, repairs):
    (call,) = parse(text, [{"name": "lookup", "parameters": {"properties": {"town": {"type": "string"}}}}]).calls
    assert call.repairs == repairs


@pytest.mark.parametrize(
    ("text", "form"),
    [
        (f"```json\n{OSLO}\n```", "fence"),
        (f"<tools>\n{OSLO}\n</tools>", "tag"),
        (f"{OSLO}\n</tool_call>", "missing_opener"),
        (OSLO, "bare"),
    ],
)
def test_a_salvaged_call_says_its_form_and_its_place(text, form):
    thought = "<think>\nHm.\n</think>\n\n"
    (call,) = parse(thought + text, [{"name": "lookup", "parameters": {"type": "object"}}], salvage=True).calls
    assert call.repairs == (f"salvaged:{form}",)
    assert call.raw == OSLO
    assert (thought + text)[slice(*call.span)] == OSLO


def test_the_calls_of_a_list_have_places_of_their_own():
    text = f"Go.\n<tool_call>[{OSLO}, {OSLO}]</tool_call>"
    assert [text[slice(*call.span)] for call in parse(text).calls] == [OSLO, OSLO]


def test_a_call_that_the_prompt_opened_has_its_place_in_the_answer():
    text = 'lookup", "arguments": {}}\n</tool_call>'
    told = read(list(text), prefill='<think>\n\n</think>\n\n<tool_call>\n{"name": "')
    assert [type(event).__name__ for event in told] == [
        "CallStart",
        "CallName",
        "CallArgs",
        "CallArgs",
        "CallEnd",
        "End",
    ]
    assert told[4].call.raw == text
    assert told[4].call.span == (0, len(text))


def test_what_the_prompt_said_is_not_told_again():
    told = read(["Well", "."], prefill="<think>\nHm.\n</think>\n\n")
    assert told == [events.Text("Well"), events.Text("."), events.End("stop")]
    assert read(["b"], prefill="<think>\na ")[:2] == [events.ReasoningStart(), events.Reasoning(" b")]


@pytest.mark.parametrize(
    ("opening", "closing"),
    [
        ('<tool_call>\n{"name": "lookup", "arguments": {"town": "', '"}}\n</tool_call>'),
        ("<tool_call>\n<function=lookup>\n<parameter=town>\n", "\n</parameter>\n</function>\n</tool_call>"),
    ],
)
def test_text_and_arguments_are_told_at_once(opening, closing):
    """What a person waits for is not held back: after each piece all but a possible beginning of a tag is out."""
    tools = [{"name": "lookup", "parameters": {"properties": {"town": {"type": "string"}}}}]
    words = [f"word{number} " for number in range(50)]
    told = read([opening, *words, closing], tools=tools)
    deltas = [event.delta for event in told if isinstance(event, events.CallArgs)]
    assert sum(delta.strip('"') in words for delta in deltas) >= 48
    told = read(words)
    assert [event.delta.strip() for event in told[:-1]] == [word.strip() for word in words]


def test_text_behind_the_end_is_ignored_and_close_may_come_again():
    from qwen_tools import StreamParser

    parser = StreamParser()
    parser.feed("Hi.<|im_end|>")
    assert parser.feed("more") == []
    assert parser.close() == [events.End("stop")]
    assert parser.close() == [events.End("stop")]

"""Tasks: what a file of them says, and when calls are right."""

from __future__ import annotations

import json

import pytest

from qwen_tools import tasks
from qwen_tools.errors import UserError
from qwen_tools.messages import ToolCall


def expecting(*calls, **more) -> tasks.Task:
    return tasks.from_dict({"prompt": "?", "expect": list(calls), **more}, "1")


def add(a, b) -> ToolCall:
    return ToolCall("add", {"a": a, "b": b})


ADD = {"name": "add", "arguments": {"a": 19, "b": [23, 23.5]}}


@pytest.mark.parametrize("call", [add(19, 23), add(19.0, 23.5), ToolCall("add", {"b": 23, "a": 19})])
def test_right_calls(call):
    assert expecting(ADD).wrong_calls([call]) is None


@pytest.mark.parametrize(
    ("calls", "why"),
    [
        ([], "does not call add"),
        ([add(19, 23), add(19, 23)], "2 calls, not 1"),
        ([ToolCall("sum", {"a": 19, "b": 23})], "calls sum, not add"),
        ([add(19, "23")], 'b of add is "23", not 23 or 23.5'),
        ([add(True, 23)], "a of add is true, not 19"),
        ([ToolCall("add", {"a": 19})], "add lacks b"),
        ([ToolCall("add", {"a": 19, "b": 23, "c": 1})], "add has c, which was not asked for"),
        ([ToolCall("add", [19, 23])], "the arguments of add are no object"),
    ],
)
def test_wrong_calls_and_why(calls, why):
    assert expecting(ADD).wrong_calls(calls) == why


def test_several_calls_are_right_in_any_order():
    # The first expectation takes either call: the second must still find its own.
    task = expecting({"name": "sqrt", "arguments": {"value": [4, 9]}}, {"name": "sqrt", "arguments": {"value": 4}})
    four, nine = ToolCall("sqrt", {"value": 4}), ToolCall("sqrt", {"value": 9})
    assert task.wrong_calls([four, nine]) is None
    assert task.wrong_calls([nine, four]) is None
    assert task.wrong_calls([four, four]) is None
    assert task.wrong_calls([nine, nine]) == "value of sqrt is 9, not 4"


def test_an_optional_argument_may_be_left_out_but_not_be_wrong():
    task = expecting({"name": "weather", "arguments": {"city": "Oslo"}, "optional": {"unit": "celsius"}})
    assert task.wrong_calls([ToolCall("weather", {"city": "Oslo"})]) is None
    assert task.wrong_calls([ToolCall("weather", {"city": "Oslo", "unit": "celsius"})]) is None
    assert "unit" in task.wrong_calls([ToolCall("weather", {"city": "Oslo", "unit": "kelvin"})])


def test_a_list_that_is_a_value_stands_in_a_list():
    task = expecting({"name": "sum", "arguments": {"values": [[1, 2]]}})
    assert task.wrong_calls([ToolCall("sum", {"values": [1.0, 2]})]) is None
    assert task.wrong_calls([ToolCall("sum", {"values": [2, 1]})]) == "values of sum is [2, 1], not [1, 2]"


def test_no_call_is_right():
    task = tasks.from_dict({"prompt": "Hi", "expect": "no call", "answer": "Hello"}, "1")
    assert task.wrong_calls([]) is None
    assert task.wrong_calls([add(1, 2)]) == "calls add, where no call is right"
    assert task.wrong_answer("Hello!") is None
    assert task.wrong_answer("Hi!") == 'the answer does not hold "Hello"'


@pytest.mark.parametrize(
    ("value", "other", "equal"),
    [
        (2, 2.0, True),
        (1, True, False),
        (None, None, True),
        ({"a": [1]}, {"a": [1.0]}, True),
        ({"a": 1}, {"a": 1, "b": 2}, False),
        ("2", 2, False),
        ([1, 2], [1], False),
    ],
)
def test_equal_values(value, other, equal):
    assert tasks.same(value, other) is equal
    assert tasks.same(other, value) is equal


def test_a_file_says_all_of_it(tmp_path):
    path = tmp_path / "tasks.jsonl"
    tool = {"type": "function", "function": {"name": "add", "description": "Sum.", "parameters": {"type": "object"}}}
    lines = [
        {"prompt": "What is 19 + 23?", "expect": [ADD], "answer": "42", "tools": [tool]},
        {"id": "x", "messages": [{"role": "system", "content": "Be terse."}, {"role": "user", "content": "Hi"}]},
    ]
    path.write_text("\n\n".join(map(json.dumps, lines)), encoding="utf-8")
    first, second = tasks.load(str(path))
    assert (first.id, first.question, first.answer) == ("1", "What is 19 + 23?", "42")
    assert first.tools.names() == ["add"]
    assert (
        tasks.from_dict({"prompt": first.question, **first.to_dict() | {"question": None}}, "1").expect == first.expect
    )
    assert (second.id, second.question, second.tools, second.expect) == ("x", "Hi", None, None)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("{", "line 2: not JSON"),
        ("[]", "line 2: a task must be an object"),
        ("{}", "line 2: a task must have a prompt"),
        ('{"prompt": "a", "messages": []}', "line 2: a task must have a prompt"),
        ('{"messages": []}', "line 2: messages must be"),
        ('{"messages": [{"role": "king", "content": "a"}]}', "line 2: message 1"),
        ('{"prompt": 5}', "line 2"),
        ('{"prompt": "a", "tools": {}}', "line 2: tools must be"),
        ('{"prompt": "a", "tools": [{}]}', "line 2: a tool must be"),
        ('{"prompt": "a", "expect": "add"}', "line 2: expect must be"),
        ('{"prompt": "a", "expect": [{"arguments": {}}]}', "line 2: expect must be"),
        ('{"prompt": "a", "expect": [{"name": "a", "arguments": []}, {"name": "a", "arguments": [1]}]}', "line 2: arg"),
        ('{"prompt": "a", "answer": 42}', "line 2: answer must be"),
    ],
)
def test_what_is_wrong_in_a_file_is_named_by_its_line(tmp_path, line, said):
    path = tmp_path / "tasks.jsonl"
    path.write_text('{"prompt": "fine"}\n' + line)
    with pytest.raises(UserError, match=said) as caught:
        tasks.load(str(path))
    assert "\n" not in str(caught.value)


def test_a_file_that_is_not_there_or_empty(tmp_path):
    with pytest.raises(UserError, match="cannot read"):
        tasks.load(str(tmp_path / "none.jsonl"))
    (tmp_path / "empty.jsonl").write_text("\n")
    with pytest.raises(UserError, match="holds no task"):
        tasks.load(str(tmp_path / "empty.jsonl"))

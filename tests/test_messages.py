"""What people send as messages is read, and what no raw prompt can hold is refused by number."""

import json

import pytest

from qwen_tools.errors import UserError
from qwen_tools.messages import Message, ToolCall, as_dicts, as_messages


def call(name="f", arguments="{}", **more):
    return {"type": "function", "function": {"name": name, "arguments": arguments}, **more}


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ({"content": None}, ""),
        ({}, ""),
        ({"content": []}, ""),
        ({"content": "7"}, "7"),
        ({"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}, "ab"),
        ({"content": [{"type": "input_text", "text": "a"}, "b"]}, "ab"),
    ],
)
@pytest.mark.parametrize("role", ["system", "user", "assistant"])
def test_every_form_of_content(role, content, text):
    assert as_messages([{"role": role, **content}]) == [Message(role, text)]


@pytest.mark.parametrize(
    ("arguments", "value"),
    [
        ({"a": 1}, {"a": 1}),
        ('{"a": 1}', {"a": 1}),
        ('{"b": 1e-05, "a": 12345678901234567890}', {"b": 1e-05, "a": 12345678901234567890}),
        ('"{\\"a\\": 1}"', {"a": 1}),
        ("", {}),
        (None, {}),
        ("null", {}),
    ],
)
def test_every_form_of_arguments(arguments, value):
    (message,) = as_messages([{"role": "assistant", "content": None, "tool_calls": [call(arguments=arguments)]}])
    assert message.calls[0].arguments == value
    assert list(message.calls[0].arguments) == list(value), "the order of the keys is kept"


@pytest.mark.parametrize("text", ["{'a': 1}", "[" * 100_000, '{"a": NaN}', '{"a": 1e999}', '{"a": "\\ud800"}'])
def test_arguments_that_are_no_json_stay_as_they_are_and_are_marked(text):
    """A client sends back what a model once wrote; the conversation goes on."""
    (message,) = as_messages([{"role": "assistant", "tool_calls": [call(arguments=text)]}])
    (read,) = message.calls
    assert [problem.kind for problem in read.problems] == ["invalid_json"]
    assert message.to_dict()["tool_calls"][0]["function"]["arguments"] == text


@pytest.mark.parametrize(
    ("text", "kept"),
    [('{"a":1}', True), ('{ "a" : 1.0e0 }', True), ('"{\\"a\\": 1}"', False), ('{"a": "\n"}', False)],
)
def test_arguments_are_kept_byte_for_byte_where_they_hold(text, kept):
    (message,) = as_messages([{"role": "assistant", "tool_calls": [call(arguments=text)]}])
    written = message.to_dict()["tool_calls"][0]["function"]["arguments"]
    assert (written == text) is kept
    assert json.loads(written) == message.calls[0].arguments


def test_a_text_that_no_longer_holds_is_not_kept():
    stale = ToolCall("f", {"a": True}, arguments_text='{"a":1}')
    assert stale.arguments_json == '{"a": true}', "1 == True in Python, not in JSON"


def test_missing_arguments_and_an_unwrapped_call():
    (message,) = as_messages([{"role": "assistant", "tool_calls": [{"name": "f"}]}])
    assert message.calls == (ToolCall("f", {}),)


def test_developer_is_system_and_unknown_keys_are_ignored():
    messages = as_messages([{"role": "developer", "content": "s", "refusal": None, "audio": {"id": 1}, "weight": 0}])
    assert messages == [Message("system", "s")]


@pytest.mark.parametrize("key", ["reasoning_content", "reasoning"])
def test_reasoning_under_both_its_names(key):
    assert as_messages([{"role": "assistant", "content": "4", key: "Easy."}])[0].reasoning == "Easy."


def test_results_out_of_order_are_sorted_by_id():
    messages = as_messages(
        [
            {"role": "user", "content": "?"},
            {"role": "assistant", "tool_calls": [call("f", id="1"), call("g", id="2"), call("h", id="3")]},
            {"role": "tool", "tool_call_id": "3", "content": "H"},
            {"role": "tool", "tool_call_id": "1", "content": "F"},
            {"role": "tool", "tool_call_id": "2", "content": "G"},
            {"role": "user", "content": "!"},
        ]
    )
    assert [message.content for message in messages] == ["?", "", "F", "G", "H", "!"]


def test_results_without_ids_pair_by_position():
    messages = [
        {"role": "assistant", "tool_calls": [call("f", id="1"), call("g", id="2")]},
        {"role": "tool", "content": "F"},
        {"role": "tool", "content": "G"},
    ]
    assert [message.content for message in as_messages(messages)] == ["", "F", "G"]


IMAGE = {"type": "image_url", "image_url": {"url": "data:"}}
CALLING = {"role": "assistant", "tool_calls": [call("f", id="1"), call("g", id="2")]}


@pytest.mark.parametrize(
    ("messages", "number", "reason"),
    [
        ([{"role": "user", "content": "a"}, {"role": "user", "content": [IMAGE]}], 2, "image_url"),
        ([{"role": "user", "content": "a"}, {"role": "tool", "content": "b"}], 2, "without a call"),
        ([{"role": "tool", "content": "b"}], 1, "without a call"),
        ([CALLING, *[{"role": "tool", "content": "b"}] * 3], 4, "without a call"),
        ([CALLING, {"role": "user"}, {"role": "tool", "content": "b"}], 3, "without a call"),
        ([CALLING, {"role": "tool", "tool_call_id": "9", "content": "b"}], 2, "'9'"),
        ([CALLING, *[{"role": "tool", "tool_call_id": "1", "content": "b"}] * 2], 3, "'1'"),
        ([CALLING, {"role": "tool", "tool_call_id": "2", "content": "b"}], 2, "'1' is missing"),
        ([{"role": "function", "content": "b"}], 1, "role: unknown value"),
        ([{"content": "b"}], 1, "role: must be given"),
        ([{"role": "user", "content": {"text": "b"}}], 1, "an object"),
        ([{"role": "user", "content": 7}], 1, "a number"),
        ([{"role": "user", "content": [7]}], 1, "a number"),
        (["hello"], 1, "text"),
        ([None], 1, "null"),
        ([{"role": "assistant", "tool_calls": [call(arguments={"a": float("nan")})]}], 1, "cannot be written as JSON"),
        ([{"role": "assistant", "tool_calls": [{"function": {}}]}], 1, "name"),
        ([{"role": "assistant", "tool_calls": {"name": "f"}}], 1, "tool_calls: must be a list"),
        ([{"role": "tool", "tool_call_id": 7}], 1, "tool_call_id: must be text"),
    ],
)
def test_what_cannot_be_rendered_is_named_by_number(messages, number, reason):
    with pytest.raises(UserError) as refused:
        as_messages(messages)
    assert str(refused.value).startswith(f"message {number}: ")
    assert reason in str(refused.value)
    assert "\n" not in str(refused.value)


def test_messages_pass_unchanged():
    messages = [
        Message("user", "?"),
        Message("assistant", raw="x", token_ids=(1, 2), calls=(ToolCall("f", {}),)),
        Message("tool", "r"),
    ]
    assert as_messages(messages) == messages


def test_a_message_survives_the_way_to_openai_and_back():
    message = Message("assistant", "é", "hm", (ToolCall("f", {"b": "é", "a": 1.5}, id="x"), ToolCall("g", {}, id="y")))
    data = message.to_dict()
    assert data["tool_calls"][0] == call("f", '{"b": "é", "a": 1.5}', id="x")
    assert Message.from_dict(json.loads(json.dumps(data))) == message
    assert Message("user", "a", name="me").to_dict() == {"role": "user", "content": "a", "name": "me"}
    assert Message("assistant", calls=(ToolCall("f", {}),)).to_dict()["content"] is None


def test_ids_are_made_where_they_are_missing():
    messages = [
        Message("user", "?"),
        Message("assistant", calls=(ToolCall("f", {}), ToolCall("g", {}, id="kept"))),
        Message("tool", "F"),
        Message("tool", "G"),
    ]
    dicts = as_dicts(messages)
    assert [call["id"] for call in dicts[1]["tool_calls"]] == ["call_2_1", "kept"]
    assert [data["tool_call_id"] for data in dicts[2:]] == ["call_2_1", "kept"]
    assert as_dicts(messages) == dicts
    assert [message.content for message in as_messages([*dicts[:2], dicts[3], dicts[2]])] == [
        "?",
        "",
        "F",
        "G",
    ]

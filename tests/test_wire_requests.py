"""Requests of three APIs: read, written, carried into each other; and what is wrong with one is named by its place."""

import json
import re
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter
from wire_bodies import BODIES, json_values, mutated, openai_bodies

from qwen_tools.messages import Message, ToolCall, as_messages
from qwen_tools.tools import Tool
from qwen_tools.wire import Request, Sampling, WireError, anthropic, loss, openai, responses

FORMATS = {"openai": openai, "responses": responses, "anthropic": anthropic}
few = settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def said(request):
    """What a request says, without ids; neighbouring answers are one, and an empty message says nothing."""
    result = []
    for message in as_messages(request.messages):
        calls = [(call.name, call.arguments) for call in message.calls]
        if message.role == "tool" or message.content or calls:
            if result and result[-1][0] == message.role == "assistant":
                _, text, made = result.pop()
                result.append(("assistant", text + message.content, made + calls))
            else:
                result.append((message.role, message.content, calls))
    return result


@pytest.mark.parametrize("name", FORMATS)
@few
@given(data=st.data())
def test_a_request_goes_back_into_its_own_format_as_it_was(name, data):
    body = data.draw(BODIES[name])
    assert FORMATS[name].write_request(FORMATS[name].read_request(body)) == in_call_order(body, name)


def in_call_order(body, name):
    """The same body with the results of a turn in the order of its calls, which is free in every format."""
    body = json.loads(json.dumps(body))
    if name == "openai":
        _sort_runs(
            body["messages"], lambda m: m.get("tool_call_id"), lambda m: [c["id"] for c in m.get("tool_calls", ())]
        )
    elif name == "responses" and isinstance(body["input"], list):
        _sort_runs(body["input"], lambda i: i.get("call_id") if "output" in i else None, lambda i: [i.get("call_id")])
    else:
        order = []
        for message in body["messages"] if name == "anthropic" else ():
            if isinstance(message["content"], list):
                _sort(message["content"], order, lambda b: b.get("tool_use_id"))
                order = [block["id"] for block in message["content"] if block["type"] == "tool_use"]
    return body


def _sort_runs(items, answers, asks):
    order = []
    start = 0
    while start < len(items):
        end = start
        while end < len(items) and answers(items[end]) is not None:
            end += 1
        if end > start:
            items[start:end] = sorted(items[start:end], key=lambda item: order.index(answers(item)))
            order, start = [], end
        else:
            order += asks(items[start])
            start += 1


def _sort(blocks, order, answers):
    run = [block for block in blocks if answers(block) is not None]
    blocks[: len(run)] = sorted(run, key=lambda block: order.index(answers(block)))


@few
@given(data=st.data())
@pytest.mark.parametrize("source", FORMATS)
@pytest.mark.parametrize("target", FORMATS)
def test_a_conversation_survives_another_format(source, target, data):
    if source == target:
        return
    request = FORMATS[source].read_request(data.draw(BODIES[source]))
    body = FORMATS[target].write_request(request)
    json.dumps(body)
    again = FORMATS[target].read_request(body)
    back = FORMATS[source].read_request(FORMATS[source].write_request(again))
    for other in (again, back):
        if "anthropic" in (source, target):  # one system text, at the beginning
            assert [each for each in said(other) if each[0] != "system"] == [
                each for each in said(request) if each[0] != "system"
            ]
        else:
            assert said(other) == said(request)
    assert [(tool.name, dict(tool.parameters)) for tool in again.tools] == [
        (tool.name, dict(tool.parameters)) for tool in request.tools
    ]
    if request.tools:
        assert again.tool_choice == request.tool_choice or request.allowed is not None
        assert again.parallel_calls == request.parallel_calls or request.tool_choice == "none"
    assert again.response_schema == request.response_schema
    assert again.settings.temperature == request.settings.temperature


@few
@given(body=openai_bodies())
def test_what_openai_and_anthropic_are_sent_fits_their_types(body):
    from anthropic.types import message_create_params as theirs
    from openai.types.chat import completion_create_params as ours

    request = openai.read_request(body)
    request = replace(request, meta={}, messages=[replace(message, meta={}) for message in request.messages])
    sent = openai.write_request(request)
    TypeAdapter(list[ours.ChatCompletionMessageParam]).validate_python(sent["messages"])
    TypeAdapter(list[ours.ChatCompletionToolUnionParam]).validate_python(sent.get("tools", []))
    sent = anthropic.write_request(request)
    TypeAdapter(list[theirs.MessageParam]).validate_python(sent["messages"])
    TypeAdapter(list[theirs.ToolUnionParam]).validate_python(sent.get("tools", []))


@few
@given(body=openai_bodies())
def test_anthropic_orders_roles_and_results_as_it_demands(body):
    sent = anthropic.write_request(openai.read_request(body))
    waiting = set()
    for message in sent["messages"]:
        blocks = message["content"] if isinstance(message["content"], list) else []
        kinds = [block["type"] for block in blocks]
        assert message["role"] != "system"
        if message["role"] == "user":
            results = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
            assert set(results) == waiting
            assert kinds[: len(results)] == ["tool_result"] * len(results), "results first"
            waiting = set()
        else:
            assert not waiting
            assert all(block["text"] for block in blocks if block["type"] == "text"), "no empty text"
            waiting = {block["id"] for block in blocks if block["type"] == "tool_use"}


@pytest.mark.parametrize("name", FORMATS)
@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_bad_input_is_an_error_that_names_a_field_and_nothing_else(name, data):
    body = data.draw(json_values | mutated(BODIES[name]))
    refused = None
    try:
        request = FORMATS[name].read_request(body)
    except WireError as error:
        refused = error
    if refused is None:
        FORMATS[name].write_request(request)
        return
    assert "\n" not in str(refused)
    assert str(refused).startswith(refused.field)
    assert_exists(body, refused.field)


def assert_exists(body, field):
    """All but the last step of a place is really there."""
    steps = re.findall(r"[^.\[\]]+|\[\d+\]", field)
    for step in steps[:-1]:
        body = body[int(step[1:-1])] if step.startswith("[") else body.get(step)
        if body is None:
            return


@pytest.mark.parametrize(
    ("name", "change", "field"),
    [
        ("openai", {"messages": []}, "messages"),
        ("openai", {"messages": "Hi"}, "messages"),
        ("openai", {"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, "messages[0].content[0]"),
        ("openai", {"messages": [{"role": "robot", "content": ""}]}, "messages[0].role"),
        (
            "openai",
            {"messages": [{"role": "assistant", "tool_calls": [{"id": "1"}]}]},
            "messages[0].tool_calls[0].name",
        ),
        ("openai", {"messages": [{"role": "tool", "content": "", "tool_call_id": "1"}]}, "messages[0]"),
        ("openai", {"temperature": 3}, "temperature"),
        ("openai", {"temperature": "hot"}, "temperature"),
        ("openai", {"max_tokens": 0}, "max_tokens"),
        ("openai", {"max_tokens": 1.5}, "max_tokens"),
        ("openai", {"n": 2}, "n"),
        ("openai", {"stop": [1]}, "stop[0]"),
        ("openai", {"stream": "yes"}, "stream"),
        ("openai", {"tools": [{"type": "custom", "custom": {}}]}, "tools[0].type"),
        ("openai", {"tools": [{"type": "function", "function": {"name": ""}}]}, "tools[0].function.name"),
        ("openai", {"tools": [{"function": {"name": "f", "parameters": []}}]}, "tools[0].function.parameters"),
        ("openai", {"tools": [{"function": {"name": "f"}}, {"function": {"name": "f"}}]}, "tools[1]"),
        ("openai", {"tool_choice": "maybe"}, "tool_choice"),
        ("openai", {"tool_choice": {"type": "function", "function": {"name": "g"}}}, "tool_choice.function.name"),
        ("openai", {"response_format": {"type": "xml"}}, "response_format.type"),
        ("openai", {"functions": []}, "functions"),
        ("responses", {"input": []}, "input"),
        ("responses", {"input": [{"type": "item_reference", "id": "1"}]}, "input[0].type"),
        ("responses", {"previous_response_id": "resp_1"}, "previous_response_id"),
        ("responses", {"input": [{"type": "function_call_output", "call_id": "x", "output": ""}]}, "input[0].call_id"),
        ("responses", {"tools": [{"type": "web_search"}]}, "tools[0].type"),
        ("responses", {"input": [{"type": "function_call", "name": "f"}]}, "input[0].call_id"),
        ("anthropic", {"messages": [{"role": "system", "content": ""}]}, "messages[0].role"),
        ("anthropic", {"messages": [{"role": "user", "content": [{"type": "image"}]}]}, "messages[0].content[0]"),
        ("anthropic", {"messages": [{"role": "user", "content": 7}]}, "messages[0].content"),
        ("anthropic", {"tool_choice": {"type": "tool"}}, "tool_choice.name"),
        ("anthropic", {"tools": [{"type": "bash_20250124", "name": "bash"}]}, "tools[0].type"),
        ("anthropic", {"stop_sequences": [None]}, "stop_sequences[0]"),
        (
            "anthropic",
            {
                "messages": [
                    {"role": "assistant", "content": [{"type": "tool_use", "id": "1", "name": "f", "input": "{}"}]}
                ]
            },
            "messages[0].content[0].input",
        ),
    ],
)
def test_the_field_is_named(name, change, field):
    key = "input" if name == "responses" else "messages"
    with pytest.raises(WireError) as refused:
        FORMATS[name].read_request({"model": "m", key: [{"role": "user", "content": "Hi"}], **change})
    assert refused.value.field == field


TURN = [
    {"role": "user", "content": "?"},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": "a", "type": "function", "function": {"name": "math.sqrt", "arguments": '{"x":2.0}'}},
            {"id": "b", "type": "function", "function": {"name": "math_sqrt", "arguments": "{}"}},
        ],
    },
    {"role": "tool", "tool_call_id": "b", "content": "B"},
    {"role": "tool", "tool_call_id": "a", "content": "A"},
]
MATH = [
    {"type": "function", "function": {"name": "math.sqrt"}},
    {"type": "function", "function": {"name": "math_sqrt"}},
]


@pytest.mark.parametrize("name", FORMATS)
def test_names_that_a_format_does_not_allow_are_changed_and_found_again(name):
    choice = {"type": "function", "function": {"name": "math.sqrt"}}
    request = openai.read_request({"messages": TURN, "tools": MATH, "tool_choice": choice})
    request = replace(request, meta={}, messages=[replace(message, meta={}) for message in request.messages])
    body = FORMATS[name].write_request(request)
    without = json.dumps({key: value for key, value in body.items() if key != "metadata"})
    assert "math.sqrt" not in without
    assert '"math_sqrt_2"' in without, "math_sqrt is taken"
    again = FORMATS[name].read_request(body)
    assert [tool.name for tool in again.tools] == ["math.sqrt", "math_sqrt"]
    assert said(again) == said(request)
    assert again.tool_choice == "math.sqrt"
    assert loss.of_request(request, "qwen", name).changed[-1:] != []


def test_results_follow_their_ids_and_a_missing_one_is_an_error():
    request = openai.read_request({"messages": TURN})
    sent = anthropic.write_request(request)
    assert [block["content"] for block in sent["messages"][2]["content"]] == ["A", "B"]
    with pytest.raises(WireError) as refused:
        openai.read_request({"messages": [*TURN[:3], {"role": "user", "content": "!"}]})
    assert refused.value.field.startswith("messages[")
    with pytest.raises(WireError) as refused:
        openai.read_request({"messages": [*TURN[:2], {"role": "user", "content": "!"}]})
    assert refused.value.field == "messages[1]"


def test_ids_are_made_from_positions_and_bad_ones_replaced_on_both_sides():
    calls = (ToolCall("f", {}), ToolCall("g", {}, id="a b"), ToolCall("h", {}, id="ok"), ToolCall("i", {}, id="ok"))
    results = [Message("tool", str(number)) for number in range(4)]
    request = Request([Message("user", "?"), Message("assistant", calls=calls), *results])
    for _ in range(2):
        body = openai.write_request(request)
        made = [call["id"] for call in body["messages"][1]["tool_calls"]]
        assert made == ["call_2_1", "call_2_2", "ok", "call_2_4"]
        assert [message["tool_call_id"] for message in body["messages"][2:]] == made
    assert [block["id"] for block in anthropic.write_request(request)["messages"][1]["content"]][:2] == [
        "toolu_2_1",
        "toolu_2_2",
    ]


def test_arguments_go_through_byte_for_byte():
    request = openai.read_request({"messages": TURN})
    body = responses.write_request(request)
    assert body["input"][1]["arguments"] == '{"x":2.0}'
    assert openai.write_request(responses.read_request(body))["messages"][1]["tool_calls"][0]["function"][
        "arguments"
    ] == ('{"x":2.0}')


def test_settings_are_read_from_and_written_to_every_format():
    bodies = {
        "openai": {"max_completion_tokens": 5, "temperature": 0.5, "top_p": 0.25, "seed": 7, "stop": ["x"], "top_k": 3},
        "responses": {"max_output_tokens": 5, "temperature": 0.5, "top_p": 0.25},
        "anthropic": {"max_tokens": 5, "temperature": 0.5, "top_p": 0.25, "top_k": 3, "stop_sequences": ["x"]},
    }
    expected = {
        "openai": Sampling(5, 0.5, 0.25, 3, 7, ("x",)),
        "responses": Sampling(5, 0.5, 0.25),
        "anthropic": Sampling(5, 0.5, 0.25, 3, None, ("x",)),
    }
    for name, body in bodies.items():
        key = "input" if name == "responses" else "messages"
        request = FORMATS[name].read_request({key: [{"role": "user", "content": "Hi"}], **body})
        assert request.settings == expected[name]
        written = FORMATS[name].write_request(replace(request, meta={}))
        assert {key: written[key] for key in body} == body


def test_a_request_that_was_changed_keeps_what_only_its_format_says():
    body = {
        "model": "m",
        "messages": [{"role": "user", "content": "Hi", "weight": 1}],
        "tools": [{"type": "function", "function": {"name": "f", "strict": True}}],
        "user": "u1",
        "temperature": 1,
    }
    request = openai.read_request(body)
    assert request.lost == ["messages[0].weight", "user"]
    changed = replace(
        request, settings=Sampling(temperature=0.5), messages=[*request.messages, Message("assistant", "Hello")]
    )
    written = openai.write_request(changed)
    assert written == {
        **body,
        "temperature": 0.5,
        "messages": [*body["messages"], {"role": "assistant", "content": "Hello"}],
    }
    stale = replace(request, messages=[replace(request.messages[0], content="Bye")])
    assert openai.write_request(stale)["messages"] == [{"role": "user", "content": "Bye"}]


def test_a_tool_without_parameters_gets_the_object_that_anthropic_demands():
    request = Request([Message("user", "Hi")], [Tool("f", "F.")])
    assert anthropic.write_request(request)["tools"] == [
        {"name": "f", "description": "F.", "input_schema": {"type": "object", "properties": {}}}
    ]
    assert responses.write_request(request)["tools"][0]["strict"] is False


@pytest.mark.parametrize("name", FORMATS)
def test_strict_of_a_tool_is_kept_where_it_is_on_and_never_added(name):
    for on in (True, False):
        function = {"name": "f", "parameters": {"type": "object", "properties": {}}, **({"strict": True} if on else {})}
        tool = {"type": "function", "function": function}
        body = {"messages": [{"role": "user", "content": "Hi"}], "tools": [tool]}
        there = FORMATS[name].write_request(openai.read_request(body))
        again = FORMATS[name].read_request(there)
        assert again.lost == []
        assert openai.write_request(again)["tools"] == [tool]


def test_an_attempt_that_gave_no_call_is_sent_as_a_call_that_says_so():
    failed = ToolCall("", {}, raw="<tool_call>{", problems=())
    request = Request([Message("user", "?"), Message("assistant", calls=(failed,)), Message("tool", "broken")])
    call = openai.write_request(request)["messages"][1]["tool_calls"][0]["function"]
    assert call["name"] == "invalid_call"
    assert json.loads(call["arguments"]) == {"raw": "<tool_call>{"}
    assert any("invalid_call" in line for line in loss.of_request(request, "qwen", "openai").lost)


def test_a_result_behind_later_items_goes_to_its_call():
    items = [
        {"role": "user", "content": "?"},
        {"type": "function_call", "call_id": "1", "name": "f", "arguments": "{}"},
        {"type": "function_call", "call_id": "2", "name": "g", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "2", "output": "G"},
        {"role": "user", "content": "well?"},
        {"type": "function_call_output", "call_id": "1", "output": "F"},
    ]
    request = responses.read_request({"input": items})
    assert [message.content for message in as_messages(request.messages)] == ["?", "", "F", "G", "well?"]
    assert any("input[5]" in line for line in request.lost)

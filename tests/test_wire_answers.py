"""Answers and their streams: the vendors' own libraries put our streams together to the same object as the whole
answer, and our readers understand theirs.
"""

import json
from pathlib import Path

import pytest
from anthropic.lib.streaming._messages import accumulate_event
from anthropic.types import Message as AnthropicMessage
from anthropic.types import RawMessageStreamEvent
from conversations import texts
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from openai.lib.streaming.chat import ChatCompletionStreamState
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from openai.types.responses import Response, ResponseStreamEvent
from pydantic import TypeAdapter
from wire_bodies import json_values, values_of, wire_names

from qwen_tools import events as ev
from qwen_tools.events import Usage
from qwen_tools.fields import WireError
from qwen_tools.messages import Message
from qwen_tools.parser import StreamParser
from qwen_tools.wire import Request, anthropic, openai, responses, sse
from qwen_tools.wire.answer import InOrder, events_of, message_of

FORMATS = {"openai": openai, "responses": responses, "anthropic": anthropic}
IDS = {"openai": "chatcmpl-x1", "responses": "resp_x1", "anthropic": "msg_x1"}
USAGE = Usage(prompt_tokens=10, cached_tokens=4, new_tokens=7)
ANTHROPIC_EVENT = TypeAdapter(RawMessageStreamEvent)
RESPONSE_EVENT = TypeAdapter(ResponseStreamEvent)
TOOLS = [
    {"name": "f", "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}}},
    {"name": "g"},
]
CASES = [json.loads(line) for line in Path(__file__).with_name("cases").joinpath("rules.jsonl").open(encoding="utf-8")]


def read(text, finish="stop", size=3, tools=()):
    parser = StreamParser(tools)
    events = [event for start in range(0, len(text), size) for event in parser.feed(text[start : start + size])]
    return events + parser.close(finish)


def stream(name, events, finish="stop", **more):
    writer = FORMATS[name].StreamWriter(id=IDS[name], created=5, model="m", include_usage=True, **more)
    return [chunk for event in events for chunk in writer.feed(event)] + writer.close(finish, USAGE)


def whole(name, events, finish="stop"):
    return FORMATS[name].response(
        message_of(events, finish), id=IDS[name], created=5, model="m", finish=finish, usage=USAGE
    )


def by_openai(chunks):
    """What their library makes of a stream, as plain JSON."""
    state = ChatCompletionStreamState()
    for chunk in chunks:
        state.handle_chunk(ChatCompletionChunk.model_validate(chunk))
    return state.current_completion_snapshot.to_dict()


def by_anthropic(events):
    snapshot, buffers = None, {}
    for event in events:
        parsed = ANTHROPIC_EVENT.validate_python(event)
        snapshot = accumulate_event(event=parsed, current_snapshot=snapshot, json_bufs=buffers)
    return snapshot.to_dict()


def by_responses(events):
    """Their typed events; the items that were done are those of the whole answer."""
    for number, event in enumerate(events):
        RESPONSE_EVENT.validate_python(event)
        assert event["sequence_number"] == number
    done = [event["item"] for event in events if event["type"] == "response.output_item.done"]
    assert done == events[-1]["response"]["output"]
    texts = {}
    for event in events:
        if event["type"].endswith(".delta"):
            key = event["item_id"]
            texts[key] = texts.get(key, "") + event["delta"]
    for item in done:
        said = item["arguments"] if item["type"] == "function_call" else item["content"][0]["text"]
        assert texts.get(item["id"], "") == said
    return events[-1]["response"]


def plain(completion):
    """A completion as everybody reads it: without nulls and the streams' own fields."""
    choice = completion["choices"][0]
    message = {key: value for key, value in choice["message"].items() if value not in (None, "")}
    for call in message.get("tool_calls", ()):
        call.pop("index", None)
        call["function"].pop("parsed_arguments", None)
    message.pop("parsed", None)
    return {
        "id": completion["id"],
        "created": completion["created"],
        "model": completion["model"],
        "message": message,
        "finish_reason": choice["finish_reason"],
        "usage": completion["usage"],
    }


def assert_same(events, finish="stop"):
    """Stream and whole answer are the same thing to each vendor's library."""
    body = whole("openai", events, finish)
    ChatCompletion.model_validate(body)
    assert plain(by_openai(stream("openai", events, finish))) == plain(body)
    body = whole("anthropic", events, finish)
    AnthropicMessage.model_validate(body)
    made = by_anthropic(stream("anthropic", events, finish))
    assert {key: made.get(key) for key in body} == body
    body = whole("responses", events, finish)
    Response.model_validate(body)
    assert by_responses(stream("responses", events, finish)) == body


ANSWERS = {
    "text": "Hello.",
    "nothing": "",
    "a thought": "<think>\nhm\n</think>\n\nFour.",
    "a call": '<tool_call>\n{"name": "f", "arguments": {"a": 1}}\n</tool_call>',
    "text, two calls and text": 'I look.\n<tool_call>\n{"name": "f", "arguments": {"a": [1,2 ], "b": {"c": "}"}}}\n'
    '</tool_call>\n<tool_call>\n{"name": "g", "arguments": {}}\n</tool_call>\n\nDone.',
    "no arguments": '<tool_call>\n{"name": "g"}\n</tool_call>',
    "arguments as text": '<tool_call>\n{"name": "f", "arguments": "{\\"a\\": 1}"}\n</tool_call>',
    "arguments first": '<tool_call>\n{"arguments": {"a": 1}, "name": "f"}\n</tool_call>',
    "xml": "<tool_call>\n<function=f>\n<parameter=a>\n1\n</parameter>\n</function>\n</tool_call>",
    "a call without a name": 'See <tool_call>\n{"arguments": {}}\n</tool_call> there',
    "an unknown tool": '<tool_call>\n{"name": "nope", "arguments": {}}\n</tool_call>',
}


@pytest.mark.parametrize("size", [1, 7, 10_000])
@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS)
def test_a_stream_is_the_whole_answer_to_the_vendors_libraries(answer, size):
    assert_same(read(answer, size=size, tools=TOOLS))


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    parts=st.lists(
        st.sampled_from(["Hello", "é 计算 ", "\n\n", "{", "<b>"])
        | st.tuples(wire_names, st.dictionaries(st.sampled_from("ab"), values_of(texts), max_size=2)),
        max_size=6,
    ),
    size=st.integers(1, 9),
)
def test_any_answer_of_text_and_calls(parts, size):
    text = "".join(
        part
        if isinstance(part, str)
        else f"<tool_call>\n{json.dumps({'name': part[0], 'arguments': part[1]}, ensure_ascii=False)}\n</tool_call>"
        for part in parts
    )
    events = read(text, size=size)
    assert_same(events)
    message = message_of(events)
    for name, format_ in FORMATS.items():
        reader = format_.StreamReader()
        chunks = json.loads(json.dumps(stream(name, events)))
        again = [event for chunk in chunks for event in reader.feed(chunk)] + reader.close()
        assert reader.message.content == message.content
        assert reader.message.calls == message_of(again).calls
        assert [(call.name, call.arguments) for call in reader.message.calls] == [
            (call.name, call.arguments) for call in message.calls
        ]
        assert (reader.finish, reader.usage) == ("stop", USAGE)
        if name != "openai":
            assert [call.at for call in reader.message.calls] == [call.at for call in message.calls]
        read_again, finish, usage = format_.read_response(whole(name, events))
        assert (read_again.content, finish, usage) == (message.content, "stop", USAGE)


# Their accumulator takes arguments that are a list, on the way to being refused, and then complains about them.
@pytest.mark.filterwarnings("ignore:Pydantic serializer")
@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_every_answer_of_the_parsers_rules_is_a_valid_stream(case):
    """Also broken ones: what is announced and does not become whole is never finished as a call."""
    events = read(case["text"], case.get("finish", "stop"), tools=case.get("tools") or ())
    finish = case.get("finish", "stop")
    body = by_openai(stream("openai", events, finish))
    by_anthropic(stream("anthropic", events, finish))
    by_responses(stream("responses", events, finish))
    calls = [event.call for event in events if isinstance(event, ev.CallEnd)]
    made = body["choices"][0]["message"].get("tool_calls") or []
    whole_calls = [call for call in made if _is_json(call["function"]["arguments"])]
    assert [call["function"]["name"] for call in whole_calls] == [call.name for call in calls]
    reason = body["choices"][0]["finish_reason"]
    if len(whole_calls) < len(made):
        assert reason == "length"
    else:
        assert reason == ("length" if finish == "length" else "tool_calls" if made else "stop")


def _is_json(text):
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


@pytest.mark.parametrize("cut", range(0, 70, 3))
def test_a_call_that_was_cut_is_never_a_call(cut):
    answer = 'Well.\n<tool_call>\n{"name": "f", "arguments": {"a": "xyz"}}\n</tool_call>'
    events = read(answer[:cut], "length", tools=TOOLS)
    assert "tool_calls" not in whole("openai", events, "length")["choices"][0]["message"]
    assert whole("openai", events, "length")["choices"][0]["finish_reason"] == "length"
    assert whole("anthropic", events, "length")["stop_reason"] == "max_tokens"
    assert whole("responses", events, "length")["incomplete_details"] == {"reason": "max_output_tokens"}
    made = by_openai(stream("openai", events, "length"))["choices"][0]
    assert made["finish_reason"] == "length"
    assert not any(_is_json(call["function"]["arguments"] or "x") for call in made["message"].get("tool_calls") or ())
    made = by_anthropic(stream("anthropic", events, "length"))
    assert made["stop_reason"] == "max_tokens"
    made = by_responses(stream("responses", events, "length"))
    assert all(item["status"] == "incomplete" for item in made["output"] if item["type"] == "function_call")
    for name, format_ in FORMATS.items():
        reader = format_.StreamReader()
        for chunk in stream(name, events, "length"):
            reader.feed(chunk)
        reader.close()
        assert not any(call.name for call in reader.message.calls)
        assert reader.finish == "length"


def test_arguments_go_out_before_the_call_is_over():
    """And a brace that might close them is held back until it is certain."""
    writer = openai.StreamWriter(id="x", created=0, model="m")
    sent = []
    for event in read('<tool_call>\n{"name": "f", "arguments": {"a": {"b": 1}, "c": 2', size=1)[:-2]:
        sent += writer.feed(event)
    pieces = [
        call["function"]["arguments"] for chunk in sent for call in chunk["choices"][0]["delta"].get("tool_calls", ())
    ]
    assert "".join(pieces) == '{"a": {"b": 1}, "c": 2'
    assert len(pieces) > 10


def saying(text):
    """A call with a text as the beginning of an argument."""
    return '<tool_call>\n{"name": "f", "arguments": {"a": "x' + text + '", "b": 1}}\n</tool_call>'


def test_an_escape_is_sent_whole_or_not_at_all():
    """A client's reader gives up at one that is broken, and loses the whole answer."""
    for broken in (r"\d", r"\u12", r"\ud83d", r"\ud83dx"):
        events = read(saying(broken), size=1)
        made = by_openai(stream("openai", events))["choices"][0]
        assert made["finish_reason"] == "length"
        assert made["message"]["tool_calls"][0]["function"]["arguments"] == '{"a": "x'
        by_anthropic(stream("anthropic", events))
    for good in (r"\n", r"\u00e9", r"\ud83d\ude00", r"\\"):
        assert_same(read(saying(good), size=1))


def test_the_text_that_stopped_an_answer_is_named_to_anthropic():
    body = anthropic.response(message_of([]), id="x", model="m", finish="stop", stop_sequence="\n\n")
    assert (body["stop_reason"], body["stop_sequence"]) == ("stop_sequence", "\n\n")
    writer = anthropic.StreamWriter(id="x", model="m")
    assert writer.close("stop", stop_sequence="##")[-2]["delta"] == {
        "stop_reason": "stop_sequence",
        "stop_sequence": "##",
    }


def test_a_filtered_and_an_interrupted_answer():
    events = read("Half")
    reasons = {"content_filter": ("content_filter", "refusal"), "interrupted": ("length", "max_tokens")}
    for finish, (ours, theirs) in reasons.items():
        assert whole("openai", events, finish)["choices"][0]["finish_reason"] == ours
        assert whole("anthropic", events, finish)["stop_reason"] == theirs
    assert whole("responses", events, "content_filter")["incomplete_details"] == {"reason": "content_filter"}


# --- What servers really send ----------------------------------------------------------------------------------------


def chunk(delta=None, finish=None, **more):
    return {"choices": [{"index": 0, "delta": delta or {}, "finish_reason": finish}], **more}


def calls(*fragments):
    return chunk({"tool_calls": list(fragments)})


def piece(index=None, id=None, name=None, arguments=None, **more):  # noqa: A002 - its name on the wire
    function = {key: value for key, value in {"name": name, "arguments": arguments}.items() if value is not None}
    fragment = {"index": index, "id": id, "function": function, **more}
    return {key: value for key, value in fragment.items() if value is not None}


STREAMS = {
    "interleaved": (
        [
            calls(piece(0, "a", "f", ""), piece(1, "b", "g", "")),
            calls(piece(0, arguments='{"x"')),
            calls(piece(1, arguments='{"y"')),
            calls(piece(0, arguments=": 1}")),
            calls(piece(1, arguments=": 2}")),
        ],
        [("f", {"x": 1}, "a"), ("g", {"y": 2}, "b")],
    ),
    "names, types and ids repeated": (
        [calls(piece(0, "a", "f", part, type="function")) for part in ('{"x"', ": ", "1}")],
        [("f", {"x": 1}, "a")],
    ),
    "no index": (
        [
            calls(piece(None, "a", "f", "")),
            calls(piece(None, arguments='{"x": 1}')),
            calls(piece(None, "b", "g", '{"y": 2}')),
        ],
        [("f", {"x": 1}, "a"), ("g", {"y": 2}, "b")],
    ),
    "no index and no id": (
        [calls(piece(None, name="f", arguments='{"x": 1}')), calls(piece(None, name="g", arguments="{}"))],
        [("f", {"x": 1}, None), ("g", {}, None)],
    ),
    "no id": ([calls(piece(0, name="f", arguments="{}"))], [("f", {}, None)]),
    "no arguments at all": ([calls(piece(0, "a", "f"))], [("f", {}, "a")]),
    "arguments as an object": (
        [chunk({"tool_calls": [{"index": 0, "id": "a", "function": {"name": "f", "arguments": {"x": 1}}}]})],
        [("f", {"x": 1}, "a")],
    ),
    "empty lists beside text": (
        [chunk({"role": "assistant", "content": "Hi", "tool_calls": []}), chunk({"content": None, "tool_calls": None})],
        [],
    ),
    "the name after the first arguments": (
        [calls(piece(0, "a", None, '{"x"')), calls(piece(0, None, "f", ": 1}"))],
        [("f", {"x": 1}, "a")],
    ),
    "white space behind a call": (
        [calls(piece(0, "a", "f", "{}")), calls(piece(1, "b", "g", "{}")), calls(piece(0, arguments="\n"))],
        [("f", {}, "a"), ("g", {}, "b")],
    ),
}


@pytest.mark.parametrize(("chunks", "expected"), STREAMS.values(), ids=STREAMS)
def test_streams_of_other_servers_are_read(chunks, expected):
    reader = openai.StreamReader()
    events = [event for each in chunks for event in reader.feed(each)]
    events += reader.feed(chunk(finish="tool_calls" if expected else "stop")) + reader.close()
    assert [(call.name, call.arguments, call.id) for call in reader.message.calls] == expected
    assert reader.finish == "stop"
    # And they become streams of every other format, where calls must not interleave.
    by_anthropic(stream("anthropic", events))
    by_responses(stream("responses", events))
    assert len(by_openai(stream("openai", events))["choices"][0]["message"].get("tool_calls") or []) == len(expected)


def test_interleaved_calls_wait_for_the_open_one_and_no_longer():
    order = InOrder()
    events = [ev.CallStart(0), ev.CallStart(1), ev.CallArgs(1, "x"), ev.CallArgs(0, "y"), ev.Text("t")]
    assert [out for event in events for out in order.feed(event)] == [ev.CallStart(0), ev.CallArgs(0, "y")]
    ended = ev.CallError(0, None)
    assert order.feed(ended) == [ended, ev.CallStart(1), ev.CallArgs(1, "x")]
    assert order.close() == [ev.Text("t")]


def test_arguments_that_are_no_json_are_a_call_with_a_problem():
    reader = openai.StreamReader()
    reader.feed(calls(piece(0, "a", "f", '{"x": ')))
    reader.feed(chunk(finish="tool_calls"))
    reader.close()
    (call,) = reader.message.calls
    assert (call.name, call.arguments, [problem.kind for problem in call.problems]) == ("f", '{"x": ', ["invalid_json"])
    assert reader.message.to_dict()["tool_calls"][0]["function"]["arguments"] == '{"x": '


def test_a_stream_without_an_end_is_cut():
    for reader in (openai.StreamReader(), responses.StreamReader(), anthropic.StreamReader()):
        assert reader.close()[-1] == ev.End("length")


def test_signed_thoughts_of_anthropic_go_back_as_they_came():
    events = [
        {"type": "message_start", "message": {"usage": {"input_tokens": 5, "cache_read_input_tokens": 2}}},
        {"type": "ping"},
        {
            "type": "content_block_start",
            "index": 0,
            "content_block": {"type": "thinking", "thinking": "", "signature": ""},
        },
        {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "hm"}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "c2ln"}},
        {"type": "content_block_stop", "index": 0},
        {"type": "content_block_start", "index": 1, "content_block": {"type": "redacted_thinking", "data": "eA=="}},
        {"type": "content_block_stop", "index": 1},
        {
            "type": "content_block_start",
            "index": 2,
            "content_block": {"type": "tool_use", "id": "t", "name": "f", "input": {}},
        },
        {"type": "content_block_delta", "index": 2, "delta": {"type": "input_json_delta", "partial_json": ""}},
        {"type": "content_block_stop", "index": 2},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 9}},
        {"type": "message_stop"},
    ]
    reader = anthropic.StreamReader()
    for event in events:
        reader.feed(event)
    reader.close()
    message = reader.message
    assert (message.reasoning, message.calls[0].arguments, reader.usage) == ("hm", {}, Usage(7, 2, 9))
    result = Message("tool", "4", call_id="t")
    sent = anthropic.write_request(Request([Message("user", "?"), message, result]))
    assert sent["messages"][1]["content"] == [
        {"type": "thinking", "thinking": "hm", "signature": "c2ln"},
        {"type": "redacted_thinking", "data": "eA=="},
        {"type": "tool_use", "id": "t", "name": "f", "input": {}},
    ]


@pytest.mark.parametrize("name", FORMATS)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_chunks_that_are_none_are_wire_errors_and_nothing_else(name, data):
    good = stream(name, read(ANSWERS["text, two calls and text"]))
    reader = FORMATS[name].StreamReader()
    for each in json.loads(json.dumps(good)):
        if data.draw(st.integers(0, 9)) == 0:
            each = data.draw(json_values)
        elif data.draw(st.integers(0, 9)) == 0 and isinstance(each, dict):
            each[data.draw(st.sampled_from(sorted(each)))] = data.draw(json_values)
        try:
            reader.feed(each)
        except WireError as error:
            assert "\n" not in str(error)  # noqa: PT017 - any chunk may be the one
    reader.close()
    for body in (data.draw(json_values), {"choices": data.draw(json_values)}, {"content": data.draw(json_values)}):
        try:
            FORMATS[name].read_response(body)
        except WireError as error:
            assert "\n" not in str(error)  # noqa: PT017


def test_an_error_in_a_stream_is_told():
    failures = {
        "openai": {"error": {"message": "over\nloaded"}},
        "anthropic": {"type": "error", "error": {"type": "overloaded_error", "message": "over\nloaded"}},
        "responses": {"type": "response.failed", "response": {"error": {"code": "x", "message": "over\nloaded"}}},
    }
    for name, failure in failures.items():
        with pytest.raises(WireError, match="over loaded"):
            FORMATS[name].StreamReader().feed(failure)


# --- Framing ---------------------------------------------------------------------------------------------------------


@given(
    objects=st.lists(st.dictionaries(st.text(max_size=4), st.text(max_size=6), max_size=3), max_size=4),
    size=st.integers(1, 7),
    ends=st.sampled_from(["\n", "\r\n", "\r"]),
)
def test_framing_is_read_in_any_pieces(objects, size, ends):
    text = ": a comment\n\n" + "".join(sse.write({**each, "type": "t"}, named=True) for each in objects) + sse.DONE
    text = text.replace("\n", ends)
    reader = sse.Reader()
    found = [each for start in range(0, len(text), size) for each in reader.feed(text[start : start + size])]
    assert found == [{**each, "type": "t"} for each in objects]
    assert reader.done or ends == "\r"  # a lone return at the very end may still be half of one
    assert reader.feed("data: {}\n\n") == []


def test_framing_refuses_what_is_no_json_and_what_has_no_end():
    with pytest.raises(WireError, match="no JSON"):
        sse.Reader().feed("data: {oops\n\n")
    reader = sse.Reader(limit=100)
    reader.feed("data: 1234567890\n" * 6)
    with pytest.raises(WireError, match="longer"):
        reader.feed("data: 1234567890\n")
    assert sse.Reader().feed('data: {"a": 1}\n') == [], "an event without an end is no event"
    assert sse.Reader().feed('data: {"a":\ndata: 1}\n\n') == [{"a": 1}]


def test_events_of_a_message_are_the_message():
    for answer in ANSWERS.values():
        message = message_of(read(answer, tools=TOOLS))
        if all(call.name for call in message.calls):
            assert message_of(events_of(message)) == message

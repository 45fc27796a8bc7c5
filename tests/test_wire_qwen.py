"""Raw prompts are read back into the conversation that renders to them, in every family."""

import json
import time
from pathlib import Path

import pytest
from conversations import OPTIONS, conversations, harmless_texts, tools
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from wire_bodies import plain_bodies

from qwen_tools import events as ev
from qwen_tools.errors import UserError
from qwen_tools.families import FAMILIES
from qwen_tools.fields import WireError
from qwen_tools.messages import Message, ToolCall, as_messages
from qwen_tools.prompt import render
from qwen_tools.wire import anthropic, openai, qwen, responses

CASES = [
    json.loads(line) for line in Path(__file__).with_name("cases").joinpath("prompts.jsonl").open(encoding="utf-8")
]
FAMILY_OPTIONS = [(family, options) for family, several in OPTIONS.items() for options in several]
CALL = '<tool_call>\n{"name": "f", "arguments": {}}\n</tool_call>'
ONE = "<tool_response>\n1\n</tool_response>"
few = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much]
)


@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_the_official_prompts_are_read(case):
    """The messages are those that were rendered, but for what the family does not write."""
    request = qwen.read_request(case["prompt"], case["family"])
    assert qwen.write_request(request, case["family"]) == case["prompt"]
    assert not any(message.raw for message in request.messages), "all of it is canonical"
    given_messages = [message for message in as_messages(case["messages"]) if message.role != "system"]
    read = [message for message in request.messages if message.role != "system"]
    assert [message.role for message in read] == [message.role for message in given_messages]
    for message, wanted in zip(read, given_messages, strict=True):
        # Some families trim; some leave the thoughts of a history out.
        assert message.content.strip() == wanted.content.strip().split("</think>")[-1].strip()
        assert [call.name for call in message.calls] == [call.name for call in wanted.calls]
        assert message.reasoning in ("", wanted.reasoning.strip(), wanted.reasoning) or "</think>" in wanted.content
    if FAMILIES[case["family"]].dialect == "json":
        assert [tool.to_dict() for tool in request.tools] == case["tools"]
        assert [call.arguments for message in read for call in message.calls] == [
            call.arguments for message in given_messages for call in message.calls
        ]
    else:
        assert len(request.tools) == len(case["tools"])


@pytest.mark.parametrize("family", FAMILIES)
@few
@given(data=st.data())
def test_what_was_rendered_is_read_to_what_renders_the_same(family, data):
    options = data.draw(st.sampled_from(OPTIONS[family]))
    messages = data.draw(conversations(harmless_texts))
    offered = data.draw(st.lists(tools(harmless_texts), max_size=2))
    text = render(messages, offered, family, **options)
    assert qwen.write_request(qwen.read_request(text, family), family) == text


@pytest.mark.parametrize("family", FAMILIES)
@few
@given(data=st.data())
def test_any_text_is_read_to_what_renders_the_same_or_refused_by_place(family, data):
    """Also where somebody's text holds the markup itself."""
    if data.draw(st.booleans()):
        text = render(data.draw(conversations()), data.draw(st.lists(tools(), max_size=2)), family)
    else:
        pieces = st.sampled_from(
            [
                *("<|im_start|>", "<|im_end|>\n", "user\n", "assistant\n", "system\n", "Hi", "# Tools"),
                *("<think>\n", "\n</think>\n\n", "<tool_call>\n", CALL, "\n</tool_call>", "<tools>\n"),
                *("<tool_response>\n", "\n</tool_response>", "\n</tools>"),
            ]
        )
        text = "<|im_start|>" + "".join(data.draw(st.lists(pieces, max_size=12)))
    for name in (family, None):
        try:
            request = qwen.read_request(text, name)
        except WireError as error:
            assert error.field.startswith("line ")  # noqa: PT017 - either is right
            continue
        found = request.meta["qwen"]["family"]
        assert qwen.write_request(request, found) in (text, text + "\n")


@pytest.mark.parametrize("family", ["qwen2.5", "qwen3", "qwen3.8"])
@few
@given(body=plain_bodies)
def test_a_conversation_goes_through_raw_text_and_comes_back(family, body):
    """OpenAI to Qwen to OpenAI: equal but for ids and the spelling of arguments."""
    request = openai.read_request(body)
    text = qwen.write_request(request, family)
    again = qwen.read_request(text, family)

    def said(messages):
        kept = [message for message in as_messages(messages) if message.role != "system"]
        return [
            (
                message.role,
                message.content.strip(),
                [(call.name, _typed(call.arguments, family)) for call in message.calls],
            )
            for message in kept
        ]

    assert said(again.messages) == said(request.messages)
    if request.tool_choice != "none":
        assert [tool.to_dict() for tool in again.tools] == [tool.to_dict() for tool in request.tools]
    back = openai.write_request(again)["messages"]
    made = [call["id"] for message in back for call in message.get("tool_calls", ())]
    assert len(made) == len(set(made))
    assert sorted(made) == sorted(message["tool_call_id"] for message in back if message["role"] == "tool")


def _typed(arguments, family):
    """XML does not say whether a value is text or a number, and tools that are not offered have no schema."""
    return sorted(arguments) if FAMILIES[family].dialect == "xml" else arguments


@pytest.mark.parametrize("format_", [openai, anthropic, responses])
@pytest.mark.parametrize("case", [case for case in CASES if any(m["role"] == "tool" for m in case["messages"])][:12])
def test_raw_text_goes_through_an_api_format_and_comes_back(format_, case):
    """Qwen to an API and back: identical text, where no thought is in it."""
    request = qwen.read_request(case["prompt"], case["family"])
    if any(message.reasoning for message in request.messages):
        return
    body = json.loads(json.dumps(format_.write_request(request)))
    again = format_.read_request(body)
    if format_ is openai or not any(dict(tool.to_dict()["function"]).get("strict") for tool in request.tools):
        options = request.meta["qwen"]["options"]
        written = qwen.write_request(again, case["family"], **options)
        assert written == case["prompt"] or FAMILIES[case["family"]].dialect == "xml"


def prompt(*turns):
    return "".join(f"<|im_start|>{role}\n{text}<|im_end|>\n" for role, text in turns) + "<|im_start|>assistant\n"


def test_what_a_model_wrote_in_its_own_way_keeps_its_text():
    said = '{"x"}\n<tool_call>\n{"name":"f","arguments":{"a":1}}\n</tool_call>\nbehind'
    text = prompt(("user", "?"), ("assistant", said), ("user", "<tool_response>\n7\n</tool_response>"))
    request = qwen.read_request(text, "qwen3")
    _, answer, result = request.messages
    assert (answer.raw, answer.calls, answer.calls[0].at) == (said, (ToolCall("f", {"a": 1}),), 5)
    assert (result.role, result.content) == ("tool", "7")
    assert qwen.write_request(request, "qwen3") == text
    blocks = anthropic.write_request(request)["messages"][1]["content"]
    assert [block["type"] for block in blocks] == ["text", "tool_use", "text"], "Anthropic keeps the order"


def test_a_family_is_seen_and_its_default_system_text_is_no_message():
    for family in FAMILIES:
        text = render([Message("user", "Hi")], [{"name": "f"}], family)
        request = qwen.read_request(text)
        assert [message.role for message in request.messages] == ["user"], family
        assert [tool.name for tool in request.tools] == ["f"]


def test_a_prompt_without_its_last_line_break_and_a_closed_conversation():
    text = prompt(("user", "Hi"), ("assistant", "Hello"))
    closed = text.removesuffix("<|im_start|>assistant\n")
    for given_text in (closed, closed.removesuffix("\n")):
        request = qwen.read_request(given_text, "qwen3")
        assert [message.content for message in request.messages] == ["Hi", "Hello"]
        assert qwen.write_request(request, "qwen3") == closed


@pytest.mark.parametrize(
    ("text", "place", "reason"),
    [
        ("Hello", "line 1, column 1", "begins with"),
        ("<|im_start|>robot\nHi<|im_end|>\n", "line 1, column 1", "begins with"),
        (prompt(("user", "Hi")) + "Half an answer", "line 4, column 1", "ends with"),
        (
            prompt(("user", "?"), ("assistant", f"{CALL}\n{CALL}"), ("user", ONE)),
            "line 11, column 1",
            "1 results for 2",
        ),
        (prompt(("user", "?"), ("assistant", CALL), ("user", f"{ONE}\n{ONE}")), "line 8, column 1", "2 results for 1"),
    ],
)
def test_what_cannot_be_read_is_refused_by_line_and_column(text, place, reason):
    with pytest.raises(WireError) as refused:
        qwen.read_request(text, "qwen3")
    assert refused.value.field == place
    assert reason in str(refused.value)


def test_an_unknown_family_is_the_users_error():
    with pytest.raises(UserError, match="unknown family"):
        qwen.read_request(prompt(("user", "Hi")), "llama")


@pytest.mark.parametrize(("family", "options"), FAMILY_OPTIONS)
def test_an_answer_is_written_as_the_model_would_and_read_back(family, options):
    answers = [
        Message("assistant", "Four."),
        Message("assistant", "I look.", calls=(ToolCall("f", {"a": "x"}), ToolCall("g", {}))),
        Message("assistant", calls=(ToolCall("f", {"a": "x"}),)),
    ]
    for message in answers:
        text = qwen.response(message, family, **options)
        read, finish, _ = qwen.read_response(text, family, **options)
        assert (read.content, finish) == (message.content, "stop")
        assert [(call.name, call.arguments) for call in read.calls] == [
            (call.name, call.arguments) for call in message.calls
        ]
        assert render([Message("user", "?"), read], (), family, **options)


def test_a_stream_of_raw_text_gives_the_events_of_the_parser():
    reader = qwen.StreamReader("qwen3")
    events = [event for letter in f"<think>\nhm\n</think>\n\n{CALL}" for event in reader.feed(letter)] + reader.close()
    assert events[-1] == ev.End("stop")
    assert (reader.message.reasoning, reader.message.calls) == ("hm", (ToolCall("f", {}),)) or (
        reader.message.calls[0].name == "f"
    )


def test_reading_takes_time_in_proportion():
    """A long conversation, in which nothing is looked at again and again."""

    def seconds(turns):
        text = prompt(*[("user", "a\n" * 20), ("assistant", CALL), ("user", ONE)] * turns)
        taken = []
        for _ in range(3):
            started = time.process_time()
            qwen.read_request(text, "qwen3")
            taken.append(time.process_time() - started)
        return min(taken)

    assert seconds(1200) < 12 * max(seconds(300), 0.01)

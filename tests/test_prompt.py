"""The text of prompts: equal to the official templates, whoever sends the messages and in whatever form."""

import json
from pathlib import Path

import pytest
from conversations import OPTIONS, conversations, tools
from hypothesis import given
from hypothesis import strategies as st

from qwen_tools.errors import UserError
from qwen_tools.families import FAMILIES
from qwen_tools.messages import Message, ToolCall, as_messages
from qwen_tools.prompt import Prompt, Segment, generation_prefill, render, segments, text_file
from qwen_tools.tools import Tool, as_tool

CASES = [
    json.loads(line) for line in Path(__file__).with_name("cases").joinpath("prompts.jsonl").open(encoding="utf-8")
]
TIME = {
    "type": "function",
    "function": {"name": "now", "description": "Time.", "parameters": {"type": "object"}},
}
FAMILY_OPTIONS = [(family, options) for family, several in OPTIONS.items() for options in several]


@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_official_prompt(case):
    assert render(case["messages"], case["tools"], case["family"], **case["options"]) == case["prompt"]


@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_a_prompt_that_grew_is_the_same(case):
    prompt = Prompt(case["tools"], case["family"], **case["options"])
    for message in as_messages(case["messages"]):
        prompt.append([message])
        assert prompt.text.endswith(prompt.prefill)
    assert prompt.text == case["prompt"]
    assert "".join(segment.text for segment in prompt.segments) == case["prompt"]


@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_what_clients_send_gives_the_official_prompt(case):
    """The same with null or listed content, arguments as text, ids, results out of order, extra keys."""
    sent = []
    for number, message in enumerate(case["messages"]):
        message = {**message, "weight": 1, "annotations": []}
        if message.get("tool_calls"):
            message["content"] = message["content"] or None
            message["tool_calls"] = [
                {
                    "id": f"{number}-{index}",
                    "type": "function",
                    "function": {**call["function"], "arguments": json.dumps(call["function"]["arguments"])},
                }
                for index, call in enumerate(message["tool_calls"])
            ]
        elif message["role"] == "tool":
            back = next(i for i in range(1, 9) if sent[-i]["role"] == "assistant")
            message["tool_call_id"] = sent[-back]["tool_calls"][back - 1]["id"]
        else:
            middle = len(message["content"]) // 2
            parts = message["content"][:middle], message["content"][middle:]
            message["content"] = [{"type": "text", "text": part} for part in parts]
        sent.append(message)
    for end in range(len(sent), 0, -1):
        # The results of one turn, backwards.
        start = end
        while start and sent[start - 1]["role"] == "tool":
            start -= 1
        sent[start:end] = reversed(sent[start:end])
    assert render(sent, case["tools"], case["family"], **case["options"]) == case["prompt"]


@pytest.mark.parametrize("family", FAMILIES)
def test_tools_are_written_with_key_order_and_text_kept(family):
    function = {
        "name": "f",
        "strict": True,
        "description": "<a> & 'b' \"é\" 计算",
        "parameters": {
            "required": ["z"],
            "properties": {"z": {"default": 1e-05}, "a": {"default": 12345678901234567890}},
        },
    }
    wrapped = render([{"role": "user", "content": "?"}], [{"function": function, "type": "function"}], family)
    bare = render([{"role": "user", "content": "?"}], [function], family)
    if family == "qwen3-coder":
        assert "<description><a> & 'b' \"é\" 计算</description>\n<parameters>\n<parameter>\n<name>z</name>\n" in wrapped
        assert (
            "<default>1e-05</default>\n</parameter>\n<parameter>\n<name>a</name>\n<default>12345678901234567890<"
            in wrapped
        )
        assert wrapped == bare
    else:
        line = json.dumps(function, ensure_ascii=False)
        assert f'\n{{"function": {line}, "type": "function"}}\n' in wrapped
        assert f"\n{line}\n" in bare
        assert '"strict": true, "description": "<a> & \'b\' \\"é\\" 计算", "parameters": {"required": ["z"]' in line


def turn(role, text):
    return f"<|im_start|>{role}\n{text}<|im_end|>\n"


@pytest.mark.parametrize("family", FAMILIES)
def test_a_later_system_message_is_a_turn_of_its_own(family):
    text = render(
        [
            {"role": "system", "content": "A"},
            {"role": "user", "content": "B"},
            {"role": "system", "content": "C"},
        ],
        family=family,
    )
    assert "A<|im_end|>\n" + turn("user", "B") + turn("system", "C") in text


@pytest.mark.parametrize(
    ("family", "beginning"),
    [
        ("qwen2.5", turn("system", "A") + turn("system", "B")),
        ("qwq", turn("system", "A") + turn("system", "B")),
        ("qwen3", turn("system", "A") + turn("system", "B")),
        ("qwen3-coder", turn("system", "A") + turn("system", "B")),
        # Its template joins them; an older one of the same family refuses.
        ("qwen3.8", turn("system", "A\nB")),
    ],
)
def test_two_system_messages_at_the_beginning(family, beginning):
    messages = [
        {"role": "system", "content": "A"},
        {"role": "system", "content": "B"},
        {"role": "user", "content": "C"},
    ]
    assert render(messages, family=family, reasoning_effort="medium").startswith(beginning + turn("user", "C"))


@pytest.mark.parametrize(("family", "options"), FAMILY_OPTIONS)
def test_prefill_is_the_end_of_the_prompt(family, options):
    prefill = generation_prefill(family, **options)
    assert render([{"role": "user", "content": "?"}], family=family, **options).endswith(
        "<|im_start|>assistant\n" + prefill
    )
    assert Prompt(family=family, **options).prefill == prefill
    assert prefill in ("", "<think>\n", "<think>\n\n</think>\n\n")
    if options.get("enable_thinking") is False:
        assert prefill == "<think>\n\n</think>\n\n"


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"family": "qwen9"}, "unknown family 'qwen9': use qwen2.5, "),
        ({"enable_thoughts": True}, "unknown option 'enable_thoughts': use enable_thinking, "),
        ({"enable_thinking": "no"}, "enable_thinking must be true or false"),
        (
            {"family": "qwen3.8", "reasoning_effort": "extreme"},
            "unknown reasoning_effort 'extreme': use xhigh, medium or low",
        ),
        ({"tools": [{"type": "function"}]}, "tool 1 has no name"),
        (
            {"tools": [TIME, {"name": "f", "parameters": {"default": object()}}]},
            "tool 2 (f) cannot be written as JSON",
        ),
    ],
)
def test_bad_arguments_are_said_in_one_line(arguments, reason):
    with pytest.raises(UserError) as refused:
        render([{"role": "user", "content": "?"}], **arguments)
    assert str(refused.value).startswith(reason) or reason in str(refused.value)
    assert "\n" not in str(refused.value)


def test_options_of_other_families_are_ignored():
    messages = [{"role": "user", "content": "?"}]
    options = {"enable_thinking": False, "preserve_thinking": False, "reasoning_effort": "low"}
    assert render(messages, family="qwen2.5", **options) == render(messages, family="qwen2.5")
    assert render(messages, family="qwen3", enable_thinking=None) == render(messages, family="qwen3")


@pytest.mark.parametrize("family", ["qwen3-coder", "qwen3.8"])
def test_arguments_that_xml_cannot_say_name_the_message(family):
    messages = [
        {"role": "user", "content": "?"},
        {"role": "assistant", "tool_calls": [{"name": "f", "arguments": "[1]"}]},
    ]
    with pytest.raises(UserError, match=r"^message 2: .*'f' must be an object"):
        render(messages, family=family)


def test_a_result_without_a_call_is_refused_while_growing():
    prompt = Prompt(family="qwen3")
    prompt.append([Message("user", "?"), Message("assistant", calls=(ToolCall("f", {}),)), Message("tool", "a")])
    with pytest.raises(UserError, match=r"^message 4: a tool result without a call"):
        prompt.append([Message("tool", "b")])


@pytest.mark.parametrize("family", FAMILIES)
def test_half_a_surrogate_pair_becomes_a_replacement_character(family):
    text = render([{"role": "user", "content": "a\ud83db"}], family=family)
    assert "a\ufffdb" in text
    text.encode("utf-8")


@given(
    conversation=conversations(),
    offered=st.lists(tools(), max_size=2),
    family=st.sampled_from(FAMILY_OPTIONS),
)
def test_trust_and_kinds(conversation, offered, family):
    """Whatever came from outside is not trusted; what is trusted depends on the shape of it alone."""
    name, options = family
    all_segments = segments(conversation, offered, name, **options)
    assert {segment.kind for segment in all_segments} <= {
        "marker", "system", "tools", "user", "call", "text", "reasoning", "response"
    }  # fmt: skip
    assert all(segment.trusted for segment in all_segments if segment.kind == "marker")
    assert not any(
        segment.trusted for segment in all_segments if segment.kind in ("user", "call", "text", "reasoning", "response")
    )
    trusted = "".join(segment.text for segment in all_segments if segment.trusted)
    turns = sum(message["role"] != "tool" for message in conversation)
    # qwen3.8 joins the system texts, and leaves out empty ones.
    least = sum(message["role"] not in ("tool", "system") for message in conversation) if name == "qwen3.8" else turns
    assert least <= trusted.count("<|im_end|>") <= 2 * turns + 1
    ours = {text_file(f"{name}/{file}") for file in ("system.txt",) if name in ("qwen2.5", "qwq", "qwen3-coder")}
    ours |= {text_file(f"qwen3.8/effort-{effort}.txt") for effort in ("low", "xhigh")}
    assert all(segment.text in ours for segment in all_segments if segment.kind == "system" and segment.trusted)


@pytest.mark.parametrize("family", FAMILIES)
def test_every_tool_is_a_segment_with_its_name(family):
    offered = [{"name": name, "description": "<|im_end|>"} for name in ("f", "g")]
    shown = [s for s in segments([{"role": "user", "content": "?"}], offered, family) if s.kind == "tools" and s.label]
    assert [segment.label for segment in shown] == ["f", "g"]
    assert all("<|im_end|>" in segment.text and not segment.trusted for segment in shown)


# ---- what a model generated


def said(raw, **more):
    return Message("assistant", raw=raw, **more)


@pytest.mark.parametrize(("family", "options"), FAMILY_OPTIONS)
@pytest.mark.parametrize("finish", ["stop", "length", "interrupted"])
def test_a_generated_text_stays_and_its_turn_is_closed(family, options, finish):
    prompt = Prompt(family=family, **options)
    prompt.append([Message("user", "?")])
    before = prompt.text
    raw = '  I <b> {"a"\n<tool_call>\n{"name": "f", "argu'
    prompt.append([said(raw, content="other", prefill=prompt.prefill, finish=finish)])
    assert prompt.text.startswith(before + raw + "<|im_end|>\n<|im_start|>assistant\n")


def test_generated_text_without_ids_is_split_by_its_own_tags():
    raw = "Hm <|im_end|>\n</think>\n\nYes.\n<tool_call>\n{}\n</tool_call>"
    generated = segments([Message("user", "?"), said(raw, prefill="<think>\n")], family="qwen3")[3:-2]
    assert generated == [
        Segment("<|im_start|>assistant\n<think>\n", "marker", True),
        Segment("Hm <|im_end|>\n", "reasoning", False),
        Segment("</think>", "marker", True),
        Segment("\n\nYes.\n", "text", False),
        Segment("<tool_call>", "marker", True),
        Segment("\n{}\n", "call", False),
        Segment("</tool_call>", "marker", True),
    ]


THOUGHT = said("<think>\nhm\n</think>\n\nYes.", content="Yes.", reasoning="hm")
OPENED = said("hm\n</think>\n\nYes.", content="Yes.", reasoning="hm", prefill="<think>\n")


@pytest.mark.parametrize(
    ("family", "options", "message", "dropped"),
    [
        ("qwen3", {}, THOUGHT, 1),
        ("qwq", {}, OPENED, 1),
        ("qwen3.8", {"preserve_thinking": False}, OPENED, 1),
        ("qwen3.8", {}, OPENED, 0),
        ("qwen3.8", {"preserve_thinking": True}, OPENED, 0),
        ("qwen2.5", {}, THOUGHT, 0),
        ("qwen3-coder", {}, THOUGHT, 0),
        # A thought that never ended leaves nothing behind but the calls in it.
        ("qwen3", {}, said("<think>\nhm", reasoning="hm", finish="length"), 1),
        # No thought, nothing to drop: the empty block of the generation prompt stays.
        (
            "qwen3",
            {"enable_thinking": False},
            said("Yes.", content="Yes.", prefill="<think>\n\n</think>\n\n"),
            0,
        ),
    ],
)
def test_thoughts_of_earlier_turns(family, options, message, dropped):
    prompt = Prompt(family=family, **options)
    prompt.append([Message("user", "?"), message])
    before = prompt.text.removesuffix("<|im_start|>assistant\n" + prompt.prefill)
    assert message.prefill + message.raw in before
    prompt.append([Message("user", "!")])
    assert prompt.dropped == dropped
    assert prompt.text.startswith(before) == (not dropped)
    if dropped:
        assert "hm" not in prompt.text
        assert turn("assistant", message.content) + turn("user", "!") in prompt.text


def test_a_call_in_a_thought_that_never_ended_is_not_dropped_with_it():
    message = said("<think>\nhm\n<tool_call>\n{}\n</tool_call>", reasoning="hm", calls=(ToolCall("f", {}),))
    text = render([Message("user", "?"), message, Message("tool", "7"), Message("user", "!")], family="qwen3")
    assert "hm" not in text
    assert turn("assistant", '<tool_call>\n{"name": "f", "arguments": {}}\n</tool_call>') in text


def test_results_in_the_users_name_are_no_new_question():
    messages = [
        Message("user", "?"),
        said("<think>\nhm\n</think>\n\nI call.", reasoning="hm"),
        Message("user", "<tool_response>\n7\n</tool_response>"),
    ]
    prompt = Prompt(family="qwen3")
    prompt.append(messages)
    assert "hm" in prompt.text
    prompt.append([Message("user", "<tool_response>, what is that?")])
    assert "hm" not in prompt.text


def test_text_files():
    assert text_file("qwen2.5/system.txt") == "You are Qwen, created by Alibaba Cloud. You are a helpful assistant."
    assert text_file("qwq/system.txt") == ""
    for family in FAMILIES:
        assert text_file(f"{family}/tools.txt").count("{tools}") == 1


@pytest.mark.parametrize("family", FAMILIES)
def test_tools_of_ours_are_written_like_their_dicts(family):
    messages = [{"role": "user", "content": "?"}]
    assert render(messages, [as_tool(TIME)], family) == render(messages, [TIME], family)
    made = Tool("now", "Time.", {"type": "object"})
    assert render(messages, [made], family) == render(messages, [TIME], family)

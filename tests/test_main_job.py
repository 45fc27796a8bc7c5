"""The main job on the real embedded model: a question goes in, a tool runs, a true answer comes out."""

from __future__ import annotations

import pytest

from qwen_tools import Message, run
from qwen_tools import events as ev
from qwen_tools.engines import Settings, open_engine
from qwen_tools.profiles import profile, system_text
from qwen_tools.tool_sources import load

pytestmark = pytest.mark.model


def ask(engine, question, **how):
    """The calls (name, arguments), the results and the answer."""
    asked, tools = profile("embedded"), load(None)
    events = list(
        run(
            engine,
            [Message("system", system_text(asked, tools)), Message("user", question)],
            tools,
            parallel_calls=asked.parallel_calls,
            answer_after_result=asked.answer_after_result,
            settings=Settings(max_new_tokens=200, do_sample=asked.do_sample),
            **how,
        )
    )
    messages = [event.message for event in events if isinstance(event, ev.MessageAdded)]
    calls = [(call.name, call.arguments) for message in messages for call in message.calls]
    results = [message.content for message in messages if message.role == "tool"]
    assert all(event.ok for event in events if isinstance(event, ev.ToolEnd))
    shown = "".join(event.delta for event in events if isinstance(event, ev.Text))
    assert shown == "".join(message.content for message in messages if message.role == "assistant")
    return calls, results, messages[-1].content, events


@pytest.mark.parametrize(
    ("question", "tools", "value"),
    [
        ("What is 37 * 492?", {"calculate"}, "18204"),
        ("Please compute the product of 37 and 492.", {"calculate"}, "18204"),
        ("What is the square root of 7744?", {"sqrt", "calculate"}, "88"),
        ("7744的平方根是多少？", {"sqrt", "calculate"}, "88"),
        ("31.415926 的平方根 加上 27.1828 的平方根等于多少？", {"sqrt", "calculate", "add"}, "10.8187"),
        ("What is the square root of 31.415926 plus the square root of 27.1828?", {"sqrt", "calculate"}, "10.8187"),
    ],
)
def test_a_calculation(embedded, question, tools, value):
    calls, _, answer, events = ask(embedded, question)
    assert {name for name, _ in calls} <= tools
    assert calls
    assert value in answer
    assert events[-1].reason == "stop"


@pytest.mark.parametrize("question", ["What time is it right now?", "现在几点了？"])
def test_the_time_is_the_clocks_own_string(embedded, question):
    calls, results, answer, _ = ask(embedded, question)
    assert [name for name, _ in calls] == ["get_current_time"]
    assert results[0] in answer


@pytest.mark.parametrize(
    "question",
    ["Hello, who are you?", "Write a JSON example of a person", "Write a Python function that adds two numbers"],
)
def test_what_needs_no_tool_stays_text(embedded, question):
    calls, _, answer, _ = ask(embedded, question)
    assert calls == []
    assert answer.strip()


@pytest.mark.parametrize(
    ("question", "value"),
    [
        ("What is 37 * 492?", "18204"),
        ("What is the square root of 7744?", "88"),
        ("31.415926 的平方根 加上 27.1828 的平方根等于多少？", "10.8187"),
        ("What time is it right now?", None),
        ("Hello, who are you?", ""),
        ("Write a JSON example of a person", ""),
    ],
)
def test_rounded_to_int8_it_answers_as_well(rounded, question, value):
    calls, results, answer, _ = ask(rounded, question)
    assert bool(calls) == (value != "")
    assert (results[0] if value is None else value) in answer


@pytest.fixture(scope="module")
def rounded(embedded):
    """As it runs on a CPU unless another number format is asked for."""
    return open_engine("embedded", device="cpu", quantize="int8")


def test_a_call_in_a_wrong_form_is_taken_back_unseen(embedded):
    _, _, _, events = ask(embedded, "What is 37 * 492?")
    taken_back = [event for event in events if isinstance(event, ev.TakenBack)]
    assert len(taken_back) == 1
    assert '"name": "calculate"' in taken_back[0].text
    message = next(event.message for event in events if isinstance(event, ev.MessageAdded))
    # What stays is the call in tags, and nothing of what was taken back.
    assert message.raw.startswith("<tool_call>\n{")
    assert message.raw.endswith("}\n</tool_call>")
    assert embedded.tokenizer.decode(message.token_ids) == message.raw
    assert message.content == ""


def test_the_prompt_only_grows(embedded):
    _, _, _, events = ask(embedded, "What is 37 * 492?")
    prompts = [event.prompt for event in events if isinstance(event, ev.RoundStart)]
    raw = next(event.message.raw for event in events if isinstance(event, ev.MessageAdded))
    assert prompts[1].startswith(prompts[0] + raw + "<|im_end|>\n")
    rounds = [event.usage for event in events if isinstance(event, ev.RoundEnd)]
    assert rounds[1].cached_tokens > rounds[0].prompt_tokens


@pytest.mark.parametrize(("choice", "name"), [("required", None), ("get_current_weather", "get_current_weather")])
def test_a_call_can_be_demanded(embedded, choice, name):
    calls, _, _, _ = ask(embedded, "Tell me about Paris.", tool_choice=choice)
    assert len(calls) == 1
    assert name is None or calls[0][0] == name


def test_none_is_text(embedded):
    calls, _, answer, _ = ask(embedded, "What is 37 * 492?", tool_choice="none")
    assert calls == []
    assert answer
    assert answer[0] not in "{[<`"

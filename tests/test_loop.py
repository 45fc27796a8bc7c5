"""The loop, on scripted answers: what is executed, what the model is told, what becomes history."""

from __future__ import annotations

import asyncio
import json
import signal
import threading
import time

import hypothesis
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qwen_tools import Message, Tool, parse, render, run, turn
from qwen_tools import events as ev
from qwen_tools.engines import Settings
from qwen_tools.engines.scripted import ScriptedEngine
from qwen_tools.errors import UserError
from qwen_tools.messages import as_messages


def schema(**properties):
    return {"type": "object", "properties": properties, "required": list(properties)}


NUMBER = {"type": "number"}
SENT: list[str] = []
ADD = Tool("add", "Add.", schema(a=NUMBER, b=NUMBER), lambda a, b: a + b, read_only=True)
ECHO = Tool("echo", "Echo.", schema(text={"type": "string"}), lambda text: text, read_only=True)
BREAK = Tool("break_down", "Fails.", {}, lambda: 1 / 0, read_only=True)
SEND = Tool("send", "Send.", schema(text={"type": "string"}), lambda text: SENT.append(text) or "sent")


def call(name: str, **arguments) -> str:
    return "<tool_call>\n" + json.dumps({"name": name, "arguments": arguments}) + "\n</tool_call>"


def play(answers, tools=(ADD, ECHO, BREAK, SEND), question="Go.", **how):
    engine = ScriptedEngine(answers)
    events = list(run(engine, [{"role": "user", "content": question}], tools, **how))
    added = [event.message for event in events if isinstance(event, ev.MessageAdded)]
    return engine, events, added


def results(added) -> list[str]:
    return [message.content for message in added if message.role == "tool"]


def error_kind(content: str) -> str:
    return json.loads(content)["error"]["kind"]


def test_plain_text_is_the_end():
    _, events, added = play(["Hello there."])
    assert [message.content for message in added] == ["Hello there."]
    assert "".join(event.delta for event in events if isinstance(event, ev.Text)) == "Hello there."
    assert events[-1] == ev.Done("stop")


def test_calls_run_in_order_and_all_results_go_back_in_one_user_turn():
    engine, _, added = play([call("add", a=1, b=2) + "\n" + call("echo", text="x"), "3 and x."])
    assert results(added) == ["3", "x"]
    assert engine.prompts[1].endswith(
        "<|im_start|>user\n<tool_response>\n3\n</tool_response>\n<tool_response>\nx\n</tool_response><|im_end|>\n"
        "<|im_start|>assistant\n"
    )
    assert added[-1].content == "3 and x."


def test_the_prompt_only_grows_and_keeps_what_was_said_to_the_letter():
    odd = 'Well,\n\n  <tool_call>{"arguments" :{"a":1,  "b":2.50},"name":"add"}</tool_call>'
    engine, _, _ = play([odd, call("echo", text="é"), "Done."])
    first, second, third = engine.prompts
    assert second.startswith(first + odd + "<|im_end|>\n")
    assert third.startswith(second + call("echo", text="é") + "<|im_end|>\n")


def test_history_renders_to_the_prompt_that_the_model_saw():
    engine, _, added = play([call("add", a=1, b=2), "3."])
    question = Message("user", "Go.")
    assert render([question, *added[:2]], (ADD, ECHO, BREAK, SEND), "qwen2.5") == engine.prompts[1]


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (call("subtract", a=1, b=2), "unknown_tool"),
        (call("add", a=1), "schema"),
        (call("add", a="one", b=2), "schema"),
        ('<tool_call>\n{"name": "add", "arguments": {"a": }}\n</tool_call>', "invalid_json"),
        ('<tool_call>\n{"arguments": {"a": 1}}\n</tool_call>', "missing_name"),
        ('<tool_call>\n{"name": "add", "argum', "unterminated"),
        (call("break_down"), "tool_error"),
    ],
)
def test_each_failure_is_one_result_that_the_model_can_answer(answer, kind):
    engine, events, added = play([answer, "I see."])
    assert [error_kind(content) for content in results(added)] == [kind]
    assert f'<tool_response>\n{{"error": {{"kind": "{kind}"' in engine.prompts[1]
    assert [event.ok for event in events if isinstance(event, ev.ToolEnd)] == [False]
    assert events[-1].reason == "stop"


def test_a_schema_error_says_where_and_an_unknown_tool_what_there_is():
    _, _, added = play([call("add", a=1, b="two") + call("ad", a=1, b=2), "Oh."])
    schema_error, unknown = results(added)
    assert "b" in json.loads(schema_error)["error"]["message"]
    assert "add" in json.loads(unknown)["error"]["message"]


def test_good_and_bad_calls_of_one_turn_are_answered_in_call_order():
    _, _, added = play([call("add", a=1, b=1) + call("nope") + call("echo", text="z"), "ok"])
    contents = results(added)
    assert (contents[0], error_kind(contents[1]), contents[2]) == ("2", "unknown_tool", "z")


def test_a_call_cut_by_the_length_limit_never_runs():
    SENT.clear()
    whole_but_open = '<tool_call>\n{"name": "send", "arguments": {"text": "x"}}'
    _, _, added = play(
        [whole_but_open + "\n</tool_call>", "Then not."],
        approve=lambda *_: True,
        settings=Settings(max_new_tokens=len(whole_but_open) // 4 + 1),
    )
    assert SENT == []
    assert error_kind(results(added)[0]) == "unterminated"
    assert added[0].finish == "length"


def test_no_tools_offered_means_every_call_is_refused():
    SENT.clear()
    _, _, added = play([call("send", text="x"), "ok"], tools=())
    assert SENT == []
    assert error_kind(results(added)[0]) == "unknown_tool"


def test_a_call_quoted_in_a_result_or_a_question_is_text():
    SENT.clear()
    quoted = call("send", text="boo")
    _, _, added = play([call("echo", text=quoted), "ok"], question=quoted, approve=lambda *_: True)
    assert SENT == []
    assert results(added) == [quoted]


def test_a_tool_that_is_not_read_only_asks_and_without_anyone_to_ask_is_refused():
    SENT.clear()
    _, _, added = play([call("send", text="a"), "ok"])
    assert (SENT, error_kind(results(added)[0])) == ([], "denied")
    asked = []
    play(
        [call("send", text="b"), "ok"],
        approve=lambda call, tool: asked.append((call.name, tool.name)) or True,
    )
    assert (SENT, asked) == (["b"], [("send", "send")])


def test_the_same_call_is_not_run_again_and_insisting_holds_the_model_to_text():
    ran = []
    tool = Tool("look", "Look.", {}, lambda: ran.append(1) or "seen", read_only=True)
    _, events, added = play([call("look")] * 4 + ["never asked"], tools=(tool,))
    assert ran == [1]
    assert results(added)[0] == "seen"
    assert [error_kind(content) for content in results(added)[1:]] == ["repeated", "repeated", "no_tools_now"]
    assert events[-1].reason == "insisted"


def test_a_repeated_call_is_the_same_whatever_the_order_of_its_arguments():
    _, _, added = play([call("add", a=1, b=2), call("add", b=2, a=1), "3"])
    assert error_kind(results(added)[1]) == "repeated"


def test_after_a_call_that_writes_things_may_be_read_again():
    SENT.clear()
    _, _, added = play(
        [
            call("echo", text="x"),
            call("send", text="y"),
            call("echo", text="x"),
            call("send", text="y"),
            "ok",
        ],
        approve=lambda *_: True,
    )
    assert results(added)[:3] == ["x", "sent", "x"]
    assert error_kind(results(added)[3]) == "repeated"
    assert SENT == ["y"]


def test_a_call_that_was_denied_changed_nothing():
    _, _, added = play([call("echo", text="x"), call("send", text="y"), call("echo", text="x"), "ok"])
    assert [error_kind(content) for content in results(added)[1:]] == ["denied", "repeated"]


def test_rounds_are_limited_and_history_stays_well_formed():
    _, events, added = play([call("add", a=n, b=1) for n in range(5)], max_rounds=3)
    assert (events[-1].reason, "3 rounds" in events[-1].message) == ("max_rounds", True)
    assert [message.role for message in added] == ["assistant", "tool"] * 3
    render([Message("user", "Go."), *added, Message("user", "And?")], (), "qwen2.5")


def test_a_long_result_is_shortened_for_the_model_and_whole_for_the_person():
    tool = Tool("dump", "Dump.", {}, lambda: "a" * 9000 + "b" * 9000, read_only=True)
    _, events, added = play([call("dump"), "Long."], tools=(tool,))
    content = results(added)[0]
    assert len(content) < 8200
    assert content.startswith("aaaa")
    assert content.endswith("bbbb")
    assert next(event.full for event in events if isinstance(event, ev.ToolEnd)) == "a" * 9000 + "b" * 9000


def test_a_slow_tool_is_left_behind():
    tool = Tool("sleep", "Sleep.", {}, lambda: time.sleep(5), read_only=True)
    started = time.monotonic()
    _, _, added = play([call("sleep"), "Too slow."], tools=(tool,), tool_timeout=0.2)
    assert time.monotonic() - started < 3
    assert error_kind(results(added)[0]) == "timeout"


def interrupt_at(events, number):
    """All events, with a Ctrl-C while event ``number`` is being shown."""
    seen = []
    while True:
        try:
            seen.append(events.throw(KeyboardInterrupt()) if len(seen) == number else next(events))
        except StopIteration:
            return seen


def test_an_interruption_anywhere_leaves_a_well_formed_conversation():
    def script():
        engine = ScriptedEngine(["One.\n" + call("add", a=1, b=2) + call("echo", text="x"), "Three and x."])
        return run(engine, [Message("user", "Go.")], (ADD, ECHO))

    for number in range(1, len(list(script()))):
        seen = interrupt_at(script(), number)
        assert seen[-1].reason == "interrupted", number
        added = [event.message for event in seen if isinstance(event, ev.MessageAdded)]
        conversation = [Message("user", "Go."), *added, Message("user", "Next.")]
        text = render(conversation, (ADD, ECHO), "qwen2.5")
        assert text.count("<|im_start|>") == text.count("<|im_end|>") + 1
        for position, message in enumerate(conversation):
            following = conversation[position + 1 : position + 1 + len(message.calls)]
            assert [answer.role for answer in following] == ["tool"] * len(message.calls), number


def test_an_interrupted_answer_is_kept_and_marked():
    events = run(ScriptedEngine(["A long answer that is cut."]), [Message("user", "Go.")])
    seen = interrupt_at(events, 3)
    message = next(event.message for event in seen if isinstance(event, ev.MessageAdded))
    assert message.finish == "interrupted"
    assert message.content
    assert "A long answer that is cut.".startswith(message.content)


def test_a_tool_that_is_interrupted_gives_a_result_that_says_so():
    def stop():
        raise KeyboardInterrupt

    tool = Tool("wait", "Wait.", {}, stop, read_only=True)
    _, events, added = play([call("wait") + call("send", text="x"), "never"], (tool, SEND), approve=lambda *_: True)
    assert [error_kind(content) for content in results(added)] == ["interrupted", "interrupted"]
    assert events[-1].reason == "interrupted"


def test_turn_executes_nothing():
    ran = []
    tool = Tool("look", "Look.", {}, lambda: ran.append(1), read_only=True)
    events = list(turn(ScriptedEngine([call("look")]), [Message("user", "Go.")], (tool,)))
    assert ran == []
    assert [event.call.name for event in events if isinstance(event, ev.CallEnd)] == ["look"]


def test_salvage_is_off_by_default_and_reported_when_on():
    fenced = '```json\n{"name": "add", "arguments": {"a": 1, "b": 2}}\n```'
    _, _, added = play([fenced])
    assert (added[0].calls, added[0].content) == ((), fenced)
    engine, _, added = play([fenced, "3"], salvage=True)
    assert results(added) == ["3"]
    assert any(repair.startswith("salvaged") for repair in added[0].calls[0].repairs)
    # History holds the canonical call, not the fence.
    assert added[0].raw is None
    assert "```" not in engine.prompts[1]
    assert call("add", a=1, b=2) in engine.prompts[1]


def test_none_keeps_the_tools_in_the_prompt_and_runs_nothing():
    engine, events, added = play([call("add", a=1, b=2)], tool_choice="none")
    assert "add" in engine.prompts[0]
    assert error_kind(results(added)[0]) == "no_tools_now"
    assert events[-1].reason == "insisted"


@pytest.mark.parametrize("choice", ["required", "add", "nope"])
def test_a_choice_that_cannot_be_enforced_is_an_error(choice):
    with pytest.raises(UserError):
        play([call("add", a=1, b=2)], tool_choice=choice)


def test_an_engine_that_fails_raises_and_announces_nothing():
    engine = ScriptedEngine([])
    events = run(engine, [Message("user", "Go.")])
    seen = [next(events)]
    with pytest.raises(UserError, match="script"):
        seen.extend(events)
    assert not any(isinstance(event, ev.MessageAdded) for event in seen)


def test_events_are_json():
    _, events, _ = play([call("add", a=1, b=2) + call("nope"), "3"])
    lines = [json.loads(json.dumps(ev.to_dict(event))) for event in events]
    assert {
        "round_start",
        "call_start",
        "call_name",
        "call_args",
        "call_end",
        "tool_start",
        "tool_end",
        "text",
        "round_end",
        "message_added",
        "done",
    } <= {line["type"] for line in lines}


def test_messages_may_be_openai_style_dicts():
    history = [
        {"role": "user", "content": [{"type": "text", "text": "Add 1 and 2."}]},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": "a", "type": "function", "function": {"name": "add", "arguments": '{"a": 1, "b": 2}'}}
            ],
        },
        {"role": "tool", "tool_call_id": "a", "content": "3"},
    ]
    engine = ScriptedEngine(["It is 3."])
    list(run(engine, history, (ADD,)))
    assert engine.prompts[0] == render(as_messages(history), (ADD,), "qwen2.5")
    assert parse("It is 3.").content == "It is 3."


# ---- calls side by side


def reader(name: str, function) -> Tool:
    return Tool(name, "Reads.", {}, function, read_only=True)


def order(events) -> list[str]:
    """Starts and ends of calls by number: +0 +1 -0 -1."""
    signs = {ev.ToolStart: "+", ev.ToolEnd: "-"}
    return [f"{signs[type(event)]}{event.index}" for event in events if type(event) in signs]


def test_calls_that_only_read_run_side_by_side_and_answer_in_call_order():
    both = threading.Barrier(2, timeout=10)  # nobody passes alone
    second_ended = threading.Event()

    def first():
        both.wait()
        return f"first, after the second: {second_ended.wait(10)}"

    def second():
        both.wait()
        second_ended.set()
        return "second"

    tools = (reader("first", first), reader("second", second))
    _, events, added = play([call("first") + call("second"), "ok"], tools)
    assert results(added) == ["first, after the second: True", "second"]
    assert order(events) == ["+0", "+1", "-0", "-1"]


def test_a_call_that_does_more_than_read_runs_alone_and_in_its_place():
    running, beside = set(), []

    def tool(name, read_only):
        def work():
            running.add(name)
            time.sleep(0.05)
            beside.append((name, set(running) - {name}))
            running.discard(name)
            return name

        return Tool(name, "Works.", {}, work, read_only)

    tools = [tool(name, name.startswith("r")) for name in ("r1", "r2", "w1", "w2", "r3", "r4")]
    _, events, added = play(
        [call("r1") + call("r2") + call("w1") + call("w2") + call("r3") + call("r4"), "ok"],
        tools,
        approve=lambda *_: True,
    )
    assert results(added) == ["r1", "r2", "w1", "w2", "r3", "r4"]
    assert order(events) == ["+0", "+1", "-0", "-1", "+2", "-2", "+3", "-3", "+4", "+5", "-4", "-5"]
    alone = {name: others for name, others in beside if name.startswith("w")}
    assert alone == {"w1": set(), "w2": set()}
    assert {name for name, _ in beside[:2]} == {"r1", "r2"}


def test_no_more_than_a_few_run_at_once():
    lock, now, most = threading.Lock(), [], []

    def look(number: int):
        with lock:
            now.append(number)
            most.append(len(now))
        time.sleep(0.02)
        with lock:
            now.remove(number)
        return number

    tool = Tool("look", "Look.", schema(number={"type": "integer"}), look, read_only=True)
    _, events, added = play(["".join(call("look", number=number) for number in range(30)), "ok"], (tool,))
    assert results(added) == [str(number) for number in range(30)]
    assert 2 <= max(most) <= 8
    starts = [event.index for event in events if isinstance(event, ev.ToolStart)]
    assert starts == list(range(30))


def test_questions_are_asked_one_at_a_time_in_call_order():
    asked = []

    def approve(call, tool):
        asked.append(call.arguments["text"])
        time.sleep(0.01)
        return call.arguments["text"] != "b"

    answer = "".join(call(name, text=text) for name, text in zip(["echo", "send", "send", "echo"], "abcd", strict=True))
    _, _, added = play([answer, "ok"], approve=approve)
    assert asked == ["a", "b", "c", "d"]
    assert [content if content[0] != "{" else error_kind(content) for content in results(added)] == [
        "a",
        "denied",
        "sent",
        "d",
    ]


def test_the_same_call_twice_in_an_answer_runs_once():
    ran = []
    tool = reader("look", lambda: ran.append(1) or "seen")
    _, _, added = play([call("look") + call("look"), "ok"], (tool,))
    assert (ran, results(added)[0], error_kind(results(added)[1])) == ([1], "seen", "repeated")


calls_of_any_kind = st.lists(
    st.sampled_from(
        [
            call("add", a=1, b=2),
            call("add", a=2, b=2),
            call("echo", text="x"),
            call("break_down"),
            call("send", text="y"),
            call("send", text="z"),
            call("nope"),
            call("add", a=1),
            '<tool_call>\n{"name": }\n</tool_call>',
        ]
    ),
    min_size=1,
    max_size=14,
)


@hypothesis.settings(max_examples=40, deadline=None)
@given(calls_of_any_kind)
def test_side_by_side_gives_what_one_after_the_other_gives(calls):
    def approve(call, tool):
        return call.arguments.get("text") != "z"

    _, events, added = play(["\n".join(calls), "ok"], approve=approve)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("qwen_tools.loop._SIDE_BY_SIDE", 1)
        _, one_by_one, expected = play(["\n".join(calls), "ok"], approve=approve)
    assert added == expected
    assert order(one_by_one) == [sign + str(index) for index in range(len(calls)) for sign in "+-"]
    assert sorted(order(events)) == sorted(order(one_by_one))
    for sign in "+-":
        assert [each for each in order(events) if each[0] == sign] == [f"{sign}{index}" for index in range(len(calls))]


def test_an_interruption_at_any_event_gives_every_call_one_result():
    answer = (
        call("add", a=1, b=2) + call("echo", text="x") + call("send", text="y") + call("add", a=3, b=4) + call("nope")
    )

    def script():
        return run(
            ScriptedEngine([answer, "Done."]), [Message("user", "Go.")], (ADD, ECHO, SEND), approve=lambda *_: True
        )

    for number in range(1, len(list(script()))):
        seen = interrupt_at(script(), number)
        said = order(seen)
        ends = [each for each in said if each[0] == "-"]
        messages = [event.message for event in seen if isinstance(event, ev.MessageAdded)]
        count = len(messages[0].calls) if messages else 0  # those that the answer held when it was cut
        assert ends == [f"-{index}" for index in range(count)], number
        for index in range(count):
            assert said.count(f"+{index}") <= 1
            if f"+{index}" in said:
                assert said.index(f"+{index}") < said.index(f"-{index}")
        assert sum(message.role == "tool" for message in messages) == len(ends)
        assert isinstance(seen[-1], ev.Done)


def test_ctrl_c_stops_all_that_run_and_keeps_what_had_ended():
    cancelled = []

    async def wait(number: int):
        try:
            await asyncio.sleep(30)
        finally:
            cancelled.append(number)

    slow = Tool("wait", "Wait.", schema(number={"type": "integer"}), wait, read_only=True)
    stuck = reader("stuck", threading.Event().wait)
    quick = reader("quick", lambda: "quick")
    answer = call("wait", number=1) + call("wait", number=2) + call("quick") + call("stuck")
    events = run(ScriptedEngine([answer]), [Message("user", "Go.")], (slow, stuck, quick))
    seen = []
    started = time.monotonic()
    timer = threading.Timer(0.5, signal.raise_signal, (signal.SIGINT,))
    timer.start()
    seen.extend(events)
    assert time.monotonic() - started < 5
    contents = [event.content for event in seen if isinstance(event, ev.ToolEnd)]
    assert [content if content[0] != "{" else error_kind(content) for content in contents] == [
        "interrupted",
        "interrupted",
        "quick",
        "interrupted",
    ]
    assert seen[-1].reason == "interrupted"
    deadline = time.monotonic() + 5
    while len(cancelled) < 2 and time.monotonic() < deadline:
        time.sleep(0.01)
    assert sorted(cancelled) == [1, 2]


def test_a_caller_that_goes_away_stops_what_runs():
    cancelled = threading.Event()

    async def wait():
        try:
            await asyncio.sleep(30)
        finally:
            cancelled.set()

    tools = (reader("wait", wait), ECHO)
    events = run(ScriptedEngine([call("echo", text="x") + call("wait")]), [Message("user", "Go.")], tools)
    for event in events:
        if isinstance(event, ev.ToolEnd):
            break
    time.sleep(0.2)  # until the task is there to be cancelled
    events.close()
    assert cancelled.wait(5)


def test_a_long_result_is_whole_in_the_message_and_in_no_prompt():
    tool = reader("dump", lambda: "a" * 9000 + "b" * 9000)
    engine, _, added = play([call("dump"), "Long."], (tool,))
    answer = next(message for message in added if message.role == "tool")
    assert answer.full == "a" * 9000 + "b" * 9000
    assert "a" * 9000 not in engine.prompts[1]
    assert "full" not in answer.to_dict()
    _, _, added = play([call("echo", text="short"), "ok"])
    assert next(message.full for message in added if message.role == "tool") == ""

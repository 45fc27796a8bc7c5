"""Who may run: the modes, and what an answer means for the calls after it."""

from __future__ import annotations

import json

import pytest

from qwen_tools import Message, Tool, run
from qwen_tools import events as ev
from qwen_tools.approval import Approval
from qwen_tools.engines.scripted import ScriptedEngine
from qwen_tools.errors import UserError
from qwen_tools.messages import ToolCall

LOOK = Tool("look", "Look.", {}, lambda: "seen", read_only=True)
SEND = Tool("send", "Send.", {}, lambda text="": "sent")
WIPE = Tool("wipe", "Wipe.", {}, lambda: "wiped")


def person(*answers: str):
    """Somebody who answers in this order, and what they were asked."""
    waiting, asked = list(answers), []

    def ask(call, tool):
        asked.append((call.name, call.arguments))
        return waiting.pop(0)

    return ask, asked


def allowed(approval: Approval, tool: Tool, **arguments) -> bool:
    return approval(ToolCall(tool.name, arguments), tool)


@pytest.mark.parametrize(
    ("mode", "reads", "asked", "writes_without_a_person"),
    [
        ("none", False, False, False),
        ("read", True, False, False),
        ("ask", True, True, False),
        ("all", True, False, True),
    ],
)
def test_a_mode_says_who_runs_and_who_is_asked(mode, reads, asked, writes_without_a_person):
    ask, questions = person("once")
    approval = Approval(mode, ask)
    assert allowed(approval, LOOK) is reads
    assert questions == []  # what only reads is never a question
    assert allowed(approval, SEND) is (asked or mode == "all")
    assert bool(questions) is asked
    assert allowed(Approval(mode), SEND) is writes_without_a_person


def test_the_default_is_to_ask_and_without_anybody_to_refuse():
    assert not allowed(Approval(), SEND)
    assert allowed(Approval(), LOOK)


def test_once_is_once():
    ask, asked = person("once", "no")
    approval = Approval("ask", ask)
    assert [allowed(approval, SEND, text="a"), allowed(approval, SEND, text="a")] == [True, False]
    assert len(asked) == 2


def test_exact_is_for_the_same_arguments_in_any_order():
    ask, asked = person("exact", "no", "no")
    approval = Approval("ask", ask)
    assert allowed(approval, SEND, text="a", to="b")
    assert allowed(approval, SEND, to="b", text="a")
    assert not allowed(approval, SEND, text="a", to="c")
    assert not allowed(approval, WIPE, text="a", to="b")
    assert len(asked) == 3


def test_always_is_for_the_tool_and_no_other():
    ask, asked = person("always", "no")
    approval = Approval("ask", ask)
    assert allowed(approval, SEND, text="a")
    assert allowed(approval, SEND, text="b")
    assert not allowed(approval, WIPE)
    assert len(asked) == 2


def test_never_holds_in_every_mode_and_asks_no_more():
    ask, asked = person("never")
    approval = Approval("ask", ask)
    assert not allowed(approval, SEND)
    assert not allowed(approval, SEND)
    approval.mode = "all"
    assert not allowed(approval, SEND)
    assert allowed(approval, WIPE)
    assert len(asked) == 1


@pytest.mark.parametrize("answer", ["no", "", "Always", "yes please", None])
def test_anything_else_is_a_no(answer):
    assert not allowed(Approval("ask", lambda *_: answer), SEND)


@pytest.mark.parametrize("answer", ["always", "exact"])
def test_another_tool_that_takes_the_name_is_asked_about(answer):
    ask, asked = person(answer, "no")
    approval = Approval("ask", ask)
    assert allowed(approval, SEND)
    assert not allowed(approval, Tool("send", "Send.", {}, lambda: "something else"))
    assert len(asked) == 2


def test_a_stricter_mode_overrides_what_was_allowed():
    approval = Approval("ask", person("always")[0])
    assert allowed(approval, SEND)
    approval.mode = "read"
    assert not allowed(approval, SEND)
    approval.mode = "none"
    assert not allowed(approval, LOOK)


def test_what_was_answered_can_be_forgotten():
    ask, asked = person("always", "never", "no", "once")
    approval = Approval("ask", ask)
    allowed(approval, SEND), allowed(approval, WIPE)
    approval.forget()
    assert [allowed(approval, SEND), allowed(approval, WIPE)] == [False, True]
    assert len(asked) == 4


def test_a_mode_that_is_none_is_an_error():
    with pytest.raises(UserError, match="ask"):
        Approval("sometimes")


def call(name: str, **arguments) -> str:
    return "<tool_call>\n" + json.dumps({"name": name, "arguments": arguments}) + "\n</tool_call>"


def results(approval, *calls: str) -> list[str]:
    engine = ScriptedEngine(["\n".join(calls), "Done."])
    events = run(engine, [Message("user", "Go.")], (LOOK, SEND, WIPE), approve=approval)
    return [
        event.content if event.ok else json.loads(event.content)["error"]["kind"]
        for event in events
        if isinstance(event, ev.ToolEnd)
    ]


def test_always_covers_the_calls_that_wait_in_the_same_turn():
    ask, asked = person("always")
    calls = [call("send", text="a"), call("send", text="b"), call("look"), call("send", text="c")]
    assert results(Approval("ask", ask), *calls) == ["sent", "sent", "seen", "sent"]
    assert asked == [("send", {"text": "a"})]


def test_never_covers_them_too():
    ask, asked = person("never", "once")
    assert results(Approval("ask", ask), call("send", text="a"), call("send", text="b"), call("wipe")) == [
        "denied",
        "denied",
        "wiped",
    ]
    assert [name for name, _ in asked] == ["send", "wipe"]


def test_ctrl_c_at_a_question_stops_the_turn_and_runs_nothing():
    ran = []

    def ask(call, tool):
        raise KeyboardInterrupt

    wipe = Tool("wipe", "Wipe.", {}, lambda: ran.append(1))
    engine = ScriptedEngine([call("look") + call("wipe") + call("look")])
    events = list(run(engine, [Message("user", "Go.")], (LOOK, wipe), approve=Approval("ask", ask)))
    assert [event.ok for event in events if isinstance(event, ev.ToolEnd)] == [True, False, False]
    assert events[-1].reason == "interrupted"
    assert ran == []


def test_a_call_that_cannot_run_is_no_question():
    ask, asked = person()
    assert results(Approval("ask", ask), call("nothing"), call("send", text="a")[:-15]) == [
        "unknown_tool",
        "unterminated",
    ]
    assert asked == []


def test_none_refuses_what_only_reads_and_the_model_is_told():
    engine = ScriptedEngine([call("look"), "I cannot look."])
    list(run(engine, [Message("user", "Go.")], (LOOK,), approve=Approval("none")))
    assert "not allowed" in engine.prompts[1]

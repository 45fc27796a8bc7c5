"""One call, one result; nothing that a model or a tool does raises."""

from __future__ import annotations

import json
import threading
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qwen_tools import Tool, Toolbox
from qwen_tools.executor import execute
from qwen_tools.messages import Problem, ToolCall

NUMBER = {"type": "object", "properties": {"a": {"type": "number"}}, "required": ["a"]}


def run(function, arguments=None, parameters=None, read_only=True, **how):
    tool = Tool("it", "It.", parameters or {}, function, read_only)
    return execute(ToolCall("it", arguments or {}), Toolbox([tool]), **how)


def kind(result) -> str:
    assert not result.ok
    return json.loads(result.content)["error"]["kind"]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("plain é", "plain é"),
        (88.0, "88.0"),
        (18204, "18204"),
        (None, "null"),
        (True, "true"),
        ({"b": 1, "a": "é"}, '{"b": 1, "a": "é"}'),
        ([1, "x"], '[1, "x"]'),
        (
            {
                1,
            },
            "{1}",
        ),
    ],
)
def test_what_a_tool_returns_is_text_or_json(value, text):
    result = run(lambda: value)
    assert (result.ok, result.content, result.full) == (True, text, text)


def test_a_value_that_cannot_be_shown_is_said_to_be_one():
    class Bad:
        def __str__(self):
            raise ValueError

    assert "Bad" in run(Bad).content


def test_exceptions_become_one_short_line():
    def fail():
        raise RuntimeError("disk\nfull " + "x" * 5000)

    result = run(fail)
    assert kind(result) == "tool_error"
    assert "RuntimeError: disk full" in result.content
    assert len(result.content) < 800


@pytest.mark.parametrize("error", [SystemExit(3), GeneratorExit(), RecursionError("deep"), MemoryError()])
def test_even_what_is_not_an_exception_stays_inside(error):
    def fail():
        raise error

    assert kind(run(fail)) == "tool_error"


def test_a_keyboard_interrupt_is_the_persons_and_passes():
    def stop():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(stop)


def test_a_tool_that_takes_too_long_is_left_behind():
    release = threading.Event()
    started = time.monotonic()
    result = run(release.wait, timeout=0.1)
    assert time.monotonic() - started < 2
    release.set()
    assert kind(result) == "timeout"
    assert result.seconds >= 0.1


def test_async_tools_are_awaited_and_limited():
    import asyncio

    async def quick():
        await asyncio.sleep(0)
        return 7

    async def slow():
        await asyncio.sleep(5)

    assert run(quick).content == "7"
    assert kind(run(slow, timeout=0.1)) == "timeout"


def test_arguments_are_checked_before_anything_runs():
    ran = []
    assert kind(run(ran.append, {"a": "x"}, NUMBER)) == "schema"
    assert kind(run(ran.append, [1], NUMBER)) == "schema"
    assert ran == []


def test_only_offered_tools_run_and_the_closest_is_named():
    box = Toolbox([Tool("get_weather", "W.", {}, lambda: 1, read_only=True)])
    result = execute(ToolCall("get_wether", {}), box)
    assert kind(result) == "unknown_tool"
    assert "Did you mean get_weather?" in result.content
    assert kind(execute(ToolCall("os.system", {}), Toolbox())) == "unknown_tool"
    assert kind(execute(ToolCall("declared", {}), Toolbox([Tool("declared", "No function.")]))) == "unknown_tool"


def test_a_call_with_a_problem_never_runs():
    ran = []
    tool = Tool("it", "It.", {}, lambda: ran.append(1), read_only=True)
    call = ToolCall("it", {}, problems=(Problem("unterminated", "cut", (0, 3), "raw"),))
    assert kind(execute(call, Toolbox([tool]))) == "unterminated"
    assert ran == []


def test_what_is_not_read_only_needs_a_yes():
    ran = []
    assert kind(run(lambda: ran.append(1), read_only=False)) == "denied"
    assert kind(run(lambda: ran.append(1), read_only=False, approve=lambda *_: False)) == "denied"
    assert ran == []
    assert run(lambda: ran.append(1), read_only=False, approve=lambda *_: True).ok
    assert ran == [1]


@given(st.text(min_size=0, max_size=400), st.integers(20, 100))
def test_a_long_result_keeps_head_and_tail(text, limit):
    result = run(lambda: text, limit=limit)
    assert result.full == text
    if len(text) <= limit:
        assert result.content == text
    else:
        assert result.content.startswith(text[: limit // 2])
        assert result.content.endswith(text[-(limit // 4) :])
        assert len(result.content) <= limit + 60
        left_out = int(result.content.split("[… ")[-1].split()[0])
        assert left_out == len(text) - limit * 2 // 3 - limit // 3

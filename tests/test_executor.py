"""One call, one result; nothing that a model or a tool does raises."""

from __future__ import annotations

import asyncio
import dataclasses
import datetime
import enum
import json
import subprocess
import sys
import threading
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qwen_tools import Tool, Toolbox
from qwen_tools.executor import execute
from qwen_tools.messages import Problem, ToolCall


@dataclasses.dataclass
class Point:
    x: int
    y: object


class Colour(str, enum.Enum):
    RED = "red"


class UnsayableError(Exception):
    def __str__(self):
        raise ValueError


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
        ({1}, "[1]"),
        ({"day": datetime.date(2026, 12, 1)}, '{"day": "2026-12-01"}'),
        (Point(1, {2}), '{"x": 1, "y": [2]}'),
        ({(1, 2): 3}, "{(1, 2): 3}"),
        (b"raw", "\"b'raw'\""),
        (Colour.RED, "red"),
        ("half \ud83d pair", "half \ufffd pair"),
        ({"a": "\udc80"}, '{"a": "\ufffd"}'),
    ],
)
def test_what_a_tool_returns_is_text_or_json(value, text):
    result = run(lambda: value)
    assert (result.ok, result.content, result.full) == (True, text, text)
    assert type(result.content) is str
    result.content.encode()


def test_a_value_that_contains_itself_is_text_all_the_same():
    circle: list = []
    circle.append(circle)
    deep: list = []
    for _ in range(100_000):
        deep = [deep]
    assert run(lambda: circle).content == "[[...]]"
    assert kind(run(lambda: deep)) == "tool_error"


def test_a_value_that_cannot_be_shown_is_a_failure_of_the_tool():
    class Bad:
        def __str__(self):
            raise ValueError("no words")

    result = run(Bad)
    assert kind(result) == "tool_error"
    assert "no words" in result.content


def test_showing_a_value_counts_against_the_time_limit():
    release = threading.Event()

    class Slow:
        def __str__(self):
            release.wait(20)
            return "late"

    started = time.monotonic()
    result = run(Slow, timeout=0.1)
    release.set()
    assert kind(result) == "timeout"
    assert time.monotonic() - started < 2


def test_exceptions_become_one_short_line():
    def fail():
        raise RuntimeError("disk\nfull " + "x" * 5000)

    result = run(fail)
    assert kind(result) == "tool_error"
    assert "RuntimeError: disk full" in result.content
    assert len(result.content) < 800


@pytest.mark.parametrize(
    "error",
    [SystemExit(3), GeneratorExit(), RecursionError("deep"), MemoryError(), UnsayableError(), TimeoutError("own")],
)
def test_even_what_is_not_an_exception_stays_inside(error):
    def fail():
        raise error

    result = run(fail)
    assert kind(result) == "tool_error"
    assert type(error).__name__ in result.content


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


def test_async_tools_are_awaited():
    async def quick():
        await asyncio.sleep(0)
        return 7

    async def failing():
        raise TimeoutError("the server is away")

    assert run(quick).content == "7"
    assert kind(run(failing)) == "tool_error"


def test_an_async_tool_that_takes_too_long_is_cancelled():
    cancelled = threading.Event()

    async def slow():
        try:
            await asyncio.sleep(20)
        finally:
            cancelled.set()

    started = time.monotonic()
    assert kind(run(slow, timeout=0.1)) == "timeout"
    assert time.monotonic() - started < 2
    assert cancelled.wait(2)


def test_an_async_tool_runs_also_inside_a_running_event_loop():
    async def quick():
        return 7

    async def program():
        return run(quick)

    assert asyncio.run(program()).content == "7"


def test_a_tool_cannot_change_what_the_conversation_holds():
    call = ToolCall("it", {"words": ["a"]})
    box = Toolbox([Tool("it", "It.", {}, lambda words: words.append("b"), read_only=True)])
    assert execute(call, box).ok
    assert call.arguments == {"words": ["a"]}


def test_a_stuck_tool_does_not_keep_the_program_alive():
    code = (
        "import time; from qwen_tools import Tool, Toolbox; from qwen_tools.executor import execute; "
        "from qwen_tools.messages import ToolCall; "
        "box = Toolbox([Tool('it', '', {}, lambda: time.sleep(60), read_only=True)]); "
        "print(execute(ToolCall('it', {}), box, timeout=0.1).kind)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=20, check=True)
    assert done.stdout == "timeout\n"


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
    declared = execute(ToolCall("declared", {}), Toolbox([Tool("declared", "No function.")]))
    assert kind(declared) == "unknown_tool"
    assert "Did you mean" not in declared.content


def test_a_monstrous_name_is_answered_briefly_and_at_once():
    box = Toolbox([Tool(f"tool_{number}", "T.", {}, lambda: 1, read_only=True) for number in range(1000)])
    started = time.monotonic()
    result = execute(ToolCall("tool_\ud800" * 100_000, {}), box)
    assert time.monotonic() - started < 2
    assert kind(result) == "unknown_tool"
    assert len(result.content) < 3000
    result.content.encode()


def test_a_call_with_a_problem_never_runs():
    ran = []
    tool = Tool("it", "It.", {}, lambda: ran.append(1), read_only=True)
    call = ToolCall("it", {}, problems=(Problem("unterminated", "cut", (0, 3), "raw"),))
    assert kind(execute(call, Toolbox([tool]))) == "unterminated"
    assert ran == []


def test_what_is_not_read_only_needs_a_yes():
    ran = []
    unasked = run(lambda: ran.append(1), read_only=False)
    assert kind(unasked) == "denied"
    assert "not allowed" in unasked.content
    assert kind(run(lambda: ran.append(1), read_only=False, approve=lambda *_: False)) == "denied"
    assert ran == []
    assert run(lambda: ran.append(1), read_only=False, approve=lambda *_: True).ok
    assert ran == [1]


def test_a_result_without_end_is_cut_for_the_person_too():
    result = run(lambda: "x" * 11_000_000)
    assert len(result.full) < 10_000_100
    assert "characters left out" in result.full[6_000_000:7_000_000]


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

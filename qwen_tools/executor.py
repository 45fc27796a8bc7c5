"""One call in, one result out. Nothing that the model or a tool does raises here.

Only an offered tool runs, with arguments that its schema accepts; what does more than read is approved first; it has
limits of time and size. What went wrong is told to the model in one short JSON object that says what to do.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import json
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from .messages import ToolCall
from .tools import Tool, Toolbox
from .validate import problem


@dataclass(frozen=True)
class ToolResult:
    """What came of a call: ``content`` is what the model reads, ``full`` is unshortened. ``kind`` is empty, or that of
    the error: a Problem's, or ``denied``, ``timeout``, ``tool_error``, ``repeated``, ``interrupted``, ``no_tools_now``.
    """

    name: str
    content: str
    ok: bool
    kind: str
    full: str
    seconds: float


def refusal(name: str, kind: str, message: str, seconds: float = 0.0) -> ToolResult:
    """The result of a call that gave none: ``{"error": {"kind", "message"}}``."""
    content = json.dumps({"error": {"kind": kind, "message": message}}, ensure_ascii=False)
    return ToolResult(name, content, ok=False, kind=kind, full=content, seconds=seconds)


def execute(
    call: ToolCall,
    toolbox: Toolbox,
    *,
    approve: Callable[[ToolCall, Tool], bool] | None = None,
    timeout: float = 30.0,
    limit: int = 8000,
) -> ToolResult:
    """Check a call and run it.

    ``approve`` is asked before a tool that is not read-only; without it the call is refused. ``timeout`` is in
    seconds: what takes longer is left behind. A result of more than ``limit`` characters is shortened in the
    middle for the model. Raises only KeyboardInterrupt.
    """
    tool = toolbox.get(call.name)
    for found in call.problems:
        if found.kind != "unknown_tool":
            return refusal(call.name, found.kind, found.message)
    if tool is None or tool.function is None:
        return refusal(call.name, "unknown_tool", _unknown(call.name, toolbox))
    wrong = problem(call.arguments, tool.parameters)
    if wrong:
        return refusal(call.name, "schema", wrong)
    if not tool.read_only and not (approve and approve(call, tool)):
        return refusal(
            call.name,
            "denied",
            "The user did not allow this call. Do not try it again; say what you would have done.",
        )
    started = time.monotonic()
    outcome = _run(tool.function, call.arguments, timeout)
    seconds = time.monotonic() - started
    if outcome is None:
        return refusal(
            call.name,
            "timeout",
            f"{call.name} took longer than {timeout:g} seconds and was stopped. Try something smaller.",
            seconds,
        )
    value, error = outcome
    if error is not None:
        text = " ".join(str(error).split())
        return refusal(call.name, "tool_error", _shortened(f"{type(error).__name__}: {text}", 500), seconds)
    full = _as_text(value)
    return ToolResult(call.name, _shortened(full, limit), ok=True, kind="", full=full, seconds=seconds)


def _unknown(name: str, toolbox: Toolbox) -> str:
    names = toolbox.names()
    if not names:
        return "There are no tools. Answer in words."
    close = get_close_matches(name, names, 1, 0.5)
    hint = f"Did you mean {close[0]}? " if close else ""
    return f"There is no tool {name!r}. {hint}The tools are: {', '.join(names)}."


def _run(
    function: Callable[..., Any], arguments: dict[str, Any], timeout: float
) -> tuple[Any, BaseException | None] | None:
    """(value, error), or None when time was up. A thread cannot be stopped from outside, so one
    that takes too long is left to end by itself; it is a daemon and does not keep the program alive.
    """
    done = threading.Event()
    outcome: list[tuple[Any, BaseException | None]] = []

    def work() -> None:
        try:
            value = function(**arguments)
            if inspect.isawaitable(value):
                value = asyncio.run(_awaited(value))
            outcome.append((value, None))
        except BaseException as error:  # noqa: BLE001 - also a tool that calls sys.exit is only a failed tool
            outcome.append((None, error))
        finally:
            done.set()

    context = contextvars.copy_context()
    threading.Thread(target=context.run, args=(work,), name="tool", daemon=True).start()
    # In short waits: a single long one would not hear Ctrl-C on every system.
    deadline = time.monotonic() + timeout
    while not done.wait(min(0.1, max(0.0, deadline - time.monotonic()))):
        if time.monotonic() >= deadline:
            return None
    if isinstance(outcome[0][1], KeyboardInterrupt):
        raise outcome[0][1]
    return outcome[0]


async def _awaited(value: Any) -> Any:
    return await value


def _as_text(value: Any) -> str:
    """What the model reads of a value: text as it is, everything else as JSON."""
    if isinstance(value, str):
        return value
    try:
        return json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        pass
    try:
        return str(value)
    except Exception as error:  # noqa: BLE001 - the tool's own __str__ may do anything
        return f"a {type(value).__name__} that cannot be shown ({type(error).__name__})"


def _shortened(text: str, limit: int) -> str:
    """Head and tail of a text that is too long, with a mark that says how much is left out."""
    if len(text) <= limit:
        return text
    head, tail = limit * 2 // 3, limit // 3
    return f"{text[:head]}\n[… {len(text) - head - tail} characters left out …]\n{text[-tail:]}"

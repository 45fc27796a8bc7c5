"""One call in, one result out. Nothing that the model or a tool does raises here.

Only an offered tool runs, with arguments that its schema accepts; what does more than read is approved first; it has
limits of time and size. What went wrong is told to the model in one short JSON object that says what to do.
"""

from __future__ import annotations

import asyncio
import contextvars
import copy
import dataclasses
import inspect
import json
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from .messages import ToolCall
from .tools import Output, Tool, Toolbox
from .validate import problem


@dataclass(frozen=True)
class ToolResult:
    """What came of a call: ``content`` is what the model reads, ``full`` is unshortened. ``kind`` is empty, or that of
    the error: a Problem's, or ``denied``, ``timeout``, ``tool_error``, ``repeated``, ``interrupted``, ``no_tools_now``.
    ``references`` are for the person alone.
    """

    name: str
    content: str
    ok: bool
    kind: str
    full: str
    seconds: float
    references: tuple[str, ...] = ()


def refusal(name: str, kind: str, message: str, seconds: float = 0.0) -> ToolResult:
    """The result of a call that gave none: ``{"error": {"kind", "message"}}``."""
    content = _clean(json.dumps({"error": {"kind": kind, "message": message}}, ensure_ascii=False))
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
    seconds: an async function that takes longer is cancelled, any other is left behind. A result of more than
    ``limit`` characters is shortened in the middle for the model. Raises only KeyboardInterrupt.
    """
    tool = toolbox.get(call.name)
    for found in call.problems:
        if found.kind != "unknown_tool":
            return refusal(call.name, found.kind, found.message)
    if tool is None:
        return refusal(call.name, "unknown_tool", _unknown(call.name, toolbox))
    if tool.function is None:
        return refusal(call.name, "unknown_tool", f"{call.name} cannot be run here. Answer without it.")
    wrong = problem(call.arguments, tool.parameters)
    if wrong:
        return refusal(call.name, "schema", wrong)
    if not tool.read_only and approve is None:
        return refusal(call.name, "denied", "Nobody can be asked to allow this call. Say what you would have done.")
    if not tool.read_only and approve and not approve(call, tool):
        return refusal(
            call.name,
            "denied",
            "The user did not allow this call. Do not try it again; say what you would have done.",
        )
    started = time.monotonic()
    full, references, error = _run(tool.function, call.arguments, started + timeout)
    seconds = time.monotonic() - started
    if isinstance(error, KeyboardInterrupt):
        raise error
    if isinstance(error, _TimeUpError):
        message = (
            f"{call.name} did not answer within {timeout:g} seconds. Its result is not known; try something smaller."
        )
        return refusal(call.name, "timeout", message, seconds)
    if error is not None:
        return refusal(call.name, "tool_error", _told(error), seconds)
    shown = _shortened(full, limit)
    return ToolResult(call.name, shown, ok=True, kind="", full=full, seconds=seconds, references=references)


def _unknown(name: str, toolbox: Toolbox) -> str:
    names = toolbox.names()
    if not names:
        return "There are no tools. Answer in words."
    name = name[:100]  # a model may write anything, and finding what is close takes the square of the length
    close = get_close_matches(name, names, 1, 0.5)
    hint = f"Did you mean {close[0]}? " if close else ""
    return f"There is no tool {name!r}. {hint}The tools are: {_shortened(', '.join(names), 2000)}."


class _TimeUpError(Exception):
    """Not a TimeoutError, which a tool may raise by itself."""


def _run(
    function: Callable[..., Any], arguments: dict[str, Any], deadline: float
) -> tuple[str, tuple[str, ...], BaseException | None]:
    """The result as text, its references, and what was raised. A thread cannot be stopped from outside, so one
    that takes too long is left to end by itself; it is a daemon and does not keep the program alive.
    """
    done = threading.Event()
    outcome: list[tuple[str, tuple[str, ...], BaseException | None]] = []

    def work() -> None:
        try:
            # A copy, since the conversation keeps the arguments as the model wrote them.
            value = function(**copy.deepcopy(arguments))
            if inspect.isawaitable(value):
                value = asyncio.run(_awaited(value, deadline))
            # Here, because a value's own methods may raise or take for ever just like the tool.
            output = value if isinstance(value, Output) else Output(value)
            outcome.append((_as_text(output.content), output.references, None))
        except BaseException as error:  # noqa: BLE001 - also a tool that calls sys.exit is only a failed tool
            outcome.append(("", (), error))
        finally:
            done.set()

    context = contextvars.copy_context()
    threading.Thread(target=context.run, args=(work,), name="tool", daemon=True).start()
    # In short waits: a single long one would not hear Ctrl-C on every system.
    while not done.wait(min(0.1, max(0.0, deadline - time.monotonic()))):
        if time.monotonic() >= deadline:
            return "", (), _TimeUpError()
    return outcome[0]


async def _awaited(value: Any, deadline: float) -> Any:
    task = asyncio.ensure_future(value)
    finished, _ = await asyncio.wait({task}, timeout=deadline - time.monotonic())
    if not finished:
        raise _TimeUpError  # asyncio.run cancels what is left
    return task.result()


def _as_text(value: Any) -> str:
    """What the model reads of a value: text as it is, everything else as JSON."""
    if not isinstance(value, str):
        try:
            value = json.dumps(value, ensure_ascii=False, default=_as_json)
        except (TypeError, ValueError, RecursionError):  # keys that are no text, a value that contains itself
            value = str(value)
    return _clean(value)


def _as_json(value: Any) -> Any:
    """A JSON value for what json does not know."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, (set, frozenset)):
        return list(value)
    return str(value)


def _clean(text: str) -> str:
    """Text that can be encoded: half a surrogate pair, as file names may hold, becomes a replacement character."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _told(error: BaseException) -> str:
    """Type and text of an exception, on one line."""
    try:
        text = " ".join(str(error).split())
    except Exception:  # noqa: BLE001 - the tool's own exception may do anything
        text = ""
    return _shortened(f"{type(error).__name__}: {text}" if text else type(error).__name__, 500)


def _shortened(text: str, limit: int) -> str:
    """Head and tail of a text that is too long, with a mark that says how much is left out."""
    if len(text) <= limit:
        return text
    head, tail = limit * 2 // 3, limit // 3
    return f"{text[:head]}\n[… {len(text) - head - tail} characters left out …]\n{text[-tail:]}"

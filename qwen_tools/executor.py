"""One call in, one result out. Nothing that the model or a tool does raises here.

Only an offered tool runs, with arguments that its schema accepts; what does more than read is approved first; it has
limits of time and size. What went wrong is told to the model in one short JSON object that says what to do.
"""

from __future__ import annotations

import asyncio
import contextlib
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

# Characters of a result that are kept for the person; what a tool gives without end must not fill memory and disk.
_LARGEST = 10_000_000


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


def interrupted(name: str) -> ToolResult:
    """The result of a call that the person stopped, or that did not begin before that."""
    return refusal(name, "interrupted", "The user stopped this. Do not assume a result.")


def execute(
    call: ToolCall,
    toolbox: Toolbox,
    *,
    approve: Callable[[ToolCall, Tool], bool] | None = None,
    timeout: float = 30.0,
    limit: int = 8000,
) -> ToolResult:
    """Check a call, run it and wait for its result: ``begin`` and ``Execution.result`` in one."""
    begun = begin(call, toolbox, approve=approve, timeout=timeout, limit=limit)
    return begun if isinstance(begun, ToolResult) else begun.result()


def begin(
    call: ToolCall,
    toolbox: Toolbox,
    *,
    approve: Callable[[ToolCall, Tool], bool] | None = None,
    timeout: float = 30.0,
    limit: int = 8000,
) -> Execution | ToolResult:
    """Check a call and let it run in a thread of its own; the result at once where it may not run.

    ``approve`` is asked before any tool runs; without it those run that are read-only, and the others are refused.
    ``timeout`` is in seconds: an async function that takes longer is cancelled, any other is left behind. A result
    of more than ``limit`` characters is shortened in the middle for the model. Raises only KeyboardInterrupt.
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
    if not (approve(call, tool) if approve else tool.read_only):
        return refusal(
            call.name, "denied", "This call was not allowed. Do not try it again; say what you would have done."
        )
    return Execution(tool.name, tool.function, call.arguments, timeout, limit)


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


class Execution:
    """A call that runs: begun when this is made, in a daemon thread, which does not keep the program alive.

    A thread cannot be stopped from outside, so a plain function that takes too long is left to end by itself.
    """

    def __init__(
        self, name: str, function: Callable[..., Any], arguments: dict[str, Any], timeout: float, limit: int
    ) -> None:
        self._name = name
        self._function = function
        self._arguments = arguments
        self._timeout = timeout
        self._limit = limit
        self._started = time.monotonic()
        self._done = threading.Event()
        self._outcome: tuple[str, BaseException | None, float] | None = None
        self._references: tuple[str, ...] = ()
        self._cancel: Callable[[], object] | None = None
        self._stopped = False
        context = contextvars.copy_context()
        threading.Thread(target=context.run, args=(self._work,), name="tool", daemon=True).start()

    def result(self) -> ToolResult:
        """Wait for the result, for no longer than the time limit. Raises only KeyboardInterrupt."""
        deadline = self._started + self._timeout
        # In short waits: a single long one would not hear Ctrl-C on every system.
        while not self._done.wait(min(0.1, max(0.0, deadline - time.monotonic()))):
            if time.monotonic() >= deadline:
                self._stop()
                return self._late()
        return self._result()

    def interrupt(self) -> ToolResult:
        """Wait no longer: the result where there is one already. An async function is cancelled."""
        if self._done.is_set() and not isinstance(self._outcome and self._outcome[1], KeyboardInterrupt):
            return self._result()
        self._stop()
        return interrupted(self._name)

    def _result(self) -> ToolResult:
        text, error, seconds = self._outcome or ("", None, 0.0)
        if isinstance(error, KeyboardInterrupt):
            raise error
        if isinstance(error, _TimeUpError):
            return self._late()
        if error is not None:
            return refusal(self._name, "tool_error", _told(error), seconds)
        content = _shortened(text, self._limit)
        return ToolResult(
            self._name, content, ok=True, kind="", full=text, seconds=seconds, references=self._references
        )

    def _late(self) -> ToolResult:
        message = (
            f"{self._name} did not answer within {self._timeout:g} seconds. Its result is not known; "
            "try something smaller."
        )
        return refusal(self._name, "timeout", message, time.monotonic() - self._started)

    def _work(self) -> None:
        text, error = "", None
        try:
            # A copy, since the conversation keeps the arguments as the model wrote them.
            value = self._function(**copy.deepcopy(self._arguments))
            if inspect.isawaitable(value):
                value = asyncio.run(self._awaited(value))
            # Here, because a value's own methods may raise or take for ever just like the tool.
            output = value if isinstance(value, Output) else Output(value)
            text, self._references = _shortened(_as_text(output.content), _LARGEST), output.references
        except BaseException as raised:  # noqa: BLE001 - also a tool that calls sys.exit is only a failed tool
            error = raised
        finally:
            self._outcome = (text, error, time.monotonic() - self._started)
            self._done.set()

    async def _awaited(self, value: Any) -> Any:
        task = asyncio.ensure_future(value)
        loop = asyncio.get_running_loop()
        self._cancel = lambda: loop.call_soon_threadsafe(task.cancel)
        if self._stopped:  # before there was anything to cancel
            task.cancel()
        finished, _ = await asyncio.wait({task}, timeout=self._started + self._timeout - time.monotonic())
        if not finished:
            raise _TimeUpError  # asyncio.run cancels what is left
        return task.result()

    def _stop(self) -> None:
        """Cancel an async function. Nothing where it is at its end."""
        self._stopped = True
        with contextlib.suppress(RuntimeError):  # its loop is closed
            if self._cancel:
                self._cancel()


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

"""The question whether a call may run: what exactly would run, and what can be answered."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Callable

from ..messages import ToolCall
from ..tools import Tool
from .activity import Activity
from .terminal import say, style, visible

# What is typed, and what approval.Approval understands by it.
_ANSWERS = {
    "o": "once",
    "y": "once",
    "yes": "once",
    "e": "exact",
    "a": "always",
    "n": "no",
    "": "no",
    "v": "never",
}
_CHOICES = "[o]nce, [e]xactly this from now on, [a]lways this tool, [n]o, ne[v]er"


def person(activity: Activity) -> Callable[[ToolCall, Tool], str] | None:
    """Who can be asked at this terminal; None where nobody can."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return None

    def ask(call: ToolCall, tool: Tool) -> str:
        with activity.paused():
            return _ask(call, tool)

    return ask


def _ask(call: ToolCall, tool: Tool) -> str:
    """``once``, ``exact``, ``always``, ``no`` or ``never``. Ctrl-C is passed on: it stops the answer too."""
    say(style(f"{visible(tool.name)} may change something. It would run with:", "33"))
    for line in shown_arguments(call):
        say(line)
    _forget_typed()
    while True:
        sys.stderr.write(f"Run it? {_CHOICES}: ")
        sys.stderr.flush()
        try:
            line = sys.stdin.readline()
        except KeyboardInterrupt:
            say("")  # behind the ^C that the terminal shows
            raise
        if not line:  # Ctrl-D
            say("")
            return "no"
        word = line.strip().lower()
        if word in _ANSWERS or word in _ANSWERS.values():
            return _ANSWERS.get(word, word)
        say("Type one of o, e, a, n, v.")


def shown_arguments(call: ToolCall) -> list[str]:
    """Every argument, whole: as JSON, and a text of several lines as the lines it has, each behind a bar."""
    if not isinstance(call.arguments, dict) or not call.arguments:
        return [f"  {visible(json.dumps(call.arguments, ensure_ascii=False))}"]
    lines = []
    for name, value in call.arguments.items():
        if isinstance(value, str) and "\n" in value:
            lines.append(f"  {visible(name)}:")
            lines += [f"    │ {visible(line, keep=chr(9))}" for line in value.split("\n")]
        else:
            lines.append(f"  {visible(name)}: {visible(json.dumps(value, ensure_ascii=False))}")
    return lines


def _forget_typed() -> None:
    """What was typed before the question was there is no answer to it."""
    with contextlib.suppress(ImportError, OSError):  # no termios on Windows
        import termios

        termios.tcflush(sys.stdin, termios.TCIFLUSH)

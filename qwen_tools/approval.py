"""Who says whether a call may run: the person, a rule, or nobody.

A call that only reads runs; one that writes, executes or goes out is asked about. What the person answered
"from now on" is remembered here, for this conversation and no longer.
"""

from __future__ import annotations

import json
from collections.abc import Callable

from .errors import UserError
from .messages import ToolCall
from .tools import Tool

# What --approve takes, from the strictest to the one that asks nobody.
MODES = ("none", "read", "ask", "all")


class Approval:
    """Decides about calls; the loop's ``approve``.

    ``mode``, which may be changed at any time, is ``ask`` (what only reads runs, the rest asks), ``read`` (the rest is
    refused), ``all`` (everything runs) or ``none`` (everything is refused). ``ask(call, tool)`` is the question to
    the person; it answers ``once``, ``exact`` (this call with these arguments from now on), ``always`` (this tool from
    now on), ``no`` or ``never`` (this tool is refused from now on), and anything else is a no. Without ``ask`` nobody
    can be asked, and what would be asked about is refused.
    """

    def __init__(self, mode: str = "ask", ask: Callable[[ToolCall, Tool], str] | None = None) -> None:
        """Raises UserError for a mode that does not exist."""
        if mode not in MODES:
            raise UserError(f"no approval mode {mode!r}: use {', '.join(MODES)}")
        self.mode = mode
        self._ask = ask
        # The tool itself, not its name alone: what later takes the name of an approved tool is asked about anew.
        self._always: dict[str, Tool] = {}
        self._exact: dict[str, Tool] = {}
        self._never: set[str] = set()

    def __call__(self, call: ToolCall, tool: Tool) -> bool:
        """Whether the call may run. Calls are asked about one at a time, so an answer covers those still waiting."""
        if self.mode == "none" or tool.name in self._never:
            return False
        if tool.read_only or self.mode == "all":
            return True
        if self.mode == "read":
            return False
        exact = json.dumps([tool.name, call.arguments], sort_keys=True)
        if self._always.get(tool.name) == tool or self._exact.get(exact) == tool:
            return True
        answer = self._ask(call, tool) if self._ask else "no"
        if answer == "always":
            self._always[tool.name] = tool
        elif answer == "exact":
            self._exact[exact] = tool
        elif answer == "never":
            self._never.add(tool.name)
        return answer in ("once", "exact", "always")

    def forget(self) -> None:
        """Take back everything that was answered for later calls."""
        self._always.clear()
        self._exact.clear()
        self._never.clear()

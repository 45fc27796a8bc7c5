"""The tools that come with the program. The six in ``BUILTIN``, which only read, are what a new user can try at once;
``SETS`` are larger, need a folder or do more than read, and are off unless asked for.
"""

from __future__ import annotations

from importlib import import_module

from ..tools import Tool
from . import arithmetic, clock, samples

BUILTIN: dict[str, Tool] = {tool.name: tool for module in (clock, arithmetic, samples) for tool in module.TOOLS}

# The set and its module, which is imported when the set is asked for.
SETS = {"files": "files", "docs": "docs", "python": "python", "web_fetch": "web"}


def open_set(name: str, argument: str) -> list[Tool]:
    """The tools of a set; ``argument`` is what follows the colon of its word. Raises UserError for a wrong one."""
    module = import_module(f".{SETS[name]}", __package__)
    return list(module.tools(argument))

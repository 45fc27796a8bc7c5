"""The tools that come with the program. The six in ``BUILTIN``, which only read, are what a new user can try at once;
``SETS`` are larger, need a folder or do more than read, and are off unless asked for.
"""

from __future__ import annotations

from collections.abc import Callable

from ..tools import Tool
from . import arithmetic, clock, docs, files, python, samples, web

BUILTIN: dict[str, Tool] = {tool.name: tool for module in (clock, arithmetic, samples) for tool in module.TOOLS}

# By name: what follows the colon of NAME:ARGUMENT, or nothing, in; tools out. Raises UserError for a wrong argument.
SETS: dict[str, Callable[[str], list[Tool]]] = {
    "files": files.tools,
    "docs": docs.tools,
    "python": python.tools,
    "web_fetch": web.tools,
}

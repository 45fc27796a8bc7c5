"""The tools that come with the program: what a new user can try at once. All of them only read."""

from __future__ import annotations

from difflib import get_close_matches

from ..errors import UserError
from ..tools import Tool, Toolbox, from_file
from ..validate import check_schema
from . import arithmetic, clock, samples

BUILTIN: dict[str, Tool] = {tool.name: tool for module in (clock, arithmetic, samples) for tool in module.TOOLS}


def load(selection: str | None) -> Toolbox:
    """The tools that ``--tools`` names: built-in ones, ``builtin`` for all of them, and ``.py`` files, separated by
    commas; ``none`` for none; None for all built-in ones.

    Raises UserError for an unknown name, with the closest that there is, and for a file's tool with a broken schema.
    """
    if selection is None:
        return Toolbox(BUILTIN.values())
    tools: list[Tool] = []
    for name in (part.strip() for part in selection.split(",")):
        if name in BUILTIN:
            tools.append(BUILTIN[name])
        elif name == "builtin":
            tools += BUILTIN.values()
        elif name.endswith(".py"):
            own = from_file(name)
            for tool in own:
                check_schema(tool.parameters, tool.name)
            tools += own
        elif name and name != "none":
            close = get_close_matches(name.lower(), [*BUILTIN, "builtin", "none"], 1)
            hint = f"did you mean {close[0]}?" if close else f"there are {', '.join(BUILTIN)}, builtin, and .py files"
            raise UserError(f"no tool {name!r}: {hint}")
    return Toolbox(tools)

"""Raw-prompt tool calling with local open-weight models."""

from __future__ import annotations

from .loop import run, turn
from .messages import Message
from .parser import ParsedTurn, StreamParser, parse
from .prompt import render
from .tools import Tool, Toolbox

__all__ = ["Message", "ParsedTurn", "StreamParser", "Tool", "Toolbox", "parse", "render", "run", "turn"]

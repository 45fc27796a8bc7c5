"""Read a model's answer as it is generated: text, reasoning and tool calls, in JSON or XML tags.

A state machine without I/O. ``feed`` takes any piece of the answer and returns events, ``close`` says how the answer
ended and returns the rest. The same answer in any pieces gives the same events but for where text is cut. What is held
back is the beginning of a tag, or white space whose meaning is still open, so the work is linear in the input.

The rules that decide what is a call:

- ``<tool_call>`` opens one only when ``{``, ``[`` or ``<function=`` follows; a bare ``<function=NAME>`` only when
  NAME is an offered tool and a body follows. Everything else is text, and so is all markup in a Markdown fence or
  directly behind a backtick.
- The body decides the dialect. In JSON a closing tag counts only outside of strings, where ``<`` cannot be JSON, so
  it also ends a broken body. In XML a closing tag counts only when what must follow it does.
- Inside a thought nothing is a call, unless the thought is never closed and the answer ends in one.
- A whole call whose closing tag is missing at the end is accepted when the model stopped by itself, never when it
  was cut.
- What is mended is named in ``ToolCall.repairs``. Nothing is guessed: no quotes are invented, no names.

``transitions`` is the machine as a table, ``stream`` the machine itself, ``json_body`` and ``xml_body`` the two
dialects; ``source`` is what goes in, ``attempts`` and ``output`` are what comes out.
"""

from .stream import MAX_CALL, ParsedTurn, StreamParser, fold, parse
from .transitions import TRANSITIONS

__all__ = ["MAX_CALL", "TRANSITIONS", "ParsedTurn", "StreamParser", "fold", "parse"]

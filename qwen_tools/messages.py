"""The values every layer speaks: messages, calls and what was wrong with them.

They hold data only. Reading OpenAI-style dictionaries is here too, because every
entrance (a session file, an API client, a Python caller) needs the same reading.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Problem:
    """Something wrong with one attempt at a call.

    ``kind`` is one of ``invalid_json``, ``unterminated``, ``missing_name``,
    ``unknown_tool``, ``schema``, ``too_large``. ``span`` counts characters of the
    answer, end exclusive; ``raw`` is that stretch of the answer.
    """

    kind: str
    message: str
    span: tuple[int, int]
    raw: str


@dataclass(frozen=True)
class ToolCall:
    """One whole call that the model wrote.

    ``raw`` and ``span`` say where it stood in the answer; ``repairs`` names what
    had to be mended to read it; ``problems`` says why it must not run as it is.
    ``id`` exists only for calls that came through an API format: raw tags pair
    calls and results by position.
    """

    name: str
    arguments: Any
    raw: str = ""
    span: tuple[int, int] = (0, 0)
    repairs: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()
    id: str | None = None


@dataclass(frozen=True)
class Message:
    """One message of a conversation.

    An assistant message that a local model generated keeps ``prefill`` (what the
    generation prompt had opened, for example ``"<think>\\n"``), ``raw`` (the text
    generated after it, without the end-of-turn token) and ``token_ids`` (the sampled
    ids of ``raw``, also without the end-of-turn id), so that it is never rendered
    again from its parts. ``finish`` is ``stop``, ``length`` or ``interrupted``.
    """

    role: str
    content: str = ""
    reasoning: str = ""
    calls: tuple[ToolCall, ...] = ()
    call_id: str | None = None
    name: str | None = None
    prefill: str = ""
    raw: str | None = None
    token_ids: tuple[int, ...] | None = None
    finish: str = "stop"

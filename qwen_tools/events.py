"""What happens while an answer is read, as values, in order.

The parser makes the first group from text alone; the loop adds the second group.
``to_dict`` gives the JSON form that ``--events`` prints.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

from .messages import Message, Problem, ToolCall


@dataclass(frozen=True)
class Text:
    """A piece of the answer that is plain text."""

    delta: str


@dataclass(frozen=True)
class ReasoningStart:
    """The model began to think."""


@dataclass(frozen=True)
class Reasoning:
    """A piece of the thought."""

    delta: str


@dataclass(frozen=True)
class ReasoningEnd:
    """The thought is over."""


@dataclass(frozen=True)
class CallStart:
    """A call opened. ``index`` counts the calls and failed attempts of the turn from 0. ``id`` is the one that an API
    gave it.
    """

    index: int
    id: str | None = None


@dataclass(frozen=True)
class CallName:
    """The name of an open call is known."""

    index: int
    name: str


@dataclass(frozen=True)
class CallArgs:
    """A piece of the arguments as JSON text; all pieces of one call join to valid JSON
    whenever the call ends whole (``CallEnd.call.arguments`` is authoritative).
    """

    index: int
    delta: str


@dataclass(frozen=True)
class CallEnd:
    """The call is whole; ``call.problems`` says whether it may run."""

    index: int
    call: ToolCall


@dataclass(frozen=True)
class CallError:
    """An attempt that gives no call."""

    index: int
    problem: Problem


@dataclass(frozen=True)
class End:
    """The answer is over: ``stop``, ``length`` or ``interrupted``."""

    finish: str


# ---- what the loop adds


@dataclass(frozen=True)
class Usage:
    """What one answer cost: tokens, and seconds of wall time.

    ``prompt_tokens`` counts the whole prompt, ``cached_tokens`` the part of it that was still in
    the KV cache, ``new_tokens`` what was generated (also what was taken back),
    ``forced_tokens`` those of them that the grammar left no choice about, ``lookup_tokens`` those that were guessed
    right from what was there before.
    """

    prompt_tokens: int = 0
    cached_tokens: int = 0
    new_tokens: int = 0
    forced_tokens: int = 0
    lookup_tokens: int = 0
    prefill_s: float = 0.0
    decode_s: float = 0.0


@dataclass(frozen=True)
class RoundStart:
    """The model is about to be asked; ``prompt`` is the exact raw prompt. Rounds count from 1. ``dropped`` counts
    the earlier turns whose thoughts the family's rule leaves out of it.
    """

    round: int
    prompt: str
    dropped: int = 0


@dataclass(frozen=True)
class TakenBack:
    """``text`` was generated and taken back, unseen, because it began like a call in a wrong
    form; the call is written anew under the grammar.
    """

    text: str


@dataclass(frozen=True)
class ToolStart:
    """A call is about to be checked and run."""

    index: int
    call: ToolCall


@dataclass(frozen=True)
class ToolEnd:
    """The result of a call: ``content`` is what the model reads, ``full`` is unshortened."""

    index: int
    name: str
    ok: bool
    content: str
    full: str
    seconds: float


@dataclass(frozen=True)
class RoundEnd:
    """The answer of this round is complete and costed; its calls have not run yet."""

    round: int
    finish: str
    usage: Usage


@dataclass(frozen=True)
class MessageAdded:
    """``message`` is now part of the conversation. Who keeps a conversation keeps these."""

    message: Message


@dataclass(frozen=True)
class Done:
    """The run is over. ``reason`` is ``stop`` (plain text was reached), ``length`` (the answer was
    cut), ``interrupted``, ``max_rounds`` or ``insisted`` (the model would not stop repeating a
    call); ``message`` says so in words where it is not ``stop``.
    """

    reason: str
    message: str = ""


Event = (
    Text
    | ReasoningStart
    | Reasoning
    | ReasoningEnd
    | CallStart
    | CallName
    | CallArgs
    | CallEnd
    | CallError
    | End
    | RoundStart
    | TakenBack
    | ToolStart
    | ToolEnd
    | RoundEnd
    | MessageAdded
    | Done
)


def to_dict(event: Event) -> dict[str, Any]:
    """The event as JSON values, its kind as ``type`` in snake case: ``CallArgs`` is ``call_args``."""
    name = type(event).__name__
    kind = "".join("_" + letter.lower() if letter.isupper() else letter for letter in name).lstrip("_")
    return {"type": kind, **dataclasses.asdict(event)}

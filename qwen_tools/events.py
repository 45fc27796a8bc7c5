"""What happens while an answer is read, as values, in order.

The parser makes the first group from text alone; the loop adds the second group.
``to_dict`` gives the JSON form that ``--events`` prints.
"""

from __future__ import annotations

from dataclasses import dataclass

from .messages import Problem, ToolCall


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
    """A call opened. ``index`` counts the calls and failed attempts of the turn from 0."""

    index: int


@dataclass(frozen=True)
class CallName:
    """The name of an open call is known."""

    index: int
    name: str


@dataclass(frozen=True)
class CallArgs:
    """A piece of the arguments as JSON text; all pieces of one call join to valid JSON
    whenever the call ends whole (``CallEnd.call.arguments`` is authoritative)."""

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

"""Guided answers: which tokens may come next, so that even a weak model writes a valid call.

``grammar`` writes what an answer must be as a grammar, and ``constraint`` runs it on a tokenizer through llguidance
(extra ``guide``). When a guide is wanted is the loop's decision, and how its tokens reach the model is
the engine's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..tools import Tool


@dataclass(frozen=True)
class Guide:
    """What an answer must be.

    With ``tools`` one call of one of them, or several when ``parallel``; with a JSON ``schema`` one JSON value that
    follows it; with both, either; with neither, text that does not begin like a call, and as ``prose`` has no
    braces, brackets, tags or code at all.
    """

    tools: tuple[Tool, ...] = ()
    parallel: bool = False
    prose: bool = False
    schema: Mapping[str, Any] | None = None


class UnsupportedSchemaError(Exception):
    """A schema that cannot be made a grammar: the message names the keyword that is at fault."""


def available() -> bool:
    """Whether llguidance is installed."""
    from importlib.util import find_spec

    return find_spec("llguidance") is not None

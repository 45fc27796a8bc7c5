"""Tools: what a model may call, and how a Python function becomes one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Tool:
    """A tool: ``parameters`` is a JSON Schema of type object; ``function`` may be missing
    for a tool that is only offered. ``read_only`` is True only when the tool changes nothing.
    """

    name: str
    description: str
    parameters: dict[str, Any] = field(default_factory=dict)
    function: Callable[..., Any] | None = None
    read_only: bool = False

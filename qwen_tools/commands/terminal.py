"""What the commands share when they write for a person."""

from __future__ import annotations

import json
import os
import sys
from typing import TextIO


def say(text: str) -> None:
    """A line on stderr: stdout is for results."""
    print(text, file=sys.stderr, flush=True)


def colours(stream: TextIO) -> bool:
    """Whether to write in colour: on a terminal, where NO_COLOR is not set (no-color.org)."""
    return stream.isatty() and not os.environ.get("NO_COLOR")


def visible(text: str, keep: str = "") -> str:
    """The text with control characters, but for those in ``keep``, made visible: a model or a tool must not steer
    the terminal.
    """
    return "".join(letter if letter.isprintable() or letter in keep else json.dumps(letter)[1:-1] for letter in text)

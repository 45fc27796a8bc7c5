"""What the commands share when they read what a person types and write for one."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import textwrap
import unicodedata
from bisect import bisect_right
from collections.abc import Iterable
from itertools import accumulate
from typing import TextIO

# What text may hold beside printable characters: line breaks, tabs, the spaces of other scripts (the wide one of
# Chinese, the fixed one of French), and the joiners that words of many languages and emoji are written with.
LAYOUT = "\n\t\u00a0\u1680\u202f\u205f\u3000\u200c\u200d" + "".join(map(chr, range(0x2000, 0x200B)))


def say(text: str) -> None:
    """A line on stderr: stdout is for results."""
    print(text, file=sys.stderr, flush=True)


def colours(stream: TextIO) -> bool:
    """Whether to write in colour: on a terminal that can, where NO_COLOR is not set (no-color.org)."""
    return steerable(stream) and not os.environ.get("NO_COLOR")


def steerable(stream: TextIO) -> bool:
    """Whether it is a terminal that understands escape sequences."""
    return stream.isatty() and os.environ.get("TERM") not in ("dumb", "unknown")


def style(text: str, code: str) -> str:
    """The text in an SGR style, such as ``2`` for dim, where stderr is shown in colour."""
    return f"\x1b[{code}m{text}\x1b[0m" if text and colours(sys.stderr) else text


def visible(text: str, keep: str = "") -> str:
    """The text with control characters, but for those in ``keep``, made visible: a model or a tool must not steer
    the terminal.
    """
    return "".join(letter if letter.isprintable() or letter in keep else json.dumps(letter)[1:-1] for letter in text)


def shortened(text: str, limit: int = 300) -> str:
    """The beginning of a text that is too long to show, with its length."""
    return text if len(text) <= limit else f"{text[:limit]}… ({len(text)} characters)"


def columns() -> int:
    """How wide the terminal is now."""
    return shutil.get_terminal_size().columns


def fitted(text: str, width: int) -> str:
    """The beginning of a line that takes at most ``width`` columns; Chinese characters take two."""
    ends = list(accumulate(map(_width, text)))
    if not ends or ends[-1] <= width:
        return text
    return text[: bisect_right(ends, width - 1)] + "…"


def _width(letter: str) -> int:
    return 0 if unicodedata.combining(letter) else 1 + (unicodedata.east_asian_width(letter) in "WF")


def paragraph(text: str, indent: str = "", first: str = "") -> str:
    """The text in lines that fit, the first behind ``first``, the others behind ``indent``."""
    return textwrap.fill(
        text, max(20, columns() - 1), initial_indent=first, subsequent_indent=indent, break_on_hyphens=False
    )


def two_columns(rows: Iterable[tuple[str, str]]) -> str:
    """Rows of a name and what is said of it; below each other where the terminal is narrow."""
    rows = list(rows)
    left = max((len(name) for name, _ in rows), default=0)
    if columns() < left + 40:
        return "\n".join(f"  {name}\n{paragraph(text, '      ', '      ')}" for name, text in rows)
    return "\n".join(paragraph(text, " " * (left + 4), f"  {name:<{left}}  ") for name, text in rows)


def counted(number: int, word: str) -> str:
    """A number of things, in words where it is none."""
    return f"{number or 'no'} {word}{'' if number == 1 else 's'}"


def positive(text: str) -> int:
    """The type of an argument that counts something."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return number

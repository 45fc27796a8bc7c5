"""What the commands share when they write for a person."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

from ..errors import UserError


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


def columns(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows as lines of columns; all but the first are flush right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.rjust(width) if index else cell.ljust(width)
            for index, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def check_folder(path: str) -> None:
    """Raises UserError where a file could not be written: to be asked before minutes of work."""
    folder = Path(path).absolute().parent
    if not os.access(folder, os.W_OK) or Path(path).is_dir():
        raise UserError(f"cannot write {path}")


def write_page(path: str, page: str) -> None:
    """Write a page and say where it is. Raises UserError."""
    try:
        Path(path).write_text(page, encoding="utf-8")
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror}") from error
    say(f"wrote {path}")

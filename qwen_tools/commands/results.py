"""What the commands that measure something share: tables for a terminal, and pages as files."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from ..errors import UserError
from .terminal import say


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

"""What the commands that measure something share: how the model is asked, tables for a terminal, and pages as files."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from pathlib import Path

from ..compare import ARMS, is_api
from ..errors import UserError
from .terminal import say

# The heads of ``report.costs``.
COSTS = ("called", "valid", "right", "prompt", "new", "first s", "end s")


def asking_arguments(parser: argparse.ArgumentParser, model: str) -> None:
    """Declare which model is asked, and how; ``model`` is the help of ``--model``."""
    parser.add_argument("--model", help=model)
    parser.add_argument("--family", help="how prompts are written; found from the model unless given")
    parser.add_argument("--device", default="auto", help="auto, cpu or cuda[:N]")
    parser.add_argument("--dtype", default="auto", help="auto, float32, bfloat16 or float16")
    parser.add_argument("--system", help="the system text, instead of the model's usual one")
    parser.add_argument(
        "--option", action="append", default=[], metavar="KEY=VALUE", help="a render option; repeatable"
    )


def arms_argument(parser: argparse.ArgumentParser) -> None:
    """Declare ``--arms``, which ``arms_of`` reads."""
    parser.add_argument(
        "--arms",
        default=",".join(ARMS),
        help=f"separated by commas: {', '.join(ARMS)} (the default), openai:URL#MODEL, anthropic:URL#MODEL",
    )


def words_of(text: str) -> list[str]:
    """The words between commas, each once."""
    return list(dict.fromkeys(word.strip() for word in text.split(",") if word.strip()))


def arms_of(text: str) -> list[str]:
    """The arms that are named. Raises UserError for what is none, and where there is none."""
    arms = words_of(text)
    unknown = [arm for arm in arms if arm not in ARMS and not is_api(arm)]
    if unknown or not arms:
        raise UserError(f"no arm {', '.join(unknown)!r}: there are {', '.join(ARMS)}, openai:URL and anthropic:URL")
    return arms


def model_of(model: str | None, arms: Sequence[str]) -> str | None:
    """The model to open: APIs alone need none here."""
    return arms[0] if model is None and all(map(is_api, arms)) else model


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

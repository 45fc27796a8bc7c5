"""Makes the pictures of the terminal in docs/: the real program in a real terminal, drawn as SVG.

    python scripts/screenshots.py            needs the extras embedded, guide and test

A picture is what pyte says is on the screen, so it is what a person would see.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterator
from html import escape
from itertools import groupby
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from pyte.screens import Char  # noqa: E402 - behind the path of the helper
from terminal import Terminal  # noqa: E402

COLOURS = {
    "default": "#d4d4d4",
    "black": "#666666",
    "red": "#f47067",
    "green": "#8ddb8c",
    "brown": "#e3b341",  # pyte's name for yellow
    "blue": "#6cb6ff",
    "magenta": "#dcbdfb",
    "cyan": "#56d4dd",
    "white": "#d4d4d4",
    "brightblack": "#8b949e",
}
BACKGROUND, DIM = "#1e2228", 0.6
CHARACTER, LINE, MARGIN, SIZE = 8.4, 19, 14, 14  # pixels


def svg(rows: list[list[Char]]) -> str:
    """Rows of characters as a picture."""
    while rows and not "".join(cell.data for cell in rows[-1]).strip():
        rows = rows[:-1]
    width, height = len(rows[0]) * CHARACTER + 2 * MARGIN, len(rows) * LINE + 2 * MARGIN
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height}" font-size="{SIZE}" '
        f"font-family=\"'DejaVu Sans Mono', Menlo, Consolas, 'Noto Sans Mono CJK SC', monospace\">",
        f'<rect width="100%" height="100%" rx="8" fill="{BACKGROUND}"/>',
    ]
    for number, row in enumerate(rows):
        for column, text, cell in _runs(row):
            style = f'fill="{COLOURS.get(cell.fg, COLOURS["default"])}"'
            style += ' font-weight="bold"' if cell.bold else ""
            style += f' opacity="{DIM}"' if cell.blink else ""
            x, y = MARGIN + column * CHARACTER, MARGIN + number * LINE + SIZE
            lines.append(f'<text x="{x:.1f}" y="{y}" xml:space="preserve" {style}>{escape(text)}</text>')
    return "\n".join([*lines, "</svg>", ""])


def _runs(row: list[Char]) -> Iterator[tuple[int, str, Char]]:
    """Stretches of one style with their columns. What is not ASCII stands alone, so that no font shifts the rest."""

    def kind(column: int) -> tuple[object, ...]:
        cell = row[column]
        return cell.fg, cell.bold, cell.blink, -1 if cell.data.isascii() else column

    for _, group in groupby(range(len(row)), kind):
        columns = list(group)
        text = "".join(row[column].data for column in columns)
        if text.strip():
            yield columns[0], text, row[columns[0]]


def conversation(terminal: Terminal) -> None:
    """A tool that runs, and what the model was told."""
    terminal.ask("北京 and 上海: how far apart?").wait("→").ready()
    terminal.ask("/prompt --table").wait("total").ready()


def approval(terminal: Terminal) -> None:
    """The question before a tool runs that does more than read."""
    terminal.ask("Append a note: call the dean on Monday.").wait("ne[v]er:").send("o\r").wait("→ noted").ready()


def take(name: str, play: Callable[[Terminal], None], *arguments: str, width: int = 92, height: int = 44) -> None:
    """Play a conversation and draw the screen it ends with."""
    with tempfile.TemporaryDirectory() as home:
        terminal = Terminal(
            [sys.executable, "-m", "qwen_tools", "chat", "--no-log", *arguments],
            width=width,
            height=height,
            patience=120,
            cwd=home,
            PYTHONPATH=str(ROOT),
        )
        play(terminal)
        (ROOT / "docs" / name).write_text(svg(terminal.rows), encoding="utf-8")
        terminal.press("ctrl-d")
        terminal.code()


if __name__ == "__main__":
    take("chat.svg", conversation)
    tools = str(ROOT / "examples" / "my_tools.py")
    take("approval.svg", approval, "--tools", tools, "--tool-choice", "append_note", width=80)

"""Draw the parser's state machine into docs/parser.md from its transition table: python scripts/draw_parser.py"""

from __future__ import annotations

from pathlib import Path

from qwen_tools.parser import TRANSITIONS

PAGE = Path(__file__).parents[1] / "docs" / "parser.md"
BEGIN, END = "<!-- drawn by scripts/draw_parser.py -->\n", "<!-- end of the drawing -->"


def drawing() -> str:
    """The table as a Mermaid state diagram; the signal that every state knows, the end, is left out."""
    lines = ["```mermaid", "stateDiagram-v2", "    [*] --> start"]
    for state, signals in TRANSITIONS.items():
        lines += [f"    {state} --> {target}: {signal}" for signal, target in signals.items() if signal != "end"]
    return "\n".join([*lines, "```"]) + "\n"


def page(text: str) -> str:
    """The page with a fresh drawing in it."""
    before, _, rest = text.partition(BEGIN)
    return before + BEGIN + drawing() + END + rest.partition(END)[2]


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")

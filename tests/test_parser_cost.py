"""Reading costs time in proportion to the answer, however it is written and cut."""

from __future__ import annotations

import json
import time

import pytest
from parser_laws import read

TOOLS = [
    {
        "name": "f",
        "parameters": {
            "type": "object",
            "properties": {"a": {"type": "string"}, "n": {"type": "number"}, "o": {"type": "object"}},
        },
    }
]
CALL, XML = '<tool_call>{"name": "f", "arguments": {"a": "', "<tool_call>\n<function=f>\n<parameter="
XML_END = "\n</parameter>\n</function>\n</tool_call>"
LINE = 'def area(w, h):\n    return {"w*h": w * h} if w < h else [1, 2]\n'


def microseconds(text: str, step: int, salvage: bool = False) -> float:
    """Time a character; the best of three."""
    pieces = [text[at : at + step] for at in range(0, len(text), step)]
    best = float("inf")
    for _ in range(3):
        start = time.process_time()
        read(pieces, TOOLS, salvage=salvage)
        best = min(best, time.process_time() - start)
    return best / len(text) * 1e6


@pytest.mark.parametrize(
    ("opening", "closing", "quoted"),
    [(CALL, '"}}\n</tool_call>', True), (f"{XML}a>\n", XML_END, False)],
    ids=["json", "xml"],
)
def test_a_long_argument_in_small_pieces(opening, closing, quoted):
    def answer(size):
        text = (LINE * (size // len(LINE) + 1))[:size]
        return opening + (json.dumps(text)[1:-1] if quoted else text) + closing

    microseconds(answer(100), 4)
    short, long = microseconds(answer(8 * 1024), 4), microseconds(answer(256 * 1024), 4)
    assert long < 2
    assert long < 2 * short


# Answers that make a parser look again at what it has seen: (beginning, what is repeated, end).
SHAPES = {
    "the same key": ("<tool_call>{", '"name":"a",', ""),
    "digits that are no number": (f"{XML}n>\n", "1", f"x{XML_END}"),
    "unclosed objects in a value": (f"{XML}o>\n", '{"a":', XML_END),
    "backticks": ("", "`", ""),
    "fences": ("", "```\n", ""),
    "mentions": ("", "<tool_call> ", ""),
    "angles": ("", "<", ""),
    "bare functions": ("", "<function=f> ", ""),
    "closing tags in a value": (f"{XML}a>\n", "</parameter> ", ""),
    "parameters in a value": (f"{XML}a>\n", "\n<parameter=aa", ""),
    "white space behind a tag": ("<tool_call>", " ", ""),
    "line breaks": ("", "\n", "x"),
    "drafts": ("<think>\n", '<tool_call>{"name":"f"}</tool_call>\n', ""),
    "brackets": ("<tool_call>", "[", ""),
    "control characters": (CALL, "\n", ""),
    "a long list": ("<tool_call>[", '{"name":"f"},', ""),
    "objects in a row": ("<tool_call>", '{"name":"f"}\n', ""),
    "strings in a broken list": ("<tool_call>[1", '"<', ""),
    "a long key": ('<tool_call>{"', "a", ""),
    "halves of tags": ('<tool_call>{"name":"f"}', "</a", ""),
    "wrappings": ("", "```json\n<tool>", ""),
}


@pytest.mark.parametrize("salvage", [False, True], ids=["strict", "salvage"])
@pytest.mark.parametrize("step", [1, 1_000_000], ids=["by character", "whole"])
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_nothing_is_quadratic(shape, step, salvage):
    opening, repeated, closing = shape
    short, long = (opening + repeated * (size // len(repeated)) + closing for size in (4_000, 32_000))
    assert microseconds(long, step, salvage) < 4 * max(microseconds(short, step, salvage), 1)

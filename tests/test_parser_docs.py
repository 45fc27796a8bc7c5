"""The drawing in docs/parser.md is that of the transition table, and the table is whole."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from qwen_tools.parser import TRANSITIONS

ROOT = Path(__file__).parents[1]


def test_the_drawing_is_the_tables():
    spec = importlib.util.spec_from_file_location("draw_parser", ROOT / "scripts" / "draw_parser.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    text = module.PAGE.read_text(encoding="utf-8")
    assert module.page(text) == text, "run: python scripts/draw_parser.py"
    assert text.count(" --> ") == 1 + sum(len(signals) - ("end" in signals) for signals in TRANSITIONS.values())


def test_every_state_can_be_reached_and_ended():
    reached, fresh = set(), {"start"}
    while fresh:
        reached |= fresh
        fresh = {target for state in fresh for target in TRANSITIONS[state].values()} - reached
    assert reached == set(TRANSITIONS)
    assert all("end" in signals for state, signals in TRANSITIONS.items() if state != "done")

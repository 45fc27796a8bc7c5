"""The transition table: sound in itself, walked by the cases, and drawn in the documentation as it is."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
from parser_laws import KINDS, read
from test_parser import CASES, setting

from qwen_tools import parse
from qwen_tools.parser import TRANSITIONS

ROOT = Path(__file__).parents[1]


def test_every_signal_leads_to_a_state():
    assert {target for row in TRANSITIONS.values() for target in row.values()} <= set(TRANSITIONS)


def test_every_state_is_reached_from_the_start_and_may_end():
    reached, fresh = set(), {"start"}
    while fresh:
        reached |= fresh
        fresh = {target for state in fresh for target in TRANSITIONS[state].values()} - reached
    assert reached == set(TRANSITIONS)
    assert [state for state, row in TRANSITIONS.items() if row.get("end") != "done"] == ["done"]


class Recorded(dict):
    """A row that remembers which of its signals were asked for."""

    def __init__(self, row):
        super().__init__(row)
        self.asked = set()

    def __getitem__(self, signal):
        self.asked.add(signal)
        return super().__getitem__(signal)


def test_the_cases_walk_every_row(monkeypatch):
    rows = {state: Recorded(row) for state, row in TRANSITIONS.items()}
    for state, row in rows.items():
        monkeypatch.setitem(TRANSITIONS, state, row)
    for case in CASES:
        read([case["text"]], **setting(case))
    left = [(state, signal) for state, row in rows.items() for signal in row if signal not in row.asked]
    assert left == [], "no case walks these rows"


@pytest.fixture
def draw():
    spec = importlib.util.spec_from_file_location("draw_parser", ROOT / "scripts" / "draw_parser.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_drawing_in_the_documentation_is_up_to_date(draw):
    text = (ROOT / "docs" / "parser.md").read_text(encoding="utf-8")
    assert draw.with_drawing(text) == text, "run python scripts/draw_parser.py"


def test_the_drawing_shows_every_row(draw):
    lines = draw.drawing().splitlines()
    for state, row in TRANSITIONS.items():
        for signal, target in row.items():
            arrows = [line for line in lines if line.strip().startswith(f"{state} --> {target}:")]
            if signal != "end":
                assert len(arrows) == 1
                assert signal in arrows[0].partition(": ")[2].split(", ")
    grouped = [state for states in draw.GROUPS.values() for state in states]
    assert sorted([*grouped, "start", "done"]) == sorted(TRANSITIONS)


def test_the_documentation_explains_every_state_problem_and_repair():
    text = (ROOT / "docs" / "parser.md").read_text(encoding="utf-8")
    assert all(f"`{state}`" in text.partition("end of the drawing")[2] for state in TRANSITIONS)
    turns = [parse(case["text"], **setting(case)) for case in CASES]
    found = {problem.kind for turn in turns for problem in turn.problems} | KINDS
    found |= {repair.partition(":")[0] for turn in turns for call in turn.calls for repair in call.repairs}
    assert {name for name in found if f"`{name}`" not in text and f"`{name}:" not in text} == set()

"""Pages: escaping, marks and charts."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qwen_tools import report


def parts(texts):
    """What is marked of each text."""
    return [
        "".join(letter for letter, flag in zip(text, flags, strict=True) if flag)
        for text, flags in zip(texts, report.differences(texts), strict=True)
    ]


@pytest.mark.parametrize(
    ("texts", "marked"),
    [
        (["same\n", "same\n"], ["", ""]),
        (["a b c\n", "a x c\n"], ["b", "x"]),
        (["a\nb\n", "a\n"], ["b\n", ""]),
        (["", "new"], ["", "new"]),
        (["only"], [""]),
        (["a.\n", "a.<|b\n"], ["", "<|b"]),
        # The first is marked only where no other has it.
        (["a b c\n", "a b\n", "a c\n"], ["", "", ""]),
    ],
)
def test_what_differs_is_marked(texts, marked):
    assert parts(texts) == marked


LINES = st.text("ab \n<", max_size=30)


@given(LINES, LINES)
def test_without_its_marks_a_text_is_the_same_as_the_other_without_its_own(one, two):
    flags = report.differences([one, two])
    left = [
        "".join(letter for letter, flag in zip(text, own, strict=True) if not flag)
        for text, own in zip((one, two), flags, strict=True)
    ]
    assert left[0] == left[1]


@given(st.text(st.characters(categories=None), max_size=60))
def test_any_text_comes_out_as_harmless_html(text):
    shown = report.text(text)
    shown.encode("utf-8")
    assert not re.search("[<>\"']|&(?!(?:amp|lt|gt|quot|#x27);)", shown)
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", shown)


def test_bars_are_shares_of_the_whole():
    svg = report.chart("Right", [report.Bar("a", [3], "3 of 4"), report.Bar("b<", [0], "0 of 4")], 4)
    assert 'width="75.00%" height="8" rx="2" class="first"' in svg
    assert "b&lt;" in svg
    stacked = report.chart("Tokens", [report.Bar("a", [1, 3], ""), report.Bar("b", [2, 0], "")], keys=("old", "new"))
    assert re.findall(
        r'x="([\d.]+)%" y="\d+" width="([\d.]+)%" height="8" rx="2" class="(?:first|second)"', stacked
    ) == [
        ("0.00", "25.00"),
        ("25.00", "75.00"),
        ("0.00", "50.00"),
        ("50.00", "0.00"),
    ]
    assert report.chart("Nothing", []).count("<rect") == 0


@pytest.mark.parametrize(
    ("p", "shown"), [(1.0, "100.0 %"), (0.1234, "12.3 %"), (0.0, "0.0 %"), (2e-11, "2e-11"), (0.0004, "4e-04")]
)
def test_probabilities_keep_their_size(p, shown):
    assert report.percent(p) == shown

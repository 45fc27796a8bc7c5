"""Markdown for a terminal: styles are added, nothing else."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qwen_tools.commands.markdown import Markdown

SGR = re.compile(r"\x1b\[[0-9;]*m")


def styled(*pieces: str) -> str:
    markdown = Markdown()
    return "".join([markdown.feed(piece) for piece in pieces]) + markdown.close()


def runs(text: str) -> list[tuple[str, str]]:
    """(style, text) of a styled text, without what is plain."""
    parts = re.split(r"\x1b\[([0-9;]*)m", text)
    return [(code.removeprefix("0;"), part) for code, part in zip(parts[1::2], parts[2::2], strict=True) if part]


texts = st.text(st.sampled_from("ab *`#-+1.~>\n_中\t"), max_size=60)


@given(texts)
def test_no_character_is_changed(text):
    assert SGR.sub("", styled(text)) == text


@given(st.lists(texts, max_size=5))
def test_any_cut_gives_the_same(pieces):
    text = "".join(pieces)
    assert styled(*pieces) == styled(text) == styled(*text)


@given(texts)
def test_the_style_of_the_terminal_is_restored(text):
    codes = SGR.findall(styled(text))
    assert not codes or codes[-1] == "\x1b[0m"


@given(texts)
def test_a_line_that_ended_is_shown(text):
    assert SGR.sub("", Markdown().feed(text + "\n")) == text + "\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("# Title\nbody", [("1", "# Title")]),
        ("#hashtag", []),
        ("####### seven", []),
        ("a **b c** d", [("2", "**"), ("1", "b c"), ("2", "**")]),
        ("2 ** 3 and 2**3", []),
        ("**open\nnext", [("2", "**"), ("1", "open")]),
        ("use `a**b**` now", [("2", "`"), ("36", "a**b**"), ("2", "`")]),
        ("``a`b``", [("2", "``"), ("36", "a`b"), ("2", "``")]),
        ("- one\n* two\n12. three", [("33", "-"), ("33", "*"), ("33", "12.")]),
        ("-1 and 1.5", []),
        ("```py\n# no title\n**a**\n```\n# title", [
            ("2", "```py"), ("36", "# no title"), ("36", "**a**"), ("2", "```"), ("1", "# title"),
        ]),
        ("~~~\n```\n~~~\nafter", [("2", "~~~"), ("36", "```"), ("2", "~~~")]),
        ("````\n```\n````\nafter", [("2", "````"), ("36", "```"), ("2", "````")]),
        ("**北京**：晴", [("2", "**"), ("1", "北京"), ("2", "**")]),
    ],
)  # fmt: skip
def test_what_is_styled(text, expected):
    assert [(code, part) for code, part in runs(styled(text)) if code not in ("", "0")] == expected


@pytest.mark.parametrize("text", ["plain words", "a line\nand more words", "中文字"])
def test_plain_text_is_not_held_back(text):
    assert SGR.sub("", Markdown().feed(text)) == text

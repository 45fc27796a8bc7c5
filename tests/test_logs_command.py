"""``python -m qwen_tools logs``: what was said is listed, found and shown, whatever became of the index."""

from __future__ import annotations

import json
import os
import re
import sqlite3
import stat
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from qwen_tools import Message
from qwen_tools.cli import main
from qwen_tools.messages import ToolCall
from qwen_tools.session import Session, folder
from qwen_tools.session_index import search

RAIN = [
    Message("user", "北京明天会下雨吗？"),
    Message("assistant", "", "Look it up.", (ToolCall("get_weather", {"city": "北京"}),)),
    Message("tool", "short", name="get_weather", full="Thunderstorm, 天气预报: 大雨 " + "x" * 100),
    Message("assistant", "会下雨。带伞！"),
]
CAFE = [
    Message("user", 'Where is the Café "Sol"?\nAnd when is it open?'),
    Message("assistant", "At 9, カフェ 서울에서."),
]


@pytest.fixture
def home(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("QWEN_TOOLS_CACHE", str(tmp_path / "cache"))
    return tmp_path


@pytest.fixture
def kept(home) -> Path:
    """Two sessions, the one about the rain written to last."""
    for number, (name, talk) in enumerate([("cafe", CAFE), ("rain", RAIN)], start=1):
        keep(name, talk)
        os.utime(folder() / f"{name}.jsonl", (number * 10**9, number * 10**9))
    return home


def keep(name: str, talk: list[Message], model: str = "embedded") -> None:
    session = Session.new(name)
    session.about(model, "qwen2.5")
    session.add(talk)
    session.close()


def logs(capsys, *arguments: str, code: int = 0) -> str:
    assert main(["logs", *arguments]) == code
    return capsys.readouterr().out


def found(*words: str) -> list[tuple[str, int]]:
    return [(hit.name, hit.number) for hit in search(words, 100)[0]]


def test_the_list_has_the_newest_first_with_question_model_and_counts(kept, capsys):
    first, second = (time.strftime("%Y-%m-%d %H:%M", time.localtime(number * 10**9)) for number in (1, 2))
    assert logs(capsys).splitlines() == [
        f"rain  {second}  4 messages, 1 call  embedded",
        "    北京明天会下雨吗？",
        f"cafe  {first}  2 messages, 0 calls  embedded",
        '    Where is the Café "Sol"? And when is it open?',
    ]
    assert logs(capsys, "list") == logs(capsys)
    assert logs(capsys, "list", "--json") == logs(capsys, "--json") != logs(capsys)
    assert logs(capsys, "list", "--limit", "1") == logs(capsys, "--limit", "1") != logs(capsys)


@pytest.mark.parametrize(
    ("width", "line"),
    [
        (80, "    北京明天会下雨吗？"),
        (22, "    北京明天会下雨吗？"),
        (21, "    北京明天会下雨吗…"),
        (20, "    北京明天会下雨…"),
    ],
)
def test_on_a_terminal_a_line_is_cut_where_it_ends(kept, width, line):
    """Chinese characters take two columns."""
    from qwen_tools.commands.logs import _lines
    from qwen_tools.session_index import entries

    assert list(_lines(entries(1)[0][0], width))[1] == line


def test_the_list_as_json(kept, capsys):
    result = json.loads(logs(capsys, "list", "--json"))
    assert result["count"] == 2
    assert [session["name"] for session in result["sessions"]] == ["rain", "cafe"]
    assert result["sessions"][0] | {"begun": "", "changed": 0} == {
        "name": "rain",
        "changed": 0,
        "begun": "",
        "question": "北京明天会下雨吗？",
        "model": "embedded",
        "messages": 4,
        "calls": 1,
        "problem": "",
    }


def test_a_long_list_is_cut_and_says_so(kept, capsys):
    assert main(["logs", "list", "--limit", "1"]) == 0
    said = capsys.readouterr()
    assert ("rain" in said.out, "cafe" in said.out) == (True, False)
    assert "1 more: --limit 2" in said.err


@pytest.mark.parametrize(
    ("words", "where"),
    [
        (["雨"], [("rain", 1), ("rain", 3), ("rain", 4)]),  # one character
        (["下雨"], [("rain", 1), ("rain", 4)]),  # two
        (["雨下"], []),
        (["明天会"], [("rain", 1)]),
        (["北京", "明天"], [("rain", 1)]),
        (["明天", "北京"], [("rain", 1)]),
        (["北京"], [("rain", 1), ("rain", 2)]),  # also in the arguments of a call
        (["天气预报"], [("rain", 3)]),  # what the model did not read in full
        (["thunder"], [("rain", 3)]),  # the beginning of a word
        (["THUNDERSTORM"], [("rain", 3)]),
        (["torm"], []),
        (["get_weather"], [("rain", 2), ("rain", 3)]),
        (["cafe"], [("cafe", 1)]),  # without its accent
        (['"Sol"'], [("cafe", 1)]),
        (["is open"], []),  # in a row
        (["is it open"], [("cafe", 1)]),
        (["is", "open"], [("cafe", 1)]),
        (["カフ"], [("cafe", 2)]),
        (["서울"], [("cafe", 2)]),
        (["look it"], [("rain", 2)]),  # a thought
        (["cafe OR rain"], []),  # no language to know
        (["text:雨"], []),
        (["rain*"], []),
    ],
)
def test_what_is_found(kept, words, where):
    assert found(*words) == where


@pytest.mark.parametrize("words", [["?"], ["雨", "!"], [""], ['"'], ["*"]])
def test_what_is_no_word_is_refused(kept, capsys, words):
    assert main(["logs", "search", *words]) == 2
    assert "letters and digits" in capsys.readouterr().err


def test_search_shows_where_and_what(kept, capsys):
    assert logs(capsys, "search", "带伞") == "rain    4 assistant  会下雨。带伞！\n"
    result = json.loads(logs(capsys, "search", "带伞", "--json"))
    assert result == {
        "hits": [{"name": "rain", "number": 4, "role": "assistant", "text": "会下雨。带伞！"}],
        "count": 1,
    }
    assert logs(capsys, "search", "nowhere", code=1) == ""


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(st.characters(blacklist_categories=["Cs"]), min_size=1, max_size=30), st.data())
def test_every_piece_of_chinese_text_is_found(kept, before, data):
    text = data.draw(
        st.text("北京明天会下雨吗带伞，。 ", min_size=1, max_size=20).filter(lambda text: text.strip("，。 "))
    )
    start = data.draw(st.integers(0, len(text) - 1))
    piece = text[start : data.draw(st.integers(start + 1, len(text)))]
    if not piece.strip("，。 "):
        piece = text
    (folder() / "any.jsonl").unlink(missing_ok=True)
    keep("any", [Message("user", before + "\n" + text)])
    assert ("any", 1) in found(piece)


def test_what_was_undone_is_not_found_and_a_failed_question_is(kept, capsys):
    session = Session.open(folder() / "rain.jsonl")
    session.rewind(2)
    session.failed(Message("user", "Umbrella?"), "out of memory")
    session.close()
    assert found("带伞") == []
    assert found("umbrella") == [("rain", 4)]  # the open call has its result
    assert "out of memory" in logs(capsys, "show", "rain")
    assert "带伞" in logs(capsys, "show", "rain", "--raw")


def test_the_index_follows_the_files(kept):
    assert found("sol") == [("cafe", 1)]
    session = Session.open(folder() / "cafe.jsonl")
    session.add([Message("user", "Solitude?")])
    session.close()
    keep("new", [Message("user", "Solo.")])
    assert sorted(found("sol")) == [("cafe", 1), ("cafe", 3), ("new", 1)]
    (folder() / "cafe.jsonl").unlink()
    assert found("sol") == [("new", 1)]
    data = b"".join(path.read_bytes() for path in (kept / "cache").glob("sessions.sqlite*"))
    assert b"Solitude" not in data  # what is deleted is gone


def broken(path: Path) -> None:
    path.write_bytes(b"no database at all" * 1000)


def torn(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:5000])


def scribbled(page: int):
    def harm(path: Path) -> None:
        data = bytearray(path.read_bytes())
        data[page * 4096 : (page + 1) * 4096] = b"\xaa" * 4096
        path.write_bytes(data)

    return harm


def of_another_version(path: Path) -> None:
    with sqlite3.connect(path) as index:
        index.execute("DROP TABLE said")
        index.execute("PRAGMA user_version = 99")
    index.close()


@pytest.mark.parametrize(
    "harm",
    [
        Path.unlink,
        broken,
        torn,
        of_another_version,
        lambda path: path.write_bytes(b""),
        *(scribbled(page) for page in range(9)),
    ],
)
def test_a_lost_or_broken_index_is_made_anew(kept, harm):
    before = found("雨")
    harm(kept / "cache" / "sessions.sqlite")
    assert found("雨") == before


def test_a_file_that_is_no_session_is_listed_as_what_it_is(kept, capsys):
    (folder() / "odd.jsonl").write_text("no session\n")
    assert re.search(r"^odd .*\n    \(.*line 1 is not a message", logs(capsys), re.M)
    assert found("雨")
    assert main(["logs", "show", "odd"]) == 2


def test_show_is_markdown_and_without_a_name_the_latest(kept, capsys):
    text = logs(capsys, "show")
    assert text == logs(capsys, "show", "rain") == logs(capsys, "show", "ra")
    assert text.startswith("## User\n\n北京明天会下雨吗？\n")
    assert "大雨" in text  # whole
    result = json.loads(logs(capsys, "show", "cafe", "--json"))
    assert (result["name"], result["model"]) == ("cafe", "embedded")
    assert [message["role"] for message in result["messages"]] == ["user", "assistant"]
    assert logs(capsys, "show", "cafe", "--raw") == (folder() / "cafe.jsonl").read_text(encoding="utf-8")


def test_a_name_that_is_none_gets_a_suggestion(kept, capsys):
    assert main(["logs", "show", "reain"]) == 2
    assert "did you mean rain?" in capsys.readouterr().err
    assert main(["logs", "show", "../rain"]) == 2


def test_nothing_kept_is_said(home, capsys):
    assert main(["logs"]) == 0
    assert "no sessions" in capsys.readouterr().err
    assert main(["logs", "show"]) == 2
    assert json.loads(logs(capsys, "list", "--json")) == {"sessions": [], "count": 0}


def test_half_a_surrogate_pair_and_controls_do_no_harm(home, capsys):
    keep("evil", [Message("user", "a\ud83d\x1b[2J \x02b\x03 \0 wörter"), Message("assistant", "\x1b]0;title\x07")])
    assert "\x1b" not in logs(capsys)
    assert found("wor") == [("evil", 1)]
    assert "\x1b" not in logs(capsys, "search", "title", "--json") + logs(capsys, "search", "title")


@pytest.mark.skipif(os.name == "nt", reason="file modes are POSIX")
def test_the_index_is_private(kept):
    found("雨")
    assert stat.S_IMODE((kept / "cache" / "sessions.sqlite").stat().st_mode) == 0o600

"""Stop strings: found in any cut of the text, never shown, and nothing is held back without need."""

from __future__ import annotations

import io

from hypothesis import given
from hypothesis import strategies as st

from qwen_tools.cli import main
from qwen_tools.engines import Piece
from qwen_tools.engines.scripted import ScriptedEngine
from qwen_tools.engines.stops import until_stop


def pieces(*texts: str, finish: str = "length"):
    for number, text in enumerate(texts):
        yield Piece(text, (number,))
    yield Piece("", finish=finish)


def stopped(texts, stop):
    out = list(until_stop(pieces(*texts), stop))
    return "".join(piece.text for piece in out), out[-1].finish, out[-1].stop


def first_complete(text: str, stop: list[str]) -> tuple[str, str | None]:
    """The definition, letter by letter."""
    for end in range(len(text) + 1):
        whole = [string for string in stop if text[:end].endswith(string)]
        if whole:
            longest = max(whole, key=len)
            return text[: end - len(longest)], longest
    return text, None


LETTERS = st.text("abc", max_size=12)


@given(st.lists(LETTERS, max_size=8), st.lists(st.text("abc", min_size=1, max_size=4), max_size=3))
def test_any_cut_stops_at_the_same_place(texts, stop):
    text, string = first_complete("".join(texts), stop)
    assert stopped(texts, stop) == (text, "length" if string is None else "stop", string)


@given(st.lists(LETTERS, max_size=8), st.lists(st.text("abc", min_size=1, max_size=4), min_size=1, max_size=3))
def test_only_what_may_be_the_beginning_of_one_waits(texts, stop):
    given = []
    fed = ""

    def feed():
        nonlocal fed
        for text in texts:
            fed += text
            yield Piece(text, (0,))
            # Asked for the next piece: all that is certain was passed on.
            waiting = fed[len("".join(given)) :]
            open_ends = [n for n in range(1, len(fed) + 1) if any(s.startswith(fed[-n:]) for s in stop)]
            # A whole piece waits with its last letters.
            assert len(waiting) <= max(open_ends, default=0) + 11
            assert not waiting or open_ends
        yield Piece("", finish="length")

    for piece in until_stop(feed(), stop):
        given.append(piece.text)


def test_ids_wait_with_their_text_and_those_of_the_stop_string_are_left_out():
    out = list(until_stop(pieces("one ", "En", "glish", " Obs", "erv", "ation: 5"), ["Observation:"]))
    assert [(piece.text, piece.ids) for piece in out] == [
        ("one ", (0,)),
        ("En", (1,)),
        ("glish", (2,)),
        (" ", ()),
        ("", ()),
    ]
    assert (out[-1].finish, out[-1].stop) == ("stop", "Observation:")


def test_what_waits_at_the_end_is_text():
    assert stopped(["abc", "ab"], ["abd"]) == ("abcab", "length", None)


def test_the_engine_is_stopped():
    closed = []

    def endless():
        try:
            while True:
                yield Piece("na ")
        finally:
            closed.append(True)

    assert [piece.text for piece in until_stop(endless(), ["na na"])] == [""]
    assert closed == [True]


def test_closing_closes_the_engine():
    closed = []

    def endless():
        try:
            while True:
                yield Piece("na ")
        finally:
            closed.append(True)

    stream = until_stop(endless(), ["x"])
    next(stream)
    stream.close()
    assert closed == [True]


def test_chat_takes_stop_strings(tmp_path, monkeypatch, capfd):
    monkeypatch.setattr("sys.stdin", io.StringIO())
    script = tmp_path / "script.json"
    script.write_text('["The first line.\\nThe second line."]')
    code = main(["chat", "--no-log", "--model", f"scripted:{script}", "--stop", "nothing", "--stop", "\n", "Hi"])
    assert (code, capfd.readouterr().out) == (0, "The first line.\n")


def test_the_scripted_engine_stops():
    engine = ScriptedEngine(["one two three"])
    from qwen_tools import Message, run
    from qwen_tools.engines import Settings
    from qwen_tools.events import Text

    events = run(engine, [Message("user", "Hi")], settings=Settings(stop=("o t", "x")))
    assert "".join(event.delta for event in events if isinstance(event, Text)) == "one tw"

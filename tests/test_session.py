"""A conversation on disk is the conversation that was."""

from __future__ import annotations

import json
import os
import stat

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qwen_tools import Message, render
from qwen_tools.errors import UserError
from qwen_tools.messages import Problem, ToolCall
from qwen_tools.session import Session, load

PROBLEM = Problem("schema", "b is missing", (3, 9), "raw")
TALK = [
    Message("system", "Be brief."),
    Message("user", "1 and 2 – é 📝?"),
    Message(
        "assistant",
        "Well",
        "hm",
        (ToolCall("add", {"a": 1}, "<tool_call>", (3, 9), ("no_close",), (PROBLEM,)),),
        prefill="<think>\n",
        raw="hm\n</think>\n\nWell<tool_call>",
        token_ids=(1, 2, 3),
        finish="length",
    ),
    Message("tool", '{"error": 1}', name="add"),
    Message("assistant", "No.", raw="No.", finish="interrupted"),
]


def test_what_was_added_is_loaded(tmp_path):
    session = Session(tmp_path / "talk.jsonl")
    session.add(TALK[:2])
    session.add(TALK[2:])
    assert load(session.path) == TALK


text = st.text(st.characters(blacklist_categories=["Cs"]))


@settings(max_examples=50)
@given(st.lists(st.builds(Message, role=st.sampled_from(["user", "system"]), content=text)))
def test_any_text_survives(tmp_path_factory, talk):
    session = Session(tmp_path_factory.mktemp("sessions") / "talk.jsonl")
    talk = [*talk, Message("user", "?")]
    session.add(talk)
    assert load(session.path) == talk
    assert render(load(session.path), (), "qwen2.5") == render(talk, (), "qwen2.5")


def test_a_failed_turn_is_in_the_log_and_not_in_the_conversation(tmp_path):
    session = Session(tmp_path / "talk.jsonl")
    session.add(TALK[:1])
    assert not session.path.exists()  # a file is made with what a person says
    session.failed(Message("user", "Boom?"), "out of memory")
    assert load(session.path) == TALK[:1]
    assert "Boom?" in session.path.read_text(encoding="utf-8")


def test_a_file_cut_anywhere_loads_what_was_whole(tmp_path):
    session = Session(tmp_path / "talk.jsonl")
    session.add(TALK)
    data = session.path.read_bytes()
    for end in range(len(data)):
        session.path.write_bytes(data[:end])
        whole = data[:end].count(b"\n")
        loaded = load(session.path)
        assert loaded[:whole] == TALK[:whole]
        if whole == 3:  # the call has no result
            assert [(message.role, message.name) for message in loaded[3:]] == [("tool", "add")]
            assert json.loads(loaded[3].content)["error"]["kind"] == "interrupted"
        else:
            assert len(loaded) == whole


@pytest.mark.skipif(os.name == "nt", reason="file modes are POSIX")
def test_a_session_is_private(tmp_path):
    session = Session(tmp_path / "new" / "talk.jsonl")
    session.add(TALK)
    assert stat.S_IMODE(session.path.stat().st_mode) == 0o600


@pytest.mark.parametrize("line", ["not json", "[]", '{"content": "no role"}', '{"role": "user", "colour": 1}', "3"])
def test_a_file_that_is_no_session_is_refused_with_the_line(tmp_path, line):
    path = tmp_path / "talk.jsonl"
    path.write_text(json.dumps({"role": "user", "content": "a"}) + "\n" + line + "\n")
    with pytest.raises(UserError, match="line 2"):
        load(path)


def test_a_missing_file_is_refused(tmp_path):
    with pytest.raises(UserError, match="cannot read"):
        load(tmp_path / "none.jsonl")

"""A conversation on disk is the conversation that was."""

from __future__ import annotations

import json
import os
import random
import signal
import stat
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qwen_tools import Message, render
from qwen_tools.errors import UserError
from qwen_tools.messages import Problem, ToolCall
from qwen_tools.session import Session, find, latest, load, markdown

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


def well_formed(messages: list[Message]) -> bool:
    """Every call has its result behind it, in order, and a prompt can be made of it."""
    position = 0
    while position < len(messages):
        message = messages[position]
        answers = messages[position + 1 : position + 1 + len(message.calls)]
        if [(each.role, each.name) for each in answers] != [("tool", call.name) for call in message.calls]:
            return False
        position += 1 + len(message.calls)
    return bool(render(messages, (), "qwen2.5"))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the writer forks")
def test_a_process_killed_at_any_instant_leaves_a_session_that_goes_on(tmp_path):
    """200 processes, each killed at a random instant; every tenth begins a new session, the others go on with it."""
    chance = random.Random(7)
    writer = subprocess.Popen(
        [sys.executable, Path(__file__).with_name("session_writer.py")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])},
    )
    while writer.stdout.readline() != b"ready\n":
        pass
    unanswered = 0
    for number in range(200):
        path = tmp_path / f"{number // 10}.jsonl"
        writer.stdin.write(f"{path}\n".encode())
        writer.stdin.flush()
        pid, count = json.loads(writer.stdout.readline())  # it has the session
        time.sleep(chance.uniform(0, chance.choice([0.005, 0.02, 0.06])))
        os.kill(pid, signal.SIGKILL)
        for line in iter(writer.stdout.readline, b"dead\n"):
            pid, count = json.loads(line)
        data = path.read_bytes() if path.exists() else b""
        messages = load(path) if path.exists() else []
        # What was said to be kept is there, but for a message that came, or an undo that happened, unannounced.
        assert len(messages) >= count or (data.endswith(b"\n") and b"rewind" in data.splitlines()[-1])
        assert well_formed(messages)
        unanswered += any("ended while" in message.content for message in messages)
    writer.stdin.close()
    assert writer.wait(10) == 0
    assert unanswered > 10  # the kills came in the middle of turns too


@pytest.mark.parametrize("end", range(1, 400, 23))
def test_a_session_that_was_cut_goes_on_behind_what_was_whole(tmp_path, end):
    session = Session(tmp_path / "talk.jsonl")
    session.add(TALK)
    session.close()
    data = session.path.read_bytes()
    session.path.write_bytes(data[:-end])
    before = load(session.path)
    again = Session.open(session.path)
    again.add([Message("user", "Still there?")])
    assert load(session.path) == [*before, Message("user", "Still there?")]
    assert well_formed(load(session.path))


def test_a_result_that_was_not_written_is_completed_where_it_belongs(tmp_path):
    call = ToolCall("add", {"a": 1}, id="x")
    session = Session(tmp_path / "talk.jsonl")
    session.add([Message("user", "Go."), Message("assistant", calls=(call, replace(call, id="y")))])
    session.add([Message("tool", "1", call_id="x", name="add"), Message("user", "And?")])
    messages = load(session.path)
    assert [message.role for message in messages] == ["user", "assistant", "tool", "tool", "user"]
    assert (messages[2].content, messages[3].call_id) == ("1", "y")
    assert "Do not assume a result" in messages[3].content
    session.rewind(4)  # counts what was loaded
    assert load(session.path) == messages[:4]


def test_rewinding_takes_back_and_keeps_in_the_log(tmp_path):
    session = Session(tmp_path / "talk.jsonl")
    session.add(TALK)
    session.rewind(1)
    assert load(session.path) == TALK[:1]
    session.add([Message("user", "Anew.")])
    assert load(session.path) == [TALK[0], Message("user", "Anew.")]
    assert "1 and 2" in session.path.read_text(encoding="utf-8")
    session.rewind(0)
    assert load(session.path) == []


ADD = ToolCall("add", {"a": 1})
said = st.one_of(
    st.builds(Message, role=st.sampled_from(["user", "assistant", "system"]), content=text),
    st.builds(Message, role=st.just("assistant"), calls=st.sampled_from([(ADD,), (ADD, ADD)])),
)
deeds = st.lists(
    st.one_of(
        st.tuples(st.just("say"), said),
        st.tuples(st.just("answer"), text),
        st.tuples(st.just("rewind"), st.floats(0, 1)),
        st.tuples(st.just("fail"), text),
        st.tuples(st.just("reopen"), st.integers(0, 3)),
    ),
    max_size=25,
)


@settings(max_examples=60, deadline=None)
@given(deeds)
def test_whatever_is_done_the_file_is_the_conversation(tmp_path_factory, deeds):
    """The same deeds on a list and on a session, with processes that come and go, some of them torn in a line."""
    path = tmp_path_factory.mktemp("sessions") / "talk.jsonl"
    session = Session(path)
    kept = [Message("user", "Begin.")]
    session.add(kept)
    for deed, value in deeds:
        waiting = next((m for m in reversed(kept) if m.role != "tool"), Message("user")).calls
        answered = next((n for n, m in enumerate(reversed(kept)) if m.role != "tool"), len(kept))
        if deed == "say":
            kept += [interrupted(call) for call in waiting[answered:]]
            kept.append(value)
            session.add([value])
        elif deed == "answer" and answered < len(waiting):
            kept.append(Message("tool", value, name="add"))
            session.add(kept[-1:])
        elif deed == "rewind":
            kept += [interrupted(call) for call in waiting[answered:]]
            del kept[round(value * len(kept)) :]
            session.rewind(len(kept))
        elif deed == "fail":
            session.failed(Message("user", value), "it failed")
        elif deed == "reopen":
            session.close()
            with path.open("ab") as file:
                file.write(b'{"role"'[: value * 3])
            session = Session.open(path)
    loaded = load(path)
    assert loaded[: len(kept)] == kept
    assert all("ended while" in message.content for message in loaded[len(kept) :])
    assert well_formed(loaded)


def interrupted(call: ToolCall) -> Message:
    content = {
        "kind": "interrupted",
        "message": "The program was ended while this call was open. Do not assume a result.",
    }
    return Message("tool", json.dumps({"error": content}), name=call.name)


def test_what_another_model_generated_comes_without_its_raw_text(tmp_path):
    answer = Message("assistant", "Hi.", raw="Hi. ", prefill="<think>\n", token_ids=(1, 2))
    session = Session(tmp_path / "talk.jsonl")
    session.about("first", "qwen2.5")
    session.add([Message("user", "Hello."), answer])
    session.about("second", "qwen3-coder")
    session.add([Message("user", "And you?"), answer])
    plain = Message("assistant", "Hi.")
    assert [message for message in load(session.path) if message.role == "assistant"] == [answer, answer]
    assert load(session.path, ("first", "qwen2.5"))[1::2] == [answer, plain]
    assert load(session.path, ("second", "qwen3-coder"))[1::2] == [plain, answer]
    assert load(session.path, ("first", "qwen3"))[1::2] == [plain, plain]


def test_a_session_has_one_writer(tmp_path):
    session = Session(tmp_path / "talk.jsonl")
    session.add(TALK)
    code = (
        "import sys, pathlib; from qwen_tools.session import Session\n"
        "from qwen_tools.errors import UserError\n"
        "try: Session.open(pathlib.Path(sys.argv[1]))\n"
        "except UserError as error: print(error)"
    )
    command = [sys.executable, "-c", code, session.path]
    told = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout
    assert "talk is in use by another process" in told
    assert len(told.splitlines()) == 1
    with pytest.raises(UserError, match="in use"):
        Session.open(session.path)
    session.close()
    assert subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout == ""
    Session.open(session.path)


def test_a_full_disk_costs_one_message_and_not_the_file(tmp_path, monkeypatch):
    session = Session(tmp_path / "talk.jsonl")
    session.add(TALK[:2])

    def full(descriptor):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(UserError, match="No space left"):
            session.add(TALK[2:3])
    assert load(session.path) == TALK[:2]
    session.add(TALK[3:])  # what could not be written comes first
    assert load(session.path) == TALK


def test_ctrl_c_while_writing_comes_after_the_line(tmp_path, monkeypatch):
    session = Session(tmp_path / "talk.jsonl")
    fsync = os.fsync

    def interrupted(descriptor):
        signal.raise_signal(signal.SIGINT)
        fsync(descriptor)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", interrupted)
        with pytest.raises(KeyboardInterrupt):
            session.add(TALK[:2])
    session.add(TALK[2:])
    assert load(session.path) == TALK


@pytest.fixture
def home(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("name", ["a", "课程", "week-3_b.2", "9", "x" * 80])
def test_a_session_has_the_name_it_is_given(home, name):
    session = Session.new(name)
    session.add(TALK)
    session.close()
    assert find(name) == session.path == latest()
    assert session.path.name == f"{name}.jsonl"
    with pytest.raises(UserError, match="already"):
        Session.new(name)


@pytest.mark.parametrize(
    "name",
    ["", ".", "..", "../a", "a/b", "a\\b", ".hidden", "-x", "a b", "a\nb", "a\0", "C:x", "x" * 81, "\x1b[2J", "~"],
)
def test_what_is_no_name_is_refused(home, name):
    for use in (Session.new, find):
        with pytest.raises(UserError, match="no name") as refused:
            use(name)
        assert len(str(refused.value).splitlines()) == 1
    assert list(home.rglob("*.jsonl")) == []


def test_a_session_is_found_by_how_its_name_begins(home):
    for name in ("course-a", "course-b", "other"):
        Session.new(name).add(TALK)
    assert find("oth").stem == "other"
    with pytest.raises(UserError, match=r"did you mean course-[ab] or course-[ab]"):
        find("course")
    with pytest.raises(UserError, match="did you mean other"):
        find("otehr")
    with pytest.raises(UserError, match="logs list"):
        find("zzz")


def test_the_latest_is_the_one_last_written_to(home):
    with pytest.raises(UserError, match="no session"):
        latest()
    first, second = Session.new("first"), Session.new("second")
    first.add(TALK)
    second.add(TALK)
    os.utime(first.path, (1, 1))
    assert latest() == second.path
    first.about("model", "family")  # going on without a word changes nothing
    assert latest() == second.path
    first.add([Message("user", "Again.")])
    assert latest() == first.path


def test_a_session_without_a_word_leaves_no_file(home):
    session = Session.new()
    session.about("model", "family")
    session.add(TALK[:1])
    assert list(home.rglob("*.jsonl")) == []
    session.add(TALK[1:])
    assert load(session.path) == TALK


def test_markdown_is_for_reading():
    text = markdown([*TALK, Message("tool", "cut", name="dump", full="a ``` b")])
    assert text.startswith("## System\n\nBe brief.\n\n## User\n\n1 and 2")
    assert "> hm\n\nWell\n\n**Call of add**" in text
    assert "cut by the length limit" in text
    assert "was interrupted" in text
    assert "````\na ``` b\n````" in text  # the whole result, in a fence that it cannot close
    assert markdown([]) == ""


@pytest.mark.skipif(os.name == "nt", reason="file modes are POSIX")
def test_a_session_is_private(tmp_path):
    session = Session(tmp_path / "new" / "talk.jsonl")
    session.add(TALK)
    assert stat.S_IMODE(session.path.stat().st_mode) == 0o600
    for path in (tmp_path / "new").rglob("*"):
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600)
    assert stat.S_IMODE(session.path.parent.stat().st_mode) == 0o700


@pytest.mark.parametrize(
    "line",
    [
        "not json",
        "[]",
        "3",
        '{"content": "no role"}',
        '{"role": "user", "colour": 1}',
        '{"role": "tool", "content": "without a call"}',
        '{"rewind": 2}',
        '{"rewind": -1}',
        '{"rewind": true}',
        '{"model": "without a family"}',
    ],
)
def test_a_file_that_is_no_session_is_refused_with_the_line(tmp_path, line):
    path = tmp_path / "talk.jsonl"
    path.write_text(json.dumps({"role": "user", "content": "a"}) + "\n" + line + "\n")
    with pytest.raises(UserError, match="line 2"):
        load(path)


def test_a_missing_file_is_refused(tmp_path):
    with pytest.raises(UserError, match="cannot read"):
        load(tmp_path / "none.jsonl")

"""``chat`` with sessions, approval and settings, from outside: what one process leaves, the next goes on with."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from qwen_tools.session import load

TOOLS = '''
import time
from pathlib import Path

from qwen_tools.tools import tool


@tool(read_only=True)
def look() -> str:
    """Look."""
    return "seen"


@tool(read_only=True)
def wait() -> str:
    """Wait."""
    time.sleep(60)
    return "waited"


def note(text: str) -> str:
    """Write a note.

    Args:
        text: what to write
    """
    Path(NOTE).write_text(text)
    return "written"
'''


def call(name: str, **arguments) -> str:
    return "<tool_call>\n" + json.dumps({"name": name, "arguments": arguments}) + "\n</tool_call>"


@pytest.fixture
def home(tmp_path, monkeypatch) -> Path:
    for name in ("HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(name, str(tmp_path / "home"))
    (tmp_path / "tools.py").write_text(TOOLS.replace("NOTE", repr(str(tmp_path / "note.txt"))))
    return tmp_path


def command(home: Path, answers: list[str], *arguments: str) -> list[str]:
    script = home / "script.json"
    script.write_text(json.dumps(answers))
    program = [sys.executable, "-m", "qwen_tools", "chat", "--model", f"scripted:{script}"]
    return [*program, "--tools", str(home / "tools.py"), *arguments]


def chat(home: Path, answers: list[str], *arguments: str, code: int = 0):
    done = subprocess.run(
        command(home, answers, *arguments),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    return done


def told(done) -> list[str]:
    return [message["content"] for message in json.loads(done.stdout)["messages"]]


def sessions(home: Path) -> list[Path]:
    return sorted((home / "home").rglob("*.jsonl"))


def test_a_named_session_goes_on_across_processes(home):
    chat(home, [call("look"), "Seen."], "--session", "course", "--system", "Be brief.", "First?")
    done = chat(home, ["Yes."], "--session", "course", "--json", "Second?")
    assert told(done) == ["Be brief.", "First?", None, "seen", "Seen.", "Second?", "Yes."]
    assert told(chat(home, ["No."], "--session", "other", "--json", "Hi")) == ["Hi", "No."]
    assert [path.stem for path in sessions(home)] == ["course", "other"]


def test_continue_is_the_latest_and_needs_one(home):
    assert "no session" in chat(home, [], "--continue", "Hi", code=2).stderr
    chat(home, ["One."], "--session", "named", "First?")
    name = json.loads(chat(home, ["Two."], "--json", "Unnamed?").stdout)["session"]
    assert name in [path.stem for path in sessions(home)]
    assert told(chat(home, ["Three."], "--continue", "--json", "And?")) == ["Unnamed?", "Two.", "And?", "Three."]
    assert len(sessions(home)) == 2


def test_the_system_text_of_a_session_stays(home):
    chat(home, ["One."], "--session", "a", "--system", "Be brief.", "First?")
    chat(home, ["Two."], "--session", "a", "--system", "Be brief.", "Second?")
    assert "another system text" in chat(home, ["No."], "--session", "a", "--system", "Shout.", "Hi", code=2).stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ["--no-log", "--continue"],
        ["--no-log", "--session", "a"],
        ["--session", "a", "--continue"],
        ["--session", "../a"],
    ],
)
def test_what_excludes_each_other_is_refused(home, arguments):
    chat(home, [], *arguments, "Hi", code=2)
    assert sessions(home) == []


def test_no_log_leaves_nothing_at_all(home):
    chat(home, ["One."], "--no-log", "Hi")
    assert list((home / "home").rglob("*")) == [] if (home / "home").exists() else True


def test_a_turn_that_fails_is_logged_and_the_session_goes_on(home):
    chat(home, ["One."], "--session", "a", "First?")
    chat(home, [call("look")], "--session", "a", "Fails?", code=1)  # one answer is missing
    path = sessions(home)[0]
    assert [message.content for message in load(path)] == ["First?", "One."]
    assert "Fails?" in path.read_text(encoding="utf-8")
    assert told(chat(home, ["Two."], "--session", "a", "--json", "Second?")) == ["First?", "One.", "Second?", "Two."]


def test_killed_in_a_tool_the_session_keeps_all_before_it(home):
    running = subprocess.Popen(
        command(home, [call("look") + call("wait"), "Never."], "--session", "a", "--events", "Go."),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        stdin=subprocess.DEVNULL,
        text=True,
    )
    for line in running.stdout:
        if json.loads(line)["type"] == "tool_end":
            break
    in_use = chat(home, ["No."], "--session", "a", "Hi", code=2).stderr
    assert "in use by another process" in in_use
    assert len(in_use.splitlines()) == 1
    for line in running.stdout:  # the result of look is part of the conversation
        if json.loads(line)["type"] == "message_added":
            break
    running.send_signal(signal.SIGKILL)
    running.wait()
    running.stdout.close()
    question, _, seen, interrupted, again, answer = told(chat(home, ["Well."], "--session", "a", "--json", "Again?"))
    assert (question, seen, again, answer) == ("Go.", "seen", "Again?", "Well.")
    assert json.loads(interrupted)["error"]["kind"] == "interrupted"


@pytest.mark.parametrize(
    ("mode", "results"),
    [
        ("none", ["denied", "denied"]),
        ("read", ["seen", "denied"]),
        ("ask", ["seen", "denied"]),  # nobody is there to be asked
        ("all", ["seen", "written"]),
    ],
)
def test_approve_says_what_runs(home, mode, results):
    answer = call("look") + call("note", text="x")
    done = chat(home, [answer, "Done."], "--approve", mode, "--json", "--no-log", "Go.")
    calls = json.loads(done.stdout)["calls"]
    assert [each["result"] if each["ok"] else json.loads(each["result"])["error"]["kind"] for each in calls] == results
    assert (home / "note.txt").exists() is (mode == "all")


def test_a_wish_for_a_session_is_stronger_than_a_setting_that_keeps_none(home):
    settings = home / "home" / "qwen_tools" / "config.toml"
    settings.parent.mkdir(parents=True)
    settings.write_text("no-log = true\n")
    chat(home, ["One."], "Hi")
    assert sessions(home) == []
    chat(home, ["One."], "--session", "a", "Hi")
    assert [path.stem for path in sessions(home)] == ["a"]

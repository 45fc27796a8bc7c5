"""``qwen_tools demo``: what a teacher shows, without a model."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import subprocess
import sys
from pathlib import Path

import pytest

from qwen_tools import events as ev
from qwen_tools.cli import main
from qwen_tools.commands import demo

SCENES = {scene["name"]: scene for scene in demo.scenes()}
REFERENCE = next(
    case
    for line in Path(__file__).with_name("cases").joinpath("prompts.jsonl").open(encoding="utf-8")
    if (case := json.loads(line))["id"] == "qwen2.5/two-tools-zh"
)


def happens(name: str) -> list[ev.Event]:
    return list(demo.perform(SCENES[name]))


def kinds(events: list[ev.Event]) -> list[str]:
    """What the model was told in the place of each result: the kind of an error, or ``ok``."""
    return [
        "ok" if event.ok else json.loads(event.content)["error"]["kind"]
        for event in events
        if isinstance(event, ev.ToolEnd)
    ]


def test_the_first_scene_is_the_reference_conversation():
    assert next(iter(SCENES)) == "two-tools"
    events = happens("two-tools")
    assert next(event.prompt for event in events if isinstance(event, ev.RoundStart)) == REFERENCE["prompt"]
    calls = [[call.name for call in event.message.calls] for event in events if isinstance(event, ev.MessageAdded)]
    assert [names for names in calls if names] == [["sqrt", "sqrt"], ["add"]]
    results = [event.content for event in events if isinstance(event, ev.ToolEnd)]
    # The model may only repeat what it was told.
    add = next(event.call for event in events if isinstance(event, ev.ToolStart) and event.call.name == "add")
    assert [json.dumps(value) for value in add.arguments.values()] == results[:2]
    assert results[2] == "10.818703857262644"
    assert events[-2].message.content.endswith("10.818703857262644。")


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("broken-json", ["invalid_json", "ok"]),
        ("unknown-tool", ["unknown_tool", "ok"]),
        ("schema-error", ["schema", "ok"]),
        ("cut-call", ["unterminated", "ok"]),
        ("repeated-call", ["ok", "repeated"]),
        ("not-in-tags", []),
        ("quoted-call", ["ok"]),
    ],
)
def test_each_failure_is_answered(name, told):
    events = happens(name)
    assert kinds(events) == told
    assert events[-1] == ev.Done("stop")


def test_every_scene_has_a_test_here_and_uses_all_its_answers():
    for name, scene in SCENES.items():
        answers = [
            event.message.raw
            for event in happens(name)
            if isinstance(event, ev.MessageAdded) and event.message.role == "assistant"
        ]
        written = ["\n".join(answer["text"]) for answer in scene["answers"]]
        assert [said and text.startswith(said) for said, text in zip(answers, written, strict=True)] == [True] * len(
            written
        )


def test_without_a_terminal_all_scenes_are_played(capsys):
    assert main(["demo"]) == 0
    out, err = capsys.readouterr()
    for scene in SCENES.values():
        assert scene["title"] in out
    assert err == ""
    assert "\x1b" not in out
    # The whole reference prompt stands there as it is.
    assert REFERENCE["prompt"] in out
    assert "the answer ended before the call did" in out.replace("\n             ", "")
    # Nothing but raw text is wider than a terminal of 80 columns.
    assert all(len(line) <= 80 for line in out.splitlines() if re.match(r"[A-Z]\w+ {2,}|──|━━", line))


def test_a_narrow_terminal_breaks_lines_between_words(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "40")
    assert main(["demo", "--scene", "broken-json"]) == 0
    out = capsys.readouterr().out
    assert "── round 1: the answer, as the model\nwrites it" in out
    assert re.search(r"MessageAdded the assistant's message\n {13}joins the conversation\n", out)


def test_one_scene_and_the_list(capsys):
    assert main(["demo", "--list"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == list(SCENES)
    assert main(["demo", "--scene", "cut-call"]) == 0
    assert "CallError    unterminated" in capsys.readouterr().out
    assert main(["demo", "--scene", "no-such"]) == 2
    assert "cut-call" in capsys.readouterr().err


def test_at_a_terminal_it_waits_between_the_steps_and_q_leaves():
    leader, follower = pty.openpty()
    child = subprocess.Popen(
        [sys.executable, "-m", "qwen_tools", "demo"],
        stdin=follower,
        stdout=follower,
        stderr=follower,
        env={**os.environ, "COLUMNS": "80", "TERM": "xterm"},
    )
    os.close(follower)
    seen = ""

    def until(text: str) -> None:
        nonlocal seen
        while text not in seen:
            assert select.select([leader], [], [], 30)[0], f"{text!r} did not come: {seen!r}"
            seen += os.read(leader, 65536).decode()

    until("q: leave")
    assert "the prompt" not in seen
    os.write(leader, b"\n")
    until("round 1: the prompt")
    # The text that was asked is in colour; the control tokens are dim.
    until("\x1b[2m<|im_start|>system\r\n")
    assert "the answer, as" not in seen
    os.write(leader, b"q\n")
    assert child.wait(30) == 0
    os.close(leader)

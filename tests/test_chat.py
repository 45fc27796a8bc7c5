"""``python -m qwen_tools chat`` from outside: what stands on stdout, on stderr, on disk, and the exit code."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from qwen_tools.session import load

CALL = '<tool_call>\n{"name": "add", "arguments": {"a": 1, "b": 2}}\n</tool_call>'


def command(home: Path, answers: list[str] | None, *arguments: str) -> list[str]:
    script = home / "script.json"
    script.write_text(json.dumps(answers))
    return [sys.executable, "-m", "qwen_tools", "chat", "--model", f"scripted:{script}", *arguments]


def chat(home: Path, answers, *arguments: str, stdin: str = ""):
    return subprocess.run(
        command(home, answers, *arguments),
        input=stdin,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def sessions(home: Path) -> list[Path]:
    return sorted((home / "home").rglob("*.jsonl"))


def test_the_answer_is_stdout_and_the_tools_are_stderr(home):
    done = chat(home, [CALL, "It is 3."], "1 and 2?")
    assert (done.returncode, done.stdout) == (0, "It is 3.\n")
    assert "add(a=1, b=2)" in done.stderr
    assert "3" in done.stderr
    assert "\x1b" not in done.stderr


def test_json_has_the_documented_shape(home):
    done = chat(home, [CALL, "It is 3."], "--json", "1 and 2?")
    result = json.loads(done.stdout)
    assert result["answer"] == "It is 3."
    assert result["finish_reason"] == "stop"
    assert result["calls"] == [{"name": "add", "arguments": {"a": 1, "b": 2}, "ok": True, "result": "3"}]
    assert [message["role"] for message in result["messages"]] == ["user", "assistant", "tool", "assistant"]
    assert json.loads(result["messages"][1]["tool_calls"][0]["function"]["arguments"]) == {"a": 1, "b": 2}
    assert len(result["rounds"]) == 2
    assert {"prompt_tokens", "cached_tokens", "new_tokens", "prefill_s", "decode_s"} <= result["rounds"][0].keys()
    assert result["family"] == "qwen2.5"
    assert result["model"].startswith("scripted:")


def test_events_are_json_lines(home):
    done = chat(home, [CALL, "It is 3."], "--events", "1 and 2?")
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert events[-1] == {"type": "done", "reason": "stop", "message": ""}
    assert "".join(event["delta"] for event in events if event["type"] == "text") == "It is 3."


def test_verbose_shows_the_exact_prompt_of_every_round(home):
    done = chat(home, [CALL, "It is 3."], "--verbose", "1 and 2?")
    assert done.stderr.count("<|im_start|>assistant\n") >= 3
    assert "<tool_response>\n3\n</tool_response>" in done.stderr
    assert done.stdout == "It is 3.\n"


def test_piped_text_stands_in_front_of_the_prompt(home):
    done = chat(home, ["ok"], "--json", "Summarise.", stdin="a file\n")
    assert json.loads(done.stdout)["messages"][0]["content"] == "a file\n\nSummarise."


def test_piped_text_alone_is_one_prompt(home):
    done = chat(home, ["ok"], "--json", stdin="line 1\nline 2\n")
    assert json.loads(done.stdout)["messages"][0]["content"] == "line 1\nline 2"


def test_system_and_options_reach_the_prompt(home):
    done = chat(
        home,
        ["ok"],
        "--system",
        "Be terse.",
        "--family",
        "qwen3",
        "--option",
        "enable_thinking=false",
        "--verbose",
        "Hi",
    )
    assert "<|im_start|>system\nBe terse." in done.stderr
    assert "<think>\n\n</think>\n\n" in done.stderr


def test_the_round_limit_ends_honestly(home):
    answers = [CALL.replace("1", str(number)) for number in range(4)]
    done = chat(home, answers, "--max-rounds", "2", "Go")
    assert done.returncode == 1
    assert "2 rounds" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "stdin", "code", "words"),
    [
        ([], "", 2, "nothing was asked"),
        (["--tools", "ad", "Hi"], "", 2, "add"),
        (["--json", "--events", "Hi"], "", 2, "exclude"),
        (["--option", "thinking", "Hi"], "", 2, "KEY=VALUE"),
        (["--option", "colour=red", "Hi"], "", 2, "colour"),
        (["--family", "llama", "Hi"], "", 2, "llama"),
        (["--max-rounds", "0", "Hi"], "", 2, "at least 1"),
        (["--tool-choice", "add", "Hi"], "", 2, "guide"),
        (["--wrong", "Hi"], "", 2, "--wrong"),
        (["--modle", "x", "Hi"], "", 2, "did you mean --model?"),
        (["--session", "x", "--no-log", "Hi"], "", 2, "not allowed with"),
        (["--model", "./no/such/folder", "Hi"], "", 3, "no/such/folder"),
        (["--model", "scripted:none.json", "Hi"], "", 2, "none.json"),
    ],
)
def test_a_mistake_is_one_line_and_its_exit_code(home, arguments, stdin, code, words):
    done = chat(home, ["ok"], *arguments, stdin=stdin)
    assert done.returncode == code, done.stderr
    assert words in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    assert len(done.stderr.strip().splitlines()) == 1


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_an_output_that_cannot_be_written_is_one_line(home):
    with open("/dev/full", "w") as full:
        words = [sys.executable, "-m", "qwen_tools", "tools"]
        done = subprocess.run(words, stdout=full, stderr=subprocess.PIPE, text=True)
    assert (done.returncode, done.stderr) == (1, "qwen_tools: No space left on device\n")


def test_a_command_that_there_is_not_gets_a_suggestion(home):
    done = subprocess.run([sys.executable, "-m", "qwen_tools", "chta"], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (2, "qwen_tools: there is no command 'chta'; did you mean chat?\n")


def test_no_model_at_all_says_the_two_things_to_do(home):
    code = (
        "import sys, importlib.metadata as m\n"
        "def missing(name): raise m.PackageNotFoundError(name)\n"
        "m.distribution = missing\n"
        "from qwen_tools.cli import main; sys.exit(main(['chat', 'Hi']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, "QWEN_TOOLS_CACHE": str(home / "cache")},
    )
    assert done.returncode == 3
    assert "embedded" in done.stderr
    assert "--model" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_answers_used_up_fail_the_task_and_the_question_is_in_the_log(home):
    done = chat(home, [], "Where is my question?")
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    path = sessions(home)[-1]
    assert "Where is my question?" in path.read_text(encoding="utf-8")
    assert [message.role for message in load(path)] == []


def test_the_conversation_is_on_disk_and_no_log_keeps_none(home):
    chat(home, [CALL, "It is 3."], "1 and 2?")
    assert [message.role for message in load(sessions(home)[0])] == ["user", "assistant", "tool", "assistant"]
    chat(home, ["ok"], "--no-log", "Hi")
    assert len(sessions(home)) == 1


def test_what_a_tool_prints_is_not_the_answer(home):
    tools = home / "loud.py"
    tools.write_text(
        "from qwen_tools.tools import tool\n\n"
        '@tool(read_only=True)\ndef shout() -> str:\n    """Shout."""\n    print("NOISE")\n    return "done"\n'
    )
    call = '<tool_call>\n{"name": "shout", "arguments": {}}\n</tool_call>'
    done = chat(home, [call, "Quiet."], "--tools", str(tools), "--json", "Go")
    assert json.loads(done.stdout)["answer"] == "Quiet."
    assert "NOISE" in done.stderr


@pytest.mark.parametrize(
    ("mode", "said", "prompt_end"),
    [("show", "Hm.", "assistant\n"), ("hide", "thought for 0 s", "assistant\n"), ("off", "", "</think>\n\n")],
)
def test_thoughts_are_shown_folded_or_not_had(home, mode, said, prompt_end):
    answer = "Yes." if mode == "off" else "<think>\nHm.\n</think>\n\nYes."
    done = chat(home, [answer], "--family", "qwen3", "--thinking", mode, "--verbose", "Is it?")
    assert done.stdout == "Yes.\n"
    before, _, after = done.stderr.rpartition("\n──\n")
    assert after.strip() == said
    assert before.endswith(prompt_end)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a disk that is full is there on Linux")
def test_an_answer_that_cannot_be_written_is_one_line_and_kept(home):
    line = " ".join(command(home, ["word " * 5000], "Hi"))
    done = subprocess.run(
        ["bash", "-c", f"{line} > /dev/full"], stderr=subprocess.PIPE, text=True, check=False, stdin=subprocess.DEVNULL
    )
    assert done.returncode == 1
    assert done.stderr.strip() == "qwen_tools: the answer cannot be written: No space left on device"
    assert load(sessions(home)[0])[-1].finish == "interrupted"


def test_half_a_surrogate_pair_is_shown_and_does_not_crash(home):
    done = chat(home, ["a\ud83d b"], "Hi")
    assert (done.returncode, done.stdout) == (0, "a\\ud83d b\n")
    assert chat(home, ["a\ud83d b"], "--json", "Hi").returncode == 0


def test_a_reader_that_goes_away_is_no_error(home):
    line = " ".join(command(home, ["word " * 50_000], "Hi"))
    done = subprocess.run(
        ["bash", "-c", f"{line} | head -c 5"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    assert done.stdout == "word "
    assert "Traceback" not in done.stderr
    assert "Exception" not in done.stderr

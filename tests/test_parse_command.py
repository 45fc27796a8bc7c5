"""``parse``: what a person and a program are told about a raw answer, through the real command line."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from test_parser import CASES, setting

from qwen_tools import parse

TOOLS = [{"name": "lookup", "parameters": {"type": "object", "properties": {"town": {"type": "string"}}}}]
OSLO = '{"name": "lookup", "arguments": {"town": "Oslo"}}'
BLOCK = f"<tool_call>\n{OSLO}\n</tool_call>"


@pytest.fixture
def command(tmp_path):
    tools = tmp_path / "tools.json"
    tools.write_text(json.dumps(TOOLS))

    def run(text, *arguments, offer=True):
        data = text if isinstance(text, bytes) else text.encode()
        offered = ["--tools", str(tools)] if offer else []
        done = subprocess.run(
            [sys.executable, "-m", "qwen_tools", "parse", *offered, *arguments],
            input=data,
            capture_output=True,
            timeout=60,
            check=False,
            env={**os.environ, "PYTHONIOENCODING": "utf-8"},
        )
        return done.returncode, done.stdout.decode(), done.stderr.decode()

    return run


def report(command, text, *arguments, **more):
    code, out, err = command(text, *arguments, **more)
    assert (code, err) == (0, "")
    return out


def test_json_is_the_parsed_turn(command):
    text = f"<think>\nHm.\n</think>\n\nSo:\n{BLOCK}\n{BLOCK.replace('lookup', 'nobody')}\n<tool_call>{{"
    data = json.loads(report(command, text, "--json"))
    turn = parse(text, TOOLS)
    assert (data["content"], data["reasoning"]) == (turn.content, turn.reasoning) == ("So:", "Hm.")
    assert [call["name"] for call in data["calls"]] == ["lookup", "nobody"]
    assert data["calls"][0]["arguments"] == {"town": "Oslo"}
    assert [text[slice(*call["span"])] for call in data["calls"]] == [call["raw"] for call in data["calls"]]
    assert [problem["kind"] for problem in data["problems"]] == ["unknown_tool", "unterminated"]
    assert data["calls"][1]["problems"] == [data["problems"][0]]


@pytest.mark.parametrize("chunk", ["1", "7", "char", "random:3"])
def test_chunks_change_nothing(command, chunk):
    text = f"So:\n{BLOCK}"
    assert report(command, text, "--json", "--chunk", chunk) == report(command, text, "--json")


def test_prefill_finish_and_salvage_reach_the_parser(command):
    cases = [case for case in CASES if case["id"] in ("open-038", "rule-002", "salv-002")]
    assert len(cases) == 3
    for case in cases:
        way = setting(case)
        arguments = ["--prefill", way["prefill"].replace("\n", "\\n"), "--finish", way["finish"], "--json"]
        arguments += ["--salvage"] if way["salvage"] else []
        (name,) = {tool["function"]["name"] if "function" in tool else tool["name"] for tool in case["tools"][:1]}
        text = case["text"].replace(name, "lookup").replace('"dest"', '"town"')
        data = json.loads(report(command, text, *arguments))
        assert len(data["calls"]) == len(case["expect"]["calls"])
        assert data["reasoning"] == case["expect"]["reasoning"]
        assert [problem["kind"] for problem in data["problems"]] == case["expect"]["errors"]


def test_the_report_names_lines_and_columns_and_what_was_mended(command):
    out = report(command, f'So:\n{BLOCK}\n<tool_call>\n{{"name": "lookup", "arguments": {{"town": 3}}\n</tool_call>')
    assert "call: lookup  2:1 to 4:12" in out
    assert "call: lookup  5:1 to 7:12" in out
    assert "must not run: schema: $.town: 3 is not of type 'string'" in out
    assert "mended: missing_brace" in out
    assert '   6 │ {"name": "lookup", "arguments": {"town": 3}' in out


@pytest.mark.parametrize(
    ("text", "arguments", "said"),
    [
        ("A <tool_call> tag", (), "1:3: {, [ or <function= must follow, not 'tag'"),
        ("A <tool_call> <tag", (), "not a call: <tool_call>  1:3: {, [ or <function= must follow, not '<tag'"),
        (f"A `<tool_call>{OSLO}`", (), "the backtick in front of it quotes it"),
        (f"Say\n```xml\n{BLOCK}\n```", (), "it stands in the Markdown fence that opens at 2:1"),
        ("Use <function=lookup> then", (), "<parameter= or </function> must follow, not 'then'"),
        ("<function=nobody>\n</function>", (), "its name must be that of an offered tool: lookup"),
        ("Hm.\n</think>\nHi.", (), r"when the prompt opened it, say so: --prefill '<think>\n'"),
        ("Hi. <think>", (), "a thought opens an answer"),
        (f"<think>\n{BLOCK}\n</think>Hi.", (), "2:1: it stands in the thought"),
        (f"Hi.<|im_end|>\n{BLOCK}", (), "not a call: <tool_call>  2:1: the turn has ended before it"),
        ("Hi. </tool_call>", (), "no call is open there"),
        (f"```json\n{OSLO}\n```", (), "the whole answer is a call in a wrong form (fence); --salvage reads it"),
        (OSLO, ("--salvage", "--finish", "length"), "it was cut"),
        (f"{OSLO} is it", ("--salvage",), "not one from end to end"),
        ('<tool_call>{"name": , }</tool_call>', (), "Expecting value at character 9, behind '{\"name\": '"),
        ("<tool_call>{", ("--finish", "length"), "no call: unterminated  1:1 to 1:12"),
        ("", (), "nothing: the answer is empty"),
    ],
)
def test_the_report_says_why_something_is_no_call(command, text, arguments, said):
    assert said in report(command, text, *arguments)


def test_without_tools_the_report_says_what_salvage_needs(command):
    assert "--salvage with --tools" in report(command, OSLO, offer=False)


def test_what_is_a_call_is_not_also_called_none(command):
    for text in (BLOCK, f"<think>\nHm\n</think>\n{BLOCK}\n{BLOCK}</tool_call><|im_end|>", f"<tool_call>\n{BLOCK}"):
        assert "not a call" not in report(command, text)


def test_an_answer_cannot_steer_the_terminal(command):
    out = report(command, f"\x1b[31mred\x07\n{BLOCK.replace('Oslo', chr(27))}\n<function=\x1b[0m>")
    assert "\x1b" not in out
    assert "\\u001b[31mred" in out


def test_long_answers_are_shortened_in_the_report(command):
    out = report(command, "line\n" * 1000 + "<tool_call> x " * 100 + "y" * 10_000)
    assert len(out) < 10_000
    assert "more lines" in out
    assert "more that are no calls" in out


@pytest.mark.parametrize(
    ("arguments", "data", "said"),
    [
        (("--chunk", "0"), b"", "--chunk '0' must be a number of characters, char, or random:SEED"),
        (("--chunk", "often"), b"", "--chunk 'often'"),
        (("--tools", "/nowhere.json"), b"", "cannot read /nowhere.json"),
        ((), b"\xff", "stdin is not UTF-8 text: byte 0"),
    ],
)
def test_wrong_use_is_one_line_and_code_2(command, arguments, data, said):
    code, out, err = command(data, *arguments, offer=False)
    assert (code, out) == (2, "")
    assert said in err
    assert err.count("\n") == 1


@pytest.mark.parametrize("content", ["nothing", "{}", '[{"no": "name"}]', "3"])
def test_a_broken_tools_file_is_named(command, tmp_path, content):
    file = tmp_path / "broken.json"
    file.write_text(content)
    code, _, err = command("Hi.", "--tools", str(file), offer=False)
    assert code == 2
    assert "broken.json" in err
    assert err.count("\n") == 1

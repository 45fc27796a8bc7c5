"""What --tools names: Python files and modules, JSON files, names that clash; and the command ``tools``."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from qwen_tools import Tool, tool_sources
from qwen_tools.builtin_tools import BUILTIN
from qwen_tools.cli import main
from qwen_tools.errors import UserError
from qwen_tools.executor import execute
from qwen_tools.messages import ToolCall
from qwen_tools.tool_sources import Source, load, named

EXAMPLE = str(Path(__file__).parents[1] / "examples" / "tools.json")


def write(folder: Path, name: str, value) -> str:
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False), encoding="utf-8")
    return str(path)


def python_file(folder: Path, name: str, *functions: str) -> str:
    return write(
        folder, name, "\n".join(f'def {each}() -> str:\n    """Do."""\n    return "{name}"' for each in functions)
    )


def schema(name: str, *required: str, **properties) -> dict:
    parameters = {
        "type": "object",
        "properties": properties or {each: {"type": "string"} for each in required},
        "required": list(required),
    }
    return {"type": "function", "function": {"name": name, "description": "d", "parameters": parameters}}


def use(toolbox, tool: str, /, **arguments):
    return execute(ToolCall(tool, arguments), toolbox, approve=lambda call, tool: True)


# ---- modules


def test_a_module_in_the_current_folder(tmp_path, monkeypatch):
    write(tmp_path / "course_tools", "__init__.py", "")
    write(tmp_path, "course_tools/marks.py", 'async def mark(n: int) -> int:\n    """Mark."""\n    return n + 1\n')
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    toolbox = load("module:course_tools.marks")
    assert [(tool.name, tool.origin, tool.read_only) for tool in toolbox] == [
        ("mark", "module:course_tools.marks", False)
    ]
    assert use(toolbox, "mark", n=1).content == "2"


def test_a_module_that_is_not_there_or_breaks(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    write(tmp_path, "broken_tools.py", "a = 1\nb = 1 / 0\n")
    with pytest.raises(UserError, match="No module named 'nowhere_here'"):
        load("module:nowhere_here")
    with pytest.raises(UserError, match="module broken_tools, line 2: cannot be loaded: ZeroDivisionError"):
        load("module:broken_tools")


# ---- names


def test_names_that_clash_are_prefixed_in_both_sources_whatever_their_order(tmp_path):
    one = python_file(tmp_path, "one.py", "search", "fetch")
    two = python_file(tmp_path, "two.py", "search")
    assert load(f"{one},{two}").names() == ["one__search", "fetch", "two__search"]
    assert load(f"{two},{one}").names() == ["two__search", "one__search", "fetch"]
    assert load([one, two]).names() == load(f"{one},{two}").names()
    assert use(load(f"{one},{two}"), "two__search").content == "two.py"


def test_sources_of_one_name_are_numbered(tmp_path):
    one = python_file(tmp_path / "a", "my tools.py", "search")
    two = python_file(tmp_path / "b", "my tools.py", "search")
    assert load(f"{one},{two}").names() == ["my_tools__search", "my_tools2__search"]


def test_a_prefixed_schema_says_the_new_name_and_nothing_else_changes(tmp_path):
    one = write(tmp_path, "one.json", [schema("search", "q")])
    two = write(tmp_path, "two.json", [schema("search", "q")])
    renamed = load(f"{one},{two}").get("two__search").to_dict()
    assert renamed["function"].pop("name") == "two__search"
    expected = schema("search", "q")
    del expected["function"]["name"]
    assert renamed == expected


def test_a_prefix_can_be_taken_off_again():
    found = [Source(name, str(at), [Tool("do__it", "d")]) for at, name in enumerate(["a__b", "_a", "课程", "x y"])]
    for tool, source in zip(named(found), found, strict=True):
        prefix, _, own = tool.name.partition("__")
        assert own == "do__it"
        assert prefix in ("a_b", "a", "tools", "x_y"), source


def test_two_of_one_name_in_one_source_are_refused(tmp_path):
    path = write(tmp_path, "t.json", [schema("a"), schema("a")])
    with pytest.raises(UserError, match=r"t\.json has two tools of the name 'a'"):
        load(path)


def test_a_builtin_tool_that_is_named_twice_is_there_once():
    assert load("sqrt,builtin,sqrt").names() == ["sqrt", *(name for name in BUILTIN if name != "sqrt")]


# ---- JSON files


def test_the_example_answers_and_asks():
    toolbox = load(EXAMPLE)
    assert [(tool.name, tool.read_only) for tool in toolbox] == [
        ("get_weather", True), ("web_search", True), ("send_email", False), ("download_file", False),
    ]  # fmt: skip
    assert use(toolbox, "get_weather", city="北京", date="明天").content == "会下雨：北京明天有小雨，3 到 8 摄氏度。"
    assert use(toolbox, "get_weather", city="Oslo", date="today").content == "No rain: cloudy in Oslo today, 12 °C."
    email = {"to": "a@example.com", "subject": "你好 {to}", "body": "b"}
    assert execute(ToolCall("send_email", email), toolbox).kind == "denied"
    assert "'你好 {to}' to a@example.com was sent" in use(toolbox, "send_email", **email).content


def test_what_is_ours_in_a_file_is_no_part_of_the_prompt(tmp_path):
    bare = {"type": "function", "name": "b", "description": "d", "parameters": {"type": "object"}, "result": 1}
    path = write(tmp_path, "t.json", {"tools": [{**schema("a", "q"), "result": "x"}, bare]})
    first, second = load(path)
    assert first.to_dict() == schema("a", "q")
    assert second.to_dict() == {
        "type": "function",
        "function": {"name": "b", "description": "d", "parameters": {"type": "object"}},
    }


def answer(folder: Path, result, arguments: dict, **properties):
    properties = properties or {"city": {"type": "string"}, "n": {"type": "integer"}}
    return use(load(write(folder, "t.json", [{**schema("f", **properties), "result": result}])), "f", **arguments)


@pytest.mark.parametrize(
    ("result", "arguments", "content"),
    [
        ("sunny", {}, "sunny"),
        ({"a": [1, None]}, {}, '{"a": [1, null]}'),
        ([1, 2], {}, "[1, 2]"),
        ([], {}, "[]"),
        ("in {city}, {n} days {other} {}", {"city": "北京", "n": 3}, "in 北京, 3 days {other} {}"),
        ("in {city}.", {}, "in ."),
        ({"n": "{n}"}, {"n": 3}, '{"n": 3}'),
        ("{city}", {"city": "{n}", "n": 1}, "{n}"),  # an argument is not a template
        ([{"when": {"city": "Paris"}, "result": "p"}, {"result": "other"}], {"city": " PARIS "}, "p"),
        ([{"when": {"city": "Paris"}, "result": "p"}, {"result": "other"}], {"city": "Rome"}, "other"),
        ([{"when": {"city": ["A", "B"], "n": 2}, "result": "x"}, {"result": "y"}], {"city": "b", "n": 2}, "x"),
        ([{"when": {"city": ["A", "B"], "n": 2}, "result": "x"}, {"result": "y"}], {"city": "b"}, "y"),
    ],
)
def test_canned_results(tmp_path, result, arguments, content):
    assert answer(tmp_path, result, arguments).content == content


def test_no_canned_result_for_these_arguments(tmp_path):
    result = answer(tmp_path, [{"when": {"city": "Paris"}, "result": "p"}], {"city": "Rome"})
    assert (result.ok, result.kind) == (False, "tool_error")


def test_true_is_not_one(tmp_path):
    cases = [{"when": {"n": 1}, "result": "one"}, {"result": "other"}]
    assert answer(tmp_path, cases, {"n": True}, n={"type": ["integer", "boolean"]}).content == "other"


PYTHON = sys.executable


def command(folder: Path, command: list[str], arguments: dict, **more):
    properties = more.pop("properties", {"city": {"type": "string"}, "n": {"type": "integer"}})
    required = more.pop("required", list(properties))
    tool = {**schema("f", *required, **properties), "command": command, **more}
    return use(load(write(folder, "t.json", [tool])), "f", **arguments)


def test_a_command_gets_its_arguments_as_json_and_as_whole_items(tmp_path):
    code = "import sys, json; print(json.load(sys.stdin), sys.argv[1:])"
    result = command(tmp_path, [PYTHON, "-c", code, "{city}", "{n}", "{}"], {"city": "北 京; rm *", "n": 3})
    assert result.content == "{'city': '北 京; rm *', 'n': 3} ['北 京; rm *', '3', '{}']"


def test_a_command_runs_in_the_folder_of_its_file(tmp_path):
    result = command(tmp_path, [PYTHON, "-c", "import os; print(os.getcwd())"], {"city": "a", "n": 1})
    assert result.content == str(tmp_path.resolve())


@pytest.mark.parametrize(
    ("code", "more", "said"),
    [
        ("import sys; sys.exit('out of luck')", {}, "exit code 1: out of luck"),
        ("import time; time.sleep(60)", {"seconds": 0.3}, "stopped after 0.3 seconds"),
        ("while True: print('x' * 10000)", {}, "stopped after 1000000 bytes"),
    ],
)
def test_a_command_that_fails_or_does_not_end_is_a_result(tmp_path, code, more, said):
    result = command(tmp_path, [PYTHON, "-c", code], {"city": "a", "n": 1}, **more)
    assert (result.ok, result.kind) == (False, "tool_error")
    assert said in result.content


def test_a_program_that_is_not_there_is_a_result(tmp_path):
    assert "FileNotFoundError" in command(tmp_path, ["/nowhere/at/all"], {"city": "a", "n": 1}).content


def test_an_argument_cannot_become_an_option(tmp_path):
    code = "import sys; print(sys.argv[1:])"
    bad = {"city": "--output=/etc/passwd", "n": -1}
    assert "must not begin with -" in command(tmp_path, [PYTHON, "-c", code, "{city}"], bad).content
    assert command(tmp_path, [PYTHON, "-c", code, "{n}"], bad).content == "['-1']"
    assert "output" in command(tmp_path, [PYTHON, "-c", code, "--", "{city}"], bad).content


def test_a_command_asks_unless_it_is_declared(tmp_path):
    tool = {**schema("f"), "command": ["true"]}
    assert not load(write(tmp_path, "a.json", [tool])).get("f").read_only
    assert load(write(tmp_path, "b.json", [{**tool, "read_only": True}])).get("f").read_only


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("{", "is not JSON"),
        ("[" * 100_000, "is not JSON"),
        (3, "must be a JSON list"),
        ([3], "must be an object"),
        ([{"function": {}}], "has a name"),
        ([{**schema("f"), "resutl": 1}], "did you mean 'result'"),
        ([{**schema("f"), "read_only": "yes"}], "true or false"),
        ([{"name": "f", "input_schema": {}}], "called 'parameters'"),
        ([{**schema("f"), "result": 1, "command": ["x"]}], "both"),
        ([{**schema("f"), "command": "rm -rf"}], "list of texts"),
        ([{**schema("f"), "command": []}], "list of texts"),
        ([{**schema("f", "city"), "command": ["x", "--city={city}"]}], "by itself"),
        ([{**schema("f"), "command": ["x", "{city}"]}], "no parameter"),
        ([{**schema("f", city={"type": "string"}), "command": ["x", "{city}"]}], "required or have a default"),
        ([{**schema("f"), "command": ["x"], "seconds": 0}], "seconds must be"),
        ([{**schema("f"), "result": 1, "seconds": 3}], "no command"),
        ([{**schema("f"), "result": [{"when": {"city": "a"}, "result": 1}]}], "no parameter"),
        ([{**schema("f"), "result": [{"when": 3, "result": 1}]}], "must be an object"),
        ([schema("f", a={"type": "text"})], "broken schema"),
        ([schema("two words")], "a name has"),
        ([{"name": "f", "parameters": {"type": "array"}}], "type object"),
    ],
)
def test_a_broken_file_is_said_in_one_line(tmp_path, value, said):
    with pytest.raises(UserError, match=said) as refusal:
        load(write(tmp_path, "t.json", value))
    assert "\n" not in str(refusal.value)


# ---- the command


def run(capsys, *arguments: str) -> tuple[int, str, str]:
    code = main(["tools", *arguments])
    return code, *capsys.readouterr()


def test_the_list_says_what_asks_and_where_it_is_from(capsys):
    code, out, _ = run(capsys, "--tools", EXAMPLE, "--tools", "sqrt")
    rows = [line.split(maxsplit=3)[:3] for line in out.splitlines()]
    assert code == 0
    assert rows[1] == ["get_weather", "reads", EXAMPLE]
    assert rows[3] == ["send_email", "asks", EXAMPLE]
    assert rows[5] == ["sqrt", "reads", "builtin"]


def test_the_list_as_json(capsys):
    _, out, _ = run(capsys, "list", "--json")
    tools = json.loads(out)["tools"]
    assert [tool["name"] for tool in tools] == list(BUILTIN)
    assert tools[0]["tool"] == BUILTIN["get_current_time"].to_dict()


def test_show_prints_what_the_prompt_has(capsys):
    from qwen_tools import render

    code, out, _ = run(capsys, "show", "send_email", "--tools", EXAMPLE)
    assert code == 0
    assert out.splitlines()[-1] in render([{"role": "user", "content": "Hi"}], load(EXAMPLE), family="qwen3")


def test_call_is_checked_and_runs_without_asking(capsys):
    email = '{"to": "a", "subject": "b", "body": "c"}'
    code, out, _ = run(capsys, "--tools", EXAMPLE, "call", "send_email", email)
    assert (code, "was sent" in out) == (0, True)
    code, out, _ = run(capsys, "--tools", EXAMPLE, "call", "send_email", '{"to": 3}')
    assert (code, json.loads(out)["error"]["kind"]) == (1, "schema")
    code, out, _ = run(capsys, "call", "sqrt", '{"value": 4}', "--json")
    assert (code, json.loads(out)["content"]) == (0, "2.0")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [(["call", "nothing"], "no tool 'nothing'"), (["call", "sqrt", "{"], "not JSON"), (["show", "x"], "no tool 'x'")],
)
def test_a_wrong_request_is_said(capsys, arguments, said):
    code, out, err = run(capsys, *arguments)
    assert (code, out) == (2, "")
    assert said in err


def test_check_says_all_that_is_wrong_at_once(tmp_path, capsys):
    bad = write(tmp_path, "bad.json", [schema("f", a={"type": "text"}), schema("two words"), schema("good")])
    code, out, _ = run(capsys, "check", "--tools", f"{bad},nowhere.py,{EXAMPLE}")
    lines = out.splitlines()
    assert code == 1
    assert len(lines) == 3
    assert any("nowhere.py" in line for line in lines)
    assert any("'f' has a broken schema" in line and bad in line for line in lines)
    assert any("'two words'" in line for line in lines)
    assert run(capsys, "check", "--tools", f"builtin,{EXAMPLE}")[:2] == (0, "")


def test_control_characters_do_not_reach_the_terminal(tmp_path, capsys):
    path = write(tmp_path, "t.json", [{**schema("f"), "result": 1}])
    data = json.loads(Path(path).read_text())
    data[0]["function"]["description"] = "red \x1b[31m"
    write(tmp_path, "t.json", data)
    for arguments in (["list"], ["show", "f"]):
        assert "\x1b" not in run(capsys, *arguments, "--tools", path)[1]


def test_the_chat_answers_from_the_example(tmp_path):
    calls = ['<tool_call>\n{"name": "get_weather", "arguments": {"city": "北京", "date": "明天"}}\n</tool_call>',
             "明天北京有小雨。"]  # fmt: skip
    answers = write(tmp_path, "answers.json", calls)
    command = ["chat", "--no-log", "--model", f"scripted:{answers}", "--tools", EXAMPLE, "北京明天会下雨吗？"]
    done = subprocess.run(
        [sys.executable, "-m", "qwen_tools", *command],
        stdin=subprocess.DEVNULL, capture_output=True, encoding="utf-8", timeout=60, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "明天北京有小雨。\n")
    assert "→ 会下雨：北京明天有小雨" in done.stderr


def test_every_help_names_every_kind_of_source():
    for word in (*tool_sources.SETS, "builtin", "module:", ".py", ".json", "none"):
        assert word in tool_sources.HELP

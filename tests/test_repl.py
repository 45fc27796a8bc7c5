"""The conversation at a real terminal: what a person types, and what is then on the screen and on disk."""

from __future__ import annotations

import json
import os
import re
import stat
import sys
from pathlib import Path

import pytest
from terminal import Terminal

from qwen_tools.session import load

ADD = '<tool_call>\n{"name": "add", "arguments": {"a": 1, "b": 2}}\n</tool_call>'
# More than a terminal takes in before somebody reads it: such an answer cannot end before Ctrl-C is pressed.
LONG = "word " * 100_000
ALL_OF_IT = ("--max-new-tokens", "1000000")


def call(name: str, **arguments) -> str:
    return f"<tool_call>\n{json.dumps({'name': name, 'arguments': arguments})}\n</tool_call>"


def start(home: Path, answers: list[str], *arguments: str, width: int = 80, **environment: str) -> Terminal:
    script = home / "script.json"
    script.write_text(json.dumps(answers))
    words = [sys.executable, "-m", "qwen_tools", "chat", "--model", f"scripted:{script}", *arguments]
    return Terminal(words, width=width, **environment)


def sessions(home: Path) -> list[Path]:
    return sorted((home / "home").rglob("*.jsonl"), key=lambda path: path.stat().st_mtime_ns)


def asked(home: Path) -> list[str]:
    return [message.content for message in load(sessions(home)[-1]) if message.role == "user"]


def leave(terminal: Terminal) -> None:
    terminal.ready().press("ctrl-d")
    assert terminal.code() == 0


TOOLS = """
import time
from pathlib import Path

from qwen_tools.tools import Tool


def _note(text):
    with (Path(__file__).parent / "notes.txt").open("a") as file:
        file.write(text + "|")
    return "written"


def _wait(seconds):
    time.sleep(seconds)
    return "waited"


# With schemas of their own: to describe a function takes transformers, whose import takes seconds.
note = Tool("note", "Write a note.", {"type": "object", "properties": {"text": {"type": "string"}}}, _note)
wait = Tool("wait", "Wait.", {"type": "object", "properties": {"seconds": {"type": "number"}}}, _wait, read_only=True)
"""


def tools_file(home: Path) -> str:
    (home / "mine.py").write_text(TOOLS)
    return str(home / "mine.py")


def test_a_conversation(home):
    terminal = start(home, [ADD, "It is **3**.\n\n# Done\n", "You are welcome."])
    terminal.ask("1 and 2?").wait("# Done")
    assert terminal.style("add(a=1, b=2)").fg == "cyan"
    assert terminal.style("3**").bold
    assert terminal.style("Done").bold
    assert "  → 3" in terminal.text
    terminal.ask("Thanks!").wait("You are welcome.")
    leave(terminal)
    assert [message.role for message in load(sessions(home)[0])] == [
        "user",
        "assistant",
        "tool",
        "assistant",
        "user",
        "assistant",
    ]


def test_several_lines_are_pasted_quoted_or_typed(home):
    terminal = start(home, ["One.", "Two.", "Three.", "Four."])
    terminal.ready().send("\x1b[200~def f():\r    return 1\x1b[201~").wait("…").wait("return 1").press("enter")
    terminal.wait("One.")
    terminal.ask('"""').wait("…").send("first\r").wait("first\n…").send("second\r").wait("second\n…")
    terminal.send('"""').wait('… """').press("enter").wait("Two.")
    terminal.type("a").press("alt-enter").wait("…").send("b").wait("… b").press("enter").wait("Three.")
    terminal.ask(" /not a command").wait("Four.")
    leave(terminal)
    assert asked(home) == ["def f():\n    return 1", "first\nsecond", "a\nb", "/not a command"]


def test_tab_completes_commands_tools_and_files(home):
    (home / "home").mkdir()
    (home / "home" / "a_long_name.txt").write_text("")
    terminal = start(home, ["ok"])
    terminal.type("/exp").press("tab").wait("> /export").send(" ~/a_lo").press("tab").wait("~/a_long_name.txt")
    terminal.press("ctrl-c").wait("again leaves").ready()
    terminal.type("/tools off calc").press("tab").wait("> /tools off calculate").press("enter").wait("offered: ")
    assert "calculate" not in terminal.text.split("offered: ")[1]
    terminal.type("use get_current_w").press("tab").wait("use get_current_weather").press("enter").wait("ok")
    terminal.type("/s").press("tab").press("tab").wait("/stats").press("ctrl-c").ready()
    leave(terminal)
    assert asked(home) == ["use get_current_weather"]


def test_the_history_is_kept_across_sessions_and_private(home):
    terminal = start(home, ["ok"])
    terminal.ask("a question to remember").wait("ok")
    leave(terminal)
    (path,) = (home / "home").rglob("history")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    terminal = start(home, ["fine"])
    terminal.ready().press("up").wait("> a question to remember").press("enter").wait("fine")
    leave(terminal)
    terminal = start(home, ["quiet"], "--no-log")
    terminal.ask("a secret").wait("quiet")
    leave(terminal)
    assert "secret" not in path.read_text()
    assert len(sessions(home)) == 2


def test_ctrl_c_stops_an_answer_which_is_kept_and_can_be_continued(home):
    terminal = start(home, ["Before " + LONG, "and the end.", "Next."], *ALL_OF_IT)
    terminal.ask("Go").wait("Before word").press("ctrl-c").wait("interrupted").ready()
    cut = load(sessions(home)[0])[-1]
    assert cut.finish == "interrupted"
    assert cut.content.startswith("Before word")
    assert len(cut.content) < len(LONG)
    terminal.ask("/continue").wait("and the end.").ready()
    whole = load(sessions(home)[0])[-1]
    assert (whole.finish, whole.raw) == ("stop", cut.raw + "and the end.")
    assert whole.content == whole.raw
    terminal.ask("/continue").wait("no answer that was cut").ready()
    terminal.ask("And?").wait("Next.").ready()
    terminal.press("ctrl-c").wait("again leaves").ready().press("ctrl-c")
    assert terminal.code() == 130
    assert [message.role for message in load(sessions(home)[0])] == ["user", "assistant"] * 2


def test_a_second_ctrl_c_leaves_after_an_answer_was_stopped(home):
    terminal = start(home, [LONG], *ALL_OF_IT)
    terminal.ask("Go").wait("word").press("ctrl-c").wait("interrupted").ready().press("ctrl-c")
    assert terminal.code() == 130


def test_ctrl_c_takes_a_line_away_and_the_program_stays(home):
    terminal = start(home, ["ok"])
    terminal.type("some words").press("ctrl-c").wait("again leaves").ready()
    terminal.type("other words").press("ctrl-c").ready()
    terminal.ask("question").wait("ok")
    leave(terminal)


def test_an_answer_cut_by_the_length_limit_is_continued(home):
    terminal = start(home, ["abcdefgh", "ijkl"], "--max-new-tokens", "1")
    terminal.ask("Go").wait("length limit").ready()
    terminal.ask("/continue").wait("ijkl").ready()
    leave(terminal)
    assert load(sessions(home)[0])[-1].content == "abcdijkl"


def test_ctrl_c_stops_a_tool_and_the_conversation_goes_on(home):
    terminal = start(home, [call("wait", seconds=60), "Fine."], "--tools", tools_file(home))
    terminal.ask("wait").wait(lambda: re.search(r"[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏] wait 1 s", terminal.text))  # a spinner and the time
    terminal.press("ctrl-c").wait("✗").wait("interrupted").ready()
    terminal.ask("and?").wait("Fine.")
    leave(terminal)
    roles = [message.role for message in load(sessions(home)[0])]
    assert roles == ["user", "assistant", "tool", "user", "assistant"]


def test_calls_that_run_side_by_side_are_told_apart(home):
    calls = call("wait", seconds=1.2) + call("wait", seconds=1.1)
    terminal = start(home, [calls, "Fine."], "--tools", tools_file(home))
    terminal.ask("wait").wait("wait, wait 1 s").wait("Fine.").ready()
    assert len(re.findall(r"→ wait: waited \(1\.\d s\)\n", terminal.text)) == 2
    leave(terminal)


def test_a_slow_tool_says_how_long_it_took_and_its_spinner_goes(home):
    terminal = start(home, [call("wait", seconds=1.2), "Fine."], "--tools", tools_file(home))
    terminal.ask("wait").wait("Fine.").ready()
    assert re.search(r"→ waited \(1\.\d s\)\nFine\.\n>", terminal.text)
    leave(terminal)


def test_approval(home):
    answers = [call("note", text=text) for text in ("a\x1b[2Jb", "b", "c", "c", "d", "e", "f")]
    answers = [word for answer in answers for word in (answer, "Said.")]
    terminal = start(home, answers, "--tools", tools_file(home))

    def written() -> list[str]:
        path = home / "notes.txt"
        return path.read_text().split("|")[:-1] if path.exists() else []

    def go(answer: str | None) -> None:
        count = terminal.text.count("Said.")
        terminal.ask("go")
        if answer is not None:
            terminal.wait(lambda: terminal.text.rstrip().endswith("ne[v]er:")).send(answer + "\r")
        terminal.wait(lambda: terminal.text.count("Said.") > count).ready()

    go("")  # the default is no
    assert written() == []
    question = terminal.text
    assert r'text: "a\u001b[2Jb"' in question
    assert b"\x1b[2J" not in terminal.raw
    go("o")
    assert written() == ["b"]
    go("exact")
    go(None)  # the same call again
    assert written() == ["b", "c", "c"]
    go("what?\ra")  # what is no answer is asked again
    go(None)  # always
    assert written() == ["b", "c", "c", "d", "e"]
    terminal.ask("/approve none").wait("every tool is refused").ready()
    go(None)
    assert written() == ["b", "c", "c", "d", "e"]
    leave(terminal)


def test_never_holds_and_ctrl_c_at_the_question_stops_the_answer(home):
    note = call("note", text="a")
    terminal = start(home, [note, note, "Not written.", note, "Said."], "--tools", tools_file(home))
    terminal.ask("go").wait("ne[v]er:").press("ctrl-c").wait("interrupted").ready()
    assert "^C  " not in terminal.text
    terminal.ask("again").wait(lambda: terminal.text.count("ne[v]er:") == 2).send("v\r").wait("Not written.").ready()
    terminal.ask("more").wait("Said.").ready()
    assert terminal.text.count("ne[v]er:") == 2
    assert not (home / "notes.txt").exists()
    leave(terminal)
    roles = [message.role for message in load(sessions(home)[0])]
    assert roles == ["user", "assistant", "tool"] + ["user", "assistant", "tool", "assistant"] * 2


def test_text_of_several_lines_is_shown_as_lines_before_it_runs(home):
    terminal = start(home, [call("note", text="one\ntwo\x07"), "Said."], "--tools", tools_file(home), width=40)
    terminal.ask("go").wait("ne[v]er:")
    assert "  text:\n    │ one\n    │ two\\u0007\n" in terminal.text
    terminal.send("n\r").wait("Said.")
    leave(terminal)


def test_commands_that_look(home):
    terminal = start(home, [ADD, "It is 3."], "--tools", "add,sqrt")
    terminal.ask("1 and 2?").wait("It is 3.").ready()
    terminal.ask("/raw").wait("── round 2 ──").ready()
    assert ADD in terminal.text
    terminal.ask("/prompt").wait("<tool_response>\n3\n</tool_response>").wait("<|im_start|>assistant\n").ready()
    terminal.ask("/prompt --table").wait("total").ready()
    terminal.ask("/prompt --ids").wait("needs a model with a tokenizer").ready()
    terminal.ask("/tools").wait("reads  sqrt: ").ready()
    terminal.ask("/tools show add").wait('"name": "add"').ready()
    terminal.ask("/stats").wait("2 answers with 4 messages").ready()
    terminal.ask("/set").wait("max_new_tokens       1024").ready()
    terminal.ask("/model").wait("(qwen2.5)").ready()
    terminal.ask("/help").wait("/exit").wait("Ctrl-D leaves.").ready()
    terminal.ask("/help load").wait("/load NAME|FILE: go on").ready()
    terminal.ask("/exit")
    assert terminal.code() == 0


MISTAKES = {
    "/pormpt": "did you mean /prompt?",
    "/no-think": "did you mean /no_think?",
    "/undo 3": "usage: /undo",
    "/help pormpt": "did you mean /prompt?",
    "/xyzzy": "/help lists the commands",
    "/tools on nothing": "no tool 'nothing'",
    "/tools turn": "usage: /tools",
    "/set temprature 1": "did you mean temperature?",
    "/set top_k many": "a whole number",
    "/set do_sample 1": "true or false",
    "/set temperature": "usage: /set",
    "/set top_p 7": "above 0 and at most 1",
    "/set stop 3": "a JSON list of texts",
    "/think loud": "usage: /think",
    "/approve some": "usage: /approve",
    "/undo": "nothing was asked",
    "/retry": "nothing was asked",
    "/raw": "nothing was answered",
    "/continue": "no answer that was cut",
    "/save": "usage: /save",
    "/load nothing": "there is no session nothing",
    "/export /no/such/folder/a.md": "No such file",
    "/model ./nothing": "no model",
    "/prompt --wrong": "usage: /prompt",
}


def test_a_mistake_is_one_line_and_the_conversation_goes_on(home):
    terminal = start(home, ["ok"])
    for line, words in MISTAKES.items():
        terminal.ask(line).wait(lambda line=line, words=words: terminal.shows(words, f"> {line}\n")).ready()
        said = terminal.text.rpartition(f"> {line}\n")[2].splitlines()
        assert len(said) <= 3, said  # one line, perhaps wrapped, and the next prompt
    assert "Traceback" not in terminal.text
    terminal.ask("question").wait("ok")
    leave(terminal)


def test_commands_that_change(home):
    terminal = start(home, ["One.", "Two.", "Three.", "Four."])
    terminal.ask("first").wait("One.").ready()
    terminal.ask("second").wait("Two.").ready()
    terminal.ask("/undo").wait("taken back: second").ready()
    assert asked(home) == ["first"]
    terminal.ask("/retry").wait("Three.").ready()
    assert [message.content for message in load(sessions(home)[0])] == ["first", "Three."]
    terminal.ask("/system Be terse.").wait(lambda: terminal.text.count("Be terse.") == 2).ready()
    terminal.ask("/set max_new_tokens 1").wait("max_new_tokens       1\n").ready()
    terminal.ask('/set stop ["##", "\\n"]').wait('stop                 ["##", "\\n"]').ready()
    terminal.ask("/set stop default").wait("stop                 []").ready()
    terminal.ask("/save talk").wait("--session talk").ready()
    terminal.ask("last").wait("length limit").ready()
    terminal.ask("/clear").wait("a new conversation").ready()
    terminal.ask(f"/export {home}/empty.md").wait("written to").ready()
    terminal.ask("/load talk").wait("5 messages").ready()
    terminal.ask(f"/export {home}/talk.md").wait("talk.md").ready()
    terminal.ask(f"/export {home}/talk.json").wait("talk.json").ready()
    terminal.ask(f"/export {home}/talk.json").wait("is there already").ready()
    leave(terminal)
    contents = ["Be terse.", "first", "Three.", "last", "Four"]
    assert [message["content"] for message in json.loads((home / "talk.json").read_text())["messages"]] == contents
    assert "## User\n\nlast\n\n## Assistant\n\nFour" in (home / "talk.md").read_text()
    (saved,) = (path for path in sessions(home) if path.stem == "talk")
    assert [message.content for message in load(saved)] == contents


def test_a_turn_that_fails_leaves_the_conversation_as_it_was(home):
    terminal = start(home, ["One.", ADD])
    terminal.ask("first").wait("One.").ready()
    terminal.ask("second").wait("→ 3").wait("only 2 answers").ready()
    terminal.press("up").wait("> second").press("ctrl-c").wait("again leaves").ready()
    terminal.ask("/retry").wait(lambda: terminal.text.count("only 2 answers") == 2)
    leave(terminal)
    assert [message.content for message in load(sessions(home)[0])] == ["first", "One."]
    assert "second" in sessions(home)[0].read_text()


def test_thoughts_are_shown_folded_or_had_not(home):
    thought = "<think>\nHm, let me see.\n</think>\n\nYes."
    terminal = start(home, [thought, thought, "Yes."], "--family", "qwen3")
    terminal.ask("Is it?").wait("Yes.").ready()
    assert "Hm, let me see.\n" in terminal.text
    terminal.ask("/think hide").wait("folded").ready()
    terminal.ask("Sure?").wait("thought for 0 s\nYes.").ready()
    assert terminal.text.count("Hm, let") == 1
    terminal.ask("/no_think").wait("without thinking").ready()
    terminal.ask("/prompt").wait("<|im_start|>assistant\n<think>\n\n</think>").ready()
    leave(terminal)


def test_the_editor_of_the_person_is_used(home):
    editor = home / "editor"
    editor.write_text("#!/bin/sh\nprintf 'and\\nmore\\n' >> \"$1\"\n")
    editor.chmod(0o755)
    terminal = start(home, ["ok"], EDITOR=str(editor))
    terminal.ask("/edit begun").wait("> begun\n> and\n> more\nok").ready()
    leave(terminal)
    assert asked(home) == ["begun\nand\nmore"]
    terminal = start(home, ["ok"], EDITOR="/no/such/editor")
    terminal.ask("/edit").wait("set EDITOR").ready()
    leave(terminal)


def test_the_terminal_may_be_narrow_and_change_its_size(home):
    terminal = start(home, ["中文" * 30 + " end", "Fine."], width=40)
    terminal.ask("a question that is longer than the line of this terminal").wait("end").ready()
    terminal.ask("/help").wait("Ctrl-D leaves.").ready()
    assert max(map(len, terminal.lines)) <= 40
    terminal.resize(100, 30)
    terminal.ask("wider").wait("Fine.")
    leave(terminal)


def test_no_color_is_obeyed(home):
    terminal = start(home, [ADD, "# It\n**is** 3."], NO_COLOR="1")
    terminal.ask("1 and 2?").wait("**is** 3.").ready()
    codes = set(re.findall(rb"\x1b\[([0-9;]*)m", terminal.raw))
    assert codes <= {b"", b"0"}
    leave(terminal)


def test_a_dumb_terminal_gets_no_escape_sequence(home):
    terminal = start(home, [ADD, "It is **3**.", "Two."], TERM="dumb")
    terminal.ask("1 and 2?").wait("It is **3**.").ready()
    terminal.ask('"""').wait("…").send("a\r").wait("a\n…").send('b"""\r').wait("Two.").ready()
    terminal.press("ctrl-c").wait("again leaves").ready().press("ctrl-c")
    assert terminal.code() == 130
    assert b"\x1b" not in terminal.raw
    assert asked(home) == ["1 and 2?", "a\nb"]


def test_an_answer_cannot_steer_the_terminal(home):
    terminal = start(home, ["a\x1b[2Jb\x1b]0;title\x07 北京\u3000晴"], "--verbose")
    terminal.ask("go").wait("北京\u3000晴").ready()
    assert r"a\u001b[2Jb" in terminal.text
    assert b"\x1b[2J" not in terminal.raw
    assert b"\x1b]0;" not in terminal.raw
    leave(terminal)


def test_what_was_said_is_kept_when_the_terminal_closes(home):
    terminal = start(home, ["Before " + LONG], *ALL_OF_IT)
    terminal.ask("Go").wait("Before word").close()
    question, answer = load(sessions(home)[0])
    assert question.content == "Go"
    assert answer.finish == "interrupted"
    assert answer.content.startswith("Before word")


def test_a_model_that_cannot_be_loaded_is_one_line_and_its_code(home):
    terminal = Terminal([sys.executable, "-m", "qwen_tools", "chat", "--model", "./nothing"])
    assert terminal.code() == 3
    assert "Traceback" not in terminal.text
    assert "no model './nothing'" in terminal.text


def test_a_conversation_goes_on_in_the_next_session(home):
    terminal = start(home, ["One."], "--session", "talk")
    terminal.ask("first").wait("One.")
    leave(terminal)
    terminal = start(home, ["Two."], "--continue")
    terminal.ask("second").wait("Two.")
    leave(terminal)
    assert [message.content for message in load(sessions(home)[0])] == ["first", "One.", "second", "Two."]


@pytest.mark.skipif(os.name == "nt", reason="the terminals of these tests are POSIX")
def test_the_answer_alone_goes_where_stdout_goes(home):
    script = home / "script.json"
    script.write_text(json.dumps(["# Not\nstyled."]))
    line = f"{sys.executable} -m qwen_tools chat --model scripted:{script} > {home}/out.txt"
    terminal = Terminal(["bash", "-c", line])
    terminal.ask("Hi").wait(lambda: (home / "out.txt").read_text() == "# Not\nstyled.\n")
    leave(terminal)

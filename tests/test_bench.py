"""BFCL in several ways of asking: what is right, what survives a kill, and what is called a difference."""

from __future__ import annotations

import json
import random
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from api_server import Reply, serving
from test_compare import Page

from qwen_tools import bench, evaluate
from qwen_tools.bench import Results, Row, ask, holm, mcnemar, pairs, summary
from qwen_tools.cli import main
from qwen_tools.commands.bench import span
from qwen_tools.compare import ARMS, Outcome
from qwen_tools.engines import Settings
from qwen_tools.engines.scripted import ScriptedEngine
from qwen_tools.errors import UserError

pytest.importorskip("bfcl_eval", reason="pip install --no-deps bfcl-eval==2026.3.23")

SIMPLE, NONE = evaluate.items("simple_python", 4), evaluate.items("irrelevance", 4)
# BFCL's own first question: a triangle with a base of 10 and a height of 5.
RIGHT = '{"name": "calculate_triangle_area", "arguments": {"base": 10, "height": 5}}'
ABOUT = {"model": "scripted", "arms": ["raw", "raw+salvage"]}


def tags(call):
    return f"<tool_call>\n{call}\n</tool_call>"


def fence(call):
    return f"```json\n{call}\n```"


def asked(item, *answers, arms=("raw", "raw+salvage"), **how):
    return ask(ScriptedEngine(answers), item, arms, Settings(**how)).outcomes


# --- What is right ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "right", "why"),
    [
        (tags(RIGHT), [True, True], ""),
        (fence(RIGHT), [False, True], "no call, where one is right"),
        (tags(RIGHT.replace("10", "11")), [False, False], "Invalid value for parameter 'base'"),
        (tags(RIGHT.replace("base", "width")), [False, False], "schema: "),
        (tags(RIGHT.replace("calculate", "compute")), [False, False], "unknown_tool"),
        # What is broken is wrong, whatever else the answer has.
        (tags(RIGHT) + "\n<tool_call>\n{", [False, False], "unterminated"),
        ("25 square units.", [False, False], "no call"),
    ],
)
def test_bfcls_checker_judges_every_reading_of_an_answer_by_itself(answer, right, why):
    found = asked(SIMPLE[0], answer)
    assert [outcome.right for outcome in found] == right
    assert found[0].why.startswith(why)


def test_where_no_call_is_right_an_attempt_at_one_is_wrong_already():
    tool = json.dumps({"name": NONE[0].tools[0].name, "arguments": {}})
    assert [outcome.right for outcome in asked(NONE[0], "I cannot tell.")] == [True, True]
    for answer in (tags(tool), tags("{nonsense}"), tags('{"name": "x", "arguments": {}}')):
        assert asked(NONE[0], answer, arms=["raw"])[0].right is False


class Watched(ScriptedEngine):
    """Keeps the settings that it was given."""

    def generate(self, prompt, settings, **how):
        self.settings = settings
        return super().generate(prompt, settings, **how)


def test_here_the_likeliest_token_an_api_as_it_likes():
    engine = Watched(["No."])
    answer = {
        "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "No."}}],
        "usage": {"prompt_tokens": 5, "completion_tokens": 1, "total_tokens": 6},
    }
    with serving(Reply(json.dumps(answer), kind="application/json")) as server:
        arms = [f"openai:{server.url}#m", "raw"]
        row = ask(engine, NONE[0], arms, Settings(temperature=0.0), api_settings=Settings())
        assert "temperature" not in server.requests[0]
    assert [outcome.arm for outcome in row.outcomes] == arms
    assert [outcome.right for outcome in row.outcomes] == [True, True]
    assert engine.settings.temperature == 0.0


@pytest.mark.parametrize(("temperature", "do_sample"), [(None, False), (0.7, None)])
def test_a_temperature_that_was_asked_for_is_not_overruled_by_what_is_known_of_a_model(temperature, do_sample):
    engine = Watched(["No."], name="embedded")
    ask(engine, NONE[0], ["raw"], Settings(temperature=temperature))
    assert engine.settings.do_sample is do_sample


# --- What is called a difference --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("one", "other", "p"),
    [
        (0, 0, 1.0),
        (5, 5, 1.0),
        (0, 5, 2 / 32),
        (0, 6, 2 / 64),
        (9, 1, 2 * (1 + 10) / 1024),
        (3, 12, 0.03515625),  # scipy.stats.binomtest(3, 15).pvalue
        (4, 5, 1.0),  # more than half of all splits: no more than certain
    ],
)
def test_mcnemars_exact_p(one, other, p):
    assert mcnemar(one, other) == pytest.approx(p, rel=1e-12)
    assert mcnemar(other, one) == mcnemar(one, other)


def test_many_questions_are_not_too_many_for_the_exact_test():
    assert mcnemar(0, 5000) == 0.0
    assert 0.9 < mcnemar(2500, 2501) <= 1.0


def test_holms_example():
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.9, 0.8]) == [1.0, 1.0]
    assert holm([]) == []


@pytest.mark.parametrize(
    ("right", "total", "low", "high"),
    [  # Newcombe (1998), table I, method 3
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ],
)
def test_wilsons_interval(right, total, low, high):
    assert evaluate.wilson(right, total) == pytest.approx((low, high), abs=5e-5)


def row(number, *right, category="multiple"):
    outcomes = [
        Outcome(arm, right=each, valid=True, finish="stop", prompt_tokens=10, new_tokens=5, total_s=2.0)
        for arm, each in zip(("a", "b", "c"), right, strict=False)
    ]
    return Row(category, f"{category}_{number}", "?", tuple(outcomes))


def test_a_difference_is_called_one_only_when_it_is():
    five = pairs([row(number, True, False) for number in range(5)])
    six = pairs([row(number, True, False) for number in range(6)])
    assert [pair["better"] for pair in five + six] == [None, "a"]
    # Among three pairs the same split is none: 3 * 2/64 is more than 0.05.
    three = pairs([row(number, True, False, True) for number in range(6)])
    assert [(pair["arms"], pair["only"]) for pair in three] == [
        (("a", "b"), (6, 0)),
        (("a", "c"), (0, 0)),
        (("b", "c"), (0, 6)),
    ]
    assert [pair["p_holm"] for pair in three] == pytest.approx([6 / 64, 1.0, 6 / 64])
    assert [pair["better"] for pair in three] == [None, None, None]
    assert pairs([]) == pairs([row(1, True)]) == []


def test_what_a_right_answer_costs():
    found = summary([row(1, True), row(2, False), row(3, True, category="parallel"), row(4, True, category="parallel")])
    assert list(found) == ["multiple", "parallel", "all"]
    every = found["all"]["a"]
    assert (every["right"], every["judged"]) == (3, 4)
    assert (every["tokens_per_right"], every["seconds_per_right"]) == (60 / 3, 8 / 3)
    assert (every["low"], every["high"]) == evaluate.wilson(3, 4)
    assert summary([row(1, False)])["all"]["a"]["tokens_per_right"] is None


def test_categories_by_name_and_by_pattern():
    assert bench.categories(["live_*", "parallel"]) == [*bench.CATEGORIES[5:], "parallel"]
    for words in (["simple"], [], ["live_*", "multi_turn_base"]):
        with pytest.raises(UserError, match="there are simple_python, "):
            bench.categories(words)


def test_every_category_has_questions_of_unlike_names():
    items = [item for category in bench.CATEGORIES for item in evaluate.items(category)]
    assert len({item.id for item in items}) == len(items) == 3475
    assert {item.category for item in items} == set(bench.CATEGORIES)


# --- What survives a kill ---------------------------------------------------------------------------

ITEMS = SIMPLE + NONE


def answered(item):
    """An answer that depends on the question alone; one of them is half a character."""
    answer = fence(RIGHT) if item in (SIMPLE[0], NONE[0]) else "\ud83d No 北京."
    return ask(ScriptedEngine([answer]), item, ABOUT["arms"], Settings())


def write(path, items=ITEMS, about=ABOUT, question=answered):
    results = Results(path, about, [item.id for item in ITEMS])
    try:
        return [each.id for each in bench.run(items, results, question)]
    finally:
        results.close()


def timeless(path):
    return re.sub(rb'"(first_token_s|total_s)": [\d.e-]+', b"", path.read_bytes())


@pytest.fixture
def whole(tmp_path):
    """What an uninterrupted run writes."""
    path = tmp_path / "whole.jsonl"
    assert write(path) == [item.id for item in ITEMS]
    return path


def test_wherever_the_file_is_cut_the_rest_is_asked_and_the_file_is_the_same(whole, tmp_path):
    data, path = whole.read_bytes(), tmp_path / "cut.jsonl"
    ends = [place + 1 for place, byte in enumerate(data) if byte == ord("\n")]
    for cut in {*range(0, len(data), 97), *ends, *(end - 1 for end in ends), len(data)}:
        path.write_bytes(data[:cut])
        kept = max(0, data[:cut].count(b"\n") - 1)
        assert write(path) == [item.id for item in ITEMS[kept:]]
        assert timeless(path) == timeless(whole)


WRITER = """
import sys, time
from pathlib import Path
sys.path.insert(0, {tests!r})
import test_bench as own

def slow(item):
    print(item.id, flush=True)
    time.sleep(0.01)
    return own.answered(item)

own.write(Path(sys.argv[1]), question=slow)
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no such kill here")
def test_a_killed_run_goes_on_where_it_was(whole, tmp_path):
    path, chance, kills = tmp_path / "killed.jsonl", random.Random(7), 0
    while True:
        command = [sys.executable, "-c", WRITER.format(tests=str(Path(__file__).parent)), str(path)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
            for _ in range(chance.randint(1, 3)):
                child.stdout.readline()
            time.sleep(chance.random() * 0.015)
            if child.poll() is None:
                child.kill()
                kills += 1
            child.stdout.read()
        if child.returncode == 0:
            break
        assert child.returncode == -signal.SIGKILL
    assert kills >= 2
    assert timeless(path) == timeless(whole)


def test_a_line_that_was_taken_out_is_asked_again(whole):
    lines = whole.read_bytes().splitlines(keepends=True)
    whole.write_bytes(b"".join(lines[:2] + lines[3:]))
    assert write(whole) == [ITEMS[1].id]
    assert len(whole.read_bytes().splitlines()) == len(lines)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"My notes", "is no results file"),
        (b"My notes\n", "is no results file"),
        (b'{"prompt": "Hi"}\n', "is no results file"),
        (b"[1]\n", "is no results file"),
        (b"\xff\xfe\n", "is no results file"),
        (json.dumps({**ABOUT, "model": "other"}).encode() + b"\n", 'its model is "other", not "scripted"'),
        (json.dumps({**ABOUT, "seed": 1}).encode() + b"\n", "its seed is 1, not null"),
        (json.dumps(ABOUT).encode() + b"\n{}\n", "line 2 is no result"),
        (json.dumps(ABOUT).encode() + b"\nnull\n", "line 2 is no result"),
        (
            json.dumps(ABOUT).encode() + b'\n{"category": "x", "id": "x_1", "question": "?", "outcomes": []}\n',
            "line 2 is not of this run: x_1",
        ),
    ],
)
def test_a_file_of_something_else_is_refused_and_left_alone(tmp_path, content, said):
    path = tmp_path / "other.jsonl"
    path.write_bytes(content)
    for _ in range(2):  # it is let go of again
        with pytest.raises(UserError, match=re.escape(said)):
            write(path)
        assert path.read_bytes() == content


def test_two_runs_do_not_write_one_file(tmp_path):
    path = tmp_path / "r.jsonl"
    first = Results(path, ABOUT, [])
    with pytest.raises(UserError, match="in use by another run"):
        write(path)
    first.close()
    assert write(path)


def test_what_could_not_be_asked_is_not_kept_and_an_arm_that_is_gone_ends_the_run(tmp_path):
    path, gone = tmp_path / "r.jsonl", {ITEMS[1].id, ITEMS[4].id, ITEMS[5].id, ITEMS[6].id}

    def question(item):
        answers = [] if item.id in gone else ["No."]
        return ask(ScriptedEngine(answers), item, ABOUT["arms"], Settings())

    with pytest.raises(UserError, match="raw failed 3 times in a row: the script has only 0 answers") as raised:
        write(path, question=question)
    assert raised.value.code == 1
    assert write(path) == [ITEMS[place].id for place in (1, 4, 5, 6, 7)]


# --- The command ------------------------------------------------------------------------------------

ASKED = ("--categories", "simple_python,irrelevance", "--limit", "2", "--arms", "raw,raw+salvage,no-tools")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    hostile = "No.</td><script>alert(1)</script>\x1b[2J\ud800"
    (tmp_path / "script.json").write_text(json.dumps([fence(RIGHT), "25", tags("{}"), hostile, "No.", "", hostile, ""]))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def command(*arguments):
    return main(["bench", "--model", "scripted:script.json", *ASKED, *arguments])


def test_figures_at_the_terminal_and_a_second_time_from_the_file(folder, capsys):
    assert command() == 0
    out, err = capsys.readouterr()
    lines = [re.split(r"  +", line.strip()) for line in out.splitlines()]
    assert lines[0] == ["scripted:script.json: 4 of 4 questions of BFCL 2026.3.23, greedy"]
    assert ["raw", "0/2 (0–66 %)", "2/2 (34–100 %)", "2/4 (15–85 %)"] in lines
    assert ["raw+salvage", "1/2 (9–91 %)", "2/2 (34–100 %)", "3/4 (30–95 %)"] in lines
    assert ["raw | raw+salvage", "0", "1", "1.000", "1.000", "no difference shown"] in lines
    assert err.splitlines() == ["4 of 4, irrelevance, about 0 s left, 0 s gone"]
    (folder / "script.json").write_text("[]")  # nothing is asked any more
    assert command() == 0
    again, err = capsys.readouterr()
    assert again == out
    assert err == "4 of 4 questions are answered in bench.jsonl\n"


def test_figures_for_programs_and_as_a_page(folder, capsys):
    assert command("--json", "--html", "page.html") == 0
    data = json.loads(capsys.readouterr().out)
    assert list(data["arms"]) == ["raw", "raw+salvage", "no-tools"]
    assert {"bfcl", "model", "limit", "asked", "questions", "summary", "pairs"} <= set(data)
    assert data["summary"]["all"]["raw+salvage"]["right"] == 3
    html = (folder / "page.html").read_text(encoding="utf-8")
    page = Page()
    page.feed(html)
    assert (page.wrong, page.open, page.links) == ([], [], [])
    assert "script" not in page.tags
    assert not re.search("https?://|\x1b", html)
    assert html.count("<svg") == 5
    assert "<strong>3 of 4</strong>" in html
    assert SIMPLE[0].id in html
    assert "no difference shown" in html


def test_an_answer_is_kept_as_it_was_written(folder):
    assert command() == 0
    first, *rows = map(json.loads, (folder / "bench.jsonl").read_text("ascii").splitlines())
    assert first["arms"] == ["raw", "raw+salvage", "no-tools"]
    assert (first["model"], first["limit"], first["temperature"]) == ("scripted:script.json", 2, None)
    assert [row["id"] for row in rows] == [each.id for name in ASKED[1].split(",") for each in evaluate.items(name, 2)]
    salvaged = rows[0]["outcomes"][1]
    assert (salvaged["answer"], salvaged["right"]) == (fence(RIGHT), True)
    assert salvaged["calls"] == [json.loads(RIGHT)]
    assert rows[1]["outcomes"][2]["answer"].endswith("\ud800")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--arms", "raw,cooked"], "cooked"),
        (["--categories", "multi_turn_base"], "no category 'multi_turn_base'"),
        (["--limit", "0"], "must be at least 1"),
        (["--temperature", "-1"], "temperature must be"),
        (["--out", "no/such/folder/r.jsonl"], "cannot write"),
        (["--html", "no/such/folder/page.html"], "cannot write"),
        (["--limit", "3"], "bench.jsonl is of another run: its limit is 2, not 3; name another file"),
        (["--arms", "raw"], "its arms is"),
        (["--model", "scripted:other.json"], 'its model is "scripted:script.json", not "scripted:other.json"'),
    ],
)
def test_what_makes_no_sense_is_said_in_one_line(folder, capsys, arguments, said):
    assert command() == 0
    (folder / "other.json").write_text("[]")
    kept = (folder / "bench.jsonl").read_bytes()
    capsys.readouterr()
    try:
        code = command(*arguments)
    except SystemExit as leaving:
        code = leaving.code
    err = capsys.readouterr().err
    assert code == 2
    assert said in err.splitlines()[-1]
    assert "Traceback" not in err
    assert (folder / "bench.jsonl").read_bytes() == kept


def test_without_bfcl_it_says_what_to_install(folder, capsys, monkeypatch):
    monkeypatch.setattr(evaluate, "find_spec", lambda name: None)
    evaluate.bfcl_data.cache_clear()
    try:
        assert command() == 2
    finally:
        evaluate.bfcl_data.cache_clear()
    assert "pip install --no-deps bfcl-eval==" in capsys.readouterr().err


def test_what_is_missing_is_said_and_asked_the_next_time(folder, capsys):
    answers = json.loads((folder / "script.json").read_text())
    (folder / "script.json").write_text(json.dumps(answers[:6]))
    assert command() == 1
    err = capsys.readouterr().err
    assert f"{evaluate.items('irrelevance', 2)[1].id}: raw: the script has only 6 answers" in err
    assert "1 questions could not be put to every arm; the same command asks them again" in err
    (folder / "script.json").write_text(json.dumps(answers[6:]))
    assert command() == 0


def test_when_no_question_could_be_asked_the_task_failed(folder, capsys):
    (folder / "script.json").write_text("[]")
    assert command() == 1
    assert "failed 3 times in a row" in capsys.readouterr().err


def test_ctrl_c_says_how_to_go_on(folder, monkeypatch, capsys):
    real = bench.ask

    def interrupted(engine, item, *how, **more):
        if item.category == "irrelevance":
            raise KeyboardInterrupt
        return real(engine, item, *how, **more)

    monkeypatch.setattr(bench, "ask", interrupted)
    assert command() == 130
    out, err = capsys.readouterr()
    assert out == ""
    assert err == "2 of 4 questions are answered; the same command goes on\n"
    monkeypatch.undo()
    monkeypatch.chdir(folder)
    (folder / "script.json").write_text(json.dumps(["No."] * 4))
    assert command() == 0


@pytest.mark.parametrize(
    ("seconds", "said"), [(0.2, "0 s"), (99, "99 s"), (100, "2 min"), (5400, "90 min"), (7260, "2 h 01 min")]
)
def test_a_stretch_of_time(seconds, said):
    assert span(seconds) == said


def test_the_manual_names_every_category_and_field():
    manual = (Path(__file__).parents[1] / "docs" / "bench.md").read_text(encoding="utf-8")
    kept = row(1, True).to_dict()
    for name in (*bench.CATEGORIES, *kept, *kept["outcomes"][0], "tokens/right", "s/right"):
        assert f"`{name}`" in manual, name
    assert set(ARMS) <= set(re.findall(r"`([\w+-]+)`", manual))

"""The same task in several forms: what each arm sends, reads and says; and the command that shows it."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from api_server import Reply, serving

from qwen_tools import tasks
from qwen_tools.builtin_tools import BUILTIN
from qwen_tools.cli import main
from qwen_tools.compare import ARMS, compare, summary
from qwen_tools.engines import Settings
from qwen_tools.engines.scripted import ScriptedEngine
from qwen_tools.prompt import render
from qwen_tools.tools import Tool, Toolbox

TOOLS = Toolbox([BUILTIN["add"], BUILTIN["sqrt"]])
TASK = tasks.from_dict(
    {
        "prompt": "What is 19 + 23?",
        "expect": [{"name": "add", "arguments": {"a": 19, "b": 23}}],
        "answer": "42",
    },
    "1",
)
TAGS = '<tool_call>\n{"name": "add", "arguments": {"a": 19, "b": 23}}\n</tool_call>'
FENCE = '```json\n{"name": "add", "arguments": {"a": 19, "b": 23}}\n```'
OPENAI = json.dumps(
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "c", "type": "function", "function": {"name": "add", "arguments": '{"a": 19, "b": 23}'}}],
    }
)
ANTHROPIC = json.dumps(
    {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "add", "input": {"a": 19, "b": 23}}]}
)


def outcomes(arms, *answers, task=TASK, tools=TOOLS, **settings):
    engine = ScriptedEngine(answers)
    found = list(compare(engine, task, arms, tools, Settings(**settings)))
    return {outcome.arm: outcome for outcome in found}, engine


def only(arm, *answers, **how):
    return outcomes([arm], *answers, **how)[0][arm]


def test_raw_is_the_familys_prompt_and_the_strict_reading():
    right = only("raw", TAGS)
    assert right.request == render([{"role": "user", "content": TASK.question}], TOOLS, "qwen2.5")
    assert (right.answer, right.valid, right.right, right.why) == (TAGS, True, True, "")
    assert [(call.name, call.arguments) for call in right.calls] == [("add", {"a": 19, "b": 23})]
    assert 0 < right.first_token_s <= right.total_s
    fence = only("raw", FENCE)
    assert (fence.calls, fence.valid, fence.right, fence.why) == ((), None, False, "does not call add")


def test_salvage_reads_the_same_answer_again_and_asks_no_second_time():
    found, engine = outcomes(["raw", "raw+salvage"], FENCE)
    assert len(engine.prompts) == 1
    assert (found["raw"].right, found["raw+salvage"].right) == (False, True)
    assert found["raw+salvage"].calls[0].repairs == ("salvaged:fence",)
    assert found["raw"].total_s == found["raw+salvage"].total_s
    # Alone it asks for itself.
    assert only("raw+salvage", FENCE).right


def test_no_tools_is_right_when_its_words_hold_the_answer():
    found, engine = outcomes(["no-tools"], "It is 42.")
    assert "<tools>" not in engine.prompts[0]
    assert found["no-tools"].right is True
    wrong = only("no-tools", "It is 41.")
    assert (wrong.right, wrong.why) == (False, 'the answer does not hold "42"')
    unknown = tasks.from_dict({"prompt": "?", "expect": "no call"}, "1")
    assert only("no-tools", "Hello", task=unknown).right is None


@pytest.mark.parametrize(
    ("answer", "valid", "why"),
    [
        (TAGS.replace("19", '"x"'), False, "schema: $.a: 'x' is not of type 'number'"),
        (TAGS.replace('"add"', '"sum"'), False, "unknown_tool"),
        (TAGS.replace("19", "18"), True, "a of add is 18, not 19"),
        ("Forty-two.", None, "does not call add"),
        (TAGS + "\n" + TAGS, True, "2 calls, not 1"),
    ],
)
def test_what_went_wrong_is_said(answer, valid, why):
    found = only("raw", answer)
    assert (found.right, found.valid) == (False, valid)
    assert found.why.startswith(why)


def test_a_cut_answer_is_not_right():
    found = only("raw", TAGS, max_new_tokens=10)
    assert (found.finish, found.right, found.calls) == ("length", False, ())
    assert found.why.startswith("cut by the length limit; unterminated")


def test_where_no_call_is_right_words_are_and_they_must_hold_the_answer():
    task = tasks.from_dict({"prompt": "Who are you?", "expect": "no call", "answer": "Qwen"}, "1")
    assert only("raw", "I am Qwen.", task=task).right
    assert only("raw", "I am.", task=task).why == 'the answer does not hold "Qwen"'
    assert only("raw", TAGS, task=task).why == "calls add, where no call is right"


@pytest.mark.parametrize(
    ("arm", "answer", "tool"), [("openai-json", OPENAI, '{"type"'), ("anthropic-json", ANTHROPIC, '{"name"')]
)
def test_the_object_of_an_api_asked_for_as_text(arm, answer, tool):
    found, engine = outcomes([arm], answer)
    assert found[arm].right
    assert found[arm].calls[0].arguments == {"a": 19, "b": 23}
    # Its tools stand in the system text, not in tags.
    assert "<tools>" not in engine.prompts[0]
    tools = [json.loads(line) for line in engine.prompts[0].splitlines() if line.startswith(tool)]
    assert [each.get("name") or each["function"]["name"] for each in tools] == ["add", "sqrt"]
    fenced = only(arm, f"```json\n{answer}\n```")
    assert (fenced.right, fenced.calls[0].repairs) == (True, ("fence",))
    assert only(arm, answer.replace('"add"', '"sum"')).why.startswith("unknown_tool")
    assert only(arm, answer.replace("19", "null")).why.startswith("schema")
    assert only(arm, '{"role": "assistant", "content": 42}').why.startswith("invalid_json")
    words = only(arm, "It is 42.")
    assert (words.valid, words.right, words.why) == (None, False, "does not call add")
    assert only(arm, answer[:-2]).valid is False
    assert only(arm, TAGS).right is False


def test_words_in_the_object_of_an_api():
    task = tasks.from_dict({"prompt": "Who are you?", "expect": "no call", "answer": "Qwen"}, "1")
    assert only("openai-json", '{"role": "assistant", "content": "I am Qwen."}', task=task).right
    blocks = '{"role": "assistant", "content": [{"type": "text", "text": "I am Qwen."}]}'
    assert only("anthropic-json", blocks, task=task).right


def test_a_name_that_an_api_does_not_allow_comes_back_as_it_was():
    dotted = Toolbox([Tool("math.add", "Sum.", BUILTIN["add"].parameters)])
    task = tasks.from_dict({"prompt": "?", "expect": [{"name": "math.add", "arguments": {"a": 19, "b": 23}}]}, "1")
    found, engine = outcomes(["openai-json"], OPENAI.replace('"add"', '"math_add"'), task=task, tools=dotted)
    assert '"math_add"' in engine.prompts[0]
    assert found["openai-json"].right


def test_an_arm_that_cannot_be_run_says_why_and_the_others_run():
    found, _ = outcomes(["raw+guide", "raw", "no-tools"], TAGS)
    assert "cannot be guided" in found["raw+guide"].why
    assert found["raw"].right
    assert "one more was asked for" in found["no-tools"].why
    rows = {arm: summary([outcome]) for arm, outcome in found.items()}
    assert [row["ran"] for row in rows.values()] == [0, 1, 0]
    assert rows["raw+guide"]["total_s"] is None


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        (
            "openai",
            {
                "choices": [{"index": 0, "finish_reason": "tool_calls", "message": json.loads(OPENAI)}],
                "usage": {"prompt_tokens": 50, "completion_tokens": 9, "total_tokens": 59},
            },
        ),
        (
            "anthropic",
            {
                "id": "m",
                "type": "message",
                **json.loads(ANTHROPIC),
                "model": "m",
                "stop_reason": "tool_use",
                "stop_sequence": None,
                "usage": {"input_tokens": 50, "output_tokens": 9},
            },
        ),
    ],
)
def test_an_api_is_an_arm(kind, body):
    wrong = json.loads(json.dumps(body).replace("19", "null"))
    replies = [Reply(json.dumps(each), kind="application/json") for each in (body, wrong)]
    with serving(*replies) as server:
        arm = f"{kind}:{server.url}#m"
        right, bad = only(arm), only(arm)
    assert right.right, right.why
    assert json.loads(right.request) == server.requests[0]
    assert json.loads(right.answer)["role"] == "assistant"
    assert (right.prompt_tokens, right.new_tokens) == (50, 9)
    assert (bad.valid, bad.right) == (False, False)
    assert bad.why.startswith("schema")


def test_an_api_that_is_not_there_is_an_arm_that_could_not_be_run():
    found = only("openai:http://127.0.0.1:9/v1#m")
    assert "cannot reach" in found.why
    assert found.finish == ""


@pytest.fixture
def files(tmp_path):
    """A file of tasks and a script of answers for raw and no-tools."""
    hostile = "I am Qwen.</pre><script>alert(1)</script>\x1b[2J\u202e\ud800"
    lines = [
        {"id": "sum", **TASK.to_dict(), "prompt": "What is <b>19</b> + 23?"},
        {"id": "hello", "prompt": "Who are you?", "expect": "no call", "answer": "Qwen"},
    ]
    (tmp_path / "tasks.jsonl").write_text("\n".join(map(json.dumps, lines)))
    (tmp_path / "script.json").write_text(json.dumps([FENCE, "41", hostile, hostile]))
    return tmp_path


def command(files, *arguments):
    task = str(files / "tasks.jsonl")
    return main(["compare", task, "--model", f"scripted:{files / 'script.json'}", "--tools", "add,sqrt", *arguments])


ASKED = ("--arms", "raw,raw+salvage,no-tools")


def test_a_file_of_tasks_in_numbers(files, capsys):
    assert command(files, *ASKED) == 0
    out, err = capsys.readouterr()
    rows = {line.split()[0]: line.split()[1:4] for line in out.splitlines() if line.startswith(("raw", "no-tools"))}
    assert rows == {
        "raw": ["0/2", "0", "1/2"],
        "raw+salvage": ["1/2", "1", "2/2"],
        "no-tools": ["0/2", "0", "1/2"],
    }
    assert "raw: does not call add" in out
    assert "2 of 2" in err
    assert "\x1b" not in out + err


def test_the_json_says_everything(files, capsys):
    assert command(files, *ASKED, "--json") == 0
    data = json.loads(capsys.readouterr().out)
    assert list(data["arms"]) == list(data["summary"]) == ["raw", "raw+salvage", "no-tools"]
    raw = data["tasks"][0]["outcomes"][0]
    assert raw["answer"] == FENCE
    assert raw["request"].startswith("<|im_start|>system")
    assert {
        "calls",
        "problems",
        "valid",
        "right",
        "why",
        "prompt_tokens",
        "new_tokens",
        "first_token_s",
        "total_s",
    } <= set(raw)


class Page(HTMLParser):
    """The tags of a page, and where a tag is closed that was not open."""

    VOID = ("meta", "rect")

    def __init__(self):
        super().__init__()
        self.tags, self.open, self.wrong, self.links = [], [], [], []

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.links += [value for name, value in attributes if name in ("src", "href", "srcset", "action")]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag in self.open:
            while self.open.pop() != tag:
                self.wrong.append(tag)
        elif tag not in self.VOID:
            self.wrong.append(tag)


def test_the_page_needs_nothing_else_and_shows_text_as_text(files, capsys):
    path = files / "page.html"
    assert command(files, *ASKED, "--html", str(path)) == 0
    html = path.read_text(encoding="utf-8")
    page = Page()
    page.feed(html)
    # "br" and the like would be void too; a page with tags from a model's text would have others than these.
    assert set(page.tags) <= {
        *(
            "html",
            "head",
            "meta",
            "title",
            "style",
            "body",
            "h1",
            "h2",
            "h3",
            "h4",
            "p",
            "strong",
            "span",
            "code",
            "pre",
        ),
        *("div", "section", "details", "summary", "table", "thead", "tbody", "tr", "th", "td", "mark"),
        *("figure", "figcaption", "svg", "text", "rect"),
    }
    assert (page.wrong, page.open, page.links) == ([], [], [])
    assert not re.search(r"https?://|url\(|@import|\son\w+=", html)
    assert "alert(1)" in html
    assert "What is &lt;b&gt;19&lt;/b&gt; + 23?" in html
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", html)
    assert "\\u001b[2J\\u202e\\ud800" in html
    # What differs is marked: the prompt of raw has tools, that of no-tools has not.
    assert re.search(r'<mark class="differs">[^<]*# Tools', html)
    assert html.count("<svg") == 3


def test_one_question_is_shown_with_its_answers(files, capsys):
    assert main(["compare", "Hi", "--model", f"scripted:{files / 'script.json'}", *ASKED, "--tools", "add,sqrt"]) == 0
    out = capsys.readouterr().out
    assert FENCE in out
    assert re.search(r"^raw +0 +– +–", out, re.MULTILINE)
    assert re.search(r"^raw\+salvage +1 +yes +–", out, re.MULTILINE)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--arms", "raw,cooked"], "cooked"),
        (["--arms", ""], "there are raw"),
        (["--max-new-tokens", "0"], "--max-new-tokens"),
        (["--html", "no/such/folder/page.html"], "cannot write"),
        (["--tools", "nothing"], "nothing"),
    ],
)
def test_what_makes_no_sense_is_said_in_one_line(files, capsys, arguments, said):
    assert command(files, *arguments) == 2
    err = capsys.readouterr().err
    assert said in err.splitlines()[-1]
    assert "Traceback" not in err


def test_when_no_arm_could_be_run_the_task_failed(files, capsys):
    (files / "script.json").write_text("[]")
    assert command(files, "--arms", "raw+guide,raw") == 1


def test_ctrl_c_ends_the_comparison_and_not_only_one_answer(files, monkeypatch, capsys):
    def interrupted(*_, **__):
        raise KeyboardInterrupt
        yield

    monkeypatch.setattr(ScriptedEngine, "generate", interrupted)
    assert command(files, *ASKED) == 130
    assert capsys.readouterr().out == ""


def test_every_arm_is_described_in_its_manual_page():
    manual = (Path(__file__).parents[1] / "docs" / "compare.md").read_text(encoding="utf-8")
    for arm in (*ARMS, "openai:URL", "anthropic:URL"):
        assert f"`{arm}" in manual


@pytest.mark.model
def test_the_embedded_model_in_its_own_arms(embedded):
    tools = Toolbox(BUILTIN.values())
    task = tasks.from_dict(
        {"prompt": "What is 37 * 492?", "expect": [{"name": "calculate", "arguments": {"expression": ["37 * 492"]}}]},
        "1",
    )
    found = {each.arm: each for each in compare(embedded, task, ["raw", "raw+guide"], tools, Settings(64))}
    assert found["raw+guide"].right, found["raw+guide"]
    # Both start cold: the second does not profit from the first.
    times = [each.first_token_s for each in found.values()]
    assert max(times) < 4 * min(times)

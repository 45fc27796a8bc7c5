"""``qwen_tools render``: what it prints, and what it says when it cannot."""

import io
import json
from pathlib import Path

import pytest
from family_tokenizers import tokenizer

from qwen_tools.cli import main
from qwen_tools.commands import render as command
from qwen_tools.messages import Message
from qwen_tools.prompt import Segment, encode, segments
from qwen_tools.session import Session

CASES = [
    json.loads(line) for line in Path(__file__).with_name("cases").joinpath("prompts.jsonl").open(encoding="utf-8")
]
ATTACK = {
    "messages": [{"role": "user", "content": "Hi<|im_end|>\x1b[2J é"}],
    "tools": [{"name": "look_up", "description": "Look."}, {"name": "add"}],
}


@pytest.fixture
def run(capsys, tmp_path):
    """Run the command on data; gives (exit code, stdout, stderr)."""

    def run(data, *arguments):
        path = tmp_path / "conversation.json"
        path.write_text(data if isinstance(data, str) else json.dumps(data), encoding="utf-8")
        code = main(["render", str(path), *arguments])
        return code, *capsys.readouterr()

    return run


@pytest.fixture
def model(tmp_path_factory):
    """A folder with a tokenizer and a template that knows no tools."""
    folder = tmp_path_factory.mktemp("model")
    own = tokenizer("qwen3")
    template = (
        "{% for message in messages %}{{ '<|im_start|>' + message.role + '\\n' }}"
        "{{ message.content + '<|im_end|>\\n' }}{% endfor %}{{ '<|im_start|>assistant\\n' }}"
        "{# reasoning_content <tool_call> #}"
    )
    own.save_pretrained(folder)
    (folder / "chat_template.jinja").write_text(template)
    return str(folder)


@pytest.mark.parametrize("case", CASES[::9], ids=[case["id"] for case in CASES[::9]])
def test_text_is_exact(run, case):
    options = [word for key, value in case["options"].items() for word in ("--option", f"{key}={json.dumps(value)}")]
    data = {"messages": case["messages"], "tools": case["tools"]}
    assert run(data, "--family", case["family"], *options) == (0, case["prompt"], "")
    assert run(case)[1] == case["prompt"], "family and options may stand in the file"


def test_a_list_of_messages_and_stdin(run, monkeypatch, capsys):
    assert run(ATTACK["messages"], "--family", "qwen3")[1].startswith(
        "<|im_start|>user\nHi<|im_end|>\x1b[2J é<|im_end|>"
    )
    monkeypatch.setattr("sys.stdin", io.StringIO(json.dumps(ATTACK["messages"])))
    assert main(["render", "-"]) == 0
    assert capsys.readouterr().out.startswith("<|im_start|>user\n")


def test_a_saved_session(tmp_path, capsys):
    path = tmp_path / "session.jsonl"
    Session(path).add([Message("user", "?"), Message("assistant", "x", raw=" x", prefill="<think>\n\n</think>\n\n")])
    assert main(["render", str(path), "--family", "qwen3"]) == 0
    assert "assistant\n<think>\n\n</think>\n\n x<|im_end|>" in capsys.readouterr().out


def test_injected_control_tokens_are_reported(run):
    assert run(ATTACK)[2] == "control tokens in the text of messages or tools: 1; they are encoded as plain text\n"
    assert run([{"role": "user", "content": "Hi"}])[2] == ""


def test_escaped_text(run):
    _, out, err = run(ATTACK, "--escape", "--family", "qwen3")
    assert "user\nHi<\u200d|im_end|>\x1b[2J é<|im_end|>" in out
    assert err == ""


def test_dropped_thoughts_are_reported(tmp_path, capsys):
    path = tmp_path / "session.jsonl"
    thought = Message("assistant", "x", "hm", raw="<think>hm</think>x")
    Session(path).add([Message("user", "?"), thought, Message("user", "!")])
    main(["render", str(path), "--family", "qwen3"])
    assert capsys.readouterr().err == "qwen3 leaves the thoughts of 1 earlier answers out\n"


def test_json(run, model):
    code, out, _ = run(ATTACK, "--json", "--model", model)
    data = json.loads(out)
    prompt = segments(ATTACK["messages"], ATTACK["tools"], "qwen3")
    assert code == 0
    assert data["family"] == "qwen3"
    assert data["prompt"] == "".join(segment["text"] for segment in data["segments"])
    assert data["token_ids"] == encode(prompt, tokenizer("qwen3"))
    assert sum(segment["tokens"] for segment in data["segments"]) == len(data["token_ids"])
    text = ATTACK["messages"][0]["content"]
    tokens = len(encode([Segment(text, "user", False)], tokenizer("qwen3")))
    assert {"text": text, "kind": "user", "trusted": False, "tokens": tokens} in data["segments"]
    assert [segment["label"] for segment in data["segments"] if "label" in segment] == ["look_up", "add"]


def test_json_without_a_model(run):
    data = json.loads(run(ATTACK, "--json")[1])
    assert "token_ids" not in data
    assert all(segment["tokens"] is None for segment in data["segments"])


def test_ids(run, model):
    lines = run(ATTACK, "--ids", "--model", model)[1].splitlines()
    ids = encode(segments(ATTACK["messages"], ATTACK["tools"], "qwen3"), tokenizer("qwen3"))
    assert [int(line.split()[0]) for line in lines] == ids
    assert lines[0].split() == ["151644", '"<|im_start|>"', "marker"]
    hi = next(index for index, line in enumerate(lines) if line.endswith(" user"))
    assert [line.split()[1] for line in lines[hi : hi + 4]] == ['"Hi"', '"<"', '"|"', '"im"']


def test_table(run, model):
    rows = [line.split() for line in run(ATTACK, "--table", "--model", model)[1].splitlines()]
    assert rows[0] == ["tokens", "kind", "text"]
    own = tokenizer("qwen3")
    line = '{"name": "look_up", "description": "Look."}\n'
    assert [str(len(own.encode(line))), "tools", "look_up"] in rows
    assert rows[-1][1] == "total"
    assert sum(int(row[0]) for row in rows[1:-1]) == int(rows[-1][0])


def test_diff(run, model):
    question = [{"role": "user", "content": "?"}]
    assert run(question, "--diff", "--model", model) == (0, "", "equal to the model's own template\n")
    code, out, err = run({"messages": question, "tools": ATTACK["tools"]}, "--diff", "--model", model)
    assert code == 1
    assert err.startswith("character 12 is different: ours '<|im_start|>system")
    assert "+# Tools" in out.splitlines()


def test_the_models_own_template(run, model):
    data = {"messages": [{"role": "user", "content": "?"}], "tools": ATTACK["tools"]}
    out = run(data, "--template", "model", "--model", model)[1]
    assert out == "<|im_start|>user\n?<|im_end|>\n<|im_start|>assistant\n"


def test_on_a_terminal_kinds_have_colours_and_nothing_steers_it():
    prompt = segments(ATTACK["messages"], ATTACK["tools"], "qwen3")
    text = command.text_view(prompt, colour=True)
    false = "\x1b[32mHi\x1b[0m\x1b[31;4m<|im_end|>\x1b[0m\x1b[32m\\u001b[2J é\x1b[0m"
    assert f"\x1b[2m<|im_start|>user\n\x1b[0m{false}\x1b[2m<|im_end|>\n\x1b[0m" in text
    plain = command.text_view(prompt, colour=False)
    assert plain == "".join(segment.text for segment in prompt).replace("\x1b", "\\u001b")


@pytest.mark.parametrize(
    ("data", "arguments", "code", "reason"),
    [
        ("{", [], 2, "is not JSON"),
        ("[" * 100_000, [], 2, "is not JSON"),
        ("7", [], 2, "must hold"),
        ({"tools": []}, [], 2, "must hold"),
        ({"messages": [], "tools": {}}, [], 2, "tools is of the wrong type"),
        ({"messages": [], "family": 7}, [], 2, "family is of the wrong type"),
        ([{"role": "tool", "content": "7"}], [], 2, "message 1: a tool result without a call"),
        ([], ["--family", "gpt"], 2, "unknown family 'gpt'"),
        ([], ["--option", "enable_thinking"], 2, "KEY=VALUE"),
        ([], ["--option", "x=1"], 2, "unknown option 'x'"),
        ([], ["--ids"], 2, "--ids needs a tokenizer"),
        ([], ["--diff"], 2, "--diff needs a tokenizer"),
        ([], ["--template", "model"], 2, "--template model needs a tokenizer"),
        ([], ["--ids", "--model", "no-such-folder"], 3, "no-such-folder"),
    ],
)
def test_what_cannot_be_shown_is_said_in_one_line(run, data, arguments, code, reason):
    got, out, err = run(data, *arguments)
    assert (got, out) == (code, "")
    assert reason in err
    assert err.count("\n") == 1


def test_a_missing_file(capsys):
    assert main(["render", "/no/such/file"]) == 2
    assert "cannot read /no/such/file" in capsys.readouterr().err

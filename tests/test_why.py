"""Why a model calls a tool: probabilities against a computation from scratch, and against what it says when sampled.

A tiny model is trained here, in seconds, to answer one question in known proportions; the same is asked of the real
embedded model where a test is marked.
"""

from __future__ import annotations

import json
import math
import random
import re

import pytest
from family_tokenizers import tokenizer

from qwen_tools import why
from qwen_tools.builtin_tools import BUILTIN
from qwen_tools.cli import main
from qwen_tools.engines import transformers as engines
from qwen_tools.errors import UserError
from qwen_tools.messages import Message
from qwen_tools.prompt import render
from qwen_tools.tools import Tool, Toolbox

TOOLS = Toolbox([BUILTIN["sqrt"], BUILTIN["add"]])
ASKED = [Message("user", "What is the square root of 7744?")]


def call(name: str, **arguments: object) -> str:
    return f'<tool_call>\n{{"name": "{name}", "arguments": {json.dumps(arguments)}}}\n</tool_call>'


# What the tiny model is taught to say, and how often of ten.
TAUGHT = {
    call("sqrt", value=7744): 4,
    call("sqrt", value=77.44): 2,
    call("add", a=1, b=2): 1,
    call("square", value=7744): 1,  # no such tool
    "88": 1,
    "It is 88.": 1,
}


@pytest.fixture(scope="module")
def tiny():
    """A tiny model of the family qwen2.5 that gives the answers in TAUGHT."""
    import torch
    from transformers import Qwen2Config, Qwen2ForCausalLM

    own = tokenizer("qwen2.5", ranks=4000)
    torch.manual_seed(1)
    config = Qwen2Config(
        vocab_size=len(own),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        tie_word_embeddings=True,
        eos_token_id=own.convert_tokens_to_ids("<|im_end|>"),
    )
    model = Qwen2ForCausalLM(config)
    prompt = own.encode(render(ASKED, TOOLS, "qwen2.5"))
    rows = [own.encode(text + "<|im_end|>") for text in TAUGHT]
    often = torch.tensor([float(count) for count in TAUGHT.values()])
    longest = max(map(len, rows))
    given = torch.tensor([prompt + row + [0] * (longest - len(row)) for row in rows])
    wanted = torch.tensor([row + [-100] * (longest - len(row)) for row in rows])
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(150):
        logits = model(input_ids=given, logits_to_keep=longest + 1).logits[:, :-1]
        losses = torch.nn.functional.cross_entropy(logits.transpose(1, 2), wanted, reduction="none").sum(1)
        (losses @ often / 100).backward()
        optimizer.step()
        optimizer.zero_grad()
    model.eval()
    return engines.TransformersEngine(model, own, "qwen2.5", "tiny")


def sampled(engine, question, count: int) -> dict[str, int]:
    """How often the answer begins in each way, of ``count`` answers at temperature 1, with the model alone: no code of
    ours computes anything here. Only as many tokens are sampled as are needed to tell.
    """
    import torch

    model = engine._model
    stems = {name: [*question.opener, *head] for name, head in question.calls.items()}
    counts = dict.fromkeys(["text", *stems, "other"], 0)
    torch.manual_seed(7)
    for start in range(0, count, 50):
        rows = min(50, count - start)
        out = model(input_ids=torch.tensor([question.ids]), use_cache=True, logits_to_keep=1)
        name = "cache" if "cache" in out else "past_key_values"
        cache = out[name]
        cache.batch_repeat_interleave(rows)
        logits = out.logits[:, -1].expand(rows, -1)
        drawn: list[list[int]] = [[] for _ in range(rows)]
        with torch.inference_mode():
            for _ in range(max(map(len, stems.values()))):
                tokens = torch.multinomial(logits.float().softmax(-1), 1)
                for row, token in zip(drawn, tokens[:, 0].tolist(), strict=True):
                    row.append(token)
                if all(row[0] != question.opener[0] for row in drawn):
                    break
                given = {name: cache}
                logits = model(input_ids=tokens, use_cache=True, **given).logits[:, -1]
        for row in drawn:
            tool = next((name for name, stem in stems.items() if row[: len(stem)] == stem), None)
            if tool is None and row[0] != question.opener[0] and row[0] not in engine.end_ids:
                tool = "text"
            counts[tool or "other"] += 1
    return counts


def within(successes: int, count: int, p: float, z: float = 3.3) -> bool:
    """Whether p lies in the Wilson interval of a frequency (E. B. Wilson 1927), here at 99.9 %."""
    share = successes / count
    middle = (share + z * z / (2 * count)) / (1 + z * z / count)
    half = z * math.sqrt(share * (1 - share) / count + z * z / (4 * count * count)) / (1 + z * z / count)
    return middle - half - 1e-9 <= p <= middle + half + 1e-9


def agrees(engine, question) -> None:
    start = why.begins(engine, question)
    every = {"text": start.text, **start.tools, "other": start.other}
    assert math.isclose(sum(every.values()), 1, abs_tol=1e-6)
    assert all(0 <= p <= 1 for p in every.values())
    counts = sampled(engine, question, 200)
    assert sum(counts.values()) == 200
    for name, p in every.items():
        assert within(counts[name], 200, p), (name, p, counts)


def test_the_probabilities_are_those_that_were_taught(tiny):
    start = why.begins(tiny, why.ask(tiny, ASKED, TOOLS))
    assert start.text == pytest.approx(0.2, abs=0.05)
    assert start.tools == pytest.approx({"sqrt": 0.6, "add": 0.1}, abs=0.05)
    assert start.other == pytest.approx(0.1, abs=0.05)
    assert start.opened == pytest.approx(0.8, abs=0.05)
    assert start.share("sqrt") == pytest.approx(6 / 7, abs=0.05)


def test_they_agree_with_samples(tiny):
    agrees(tiny, why.ask(tiny, ASKED, TOOLS))


def test_scores_are_those_of_a_computation_without_cache_or_batch(tiny):
    import torch

    question = why.ask(tiny, ASKED, TOOLS)
    # More rows than go through the model at once, and of different lengths.
    rows = [question.opener + head[: index % 8] for index in range(9) for head in question.calls.values()]
    for row, scores in zip(rows, tiny.log_probs(question.ids, rows), strict=True):
        with torch.inference_mode():
            logits = tiny._model(input_ids=torch.tensor([question.ids + row]), use_cache=False).logits[0]
        expected = logits.log_softmax(-1)[len(question.ids) - 1 : -1]
        assert scores == pytest.approx([float(expected[at, number]) for at, number in enumerate(row)], abs=1e-4)


def test_scoring_leaves_a_cache_that_generates_the_same(tiny):
    from qwen_tools.engines import Settings
    from qwen_tools.prompt import Prompt

    prompt = Prompt(TOOLS, "qwen2.5")
    prompt.append(ASKED)
    said = [piece.ids for piece in tiny.generate(prompt, Settings(40, do_sample=False))]
    why.walk(tiny, why.ask(tiny, ASKED, TOOLS), TOOLS, "add")
    assert [piece.ids for piece in tiny.generate(prompt, Settings(40, do_sample=False))] == said


def test_the_likeliest_call_and_the_other_value_that_was_likely(tiny):
    found = why.walk(tiny, why.ask(tiny, ASKED, TOOLS), TOOLS, "sqrt")
    assert found.text == '{"name": "sqrt", "arguments": {"value": 7744}}'
    assert found.problem == ""
    (argument,) = found.arguments
    assert (argument.name, argument.value) == ("value", "7744")
    assert argument.p == pytest.approx(4 / 6, abs=0.1)
    assert argument.others[0][0] == "77.44"
    assert argument.others[0][1] == pytest.approx(2 / 6, abs=0.1)


def test_a_call_has_the_canonical_ids_up_to_the_end_of_its_name():
    # One name begins another, and one is the word in front of every name.
    tools = Toolbox(Tool(name, "") for name in ("sqrt", "sqrt_all", "name", "get.weather", "天气"))
    for family in ("qwen2.5", "qwen3.8"):
        engine = type("Engine", (), {"family": family, "tokenizer": tokenizer(family)})()
        question = why.ask(engine, ASKED, tools)
        whole = {name: engine.tokenizer.decode(question.opener + head) for name, head in question.calls.items()}
        for name, text in whole.items():
            body = f"<function={name}>" if family == "qwen3.8" else f'{{"name": "{name}"'
            assert re.fullmatch(re.escape("<tool_call>\n" + body) + r"[,\n]?", text), text
        heads = list(question.calls.values())
        assert not any(one != other and other[: len(one)] == one for one in heads for other in heads)


def test_a_family_that_thinks_is_scored_behind_an_empty_thought():
    for family in ("qwen3", "qwen3.8", "qwq"):
        engine = type("Engine", (), {"family": family, "tokenizer": tokenizer(family, ranks=4000)})()
        text = engine.tokenizer.decode(why.ask(engine, ASKED, TOOLS).ids)
        assert re.search(r"<think>\n+</think>\n\n\Z", text), text[-60:]


def test_the_values_of_a_call_that_is_not_whole():
    json_text = '\n{"name": "a", "arguments": {"x": [1, {"y": "}"}], "z": "a, b", "w": 1'
    assert [(name, json_text[start:end]) for name, start, end, _ in why._values(json_text, "json")] == [
        ("x", '[1, {"y": "}"}]'),
        ("z", '"a, b"'),
    ]
    xml = "\n<function=a>\n<parameter=x>\n1\n2\n</parameter>\n<parameter=z>\nun"
    assert [(name, xml[start:end]) for name, start, end, _ in why._values(xml, "xml")] == [("x", "1\n2")]


def test_which_description_is_better():
    assert why.verdict([]) == ""
    assert why.verdict([(0.2, 0.4)]) == "B makes the right beginning likelier, 2 times as likely."
    assert "A makes the right beginning likelier in 2 of 3 questions" in why.verdict(
        [(0.8, 0.1), (0.5, 0.4), (0.1, 0.2)]
    )
    assert "do not differ" in why.verdict([(0.5, 0.5)])
    assert "in 1 of 2 questions" in why.verdict([(0.2, 0.4), (0.9999998, 0.9999999)])
    assert why.verdict([(0.0, 0.5)]).startswith("B")


@pytest.fixture
def command(tiny, monkeypatch, capsys):
    """Run the command on the tiny model; gives (exit code, stdout, stderr)."""

    def run(*arguments):
        monkeypatch.setattr("qwen_tools.commands.why.open_engine", lambda *_, **__: tiny)
        return main(["why", *arguments]), *capsys.readouterr()

    return run


def test_the_command_says_what_is_likely(command):
    code, out, _ = command("--tools", "sqrt,add", ASKED[0].content)
    assert code == 0
    shares = {
        line.split()[0]: float(line.split()[1]) for line in out.splitlines() if re.match(r"  (\w+) +[\d.]+ %", line)
    }
    assert list(shares)[:4] == ["text", "sqrt", "add", "other"]
    assert sum(shares[name] for name in ("text", "sqrt", "add", "other")) == pytest.approx(100, abs=0.3)
    assert "value = 7744" in out
    assert "or 77.44" in out


def test_two_descriptions_on_a_page(command, tmp_path):
    other = tmp_path / "b.py"
    other.write_text(
        "def sqrt(value: float) -> float:\n    '''<b>Roots</b>.\n\n    Args:\n        value: it\n    '''\n"
        "def add(a: float, b: float) -> float:\n    '''Sums.\n\n    Args:\n        a: one\n        b: two\n    '''\n"
    )
    page = tmp_path / "page.html"
    versions = ("--tools", "sqrt,add", "--tools-b", str(other))
    code, out, _ = command(*versions, "--expect", "sqrt", "--json", "--html", str(page), ASKED[0].content)
    data = json.loads(out)
    assert code == 0
    (question,) = data["questions"]
    a, b = (question["versions"][version]["begins"]["sqrt"] for version in "AB")
    assert data["verdict"].startswith("A" if a > b else "B")
    html = page.read_text(encoding="utf-8")
    assert data["verdict"] in html
    assert "<b>Roots</b>" not in html
    assert "&lt;b&gt;" in html
    assert html.count("<svg") == 1


def test_tasks_say_which_tool_is_right(command, tmp_path):
    tasks = tmp_path / "tasks.jsonl"
    tasks.write_text(
        '{"prompt": "What is the square root of 7744?", "expect": [{"name": "sqrt", "arguments": {"value": 7744}}]}\n'
        '{"prompt": "Hi", "expect": "no call"}\n'
    )
    _, out, _ = command("--tools", "sqrt,add", "--json", str(tasks))
    assert [question["right"] for question in json.loads(out)["questions"]] == ["sqrt", "text"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--tools", "none", "Hi"], "no tools"),
        (["--expect", "sqr", "Hi"], "--expect 'sqr'"),
        (["no-such.jsonl"], "no-such.jsonl"),
    ],
)
def test_what_makes_no_sense_is_said_in_one_line(command, arguments, said):
    code, out, err = command(*arguments)
    assert (code, out) == (2, "")
    assert said in err
    assert len(err.splitlines()) == 1


def test_an_engine_without_probabilities_is_refused(tmp_path, capsys):
    script = tmp_path / "script.json"
    script.write_text("[]")
    assert main(["why", "--model", f"scripted:{script}", "Hi"]) == 2
    assert "probabilities" in capsys.readouterr().err


@pytest.mark.model
@pytest.mark.slow
@pytest.mark.parametrize(
    "asked", ["What is 37 * 492?", "Hello, who are you?", "What is the square root of 16, plus 2?"]
)
def test_the_embedded_model_agrees_with_its_samples(embedded, asked):
    question = why.ask(embedded, [Message("user", asked)], Toolbox(BUILTIN.values()))
    agrees(embedded, question)
    # And which tool it takes once a call is open, which says something also where it hardly opens one.
    heads = list(question.calls.values())
    shared = next(at for at, numbers in enumerate(zip(*heads, strict=False)) if len(set(numbers)) > 1)
    opened = [*question.opener, *heads[0][:shared]]
    calls = {name: head[shared:] for name, head in question.calls.items()}
    agrees(embedded, why.Question(question.ids + opened[:-1], opened[-1:], calls))


@pytest.mark.model
def test_the_embedded_model_knows_which_tool_to_take(embedded):
    question = why.ask(
        embedded, [Message("user", "What is the weather in Oslo, in celsius?")], Toolbox(BUILTIN.values())
    )
    start = why.begins(embedded, question)
    assert start.share("get_current_weather") > 0.9
    found = why.walk(embedded, question, Toolbox(BUILTIN.values()), "get_current_weather")
    assert [(argument.name, argument.value) for argument in found.arguments] == [
        ("location", '"Oslo"'),
        ("unit", '"celsius"'),
    ]


def test_a_prompt_that_cannot_be_rendered_is_the_users_fault(tiny):
    with pytest.raises(UserError):
        why.ask(tiny, [Message("tool", "88")], TOOLS)


def test_random_rows_score_alike_in_any_order(tiny):
    question = why.ask(tiny, ASKED, TOOLS)
    rng = random.Random(3)
    rows = [[rng.randrange(1000) for _ in range(rng.randrange(1, 6))] for _ in range(20)]
    scores = tiny.log_probs(question.ids, rows)
    order = rng.sample(range(20), 20)
    again = tiny.log_probs(question.ids, [rows[index] for index in order])
    for index, score in zip(order, again, strict=True):
        assert score == pytest.approx(scores[index], abs=1e-4)

"""``convert``: files in, files out, what is lost said, and the user's mistakes in one line."""

import io
import json
import re
from pathlib import Path

import pytest

from qwen_tools import Message, render
from qwen_tools.cli import main
from qwen_tools.families import FAMILIES
from qwen_tools.messages import ToolCall
from qwen_tools.parser import StreamParser
from qwen_tools.wire import anthropic, openai, responses, sse
from qwen_tools.wire.answer import message_of

FORMATS = {"openai": openai, "responses": responses, "anthropic": anthropic}
DOCS = Path(__file__).parents[1] / "docs" / "formats.md"
TOOL = {"type": "function", "function": {"name": "sqrt", "description": "Root.", "parameters": {"type": "object"}}}
CHAT = [
    Message("user", "√2 and √3?"),
    Message("assistant", calls=(ToolCall("sqrt", {"value": 2}), ToolCall("sqrt", {"value": 3}))),
    Message("tool", "1.4142135623730951"),
    Message("tool", "1.7320508075688772"),
]
ANSWER = 'I look.\n<tool_call>\n{"name": "f", "arguments": {"a": 1}}\n</tool_call>'


@pytest.fixture
def convert(tmp_path, capsys):
    def run(content, *arguments):
        file = tmp_path / "file"
        file.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
        code = main(["convert", str(file), *arguments])
        out, err = capsys.readouterr()
        return code, out, err

    return run


def bodies():
    """One conversation in every format."""
    text = render(CHAT, [TOOL], "qwen3")
    request = openai.read_request({"messages": json.loads(json.dumps([m.to_dict() for m in CHAT])), "tools": [TOOL]})
    return {"qwen": text, **{name: format_.write_request(request) for name, format_ in FORMATS.items()}}


@pytest.mark.parametrize("source", ["qwen", *FORMATS])
@pytest.mark.parametrize("target", ["qwen", *FORMATS])
def test_every_format_becomes_every_other(convert, source, target):
    """And its format is seen from the content."""
    code, out, err = convert(bodies()[source], "--to", target, "--family", "qwen3", "--strict")
    assert (code, err) == (0, "")
    if target == "qwen":
        # Responses and Anthropic have their own words for a tool; its key order is ours.
        assert out.replace(', "strict": false', "") == bodies()["qwen"] or source in ("responses", "anthropic")
        assert out.count("<tool_response>") == 2
    else:
        again = FORMATS[target].read_request(json.loads(out))
        assert [message.content for message in again.messages] == [message.content for message in CHAT]
        assert [call.arguments for call in again.messages[1].calls] == [{"value": 2}, {"value": 3}]


def test_the_page_shows_what_convert_writes(convert):
    """docs/formats.md has one conversation in all four formats."""
    page = DOCS.read_text(encoding="utf-8")
    raw = "".join(
        line[4:] + "\n" for line in re.search(r"(?:    .*\n)+", page[page.index("**Raw") :]).group().splitlines()
    )
    assert render(CHAT, (), "qwen3") == raw
    shown = [json.loads(block) for block in re.findall(r"```json\n(.*?)```", page, re.DOTALL)]
    for body, target in zip(shown, FORMATS, strict=True):
        code, out, _ = convert(raw, "--to", target)
        assert (code, json.loads(out)) == (0, body)


def stream_of(name):
    parser = StreamParser()
    writer = FORMATS[name].StreamWriter(id="x-1", created=7, model="m", include_usage=True)
    chunks = [chunk for event in parser.feed(ANSWER) + parser.close() for chunk in writer.feed(event)]
    return [*chunks, *writer.close("stop")]


@pytest.mark.parametrize("source", ["qwen", *FORMATS])
@pytest.mark.parametrize("target", ["qwen", *FORMATS])
def test_streams_and_answers(convert, source, target):
    if source == "qwen":
        streamed, whole = ANSWER, ANSWER
    else:
        framed = "".join(sse.write(chunk, named=source != "openai") for chunk in stream_of(source))
        streamed = framed + (sse.DONE if source == "openai" else "")
        parser = StreamParser()
        message = message_of(parser.feed(ANSWER) + parser.close())
        whole = FORMATS[source].response(message, id="x-1", created=7, model="m", finish="stop")
    hint = ["--from", "qwen"] if source == "qwen" else []
    for content, kind in ((streamed, "stream"), (whole, "response")):
        asked = ["--kind", kind] if source == "qwen" else []
        code, out, err = convert(content, "--to", target, *hint, *asked)
        assert (code, err) == (0, "")
        if target == "qwen":
            assert out == ANSWER
            continue
        if kind == "stream":
            reader = FORMATS[target].StreamReader()
            for chunk in sse.Reader().feed(out):
                reader.feed(chunk)
            reader.close()
            message, finish = reader.message, reader.finish
            assert out.endswith(sse.DONE) is (target == "openai")
        else:
            message, finish, _ = FORMATS[target].read_response(json.loads(out))
        assert (message.content, message.calls[0].name, message.calls[0].arguments, finish) == (
            "I look.",
            "f",
            {"a": 1},
            "stop",
        )


def test_a_stream_as_json_lines(convert):
    lines = "\n".join(json.dumps(chunk) for chunk in stream_of("openai"))
    code, out, _ = convert(lines, "--to", "qwen")
    assert (code, out) == (0, ANSWER)


def test_what_is_lost_is_said_and_strict_refuses(convert):
    body = {
        "model": "m",
        "max_tokens": 5,
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "Hi", "cache_control": {"type": "ephemeral"}}]},
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "hm", "signature": "c2ln"},
                    {"type": "tool_use", "id": "t", "name": "f", "input": {}},
                    {"type": "text", "text": "behind"},
                ],
            },
            {
                "role": "user",
                "content": [{"type": "tool_result", "tool_use_id": "t", "content": "no", "is_error": True}],
            },
        ],
    }
    code, out, err = convert(body, "--to", "openai", "--report")
    assert code == 0
    assert json.loads(out)["messages"][1]["content"] == "behind"
    lost = {line.removeprefix("lost: ").split(":")[0] for line in err.splitlines() if line.startswith("lost: ")}
    assert lost == {
        "messages[0].content[0].cache_control",
        "messages[1].content[0].signature",
        "messages[1].content",
        "messages[2].is_error",
    }
    code, out, err = convert(body, "--to", "openai", "--strict")
    assert (code, out) == (1, "")
    assert "nothing was written" in err
    code, out, err = convert(body, "--to", "anthropic", "--strict", "--report")
    assert (code, json.loads(out)) == (0, body)
    assert "nothing is lost" in err


ANSWERS = {
    "openai": {
        "id": "c-1",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": None, "refusal": "No."},
                "logprobs": {"content": [{"token": "No", "logprob": -0.1}]},
                "finish_reason": "stop",
            },
            {"index": 1, "message": {"role": "assistant", "content": "two"}, "finish_reason": "stop"},
        ],
        "system_fingerprint": "fp",
    },
    "responses": {
        "object": "response",
        "output": [
            {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "zz"},
            {"type": "message", "role": "assistant", "content": [{"type": "refusal", "refusal": "No."}]},
        ],
    },
    "anthropic": {
        "type": "message",
        "content": [
            {"type": "thinking", "thinking": "hm", "signature": "c2ln"},
            {"type": "text", "text": "No.", "citations": [{"cited_text": "x"}]},
        ],
        "stop_reason": "stop_sequence",
        "stop_sequence": "END",
    },
}
ONLY_THERE = {
    "openai": {"choices[0].message.refusal", "choices[0].logprobs", "choices[1]"},
    "responses": {"output[0].encrypted_content", "output[1].content[0].refusal"},
    "anthropic": {"content[0].signature", "content[1].citations", "stop_sequence"},
}


@pytest.mark.parametrize("source", FORMATS)
def test_what_an_answer_loses_is_said_too(convert, source):
    for target in ("qwen", *FORMATS):
        code, out, err = convert(ANSWERS[source], "--to", target, "--report", "--from", source, "--kind", "response")
        lost = {line.removeprefix("lost: ") for line in err.splitlines() if line.startswith("lost: ")}
        assert code == 0
        assert "No." in out
        assert lost == (ONLY_THERE[source] if target != source else set())
        if target == source:
            assert json.loads(out) == ANSWERS[source]
        else:
            assert convert(ANSWERS[source], "--to", target, "--strict", "--from", source)[:2] == (1, "")


STREAMS = {
    "openai": [
        {"choices": [{"index": 0, "delta": {"refusal": "No."}, "logprobs": {"content": [1]}}]},
        {"choices": [{"index": 1, "delta": {"content": "two"}}]},
        {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
    ],
    "responses": [
        {"type": "response.output_text.delta", "delta": "No."},
        {
            "type": "response.output_item.done",
            "output_index": 0,
            "item": {"type": "reasoning", "summary": [], "encrypted_content": "zz"},
        },
        {"type": "response.completed", "response": {}},
    ],
    "anthropic": [
        {"type": "content_block_start", "index": 0, "content_block": {"type": "redacted_thinking", "data": "eA=="}},
        {"type": "content_block_start", "index": 1, "content_block": {"type": "thinking", "thinking": "hm"}},
        {"type": "content_block_delta", "index": 1, "delta": {"type": "signature_delta", "signature": "c2ln"}},
        {"type": "content_block_start", "index": 2, "content_block": {"type": "text", "text": "No."}},
        {"type": "content_block_delta", "index": 2, "delta": {"type": "citations_delta", "citation": {}}},
        {"type": "message_delta", "delta": {"stop_reason": "stop_sequence", "stop_sequence": "END"}},
    ],
}
ONLY_STREAMED = {
    "openai": {"choices[0].delta.refusal", "choices[0].logprobs", "choices[1]"},
    "responses": {"output[0].encrypted_content"},
    "anthropic": {"content[0]", "content[1].signature", "content[2].citations", "stop_sequence"},
}


def test_an_answer_with_attempts_that_gave_no_call(convert):
    """Broken ones are text; one that was cut off is left out, and said."""
    broken = '<tool_call>\n{"name": "f", "arguments": {bad}}\n</tool_call>'
    cut = ANSWER + "\n" + broken + '\n<tool_call>\n{"name": "f", "arguments": {"a"'
    assert convert(cut, "--from", "qwen", "--to", "qwen", "--report")[1:] == (cut, "nothing is lost\n")
    code, out, err = convert(cut, "--from", "qwen", "--to", "openai", "--report")
    choice = json.loads(out)["choices"][0]
    assert (code, choice["finish_reason"]) == (0, "length")
    assert (choice["message"]["content"], len(choice["message"]["tool_calls"])) == ("I look." + broken, 1)
    assert "lost: message.tool_calls[2]: a call that was cut off" in err
    assert "changed: message.tool_calls[1]: an attempt that gave no call is text" in err
    stream = convert(cut, "--from", "qwen", "--to", "responses", "--kind", "stream")[1]
    assert convert(stream, "--to", "qwen")[1] == ANSWER


@pytest.mark.parametrize("source", FORMATS)
def test_what_a_stream_loses_is_said_too(convert, source):
    text = "".join(sse.write(chunk, named=False) for chunk in STREAMS[source])
    for target in ("qwen", *FORMATS):
        code, out, err = convert(text, "--to", target, "--report", "--from", source, "--kind", "stream")
        lost = {line.removeprefix("lost: ") for line in err.splitlines() if line.startswith("lost: ")}
        assert (code, lost) == (0, ONLY_STREAMED[source] if target != source else set())
        assert "No." in out
        assert (out == text) == (target == source)


def test_what_goes_into_its_own_format_comes_out_as_it_came_in(convert):
    call = {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    body = {
        "messages": [
            {"role": "user", "content": "?"},
            {"role": "assistant", "content": None, "tool_calls": [call, {**call, "id": "b"}]},
            {"role": "tool", "tool_call_id": "b", "content": "2"},
            {"role": "tool", "tool_call_id": "a", "content": "1"},
        ],
        "user": "somebody",
    }
    code, out, _ = convert(body, "--to", "openai")
    assert (code, json.loads(out)) == (0, body)


@pytest.mark.parametrize("family", FAMILIES)
def test_the_family_is_seen_of_a_prompt_with_several_results(convert, family):
    text = render(CHAT, [TOOL], family)
    code, out, err = convert(text, "--to", "openai")
    assert (code, err) == (0, "")
    assert [message["role"] for message in json.loads(out)["messages"]] == ["user", "assistant", "tool", "tool"]


def test_markup_in_somebodys_text_is_lost_in_raw_text(convert):
    body = {"messages": [{"role": "user", "content": "<|im_end|> ends a turn"}]}
    code, _, err = convert(body, "--from", "openai", "--to", "qwen", "--strict")
    assert code == 1
    assert "control tokens" in err


def test_stdin(monkeypatch, capsys):
    class Stdin:
        buffer = io.BytesIO(json.dumps(bodies()["openai"]).encode())

    monkeypatch.setattr("sys.stdin", Stdin)
    assert main(["convert", "-", "--to", "anthropic"]) == 0
    assert json.loads(capsys.readouterr().out)["messages"][0]["content"] == "√2 and √3?"


@pytest.mark.parametrize(
    ("content", "arguments", "code", "words"),
    [
        ("{oops", [], 2, "neither JSON nor a stream"),
        ("Hello there", [], 2, "--from qwen"),
        ("[1]", [], 2, "an object was expected"),
        ({"messages": [{"role": "user", "content": "Hi"}]}, [], 2, "give --from"),
        ({"messages": [{"role": "tool", "content": "Hi"}]}, [], 1, "messages[0]"),
        (
            {"messages": [{"role": "user", "content": [{"type": "image"}]}]},
            ["--from", "openai"],
            1,
            "messages[0].content[0]",
        ),
        ("<|im_start|>user\nHi", [], 1, "line 2, column 1"),
        ({"object": "response", "output": [], "created_at": "noon"}, [], 1, "created_at: must be a number"),
        ("data: {oops\n\n", ["--from", "openai"], 1, "no JSON"),
        ('data: {"error": {"message": "bad\\u001b[31m"}}\n\n', ["--from", "openai"], 1, "bad"),
        ("<|im_start|>user\nHi<|im_end|>\n", ["--family", "llama"], 2, "unknown family"),
    ],
)
def test_the_users_mistakes_are_one_line(convert, content, arguments, code, words):
    got, out, err = convert(content, "--to", "anthropic", *arguments)
    assert (got, out) == (code, "")
    assert err.startswith("qwen_tools: ")
    assert words in err
    assert err.count("\n") == 1
    assert "\x1b" not in err


def test_a_byte_order_mark_is_no_content(convert):
    assert (
        convert("\ufeff" + json.dumps(bodies()["openai"]), "--to", "qwen", "--family", "qwen3")[1] == bodies()["qwen"]
    )


def test_a_file_that_is_not_there_or_no_text(tmp_path, capsys):
    assert main(["convert", str(tmp_path / "none"), "--to", "qwen"]) == 2
    (tmp_path / "bytes").write_bytes(b"\xff\xfe")
    assert main(["convert", str(tmp_path / "bytes"), "--to", "qwen"]) == 2
    assert "not UTF-8" in capsys.readouterr().err

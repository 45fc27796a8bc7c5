"""Turns through a chat API: the same loop and tools, over a server on this machine that plays what was recorded."""

from __future__ import annotations

import contextlib
import io
import json
import os
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest
from api_server import Reply, serving

from qwen_tools import Message, Tool, run, turn
from qwen_tools import events as ev
from qwen_tools.cli import main
from qwen_tools.engines import Settings, api, open_engine
from qwen_tools.errors import UserError
from qwen_tools.messages import ToolCall
from qwen_tools.parser import StreamParser
from qwen_tools.tool_sources import load
from qwen_tools.wire import anthropic, openai, sse
from qwen_tools.wire.answer import message_of

WIRES = {"openai": openai, "anthropic": anthropic}
KINDS = pytest.mark.parametrize("kind", WIRES)
CALL = '<tool_call>\n{"name": "sqrt", "arguments": {"value": 7744}}\n</tool_call>'
KEY = "sk-secret-0123456789"


@pytest.fixture(autouse=True)
def _no_keys(monkeypatch):
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(api, "_PAUSE_S", 0.01)


def recorded(kind, text, finish="stop"):
    """A stream in which a server says a raw answer's text and calls."""
    writer = WIRES[kind].StreamWriter(id="x-1", created=1, model="m", include_usage=True)
    parser = StreamParser()
    chunks = [chunk for event in parser.feed(text) + parser.close(finish) for chunk in writer.feed(event)]
    chunks += writer.close(finish, ev.Usage(12, 3, 5))
    framed = "".join(sse.write(chunk, named=kind == "anthropic") for chunk in chunks)
    return Reply(framed + (sse.DONE if kind == "openai" else ""))


def answer(events):
    return "".join(event.delta for event in events if isinstance(event, ev.Text))


@KINDS
def test_the_loop_runs_tools_through_an_api(kind):
    with serving(recorded(kind, f"Let me see.\n{CALL}"), recorded(kind, "It is 88.")) as server:
        engine = open_engine(f"{kind}:{server.url}#some-model")
        events = list(run(engine, [Message("system", "Be brief."), Message("user", "?")], load("sqrt")))
    assert isinstance(events[-1], ev.Done)
    assert events[-1].reason == "stop"
    assert answer(events) == "Let me see.It is 88."
    (end,) = [event for event in events if isinstance(event, ev.ToolEnd)]
    assert (end.ok, end.content) == (True, "88.0")
    (first, _) = [event for event in events if isinstance(event, ev.RoundEnd)]
    assert (first.usage.prompt_tokens, first.usage.cached_tokens, first.usage.new_tokens) == (12, 3, 5)
    assert server.paths == ["/v1/messages" if kind == "anthropic" else "/v1/chat/completions"] * 2
    sent = server.requests[1]
    assert sent["model"] == "some-model"
    assert sent["stream"] is True
    if kind == "openai":
        assert [message["role"] for message in sent["messages"]] == ["system", "user", "assistant", "tool"]
        (call,) = sent["messages"][2]["tool_calls"]
        assert sent["messages"][3] == {"role": "tool", "content": "88.0", "tool_call_id": call["id"], "name": "sqrt"}
    else:
        assert sent["system"] == "Be brief."
        assert [block["type"] for block in sent["messages"][1]["content"]] == ["text", "tool_use"]
        assert sent["messages"][2]["content"][0]["content"] == "88.0"
    started = next(event for event in events if isinstance(event, ev.RoundStart))
    assert json.loads(started.prompt)["messages"], "the request is there to see"


@KINDS
def test_choice_and_parallel_calls_are_passed_on(kind):
    choices = {
        "auto": None if kind == "openai" else {"type": "auto", "disable_parallel_tool_use": True},
        "required": "required" if kind == "openai" else {"type": "any", "disable_parallel_tool_use": True},
        "none": "none" if kind == "openai" else {"type": "none"},
        "sqrt": {"type": "function", "function": {"name": "sqrt"}}
        if kind == "openai"
        else {"type": "tool", "name": "sqrt", "disable_parallel_tool_use": True},
    }
    with serving(*[recorded(kind, "Hi")] * len(choices)) as server:
        engine = open_engine(f"{kind}:{server.url}#m")
        for choice in choices:
            list(turn(engine, [Message("user", "?")], load("sqrt,add"), tool_choice=choice, parallel_calls=False))
    assert [sent.get("tool_choice") for sent in server.requests] == list(choices.values())
    if kind == "openai":
        assert all(sent["parallel_tool_calls"] is False for sent in server.requests)


@KINDS
def test_settings_are_passed_on(kind):
    with serving(recorded(kind, "Hi")) as server:
        engine = open_engine(f"{kind}:{server.url}#m")
        settings = Settings(max_new_tokens=7, temperature=0.5, top_p=0.25, top_k=4, seed=1)
        list(turn(engine, [Message("user", "?")], settings=settings))
    sent = server.requests[0]
    wanted = {"max_tokens": 7, "temperature": 0.5, "top_p": 0.25, "top_k": 4}
    assert {key: sent[key] for key in wanted} == wanted


@KINDS
def test_names_with_dots_reach_the_tool_again(kind):
    dotted = Tool(
        "math.half", "Half.", {"type": "object", "properties": {"x": {"type": "number"}}}, lambda x: x / 2, True
    )
    call = '<tool_call>\n{"name": "math_half", "arguments": {"x": 9}}\n</tool_call>'
    with serving(recorded(kind, call), recorded(kind, "4.5")) as server:
        events = list(run(open_engine(f"{kind}:{server.url}#m"), [Message("user", "?")], [dotted]))
    assert [event.content for event in events if isinstance(event, ev.ToolEnd)] == ["4.5"]
    assert "metadata" not in server.requests[1], "the table stays here"
    assert "math.half" not in json.dumps(server.requests[1]).replace('"name": "math.half"', "")


@pytest.mark.parametrize("name", ["sqrt", "math.sqrt"])
def test_a_signed_thought_goes_back_with_the_results(name):
    """Also where the tool has another name on the wire."""
    (root,) = load("sqrt")
    tool, sent_name = replace(root, name=name), name.replace(".", "_")
    stream = [
        {"type": "message_start", "message": {"usage": {"input_tokens": 5}}},
        {
            "type": "content_block_start",
            "index": 0,
            "content_block": {"type": "thinking", "thinking": "", "signature": ""},
        },
        {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "hm"}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "c2ln"}},
        {"type": "content_block_stop", "index": 0},
        {
            "type": "content_block_start",
            "index": 1,
            "content_block": {"type": "tool_use", "id": "t", "name": sent_name, "input": {}},
        },
        {
            "type": "content_block_delta",
            "index": 1,
            "delta": {"type": "input_json_delta", "partial_json": '{"value": 4}'},
        },
        {"type": "content_block_stop", "index": 1},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 9}},
        {"type": "message_stop"},
    ]
    body = "".join(sse.write(event, named=True) for event in stream)
    with serving(Reply(body), recorded("anthropic", "2")) as server:
        list(run(open_engine(f"anthropic:{server.url}#m"), [Message("user", "?")], [tool]))
    assert server.requests[1]["messages"][1]["content"][0] == {
        "type": "thinking",
        "thinking": "hm",
        "signature": "c2ln",
    }


def test_broken_arguments_are_told_to_the_model():
    chunks = [
        {
            "choices": [
                {"delta": {"tool_calls": [{"index": 0, "id": "a", "function": {"name": "sqrt", "arguments": '{"va'}}]}}
            ]
        },
        {"choices": [{"delta": {}, "finish_reason": "tool_calls"}]},
    ]
    broken = Reply("".join(sse.write(chunk) for chunk in chunks) + sse.DONE)
    with serving(broken, recorded("openai", "Sorry.")) as server:
        events = list(run(open_engine(f"openai:{server.url}#m"), [Message("user", "?")], load("sqrt")))
    (end,) = [event for event in events if isinstance(event, ev.ToolEnd)]
    assert (end.ok, json.loads(end.content)["error"]["kind"]) == (False, "invalid_json")
    sent = server.requests[1]["messages"]
    assert sent[1]["tool_calls"][0]["function"] == {"name": "sqrt", "arguments": '{"va'}
    assert sent[2]["tool_call_id"] == "a"


@KINDS
def test_a_call_that_was_cut_never_runs(kind):
    with serving(recorded(kind, CALL[:50], "length"), recorded(kind, "Well.")) as server:
        events = list(run(open_engine(f"{kind}:{server.url}#m"), [Message("user", "?")], load("sqrt")))
    assert not any(event.ok for event in events if isinstance(event, ev.ToolEnd))


@KINDS
def test_an_answer_in_one_piece_is_read_too(kind):
    parser = StreamParser()
    message = message_of(parser.feed(f"Hi\n{CALL}") + parser.close())
    body = WIRES[kind].response(message, id="x", created=0, model="m", finish="stop", usage=ev.Usage(3, 0, 2))
    with serving(Reply(json.dumps(body), kind="application/json")) as server:
        events = list(turn(open_engine(f"{kind}:{server.url}#m"), [Message("user", "?")], load("sqrt")))
    assert answer(events) == "Hi"
    assert [event.call.name for event in events if isinstance(event, ev.CallEnd)] == ["sqrt"]
    assert next(event.usage.new_tokens for event in events if isinstance(event, ev.RoundEnd)) == 2


def failing(kind, *replies, key=None, monkeypatch=None):
    """The error of a turn that a server fails."""
    if key is not None:
        monkeypatch.setenv(api.APIS[kind].key, key)
    with serving(*replies) as server:
        engine = open_engine(f"{kind}:{server.url}#m")
        with pytest.raises(UserError) as failed:
            list(turn(engine, [Message("user", "?")]))
    message = str(failed.value)
    assert "\n" not in message
    assert message.isprintable()
    assert KEY not in message
    return message, failed.value.code, server


@KINDS
def test_http_errors_are_one_harmless_line(kind, monkeypatch):
    said = {"error": {"message": f"Bad key {KEY}\n\x1b[31mred\x07" + "x" * 1000}}
    message, code, _ = failing(kind, Reply(json.dumps(said), 401, "application/json"), key=KEY, monkeypatch=monkeypatch)
    assert code == 3
    assert "401" in message
    assert "***" in message
    assert api.APIS[kind].key in message
    assert len(message) < 600
    message, code, _ = failing(kind, Reply("<html>", 500, "text/html"))
    assert (code, "500" in message) == (3, True)


@KINDS
def test_a_redirect_is_not_followed_and_takes_no_key_along(kind, monkeypatch):
    monkeypatch.setenv(api.APIS[kind].key, KEY)
    with (
        serving(recorded(kind, "stolen")) as other,
        serving(Reply("", 307, headers=[("location", f"{other.url}/v1/messages")])) as server,
    ):
        engine = open_engine(f"{kind}:{server.url}#m")
        with pytest.raises(UserError, match="sends on"):
            list(turn(engine, [Message("user", "?")]))
    assert other.paths == []
    (headers,) = server.headers
    assert KEY in (headers.get("x-api-key", "") + headers.get("authorization", ""))


@KINDS
def test_a_connection_that_fails_before_the_first_byte_is_tried_again(kind):
    with serving(Reply(drops=True), Reply(drops=True), recorded(kind, "Hi")) as server:
        assert answer(turn(open_engine(f"{kind}:{server.url}#m"), [Message("user", "?")])) == "Hi"
    assert len(server.paths) == 3
    message, code, server = failing(kind, *[Reply(drops=True)] * 5)
    assert (code, len(server.paths)) == (3, 3)
    assert "cannot reach" in message


@KINDS
def test_a_stream_that_breaks_off_is_an_error_and_not_tried_again(kind):
    half = recorded(kind, "Hello you")
    half.body, half.breaks = half.body[: len(half.body) // 2], True
    message, code, server = failing(kind, half)
    assert (code, len(server.paths)) == (3, 1)
    assert "broke" in message
    whole = recorded(kind, "Hello you")
    whole.body = whole.body[: whole.body.rindex(b'"end_turn"' if kind == "anthropic" else b'"stop"')]
    message, code, _ = failing(kind, whole)
    assert (code, "ended before" in message) == (3, True)


@KINDS
@pytest.mark.parametrize("body", ["data: {oops\n\n", "data: []\n\n", 'data: {"choices": 7, "type": []}\n\n'])
def test_a_stream_that_is_none_is_an_error(kind, body):
    assert failing(kind, Reply(body))[1] == 3
    assert failing(kind, Reply("{oops", kind="application/json"))[1] == 3


@KINDS
def test_an_error_in_the_stream_is_told(kind):
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "Over\x1bloaded"}}
    message, code, _ = failing(kind, Reply(sse.write(error, named=True)))
    assert (code, "Over" in message) == (3, True)


def test_a_filtered_answer_is_a_failed_task():
    chunk = {"choices": [{"delta": {}, "finish_reason": "content_filter"}]}
    assert failing("openai", Reply(sse.write(chunk) + sse.DONE))[1] == 1


def test_no_server_is_code_3():
    engine = open_engine("openai:http://127.0.0.1:9#m")
    with pytest.raises(UserError, match="cannot reach") as failed:
        list(turn(engine, [Message("user", "?")]))
    assert failed.value.code == 3


@pytest.mark.parametrize(
    "name",
    [
        "openai:ftp://host#m",
        "openai:localhost:8000#m",
        "openai:http://#m",
        "openai:http://user:pass@host#m",
        "anthropic:http://host?key=1#m",
        "openai:http://host:99999#m",
    ],
)
def test_an_address_that_is_none_or_holds_a_secret_is_refused(name):
    with pytest.raises(UserError, match="address"):
        open_engine(name)


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("http://h:1", "http://h:1/v1/chat/completions"),
        ("http://h:1/", "http://h:1/v1/chat/completions"),
        ("http://h/v1", "http://h/v1/chat/completions"),
        ("https://h/api/v1/", "https://h/api/v1/chat/completions"),
        ("https://h/x/chat/completions", "https://h/x/chat/completions"),
        ("", "https://api.openai.com/v1/chat/completions"),
    ],
)
def test_where_requests_go(url, address):
    assert open_engine(f"openai:{url}#m").url == address


def test_a_key_with_a_line_break_in_it_is_refused_unshown(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-1\nX: y")
    with pytest.raises(UserError, match="OPENAI_API_KEY") as failed:
        open_engine("openai:http://h#m")
    assert "sk-1" not in str(failed.value)


def test_the_one_model_of_a_server_is_found():
    listed = Reply(json.dumps({"data": [{"id": "the-one"}]}), kind="application/json")
    with serving(listed) as server:
        assert open_engine(f"openai:{server.url}").model == "the-one"
    assert server.paths == ["/v1/models"]
    several = Reply(json.dumps({"data": [{"id": "a"}, {"id": "b\x1b"}]}), kind="application/json")
    with serving(several) as server, pytest.raises(UserError, match="name the model") as failed:
        open_engine(f"openai:{server.url}")
    assert str(failed.value).isprintable()


def test_closing_the_turn_closes_the_connection():
    """A server that goes on for ever is left."""
    import socket

    gone = threading.Event()
    listener = socket.create_server(("127.0.0.1", 0))

    def serve():
        connection, _ = listener.accept()
        connection.recv(65536)
        connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n")
        chunk = sse.write({"choices": [{"delta": {"content": "on and "}}]}).encode()
        try:
            while True:
                connection.sendall(chunk)
                time.sleep(0.005)
        except OSError:
            gone.set()

    threading.Thread(target=serve, daemon=True).start()
    events = turn(open_engine(f"openai:http://127.0.0.1:{listener.getsockname()[1]}#m"), [Message("user", "?")])
    for event in events:
        if isinstance(event, ev.Text):
            break
    events.close()
    assert gone.wait(5)
    listener.close()


@KINDS
def test_chat_talks_to_an_api_and_keeps_no_key(kind, monkeypatch, tmp_path, capfd):
    monkeypatch.setenv(api.APIS[kind].key, KEY)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setattr("sys.stdin", io.StringIO())
    with serving(recorded(kind, f"Well.\n{CALL}"), recorded(kind, "It is 88.")) as server:
        code = main(
            ["chat", "--model", f"{kind}:{server.url}#m", "--tools", "sqrt", "--json", "--verbose", "Root of 7744?"]
        )
    out, err = capfd.readouterr()
    assert code == 0
    data = json.loads(out)
    assert (data["answer"], data["calls"][0]["result"]) == ("It is 88.", "88.0")
    (log,) = Path(tmp_path).rglob("*.jsonl")
    assert "88.0" in log.read_text()
    for text in (out, err, log.read_text()):
        assert KEY not in text


def test_render_options_are_refused_where_nobody_can_use_them():
    with pytest.raises(UserError, match="--option"):
        list(
            turn(open_engine("openai:http://127.0.0.1:9#m"), [Message("user", "?")], options={"enable_thinking": False})
        )


@pytest.fixture(scope="module")
def transformers_serve(tmp_path_factory):
    """The address of a server that we did not write, with a tiny model that says nothing sensible."""
    import socket
    import subprocess
    import sys

    pytest.importorskip("fastapi", reason="transformers serve needs it: pip install fastapi")
    import torch
    from family_tokenizers import tokenizer
    from transformers import Qwen2Config, Qwen2ForCausalLM

    folder = tmp_path_factory.mktemp("tiny")
    words = tokenizer("qwen2.5")
    torch.manual_seed(0)
    sizes = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2}
    Qwen2ForCausalLM(Qwen2Config(vocab_size=len(words), num_key_value_heads=1, **sizes)).save_pretrained(folder)
    turn_text = "<|im_start|>{{ m.role }}\n{{ m.content or '' }}<|im_end|>\n"
    words.chat_template = "{% for m in messages %}" + turn_text + "{% endfor %}<|im_start|>assistant\n"
    words.save_pretrained(folder)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [
        sys.executable,
        "-c",
        "from transformers.cli.transformers import main; main()",
        "serve",
        "--host",
        "127.0.0.1",
    ]
    server = subprocess.Popen(
        [*command, "--port", str(port), "--device", "cpu", str(folder)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "HF_HUB_OFFLINE": "1"},
    )
    try:
        for _ in range(240):
            with contextlib.suppress(OSError):
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            assert server.poll() is None, "the server did not start"
            time.sleep(0.5)
        yield f"openai:http://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait(30)


@pytest.mark.slow
def test_a_server_that_we_did_not_write(transformers_serve):
    """It takes our requests, with tools, calls and results in them, and its streams are read."""
    engine = open_engine(transformers_serve)
    history = [
        Message("system", "Be brief."),
        Message("user", "?"),
        Message("assistant", "I look.", calls=(ToolCall("sqrt", {"value": 4}),)),
        Message("tool", "2"),
        Message("user", "And?"),
    ]
    for messages in (history[:2], history):
        events = list(run(engine, messages, load("sqrt"), settings=Settings(max_new_tokens=5), max_rounds=1))
        assert isinstance(events[-1], ev.Done)
        (end,) = [event for event in events if isinstance(event, ev.RoundEnd)]
        assert end.finish in ("length", "stop")
        assert end.usage.prompt_tokens > 5
        assert 0 < end.usage.new_tokens <= 5
    with pytest.raises(UserError) as failed:
        list(turn(open_engine(transformers_serve.partition("#")[0] + "#no/such-model"), [Message("user", "?")]))
    assert failed.value.code == 3

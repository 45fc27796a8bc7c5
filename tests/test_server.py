"""The server as plain HTTP: what is answered, what is refused and how, and who holds up whom."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import threading
import time
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from serving import NAME, FunctionEngine, call, echo, question, serving, wait_for

from qwen_tools.server.inert import INERT
from qwen_tools.wire import sse

CHAT = {"model": NAME, "messages": [{"role": "user", "content": "Hello"}]}
RESPONSES = {"model": NAME, "input": "Hello"}
MESSAGES = {"model": NAME, "max_tokens": 1000, "messages": CHAT["messages"]}
COMPLETION = {"model": NAME, "prompt": "<|im_start|>user\nHello<|im_end|>\n", "max_tokens": 1000}
BODIES = {
    "/v1/chat/completions": CHAT,
    "/v1/responses": RESPONSES,
    "/v1/messages": MESSAGES,
    "/v1/completions": COMPLETION,
    "/v1/events": CHAT,
}
ADD = {
    "type": "function",
    "function": {
        "name": "add",
        "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]},
    },
}


def connect(url: str) -> http.client.HTTPConnection:
    return http.client.HTTPConnection(urlsplit(url).netloc, timeout=20)


def send(url: str, path: str, body=None, method: str = "POST", **headers) -> tuple[int, dict[str, str], str]:
    """Status, headers and text of one request; ``body`` is bytes or becomes JSON."""
    connection = connect(url)
    content = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
    connection.request(method, path, content, {"Content-Type": "application/json", **headers})
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, {name.lower(): value for name, value in answer.getheaders()}, text


def post(url: str, path: str, body=None, **headers) -> tuple[int, dict]:
    status, _, text = send(url, path, body, **headers)
    return status, json.loads(text)


def stream(url: str, path: str, body: dict) -> list[dict]:
    status, headers, text = send(url, path, {**body, "stream": True})
    assert (status, headers["content-type"]) == (200, "text/event-stream; charset=utf-8"), text
    return sse.Reader().feed(text)


@pytest.fixture(scope="module")
def engine():
    return FunctionEngine(echo)


@pytest.fixture(scope="module")
def url(engine):
    with serving(engine) as url:
        yield url


# --- answers


def test_the_answer_of_each_format(url):
    assert post(url, "/v1/chat/completions", CHAT)[1]["choices"][0]["message"]["content"] == "You said: Hello"
    assert post(url, "/v1/messages", MESSAGES)[1]["content"] == [{"type": "text", "text": "You said: Hello"}]
    assert post(url, "/v1/responses", RESPONSES)[1]["output"][0]["content"][0]["text"] == "You said: Hello"
    assert post(url, "/v1/completions", COMPLETION)[1]["choices"][0]["text"] == "You said: Hello"


def test_a_raw_prompt_is_read_as_it_is_and_an_answer_given_as_it_is():
    raw = "<think>\nx</think>" + call("f") + "<|im_start|>"
    engine = FunctionEngine(lambda prompt: raw)
    with serving(engine) as url:
        body = {**COMPLETION, "prompt": "<|im_start|> a <tool_call> b"}
        assert post(url, "/v1/completions", body)[1]["choices"][0]["text"] == raw
        assert engine.prompt == body["prompt"]
        pieces = stream(url, "/v1/completions", body)
        assert "".join(piece["choices"][0]["text"] for piece in pieces) == raw
        assert [piece["choices"][0]["finish_reason"] for piece in pieces][-2:] == [None, "stop"]
        assert post(url, "/v1/completions", {**body, "echo": True})[1]["choices"][0]["text"] == body["prompt"] + raw
        short = post(url, "/v1/completions", {**body, "max_tokens": 2})[1]
        assert (short["choices"][0]["text"], short["choices"][0]["finish_reason"]) == (raw[:10], "length")
        assert short["usage"]["completion_tokens"] == 2


def test_the_events_begin_with_the_raw_prompt(url, engine):
    events = stream(url, "/v1/events", CHAT)
    assert events[0] == {"type": "round_start", "round": 1, "prompt": engine.prompt, "dropped": 0}
    assert "".join(event["delta"] for event in events if event["type"] == "text") == "You said: Hello"
    assert [event["type"] for event in events[-3:]] == ["end", "round_end", "message_added"]


def test_models_and_health(url):
    status, models = post(url, "/v1/models", method="GET")
    assert (status, [model["id"] for model in models["data"]]) == (200, [NAME])
    assert post(url, f"/v1/models/{NAME}", method="GET")[1]["id"] == NAME
    assert post(url, "/v1/models/gpt-5", method="GET")[0] == 404
    assert post(url, "/health", method="GET") == (200, {"status": "ok", "busy": False, "waiting": 0})


def test_the_description_has_every_route_and_no_other(url):
    paths = post(url, "/openapi.json", method="GET")[1]["paths"]
    assert set(BODIES) | {"/v1/models", "/v1/models/{model}", "/health", "/openapi.json"} == set(paths)
    for path, body in BODIES.items():
        schema = paths[path]["post"]["requestBody"]["content"]["application/json"]["schema"]
        assert set(body) <= set(schema["properties"]), path
        for name in schema["required"]:
            status, answer = post(url, path, {key: value for key, value in body.items() if key != name})
            assert status == 400
            assert name in answer["error"]["message"]


# --- what the formats promise, also where the model does otherwise


def test_where_no_call_is_allowed_what_looks_like_one_is_text():
    said = "Well.\n" + call("add", a=1)
    with serving(FunctionEngine(lambda prompt: said)) as url:
        for more in ({"tools": [ADD], "tool_choice": "none"}, {}):
            answer = post(url, "/v1/chat/completions", {**CHAT, **more})[1]["choices"][0]
            assert answer["finish_reason"] == "stop"
            assert "tool_calls" not in answer["message"]
            assert call("add", a=1) in answer["message"]["content"]
            chunks = stream(url, "/v1/chat/completions", {**CHAT, **more})
            deltas = [chunk["choices"][0]["delta"] for chunk in chunks]
            assert "".join(delta.get("content", "") for delta in deltas) == answer["message"]["content"]


def test_where_one_call_is_allowed_the_answer_ends_with_it():
    engine = FunctionEngine(lambda prompt: "\n".join(call("add", a=number) for number in range(50)))
    body = {**CHAT, "tools": [ADD], "parallel_tool_calls": False}
    with serving(engine) as url:
        answer = post(url, "/v1/chat/completions", body)[1]["choices"][0]
        assert [each["function"]["arguments"] for each in answer["message"]["tool_calls"]] == ['{"a": 0}']
        assert answer["finish_reason"] == "tool_calls"
        assert engine.given < 40  # of some 700
        chunks = stream(url, "/v1/chat/completions", body)
        assert {each["index"] for chunk in chunks for each in chunk["choices"][0]["delta"].get("tool_calls", ())} == {0}
        assert chunks[-1]["choices"][0]["finish_reason"] == "tool_calls"


def test_only_allowed_tools_may_be_called_and_all_stand_in_the_prompt():
    engine = FunctionEngine(lambda prompt: "Hm.", can_guide=True)
    other = {"type": "function", "function": {"name": "subtract"}}
    listed = [{"type": "function", "function": {"name": "add"}}]
    choice = {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": listed}}
    with serving(engine) as url:
        post(url, "/v1/chat/completions", {**CHAT, "tools": [ADD, other], "tool_choice": choice})
    assert "subtract" in engine.prompt
    assert [tool.name for tool in engine.guide.tools] == ["add"]


def test_a_schema_for_the_answer_goes_to_the_guide_and_without_one_is_refused(url):
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    wanted = {"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}}
    engine = FunctionEngine(lambda prompt: '{"n": 7}', can_guide=True)
    with serving(engine) as guided:
        answer = post(guided, "/v1/chat/completions", {**CHAT, **wanted})[1]
        assert answer["choices"][0]["message"]["content"] == '{"n": 7}'
        assert (engine.guide.tools, engine.guide.schema) == ((), schema)
        post(guided, "/v1/chat/completions", {**CHAT, **wanted, "tools": [ADD]})
        assert ([tool.name for tool in engine.guide.tools], engine.guide.schema) == (["add"], schema)
    status, answer = post(url, "/v1/chat/completions", {**CHAT, **wanted})
    assert status == 400
    assert "guide" in answer["error"]["message"]


def test_a_stop_string_ends_the_answer_and_is_not_in_it(url):
    answer = post(url, "/v1/chat/completions", {**CHAT, "stop": ["lo"]})[1]["choices"][0]
    assert (answer["message"]["content"], answer["finish_reason"]) == ("You said: Hel", "stop")
    answer = post(url, "/v1/messages", {**MESSAGES, "stop_sequences": ["lo", "Hel"]})[1]
    assert (answer["stop_reason"], answer["stop_sequence"]) == ("stop_sequence", "Hel")
    assert answer["content"] == [{"type": "text", "text": "You said: "}] or answer["content"][0]["text"] == "You said:"


def test_a_call_that_the_limit_cuts_is_none():
    engine = FunctionEngine(lambda prompt: "Hm.\n" + call("add", a=1))
    body = {"tools": [ADD], "max_tokens": 10}
    with serving(engine) as url:
        answer = post(url, "/v1/chat/completions", {**CHAT, **body})[1]["choices"][0]
        assert answer["finish_reason"] == "length"
        assert (answer["message"]["content"], answer["message"].get("tool_calls")) == ("Hm.", None)
        assert stream(url, "/v1/chat/completions", {**CHAT, **body})[-1]["choices"][0]["finish_reason"] == "length"


def test_the_limit_holds_also_for_an_answer_that_is_begun_anew_under_the_guide():
    engine = FunctionEngine(lambda prompt: "Hm.\n" + call("add", a=1), can_guide=True)
    body = {**CHAT, "tools": [ADD]}
    with serving(engine) as url:
        whole = post(url, "/v1/chat/completions", body)[1]
        assert engine.guide is not None
        needed = whole["usage"]["completion_tokens"]
        for limit in range(1, needed + 2):
            answer = post(url, "/v1/chat/completions", {**body, "max_tokens": limit})[1]
            choice, spent = answer["choices"][0], answer["usage"]["completion_tokens"]
            assert (choice["finish_reason"], spent) == (
                ("tool_calls", needed) if limit >= needed else ("length", limit)
            )
            assert bool(choice["message"].get("tool_calls")) == (limit >= needed)
            chunks = stream(url, "/v1/chat/completions", {**body, "max_tokens": limit})
            assert chunks[-1]["choices"][0]["finish_reason"] == choice["finish_reason"]


def test_an_answer_that_takes_too_long_is_cut():
    engine = FunctionEngine(lambda prompt: "x" * 1000, pace=0.02)
    with serving(engine, seconds=0.2) as url:
        answer = post(url, "/v1/chat/completions", CHAT)[1]
        assert answer["choices"][0]["finish_reason"] == "length"
        assert 0 < len(answer["choices"][0]["message"]["content"]) < 200


def test_usage_tells_what_was_cached(url):
    usage = post(url, "/v1/chat/completions", CHAT)[1]["usage"]
    assert usage["prompt_tokens_details"]["cached_tokens"] == usage["prompt_tokens"] // 2
    assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"]
    usage = post(url, "/v1/messages", MESSAGES)[1]["usage"]
    assert usage["cache_read_input_tokens"] > 0
    chunks = stream(url, "/v1/chat/completions", {**CHAT, "stream_options": {"include_usage": True}})
    assert chunks[-1]["choices"] == []
    assert chunks[-1]["usage"]["completion_tokens"] > 0


# --- refusals


@pytest.mark.parametrize(
    ("path", "more", "field"),
    [
        ("/v1/chat/completions", {"messages": []}, "messages"),
        ("/v1/chat/completions", {"messages": [{"role": "robot", "content": "x"}]}, "messages[0].role"),
        ("/v1/chat/completions", {"logit_bias": {"1": 5}}, "logit_bias"),
        ("/v1/chat/completions", {"n": 2}, "n"),
        ("/v1/chat/completions", {"logprobs": True}, "logprobs"),
        ("/v1/chat/completions", {"temperature": "hot"}, "temperature"),
        ("/v1/chat/completions", {"audio": {"voice": "x"}}, "audio"),
        ("/v1/chat/completions", {"made_up": 1}, "made_up"),
        ("/v1/chat/completions", {"made_up": False}, "made_up"),
        ("/v1/chat/completions", {"enable_thinking": False}, "enable_thinking"),
        ("/v1/chat/completions", {"stream_options": {"made_up": 1}}, "stream_options.made_up"),
        ("/v1/chat/completions", {"web_search_options": {}}, "web_search_options"),
        ("/v1/chat/completions", {"function_call": "none"}, "function_call"),
        ("/v1/chat/completions", {"stop": ""}, "stop"),
        ("/v1/chat/completions", {"stop": ["a", ""]}, "stop[1]"),
        ("/v1/chat/completions", {"tool_choice": "required"}, "tool_choice"),
        ("/v1/chat/completions", {"tools": [ADD], "tool_choice": "required"}, "tool_choice"),
        ("/v1/chat/completions", {"response_format": {"type": "json_object"}}, "response_format"),
        (
            "/v1/chat/completions",
            {"tools": [ADD], "tool_choice": {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": []}}},
            "tool_choice.allowed_tools.tools",
        ),
        (
            "/v1/chat/completions",
            {"tools": [ADD, {"type": "function", "function": {"name": "b", "parameters": {"type": "objekt"}}}]},
            "tools[1]",
        ),
        ("/v1/chat/completions", {"tools": [{"type": "custom", "custom": {"name": "x"}}]}, "tools[0].type"),
        ("/v1/responses", {"previous_response_id": "resp_1"}, "previous_response_id"),
        ("/v1/responses", {"tools": [{"type": "web_search"}]}, "tools[0].type"),
        ("/v1/responses", {"background": True}, "background"),
        ("/v1/responses", {"reasoning": {"effort": "high"}}, "reasoning.effort"),
        ("/v1/responses", {"stream_options": {"made_up": 1}}, "stream_options.made_up"),
        ("/v1/responses", {"text": {"format": {"type": "json_object"}}}, "text.format"),
        ("/v1/responses", {"tool_choice": {"type": "allowed_tools", "tools": []}}, "tool_choice.tools"),
        ("/v1/messages", {"thinking": {"type": "enabled", "budget_tokens": 2000}}, "thinking"),
        ("/v1/messages", {"messages": [{"role": "user", "content": [{"type": "image"}]}]}, "messages[0].content[0]"),
        ("/v1/messages", {"mcp_servers": [{"url": "x"}]}, "mcp_servers"),
        ("/v1/messages", {"parallel_tool_calls": False}, "parallel_tool_calls"),
        ("/v1/messages", {"stop_sequences": [""]}, "stop_sequences[0]"),
        ("/v1/messages", {"tool_choice": {"type": "any"}}, "tool_choice"),
        ("/v1/messages", {"tool_choice": {"type": "auto", "made_up": 1}}, "tool_choice.made_up"),
        ("/v1/completions", {"prompt": 7}, "prompt"),
        ("/v1/completions", {"suffix": "x"}, "suffix"),
        ("/v1/completions", {"logprobs": 3}, "logprobs"),
        ("/v1/completions", {"logprobs": 0}, "logprobs"),
        ("/v1/events", {"tool_choice": "sometimes"}, "tool_choice"),
    ],
)
def test_what_is_wrong_or_not_supported_is_refused_by_name(url, path, more, field):
    status, answer = post(url, path, {**BODIES[path], **more})
    assert status == 400, answer
    assert answer["error"]["type"] == "invalid_request_error"
    assert field in answer["error"]["message"]
    if path == "/v1/messages":
        assert answer["type"] == "error"
    else:
        assert answer["error"]["param"] == field


@pytest.mark.parametrize(
    ("path", "more"),
    [
        ("/v1/chat/completions", {"user": "me", "metadata": {"a": "b"}, "store": True, "service_tier": "auto"}),
        ("/v1/chat/completions", {"n": 1, "logprobs": False, "frequency_penalty": 0, "logit_bias": {}}),
        ("/v1/chat/completions", {"seed": -1, "top_p": 0, "min_p": 0.0, "made_up": None, "function_call": "auto"}),
        ("/v1/chat/completions", {"stream_options": {"include_obfuscation": False}}),
        ("/v1/chat/completions", {"prompt_cache_key": "x", "safety_identifier": "y", "modalities": ["text"]}),
        ("/v1/responses", {"store": False, "include": ["reasoning.encrypted_content"], "truncation": "disabled"}),
        ("/v1/responses", {"stream_options": {"include_obfuscation": False}, "reasoning": {"summary": "auto"}}),
        ("/v1/responses", {"background": False, "top_logprobs": 0, "text": {"verbosity": "medium"}}),
        (
            "/v1/responses",
            {
                "input": [
                    {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
                    {"role": "user", "content": "Well?"},
                    {"type": "function_call_output", "call_id": "c", "output": "x"},
                ]
            },
        ),
        ("/v1/messages", {"metadata": {"user_id": "x"}, "thinking": {"type": "disabled"}}),
        (
            "/v1/messages",
            {"system": [{"type": "text", "text": "Be short.", "cache_control": {"type": "ephemeral"}}]},
        ),
        ("/v1/completions", {"user": "me", "best_of": 1, "n": 1, "presence_penalty": 0}),
    ],
)
def test_what_could_not_change_the_answer_is_let_through(url, path, more):
    status, answer = post(url, path, {**BODIES[path], **more})
    assert status == 200, answer


def test_the_page_of_the_server_lists_what_is_let_through():
    page = (Path(__file__).parents[1] / "docs" / "serve.md").read_text(encoding="utf-8")
    assert [name for name in sorted(INERT) if f"`{name}`" not in page] == []


@pytest.mark.parametrize("path", BODIES)
def test_another_model_is_not_this_one(url, path):
    status, answer = post(url, path, {**BODIES[path], "model": "gpt-5"})
    assert status == 404
    assert NAME in answer["error"]["message"]


@pytest.mark.parametrize("path", BODIES)
@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 400),
        (b"{", 400),
        (b"[]", 400),
        (b'"x"', 400),
        (b"\xff\xfe{}", 400),
        (b'{"a": NaN}', 400),
        (b'{"a": 1e999}', 400),
        (b'{"a": ' + b"9" * 10_000 + b"}", 400),
        (b'{"a": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", 400),
        (b'{"a": ' + b"[" * 100 + b"]" * 100 + b"}", 400),
        (b'{"a": "' + b"x" * (9 * 1024 * 1024) + b'"}', 413),
    ],
    ids=lambda value: repr(value[:12]) if isinstance(value, bytes) else str(value),
)
def test_a_body_that_is_no_request(url, path, body, status):
    got, answer = post(url, path, body)
    assert got == status
    assert answer["error"]["message"]
    assert ("type" in answer) == (path == "/v1/messages")


def test_a_body_that_never_comes(url, monkeypatch, capsys):
    monkeypatch.setattr("qwen_tools.server.body.SECONDS", 0.2)
    head = b"POST /v1/messages HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{"
    with socket.create_connection((urlsplit(url).hostname, urlsplit(url).port), timeout=10) as raw:
        raw.sendall(head)
        answer = raw.recv(65536)
    assert answer.startswith(b"HTTP/1.1 408")
    with socket.create_connection((urlsplit(url).hostname, urlsplit(url).port), timeout=10) as raw:
        raw.sendall(head)
    assert post(url, "/health", method="GET")[0] == 200
    assert capsys.readouterr().err == ""


def test_no_such_route_and_no_such_method(url):
    assert post(url, "/v1/embeddings", {})[0] == 404
    assert post(url, "/v1/chat/completions", method="GET")[0] == 405
    assert post(url, "/v1/messages/batches", {})[1]["type"] == "error"


def test_a_prompt_that_is_too_long_for_the_model_is_an_error_also_for_a_stream():
    from qwen_tools.errors import UserError

    def refuse(prompt):
        raise UserError("the conversation has 9 tokens and this reads at most 8", code=1)

    with serving(FunctionEngine(refuse)) as url:
        for path, body in BODIES.items():
            status, answer = post(url, path, {**body, "stream": True})
            assert status == 400, path
            assert "at most 8" in answer["error"]["message"]


def test_what_breaks_in_the_middle_of_a_stream_is_told_in_it(capsys):
    class Broken(FunctionEngine):
        def _pieces(self, *asked):
            for piece in super()._pieces(*asked):
                yield piece
                if self.given % 3 == 0:
                    raise RuntimeError("secret words of the request")

    with serving(Broken(lambda prompt: "x" * 100)) as url:
        for path, body in BODIES.items():
            last = stream(url, path, body)[-1]
            assert "error" in last.get("type", last)
            assert "secret" not in json.dumps(last)
            if path == "/v1/events":
                continue  # always a stream
            status, answer = post(url, path, body)
            assert (status, "secret" in json.dumps(answer)) == (500, False)
        assert post(url, "/health", method="GET")[0] == 200
    noted = capsys.readouterr()
    assert "RuntimeError" in noted.err
    assert "secret" not in noted.err + noted.out


# --- who may use it


def test_a_name_that_was_made_to_lead_here_is_refused(url):
    port = urlsplit(url).port
    for host in (
        "evil.example",
        f"evil.example:{port}",
        f"localhost.evil.example:{port}",
        "",
        "[::1",
        "127.0.0.1.nip.io",
    ):
        for path in ("/", "/v1/models", "/health"):
            assert send(url, path, method="GET", Host=host)[0] == 403, host
    for host in ("localhost", f"127.0.0.1:{port}", "LOCALHOST:1", "[::1]:8000", f"127.0.0.2:{port}"):
        assert send(url, "/v1/models", method="GET", Host=host)[0] == 200, host


def test_pages_of_other_origins_may_not_use_it_unless_they_are_allowed(url):
    own = f"http://{urlsplit(url).netloc}"
    assert post(url, "/v1/chat/completions", CHAT, Origin=own)[0] == 200
    for origin in ("http://evil.example", "null", "http://localhost:1", "http://[::1", "http://", "", "é://"):
        assert post(url, "/v1/chat/completions", CHAT, Origin=origin)[0] == 403
    assert "access-control-allow-origin" not in send(url, "/v1/models", method="GET", Origin=own)[1]
    with serving(FunctionEngine(echo), origins=["http://app.example"]) as open_url:
        _, headers, _ = send(open_url, "/v1/chat/completions", CHAT, Origin="http://app.example")
        assert headers["access-control-allow-origin"] == "http://app.example"
        assert send(open_url, "/v1/chat/completions", CHAT, Origin="http://evil.example")[0] == 403
    with serving(FunctionEngine(echo), origins=["*"]) as open_url:
        status, headers, _ = send(open_url, "/v1/chat/completions", CHAT, Origin="http://any.example")
        assert (status, headers["access-control-allow-origin"]) == (200, "*")


def test_with_a_key_every_request_must_bring_it():
    with serving(FunctionEngine(echo), key="sésame") as url:
        for path, body in BODIES.items():
            status, answer = post(url, path, body)
            assert status == 401
            assert answer["error"]["type"] == "authentication_error"
            for wrong in ("Bearer x", "Bearer ", "sésame".encode().decode("latin-1"), "Basic x"):
                assert post(url, path, body, Authorization=wrong)[0] == 401, wrong
            right = "sésame".encode().decode("latin-1")
            assert send(url, path, body, Authorization=f"Bearer {right}")[0] == 200
            assert send(url, path, body, **{"x-api-key": right})[0] == 200
        assert send(url, "/v1/models", method="GET")[0] == 401
        # What is no secret: the page, which asks for the key, and whether anybody is there.
        assert send(url, "/", method="GET", Host="any.example")[0] == 200
        assert send(url, "/health", method="GET")[0] == 200


# --- who holds up whom


def leave(connection: http.client.HTTPConnection) -> None:
    """Go away without having read the answer."""
    connection.sock.shutdown(socket.SHUT_RDWR)


def begin(url: str, body: dict) -> tuple[http.client.HTTPConnection, http.client.HTTPResponse]:
    connection = connect(url)
    connection.request("POST", "/v1/chat/completions", json.dumps(body), {"Content-Type": "application/json"})
    return connection, connection.getresponse()


@pytest.mark.parametrize("streams", [True, False])
def test_a_client_that_leaves_stops_its_answer(streams):
    engine = FunctionEngine(lambda prompt: "x" * 50_000, pace=0.005)
    with serving(engine) as url:
        connection = connect(url)
        body = json.dumps({**CHAT, "stream": streams})
        connection.request("POST", "/v1/chat/completions", body, {"Content-Type": "application/json"})
        wait_for(lambda: engine.given > 5)
        if streams:
            connection.getresponse().read(10)
        leave(connection)
        wait_for(lambda: not post(url, "/health", method="GET")[1]["busy"])
        assert engine.given < 2000


def test_waiting_has_an_end_and_leaving_frees_the_place():
    engine = FunctionEngine(lambda prompt: "x" * 50_000, pace=0.005)
    with serving(engine, places=1) as url:

        def waiting() -> tuple[bool, int]:
            health = post(url, "/health", method="GET")[1]
            return health["busy"], health["waiting"]

        first, _ = begin(url, {**CHAT, "stream": True})
        second = connect(url)
        second.request("POST", "/v1/messages", json.dumps(MESSAGES), {"Content-Type": "application/json"})
        wait_for(lambda: waiting() == (True, 1))
        for path, body in BODIES.items():
            status, headers, text = send(url, path, body)
            assert status == 429
            assert int(headers["retry-after"]) >= 1
            assert json.loads(text)["error"]["type"] == "rate_limit_error"
        leave(second)
        wait_for(lambda: waiting() == (True, 0))
        engine.function = echo
        third = threading.Thread(target=lambda: answers.append(post(url, "/v1/chat/completions", CHAT)))
        answers: list = []
        third.start()
        wait_for(lambda: waiting() == (True, 1))
        leave(first)
        third.join(10)
        assert answers[0][1]["choices"][0]["message"]["content"] == "You said: Hello"


def test_a_client_that_does_not_read_holds_up_nobody_and_is_left_in_the_end(monkeypatch):
    monkeypatch.setattr("qwen_tools.server.app.SEND_SECONDS", 0.3)
    engine = FunctionEngine(lambda prompt: "y" * 50_000 if "Much" in question(prompt) else echo(prompt))
    with serving(engine, max_new_tokens=10_000, send_buffer=4096) as url:
        much = json.dumps({**CHAT, "messages": [{"role": "user", "content": "Much"}], "stream": True}).encode()
        raw = socket.socket()
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        raw.settimeout(10)
        raw.connect((urlsplit(url).hostname, urlsplit(url).port))
        head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(much)}\r\n\r\n"
        raw.sendall(head.encode() + much)
        wait_for(lambda: engine.given > 0)
        answer = post(url, "/v1/chat/completions", CHAT)[1]
        assert answer["choices"][0]["message"]["content"] == "You said: Hello"
        time.sleep(0.5)
        read = b""
        with contextlib.suppress(ConnectionError):
            while part := raw.recv(65536):
                read += part
        assert b"HTTP/1.1 200" in read
        assert b"[DONE]" not in read
        raw.close()


def test_a_request_without_a_model_means_the_one_there_is(url):
    for path, body in BODIES.items():
        status, _, text = send(url, path, {key: value for key, value in body.items() if key != "model"})
        assert status == 200, text
        if path != "/v1/events":
            assert json.loads(text)["model"] == NAME

"""Hostile input: whatever is sent, the answer is right or a refusal in the format's own shape, and it comes soon."""

from __future__ import annotations

import copy
import json
import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from serving import NAME, FunctionEngine, serving
from test_server import ADD, BODIES, connect

# Requests that use much of each format.
FULL = {
    "/v1/chat/completions": {
        "model": NAME,
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": [{"type": "text", "text": "Add."}]},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "add", "arguments": '{"a": 1}'}}],
            },
            {"role": "tool", "tool_call_id": "c1", "content": "2"},
        ],
        "tools": [ADD],
        "tool_choice": {
            "type": "allowed_tools",
            "allowed_tools": {"mode": "auto", "tools": [{"type": "function", "function": {"name": "add"}}]},
        },
        "parallel_tool_calls": False,
        "response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "object"}}},
        "stop": ["z"],
        "temperature": 0.5,
        "top_p": 0.5,
        "seed": 1,
        "max_completion_tokens": 5,
        "stream_options": {"include_usage": True},
        "user": "me",
    },
    "/v1/responses": {
        "model": NAME,
        "instructions": "Be brief.",
        "input": [
            {"role": "user", "content": [{"type": "input_text", "text": "Add."}]},
            {"type": "function_call", "call_id": "c1", "name": "add", "arguments": '{"a": 1}'},
            {"type": "function_call_output", "call_id": "c1", "output": "2"},
        ],
        "tools": [{"type": "function", **ADD["function"]}],
        "tool_choice": {"type": "function", "name": "add"},
        "text": {"format": {"type": "text"}},
        "max_output_tokens": 5,
        "temperature": 0.5,
    },
    "/v1/messages": {
        "model": NAME,
        "max_tokens": 5,
        "system": [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}],
        "messages": [
            {"role": "user", "content": "Add."},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "add", "input": {"a": 1}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "2"}]},
        ],
        "tools": [{"name": "add", "input_schema": ADD["function"]["parameters"]}],
        "tool_choice": {"type": "tool", "name": "add", "disable_parallel_tool_use": True},
        "stop_sequences": ["z"],
        "top_k": 3,
    },
    "/v1/completions": {
        "model": NAME,
        "prompt": "<|im_start|>user\nHello<|im_end|>\n",
        "max_tokens": 5,
        "stop": "z",
        "echo": True,
        "stream_options": {"include_usage": True},
    },
}
FULL["/v1/events"] = FULL["/v1/chat/completions"]

CONTROL = [
    "<|im_end|>",
    "<|im_start|>system\n",
    "<tool_call>",
    "</tool_response>",
    "<think>",
    "\u0000",
    "\ud800",
    "\u202e",
]
ODD = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=20),
    st.sampled_from(CONTROL),
    st.sampled_from(
        [[], {}, [[]], [{}], {"": {}}, {"type": "object", "properties": {"a": {"$ref": "#"}}}, 10**400, -1]
    ),
    st.recursive(
        st.none() | st.booleans() | st.text(max_size=5),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
        max_leaves=8,
    ),
)


def places(value, path=()):
    """The path of every value in a request."""
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield from places(inner, (*path, key))


@st.composite
def mutated(draw, path):
    """A right request with up to three places replaced, removed, renamed or doubled."""
    body = copy.deepcopy(FULL[path])
    for _ in range(draw(st.integers(1, 3))):
        place = draw(st.sampled_from([place for place in places(body) if place] or [("model",)]))
        at = body
        for key in place[:-1]:
            at = at[key]
        change = draw(st.sampled_from(["replace", "remove", "rename", "double"]))
        if change == "double" and isinstance(at, list):
            at.append(copy.deepcopy(at[place[-1]]))
        elif change == "rename" and isinstance(at, dict):
            at[draw(st.text(max_size=8))] = copy.deepcopy(draw(ODD))
        elif change == "remove" and place != ("model",):
            del at[place[-1]]
        else:
            at[place[-1]] = copy.deepcopy(draw(ODD))
    return {**body, **draw(st.sampled_from([{}, {"stream": True}]))}


@pytest.fixture(scope="module")
def connection():
    with serving(FunctionEngine(lambda prompt: "Fine.", can_guide=True)) as url:
        yield connect(url)


def judge(connection, path: str, body: bytes) -> None:
    connection.request("POST", path, body, {"Content-Type": "application/json"})
    answer = connection.getresponse()
    text = answer.read().decode()
    if answer.status == 200:
        return
    assert 400 <= answer.status < 500, text
    error = json.loads(text)
    assert error["error"]["message"]
    assert error["error"]["type"] in ("invalid_request_error", "not_found_error")
    if path == "/v1/messages":
        assert error["type"] == "error"
    else:
        assert {"message", "type", "param", "code"} == set(error["error"])


def test_the_requests_that_are_changed_are_right(connection):
    for path, body in FULL.items():
        connection.request("POST", path, json.dumps(body))
        answer = connection.getresponse()
        assert answer.status == 200, answer.read()
        answer.read()


@pytest.mark.parametrize("path", FULL)
def test_a_request_that_was_changed_anywhere(connection, path):
    @settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
    @given(mutated(path))
    def check(body):
        judge(connection, path, json.dumps(body).encode())

    check()


@pytest.mark.parametrize("path", BODIES)
def test_bytes_that_are_no_request(connection, path):
    right = json.dumps(FULL[path]).encode()

    @settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
    @given(
        st.binary(max_size=200)
        | st.builds(
            lambda at, noise: right[:at] + noise + right[at + len(noise) :],
            st.integers(0, len(right)),
            st.binary(max_size=4),
        )
    )
    def check(body):
        judge(connection, path, body)

    check()


def calls_and_results(number: int) -> dict:
    calls = [{"type": "function_call", "call_id": f"c{each}", "name": "f", "arguments": "{}"} for each in range(number)]
    results = [{"type": "function_call_output", "call_id": f"c{each}", "output": "x"} for each in range(number)]
    return {"input": [*calls, *reversed(results)]}


def results_far_from_their_calls(number: int) -> dict:
    body = calls_and_results(number)
    calls = [item for call in body["input"][:number] for item in (call, {"role": "user", "content": "Go on."})]
    return {"input": [*calls, *body["input"][number:]]}


def names_that_are_changed_alike(number: int) -> dict:
    names = ["a" + "".join(".!"[each >> bit & 1] for bit in range(16)) for each in range(number)]
    return {"input": [{"type": "function_call", "call_id": name, "name": name, "arguments": "{}"} for name in names]}


@pytest.mark.parametrize("body", [calls_and_results, results_far_from_their_calls, names_that_are_changed_alike])
def test_the_time_for_many_parts_grows_with_their_number_only(connection, body):
    begun = time.process_time()
    judge(connection, "/v1/responses", json.dumps({"model": NAME, **body(15_000)}).encode())
    assert time.process_time() - begun < 10


def test_a_body_may_not_have_too_many_parts(connection):
    many = {"role": "user", "content": "x"}
    for path in ("/v1/chat/completions", "/v1/messages"):
        connection.request("POST", path, json.dumps({**FULL[path], "messages": [many] * 60_000}))
        answer = connection.getresponse()
        assert (answer.status, "50000" in answer.read().decode()) == (400, True)


@pytest.mark.model
@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string", "pattern": "^(a{1000}){1000}$"},
        {"if": {"type": "string"}, "then": {"minLength": 3}},
        {"$ref": "http://127.0.0.1:1/x.json"},
        {"type": "object", "properties": {f"p{number}": {"type": "string"} for number in range(20_000)}},
    ],
    ids=["pattern", "keywords", "remote", "large"],
)
def test_a_schema_that_the_guide_cannot_take(embedded, schema):
    with serving(embedded) as url:
        wanted = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
        body = {"messages": [{"role": "user", "content": "Hi"}], "response_format": wanted, "stream": True}
        connection = connect(url)
        connection.timeout = 120
        connection.request("POST", "/v1/chat/completions", json.dumps(body))
        answer = connection.getresponse()
        assert answer.status == 400
        error = json.loads(answer.read())["error"]
        assert "schema" in error["message"]
        assert error["param"] == "response_format"

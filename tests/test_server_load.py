"""Many clients at once, and many requests after each other."""

from __future__ import annotations

import gc
import json
import resource
from concurrent.futures import ThreadPoolExecutor

import pytest
from serving import NAME, FunctionEngine, call, question, serving
from test_server import ADD, connect

from qwen_tools.wire import sse

ANTHROPIC_ADD = {"name": "add", "input_schema": ADD["function"]["parameters"]}
RESPONSES_ADD = {"type": "function", **ADD["function"]}


def model(prompt: str) -> str:
    """A call with the number that was asked about, or a sentence with it."""
    asked = question(prompt)
    number = int(asked.split()[-1])
    return call("add", a=number) if asked.startswith("Add") else f"The number is {number}. " * (number % 5 + 1)


def right(number: int) -> str:
    return f"The number is {number}. " * (number % 5 + 1)


# A request of each kind about a number, and what must be in its answer.


def chat(number: int) -> tuple[str, dict]:
    return "/v1/chat/completions", {"messages": [{"role": "user", "content": f"Say {number}"}]}


def chat_call(number: int) -> tuple[str, dict]:
    return "/v1/chat/completions", {"messages": [{"role": "user", "content": f"Add {number}"}], "tools": [ADD]}


def responses_call(number: int) -> tuple[str, dict]:
    return "/v1/responses", {"input": f"Add {number}", "tools": [RESPONSES_ADD]}


def messages(number: int) -> tuple[str, dict]:
    return "/v1/messages", {"max_tokens": 500, "messages": [{"role": "user", "content": f"Say {number}"}]}


def messages_call(number: int) -> tuple[str, dict]:
    body = {"max_tokens": 500, "messages": [{"role": "user", "content": f"Add {number}"}], "tools": [ANTHROPIC_ADD]}
    return "/v1/messages", body


def completion(number: int) -> tuple[str, dict]:
    return "/v1/completions", {"prompt": f"<|im_start|>user\nSay {number}<|im_end|>\n", "max_tokens": 500}


KINDS = [chat, chat_call, responses_call, messages, messages_call, completion]


def said(path: str, body: dict) -> str:
    """The text of an answer that is not streamed, or the arguments of its call."""
    if path == "/v1/chat/completions":
        message = body["choices"][0]["message"]
        return message["tool_calls"][0]["function"]["arguments"] if message.get("tool_calls") else message["content"]
    if path == "/v1/responses":
        return body["output"][0]["arguments"]
    if path == "/v1/messages":
        block = body["content"][0]
        return json.dumps(block["input"]) if block["type"] == "tool_use" else block["text"]
    return body["choices"][0]["text"]


def streamed(path: str, chunks: list[dict]) -> str:
    """The same of the chunks of a stream."""
    text = ""
    for chunk in chunks:
        if path == "/v1/chat/completions":
            delta = chunk["choices"][0]["delta"]
            text += delta.get("content") or ""
            text += "".join(each["function"].get("arguments", "") for each in delta.get("tool_calls", ()))
        elif path == "/v1/responses":
            text += chunk["delta"] if chunk["type"] == "response.function_call_arguments.delta" else ""
        elif path == "/v1/messages":
            delta = chunk.get("delta", {})
            text += delta.get("text", "") + delta.get("partial_json", "")
        else:
            text += chunk["choices"][0]["text"]
    return text


def is_right(connection, number: int) -> bool:
    path, body = KINDS[number % len(KINDS)](number)
    body = {"model": NAME, **body, "stream": number % 2 == 0}
    connection.request("POST", path, json.dumps(body))
    answer = connection.getresponse()
    text = answer.read().decode()
    assert answer.status == 200, text
    got = streamed(path, sse.Reader().feed(text)) if body["stream"] else said(path, json.loads(text))
    asks_for_call = "Add" in json.dumps(body)
    return json.loads(got) == {"a": number} if asks_for_call else got.strip() == right(number).strip()


def test_two_hundred_mixed_requests_of_sixteen_clients_get_two_hundred_right_answers():
    with serving(FunctionEngine(model), places=16) as url:

        def client(first: int) -> list[bool]:
            connection = connect(url)
            return [is_right(connection, number) for number in range(first, 200, 16)]

        with ThreadPoolExecutor(16) as pool:
            answers = [right for answers in pool.map(client, range(16)) for right in answers]
    assert len(answers) == 200
    assert all(answers)


def test_memory_stays_flat_over_a_thousand_requests():
    with serving(FunctionEngine(model)) as url:
        connection = connect(url)

        def after(numbers: range) -> tuple[int, int]:
            """The objects that live then, and the most memory that was ever used, in KiB (on Linux)."""
            assert all(is_right(connection, number) for number in numbers)
            gc.collect()
            return len(gc.get_objects()), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

        after(range(100))  # what is made once: caches, compiled patterns
        objects, memory = after(range(100, 200))
        later_objects, later_memory = after(range(200, 1200))
    assert later_objects - objects < 500
    assert later_memory - memory < 4096


@pytest.mark.model
def test_sixteen_requests_at_once_on_the_real_model(embedded):
    with serving(embedded) as url:

        def client(number: int) -> str:
            connection = connect(url)
            connection.timeout = 600
            prompt = f"<|im_start|>user\nRepeat the number {number}.<|im_end|>\n<|im_start|>assistant\n"
            body = {"model": embedded.name, "prompt": prompt, "max_tokens": 12, "temperature": 0}
            connection.request("POST", "/v1/completions", json.dumps(body))
            return json.loads(connection.getresponse().read())["choices"][0]["text"]

        with ThreadPoolExecutor(16) as pool:
            answers = list(pool.map(client, range(1000, 1016)))
    assert [str(number) in answer for number, answer in zip(range(1000, 1016), answers, strict=True)] == [True] * 16

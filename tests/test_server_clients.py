"""Clients that we did not write talk to the server: the openai and anthropic SDKs."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor

import anthropic
import openai
import pytest
from pydantic import BaseModel
from serving import NAME, FunctionEngine, call, echo, question, serving

from qwen_tools.server.answer import Serving

PARAMETERS = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
    "required": ["city"],
}
CHAT_TOOL = {"type": "function", "function": {"name": "weather", "description": "Weather.", "parameters": PARAMETERS}}
RESPONSES_TOOL = {"type": "function", "name": "weather", "parameters": PARAMETERS, "strict": False}
ANTHROPIC_TOOL = {"name": "weather", "description": "Weather.", "input_schema": PARAMETERS}
ASK = [{"role": "user", "content": "Weather in Zürich and Oslo?"}]
ARGUMENTS = [{"city": "Zürich", "days": 2}, {"city": "Oslo"}]


def model(prompt: str) -> str:
    """What a good model would say: it thinks, calls, and reads the results."""
    if "Weather in" in question(prompt):
        calls = "\n".join(call("weather", **arguments) for arguments in ARGUMENTS)
        return f"<think>\nTwo cities.\n</think>\n\nI look.\n{calls}"
    if "<tool_response>" in question(prompt):
        results = [
            part.partition("</tool_response>")[0].strip() for part in question(prompt).split("<tool_response>")[1:]
        ]
        return f"It is {' and '.join(results)}."
    if "JSON" in question(prompt):
        return '{"city": "Bern", "days": 3}'
    return echo(prompt)


@pytest.fixture(scope="module")
def engine():
    return FunctionEngine(model, can_guide=True)


@pytest.fixture(scope="module")
def url(engine):
    with serving(engine) as url:
        yield url


@pytest.fixture
def openai_client(url):
    with openai.OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0, timeout=20) as client:
        yield client


@pytest.fixture
def anthropic_client(url):
    with anthropic.Anthropic(base_url=url, api_key="none", max_retries=0, timeout=20) as client:
        yield client


# --- OpenAI Chat Completions


def test_chat_completions_tool_cycle(openai_client):
    create = openai_client.chat.completions.create
    first = create(model=NAME, messages=ASK, tools=[CHAT_TOOL]).choices[0]
    assert first.finish_reason == "tool_calls"
    assert first.message.content == "I look."
    assert first.message.reasoning_content == "Two cities."
    assert [json.loads(each.function.arguments) for each in first.message.tool_calls] == ARGUMENTS
    assert len({each.id for each in first.message.tool_calls}) == 2
    results = [
        {"role": "tool", "tool_call_id": each.id, "content": json.loads(each.function.arguments)["city"]}
        for each in reversed(first.message.tool_calls)
    ]
    last = create(model=NAME, messages=[*ASK, first.message, *results], tools=[CHAT_TOOL])
    assert last.choices[0].message.content == "It is Zürich and Oslo.", "results stand in the order of their calls"
    assert last.choices[0].finish_reason == "stop"


def test_chat_completions_stream_says_what_the_whole_answer_says(openai_client):
    asked = {"model": NAME, "messages": ASK, "tools": [CHAT_TOOL]}
    whole = openai_client.chat.completions.create(**asked).choices[0]
    with openai_client.chat.completions.stream(**asked, stream_options={"include_usage": True}) as stream:
        kinds = [event.type for event in stream]
        final = stream.get_final_completion()
    assert kinds.count("tool_calls.function.arguments.done") == 2
    assert kinds.count("tool_calls.function.arguments.delta") > 4, "arguments come as they are generated"
    assert final.choices[0].finish_reason == whole.finish_reason
    assert final.choices[0].message.content == whole.message.content
    assert [each.function.arguments for each in final.choices[0].message.tool_calls] == [
        each.function.arguments for each in whole.message.tool_calls
    ]
    assert final.usage.completion_tokens > 0


class Trip(BaseModel):
    city: str
    days: int


def test_chat_completions_structured_output(openai_client, engine):
    answer = openai_client.chat.completions.parse(
        model=NAME, messages=[{"role": "user", "content": "JSON please"}], response_format=Trip
    )
    assert answer.choices[0].message.parsed == Trip(city="Bern", days=3)
    assert engine.guide.schema["required"] == ["city", "days"]


def test_chat_completions_choices(openai_client, engine):
    create = openai_client.chat.completions.create
    named = {"type": "function", "function": {"name": "weather"}}
    create(model=NAME, messages=ASK, tools=[CHAT_TOOL], tool_choice=named, parallel_tool_calls=False)
    assert ([tool.name for tool in engine.guide.tools], engine.guide.parallel) == (["weather"], False)
    create(model=NAME, messages=ASK, tools=[CHAT_TOOL], tool_choice="required")
    assert engine.guide.parallel
    none = create(model=NAME, messages=ASK, tools=[CHAT_TOOL], tool_choice="none").choices[0]
    assert none.message.tool_calls is None
    assert engine.guide.tools == ()


def test_settings_reach_the_engine(openai_client, anthropic_client, engine):
    hello = [{"role": "user", "content": "Hello"}]
    openai_client.chat.completions.create(
        model=NAME, messages=hello, temperature=0.5, top_p=0.9, seed=7, max_completion_tokens=99, stop=["z"]
    )
    settings = engine.settings
    assert (settings.temperature, settings.top_p, settings.seed, settings.max_new_tokens) == (0.5, 0.9, 7, 99)
    assert settings.stop == ("z",)
    anthropic_client.messages.create(model=NAME, messages=hello, max_tokens=10**6, extra_body={"top_k": 3})
    assert (engine.settings.top_k, engine.settings.max_new_tokens) == (3, Serving.max_new_tokens)


def test_openai_errors(openai_client):
    hello = [{"role": "user", "content": "Hello"}]
    with pytest.raises(openai.BadRequestError) as refusal:
        openai_client.chat.completions.create(model=NAME, messages=hello, presence_penalty=1)
    assert refusal.value.param == "presence_penalty"
    with pytest.raises(openai.NotFoundError) as refusal:
        openai_client.chat.completions.create(model="gpt-5", messages=hello)
    assert refusal.value.code == "model_not_found"


def test_openai_models_and_completions(openai_client):
    assert [each.id for each in openai_client.models.list()] == [NAME]
    assert openai_client.models.retrieve(NAME).id == NAME
    prompt = "<|im_start|>user\nraw<|im_end|>\n<|im_start|>assistant\n"
    whole = openai_client.completions.create(model=NAME, prompt=prompt, max_tokens=100)
    assert whole.choices[0].text == "You said: raw"
    parts = openai_client.completions.create(model=NAME, prompt=prompt, max_tokens=100, stream=True)
    assert "".join(part.choices[0].text for part in parts) == "You said: raw"


# --- OpenAI Responses


def test_responses_tool_cycle(openai_client):
    create = openai_client.responses.create
    first = create(model=NAME, input=ASK, tools=[RESPONSES_TOOL])
    calls = [item for item in first.output if item.type == "function_call"]
    assert [json.loads(item.arguments) for item in calls] == ARGUMENTS
    assert first.output_text == "I look."
    assert first.status == "completed"
    results = [{"type": "function_call_output", "call_id": each.call_id, "output": "mild"} for each in calls]
    given = [*ASK, *[item.model_dump(exclude_none=True) for item in first.output], *results]
    assert create(model=NAME, input=given, tools=[RESPONSES_TOOL]).output_text == "It is mild and mild."


def test_responses_stream_says_what_the_whole_answer_says(openai_client):
    whole = openai_client.responses.create(model=NAME, input=ASK, tools=[RESPONSES_TOOL])
    with openai_client.responses.stream(model=NAME, input=ASK, tools=[RESPONSES_TOOL]) as stream:
        events = list(stream)
        final = stream.get_final_response()
    assert next(event.sequence_number for event in events if hasattr(event, "sequence_number")) == 0
    assert [item.type for item in final.output] == [item.type for item in whole.output]
    assert [item.arguments for item in final.output if item.type == "function_call"] == [
        item.arguments for item in whole.output if item.type == "function_call"
    ]
    assert final.usage.input_tokens == whole.usage.input_tokens


def test_responses_structured_output(openai_client):
    answer = openai_client.responses.parse(model=NAME, input="JSON please", text_format=Trip)
    assert answer.output_parsed == Trip(city="Bern", days=3)


def test_responses_cut_by_the_limit(openai_client):
    answer = openai_client.responses.create(model=NAME, input="Hello", max_output_tokens=2)
    assert (answer.status, answer.incomplete_details.reason) == ("incomplete", "max_output_tokens")


# --- Anthropic Messages


def test_messages_tool_cycle(anthropic_client):
    create = anthropic_client.messages.create
    first = create(model=NAME, max_tokens=500, messages=ASK, tools=[ANTHROPIC_TOOL])
    assert first.stop_reason == "tool_use"
    assert [block.type for block in first.content] == ["thinking", "text", "tool_use", "tool_use"]
    calls = [block for block in first.content if block.type == "tool_use"]
    assert [block.input for block in calls] == ARGUMENTS
    results = [{"type": "tool_result", "tool_use_id": block.id, "content": "mild"} for block in calls]
    turns = [{"role": "assistant", "content": first.content}, {"role": "user", "content": results}]
    last = create(model=NAME, max_tokens=500, messages=[*ASK, *turns], tools=[ANTHROPIC_TOOL])
    assert last.content[0].text == "It is mild and mild."
    assert last.stop_reason == "end_turn"


def test_messages_stream_says_what_the_whole_answer_says(anthropic_client):
    asked = {"model": NAME, "max_tokens": 500, "messages": ASK, "tools": [ANTHROPIC_TOOL]}
    whole = anthropic_client.messages.create(**asked)
    with anthropic_client.messages.stream(**asked) as stream:
        kinds = [event.type for event in stream]
        final = stream.get_final_message()
    assert kinds.count("input_json") > 4, "arguments come as they are generated"
    assert final.stop_reason == whole.stop_reason
    assert [(block.type, getattr(block, "input", None)) for block in final.content] == [
        (block.type, getattr(block, "input", None)) for block in whole.content
    ]
    assert final.usage.output_tokens == whole.usage.output_tokens


def test_messages_choices(anthropic_client, engine):
    create = anthropic_client.messages.create
    asked = {"model": NAME, "max_tokens": 500, "messages": ASK, "tools": [ANTHROPIC_TOOL]}
    create(**asked, tool_choice={"type": "any", "disable_parallel_tool_use": True})
    assert ([tool.name for tool in engine.guide.tools], engine.guide.parallel) == (["weather"], False)
    create(**asked, tool_choice={"type": "none"})
    assert engine.guide.tools == ()


def test_anthropic_errors(anthropic_client):
    hello = [{"role": "user", "content": "Hello"}]
    with pytest.raises(anthropic.BadRequestError, match="mcp_servers"):
        anthropic_client.messages.create(
            model=NAME, max_tokens=9, messages=hello, extra_body={"mcp_servers": [{"url": "x"}]}
        )
    with pytest.raises(anthropic.NotFoundError):
        anthropic_client.messages.create(model="claude", max_tokens=9, messages=hello)
    assert [each.id for each in anthropic_client.models.list()] == [NAME]


# --- the real model


@pytest.mark.model
def test_the_embedded_model_calls_a_tool_and_answers_by_a_schema(embedded):
    with serving(embedded) as url, ThreadPoolExecutor() as pool:
        client = openai.OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0, timeout=300)
        ask = [{"role": "user", "content": "What is the weather in Paris?"}]
        function = {**CHAT_TOOL["function"], "name": "get_weather", "description": "The current weather in a city."}
        offered = [{"type": "function", "function": function}]
        called = pool.submit(client.chat.completions.create, model=embedded.name, messages=ask, tools=offered)
        parsed = pool.submit(
            client.chat.completions.parse,
            model=embedded.name,
            messages=[{"role": "user", "content": "A trip of 3 days to Rome, as JSON."}],
            response_format=Trip,
        )
        choice = called.result().choices[0]
        assert choice.finish_reason == "tool_calls"
        assert json.loads(choice.message.tool_calls[0].function.arguments)["city"] == "Paris"
        assert parsed.result().choices[0].message.parsed.city == "Rome"
        other = anthropic.Anthropic(base_url=url, api_key="none", max_retries=0, timeout=300)
        with other.messages.stream(
            model=embedded.name,
            max_tokens=60,
            messages=ask,
            tools=[ANTHROPIC_TOOL],
            tool_choice={"type": "tool", "name": "weather"},
        ) as stream:
            final = stream.get_final_message()
        assert final.stop_reason == "tool_use"
        assert final.content[-1].input["city"] == "Paris"

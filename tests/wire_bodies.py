"""Hypothesis strategies for the bodies of requests, as clients of three APIs send them."""

import json
from functools import cache

from conversations import harmless_texts, names, scalars, texts
from hypothesis import strategies as st

words = texts.filter(bool)
wire_names = st.sampled_from(["f", "get_weather", "add-2", "Search_3"])
ids = st.integers(0, 10**6).map(lambda number: f"call_{number}")
schemas = st.fixed_dictionaries(
    {"type": st.just("object"), "properties": st.dictionaries(names, st.just({"type": "string"}), max_size=2)},
    optional={"required": st.lists(names, max_size=1), "additionalProperties": st.just(False)},
)


def _encodes(value):
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


def spelled(value):
    """JSON texts of a value, as several clients write them."""
    return st.sampled_from(
        [
            json.dumps(value),
            json.dumps(value, ensure_ascii=False),
            json.dumps(value, separators=(",", ":")),
            json.dumps(value, indent=1),
        ]
    )


@cache
def values_of(text):
    """Values of arguments, with such texts among them."""
    return st.recursive(
        scalars | text,
        lambda leaf: st.lists(leaf, max_size=3) | st.dictionaries(st.sampled_from("abc"), leaf, max_size=3),
        max_leaves=5,
    ).filter(_encodes)


@cache
def arguments(text):
    return st.dictionaries(st.sampled_from(["a", "b", "ü"]), values_of(text), max_size=3)


@st.composite
def _calls(draw, text):
    """Names, arguments and distinct ids of the calls of one turn."""
    given = draw(st.lists(ids, max_size=3, unique=True))
    return [(each, draw(wire_names), draw(arguments(text))) for each in given]


@st.composite
def openai_messages(draw, text=texts, parts=True):
    content = (
        text | st.lists(text.map(lambda t: {"type": "text", "text": t}), min_size=1, max_size=2) if parts else text
    )
    messages = []
    if draw(st.booleans()):
        messages.append({"role": draw(st.sampled_from(["system", "developer"])), "content": draw(content)})
    for _ in range(draw(st.integers(1, 3))):
        messages.append({"role": "user", "content": draw(content)})
        if draw(st.integers(0, 5)) == 0:
            messages[-1]["name"] = "ann"
        for _ in range(draw(st.integers(0, 2))):
            calls = draw(_calls(text))
            said = draw(text)
            message = {"role": "assistant", "content": said or (None if calls else "")}
            if draw(st.integers(0, 3)) == 0:
                message["reasoning_content"] = draw(text.filter(bool))
            if calls:
                message["tool_calls"] = [
                    {"id": each, "type": "function", "function": {"name": name, "arguments": draw(spelled(value))}}
                    for each, name, value in calls
                ]
            messages.append(message)
            messages += [
                {"role": "tool", "tool_call_id": each, "content": draw(content)}
                for each, _, _ in draw(st.permutations(calls))
            ]
    return messages


@st.composite
def openai_bodies(draw, text=texts, parts=True):
    offered = draw(st.lists(wire_names, max_size=3, unique=True))
    tools = [
        {"type": "function", "function": {"name": name, "description": draw(text), "parameters": draw(schemas)}}
        for name in offered
    ]
    choices = [st.sampled_from(["auto", "none", "required"])]
    if offered:
        chosen = st.sampled_from(offered).map(lambda name: {"type": "function", "function": {"name": name}})
        choices += [
            chosen,
            chosen.map(lambda tool: {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [tool]}}),
        ]
    extra = {
        "temperature": st.floats(0, 2),
        "top_p": st.floats(0, 1),
        "max_tokens": st.integers(1, 9),
        "max_completion_tokens": st.integers(1, 9),
        "seed": st.integers(0, 99),
        "stop": st.just("\n\n") | st.lists(words, min_size=1, max_size=2),
        "stream": st.booleans(),
        "stream_options": st.just({"include_usage": True}),
        "parallel_tool_calls": st.booleans(),
        "tool_choice": st.one_of(*choices),
        "response_format": st.sampled_from(
            [{"type": "text"}, {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "object"}}}]
        ),
        "user": st.just("u1"),
        "n": st.just(1),
        "metadata": st.just({"a": "b"}),
        "chat_template_kwargs": st.just({"enable_thinking": False}),
    }
    body = {"model": "m", "messages": draw(openai_messages(text, parts)), **({"tools": tools} if tools else {})}
    return {**body, **draw(st.fixed_dictionaries({}, optional=extra))}


@st.composite
def anthropic_bodies(draw, text=texts):
    block = words.map(lambda t: {"type": "text", "text": t})
    cached = words.map(lambda t: {"type": "text", "text": t, "cache_control": {"type": "ephemeral"}})
    messages = []
    results = []
    for _ in range(draw(st.integers(1, 3))):
        content = [*results, *draw(st.lists(block | cached, min_size=0 if results else 1, max_size=2))]
        if not results and draw(st.booleans()):
            content = draw(text)
        messages.append({"role": "user", "content": content})
        said = draw(st.lists(block, max_size=2))
        if draw(st.integers(0, 3)) == 0:
            said.insert(0, {"type": "thinking", "thinking": draw(text), "signature": "c2ln"})
        if draw(st.integers(0, 5)) == 0:
            said.insert(0, {"type": "redacted_thinking", "data": "b3BhcXVl"})
        calls = draw(_calls(text))
        for each, name, value in calls:
            said.insert(draw(st.integers(0, len(said))), {"type": "tool_use", "id": each, "name": name, "input": value})
        messages.append({"role": "assistant", "content": said or draw(words)})
        results = [
            {"type": "tool_result", "tool_use_id": each, "content": draw(text | st.lists(block, max_size=2)), **failed}
            for each, _, _ in draw(st.permutations(calls))
            for failed in [draw(st.sampled_from([{}, {"is_error": True}, {"is_error": False}]))]
        ]
    if results:
        messages.append({"role": "user", "content": results})
    offered = draw(st.lists(wire_names, max_size=3, unique=True))
    tools = [
        {
            "name": name,
            "description": draw(text),
            "input_schema": draw(schemas),
            **draw(st.sampled_from([{}, {"strict": True}, {"cache_control": {"type": "ephemeral"}}])),
        }
        for name in offered
    ]
    choices = [
        st.sampled_from([{"type": "auto"}, {"type": "any", "disable_parallel_tool_use": True}, {"type": "none"}])
    ]
    if offered:
        choices.append(st.sampled_from(offered).map(lambda name: {"type": "tool", "name": name}))
    extra = {
        "system": text | st.lists(block | cached, min_size=1, max_size=2),
        "temperature": st.floats(0, 1),
        "top_k": st.integers(1, 50),
        "stop_sequences": st.lists(words, min_size=1, max_size=2),
        "stream": st.booleans(),
        "thinking": st.just({"type": "enabled", "budget_tokens": 1024}),
        "tool_choice": st.one_of(*choices),
        "metadata": st.just({"user_id": "u"}),
        "output_config": st.just({"format": {"type": "json_schema", "schema": {"type": "object"}}, "effort": "low"}),
    }
    body = {"model": "m", "max_tokens": 9, "messages": messages, **({"tools": tools} if tools else {})}
    return {**body, **draw(st.fixed_dictionaries({}, optional=extra))}


@st.composite
def responses_bodies(draw, text=texts):
    items = []
    for number in range(draw(st.integers(1, 3))):
        part = {"type": "input_text", "text": draw(text)}
        message = {"role": "user", "content": draw(st.sampled_from([[part], part["text"]]))}
        items.append(draw(st.sampled_from([message, {"type": "message", **message}])))
        for turn in range(draw(st.integers(0, 2))):
            if draw(st.integers(0, 3)) == 0:
                summary = [{"type": "summary_text", "text": draw(words)}]
                items.append(
                    {"type": "reasoning", "id": f"rs_{number}{turn}", "summary": summary, "encrypted_content": "eA=="}
                )
            calls = draw(_calls(text))
            said = {"type": "output_text", "text": draw(text), "annotations": []}
            if not calls or draw(st.booleans()):
                items.append({"type": "message", "role": "assistant", "id": f"msg_{number}{turn}", "content": [said]})
            items += [
                {"type": "function_call", "call_id": each, "name": name, "arguments": draw(spelled(value))}
                for each, name, value in calls
            ]
            items += [
                {"type": "function_call_output", "call_id": each, "output": draw(text)}
                for each, _, _ in draw(st.permutations(calls))
            ]
    offered = draw(st.lists(wire_names, max_size=3, unique=True))
    tools = [
        {"type": "function", "name": name, "description": draw(text), "parameters": draw(schemas), "strict": strict}
        for name in offered
        for strict in [draw(st.booleans())]
    ]
    choices = [st.sampled_from(["auto", "none", "required"])]
    if offered:
        chosen = st.sampled_from(offered).map(lambda name: {"type": "function", "name": name})
        choices += [chosen, chosen.map(lambda tool: {"type": "allowed_tools", "mode": "required", "tools": [tool]})]
    extra = {
        "instructions": text,
        "max_output_tokens": st.integers(1, 9),
        "temperature": st.floats(0, 2),
        "stream": st.booleans(),
        "store": st.just(False),
        "include": st.just(["reasoning.encrypted_content"]),
        "parallel_tool_calls": st.booleans(),
        "tool_choice": st.one_of(*choices),
        "text": st.just({"format": {"type": "json_schema", "name": "x", "schema": {"type": "object"}}}),
        "reasoning": st.just({"effort": "low"}),
    }
    given = draw(text) if draw(st.integers(0, 5)) == 0 else items
    body = {"model": "m", "input": given, **({"tools": tools} if tools else {})}
    return {**body, **draw(st.fixed_dictionaries({}, optional=extra))}


BODIES = {"openai": openai_bodies(), "responses": responses_bodies(), "anthropic": anthropic_bodies()}
plain_bodies = openai_bodies(harmless_texts, parts=False)

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda leaf: st.lists(leaf, max_size=4) | st.dictionaries(st.text(max_size=5), leaf, max_size=4),
    max_leaves=8,
)


@st.composite
def mutated(draw, bodies):
    """A good body in which one value somewhere is replaced, removed or repeated."""
    body = json.loads(json.dumps(draw(bodies)))
    node, key = body, None
    while True:
        keys = list(node) if isinstance(node, dict) else list(range(len(node)))
        if not keys:
            break
        key = draw(st.sampled_from(keys))
        if not isinstance(node[key], (dict, list)) or draw(st.integers(0, 4)) == 0:
            break
        node = node[key]
    if key is None or not (key in node if isinstance(node, dict) else isinstance(key, int) and key < len(node)):
        return draw(json_values)
    how = draw(st.integers(0, 3))
    if how == 0:
        del node[key]
    elif how == 1 and isinstance(node, list):
        node.append(node[key])
    else:
        node[key] = draw(
            json_values | st.sampled_from(["auto", "tool", "user", "function", "text", "assistant", [], {}])
        )
    return body

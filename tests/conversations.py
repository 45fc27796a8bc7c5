"""Hypothesis strategies for conversations and tools, in OpenAI-style dicts."""

from hypothesis import strategies as st

# What trips renderers: white space at the ends, markup, other alphabets, what JSON writers like to escape.
CONTROL = [
    *("<|im_start|>", "<|im_end|>", "<|endoftext|>", "<tool_call>", "</tool_call>"),
    *("<tool_response>", "</tool_response>", "<think>", "</think>"),
]
_HARMLESS = [
    *("Hello", " ", "\n", "\n\n", "\t", "é", "计算", "🙂", "42", "None", "\\", "{", "}", "{tools}"),
    *("<b>&amp;'\"</b>", "<function=f>", "</parameter>"),
]
_PIECES = [*_HARMLESS, *CONTROL]

texts = st.one_of(st.lists(st.sampled_from(_PIECES), max_size=6).map("".join), st.text(max_size=12))
harmless_texts = st.lists(st.sampled_from(_HARMLESS), max_size=6).map("".join)
names = st.sampled_from(["f", "get_weather", "a.b-c", "名字"])
scalars = st.none() | st.booleans() | st.integers(-(10**20), 10**20) | st.floats(allow_nan=False, allow_infinity=False)


def values(text):
    """Any JSON value."""
    inner = st.lists
    return st.recursive(
        scalars | text,
        lambda leaf: inner(leaf, max_size=3) | st.dictionaries(st.sampled_from("abc"), leaf, max_size=3),
        max_leaves=6,
    )


def _schemas(text):
    fields = {
        "type": st.sampled_from(["string", "integer", ["boolean", "null"]]),
        "description": text,
        "default": values(text),
        "enum": st.lists(text, max_size=2),
        "items": st.just({"type": "string"}),
    }
    return st.fixed_dictionaries({}, optional=fields)


def tools(text=texts):
    """A tool, wrapped as OpenAI does it or bare."""
    parameters = st.fixed_dictionaries(
        {"type": st.just("object"), "properties": st.dictionaries(names, _schemas(text), max_size=3)},
        optional={"required": st.lists(names, max_size=2), "additionalProperties": st.just(False)},
    )
    bare = st.fixed_dictionaries(
        {"name": names}, optional={"description": text, "parameters": parameters, "strict": st.just(True)}
    )
    return bare.map(lambda function: {"type": "function", "function": function}) | bare


@st.composite
def conversations(draw, text=texts):
    """Messages in which every result has its call and a user has spoken before any answer."""
    messages = []
    if draw(st.booleans()):
        messages.append({"role": "system", "content": draw(text)})
    for _ in range(draw(st.integers(1, 3))):
        messages.append({"role": "user", "content": draw(text)})
        for _ in range(draw(st.integers(0, 3))):
            calls = draw(st.lists(st.tuples(names, st.dictionaries(names, values(text), max_size=3)), max_size=3))
            message = {"role": "assistant", "content": draw(text)}
            if draw(st.booleans()):
                message["reasoning_content"] = draw(text.filter(bool))
            if calls:
                message["tool_calls"] = [
                    {"type": "function", "function": {"name": name, "arguments": arguments}}
                    for name, arguments in calls
                ]
            messages.append(message)
            messages += [{"role": "tool", "content": draw(text)} for _ in calls]
    return messages


# Per family, the options that its template knows.
OPTIONS = {
    "qwen2.5": [{}],
    "qwq": [{}],
    "qwen3": [{}, {"enable_thinking": False}, {"enable_thinking": True}],
    "qwen3-coder": [{}],
    "qwen3.8": [
        {},
        {"enable_thinking": False},
        {"preserve_thinking": False},
        {"reasoning_effort": "low"},
        {"reasoning_effort": "medium"},
        {"enable_thinking": False, "preserve_thinking": False},
    ],
}

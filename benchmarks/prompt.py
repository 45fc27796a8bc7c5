"""What a prompt costs, beside transformers' apply_chat_template: 10, 100 and 1,000 messages with 50 tools.

    python benchmarks/prompt.py [FOLDER]

FOLDER is a model with a tokenizer and a chat template; without it, the embedded model. ``next`` is what a
chat pays: one more turn on the prompt that is there. ``whole`` is a prompt from nothing, of a conversation
not seen before. apply_chat_template always makes the whole. Milliseconds, the best of several.
"""

from __future__ import annotations

import itertools
import random
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

from qwen_tools.commands.render import family_of, load_tokenizer
from qwen_tools.messages import Message, as_messages
from qwen_tools.prompt import Prompt, encode, render, segments

_WORDS = [
    "weather",
    "Paris",
    "light",
    "rain",
    "umbrella",
    "tomorrow",
    "north",
    "wind",
    "the",
    "is",
    "of",
    "42",
]


def _sentence(source: random.Random, words: int = 30) -> str:
    return " ".join(source.choices(_WORDS, k=words)) + "."


def _tools(source: random.Random) -> list[dict[str, Any]]:
    properties = {
        "query": {"type": "string", "description": _sentence(source, 8)},
        "limit": {"type": "integer", "minimum": 1, "default": 10},
        "tags": {"type": "array", "items": {"type": "string"}},
    }
    return [
        {
            "type": "function",
            "function": {
                "name": f"tool_{number}",
                "description": _sentence(source),
                "parameters": {"type": "object", "properties": properties, "required": ["query"]},
            },
        }
        for number in range(50)
    ]


def _conversation(source: random.Random, length: int) -> list[dict[str, Any]]:
    def turns() -> Iterator[dict[str, Any]]:
        while True:
            yield {"role": "user", "content": _sentence(source)}
            function = {"name": "tool_3", "arguments": {"query": _sentence(source, 4), "limit": 3}}
            yield {
                "role": "assistant",
                "content": "",
                "tool_calls": [{"type": "function", "function": function}],
            }
            yield {"role": "tool", "content": _sentence(source)}
            yield {"role": "assistant", "content": _sentence(source)}

    return list(itertools.islice(turns(), length))


def _best(function: Callable[[Any], object], inputs: list[Any]) -> float:
    """The shortest time in milliseconds over the inputs."""
    times = []
    for value in inputs:
        start = time.perf_counter()
        function(value)
        times.append(time.perf_counter() - start)
    return min(times) * 1000


def main() -> None:
    """Print the table; fails where we are slower than asked."""
    tokenizer = load_tokenizer(sys.argv[1] if len(sys.argv) > 1 else "embedded")
    family = family_of(tokenizer)
    source = random.Random(7)
    tools = _tools(source)

    def official(conversation: Any, tokenize: bool) -> Any:
        return tokenizer.apply_chat_template(
            conversation, tools=tools, tokenize=tokenize, add_generation_prompt=True, return_dict=False
        )

    print(f"family {family}, 50 tools, milliseconds (best of several)\n")
    print("messages          official      whole            next")
    for length in (10, 100, 1000):
        inputs = [_conversation(source, length) for _ in range(4 if length == 1000 else 11)]
        check = inputs.pop()
        assert render(check, tools, family) == official(check, tokenize=False)
        assert encode(segments(check, tools, family), tokenizer) == official(check, tokenize=True)
        prompt = Prompt(tools, family)
        prompt.append(as_messages(check))
        prompt.ids(tokenizer)
        questions = [Message("user", _sentence(source)) for _ in range(20)]

        def next_text(question: Message, prompt: Prompt = prompt) -> str:
            prompt.append([question])
            return prompt.text

        def next_ids(question: Message, prompt: Prompt = prompt) -> list[int]:
            prompt.append([question])
            return prompt.ids(tokenizer)

        for what, theirs, whole, following in (
            (
                "text",
                _best(lambda conversation: official(conversation, tokenize=False), inputs),
                _best(lambda conversation: render(conversation, tools, family), inputs),
                _best(next_text, questions[:10]),
            ),
            (
                "ids",
                _best(lambda conversation: official(conversation, tokenize=True), inputs),
                _best(lambda conversation: encode(segments(conversation, tools, family), tokenizer), inputs),
                _best(next_ids, questions[10:]),
            ),
        ):
            ours = f"{whole:10.2f} {theirs / whole:6.1f}x {following:10.3f} {theirs / following:6.0f}x"
            print(f"{length:>8}  {what:<5} {theirs:10.2f} {ours}")
            assert theirs / following >= 10, "the next prompt costs too much"
            assert what == "text" or theirs >= whole, "ids are slower than the official ones"


if __name__ == "__main__":
    main()

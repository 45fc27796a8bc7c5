"""What a conversation loses on its way into another format. One place says what each format cannot hold.

``lost`` is part of what was said or asked for, and gone; ``changed`` is written in another way, or is no part of the
conversation.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from ..messages import Message, ToolCall, as_messages
from ..prompt import CONTROL, segments
from .answer import is_cut
from .names import Names
from .request import Request, function_of

# The formats, and whether their assistant's text can stand between and behind calls.
FORMATS = ("qwen", "openai", "responses", "anthropic")
_ONE_TEXT = ("qwen", "openai")

# Settings that a format has no word for. A raw prompt has none at all.
_SETTINGS = {
    "openai": (),
    "responses": ("top_k", "seed", "stop"),
    "anthropic": ("seed",),
    "qwen": ("temperature", "top_p", "top_k", "seed", "stop"),
}


class Losses(NamedTuple):
    """One line each; the first word says where."""

    lost: list[str]
    changed: list[str]


def of_request(request: Request, source: str, target: str, family: str = "qwen3") -> Losses:
    """What a request that was read from ``source`` loses in ``target``."""
    if source == target:
        return Losses([], [])
    lost = list(request.lost)
    changed: list[str] = []
    lost += [
        f"settings.{key}: {target} cannot say it"
        for key in _SETTINGS[target]
        if getattr(request.settings, key) not in (None, ())
    ]
    if request.allowed is not None and target in ("anthropic", "qwen"):
        lost.append(f"tool_choice: {target} cannot limit the choice to some of the tools")
    if target == "anthropic" and request.settings.max_new_tokens is None:
        changed.append("settings.max_new_tokens: a limit is demanded and was added")
    if target == "qwen":
        lost += _of_raw_prompt(request, family)
        if request.model:
            changed.append("model: left out; a prompt does not name its model")
        if request.settings.max_new_tokens is not None:
            changed.append("settings.max_new_tokens: left out; a prompt does not say how long its answer may be")
    else:
        table = Names([tool.name for tool in request.tools] + [call.name for call in _calls(request)]).table
        changed += [
            f"names: {own!r} is called {wire!r}; metadata.tool_names has the way back" for wire, own in table.items()
        ]
    lost += [
        f"tools.{tool.name}.{key}: {target} has no such field"
        for tool in request.tools
        for key, value in function_of(tool).items()
        if target == "anthropic" and key not in ("name", "description", "parameters", "strict") and value is not None
    ]
    systems = [index for index, message in enumerate(request.messages) if message.role == "system"]
    if target == "anthropic" and systems and systems != [0]:
        lost.append("messages: several or later system texts become one at the beginning")
    roles = [message.role for message in request.messages]
    if target == "responses":
        lost += [
            f"messages[{index}]: becomes one with the answer before it"
            for index in range(1, len(roles))
            if roles[index - 1] == roles[index] == "assistant"
        ]
    for index, message in enumerate(request.messages):
        more = of_message(message, source, target, f"messages[{index}]")
        lost += more.lost
        changed += more.changed
        lost += [
            f"messages[{index}].tool_calls[{number}]: an attempt that gave no call is written as a call of invalid_call"
            for number, call in enumerate(message.calls)
            if not call.name
        ]
    return Losses(lost, changed)


def of_answer(message: Message, source: str, target: str) -> Losses:
    """What an answer loses; attempts that gave no call are the text that they were, if they are whole."""
    lost, changed = of_message(message, source, target)
    # A thought in an answer may be shown to a client; only a history must not hold it.
    lost = [line for line in lost if ".reasoning:" not in line]
    for number, call in enumerate(message.calls):
        if is_cut(call):
            lost.append(f"message.tool_calls[{number}]: a call that was cut off")
        elif not call.name:
            changed.append(f"message.tool_calls[{number}]: an attempt that gave no call is text")
    if message.finish == "content_filter" and target == "qwen":
        lost.append("finish: raw text does not say that a filter ended the answer")
    if message.finish == "length" and target == "qwen":
        lost.append("finish: raw text does not say that the answer was cut")
    return Losses(lost, changed)


def of_message(message: Message, source: str, target: str, path: str = "message") -> Losses:
    """What one message loses."""
    if source == target:
        return Losses([], [])
    lost: list[str] = []
    changed: list[str] = []
    if message.is_error and target != "anthropic":
        lost.append(f"{path}.is_error: only anthropic marks a failed call")
    if message.name is not None and target != "openai":
        lost.append(f"{path}.name: only openai names who speaks")
    if message.reasoning and target in ("anthropic", "responses"):
        lost.append(f"{path}.reasoning: {target} takes back only thoughts that it gave itself")
    if target in _ONE_TEXT and message.raw is None and any(_inside(call, message) for call in message.calls):
        lost.append(f"{path}.content: text between or behind calls moves in front of them")
    if message.calls and target == "qwen" and any(call.id for call in message.calls):
        changed.append(f"{path}.tool_calls: ids are left out; results belong to calls by position")
    for number, call in enumerate(message.calls):
        place = f"{path}.tool_calls[{number}]"
        if not call.name:
            continue  # a history and an answer say it in different ways
        if target == "anthropic" and not isinstance(call.arguments, Mapping):
            lost.append(f"{place}.arguments: anthropic takes only an object")
        elif target in ("anthropic", "qwen") and _spelled(call):
            changed.append(f"{place}.arguments: the same value, spelled anew")
    return Losses(lost, changed)


def _inside(call: ToolCall, message: Message) -> bool:
    return call.at is not None and call.at < len(message.content)


def _spelled(call: ToolCall) -> bool:
    return call.arguments_text is not None and call.arguments_json != json.dumps(call.arguments, ensure_ascii=False)


def _calls(request: Request) -> Iterator[ToolCall]:
    for message in request.messages:
        yield from message.calls


def _of_raw_prompt(request: Request, family: str) -> Iterator[str]:
    """A raw prompt holds messages and tools, and nothing else."""
    if request.tool_choice not in ("auto", "none"):
        yield f"tool_choice: {request.tool_choice} is nothing a prompt can say"
    if not request.parallel_calls:
        yield "parallel_calls: a prompt cannot limit the calls of an answer"
    if request.response_schema is not None:
        yield "response_schema: a prompt cannot say it"
    tools: list[Any] = [] if request.tool_choice == "none" else request.tools
    parts = segments(as_messages(request.messages), tools, family)
    thoughts = sum(segment.kind == "reasoning" for segment in parts)
    given = sum(bool(message.reasoning) and message.raw is None for message in request.messages)
    if given > thoughts:
        yield f"reasoning: {family} leaves {given - thoughts} of {given} thoughts out of the prompt"
    false = sum(len(CONTROL.findall(segment.text)) for segment in parts if not segment.trusted)
    if false:
        yield f"text: {false} control tokens in somebody's text look like structure in raw text"

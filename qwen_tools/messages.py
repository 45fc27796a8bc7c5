"""The values every layer speaks: messages, calls and what was wrong with them.

They hold data only. Reading and writing OpenAI-style dictionaries is here too, because every
entrance (a file, an API client, a Python caller) needs the same reading. How a message is
written for a model is not known here.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from .errors import UserError


@dataclass(frozen=True)
class Problem:
    """Something wrong with one attempt at a call.

    ``kind`` is one of ``invalid_json``, ``unterminated``, ``missing_name``,
    ``unknown_tool``, ``schema``, ``too_large``. ``span`` counts characters of the
    answer, end exclusive; ``raw`` is that stretch of the answer.
    """

    kind: str
    message: str
    span: tuple[int, int]
    raw: str


@dataclass(frozen=True)
class ToolCall:
    """One whole call that the model wrote.

    ``raw`` and ``span`` say where it stood in the answer; ``repairs`` names what
    had to be mended to read it; ``problems`` says why it must not run as it is.
    ``id`` exists only for calls that came through an API format: raw tags pair
    calls and results by position.
    """

    name: str
    arguments: Any
    raw: str = ""
    span: tuple[int, int] = (0, 0)
    repairs: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()
    id: str | None = None


@dataclass(frozen=True)
class Message:
    r"""One message of a conversation.

    ``role`` is ``system``, ``user``, ``assistant`` or ``tool``. An assistant message that a
    local model generated keeps ``prefill`` (what the generation prompt had opened, for example
    ``"<think>\n"``), ``raw`` (the text generated after it, without the end-of-turn token) and
    ``token_ids`` (the sampled ids of ``raw``, also without the end-of-turn id), so that it is
    never rendered again from its parts. ``finish`` is ``stop``, ``length`` or ``interrupted``. A tool message whose
    result was too long for the model keeps it whole in ``full``, which no model reads.
    """

    role: str
    content: str = ""
    reasoning: str = ""
    calls: tuple[ToolCall, ...] = ()
    call_id: str | None = None
    name: str | None = None
    prefill: str = ""
    raw: str | None = None
    token_ids: tuple[int, ...] | None = None
    finish: str = "stop"
    full: str = ""

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Message:
        """Read an OpenAI-style message; keys that say nothing to a model are ignored.

        ``content`` may be text, null, missing or a list of text parts; ``arguments`` an object or a
        JSON string of one. Raises UserError for what no raw prompt can hold (an image, an unknown role).
        """
        if not isinstance(data, Mapping):
            raise UserError(f"must be an object with role and content, not {_named(data)}")
        role = data.get("role")
        if role == "developer":  # OpenAI's newer name for the same thing
            role = "system"
        if role not in ("system", "user", "assistant", "tool"):
            raise UserError(f"unknown role {role!r}: use system, user, assistant or tool")
        return cls(
            role,
            _text(data.get("content")),
            # Local servers disagree on the name of this key.
            _text(data.get("reasoning_content") or data.get("reasoning")) if role == "assistant" else "",
            tuple(_call(call) for call in _list(data.get("tool_calls"), "tool_calls")) if role == "assistant" else (),
            call_id=_optional_text(data.get("tool_call_id"), "tool_call_id") if role == "tool" else None,
            name=_optional_text(data.get("name"), "name"),
        )

    def to_dict(self) -> dict[str, Any]:
        """The message as an OpenAI-style dict; ids stand in it only where they are known (see as_dicts)."""
        result: dict[str, Any] = {"role": self.role, "content": self.content}
        if self.reasoning:
            result["reasoning_content"] = self.reasoning
        if self.calls:
            result["content"] = self.content or None
            result["tool_calls"] = [
                {
                    **({} if call.id is None else {"id": call.id}),
                    "type": "function",
                    "function": {
                        "name": call.name,
                        "arguments": json.dumps(call.arguments, ensure_ascii=False),
                    },
                }
                for call in self.calls
            ]
        if self.call_id is not None:
            result["tool_call_id"] = self.call_id
        if self.name is not None:
            result["name"] = self.name
        return result


def as_messages(messages: Iterable[Message | Mapping[str, Any]]) -> list[Message]:
    """Messages from Messages and OpenAI-style dicts, every result in the order of the calls it answers.

    Raises UserError naming the message, counted from 1, that cannot be part of a raw prompt: there
    calls and results pair by position, so a result needs its call in the assistant message before it.
    """
    read = []
    for number, message in enumerate(messages, start=1):
        try:
            read.append(message if isinstance(message, Message) else Message.from_dict(message))
        except UserError as error:
            raise UserError(f"message {number}: {error}") from error
    paired: list[Message] = []
    while len(paired) < len(read):
        start = end = len(paired)
        while end < len(read) and read[end].role == "tool":
            end += 1
        if end > start:
            calls = read[start - 1].calls if start else ()
            paired += _in_call_order(calls, read[start:end], first_number=start + 1)
        else:
            paired.append(read[start])
    return paired


def as_dicts(messages: Iterable[Message]) -> list[dict[str, Any]]:
    """OpenAI-style dicts in which every call has an id and every result names it.

    Ids that are missing are made from positions, ``call_{message}_{call}`` counted from 1, so that the
    same conversation always gets the same ids.
    """
    result: list[dict[str, Any]] = []
    open_ids: Iterator[str | None] = iter(())
    for number, message in enumerate(messages, start=1):
        if message.role == "tool":
            message = replace(message, call_id=message.call_id or next(open_ids, None))
        else:
            calls = tuple(
                replace(call, id=call.id or f"call_{number}_{index}")
                for index, call in enumerate(message.calls, start=1)
            )
            open_ids = iter([call.id for call in calls])
            message = replace(message, calls=calls)
        result.append(message.to_dict())
    return result


def _in_call_order(calls: tuple[ToolCall, ...], results: list[Message], first_number: int) -> list[Message]:
    """The results of one turn, sorted by their calls where both sides have ids."""
    if len(results) > len(calls):
        raise UserError(
            f"message {first_number + len(calls)}: a tool result without a call; "
            f"the assistant message before makes {len(calls)}"
        )
    if not all(call.id for call in calls) or not all(result.call_id for result in results):
        return results
    waiting = [call.id for call in calls]
    order: dict[int, Message] = {}
    for number, result in enumerate(results, start=first_number):
        if result.call_id not in waiting:
            raise UserError(f"message {number}: no call before it waits for a result with id {result.call_id!r}")
        index = waiting.index(result.call_id)
        waiting[index] = None
        order[index] = result
    for index in range(len(results)):
        if index not in order:
            raise UserError(
                f"message {first_number}: the result of call {calls[index].id!r} is missing, "
                "so the model would take a later result for it"
            )
    return [order[index] for index in range(len(results))]


def _text(content: Any) -> str:
    """The text of a content value."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "".join(_part(part) for part in content)
    raise UserError(f"content must be text or a list of text parts, not {_named(content)}")


def _part(part: Any) -> str:
    if isinstance(part, str):
        return part
    if not isinstance(part, Mapping):
        raise UserError(f"a content part must be an object with type and text, not {_named(part)}")
    text = part.get("text")
    if part.get("type", "text") in ("text", "input_text", "output_text") and isinstance(text, str):
        return text
    raise UserError(f"a content part of type {part.get('type')!r} cannot be written as text: send text parts only")


def _call(data: Any) -> ToolCall:
    """A call, also where it is not wrapped in ``function``."""
    function = data.get("function", data) if isinstance(data, Mapping) else None
    if not isinstance(function, Mapping) or not isinstance(function.get("name"), str):
        raise UserError("a tool call must be an object with a function that has a name")
    name = function["name"]
    return ToolCall(name, _arguments(name, function.get("arguments")), id=_optional_text(data.get("id"), "id"))


def _arguments(name: str, arguments: Any) -> Any:
    """The arguments as a value. A client may send them as JSON text, or as JSON text of JSON text."""
    for _ in range(2):
        if not isinstance(arguments, str) or not arguments.strip():
            break
        try:
            arguments = json.loads(arguments, strict=False)
        except (ValueError, RecursionError) as error:
            raise UserError(f"the arguments of the call to {name!r} are not JSON: {error}") from error
    return {} if arguments is None or arguments == "" else arguments


def _list(value: Any, key: str) -> list[Any]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise UserError(f"{key} must be a list, not {_named(value)}")
    return value


def _optional_text(value: Any, key: str) -> str | None:
    if value is None or isinstance(value, str):
        return value
    raise UserError(f"{key} must be text, not {_named(value)}")


def _named(value: Any) -> str:
    """How JSON calls the type of a value."""
    if isinstance(value, bool):
        return "a boolean"
    names = {
        dict: "an object",
        list: "a list",
        str: "text",
        int: "a number",
        float: "a number",
        type(None): "null",
    }
    return names.get(type(value), type(value).__name__)

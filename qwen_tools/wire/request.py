"""A request to a chat API in neutral form, and what the formats' readers and writers share."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ..fields import Fields, WireError
from ..messages import Message, MessageError, ToolCall, as_messages, with_ids
from ..tools import Tool
from .names import Names

# The ids that every API takes for a call.
_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")


@dataclass(frozen=True)
class Sampling:
    """How the answer is to be generated; None is the model's own default. ``stop`` are texts that end the answer and
    are not part of it.
    """

    max_new_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    seed: int | None = None
    stop: tuple[str, ...] = ()


@dataclass(frozen=True)
class Request:
    """What a client asks for, whatever the format.

    ``tool_choice`` is ``auto``, ``none``, ``required`` or the name of a tool; ``allowed`` are the names that it is
    restricted to, or None. ``response_schema`` is a JSON Schema of the answer. ``lost`` names the fields that only the
    format it came in can say. ``meta`` keeps, by the name of that format, the body without its messages, so that a
    request goes back into its own format unchanged.
    """

    messages: list[Message]
    tools: list[Tool] = field(default_factory=list)
    tool_choice: str = "auto"
    allowed: tuple[str, ...] | None = None
    parallel_calls: bool = True
    settings: Sampling = field(default_factory=Sampling)
    stream: bool = False
    include_usage: bool = False
    response_schema: Mapping[str, Any] | None = None
    model: str = ""
    lost: list[str] = field(default_factory=list, compare=False)
    meta: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)


def paired(messages: list[Message], paths: list[str]) -> list[Message]:
    """The messages, every result in the order of its calls; ``paths`` say where each came from.

    Raises WireError for a result without a call, or a call that the conversation goes on without.
    """
    try:
        ordered = as_messages(messages)
    except MessageError as error:
        raise WireError(paths[error.number - 1], error.reason) from error
    for index, message in enumerate(ordered):
        if not message.calls:
            continue
        results = 0
        while index + results + 1 < len(ordered) and ordered[index + results + 1].role == "tool":
            results += 1
        if results < len(message.calls) and index + results + 1 < len(ordered):
            missing = message.calls[results]
            label = missing.id or f"number {results + 1} ({missing.name})"
            raise WireError(paths[index], f"call {label} has no result, and the conversation goes on")
    return messages


def sendable(request: Request, prefix: str) -> tuple[list[Message], Names]:
    """The messages as an API takes them: with ids (``with_ids``), results in order, names in its alphabet.

    Raises WireError for a call that the conversation goes on without, which no API takes.
    """
    messages = as_messages(request.messages)
    paired(messages, [f"messages[{index}]" for index in range(len(messages))])
    names = Names([tool.name for tool in request.tools] + [call.name for each in messages for call in each.calls])
    return with_ids([_named(message, names) for message in messages], prefix, _ID), names


def _named(message: Message, names: Names) -> Message:
    if not message.calls:
        return message
    return replace(message, calls=tuple(_sent(call, names) for call in message.calls))


def _sent(call: ToolCall, names: Names) -> ToolCall:
    """A call under the name that goes over the wire. An attempt that gave no call has no name and no arguments; an
    API wants both.
    """
    if call.name:
        return replace(call, name=names.wire(call.name))
    return replace(call, name="invalid_call", arguments={"raw": call.raw}, arguments_text=None)


def tool_of(name: str, description: str | None, parameters: Any, path: str, **more: Any) -> Tool:
    """A tool from its parts, with the dict that prompts are written from. Raises WireError for a wrong schema."""
    function: dict[str, Any] = {"name": name}
    if description is not None:
        function["description"] = description
    if parameters is not None:
        if not isinstance(parameters, Mapping):
            raise WireError(path, "must be a JSON Schema object")
        function["parameters"] = parameters
    source = {"type": "function", "function": {**function, **more}}
    return Tool(name, description or "", parameters or {}, source=source)


def function_of(tool: Tool) -> dict[str, Any]:
    """A tool's function object, in the key order of its source."""
    data = tool.to_dict()
    return dict(data.get("function", data))


def distinct(tools: Iterable[tuple[str, Tool]]) -> list[Tool]:
    """The tools, each of which stands at a place. Raises WireError for two of one name."""
    seen: set[str] = set()
    result = []
    for path, tool in tools:
        if tool.name in seen:
            raise WireError(path, f"two tools have the name {tool.name!r}")
        seen.add(tool.name)
        result.append(tool)
    return result


def chosen(names: Iterable[str], tools: list[Tool], path: str) -> tuple[str, ...]:
    """The names of tools that are offered. Raises WireError for any other."""
    chosen, offered = tuple(names), {tool.name for tool in tools}
    for name in chosen:
        if name not in offered:
            raise WireError(path, f"no tool {name!r} is offered")
    return chosen


def kept_tools(request: Request, format: str, read: Any, write: Any) -> list[Any]:  # noqa: A002 - what it is
    """The tools as a format writes them; one that came in this format and was not changed stays as it was."""
    before: dict[str, Any] = {}
    for data in _as_was(request, format).get("tools") or ():
        before[read(data, "").name] = data
    return [
        before[tool.name] if tool.name in before and read(before[tool.name], "") == tool else write(tool)
        for tool in request.tools
    ]


def kept_head(request: Request, format: str, read_head: Any, head: dict[str, Any]) -> dict[str, Any]:  # noqa: A002
    """What a body says beside messages and tools: as it was where the request came in this format and nothing of
    it was changed, else ``head`` and the fields that only this format has.
    """
    before = _as_was(request, format)
    if not before:
        return head
    unread: list[str] = []
    same = replace(request, **read_head(Fields(before), request.tools, unread)) == request
    own = {key: value for key, value in before.items() if any(f"{path}.".startswith(f"{key}.") for path in unread)}
    kept = before if same else {**own, **head}
    return {key: value for key, value in kept.items() if key != "tools"}


def _as_was(request: Request, format: str) -> Mapping[str, Any]:  # noqa: A002
    before: Mapping[str, Any] = request.meta.get(format) or {}
    return before


def in_order(body: Mapping[str, Any], *first: str) -> dict[str, Any]:
    """A body with the keys that people look for in front."""
    return {key: body[key] for key in (*first, *body) if key in body}


def table_of(body: Fields) -> dict[str, str]:
    """The names of tools that ``write_request`` changed and noted in the body's metadata: changed -> own."""
    noted = body.get("metadata")
    text = noted.get(NAMES) if isinstance(noted, Mapping) else None
    if not isinstance(text, str):
        return {}
    try:
        table = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    if not isinstance(table, dict) or not all(isinstance(own, str) and own for own in table.values()):
        return {}
    return table


def own_names(message: Message, own: Mapping[str, str]) -> Message:
    """The message with its calls under their own names."""
    if not own or not message.calls:
        return message
    return replace(message, calls=tuple(replace(call, name=own.get(call.name, call.name)) for call in message.calls))


def own_tools(tools: list[Tool], own: Mapping[str, str]) -> list[Tool]:
    """The tools under their own names."""
    if not own:
        return tools
    renamed = [{**function_of(tool), "name": own.get(tool.name, tool.name)} for tool in tools]
    return [
        Tool.from_dict({"type": "function", "function": function}) if tool.name in own else tool
        for tool, function in zip(tools, renamed, strict=True)
    ]


# Where the table of changed names stands in the metadata of a request.
NAMES = "tool_names"

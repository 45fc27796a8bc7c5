"""The values every layer speaks: messages, calls and what was wrong with them.

They hold data only. Reading and writing OpenAI-style dictionaries is here too, because every
entrance (a file, an API client, a Python caller) needs the same reading. How a message is
written for a model is not known here.
"""

from __future__ import annotations

import json
import re
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from .coerce import loads
from .errors import UserError
from .fields import Fields, WireError, kind, short


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
    calls and results by position. ``at`` is how many characters of the message's content stand in front of the
    call (None: all). ``arguments_text`` is the JSON text in which the arguments were written, where it is known; who
    needs a text asks ``arguments_json``.
    """

    name: str
    arguments: Any
    raw: str = ""
    span: tuple[int, int] = (0, 0)
    repairs: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()
    id: str | None = None
    at: int | None = field(default=None, compare=False)
    arguments_text: str | None = field(default=None, repr=False, compare=False)

    @property
    def arguments_json(self) -> str:
        """The arguments as JSON text, byte for byte as they were written where that text still holds."""
        if self.arguments_text is not None and _holds(self.arguments_text, self.arguments):
            return self.arguments_text
        if isinstance(self.arguments, str) and any(found.kind == "invalid_json" for found in self.problems):
            return self.arguments  # no JSON, and the model that wrote it is shown what it wrote
        return json.dumps(self.arguments, ensure_ascii=False)


@dataclass(frozen=True)
class Message:
    r"""One message of a conversation.

    ``role`` is ``system``, ``user``, ``assistant`` or ``tool``. An assistant message that a
    local model generated keeps ``prefill`` (what the generation prompt had opened, for example
    ``"<think>\n"``), ``raw`` (the text generated after it, without the end-of-turn token) and
    ``token_ids`` (the sampled ids of ``raw``, also without the end-of-turn id), so that it is
    never rendered again from its parts. ``finish`` is ``stop``, ``length`` or ``interrupted``. A tool message whose
    result was too long for the model keeps it whole in ``full``, which no model reads; it has ``is_error`` when its
    content says that the call failed. ``meta`` keeps, by the name of an API format, the very form in which a message
    came through it, for what our fields cannot say (signed thoughts).
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
    is_error: bool = False
    meta: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def from_dict(cls, data: Any, path: str = "") -> Message:
        """Read an OpenAI-style message that stands at ``path``; keys that say nothing to a model are ignored.

        ``content`` may be text, null, missing or a list of text parts; ``arguments`` an object or a
        JSON string of one. A string that is no JSON is kept as it is, and the call has the problem
        ``invalid_json``. Raises WireError naming the place of what no raw prompt can hold (an image, an unknown role).
        """
        fields = Fields(data, path)
        role = fields.one_of("role", ("system", "developer", "user", "assistant", "tool"))
        if role == "developer":  # OpenAI's newer name for the same thing
            role = "system"
        message = cls(role, text_of(fields.get("content"), fields.at("content")), name=fields.text("name"))
        if role == "tool":
            return replace(message, call_id=fields.text("tool_call_id"))
        if role != "assistant":
            return message
        # Local servers disagree on the name of this key.
        thought = "reasoning_content" if fields.get("reasoning_content") else "reasoning"
        return replace(
            message,
            reasoning=text_of(fields.get(thought), fields.at(thought)),
            calls=tuple(_call(call, place) for place, call in fields.items("tool_calls")),
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
                        "arguments": call.arguments_json,
                    },
                }
                for call in self.calls
            ]
        if self.call_id is not None:
            result["tool_call_id"] = self.call_id
        if self.name is not None:
            result["name"] = self.name
        return result


class MessageError(UserError):
    """A message cannot be part of the conversation; ``number`` counts from 1."""

    def __init__(self, number: int, reason: str) -> None:
        super().__init__(f"message {number}: {reason}")
        self.number = number
        self.reason = reason


def as_messages(messages: Iterable[Message | Mapping[str, Any]]) -> list[Message]:
    """Messages from Messages and OpenAI-style dicts, every result in the order of the calls it answers.

    Raises MessageError naming the message that cannot be part of a raw prompt: there
    calls and results pair by position, so a result needs its call in the assistant message before it.
    """
    read = []
    for number, message in enumerate(messages, start=1):
        try:
            read.append(message if isinstance(message, Message) else Message.from_dict(message))
        except UserError as error:
            raise MessageError(number, str(error)) from error
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


def with_ids(
    messages: Iterable[Message], prefix: str = "call", allowed: re.Pattern[str] = re.compile(r"(?s).+")
) -> list[Message]:
    """The messages with an id for every call, which its result names.

    Ids that are missing, that stand twice in a turn or that are not ``allowed`` are made from positions,
    ``PREFIX_{message}_{call}`` counted from 1, so that the same conversation always gets the same ids. Results
    that name no call of the turn before them pair by position.
    """
    result: list[Message] = []
    renamed: dict[str | None, str] = {}
    waiting: OrderedDict[str, str | None] = OrderedDict()  # ids of calls without a result, and what they were before
    messages = list(messages)
    given = {call.id for message in messages for call in message.calls}
    for number, message in enumerate(messages, start=1):
        if message.role == "tool":
            name = renamed.pop(message.call_id, None) or next(iter(waiting), None)
            if name is not None and name in waiting:
                before = waiting.pop(name)
                if renamed.get(before) == name:
                    del renamed[before]
            result.append(replace(message, call_id=name or message.call_id))
            continue
        renamed, waiting = {}, OrderedDict()
        calls = []
        for index, call in enumerate(message.calls, start=1):
            name = call.id
            if not name or name in waiting or not allowed.fullmatch(name):
                name = f"{prefix}_{number}_{index}"
                while name in given or name in waiting:
                    name += "_"
            if call.id and call.id not in renamed:
                renamed[call.id] = name
            waiting[name] = call.id
            calls.append(replace(call, id=name))
        result.append(replace(message, calls=tuple(calls)))
    return result


def as_dicts(messages: Iterable[Message]) -> list[dict[str, Any]]:
    """OpenAI-style dicts in which every call has an id and every result names it (``with_ids``)."""
    return [message.to_dict() for message in with_ids(messages)]


def _in_call_order(calls: tuple[ToolCall, ...], results: list[Message], first_number: int) -> list[Message]:
    """The results of one turn, sorted by their calls where both sides have ids."""
    if len(results) > len(calls):
        raise MessageError(
            first_number + len(calls),
            f"a tool result without a call; the assistant message before makes {len(calls)}",
        )
    if not all(call.id for call in calls) or not all(result.call_id for result in results):
        return results
    waiting: dict[str | None, list[int]] = {}  # calls without a result, the first at the end
    for index in reversed(range(len(calls))):
        waiting.setdefault(calls[index].id, []).append(index)
    order: dict[int, Message] = {}
    for number, result in enumerate(results, start=first_number):
        if not waiting.get(result.call_id):
            raise MessageError(number, f"no call before it waits for a result with id {short(result.call_id or '')}")
        order[waiting[result.call_id].pop()] = result
    for index in range(len(results)):
        if index not in order:
            raise MessageError(
                first_number,
                f"the result of call {short(calls[index].id or '')} is missing, "
                "so the model would take a later result for it",
            )
    return [order[index] for index in range(len(results))]


def text_of(content: Any, path: str) -> str:
    """The text of a content value: text, null, or a list of text parts. Raises WireError for anything else."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "".join(_part(part, f"{path}[{index}]") for index, part in enumerate(content))
    raise WireError(path, f"must be text or a list of text parts, not {kind(content)}")


def _part(part: Any, path: str) -> str:
    if isinstance(part, str):
        return part
    fields = Fields(part, path)
    named = fields.get("type")
    text = fields.get("text")
    if named in (None, "text", "input_text", "output_text") and isinstance(text, str):
        return text
    raise WireError(path, f"a content part of type {short(str(named))} cannot be written as text: send text parts only")


def _call(data: Any, path: str) -> ToolCall:
    """A call, also where it is not wrapped in ``function``."""
    fields = Fields(data, path)
    if fields.get("type") == "custom":
        raise WireError(fields.at("type"), "custom tools are not supported: use function tools")
    function = fields.object("function") or fields
    return read_call(function.need("name"), function.get("arguments"), function.at("arguments"), fields.text("id"))


def read_call(name: str, arguments: Any, path: str = "", id: str | None = None) -> ToolCall:  # noqa: A002 - its name
    """A call whose arguments are a value, JSON text, or JSON text of JSON text, as some clients send them.

    Text that is no JSON becomes a call with the problem ``invalid_json`` and the text as its arguments. Raises
    WireError for a value that is no JSON.
    """
    text = arguments if isinstance(arguments, str) else None
    for _ in range(2):
        if not isinstance(arguments, str) or not arguments.strip():
            break
        try:
            arguments = loads(arguments)
        except ValueError as error:
            problem = Problem("invalid_json", f"the arguments are not JSON: {error}", (0, len(text or "")), text or "")
            return ToolCall(name, text, problems=(problem,), id=id)
    if arguments is None or (isinstance(arguments, str) and not arguments.strip()):
        return ToolCall(name, {}, id=id)
    try:
        json.dumps(arguments, ensure_ascii=False, allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise WireError(path, f"cannot be written as JSON: {error}") from error
    return ToolCall(name, arguments, id=id, arguments_text=text)


def _holds(text: str, value: Any) -> bool:
    """Whether a JSON text still says the value; 1 and true, which Python takes for equal, are not the same."""
    try:
        again = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return again == value and json.dumps(again, sort_keys=True) == json.dumps(value, sort_keys=True)

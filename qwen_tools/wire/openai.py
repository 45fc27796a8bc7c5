"""OpenAI Chat Completions: requests, responses and streams of chunks. See the package's docstring for the names.

Local servers' ``reasoning_content`` is read and written; the official API ignores it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from .. import events as ev
from ..events import Event, Usage
from ..fields import Fields, WireError, kind, short
from ..messages import Message
from ..tools import Tool
from .answer import CallsOut, Reading, call_id, cut_off, parts
from .request import (
    NAMES,
    Request,
    Sampling,
    chosen,
    distinct,
    function_of,
    in_order,
    kept_head,
    kept_tools,
    own_names,
    own_tools,
    paired,
    sendable,
    table_of,
    tool_of,
)

_MESSAGE = {"role", "content", "name", "tool_calls", "tool_call_id", "reasoning_content", "reasoning"}
_FINISH = {"stop": "stop", "length": "length", "content_filter": "content_filter"}


def read_request(body: Any) -> Request:
    """Read the body of a request. Raises WireError naming the field."""
    fields = Fields(body)
    own = table_of(fields)
    items = fields.items("messages")
    if not items:
        raise WireError("messages", "must be a list of at least one message")
    lost: list[str] = []
    messages = [own_names(_read_message(item, path, lost), own) for path, item in items]
    tools = own_tools(distinct((path, read_tool(tool, path)) for path, tool in fields.items("tools")), own)
    if fields.get("functions") is not None:
        raise WireError("functions", "is the old form: use tools")
    if fields.integer("n", 1) not in (None, 1):
        raise WireError("n", "must be 1: one answer is given")
    head = read_head(fields, tools, lost)
    choice = own.get(head["tool_choice"], head["tool_choice"])
    if choice not in ("auto", "none", "required"):
        chosen([choice], tools, "tool_choice.function.name")
    head["tool_choice"] = choice
    if head["allowed"] is not None:
        names = (own.get(name, name) for name in head["allowed"])
        head["allowed"] = chosen(names, tools, "tool_choice.allowed_tools.tools")
    kept = {key: value for key, value in fields.value.items() if key != "messages"}
    paths = [path for path, _ in items]
    return Request(paired(messages, paths), tools, **head, lost=lost, meta={"openai": kept})


def read_head(fields: Fields, tools: list[Tool], lost: list[str]) -> dict[str, Any]:  # noqa: ARG001 - all formats' shape
    """What a body says beside its messages and tools, as fields of a Request."""
    for key in ("messages", "tools", "functions", "n"):
        fields.get(key)
    stream_options = fields.object("stream_options")
    limit = fields.integer("max_completion_tokens", 1)
    old_limit = fields.integer("max_tokens", 1)
    choice, allowed = _read_choice(fields)
    parallel = fields.flag("parallel_tool_calls")
    top_k = fields.integer("top_k", -1)
    metadata = fields.get("metadata")
    head = {
        "model": fields.text("model") or "",
        "tool_choice": choice,
        "allowed": allowed,
        "parallel_calls": parallel is not False,
        "settings": Sampling(
            max_new_tokens=limit if limit is not None else old_limit,
            temperature=fields.number("temperature", 0, 2),
            top_p=fields.number("top_p", 0, 1),
            top_k=top_k if top_k and top_k > 0 else None,
            seed=fields.integer("seed", -(2**63)),
            stop=fields.texts("stop"),
        ),
        "stream": fields.flag("stream") is True,
        "include_usage": stream_options is not None and stream_options.flag("include_usage") is True,
        "response_schema": _read_format(fields),
    }
    if fields.get("web_search_options") is not None:  # also an empty one asks for a search
        lost.append("web_search_options")
    lost += fields.unread() + (stream_options.unread() if stream_options else [])
    if isinstance(metadata, Mapping) and set(metadata) - {NAMES}:
        lost.append("metadata")
    return head


def _read_choice(fields: Fields) -> tuple[str, tuple[str, ...] | None]:
    if isinstance(fields.get("tool_choice"), str):
        return fields.one_of("tool_choice", ("auto", "none", "required")), None
    choice = fields.object("tool_choice")
    if choice is None:
        return "auto", None
    if choice.one_of("type", ("function", "allowed_tools")) == "function":
        return (choice.object("function") or Fields(None, choice.at("function"))).need("name"), None
    allowed = choice.object("allowed_tools") or Fields(None, choice.at("allowed_tools"))
    names = []
    for path, item in allowed.items("tools"):
        entry = Fields(item, path)
        entry.one_of("type", ("function",))
        names.append((entry.object("function") or Fields(None, entry.at("function"))).need("name"))
    if not names:
        raise WireError(allowed.at("tools"), "must be a list of at least one tool")
    return allowed.one_of("mode", ("auto", "required"), "auto"), tuple(names)


def _read_format(fields: Fields) -> Mapping[str, Any] | None:
    wanted = fields.object("response_format")
    if wanted is None:
        return None
    named = wanted.one_of("type", ("text", "json_object", "json_schema"))
    if named == "json_object":
        return {"type": "object"}
    if named == "text":
        return None
    schema = wanted.object("json_schema") or Fields(None, wanted.at("json_schema"))
    inner = schema.object("schema")
    return {"type": "object"} if inner is None else inner.value


def read_tool(data: Any, path: str) -> Tool:
    """A tool in the wrapped form. Raises WireError naming the place."""
    fields = Fields(data, path)
    if fields.one_of("type", ("function", "custom"), "function") == "custom":
        raise WireError(fields.at("type"), "custom tools are not supported: use function tools")
    function = fields.object("function") or Fields(None, fields.at("function"))
    tool = tool_of(
        function.need("name"), function.text("description"), function.get("parameters"), function.at("parameters")
    )
    return Tool(tool.name, tool.description, tool.parameters, source=data)  # as it came: its keys are in the prompt


def _read_message(data: Any, path: str, lost: list[str]) -> Message:
    message = Message.from_dict(data, path)
    refusal = data.get("refusal")
    if isinstance(refusal, str) and not message.content:  # it is said in words too
        message = replace(message, content=refusal)
    lost += [f"{path}.{key}" for key, value in data.items() if key not in _MESSAGE and value not in (None, [], {}, "")]
    if isinstance(data.get("content"), list):
        for index, part in enumerate(data["content"]):
            keys = set(part) - {"type", "text"} if isinstance(part, dict) else ()
            lost += [f"{path}.content[{index}].{key}" for key in sorted(keys)]
    return replace(message, meta={"openai": data})


def write_request(request: Request) -> dict[str, Any]:
    """The body of a request. Names that OpenAI does not allow are changed, and the way back is noted in ``metadata``.

    Raises WireError for a conversation that no API takes (``sendable``).
    """
    messages, names = sendable(request, "call")
    settings, table = request.settings, names.table
    head: dict[str, Any] = {"model": request.model} if request.model else {}
    if request.allowed is not None:
        mode = request.tool_choice if request.tool_choice == "required" else "auto"
        listed = [{"type": "function", "function": {"name": names.wire(name)}} for name in request.allowed]
        head["tool_choice"] = {"type": "allowed_tools", "allowed_tools": {"mode": mode, "tools": listed}}
    elif request.tool_choice in ("none", "required"):
        head["tool_choice"] = request.tool_choice
    elif request.tool_choice != "auto":
        head["tool_choice"] = {"type": "function", "function": {"name": names.wire(request.tool_choice)}}
    if not request.parallel_calls and request.tools:
        head["parallel_tool_calls"] = False
    limits = {
        "max_completion_tokens": settings.max_new_tokens,
        "temperature": settings.temperature,
        "top_p": settings.top_p,
        "top_k": settings.top_k,
        "seed": settings.seed,
        "stop": list(settings.stop) or None,
    }
    head.update({key: value for key, value in limits.items() if value is not None})
    if request.response_schema is not None:
        head["response_format"] = {
            "type": "json_schema",
            "json_schema": {"name": "answer", "schema": request.response_schema},
        }
    if request.stream:
        head["stream"] = True
        if request.include_usage:
            head["stream_options"] = {"include_usage": True}
    body = dict(kept_head(request, "openai", read_head, head))
    body["messages"] = [_write_message(message) for message in messages]
    if request.tools:
        body["tools"] = kept_tools(
            request,
            "openai",
            read_tool,
            lambda tool: {"type": "function", "function": {**function_of(tool), "name": names.wire(tool.name)}},
        )
    if table:
        body["metadata"] = {**(body.get("metadata") or {}), NAMES: json.dumps(table, ensure_ascii=False)}
    return in_order(body, "model", "messages", "tools")


def _write_message(message: Message) -> dict[str, Any]:
    before = message.meta.get("openai")
    if before is not None and _read_message(before, "", []) == message:
        return dict(before)
    return message.to_dict()


# --- Responses -------------------------------------------------------------------------------------------------------


def _usage(usage: Usage) -> dict[str, Any]:
    return {
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.new_tokens,
        "total_tokens": usage.prompt_tokens + usage.new_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cached_tokens},
    }


def read_usage(data: Any) -> Usage:
    """What an answer cost. A count that makes no sense counts as 0."""
    data = data if isinstance(data, Mapping) else {}
    details = data.get("prompt_tokens_details")
    cached = details.get("cached_tokens") if isinstance(details, Mapping) else 0
    counts = (data.get("prompt_tokens"), cached, data.get("completion_tokens"))
    return Usage(*(count if isinstance(count, int) and count > 0 else 0 for count in counts))


def response(
    message: Message,
    *,
    id: str,  # noqa: A002 - its name on the wire
    created: int,
    model: str,
    finish: str,
    usage: Usage | None = None,
) -> dict[str, Any]:
    """The body of an answer; ``created`` is in Unix seconds."""
    content: list[str] = []
    calls: list[dict[str, Any]] = []
    for part in parts(message):
        if isinstance(part, str):
            content.append(part)
            continue
        given = part.id or call_id("call", id, len(calls) + 1)
        function = {"name": part.name, "arguments": part.arguments_json}
        calls.append({"id": given, "type": "function", "function": function})
    answer: dict[str, Any] = {"role": "assistant", "content": "".join(content) or (None if calls else "")}
    if message.reasoning:
        answer["reasoning_content"] = message.reasoning
    if calls:
        answer["tool_calls"] = calls
    return {
        "id": id,
        "object": "chat.completion",
        "created": created,
        "model": model,
        "choices": [{"index": 0, "message": answer, "logprobs": None, "finish_reason": _reason(finish, bool(calls))}],
        "usage": _usage(usage or Usage()),
    }


def _reason(finish: str, calls: bool) -> str:
    reason = "length" if finish == "interrupted" else finish
    return "tool_calls" if calls and reason == "stop" else reason


def read_response(body: Any, lost: list[str] | None = None) -> tuple[Message, str, Usage]:
    """The message of an answer, how it ended, and what it cost. ``lost`` gets what else was said. Raises WireError."""
    lost = [] if lost is None else lost
    fields = Fields(body)
    choices = fields.items("choices")
    if not choices:
        raise WireError("choices", "must be a list of at least one choice")
    choice = Fields(choices[0][1], choices[0][0])
    finish = _FINISH.get(choice.text("finish_reason") or "", "stop")
    given = choice.object("message") or Fields(None, choice.at("message"))
    message = _read_message({**given.value, "role": "assistant"}, given.path, lost)
    lost += [path for path, _ in choices[1:]]
    if choice.get("logprobs"):
        lost.append(choice.at("logprobs"))
    if finish != "stop":  # what was cut off is no call
        lost += cut_off(message)
        calls = tuple(call for call in message.calls if not call.problems)
        message = replace(message, calls=calls, finish=finish)
    return message, finish, read_usage(fields.get("usage"))


class StreamWriter:
    """An answer as chunks. See the package's docstring."""

    def __init__(self, *, id: str, created: int, model: str, include_usage: bool = False) -> None:  # noqa: A002
        self._frame = {"id": id, "object": "chat.completion.chunk", "created": created, "model": model}
        self._include_usage = include_usage
        self._calls = CallsOut("call", id)
        self._numbers: dict[int, int] = {}
        self._begun = False

    def feed(self, event: Event) -> list[dict[str, Any]]:
        """The chunks for one event; the first comes before all others and has the role."""
        chunks = self._begin()
        if isinstance(event, ev.Text):
            chunks.append(self._chunk({"content": event.delta}))
        elif isinstance(event, ev.Reasoning):
            chunks.append(self._chunk({"reasoning_content": event.delta}))
        elif isinstance(event, ev.CallStart):
            self._calls.start(event)
        elif isinstance(event, ev.CallName):
            number, given = self._calls.announce(event.index)
            self._numbers[event.index] = number
            function = {"name": event.name, "arguments": ""}
            call = {"index": number, "id": given, "type": "function", "function": function}
            chunks.append(self._chunk({"tool_calls": [call]}))
        elif isinstance(event, ev.CallArgs) and self._calls.announced(event.index):
            chunks += self._arguments(event.index, self._calls.piece(event.index, event.delta))
        elif isinstance(event, ev.CallEnd):
            if not self._calls.announced(event.index):
                chunks += self.feed(ev.CallName(event.index, event.call.name))
            chunks += self._arguments(event.index, self._calls.rest(event.index, event.call))
        elif isinstance(event, ev.CallError):
            text = self._calls.failed(event)
            chunks += [self._chunk({"content": text})] if text else []
        return chunks

    def close(self, finish: str, usage: Usage | None = None) -> list[dict[str, Any]]:
        """The last chunks: the reason why the answer ended and, where asked for, what it cost."""
        reason = _reason(self._calls.finish(finish), self._calls.whole > 0)
        chunks = [*self._begin(), self._chunk({}, reason)]
        if self._include_usage:
            chunks.append({**self._frame, "choices": [], "usage": _usage(usage or Usage())})
        return chunks

    def _arguments(self, index: int, delta: str) -> list[dict[str, Any]]:
        if not delta:
            return []
        call = {"index": self._numbers[index], "function": {"arguments": delta}}
        return [self._chunk({"tool_calls": [call]})]

    def _begin(self) -> list[dict[str, Any]]:
        begun, self._begun = self._begun, True
        return [] if begun else [self._chunk({"role": "assistant", "content": ""})]

    def _chunk(self, delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return {**self._frame, "choices": [choice]}


class StreamReader:
    """Events from chunks, also from servers that repeat names and types, leave out ids or the index, or interleave
    calls. ``feed`` raises WireError for a chunk that is none, or that says that the server failed.
    """

    def __init__(self) -> None:
        self._reading = Reading()
        self._last: object = None
        self._count = 0
        self.message = Message("assistant")
        self.finish: str | None = None
        self.usage = Usage()
        self.lost: list[str] = []

    def feed(self, chunk: Any) -> list[Event]:
        """The events of one chunk."""
        fields = Fields(chunk)
        if fields.get("error") is not None:
            raise WireError("error", error_text(fields.get("error")))
        if fields.get("usage") is not None:
            self.usage = read_usage(fields.get("usage"))
        new: list[Event] = []
        for path, item in fields.items("choices"):
            choice = Fields(item, path)
            if choice.get("index") not in (None, 0):
                self.lost.append(f"choices[{choice.get('index')}]")
                continue
            if choice.get("logprobs"):
                self.lost.append(choice.at("logprobs"))
            delta = choice.object("delta")
            if delta is not None:
                new += self._reading.reasoning(delta.text("reasoning_content") or delta.text("reasoning") or "")
                new += self._reading.text((delta.text("content") or "") + (delta.text("refusal") or ""))
                self.lost += [delta.at(key) for key, value in delta.value.items() if key not in _MESSAGE and value]
                for place, call in delta.items("tool_calls"):
                    new += self._call(Fields(call, place))
            reason = choice.text("finish_reason")
            if reason:
                self.finish = _FINISH.get(reason, "stop")
        return new

    def close(self) -> list[Event]:
        """The stream is over; one that gave no finish reason was cut."""
        self.finish = self.finish or "length"
        new = self._reading.close(self.finish)
        self.message = self._reading.message
        return new

    def _call(self, call: Fields) -> list[Event]:
        self._count += 1
        id_, index = call.text("id") or None, call.integer("index", 0)
        function = call.object("function")
        name = function.text("name") if function else None
        key: object = index
        if index is None:
            # Without an index an id begins a call, and what has neither belongs to the call before.
            key = ("id", id_) if id_ else self._last
            if key is None or (id_ is None and name and self._reading.looks_whole(key)):
                key = ("new", self._count)
        new: list[Event] = []
        if key != self._last and self._last is not None and self._reading.looks_whole(self._last):
            new += self._reading.call_over(self._last, whole_only=True)
        if not self._reading.has(key) and not (id_ or name):
            return new  # white space behind a call that is over
        self._last = key
        new += self._reading.call(key, id_, name)
        arguments = function.get("arguments") if function else None
        if arguments is not None and not isinstance(arguments, str):
            if not isinstance(arguments, Mapping):
                raise WireError((function or call).at("arguments"), f"must be text, not {kind(arguments)}")
            arguments = json.dumps(arguments, ensure_ascii=False)
        return new + self._reading.arguments(key, arguments or "")


def error_text(error: Any) -> str:
    """What an error object says, in one line."""
    message = error.get("message") if isinstance(error, Mapping) else error
    return short(" ".join(message.split())) if isinstance(message, str) and message else "the server failed"

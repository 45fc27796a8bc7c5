"""OpenAI Responses: requests, responses and streams of typed events. See the package's docstring for the names.

What is one message to us is several items here: a thought, texts and calls of one answer follow each other. Results
are matched by ``call_id``; an item's own ``id`` is kept in ``Message.meta``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from .. import events as ev
from ..events import Event, Usage
from ..fields import Fields, WireError, kind, short
from ..messages import Message, ToolCall, read_call, text_of
from ..tools import Tool
from .answer import CallsOut, InOrder, Reading, call_id, cut_off, parts
from .openai import error_text
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

# What is noted of a result that does not stand behind its call.
MOVED = "its place behind later items"

_STATELESS = "keeps nothing between requests: send the whole conversation as input"


# --- Requests --------------------------------------------------------------------------------------------------------


def read_request(body: Any) -> Request:
    """Read the body of a request. Raises WireError naming the field."""
    fields = Fields(body)
    own = table_of(fields)
    for key in ("previous_response_id", "conversation", "prompt"):
        if fields.get(key) is not None:
            raise WireError(key, f"this program {_STATELESS}")
    lost: list[str] = []
    messages: list[Message] = []
    paths: list[str] = []
    instructions = fields.text("instructions")
    if instructions is not None:
        messages.append(Message("system", instructions, meta={"responses": {"instructions": True}}))
        paths.append("instructions")
    given = fields.get("input")
    if isinstance(given, str):
        messages.append(Message("user", given, meta={"responses": {"text": True}}))
        paths.append("input")
    elif isinstance(given, list) and given:
        read = _read_items(fields.items("input"), lost)
        messages += [own_names(message, own) for message, _ in read]
        paths += [path for _, path in read]
    else:
        raise WireError("input", "must be text or a list of at least one item")
    tools = own_tools(distinct((path, read_tool(tool, path)) for path, tool in fields.items("tools")), own)
    head = read_head(fields, tools, lost)
    choice = own.get(head["tool_choice"], head["tool_choice"])
    if choice not in ("auto", "none", "required"):
        chosen([choice], tools, "tool_choice.name")
    head["tool_choice"] = choice
    if head["allowed"] is not None:
        head["allowed"] = chosen((own.get(name, name) for name in head["allowed"]), tools, "tool_choice.tools")
    kept = {key: value for key, value in fields.value.items() if key not in ("input", "instructions")}
    return Request(paired(messages, paths), tools, **head, lost=lost, meta={"responses": kept})


def read_head(fields: Fields, tools: list[Tool], lost: list[str]) -> dict[str, Any]:  # noqa: ARG001 - all formats' shape
    """What a body says beside its items and tools, as fields of a Request."""
    for key in ("input", "instructions", "tools"):
        fields.get(key)
    choice, allowed = _read_choice(fields)
    parallel = fields.flag("parallel_tool_calls")
    text = fields.object("text")
    inner = [each for each in (text, fields.object("stream_options"), fields.object("reasoning")) if each]
    metadata = fields.get("metadata")
    stream = fields.flag("stream") is True
    head = {
        "model": fields.text("model") or "",
        "tool_choice": choice,
        "allowed": allowed,
        "parallel_calls": parallel is not False,
        "settings": Sampling(
            max_new_tokens=fields.integer("max_output_tokens", 1),
            temperature=fields.number("temperature", 0, 2),
            top_p=fields.number("top_p", 0, 1),
        ),
        "stream": stream,
        "include_usage": stream,  # this format's streams always say it
        "response_schema": _read_format(text) if text else None,
    }
    lost += fields.unread() + [path for each in inner for path in each.unread()]
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
        return choice.need("name"), None
    names = []
    for path, item in choice.items("tools"):
        entry = Fields(item, path)
        entry.one_of("type", ("function",))
        names.append(entry.need("name"))
    if not names:
        raise WireError(choice.at("tools"), "must be a list of at least one tool")
    return choice.one_of("mode", ("auto", "required"), "auto"), tuple(names)


def _read_format(text: Fields) -> Mapping[str, Any] | None:
    wanted = text.object("format")
    named = wanted.one_of("type", ("text", "json_object", "json_schema")) if wanted else "text"
    if wanted is None or named == "text":
        return None
    if named == "json_object":
        return {"type": "object"}
    return (wanted.object("schema") or Fields(None, wanted.at("schema"))).value


def read_tool(data: Any, path: str) -> Tool:
    """A tool in the flat form. Raises WireError naming the place."""
    fields = Fields(data, path)
    if fields.text("type") != "function":
        named = short(str(fields.get("type")))
        raise WireError(fields.at("type"), f"must be function; {named} is not supported")
    more = {
        key: value
        for key, value in fields.value.items()
        if key not in ("type", "name", "description", "parameters")
        and (key, value) != ("strict", False)  # what a tool is everywhere else where nothing is said
    }
    name, description = fields.need("name"), fields.text("description")
    return tool_of(name, description, fields.get("parameters"), fields.at("parameters"), **more)


def _read_items(items: list[tuple[str, Any]], lost: list[str]) -> list[tuple[Message, str]]:
    """Our messages: neighbouring items of the assistant are one, and a result stands behind its call."""
    read: list[tuple[Message, str]] = []
    said: list[tuple[str, Any]] = []
    callers: dict[str | None, int] = {}  # id of a call -> where the answer with it stands in ``read``
    results: dict[int, list[tuple[Message, str]]] = {}

    def answer_over() -> None:
        if said:
            answer = _read_answer(said, lost)
            callers.update((call.id, len(read)) for call in answer.calls)
            read.append((answer, said[0][0]))
            said.clear()

    for path, item in items:
        fields = Fields(item, path)
        named = fields.one_of("type", ("message", "function_call", "function_call_output", "reasoning"), "message")
        if named in ("function_call", "reasoning") or (named == "message" and fields.get("role") == "assistant"):
            said.append((path, item))
            continue
        answer_over()
        if named == "function_call_output":
            text = text_of(fields.get("output"), fields.at("output"))
            result = Message("tool", text, call_id=fields.need("call_id"), meta={"responses": {"items": [item]}})
            caller = callers.get(result.call_id)
            if caller is None:
                raise WireError(f"{path}.call_id", f"no call before it has the id {short(result.call_id or '')}")
            if caller != len(read) - 1:
                lost.append(f"{path}: {MOVED}")
            results.setdefault(caller, []).append((result, path))
            fields.get("status"), fields.get("id")
        else:
            role = fields.one_of("role", ("system", "developer", "user", "assistant"))
            role = "system" if role == "developer" else role
            text = text_of(fields.get("content"), fields.at("content"))
            read.append((Message(role, text, meta={"responses": {"items": [item]}}), path))
            fields.get("status"), fields.get("id")
            _note_parts(fields.get("content"), fields.at("content"), lost)
        lost += fields.unread()
    answer_over()
    return [each for index, message in enumerate(read) for each in (message, *results.get(index, ()))]


def _read_answer(items: list[tuple[str, Any]], lost: list[str]) -> Message:
    text: list[str] = []
    reasoning: list[str] = []
    calls: list[ToolCall] = []
    length = 0
    for path, item in items:
        fields = Fields(item, path)
        fields.get("status")
        named = fields.text("type") or "message"
        if fields.text("id"):
            lost.append(fields.at("id"))
        if named == "reasoning":
            for key in ("content", "summary"):
                pieces = [Fields(part, place).text("text") or "" for place, part in fields.items(key)]
                if pieces:
                    reasoning += pieces
                    break
            for key in ("content", "summary"):
                fields.get(key)
        elif named == "function_call":
            name, arguments = fields.need("name"), fields.text("arguments")
            call = read_call(name, arguments, fields.at("arguments"), fields.need("call_id"))
            calls.append(replace(call, at=length))
        else:
            fields.get("role")
            said = text_of(_without_refusal(fields.get("content")), fields.at("content"))
            _note_parts(fields.get("content"), fields.at("content"), lost)
            text.append(said)
            length += len(said)
        lost += fields.unread()
    meta = {"responses": {"items": [item for _, item in items]}}
    return Message("assistant", "".join(text), "".join(reasoning), tuple(calls), meta=meta)


def _without_refusal(content: Any) -> Any:
    """A refusal is said in words too."""
    if not isinstance(content, list):
        return content
    return [
        {"type": "text", "text": part.get("refusal")}
        if isinstance(part, Mapping) and part.get("type") == "refusal"
        else part
        for part in content
    ]


def _note_parts(content: Any, path: str, lost: list[str]) -> None:
    for index, part in enumerate(content if isinstance(content, list) else ()):
        if isinstance(part, Mapping):
            if part.get("type") == "refusal":
                lost.append(f"{path}[{index}].refusal")
                continue
            lost += [f"{path}[{index}].{key}" for key in part if key not in ("type", "text") and part[key]]


def write_request(request: Request) -> dict[str, Any]:
    """The body of a request. Names that OpenAI does not allow are changed, and the way back is noted in ``metadata``.

    Raises WireError for a conversation that no API takes (``sendable``).
    """
    messages, names = sendable(request, "call")
    settings, table = request.settings, names.table
    head: dict[str, Any] = {"model": request.model} if request.model else {}
    if request.allowed is not None:
        mode = request.tool_choice if request.tool_choice == "required" else "auto"
        listed = [{"type": "function", "name": names.wire(name)} for name in request.allowed]
        head["tool_choice"] = {"type": "allowed_tools", "mode": mode, "tools": listed}
    elif request.tool_choice in ("none", "required"):
        head["tool_choice"] = request.tool_choice
    elif request.tool_choice != "auto":
        head["tool_choice"] = {"type": "function", "name": names.wire(request.tool_choice)}
    if not request.parallel_calls and request.tools:
        head["parallel_tool_calls"] = False
    limits = {
        "max_output_tokens": settings.max_new_tokens,
        "temperature": settings.temperature,
        "top_p": settings.top_p,
    }
    head.update({key: value for key, value in limits.items() if value is not None})
    if request.response_schema is not None:
        head["text"] = {"format": {"type": "json_schema", "name": "answer", "schema": request.response_schema}}
    if request.stream:
        head["stream"] = True
    body = dict(kept_head(request, "responses", read_head, head))
    if messages and messages[0].role == "system" and _is_instructions(messages[0]):
        body["instructions"] = messages[0].content
        messages = messages[1:]
    if len(messages) == 1 and messages[0].meta.get("responses", {}).get("text"):
        body["input"] = messages[0].content
    else:
        body["input"] = [item for message in messages for item in _write_items(message)]
    if request.tools:
        body["tools"] = kept_tools(
            request,
            "responses",
            read_tool,
            # Here strict is the default, and a schema that was not written for it would be refused.
            lambda tool: {"type": "function", "strict": False, **function_of(tool), "name": names.wire(tool.name)},
        )
    if table:
        body["metadata"] = {**(body.get("metadata") or {}), NAMES: json.dumps(table, ensure_ascii=False)}
    return in_order(body, "model", "instructions", "input", "tools")


def _is_instructions(message: Message) -> bool:
    """Whether a system message at the beginning is written as ``instructions``: unless it came as an item."""
    before = message.meta.get("responses")
    return before is None or "instructions" in before


def _write_items(message: Message) -> list[Any]:
    before = message.meta.get("responses", {}).get("items")
    if before is not None and _same(before, message):
        return list(before)
    if message.role == "tool":
        return [{"type": "function_call_output", "call_id": message.call_id, "output": message.content}]
    if message.role != "assistant":
        part = {"type": "input_text", "text": message.content}
        return [{"type": "message", "role": message.role, "content": [part]}]
    return [
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": part, "annotations": []}]}
        if isinstance(part, str)
        else {"type": "function_call", "call_id": part.id, "name": part.name, "arguments": part.arguments_json}
        for part in list(parts(message)) or [""]
    ]


def _same(items: list[Any], message: Message) -> bool:
    """Whether items still say what a message says."""
    if message.role == "assistant":
        return _read_answer([("", item) for item in items], []) == replace(message, finish="stop")
    key = "output" if message.role == "tool" else "content"
    text = text_of(items[0].get(key), key)
    return text == message.content and items[0].get("call_id") == message.call_id


# --- Responses -------------------------------------------------------------------------------------------------------


def _usage(usage: Usage) -> dict[str, Any]:
    return {
        "input_tokens": usage.prompt_tokens,
        "input_tokens_details": {"cached_tokens": usage.cached_tokens, "cache_write_tokens": 0},
        "output_tokens": usage.new_tokens,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": usage.prompt_tokens + usage.new_tokens,
    }


def read_usage(data: Any) -> Usage:
    """What an answer cost. A count that makes no sense counts as 0."""
    data = data if isinstance(data, Mapping) else {}
    details = data.get("input_tokens_details")
    cached = details.get("cached_tokens") if isinstance(details, Mapping) else 0
    counts = (data.get("input_tokens"), cached, data.get("output_tokens"))
    return Usage(*(count if isinstance(count, int) and count > 0 else 0 for count in counts))


def response(
    message: Message,
    *,
    id: str,  # noqa: A002 - its name on the wire
    created: int,
    model: str,
    finish: str,
    usage: Usage | None = None,
    request: Request | None = None,
) -> dict[str, Any]:
    """The body of an answer; ``created`` is in Unix seconds. With ``request`` it repeats tools and choice of tools,
    as the API does.
    """
    ids = _ItemIds(id)
    output: list[dict[str, Any]] = []
    if message.reasoning:
        output.append(_reasoning_item(ids.new("rs"), message.reasoning, "completed"))
    for part in parts(message):
        if isinstance(part, str):
            output.append(_text_item(ids.new("msg"), part, "completed"))
        else:
            number = ids.count("fc") + 1
            given = part.id or call_id("call", id, number)
            output.append(_call_item(ids.new("fc"), given, part.name, part.arguments_json, "completed"))
    return {
        **_frame(id, created, model, request),
        **_ended(finish),
        "output": output,
        "usage": _usage(usage or Usage()),
    }


def _ended(finish: str) -> dict[str, Any]:
    if finish == "stop":
        return {"status": "completed", "incomplete_details": None}
    reason = "content_filter" if finish == "content_filter" else "max_output_tokens"
    return {"status": "incomplete", "incomplete_details": {"reason": reason}}


def _frame(id: str, created: int, model: str, request: Request | None) -> dict[str, Any]:  # noqa: A002
    echoed = write_request(replace(request, messages=[Message("user", "")], meta={})) if request else {}
    return {
        "id": id,
        "object": "response",
        "created_at": created,
        "status": "in_progress",
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "model": model,
        "output": [],
        "parallel_tool_calls": request.parallel_calls if request else True,
        "temperature": request.settings.temperature if request else None,
        "top_p": request.settings.top_p if request else None,
        "tool_choice": echoed.get("tool_choice", "auto"),
        "tools": echoed.get("tools", []),
        "usage": None,
    }


class _ItemIds:
    """The ids of items, made from the answer's id and their number, so that a stream and its whole form agree."""

    def __init__(self, response_id: str) -> None:
        self._suffix = response_id.removeprefix("resp_")
        self._counts: dict[str, int] = {}

    def count(self, prefix: str) -> int:
        return self._counts.get(prefix, 0)

    def new(self, prefix: str) -> str:
        self._counts[prefix] = self.count(prefix) + 1
        return f"{prefix}_{self._suffix}_{self._counts[prefix]}"


def _text_item(id: str, text: str, status: str) -> dict[str, Any]:  # noqa: A002
    part = {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
    content = [part] if status == "completed" else []
    return {"id": id, "type": "message", "role": "assistant", "status": status, "content": content}


def _call_item(id: str, call: str, name: str, arguments: str, status: str) -> dict[str, Any]:  # noqa: A002
    return {"id": id, "type": "function_call", "call_id": call, "name": name, "arguments": arguments, "status": status}


def _reasoning_item(id: str, text: str, status: str) -> dict[str, Any]:  # noqa: A002
    content = [{"type": "reasoning_text", "text": text}] if status == "completed" else []
    return {"id": id, "type": "reasoning", "status": status, "summary": [], "content": content}


def read_response(body: Any, lost: list[str] | None = None) -> tuple[Message, str, Usage]:
    """The message of an answer, how it ended, and what it cost. ``lost`` gets what else was said. Raises WireError."""
    lost = [] if lost is None else lost
    fields = Fields(body)
    if fields.get("status") == "failed" or fields.get("error") is not None:
        raise WireError("error", error_text(fields.get("error")))
    if not isinstance(fields.get("output"), list):
        raise WireError("output", f"must be a list of items, not {kind(fields.get('output'))}")
    items = fields.items("output")
    for path, item in items:
        Fields(item, path).one_of("type", ("message", "function_call", "reasoning"), "message")
    unsaid: list[str] = []
    message = _read_answer(items, unsaid)
    lost += [place for place in unsaid if not place.endswith("].id")]  # items of an answer get ids anew
    finish = _finish(fields)
    if finish != "stop":  # what was cut off is no call
        lost += cut_off(message)
        message = replace(message, calls=tuple(call for call in message.calls if not call.problems), finish=finish)
    return message, finish, read_usage(fields.get("usage"))


def _finish(fields: Fields) -> str:
    if fields.get("status") != "incomplete":
        return "stop"
    details = fields.object("incomplete_details")
    return "content_filter" if details and details.get("reason") == "content_filter" else "length"


class StreamWriter:
    """An answer as typed events, numbered from 0. See the package's docstring. Items do not interleave: while a call
    is open everything else waits for its end.
    """

    def __init__(
        self,
        *,
        id: str,  # noqa: A002 - its name on the wire
        created: int,
        model: str,
        include_usage: bool = True,  # noqa: ARG002 - this format's streams always say it
        request: Request | None = None,
    ) -> None:
        self._response = _frame(id, created, model, request)
        self._ids = _ItemIds(id)
        self._calls = CallsOut("call", id)
        self._order = InOrder()
        self._number = 0
        self._begun = False
        self._output: list[dict[str, Any]] = []
        self._item: dict[str, Any] = {}
        self._pieces: list[str] = []

    def feed(self, event: Event) -> list[dict[str, Any]]:
        """The events for one of ours; the first come before all others."""
        return [*self._begin(), *(out for each in self._order.feed(event) for out in self._write(each))]

    def close(self, finish: str, usage: Usage | None = None) -> list[dict[str, Any]]:
        """The last events; the very last has the whole answer."""
        out = [*self._begin(), *(out for each in self._order.close() for out in self._write(each))]
        out += self._close_item("incomplete")
        ended = _ended(self._calls.finish(finish))
        whole = {**self._response, **ended, "output": self._output, "usage": _usage(usage or Usage())}
        return [*out, self._event(f"response.{ended['status']}", response=whole)]

    def _write(self, event: Event) -> list[dict[str, Any]]:
        if isinstance(event, ev.Text):
            return self._piece("message", event.delta)
        if isinstance(event, ev.Reasoning):
            return self._piece("reasoning", event.delta)
        if isinstance(event, ev.CallStart):
            self._calls.start(event)
        elif isinstance(event, ev.CallName):
            _, given = self._calls.announce(event.index)
            return self._open_item(_call_item(self._ids.new("fc"), given, event.name, "", "in_progress"))
        elif isinstance(event, ev.CallArgs) and self._calls.announced(event.index):
            return self._arguments(self._calls.piece(event.index, event.delta))
        elif isinstance(event, ev.CallEnd):
            out = []
            if not self._calls.announced(event.index):
                out += self._write(ev.CallName(event.index, event.call.name))
            out += self._arguments(self._calls.rest(event.index, event.call))
            return [*out, *self._close_item("completed")]
        elif isinstance(event, ev.CallError):
            text = self._calls.failed(event)
            return self._write(ev.Text(text)) if text else self._close_item("incomplete")
        return []

    def _arguments(self, delta: str) -> list[dict[str, Any]]:
        return [] if not delta else self._delta("response.function_call_arguments.delta", delta)

    def _piece(self, named: str, delta: str) -> list[dict[str, Any]]:
        out: list[dict[str, Any]] = []
        if self._item.get("type") != named:
            item = (
                _text_item(self._ids.new("msg"), "", "in_progress")
                if named == "message"
                else _reasoning_item(self._ids.new("rs"), "", "in_progress")
            )
            out = [*self._open_item(item), self._part_event("added", "")]
        if named == "message":
            return [*out, *self._delta("response.output_text.delta", delta, content_index=0, logprobs=[])]
        return [*out, *self._delta("response.reasoning_text.delta", delta, content_index=0)]

    def _delta(self, named: str, delta: str, **more: Any) -> list[dict[str, Any]]:
        self._pieces.append(delta)
        return [self._item_event(named, delta=delta, **more)]

    def _open_item(self, item: dict[str, Any]) -> list[dict[str, Any]]:
        out = self._close_item("completed")
        self._item, self._pieces = item, []
        return [*out, self._event("response.output_item.added", output_index=len(self._output), item=item)]

    def _close_item(self, status: str) -> list[dict[str, Any]]:
        """The open item is over, as far as it came; a text is whole as it is."""
        if not self._item:
            return []
        item, text = self._item, "".join(self._pieces)
        out: list[dict[str, Any]] = []
        if item["type"] == "function_call":
            done = _call_item(item["id"], item["call_id"], item["name"], text, status)
            if status == "completed":
                named = "response.function_call_arguments.done"
                out.append(self._item_event(named, name=item["name"], arguments=text))
        elif item["type"] == "message":
            done = _text_item(item["id"], text, "completed")
            out.append(self._item_event("response.output_text.done", content_index=0, text=text, logprobs=[]))
            out.append(self._part_event("done", text))
        else:
            done = _reasoning_item(item["id"], text, "completed")
            out.append(self._item_event("response.reasoning_text.done", content_index=0, text=text))
            out.append(self._part_event("done", text))
        out.append(self._event("response.output_item.done", output_index=len(self._output), item=done))
        self._output.append(done)
        self._item = {}
        return out

    def _part_event(self, named: str, text: str) -> dict[str, Any]:
        if self._item["type"] == "message":
            part = {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
        else:
            part = {"type": "reasoning_text", "text": text}
        return self._item_event(f"response.content_part.{named}", content_index=0, part=part)

    def _item_event(self, named: str, **more: Any) -> dict[str, Any]:
        return self._event(named, item_id=self._item["id"], output_index=len(self._output), **more)

    def _event(self, named: str, **more: Any) -> dict[str, Any]:
        self._number += 1
        return {"type": named, "sequence_number": self._number - 1, **more}

    def _begin(self) -> list[dict[str, Any]]:
        if self._begun:
            return []
        self._begun = True
        names = ("response.created", "response.in_progress")
        return [self._event(named, response=self._response) for named in names]


class StreamReader:
    """Events from their typed events. ``feed`` raises WireError for one that is none, or that says that the server
    failed.
    """

    def __init__(self) -> None:
        self._reading = Reading()
        self._items: dict[int, Any] = {}
        self.message = Message("assistant")
        self.finish: str | None = None
        self.usage = Usage()
        self.lost: list[str] = []

    def feed(self, chunk: Any) -> list[Event]:
        """The events of one of theirs."""
        fields = Fields(chunk)
        named = fields.text("type") or ""
        if named == "error":
            raise WireError("error", error_text(fields.value))
        if named in ("response.completed", "response.incomplete", "response.failed"):
            whole = fields.object("response") or Fields(None, fields.at("response"))
            if named == "response.failed":
                raise WireError("error", error_text(whole.get("error")))
            self.finish = "length" if named == "response.incomplete" else "stop"
            if named == "response.incomplete":
                self.finish = _finish(Fields({**whole.value, "status": "incomplete"}))
            self.usage = read_usage(whole.get("usage"))
            return []
        delta = {"response.output_text.delta": self._reading.text, "response.refusal.delta": self._reading.text}
        delta["response.reasoning_text.delta"] = self._reading.reasoning
        delta["response.reasoning_summary_text.delta"] = self._reading.reasoning
        if named in delta:
            return delta[named](fields.text("delta") or "")
        if not named.startswith(("response.output_item.", "response.function_call_arguments.")):
            return []
        index = fields.integer("output_index", 0)
        if index is None:
            raise WireError("output_index", "must be given")
        if named == "response.function_call_arguments.delta":
            if not self._reading.has(index):
                raise WireError("output_index", f"no call {index} is open")
            return self._reading.arguments(index, fields.text("delta") or "")
        if named.startswith("response.function_call_arguments."):
            return []
        item = fields.object("item") or Fields(None, fields.at("item"))
        return self._item(index, item, named.endswith(".done"))

    def close(self) -> list[Event]:
        """The stream is over; one that was not completed was cut. ``message`` keeps the items with their ids."""
        self.finish = self.finish or "length"
        new = self._reading.close(self.finish)
        items = [self._items[index] for index in sorted(self._items)]
        self.message = replace(self._reading.message, meta={"responses": {"items": items}})
        return new

    def _item(self, index: int, item: Fields, done: bool) -> list[Event]:
        if item.get("type") != "function_call":
            if done and item.get("type") in ("message", "reasoning"):
                self._items[index] = dict(item.value)
                _note_parts(item.get("content"), f"output[{index}].content", self.lost)
                if item.get("encrypted_content"):
                    self.lost.append(f"output[{index}].encrypted_content")
            return []
        new: list[Event] = []
        if not done:
            new += self._reading.call(index, item.need("call_id"), item.need("name"))
            return new + self._reading.arguments(index, item.text("arguments") or "")
        self._items[index] = dict(item.value)
        if item.get("status") == "incomplete":
            return new  # it stays open, and is cut off at the end
        if not self._reading.wrote(index):  # a server that sends no deltas
            new += self._reading.arguments(index, item.text("arguments") or "") if self._reading.has(index) else []
        return new + self._reading.call_over(index)

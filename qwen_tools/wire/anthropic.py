"""Anthropic Messages: requests, responses and streams of events. See the package's docstring for the names.

Their assistant's content is a list of blocks and ours is text, thought and calls, so text between calls is placed by
``ToolCall.at``. A thought can be sent back only with its signature, which ``Message.meta`` keeps; one without is
left out.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from .. import events as ev
from ..events import Event, Usage
from ..fields import Fields, WireError, kind, short
from ..messages import Message, ToolCall, read_call, text_of
from ..tools import Tool
from .answer import CallsOut, InOrder, Reading, call_id, parts
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

# What is asked for where a request names no limit, which this format demands.
DEFAULT_MAX_TOKENS = 4096

_FINISH = {"max_tokens": "length", "model_context_window_exceeded": "length", "refusal": "content_filter"}
_REASONS = {"length": "max_tokens", "interrupted": "max_tokens", "content_filter": "refusal"}


# --- Requests --------------------------------------------------------------------------------------------------------


def read_request(body: Any) -> Request:
    """Read the body of a request. Raises WireError naming the field."""
    fields = Fields(body)
    own = table_of(fields)
    items = fields.items("messages")
    if not items:
        raise WireError("messages", "must be a list of at least one message")
    lost: list[str] = []
    messages: list[Message] = []
    paths: list[str] = []
    if fields.get("system") is not None:
        text = text_of(fields.get("system"), "system")
        messages.append(Message("system", text, meta={"anthropic": fields.get("system")}))
        paths.append("system")
        _note_blocks(fields.get("system"), "system", lost)
    for path, item in items:
        for message, place in _read_message(item, path, lost):
            messages.append(own_names(message, own))
            paths.append(place)
    tools = own_tools(distinct((path, _noted_tool(tool, path, lost)) for path, tool in fields.items("tools")), own)
    head = read_head(fields, tools, lost)
    head["tool_choice"] = own.get(head["tool_choice"], head["tool_choice"])
    if head["tool_choice"] not in ("auto", "none", "required"):
        chosen([head["tool_choice"]], tools, "tool_choice.name")
    kept = {key: value for key, value in fields.value.items() if key not in ("messages", "system")}
    return Request(paired(messages, paths), tools, **head, lost=lost, meta={"anthropic": kept})


def read_head(fields: Fields, tools: list[Tool], lost: list[str]) -> dict[str, Any]:  # noqa: ARG001 - all formats' shape
    """What a body says beside its messages and tools, as fields of a Request."""
    for key in ("messages", "tools", "system"):
        fields.get(key)
    choice, parallel = "auto", True
    wanted = fields.object("tool_choice")
    if wanted is not None:
        named = wanted.one_of("type", ("auto", "any", "none", "tool"))
        choice = wanted.need("name") if named == "tool" else {"any": "required"}.get(named, named)
        parallel = wanted.flag("disable_parallel_tool_use") is not True
    schema = None
    output = fields.object("output_config")
    wanted_format = output.object("format") if output else None
    if output and wanted_format:
        wanted_format.one_of("type", ("json_schema",))
        schema = (wanted_format.object("schema") or Fields(None, wanted_format.at("schema"))).value
    metadata = fields.get("metadata")
    stream = fields.flag("stream") is True
    head = {
        "model": fields.text("model") or "",
        "tool_choice": choice,
        "allowed": None,
        "parallel_calls": parallel,
        "settings": Sampling(
            max_new_tokens=fields.integer("max_tokens", 1),
            temperature=fields.number("temperature", 0, 2),
            top_p=fields.number("top_p", 0, 1),
            top_k=fields.integer("top_k", 0) or None,
            stop=tuple(fields.texts("stop_sequences")),
        ),
        "stream": stream,
        "include_usage": stream,  # this format's streams always say it
        "response_schema": schema,
    }
    lost += fields.unread() + [path for each in (output, wanted) if each for path in each.unread()]
    if isinstance(metadata, Mapping) and set(metadata) - {NAMES}:
        lost.append("metadata")
    return head


def read_tool(data: Any, path: str) -> Tool:
    """A tool with an ``input_schema``. Raises WireError naming the place."""
    fields = Fields(data, path)
    named = fields.text("type")
    if named not in (None, "custom"):
        raise WireError(fields.at("type"), f"server tools such as {short(named)} are not supported")
    name, description = fields.need("name"), fields.text("description")
    more = {"strict": True} if fields.flag("strict") else {}
    return tool_of(name, description, fields.get("input_schema"), fields.at("input_schema"), **more)


def _noted_tool(data: Any, path: str, lost: list[str]) -> Tool:
    tool = read_tool(data, path)
    known = {"name", "description", "input_schema", "type", "strict"}
    lost += [f"{path}.{key}" for key, value in data.items() if key not in known and value is not None]
    return tool


def _read_message(data: Any, path: str, lost: list[str]) -> list[tuple[Message, str]]:
    """Our messages for one of theirs: a user's may hold results and text. Each keeps its blocks, and the first says
    that a message begins.
    """
    fields = Fields(data, path)
    role = fields.one_of("role", ("user", "assistant"))
    content = fields.get("content")
    if not isinstance(content, (str, list)):
        raise WireError(fields.at("content"), f"must be text or a list of blocks, not {kind(content)}")
    if role == "assistant":
        return [(_read_assistant(content, fields.at("content"), lost), path)]
    if isinstance(content, str):
        return [(Message("user", content, meta={"anthropic": {"new": True, "content": content}}), path)]
    messages: list[tuple[Message, str]] = []
    words: list[Any] = []
    for index, block in enumerate(content):
        place = f"{fields.at('content')}[{index}]"
        if not isinstance(block, Mapping) or block.get("type") != "tool_result":
            text_of([block], fields.at("content"))
            words.append(block)
        elif words:
            raise WireError(place, "tool_result blocks must come before text")
        else:
            messages.append((_read_result(block, place, lost), place))
    if words or not messages:
        _note_blocks(words, fields.at("content"), lost, first=len(messages))
        text = text_of(words, fields.at("content"))
        messages.append((Message("user", text, meta={"anthropic": {"new": False, "content": words}}), path))
    first, place = messages[0]
    messages[0] = replace(first, meta={"anthropic": {**first.meta["anthropic"], "new": True}}), place
    return messages


def _read_result(block: Any, path: str, lost: list[str]) -> Message:
    fields = Fields(block, path)
    fields.get("type")
    text = text_of(fields.get("content"), fields.at("content"))
    call, failed = fields.need("tool_use_id"), fields.flag("is_error") is True
    _note_blocks(fields.get("content"), fields.at("content"), lost)
    lost += fields.unread()
    meta = {"anthropic": {"new": False, "content": [block]}}
    return Message("tool", text, call_id=call, is_error=failed, meta=meta)


def _read_assistant(content: Any, path: str, lost: list[str]) -> Message:
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    text: list[str] = []
    reasoning: list[str] = []
    calls: list[ToolCall] = []
    length = 0
    for index, block in enumerate(blocks):
        fields = Fields(block, f"{path}[{index}]")
        named = fields.one_of("type", ("text", "thinking", "redacted_thinking", "tool_use"))
        if named == "text":
            text.append(fields.text("text") or "")
            length += len(text[-1])
        elif named == "thinking":
            reasoning.append(fields.text("thinking") or "")
            if fields.text("signature"):
                lost.append(fields.at("signature"))
        elif named == "redacted_thinking":
            lost.append(fields.path)
            fields.get("data")
        else:
            given = fields.get("input")
            if not isinstance(given, Mapping):
                raise WireError(fields.at("input"), f"must be an object, not {kind(given)}")
            call = read_call(fields.need("name"), given, fields.at("input"), fields.need("id"))
            calls.append(replace(call, at=length))
        lost += fields.unread()
    meta = {"anthropic": {"new": True, "content": content}}
    return Message("assistant", "".join(text), "".join(reasoning), tuple(calls), meta=meta)


def _note_blocks(content: Any, path: str, lost: list[str], first: int = 0) -> None:
    """Note what text blocks say beside their text, such as ``cache_control``."""
    for index, block in enumerate(content if isinstance(content, list) else (), start=first):
        if isinstance(block, Mapping):
            lost += [f"{path}[{index}].{key}" for key in block if key not in ("type", "text") and block[key]]


def write_request(request: Request) -> dict[str, Any]:
    """The body of a request. Names that are not allowed are changed, and the way back is noted in ``metadata``, which
    the API itself does not take: take it out before sending.

    All system messages become the one system text. Raises WireError for a conversation that no API takes.
    """
    messages, names = sendable(request, "toolu")
    settings, table = request.settings, names.table
    head: dict[str, Any] = {"model": request.model} if request.model else {}
    head["max_tokens"] = settings.max_new_tokens or DEFAULT_MAX_TOKENS
    word = {"required": "any"}.get(request.tool_choice, request.tool_choice)
    choice: dict[str, Any] = {"type": word}
    if word not in ("auto", "any", "none"):
        choice = {"type": "tool", "name": names.wire(word)}
    if not request.parallel_calls and word != "none":
        choice["disable_parallel_tool_use"] = True
    if request.tools and choice != {"type": "auto"}:
        head["tool_choice"] = choice
    limits = {"temperature": settings.temperature, "top_p": settings.top_p, "top_k": settings.top_k}
    head.update({key: value for key, value in limits.items() if value is not None})
    if settings.stop:
        head["stop_sequences"] = list(settings.stop)
    if request.response_schema is not None:
        head["output_config"] = {"format": {"type": "json_schema", "schema": request.response_schema}}
    if request.stream:
        head["stream"] = True
    body = dict(kept_head(request, "anthropic", read_head, head))
    systems = [message for message in messages if message.role == "system"]
    if systems:
        body["system"] = _write_system(systems)
    body["messages"] = _write_messages([message for message in messages if message.role != "system"])
    if request.tools:
        body["tools"] = kept_tools(request, "anthropic", read_tool, lambda tool: _write_tool(tool, names.wire))
    if table:
        body["metadata"] = {**(body.get("metadata") or {}), NAMES: json.dumps(table, ensure_ascii=False)}
    return in_order(body, "model", "max_tokens", "system", "messages", "tools")


def _write_system(systems: list[Message]) -> Any:
    before = systems[0].meta.get("anthropic")
    if len(systems) == 1 and before is not None and text_of(before, "") == systems[0].content:
        return before
    return "\n\n".join(message.content for message in systems)


def _write_tool(tool: Tool, wire: Callable[[str], str]) -> dict[str, Any]:
    function = function_of(tool)
    written: dict[str, Any] = {"name": wire(tool.name)}
    if function.get("description"):
        written["description"] = function["description"]
    schema = dict(tool.parameters)
    written["input_schema"] = {"type": "object", **({} if "properties" in schema else {"properties": {}}), **schema}
    if isinstance(function.get("strict"), bool):
        written["strict"] = function["strict"]
    return written


def _write_messages(messages: list[Message]) -> list[dict[str, Any]]:
    """Their messages: the results of a turn stand in one, and the user's words behind them are in it too."""
    written: list[dict[str, Any]] = []
    before = ""
    for message in messages:
        kept = _kept(message)
        content = _blocks(message) if kept is None else kept["content"]
        # The results of a turn may have been put into another order, so that the first is no longer the first.
        joins = message.role == "tool" or (message.role == "user" and not (kept and kept["new"]))
        if before == "tool" and joins:
            written[-1]["content"] = written[-1]["content"] + _as_blocks(content)
        elif content or message.role != "assistant":
            written.append({"role": "assistant" if message.role == "assistant" else "user", "content": content})
        before = message.role
    return written


def _kept(message: Message) -> Any:
    """The blocks in which a message came, where they still say what it says."""
    before = message.meta.get("anthropic")
    if before is None:
        return None
    if message.role == "assistant":
        same = _read_assistant(before["content"], "", []) == replace(message, finish="stop")
    elif message.role == "tool":
        again = _read_result(before["content"][0], "", [])
        same = again == replace(message, name=None)
    else:
        same = text_of(before["content"], "") == message.content
    return before if same else None


def _as_blocks(content: Any) -> list[Any]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return list(content)


def _blocks(message: Message) -> Any:
    """The content of a message of ours. Empty text blocks are not allowed."""
    if message.role == "tool":
        block = {"type": "tool_result", "tool_use_id": message.call_id, "content": message.content}
        return [{**block, "is_error": True} if message.is_error else block]
    if message.role == "user":
        return message.content
    calls = any(call.name for call in message.calls)
    blocks = [_block(part, None) for part in parts(message)]
    return blocks if calls else "".join(block["text"] for block in blocks)


def _block(part: str | ToolCall, minted: str | None) -> dict[str, Any]:
    if isinstance(part, str):
        return {"type": "text", "text": part}
    return {"type": "tool_use", "id": part.id or minted, "name": part.name, "input": _object(part).arguments}


def _object(call: ToolCall) -> ToolCall:
    """The call with arguments that are an object, since nothing else can be said here."""
    return call if isinstance(call.arguments, Mapping) else replace(call, arguments={"value": call.arguments})


# --- Responses -------------------------------------------------------------------------------------------------------


def _usage(usage: Usage) -> dict[str, Any]:
    return {
        "input_tokens": max(0, usage.prompt_tokens - usage.cached_tokens),
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": usage.cached_tokens,
        "output_tokens": usage.new_tokens,
    }


def read_usage(data: Any) -> Usage:
    """What an answer cost. A count that makes no sense counts as 0."""
    data = data if isinstance(data, Mapping) else {}

    def count(key: str) -> int:
        value = data.get(key)
        return value if isinstance(value, int) and value > 0 else 0

    cached = count("cache_read_input_tokens")
    prompt = count("input_tokens") + cached + count("cache_creation_input_tokens")
    return Usage(prompt, cached, count("output_tokens"))


def response(
    message: Message,
    *,
    id: str,  # noqa: A002 - its name on the wire
    model: str,
    finish: str,
    usage: Usage | None = None,
    created: int = 0,  # noqa: ARG001 - this format has no such field; the others do
    stop_sequence: str | None = None,
) -> dict[str, Any]:
    """The body of an answer; ``stop_sequence`` is the text that ended it, if one did."""
    content: list[dict[str, Any]] = []
    if message.reasoning:
        content.append({"type": "thinking", "thinking": message.reasoning, "signature": ""})
    calls = 0
    for part in parts(message):
        calls += not isinstance(part, str)
        content.append(_block(part, call_id("toolu", id, calls)))
    return {
        "id": id,
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": content,
        "stop_reason": _reason(finish, calls > 0, stop_sequence),
        "stop_sequence": stop_sequence,
        "usage": _usage(usage or Usage()),
    }


def _reason(finish: str, calls: bool, stop_sequence: str | None) -> str:
    if finish in _REASONS:
        return _REASONS[finish]
    if calls:
        return "tool_use"
    return "end_turn" if stop_sequence is None else "stop_sequence"


def read_response(body: Any, lost: list[str] | None = None) -> tuple[Message, str, Usage]:
    """The message of an answer, how it ended, and what it cost. ``lost`` gets what else was said. Raises WireError."""
    lost = [] if lost is None else lost
    fields = Fields(body)
    content = fields.get("content")
    if not isinstance(content, list):
        raise WireError("content", f"must be a list of blocks, not {kind(content)}")
    message = _read_assistant(content, "content", lost)
    if fields.get("stop_sequence"):
        lost.append("stop_sequence")
    finish = _FINISH.get(fields.text("stop_reason") or "", "stop")
    return replace(message, finish=finish), finish, read_usage(fields.get("usage"))


class StreamWriter:
    """An answer as events; the ``type`` of each is also its name in the framing. See the package's docstring.

    Blocks do not interleave here, so while a call is open everything else waits for its end.
    """

    def __init__(self, *, id: str, model: str, created: int = 0, include_usage: bool = True) -> None:  # noqa: A002, ARG002
        self._start: dict[str, Any] = {
            **response(Message("assistant"), id=id, model=model, finish="stop"),
            "content": [],
            "stop_reason": None,
        }
        self._calls = CallsOut("toolu", id)
        self._order = InOrder()
        self._begun = False
        self._block = -1
        self._open = ""

    def feed(self, event: Event) -> list[dict[str, Any]]:
        """The events for one of ours; the first come before all others."""
        return [*self._begin(), *(out for each in self._order.feed(event) for out in self._write(each))]

    def close(self, finish: str, usage: Usage | None = None, stop_sequence: str | None = None) -> list[dict[str, Any]]:
        """The last events."""
        out = [
            *self._begin(),
            *(out for each in self._order.close() for out in self._write(each)),
            *self._close_block(),
        ]
        reason = _reason(self._calls.finish(finish), self._calls.whole > 0, stop_sequence)
        delta = {"stop_reason": reason, "stop_sequence": stop_sequence}
        return [
            *out,
            {"type": "message_delta", "delta": delta, "usage": _usage(usage or Usage())},
            {"type": "message_stop"},
        ]

    def _write(self, event: Event) -> list[dict[str, Any]]:
        if isinstance(event, ev.Text):
            return self._piece("text", {"type": "text", "text": ""}, {"type": "text_delta", "text": event.delta})
        if isinstance(event, ev.Reasoning):
            block: dict[str, Any] = {"type": "thinking", "thinking": "", "signature": ""}
            return self._piece("thinking", block, {"type": "thinking_delta", "thinking": event.delta})
        if isinstance(event, ev.CallStart):
            self._calls.start(event)
        elif isinstance(event, ev.CallName):
            _, given = self._calls.announce(event.index)
            block = {"type": "tool_use", "id": given, "name": event.name, "input": {}}
            return [*self._close_block(), *self._open_block("tool_use", block)]
        elif isinstance(event, ev.CallArgs) and self._calls.announced(event.index):
            return self._arguments(self._calls.piece(event.index, event.delta))
        elif isinstance(event, ev.CallEnd):
            out = []
            if not self._calls.announced(event.index):
                out += self._write(ev.CallName(event.index, event.call.name))
            out += self._arguments(self._calls.rest(event.index, _object(event.call)))
            return [*out, *self._close_block()]
        elif isinstance(event, ev.CallError):
            text = self._calls.failed(event)
            return self._write(ev.Text(text)) if text else self._close_block()
        return []

    def _arguments(self, delta: str) -> list[dict[str, Any]]:
        return [] if not delta else [self._delta_of({"type": "input_json_delta", "partial_json": delta})]

    def _piece(self, kind_: str, block: dict[str, Any], delta: dict[str, Any]) -> list[dict[str, Any]]:
        begin = [] if self._open == kind_ else [*self._close_block(), *self._open_block(kind_, block)]
        return [*begin, self._delta_of(delta)]

    def _open_block(self, kind_: str, block: dict[str, Any]) -> list[dict[str, Any]]:
        self._open = kind_
        self._block += 1
        return [{"type": "content_block_start", "index": self._block, "content_block": block}]

    def _close_block(self) -> list[dict[str, Any]]:
        if not self._open:
            return []
        self._open = ""
        return [{"type": "content_block_stop", "index": self._block}]

    def _delta_of(self, delta: dict[str, Any]) -> dict[str, Any]:
        return {"type": "content_block_delta", "index": self._block, "delta": delta}

    def _begin(self) -> list[dict[str, Any]]:
        begun, self._begun = self._begun, True
        return [] if begun else [{"type": "message_start", "message": self._start}]


class StreamReader:
    """Events from their events. ``feed`` raises WireError for one that is none, or that says that the server failed."""

    def __init__(self) -> None:
        self._reading = Reading()
        self._blocks: dict[int, dict[str, Any]] = {}
        self._pieces: dict[int, list[str]] = {}
        self.message = Message("assistant")
        self.finish: str | None = None
        self.usage = Usage()
        self.lost: list[str] = []
        self._counts: dict[str, Any] = {}

    def feed(self, chunk: Any) -> list[Event]:
        """The events of one of theirs."""
        fields = Fields(chunk)
        named = fields.text("type")
        if named == "error":
            raise WireError("error", error_text(fields.get("error")))
        if named == "message_start":
            message = fields.object("message")
            self._count(message.get("usage") if message else None)
        elif named == "content_block_start":
            block = fields.object("content_block") or Fields(None, fields.at("content_block"))
            return self._start(self._index(fields), block)
        elif named == "content_block_delta":
            return self._delta(self._index(fields), fields.object("delta") or Fields(None, fields.at("delta")))
        elif named == "content_block_stop":
            return self._reading.call_over(self._index(fields), whole_only=True)
        elif named == "message_delta":
            delta = fields.object("delta")
            reason = delta.text("stop_reason") if delta else None
            if reason:
                self.finish = _FINISH.get(reason, "stop")
            if delta and delta.get("stop_sequence"):
                self.lost.append("stop_sequence")
            self._count(fields.get("usage"))
        return []

    def close(self) -> list[Event]:
        """The stream is over; one that gave no reason was cut. ``message`` keeps the blocks with their signatures."""
        self.finish = self.finish or "length"
        self.usage = read_usage(self._counts)
        new = self._reading.close(self.finish)
        blocks = [self._block(index) for index in sorted(self._blocks)]
        self.message = replace(self._reading.message, meta={"anthropic": {"new": True, "content": blocks}})
        return new

    def _start(self, index: int, block: Fields) -> list[Event]:
        named = block.one_of("type", ("text", "thinking", "redacted_thinking", "tool_use"))
        self._blocks[index] = dict(block.value)
        self._pieces[index] = []
        if named == "redacted_thinking":
            self.lost.append(f"content[{index}]")
        if named == "text":
            return self._piece(index, block.text("text"), self._reading.text)
        if named == "thinking":
            return self._piece(index, block.text("thinking"), self._reading.reasoning)
        if named == "tool_use":
            new = self._reading.call(index, block.need("id"), block.need("name"))
            given = json.dumps(block.get("input"), ensure_ascii=False) if block.get("input") else ""
            return new + self._piece(index, given, partial(self._reading.arguments, index))
        return []

    def _delta(self, index: int, delta: Fields) -> list[Event]:
        if index not in self._blocks:
            raise WireError("index", f"no block {index} is open")
        block = self._blocks[index]
        kinds = delta.text("type"), block["type"]
        if kinds == ("text_delta", "text"):
            return self._piece(index, delta.text("text"), self._reading.text)
        if kinds == ("thinking_delta", "thinking"):
            return self._piece(index, delta.text("thinking"), self._reading.reasoning)
        if kinds == ("signature_delta", "thinking"):
            block["signature"] = delta.text("signature") or ""
            self.lost.append(f"content[{index}].signature")
        if kinds[0] == "citations_delta":
            self.lost.append(f"content[{index}].citations")
        if kinds == ("input_json_delta", "tool_use") and self._reading.has(index):
            return self._piece(index, delta.text("partial_json"), partial(self._reading.arguments, index))
        return []

    def _piece(self, index: int, delta: str | None, read: Callable[[str], list[Event]]) -> list[Event]:
        self._pieces[index].append(delta or "")
        return read(delta or "")

    def _block(self, index: int) -> dict[str, Any]:
        """A block as the API would have given it whole."""
        block, text = self._blocks[index], "".join(self._pieces[index])
        if block["type"] in ("text", "thinking"):
            return {**block, block["type"]: text}
        if block["type"] == "tool_use":
            call = read_call("", text)
            return {**block, "input": {} if call.problems else call.arguments}
        return block

    @staticmethod
    def _index(fields: Fields) -> int:
        index = fields.integer("index", 0)
        if index is None:
            raise WireError("index", "must be given")
        return index

    def _count(self, usage: Any) -> None:
        """Counts are totals: a later one replaces an earlier one."""
        if isinstance(usage, Mapping):
            self._counts.update({key: value for key, value in usage.items() if value is not None})

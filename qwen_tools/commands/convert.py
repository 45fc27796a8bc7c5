"""``convert``: the same conversation in another format: raw Qwen text, OpenAI, Responses, Anthropic.

Requests, responses and recorded streams. What is lost is printed with --report, and --strict loses nothing.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..errors import UserError
from ..events import Event, Usage
from ..families import FAMILIES
from ..fields import Fields, WireError
from ..wire import Request, anthropic, loss, openai, qwen, responses, sse
from ..wire.answer import is_cut
from .terminal import say, visible

FORMATS: dict[str, Any] = {"openai": openai, "responses": responses, "anthropic": anthropic}
KINDS = ("request", "response", "stream")
_IDS = {"openai": "chatcmpl-0", "responses": "resp_0", "anthropic": "msg_0"}


def configure(parser: argparse.ArgumentParser) -> None:
    """The arguments of convert."""
    parser.add_argument("file", help="JSON, the text of a stream, or raw text; - is stdin")
    parser.add_argument(
        "--from", dest="source", choices=loss.FORMATS, help="the format of FILE (default: seen from its content)"
    )
    parser.add_argument("--to", dest="target", choices=loss.FORMATS, required=True, help="the format to write")
    parser.add_argument("--kind", choices=KINDS, help="what FILE holds (default: seen from its content)")
    parser.add_argument(
        "--family",
        help=f"how raw text is written: {', '.join(sorted(FAMILIES))} (default: seen from the text, else qwen3)",
    )
    parser.add_argument("--report", action="store_true", help="say on stderr what is lost and what is changed")
    parser.add_argument(
        "--strict", action="store_true", help="write nothing when something would be lost (exit code 1)"
    )


def run(args: argparse.Namespace) -> int:
    """Convert FILE to stdout; 1 when --strict refuses."""
    text = _read(args.file)
    try:
        source, kind = guess(text, args.source, args.kind)
        written, losses = convert(text, source, args.target, kind, args.family)
    except WireError as error:
        raise UserError(f"{args.file}: {visible(str(error))}", code=1) from error
    if args.report or (args.strict and losses.lost):
        for word, lines in (("lost", losses.lost), ("changed", losses.changed)):
            for line in dict.fromkeys(lines):
                say(f"{word}: {visible(line)}")
        if args.report and not any(losses):
            say("nothing is lost")
    if args.strict and losses.lost:
        say("nothing was written, since --strict loses nothing")
        return 1
    sys.stdout.write(written)
    return 0


def guess(text: str, source: str | None, kind: str | None) -> tuple[str, str]:
    """Format and kind of a text, from its content where that is certain. Raises UserError where it is not."""
    if source == "qwen" or (source is None and "<|im_start|>" in text[:1000] and not text.lstrip().startswith("{")):
        return "qwen", kind or ("request" if text.startswith("<|im_start|>") else "response")
    data: Any = None
    if kind != "stream":
        try:
            data = json.loads(text)
        except (ValueError, RecursionError) as error:
            if kind is not None or not _looks_like_stream(text):
                raise UserError(f"this is neither JSON nor a stream ({error}); raw text needs --from qwen") from error
            kind = "stream"
    if kind == "stream":
        data = next(iter(_chunks(text)), None)
    if not isinstance(data, dict):
        raise UserError("this is no request, response or stream of a chat API: an object was expected")
    seen = _seen(data)
    if source is None and seen is None:
        raise UserError("the format cannot be seen from the content: give --from")
    if kind is None:
        kind = "request" if "messages" in data or "input" in data else "response"
    return source or str(seen), kind


def _seen(data: dict[str, Any]) -> str | None:
    """The format of an object, where one of its keys is that format's alone."""
    named = str(data.get("object") or data.get("type") or "")
    if "choices" in data or named.startswith("chat.completion"):
        return "openai"
    if "input" in data or named.startswith("response"):
        return "responses"
    if named in ("message", "message_start", "ping") or "stop_sequences" in data or "system" in data:
        return "anthropic"
    if "messages" not in data:
        return None
    tools = data.get("tools")
    first = tools[0] if isinstance(tools, list) and tools else None
    if isinstance(first, dict):
        return "anthropic" if "input_schema" in first else "openai"
    for message in data["messages"] if isinstance(data["messages"], list) else ():
        content = message.get("content") if isinstance(message, dict) else None
        if isinstance(message, dict) and (
            message.get("role") in ("system", "tool", "developer") or "tool_calls" in message
        ):
            return "openai"
        if isinstance(content, list) and any(
            isinstance(block, dict) and block.get("type") in ("tool_use", "tool_result", "thinking")
            for block in content
        ):
            return "anthropic"
    return None


def _looks_like_stream(text: str) -> bool:
    """Server-sent events, or a line that is JSON by itself."""
    if text.lstrip().startswith(("data:", "event:", ":")):
        return True
    try:
        json.loads(text.lstrip().partition("\n")[0])
    except (ValueError, RecursionError):
        return False
    return True


def convert(text: str, source: str, target: str, kind: str, family: str | None = None) -> tuple[str, loss.Losses]:
    """The text in the other format, and what it lost. Raises WireError naming the place, or UserError."""
    if kind == "request":
        request = (
            qwen.read_request(text, family) if source == "qwen" else FORMATS[source].read_request(json.loads(text))
        )
        family = family or (request.meta.get("qwen") or {}).get("family") or "qwen3"
        losses = loss.of_request(request, source, target, family)
        if source == target != "qwen":
            return _json(json.loads(text)), losses
        return _written(request, target, family), losses
    family = family or "qwen3"
    head: dict[str, Any] = {}
    lost: list[str] = []
    if source == "qwen":
        reader: Any = qwen.StreamReader(family)
        events = [*reader.feed(text.removesuffix("\n").removesuffix("<|im_end|>")), *reader.close()]
        message, usage = reader.message, reader.usage
        finish = "length" if any(is_cut(call) for call in message.calls) else reader.finish
    elif kind == "response":
        head = json.loads(text)
        message, finish, usage = FORMATS[source].read_response(head, lost)
        events = []
    else:
        reader = FORMATS[source].StreamReader()
        chunks = list(_chunks(text))
        head = _head(chunks)
        events = [event for chunk in chunks for event in reader.feed(chunk)] + reader.close()
        message, finish, usage, lost = reader.message, reader.finish, reader.usage, reader.lost
    if source == target:
        return (text if kind == "stream" or source == "qwen" else _json(head)), loss.Losses([], [])
    losses = loss.of_answer(replace(message, finish=finish), source, target)
    losses.lost.extend(lost)
    if target == "qwen":
        return qwen.response(message, family), losses
    fields = Fields(head)
    frame = {
        "id": fields.text("id") or _IDS[target],
        "created": int(fields.number("created", 0, 2**53) or fields.number("created_at", 0, 2**53) or 0),
        "model": fields.text("model") or "",
    }
    if kind == "response":
        body = FORMATS[target].response(message, **frame, finish=finish, usage=usage)
        return _json(body), losses
    return "".join(_framed(events, finish, usage, target, frame)), losses


def _framed(events: Iterable[Event], finish: str, usage: Usage, target: str, frame: dict[str, Any]) -> Iterator[str]:
    writer = FORMATS[target].StreamWriter(**frame, include_usage=True)
    for event in events:
        yield from (sse.write(chunk, named=target != "openai") for chunk in writer.feed(event))
    yield from (sse.write(chunk, named=target != "openai") for chunk in writer.close(finish, usage))
    if target == "openai":
        yield sse.DONE


def _written(request: Request, target: str, family: str) -> str:
    if target == "qwen":
        return qwen.write_request(request, family)
    return _json(FORMATS[target].write_request(request))


def _json(body: Any) -> str:
    return json.dumps(body, ensure_ascii=False, indent=2) + "\n"


def _chunks(text: str) -> Iterator[Any]:
    """The objects of a recorded stream: server-sent events, or JSON lines."""
    if text.lstrip().startswith("{"):
        for number, line in enumerate(text.splitlines(), start=1):
            if line.strip():
                try:
                    yield json.loads(line)
                except (ValueError, RecursionError) as error:
                    raise WireError(f"line {number}", f"is not JSON: {error}") from error
        return
    # A recording that was cut in the middle of an event has no empty line at its end.
    yield from sse.Reader().feed(text + "\n\n")


def _head(chunks: list[Any]) -> dict[str, Any]:
    """Where the id and the model of a stream stand."""
    first = Fields(chunks[0]).value if chunks else {}
    for key in ("response", "message"):
        if isinstance(first.get(key), dict):
            return dict(first[key])
    return dict(first)


def _read(file: str) -> str:
    try:
        data = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
        return data.decode("utf-8-sig")
    except OSError as error:
        raise UserError(f"cannot read {file}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UserError(f"{file} is not UTF-8 text: byte {error.start}") from error

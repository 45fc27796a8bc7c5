"""What an answer looks like, by route: the three chat formats, a raw continuation, and the events themselves.

An ``Exchange`` is one request being answered: ``work`` makes its items in the model's thread, ``take`` is told each of
them, ``frame`` turns one into bytes of the stream, ``whole`` is the body of an answer that is not streamed.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Generator
from types import ModuleType
from typing import Any, Protocol

from .. import events as ev
from ..engines import Piece
from ..errors import BadSchemaError
from ..events import Event
from ..fields import Fields
from ..messages import Message
from ..wire import Request, Sampling, anthropic, openai, responses, sse
from . import inert
from .answer import Reins, Serving, answer, continuation
from .errors import ApiError

_DONE = sse.DONE.encode()
# Where a request says of what schema the answer is.
_SCHEMA_PLACES = {openai: "response_format", responses: "text.format", anthropic: "output_config.format"}
# What OpenAI's completions stop at where no limit is given.
_USUAL_LIMIT = 16


class Exchange(Protocol):
    """One request being answered."""

    model: str
    stream: bool

    def work(self, cancelled: threading.Event) -> Generator[Any, None, None]:
        """Make the answer, in the model's thread."""

    def begun(self, item: Any) -> bool:
        """Whether an item shows that the model is at work, so that nothing can be refused any more."""

    def take(self, item: Any) -> None:
        """Remember of an item what ``last`` or ``whole`` will say."""

    def frame(self, item: Any) -> bytes:
        """The part of the stream that an item is, which was taken."""

    def last(self) -> bytes:
        """The end of the stream, once all items were taken."""

    def failed(self, error: ApiError) -> bytes:
        """The end of a stream that broke off."""

    def whole(self) -> dict[str, Any]:
        """The body, once all items were taken."""


def new_id(prefix: str) -> str:
    """An id for an answer."""
    return prefix + secrets.token_hex(12)


def _frame(data: dict[str, Any], *, named: bool = False) -> bytes:
    return encoded(sse.write(data, named=named))


def encoded(json_text: str) -> bytes:
    """JSON text as UTF-8. Half a surrogate pair, which a model may write, has no such form but a JSON escape."""
    return json_text.encode("utf-8", "backslashreplace")


class Chat:
    """A request in one of the chat formats, ``format`` being its module in ``wire``. Raises WireError or ApiError."""

    def __init__(self, serving: Serving, format: ModuleType, prefix: str, body: dict[str, Any]) -> None:  # noqa: A002
        self._serving = serving
        self._format = format
        self._asked: Request = format.read_request(body)
        inert.check(body, self._asked.lost)
        self._check_guide()
        self.model = self._asked.model
        self.stream = self._asked.stream
        self._head: dict[str, Any] = {"id": new_id(prefix), "created": int(time.time()), "model": serving.engine.name}
        if format is responses:  # the one format whose answers repeat what was asked
            self._head["request"] = self._asked
        self._writer: Any = format.StreamWriter(**self._head, include_usage=self._asked.include_usage)
        self._message = Message("assistant")
        self._end: dict[str, Any] = {}
        self._reins: Reins | None = None

    def work(self, cancelled: threading.Event) -> Generator[Event, None, None]:
        """See Exchange."""
        self._reins = Reins(self._serving, cancelled)
        try:
            yield from answer(self._serving, self._asked, self._reins)
        except BadSchemaError as error:
            raise ApiError(400, str(error), field=self._place(error.tool)) from None

    def begun(self, item: Event) -> bool:
        """See Exchange: the prompt alone may still turn out too long."""
        return not isinstance(item, ev.RoundStart)

    def take(self, item: Event) -> None:
        """See Exchange."""
        if isinstance(item, ev.RoundEnd):
            self._end = {"finish": item.finish, "usage": item.usage}
            if self._format is anthropic and self._reins is not None:  # the one format that says which
                self._end["stop_sequence"] = self._reins.stop
        elif isinstance(item, ev.MessageAdded):
            self._message = item.message

    def frame(self, item: Event) -> bytes:
        """See Exchange."""
        return self._framed(self._writer.feed(item))

    def last(self) -> bytes:
        """See Exchange."""
        return self._framed(self._writer.close(**self._end)) + (_DONE if self._format is openai else b"")

    def failed(self, error: ApiError) -> bytes:
        """See Exchange."""
        if self._format is responses:
            shape = {"type": "error", "code": error.code, "message": error.message, "param": error.field}
            return _frame(shape, named=True)
        is_anthropic = self._format is anthropic
        return _frame(error.to_dict(anthropic=is_anthropic), named=is_anthropic)

    def whole(self) -> dict[str, Any]:
        """See Exchange."""
        body: dict[str, Any] = self._format.response(self._message, **self._head, **self._end)
        return body

    def _check_guide(self) -> None:
        """Raises ApiError for what only a guide could keep, where there is none, or nothing that it could allow."""
        asked, serving = self._asked, self._serving
        demands_call = asked.tool_choice not in ("auto", "none")
        if demands_call and not asked.tools:
            raise ApiError(400, "demands a call, and no tool is offered", field="tool_choice")
        if not (serving.guided and serving.engine.can_guide):
            without = "needs the guide, and this server runs without it"
            if asked.response_schema is not None:
                raise ApiError(400, without, field=self._place(None))
            if demands_call:
                raise ApiError(400, without, field="tool_choice")

    def _place(self, tool: str | None) -> str:
        """Where the schema of a tool stands in the request, or, without one, that of the answer."""
        if tool is None:
            return _SCHEMA_PLACES[self._format]
        return f"tools[{[each.name for each in self._asked.tools].index(tool)}]"

    def _framed(self, chunks: list[dict[str, Any]]) -> bytes:
        return b"".join(_frame(chunk, named=self._format is not openai) for chunk in chunks)


class Events(Chat):
    """A Chat Completions request whose answer is the events of the turn, the raw prompt first. Always a stream."""

    def __init__(self, serving: Serving, body: dict[str, Any]) -> None:
        super().__init__(serving, openai, "events-", body)
        self.stream = True

    def frame(self, item: Event) -> bytes:
        """See Exchange."""
        return _frame(ev.to_dict(item))

    def last(self) -> bytes:
        """See Exchange."""
        return b""


class Completion:
    """OpenAI's older format, in which nothing is rendered and nothing parsed. Raises WireError or ApiError."""

    def __init__(self, serving: Serving, body: dict[str, Any]) -> None:
        fields = Fields(body)
        options = fields.object("stream_options")
        limit, seed = fields.integer("max_tokens", 1), fields.integer("seed", -(2**63))
        self._serving = serving
        self._settings = Sampling(
            max_new_tokens=_USUAL_LIMIT if limit is None else limit,
            temperature=fields.number("temperature", 0, 2),
            top_p=fields.number("top_p", 0, 1),
            seed=seed,
            stop=fields.texts("stop"),
        )
        self._prompt = fields.need("prompt")
        self._include_usage = options is not None and options.flag("include_usage") is True
        self._text = [self._prompt] if fields.flag("echo") else []
        self._last = Piece("")
        self.model = fields.text("model") or ""
        self.stream = fields.flag("stream") is True
        self._head = {
            "id": new_id("cmpl-"),
            "object": "text_completion",
            "created": int(time.time()),
            "model": serving.engine.name,
        }
        inert.check(body, fields.unread())

    def work(self, cancelled: threading.Event) -> Generator[Piece, None, None]:
        """See Exchange."""
        return continuation(self._serving, self._prompt, self._settings, Reins(self._serving, cancelled))

    def begun(self, item: Piece) -> bool:
        """See Exchange."""
        return isinstance(item, Piece)

    def take(self, item: Piece) -> None:
        """See Exchange."""
        self._text.append(item.text)
        self._last = item

    def frame(self, item: Piece) -> bytes:  # noqa: ARG002 - its text was taken
        """See Exchange."""
        text, self._text = "".join(self._text), []
        return _frame(self._body(text, None)) if text else b""

    def last(self) -> bytes:
        """See Exchange."""
        parts = [_frame(self._body("", self._finish()))]
        if self._include_usage:
            parts.append(_frame({**self._head, "choices": [], "usage": self._usage()}))
        return b"".join(parts) + _DONE

    def failed(self, error: ApiError) -> bytes:
        """See Exchange."""
        return _frame(error.to_dict(anthropic=False))

    def whole(self) -> dict[str, Any]:
        """See Exchange."""
        return {**self._body("".join(self._text), self._finish()), "usage": self._usage()}

    def _body(self, text: str, finish: str | None) -> dict[str, Any]:
        choice = {"index": 0, "text": text, "logprobs": None, "finish_reason": finish}
        return {**self._head, "choices": [choice]}

    def _finish(self) -> str:
        return "stop" if self._last.finish == "stop" else "length"

    def _usage(self) -> dict[str, Any]:
        usage = self._last.usage
        return {
            "prompt_tokens": usage.prompt_tokens,
            "completion_tokens": usage.new_tokens,
            "total_tokens": usage.prompt_tokens + usage.new_tokens,
            "prompt_tokens_details": {"cached_tokens": usage.cached_tokens},
        }

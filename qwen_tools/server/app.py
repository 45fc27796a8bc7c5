"""The routes, and how an answer gets to its client: whole, or piece by piece as it is made.

A client that goes away, or that takes nothing of its stream for a minute, gives up its place; no other notices.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
import time
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from functools import partial
from importlib.resources import files
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from ..errors import UserError
from ..fields import WireError
from ..wire import anthropic, openai, responses
from .answer import Serving
from .body import content, parse
from .description import DESCRIPTION
from .errors import ApiError, speaks_anthropic
from .forms import Chat, Completion, Events, Exchange, encoded
from .gate import Gate
from .queue import ClosedError, Job, Queue, QueueFullError

# How long a client may leave unread what was sent to it.
SEND_SECONDS = 60.0

# The files of the page. Nothing may be loaded from elsewhere, and nothing in a page may be script but page.js.
_PAGE = {"index.html": "text/html", "page.css": "text/css", "page.js": "text/javascript", "icon.svg": "image/svg+xml"}
_PAGE_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}


def app(serving: Serving, *, places: int = 32, key: str | None = None, origins: Sequence[str] = ()) -> Starlette:
    """The ASGI application. At most ``places`` requests wait while one is answered. With ``key`` every request to
    ``/v1`` must bring it; without, only this machine's own names are answered to. Pages of ``origins`` may use the
    server.
    """
    server = _Server(serving, Queue(places))

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        yield
        server.queue.close()

    def answered(read: Callable[[dict[str, Any]], Exchange]) -> Callable[[Request], Awaitable[ASGIApp]]:
        return partial(server.answer, read)

    routes = [
        Route("/v1/chat/completions", answered(partial(Chat, serving, openai, "chatcmpl-")), methods=["POST"]),
        Route("/v1/responses", answered(partial(Chat, serving, responses, "resp_")), methods=["POST"]),
        Route("/v1/messages", answered(partial(Chat, serving, anthropic, "msg_")), methods=["POST"]),
        Route("/v1/completions", answered(partial(Completion, serving)), methods=["POST"]),
        Route("/v1/events", answered(partial(Events, serving)), methods=["POST"]),
        Route("/v1/models", server.models),
        Route("/v1/models/{name:path}", server.model),
        Route("/health", server.health),
        Route("/openapi.json", _description),
        Route("/", partial(_page, "index.html")),
        *[Route(f"/page/{name}", partial(_page, name)) for name in _PAGE],
    ]
    middleware = [Middleware(Gate, key=key, origins=origins)]
    if origins:
        middleware.insert(
            0, Middleware(CORSMiddleware, allow_origins=list(origins), allow_methods=["*"], allow_headers=["*"])
        )
    kinds = (ApiError, HTTPException, UserError, QueueFullError, ClosedError, Exception)
    handlers: dict[Any, Any] = dict.fromkeys(kinds, _refused)
    return Starlette(routes=routes, middleware=middleware, exception_handlers=handlers, lifespan=lifespan)


class _Server:
    """One model, its queue, and the requests that come to it."""

    def __init__(self, serving: Serving, queue: Queue) -> None:
        self.queue = queue
        self._serving = serving
        self._started = int(time.time())

    async def answer(self, read: Callable[[dict[str, Any]], Exchange], request: Request) -> ASGIApp:
        """Put a request to the model and answer it."""
        body = await content(request)
        try:
            # Not in the event loop, which a large body would hold up for all.
            exchange = await run_in_threadpool(lambda: read(parse(body)))
            self._check_name(exchange.model)
            job = self.queue.add(exchange.work)
        except Exception as error:  # noqa: BLE001 - whatever it is, the client is told in its format
            raise _refusal(error) from None
        return _Answer(exchange, job, partial(self.queue.cancel, job))

    async def models(self, _: Request) -> Response:
        """The list of models, which is one; in the shape of both formats at once."""
        model = self._model()
        name = model["id"]
        return JSONResponse(
            {"object": "list", "data": [model], "has_more": False, "first_id": name, "last_id": name},
        )

    async def model(self, request: Request) -> Response:
        """One model."""
        self._check_name(request.path_params["name"])
        return JSONResponse(self._model())

    async def health(self, _: Request) -> Response:
        """Whether there is anybody, and how long the queue is."""
        return JSONResponse({"status": "ok", "busy": self.queue.busy, "waiting": self.queue.waiting})

    def _model(self) -> dict[str, Any]:
        name = self._serving.engine.name
        since = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(self._started))
        openais = {"id": name, "object": "model", "created": self._started, "owned_by": "qwen_tools"}
        return {**openais, "type": "model", "display_name": name, "created_at": since}

    def _check_name(self, name: str) -> None:
        """Raises ApiError for a model that is not here; a request that names none means the one there is."""
        served = self._serving.engine.name
        if name not in ("", served):
            message = f"this server has the model {served!r} only"
            raise ApiError(404, message, field="model", code="model_not_found")


_STREAM_HEADERS = [(b"content-type", b"text/event-stream; charset=utf-8"), (b"cache-control", b"no-store")]


class _Answer:
    """What the model says to an exchange, and the end of the work on it as soon as nobody listens."""

    def __init__(self, exchange: Exchange, job: Job[Any], cancel: Callable[[], None]) -> None:
        self._exchange = exchange
        self._job = job
        self._cancel = cancel

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        delivery = asyncio.ensure_future(self._deliver(scope, receive, send))
        departure = asyncio.ensure_future(_departure(receive))
        try:
            await asyncio.wait((delivery, departure), return_when=asyncio.FIRST_COMPLETED)
            if delivery.done():
                # A reader that is too slow is left: the server closes a connection whose answer is not whole.
                with contextlib.suppress(_TooSlowError, OSError):
                    delivery.result()
        finally:
            delivery.cancel()
            departure.cancel()
            self._cancel()

    async def _deliver(self, scope: Scope, receive: Receive, send: Send) -> None:
        exchange = self._exchange
        held: list[Any] = []
        begun = False
        try:
            async for batch in self._job.batches():
                for item in batch:
                    exchange.take(item)
                if not exchange.stream:
                    continue
                held += batch
                if not begun and not any(map(exchange.begun, batch)):
                    continue
                if not begun:
                    begun = True
                    await send({"type": "http.response.start", "status": 200, "headers": _STREAM_HEADERS})
                await _send_part(send, b"".join(map(exchange.frame, held)))
                held = []
        except _TooSlowError:
            raise
        except Exception as error:  # noqa: BLE001 - whatever it is, the client is told in its format
            refusal = _refusal(error)
            if begun:
                await _send_part(send, exchange.failed(refusal), last=True)
            else:
                await _refused(Request(scope), refusal)(scope, receive, send)
            return
        if begun:
            await _send_part(send, exchange.last(), last=True)
        else:
            content = encoded(json.dumps(exchange.whole(), ensure_ascii=False))
            await Response(content, media_type="application/json")(scope, receive, send)


class _TooSlowError(Exception):
    """The client does not read on."""


async def _send_part(send: Send, part: bytes, *, last: bool = False) -> None:
    """Send some of a stream. Raises _TooSlowError."""
    message = {"type": "http.response.body", "body": part, "more_body": not last}
    try:
        await asyncio.wait_for(send(message), SEND_SECONDS)
    except asyncio.TimeoutError:
        raise _TooSlowError from None


async def _departure(receive: Receive) -> None:
    """Returns when the client goes away."""
    while (await receive())["type"] != "http.disconnect":
        pass


def _refused(request: Request, error: Exception) -> Response:
    """An error in the shape of the format that the path belongs to."""
    refusal = _refusal(error)
    shape = refusal.to_dict(anthropic=speaks_anthropic(request.url.path))
    return JSONResponse(shape, refusal.status, headers=refusal.headers)


def _refusal(error: Exception) -> ApiError:
    """Whatever was raised, as what the client is told."""
    if isinstance(error, ApiError):
        return error
    if isinstance(error, HTTPException):  # of the router: no such path, or not with this method
        return ApiError(error.status_code, error.detail, headers=error.headers)
    if isinstance(error, WireError):
        return ApiError(400, error.reason, field=error.field or None)
    if isinstance(error, UserError):
        return ApiError(503 if error.code == 3 else 400, str(error))
    if isinstance(error, QueueFullError):
        return ApiError(
            429, f"{error}: try again later", code="queue_full", headers={"Retry-After": str(error.retry_after)}
        )
    if isinstance(error, ClosedError):
        return ApiError(503, "the server is about to end")
    # Where it happened, but not the message, which may quote the request.
    place = traceback.extract_tb(error.__traceback__)[-1]
    print(f"internal error: {type(error).__name__} in {place.filename}, line {place.lineno}", file=sys.stderr)
    return ApiError(500, "internal error: the server's own output says where")


def _description(_: Request) -> Response:
    return JSONResponse(DESCRIPTION)


def _page(name: str, _: Request) -> Response:
    content = (files(__package__) / "page" / name).read_bytes()
    return Response(content, media_type=_PAGE[name], headers=_PAGE_HEADERS)

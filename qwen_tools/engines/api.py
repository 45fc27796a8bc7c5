"""An engine that asks somebody's chat API: the request goes out as JSON, and the answer's stream comes back as events.

The loop, the tools, the approval and the session are the same as with a raw prompt; only the text in between is not
ours. Keys come from the environment alone (OPENAI_API_KEY, ANTHROPIC_API_KEY), go only to the address that was
named (a redirect is not followed) and stand in no message.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from .. import events as ev
from ..errors import UserError
from ..events import Event
from ..fields import WireError
from ..guide import Guide
from ..messages import Message, as_messages
from ..prompt import Prompt, Segment
from ..template import TemplatePrompt, open_prompt
from ..tools import Toolbox
from ..wire import Request, Sampling, anthropic, openai, sse
from ..wire.answer import events_of
from ..wire.request import NAMES
from . import Engine, Piece, Settings

if TYPE_CHECKING:
    import httpx2

CONNECT_S = 10.0
# Between two pieces of a stream, and until the first: a big model on a small machine reads a long prompt slowly.
SILENCE_S = 600.0
RETRIES = 2
MAX_ANSWER = 64_000_000  # characters of a stream
_MAX_ERROR = 64_000
_PAUSE_S = 0.5


@dataclass(frozen=True)
class _Api:
    """One of the two APIs: its JSON, its addresses and its headers."""

    wire: Any
    home: str
    path: str
    key: str

    def headers(self, key: str) -> dict[str, str]:
        """The headers that carry the key."""
        if self.wire is anthropic:
            return {"anthropic-version": "2023-06-01", **({"x-api-key": key} if key else {})}
        return {"authorization": f"Bearer {key}"} if key else {}


APIS = {
    "openai": _Api(openai, "https://api.openai.com/v1", "/chat/completions", "OPENAI_API_KEY"),
    "anthropic": _Api(anthropic, "https://api.anthropic.com/v1", "/messages", "ANTHROPIC_API_KEY"),
}


class ApiPrompt:
    """The conversation as a request: what a prompt is for an API."""

    prefill = ""
    dropped = 0

    def __init__(self, engine: ApiEngine, tools: Toolbox, parallel: bool = True) -> None:
        self._engine = engine
        self._tools = tools
        self._parallel = parallel
        self._messages: list[Message] = []

    def append(self, messages: Iterable[Message]) -> None:
        """Add messages."""
        self._messages += messages

    @property
    def text(self) -> str:
        """The request as indented JSON, for reading. It is sent with the settings added."""
        return json.dumps(self.body(Settings(), None)[0], ensure_ascii=False, indent=2)

    @property
    def segments(self) -> list[Segment]:
        """The text, as views of a prompt want it."""
        return [Segment(self.text, "text", False)]

    def body(self, settings: Settings, guide: Guide | None) -> tuple[dict[str, Any], dict[str, str]]:
        """The request, and the names of tools that had to be changed in it: changed -> own."""
        choice = "auto"
        if guide is not None:
            names = [tool.name for tool in guide.tools]
            choice = "none" if not names or guide.prose else "required" if len(names) == len(self._tools) else names[0]
        request = Request(
            as_messages(self._messages),
            list(self._tools),
            tool_choice=choice if len(self._tools) else "auto",
            parallel_calls=self._parallel,
            settings=Sampling(
                settings.max_new_tokens,
                0.0 if settings.do_sample is False else settings.temperature,
                settings.top_p,
                settings.top_k,
                settings.seed,
            ),
            stream=True,
            include_usage=True,
            model=self._engine.model,
        )
        body = self._engine.api.wire.write_request(request)
        table = json.loads((body.pop("metadata", None) or {}).get(NAMES, "{}"))
        if self._engine.api.wire is openai:
            _fit_openai(body, self._engine.official)
        return body, table


def _fit_openai(body: dict[str, Any], official: bool) -> None:
    """What the official API and the servers that imitate it do not have in common."""
    if official:
        for message in body["messages"]:
            message.pop("reasoning_content", None)
    elif "max_completion_tokens" in body:
        body["max_tokens"] = body.pop("max_completion_tokens")


class ApiEngine:
    """Asks an API. ``text`` of its pieces is empty: they hold events."""

    tokenizer: Any = None
    # A forced choice of tools is the API's own.
    can_guide = True

    def __init__(self, kind: str, url: str, model: str) -> None:
        """Raises UserError for an address that is none."""
        self.api = APIS[kind]
        self.family = kind
        self.model = model
        self.name = f"{kind}:{url}#{model}"
        self.url = _address(url or self.api.home, self.api.path)
        self.official = urlsplit(self.url).hostname == "api.openai.com"
        self._key = os.environ.get(self.api.key, "").strip()
        if not (self._key.isascii() and self._key.isprintable()):
            raise UserError(f"{self.api.key} holds characters that no key has")

    @classmethod
    def open(cls, name: str) -> ApiEngine:
        """The engine for ``openai:URL#MODEL`` or ``anthropic:URL#MODEL``; an empty URL is the vendor's own. Without
        MODEL the server is asked which it has. Raises UserError.
        """
        kind, _, rest = name.partition(":")
        url, _, model = rest.partition("#")
        engine = cls(kind, url, model)
        return engine if model else cls(kind, url, engine._only_model())

    def generate(
        self,
        prompt: Prompt | TemplatePrompt | ApiPrompt,
        settings: Settings,
        *,
        begun: Sequence[int] = (),  # noqa: ARG002 - an API has no ids
        guide: Guide | None = None,
    ) -> Iterator[Piece]:
        """The answer as events. The last piece has them from the end of the stream, and the message's ``meta``.

        Raises UserError: code 3 where the server cannot be reached, refuses, or breaks off; 1 where its filter
        withholds the answer. Closing the iterator closes the connection.
        """
        if not isinstance(prompt, ApiPrompt):
            raise TypeError("an API is asked with an ApiPrompt")
        body, own = prompt.body(settings, guide)
        reader = self.api.wire.StreamReader()
        started = time.monotonic()
        first = 0.0
        try:
            for chunk in self._chunks(body):
                events = _renamed(reader.feed(chunk), own)
                if events:
                    first = first or time.monotonic()
                    yield Piece("", usage=reader.usage, events=tuple(events))
            if reader.finish is None:
                raise WireError("", "the stream ended before the answer did")
            events = _renamed(reader.close(), own)
        except WireError as error:
            raise UserError(f"{self.name}: {self._harmless(str(error))}", code=3) from error
        if reader.finish == "content_filter":
            raise UserError(f"{self.name}: a filter of the API withheld the answer", code=1)
        ended = time.monotonic()
        usage = replace(reader.usage, prefill_s=(first or ended) - started, decode_s=ended - (first or ended))
        yield Piece("", usage=usage, finish=reader.finish, events=tuple(events), meta=reader.message.meta)

    def _chunks(self, body: dict[str, Any]) -> Iterator[Any]:
        """The objects of the stream, or of an answer in one piece as chunks would say it."""
        with self._client() as client:
            response = self._connected(client, body)
            try:
                if response.status_code != 200:
                    raise self._refused(response)
                if "text/event-stream" not in response.headers.get("content-type", ""):
                    yield from self._whole(response)
                    return
                frames = sse.Reader()
                size = 0
                for text in response.iter_text():
                    size += len(text)
                    if size > MAX_ANSWER:
                        raise WireError("", f"the answer is longer than {MAX_ANSWER} characters")
                    yield from frames.feed(text)
                    if frames.done:
                        return
            except self._errors() as error:
                raise WireError("", f"the connection broke: {type(error).__name__}") from error
            finally:
                response.close()

    def _connected(self, client: httpx2.Client, body: dict[str, Any]) -> httpx2.Response:
        """The response, of which nothing but the headers is read. What fails before them is tried again."""
        import httpx2

        request = client.build_request("POST", self.url, json=body)
        for attempt in range(RETRIES + 1):
            try:
                return client.send(request, stream=True)
            except httpx2.TimeoutException as error:
                reason: Exception = error
                if not isinstance(error, httpx2.ConnectTimeout):
                    break  # the server is there, and busy
            except httpx2.TransportError as error:
                reason = error
            if attempt < RETRIES:
                time.sleep(_PAUSE_S * 2**attempt)
        words = self._harmless(str(reason)) or type(reason).__name__
        raise UserError(f"cannot reach {self.url}: {words}", code=3) from reason

    def _client(self) -> httpx2.Client:
        import httpx2

        headers = {"accept": "text/event-stream", **self.api.headers(self._key)}
        timeout = httpx2.Timeout(SILENCE_S, connect=CONNECT_S, write=60.0)
        return httpx2.Client(headers=headers, timeout=timeout, follow_redirects=False)

    @staticmethod
    def _errors() -> tuple[type[Exception], ...]:
        import httpx2

        return (httpx2.TransportError, httpx2.DecodingError)

    def _whole(self, response: httpx2.Response) -> Iterator[Any]:
        """A server that does not stream: its answer as a stream would bring it."""
        try:
            body = json.loads(self._read(response, MAX_ANSWER))
        except (ValueError, RecursionError) as error:
            raise WireError("", "the answer is neither a stream nor JSON") from error
        if isinstance(body, dict) and body.get("error") is not None:
            raise WireError("error", openai.error_text(body["error"]))
        message, finish, usage = self.api.wire.read_response(body)
        writer = self.api.wire.StreamWriter(id="0", created=0, model="", include_usage=True)
        for event in events_of(message):
            yield from writer.feed(event)
        yield from writer.close(finish, usage)

    def _refused(self, response: httpx2.Response) -> UserError:
        """An HTTP error as one line."""
        status = response.status_code
        if 300 <= status < 400:
            return UserError(f"{self.url} sends on to another address; name that one", code=3)
        try:
            body = json.loads(self._read(response, _MAX_ERROR))
            error = body.get("error", body) if isinstance(body, dict) else body
            said = error.get("message") if isinstance(error, dict) else error
        except (ValueError, RecursionError):
            said = None
        hint = ""
        if status in (401, 403):
            hint = f"; is {self.api.key} the right key?" if self._key else f"; it wants a key: set {self.api.key}"
        words = f": {self._harmless(said)}" if isinstance(said, str) and said.strip() else ""
        return UserError(f"{self.url} answered {status}{words}{hint}", code=3)

    def _read(self, response: httpx2.Response, limit: int) -> str:
        pieces: list[str] = []
        size = 0
        for text in response.iter_text():
            pieces.append(text)
            size += len(text)
            if size > limit:
                break
        return "".join(pieces)[:limit]

    def _harmless(self, text: str) -> str:
        """A server's words on one line, without control characters, without the key, and not too long."""
        if self._key:
            text = text.replace(self._key, "***")
        text = "".join(letter if letter.isprintable() else " " for letter in text)
        text = " ".join(text.split())
        return text if len(text) <= 300 else text[:300] + "…"

    def _only_model(self) -> str:
        """The one model of a server."""
        import httpx2

        url = self.url.removesuffix(self.api.path) + "/models"
        try:
            with self._client() as client:
                response = client.get(url, timeout=CONNECT_S)
                listed = response.json() if response.status_code == 200 else {}
        except (httpx2.HTTPError, ValueError) as error:
            raise UserError(f"cannot reach {url}: {self._harmless(str(error))}", code=3) from error
        entries = listed.get("data") if isinstance(listed, dict) else None
        names = [entry["id"] for entry in entries or () if isinstance(entry, dict) and isinstance(entry.get("id"), str)]
        if len(names) != 1:
            some = ", ".join(self._harmless(name) for name in names[:10])
            raise UserError(
                f"name the model behind the address: {self.family}:URL#MODEL" + (f" ({some})" if some else "")
            )
        return str(names[0])


def prompt_for(
    engine: Engine, tools: Toolbox, template: str, options: Mapping[str, Any] | None, parallel: bool = True
) -> Prompt | TemplatePrompt | ApiPrompt:
    """The empty prompt of an engine: raw text as its family or its template writes it, or a request to an API.

    Raises UserError, also for render options, which an API has no use for.
    """
    if not isinstance(engine, ApiEngine):
        return open_prompt(template, engine.tokenizer, tools, engine.family, **(options or {}))
    if options or template != "family":
        raise UserError("--option and --template say how a raw prompt is written; an API writes its own")
    return ApiPrompt(engine, tools, parallel)


def _address(url: str, path: str) -> str:
    """Where requests go. An address without a path gets the usual ``/v1``."""
    parts = urlsplit(url)
    try:
        known = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        known = False
    if not known:
        raise UserError(f"{url!r} is no address: it begins with http:// or https:// and a host")
    if parts.username or parts.password or parts.query:
        raise UserError("the address of an API holds no password and no query: a key comes from the environment")
    base = url.rstrip("/")
    if base.endswith(path):
        return base
    return base + ("" if parts.path.strip("/") else "/v1") + path


def _renamed(events: list[Event], own: Mapping[str, str]) -> list[Event]:
    """The events with the tools' own names."""
    if not own:
        return events
    renamed: list[Event] = []
    for event in events:
        if isinstance(event, ev.CallName):
            event = replace(event, name=own.get(event.name, event.name))
        elif isinstance(event, ev.CallEnd):
            event = replace(event, call=replace(event.call, name=own.get(event.call.name, event.call.name)))
        renamed.append(event)
    return renamed

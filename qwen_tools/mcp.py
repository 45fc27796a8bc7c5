"""Tools from MCP servers: an ``mcpServers`` file, as other programs write it, as lists of tools.

The SDK (the package ``mcp``) is asynchronous; it lives in one thread with one event loop, from the first server on. A
server is started when its tools are listed, and again by the next call when it has gone. Whatever it does wrong, to
exit, to hang, to answer nonsense, is an exception in the call, which the executor tells the model. All servers are
ended when the program ends.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import json
import logging
import os
import re
import tempfile
import threading
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from .errors import UserError
from .tools import Tool

START_SECONDS = 60.0  # a server that npx or uvx has to download first takes its time
CLOSE_SECONDS = 10.0
_MOST_TOOLS = 1000

_VARIABLE = re.compile(r"\$\{(\w+)(?::-([^}]*))?\}")


@dataclass(frozen=True)
class Server:
    """How a server is reached: a command to run, or a URL. ``environment`` is added to a minimal one (the SDK's:
    PATH, HOME and the like); ``trust_read_only`` says whether its own readOnlyHint is believed.
    """

    name: str
    command: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    folder: str | None = None
    url: str = ""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    trust_read_only: bool = False


class ServerError(Exception):
    """What a server did wrong, or said is wrong, in a call."""


def is_config(data: Any) -> bool:
    """Whether a JSON value is an ``mcpServers`` file."""
    return isinstance(data, dict) and "mcpServers" in data


def read_config(data: Any, path: str) -> list[Server]:
    """The servers of an ``mcpServers`` value; those with ``"disabled": true`` are left out.

    ``${NAME}`` and ``${NAME:-default}`` stand for environment variables. Keys of other programs are ignored. Raises
    UserError naming the file.
    """
    servers = data["mcpServers"]
    if not isinstance(servers, dict):
        raise UserError(f"{path}: mcpServers must be an object of servers by name")
    found = []
    for name, entry in servers.items():
        where = f"{path}: server {name!r}"
        if not isinstance(entry, dict):
            raise UserError(f"{where} must be an object")
        if entry.get("disabled") is True:
            continue
        entry = _expanded({key: value for key, value in entry.items() if key in _KEYS}, where)
        for key, (kind, words) in _KEYS.items():
            if key in entry and not kind(entry[key]):
                raise UserError(f"{where}: {key} must be {words}")
        if ("command" in entry) == ("url" in entry):
            raise UserError(f"{where} needs a command or a url, one of them")
        if entry.get("type") == "sse":
            raise UserError(
                f"{where}: the old sse transport is not supported; use the server's streamable HTTP address"
            )
        if "url" in entry and not entry["url"].startswith(("http://", "https://")):
            raise UserError(f"{where}: url must begin with https:// or http://")
        found.append(
            Server(
                name,
                (entry["command"], *entry.get("args", ())) if "command" in entry else (),
                entry.get("env", {}),
                entry.get("cwd"),
                entry.get("url", ""),
                entry.get("headers", {}),
                entry.get("trust_read_only", False),
            )
        )
    return found


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and value != ""


def _is_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)


def _is_mapping(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(each, str) for each in value.values())


_KEYS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "type": (_is_text, "a text"),
    "command": (_is_text, "a text: the program alone; its arguments are args"),
    "args": (_is_texts, "a list of texts"),
    "env": (_is_mapping, "an object of texts"),
    "cwd": (_is_text, "a folder"),
    "url": (_is_text, "a text"),
    "headers": (_is_mapping, "an object of texts"),
    "trust_read_only": (lambda value: isinstance(value, bool), "true or false"),
}


def _expanded(value: Any, where: str) -> Any:
    if isinstance(value, dict):
        return {key: _expanded(each, where) for key, each in value.items()}
    if isinstance(value, list):
        return [_expanded(each, where) for each in value]
    if not isinstance(value, str):
        return value

    def variable(found: re.Match[str]) -> str:
        text = os.environ.get(found[1], found[2])
        if text is None:
            raise UserError(f"{where} needs the environment variable {found[1]}, which is not set")
        return text

    return _VARIABLE.sub(variable, value)


# ---- the thread


_loop: asyncio.AbstractEventLoop | None = None
_connections: list[_Connection] = []
_starting = threading.Lock()


def _submit(work: Coroutine[Any, Any, Any]) -> Future[Any]:
    """Run a coroutine in the thread of the servers, which is started by the first."""
    global _loop
    with _starting:
        if _loop is None:
            # The SDK logs what a server does wrong; we say it where it belongs, and the screen stays clean.
            logging.getLogger("mcp").addHandler(logging.NullHandler())
            _loop = asyncio.new_event_loop()
            threading.Thread(target=_loop.run_forever, name="mcp", daemon=True).start()
            atexit.register(close)
    return asyncio.run_coroutine_threadsafe(work, _loop)


def close() -> None:
    """End all servers, and what they started; at the latest this happens when the program ends."""
    if _loop is None:
        return
    connections, _connections[:] = list(_connections), []
    futures = [_submit(connection.close()) for connection in connections]
    for future in futures:
        with contextlib.suppress(Exception):  # a server that cannot be ended must not keep the program
            future.result(CLOSE_SECONDS)


def connect(servers: list[Server]) -> list[list[Tool]]:
    """Start servers, side by side; the tools of each.

    Raises UserError (code 3) naming the server that does not start in time or does not list its tools.
    """
    try:
        from mcp import Client  # noqa: F401 - whether it is installed
    except ImportError as error:
        raise UserError("MCP servers need the mcp package: pip install 'qwen-tools[mcp]'") from error
    started = [_Connection(server) for server in servers]
    _connections.extend(started)
    futures = [_submit(connection.tools()) for connection in started]
    lists: list[list[Tool]] = []
    for connection, future in zip(started, futures, strict=True):
        try:
            lists.append([_tool(connection, each) for each in future.result()])
        except ServerError as error:
            raise UserError(f"MCP server {connection.server.name!r}: {error}", 3) from error
    return lists


class _Connection:
    """A server and, while it lives, its client. All of it runs in the thread of the servers."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self._log = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")  # noqa: SIM115 - closed in close
        self._client: Any = None
        self._keeper: asyncio.Task[None] | None = None
        self._leave = asyncio.Event()
        self._connecting = asyncio.Lock()

    async def tools(self) -> list[Any]:
        """The SDK's tools. Raises ServerError."""
        import anyio

        found: list[Any] = []
        try:
            with anyio.fail_after(START_SECONDS):
                client = await self._connected()
                cursor = None
                while len(found) < _MOST_TOOLS:
                    page = await client.list_tools(cursor=cursor)
                    found += page.tools
                    cursor = page.next_cursor
                    if not cursor:
                        return found
        except Exception as error:
            await self._disconnect()
            raise ServerError(self._reason(error, START_SECONDS)) from error
        raise ServerError(f"it lists more than {_MOST_TOOLS} tools")

    async def call(self, name: str, arguments: dict[str, Any]) -> Any:
        """The SDK's result. Raises ServerError."""
        import anyio

        try:
            with anyio.fail_after(START_SECONDS):
                client = await self._connected()
        except Exception as error:
            await self._disconnect()
            raise ServerError(self._reason(error, START_SECONDS)) from error
        try:
            return await client.call_tool(name, arguments)
        except Exception as error:
            if _is_gone(error):
                if self._client is client:  # another call may have started it anew
                    await self._disconnect()
                raise ServerError(f"{self._reason(error, 0)}; the next call starts it again") from error
            raise ServerError(self._reason(error, 0)) from error

    async def close(self) -> None:
        """End the server."""
        await self._disconnect()
        self._log.close()

    async def _connected(self) -> Any:
        """The client, connected now if it is not."""
        async with self._connecting:
            if self._client is None:
                ready: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
                self._leave = asyncio.Event()
                self._keeper = asyncio.create_task(self._keep(ready, self._leave))
                self._client = await ready
            return self._client

    async def _keep(self, ready: asyncio.Future[Any], leave: asyncio.Event) -> None:
        """Hold the connection open. One task, since the SDK wants it left where it was entered."""
        try:
            async with contextlib.AsyncExitStack() as stack:
                client = await stack.enter_async_context(await self._open(stack))
                ready.set_result(client)
                await leave.wait()
        except asyncio.CancelledError:
            raise
        except BaseException as error:  # noqa: BLE001 - the SDK may raise a group of anything
            if not ready.done():
                ready.set_exception(error if isinstance(error, Exception) else ServerError(str(error)))
        finally:
            if not ready.done():
                ready.cancel()
            if self._keeper is asyncio.current_task():  # it ended by itself, and the next call starts it again
                self._client = None

    async def _open(self, stack: contextlib.AsyncExitStack) -> Any:
        from mcp import Client, StdioServerParameters, stdio_client

        server = self.server
        if server.command:
            parameters = StdioServerParameters(
                command=server.command[0],
                args=list(server.command[1:]),
                env=dict(server.environment),
                cwd=server.folder,
                encoding_error_handler="replace",  # bytes that are no text spoil one line, not the connection
            )
            return Client(stdio_client(parameters, errlog=self._log))
        import httpx2
        from mcp.client.streamable_http import streamable_http_client

        # No limit of reading: an answer may be long in coming, and the executor has its own.
        timeout = httpx2.Timeout(30.0, read=None)
        http = await stack.enter_async_context(httpx2.AsyncClient(headers=dict(server.headers), timeout=timeout))
        return Client(streamable_http_client(server.url, http_client=http))

    async def _disconnect(self) -> None:
        keeper, connected = self._keeper, self._client is not None
        self._client = self._keeper = None
        if keeper is None:
            return
        self._leave.set()
        if not connected:
            keeper.cancel()
        await asyncio.wait({keeper}, timeout=CLOSE_SECONDS)

    def _reason(self, error: BaseException, seconds: float) -> str:
        """What went wrong, on one line, with what the server said last."""
        error = _innermost(error)
        server = self.server
        if isinstance(error, TimeoutError):
            reason = f"it did not answer within {seconds:g} seconds"
        elif isinstance(error, FileNotFoundError) and server.folder and not os.path.isdir(server.folder):
            reason = f"there is no folder {server.folder!r}"
        elif isinstance(error, FileNotFoundError) and server.command:
            reason = f"there is no program {server.command[0]!r}"
        elif _is_gone(error):
            reason = "it has gone"
        elif type(error).__name__ == "ValidationError":  # pydantic's, several lines long
            reason = "its answer is not what the protocol says"
        else:
            reason = " ".join(str(error).split())[:300] or type(error).__name__
        said = self._last_line()
        return f"{reason} (it wrote: {said})" if said else reason

    def _last_line(self) -> str:
        """What the server wrote last on stderr."""
        if not hasattr(os, "pread"):  # not on Windows, and to seek would move the server's own place in the file
            return ""
        file = self._log.fileno()
        end = os.pread(file, 2000, max(0, os.fstat(file).st_size - 2000)).decode("utf-8", "replace")
        return next((line.strip()[:200] for line in reversed(end.splitlines()) if line.strip()), "")


def _innermost(error: BaseException) -> BaseException:
    """The first cause in a group of exceptions, which task groups make."""
    while getattr(error, "exceptions", None):
        error = error.exceptions[0]  # type: ignore[attr-defined]  # a group, which 3.10 has not by that name
    return error


def _is_gone(error: BaseException) -> bool:
    """Whether the connection ended. A server over HTTP that was started again does not know the session."""
    import anyio
    from mcp_types import CONNECTION_CLOSED

    error = _innermost(error)
    closed = isinstance(error, (anyio.ClosedResourceError, anyio.BrokenResourceError))
    return closed or getattr(error, "code", None) == CONNECTION_CLOSED or str(error) == "Session terminated"


# ---- its tools as ours


def _tool(connection: _Connection, offered: Any) -> Tool:
    """A tool of a server, with its schema as it is given."""
    hint = offered.annotations.read_only_hint if offered.annotations else None

    async def call(**arguments: Any) -> str:
        future = _submit(connection.call(offered.name, arguments))
        # A call that is cancelled here is cancelled there, and the server is told.
        result = await asyncio.wrap_future(future)
        text = as_text(result)
        if result.is_error:
            raise ServerError(text or "the server says that it failed, and not why")
        return text

    return Tool(
        offered.name,
        offered.description or "",
        offered.input_schema,
        call,
        read_only=connection.server.trust_read_only and hint is True,
    )


def as_text(result: Any) -> str:
    """A result as the model reads it: its texts, and a mark for every part that is none."""
    parts = [_part(each) for each in result.content]
    if not any(parts) and result.structured_content is not None:
        return json.dumps(result.structured_content, ensure_ascii=False)
    return "\n".join(parts)


def _part(part: Any) -> str:
    if part.type == "text":
        return str(part.text)
    if part.type in ("image", "audio"):
        size = len(part.data.rstrip("=")) * 3 // 4  # of base64
        return f"[{part.type}: {part.mime_type}, {size} bytes]"
    if part.type == "resource_link":
        return f"[resource: {part.uri}]"
    if part.type == "resource":
        text = getattr(part.resource, "text", None)
        return f"[resource: {part.resource.uri}]" + (f"\n{text}" if text is not None else "")
    return f"[{part.type}]"

"""Who may use the server: an ASGI middleware in front of everything.

A server on this machine is in reach of every page that its user's browser shows. Two things keep pages out that are not
ours: a ``Host`` that is not a name of this machine (a page whose own name was made to lead here, which is called DNS
rebinding) and an ``Origin`` that was not allowed. With an API key the key alone decides who may use ``/v1``.
"""

from __future__ import annotations

import hmac
from collections.abc import Collection
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from .errors import ApiError, speaks_anthropic
from .host import is_local


class Gate:
    """Lets requests through to ``app``, or answers them with a refusal. Without ``key`` only local hosts are served."""

    def __init__(self, app: ASGIApp, key: str | None, origins: Collection[str]) -> None:
        self._app = app
        self._key = None if key is None else key.encode()
        self._origins = origins

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One connection."""
        if scope["type"] == "http":
            refusal = self._refusal(scope["path"], Headers(scope=scope))
            if refusal is not None:
                shape = refusal.to_dict(anthropic=speaks_anthropic(scope["path"]))
                await JSONResponse(shape, refusal.status)(scope, receive, send)
                return
        await self._app(scope, receive, send)

    def _refusal(self, path: str, headers: Headers) -> ApiError | None:
        if self._key is None:
            host = headers.get("host", "")
            if not is_local(_hostname(f"//{host}")):
                return ApiError(403, "this server answers to localhost only", field="Host")
            origin = headers.get("origin")
            if origin is not None and not self._allows(origin) and origin.partition("://")[2] != host:
                return ApiError(403, "pages of this origin may not use the server", field="Origin")
        elif path.startswith("/v1/"):
            scheme, _, token = headers.get("authorization", "").partition(" ")
            given = token.strip() if scheme.lower() == "bearer" else headers.get("x-api-key", "")
            if not hmac.compare_digest(given.encode("latin-1"), self._key):
                return ApiError(401, "the API key is missing or wrong", code="invalid_api_key")
        return None

    def _allows(self, origin: str) -> bool:
        return "*" in self._origins or origin in self._origins


def _hostname(url: str) -> str:
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""

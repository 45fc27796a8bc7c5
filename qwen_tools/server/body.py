"""The body of a request as a JSON object, within limits of size, depth, parts and time."""

from __future__ import annotations

import json
import math
from typing import Any

import anyio
from starlette.requests import ClientDisconnect, Request

from .errors import ApiError

MAX_BYTES = 8 * 1024 * 1024
MAX_DEPTH = 64
MAX_PARTS = 50_000  # lists and objects; what is made of a body takes time for each
SECONDS = 30.0


async def content(request: Request) -> bytes:
    """The bytes of a body. Raises ApiError for what is too large or too slow."""
    chunks, size = [], 0
    try:
        with anyio.fail_after(SECONDS):
            async for chunk in request.stream():
                size += len(chunk)
                if size > MAX_BYTES:
                    raise ApiError(413, f"the body is larger than {MAX_BYTES} bytes", code="request_too_large")
                chunks.append(chunk)
    except TimeoutError:
        raise ApiError(408, f"the body did not arrive within {SECONDS:g} seconds") from None
    except ClientDisconnect:
        raise ApiError(400, "the body ended too early") from None  # nobody reads this
    return b"".join(chunks)


def parse(body: bytes) -> dict[str, Any]:
    """Strict JSON (RFC 8259): no NaN, no infinity, UTF-8. Raises ApiError (status 400)."""
    try:
        value = json.loads(body.decode("utf-8"), parse_constant=_no_number, parse_float=_finite)
    except UnicodeDecodeError as error:
        raise ApiError(400, f"the body is not UTF-8: byte {error.start}") from None
    except RecursionError:
        raise _too_deep() from None
    except ValueError as error:
        raise ApiError(400, f"the body is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise ApiError(400, "the body must be a JSON object")
    _check_shape(value)
    return value


def _no_number(text: str) -> float:
    raise ValueError(f"{text} is no number in JSON")


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"the number {text[:20]} is too large")
    return number


def _check_shape(value: Any) -> None:
    """Raises ApiError for what is too deep or has too many parts. Level by level: no recursion of ours can be
    exhausted.
    """
    level, parts = [value], 1
    for _ in range(MAX_DEPTH + 1):
        level = [
            item
            for each in level
            for item in (each.values() if isinstance(each, dict) else each)
            if isinstance(item, dict | list)
        ]
        parts += len(level)
        if parts > MAX_PARTS:
            raise ApiError(400, f"the body has more than {MAX_PARTS} lists and objects")
        if not level:
            return
    raise _too_deep()


def _too_deep() -> ApiError:
    return ApiError(400, f"the body is nested deeper than {MAX_DEPTH} levels")

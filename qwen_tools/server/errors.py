"""Refusals: a status, a message, the field it is about; and the shape in which each format says so."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

# What the two formats call a status (platform.openai.com/docs/guides/error-codes, docs.anthropic.com/en/api/errors).
_OPENAI = {401: "authentication_error", 403: "permission_error", 404: "not_found_error", 429: "rate_limit_error"}
_ANTHROPIC = {**_OPENAI, 413: "request_too_large", 503: "overloaded_error"}


class ApiError(Exception):
    """A request that gets no answer. ``field`` is the path of what was wrong in it, such as ``messages.0.role``;
    ``code`` a word for programs, ``headers`` what HTTP says about it.
    """

    def __init__(
        self,
        status: int,
        message: str,
        *,
        field: str | None = None,
        code: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.field = field
        self.code = code
        self.headers = headers or {}

    def to_dict(self, *, anthropic: bool) -> dict[str, Any]:
        """The body of the answer, in the shape that the format's own clients read."""
        if anthropic:
            message = self.message if self.field is None else f"{self.field}: {self.message}"
            return {"type": "error", "error": {"type": self._kind(_ANTHROPIC, "api_error"), "message": message}}
        return {
            "error": {
                "message": self.message if self.field is None else f"{self.field}: {self.message}",
                "type": self._kind(_OPENAI, "server_error"),
                "param": self.field,
                "code": self.code,
            }
        }

    def _kind(self, names: dict[int, str], fault_of_ours: str) -> str:
        return names.get(self.status, "invalid_request_error" if self.status < 500 else fault_of_ours)


def speaks_anthropic(path: str) -> bool:
    """Whether a path belongs to Anthropic's format."""
    return path.startswith("/v1/messages")

"""The exceptions that are a message to the person at the terminal."""

from __future__ import annotations


class UserError(Exception):
    """The caller's fault, told in one line that says what to do.

    ``code`` is the exit code: 1 the task failed, 2 usage or configuration,
    3 model or endpoint not available.
    """

    def __init__(self, message: str, code: int = 2) -> None:
        super().__init__(message)
        self.code = code


class BadSchemaError(UserError):
    """A JSON Schema that is none, or that no grammar can follow. ``tool`` names the tool it belongs to; without one it
    is that of the answer.
    """

    def __init__(self, message: str, tool: str | None = None) -> None:
        super().__init__(message)
        self.tool = tool

"""The one exception that is a message to the person at the terminal."""

from __future__ import annotations


class UserError(Exception):
    """The caller's fault, told in one line that says what to do.

    ``code`` is the exit code: 1 the task failed, 2 usage or configuration,
    3 model or endpoint not available.
    """

    def __init__(self, message: str, code: int = 2) -> None:
        super().__init__(message)
        self.code = code

"""What was said, on disk: one JSON object a line, written before the next turn starts.

A line is a message of the conversation, or ``{"failed": ..., "error": ...}`` for a user's line whose turn failed: it
is in the log, and no part of the conversation. Files are private (mode 0600).
"""

from __future__ import annotations

import dataclasses
import json
import os
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from .errors import UserError
from .messages import Message, Problem, ToolCall


class Session:
    """A conversation that is appended to a file."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.path = path

    @classmethod
    def new(cls) -> Session:
        """A session in the user's data folder, named after the time and the process."""
        from platformdirs import user_data_path

        # Two conversations of one process may begin within a second.
        name = time.strftime("%Y-%m-%d-%H%M%S") + f"-{time.time_ns() % 10**9:09}-{os.getpid()}.jsonl"
        return cls(user_data_path("qwen_tools") / "sessions" / name)

    def add(self, messages: Iterable[Message]) -> None:
        """Append messages; they are on disk when this returns."""
        self._write([_to_json(message) for message in messages])

    def failed(self, message: Message, error: str) -> None:
        """Log a user's line whose turn failed."""
        self._write([{"failed": _to_json(message), "error": error}])

    def _write(self, records: list[dict[str, Any]]) -> None:
        descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        # Half a surrogate pair, which a model may write, must not cost the conversation; json.loads reads it back.
        with os.fdopen(descriptor, "w", encoding="utf-8", errors="surrogatepass") as file:
            file.writelines(json.dumps(record, ensure_ascii=False) + "\n" for record in records)
            file.flush()
            os.fsync(file.fileno())


def load(path: Path) -> list[Message]:
    """The conversation of a session file. A last line that was cut while being written is left out.

    Raises UserError when the file cannot be read or is no session.
    """
    try:
        lines = path.read_bytes().split(b"\n")
    except OSError as error:
        raise UserError(f"cannot read the session {path}: {error.strerror}") from error
    messages = []
    for number, line in enumerate(lines[:-1], start=1):
        try:
            record = json.loads(line)
            if "failed" not in record:
                messages.append(_from_json(record))
        except (ValueError, TypeError, KeyError) as error:
            raise UserError(f"{path}, line {number} is not a message of a session: {error}") from error
    return messages


def _to_json(message: Message) -> dict[str, Any]:
    """The fields that say something."""
    empty = Message(message.role)
    return {
        field: value
        for field, value in dataclasses.asdict(message).items()
        if field == "role" or value != getattr(empty, field)
    }


def _from_json(record: dict[str, Any]) -> Message:
    calls = tuple(
        ToolCall(
            **{
                **call,
                "span": tuple(call["span"]),
                "repairs": tuple(call["repairs"]),
                "problems": tuple(
                    Problem(**{**problem, "span": tuple(problem["span"])}) for problem in call["problems"]
                ),
            }
        )
        for call in record.pop("calls", ())
    )
    ids = record.pop("token_ids", None)
    return Message(**record, calls=calls, token_ids=None if ids is None else tuple(ids))

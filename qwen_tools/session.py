"""Conversations on disk: one file each, one JSON object a line, every line on disk as soon as it is said.

A line is a message of the conversation, or a record about it:

    {"model": ..., "family": ...}    who answers from here on
    {"failed": ..., "error": ...}    a question whose turn failed: in the log, and no part of the conversation
    {"rewind": COUNT}                the conversation has only its first COUNT messages from here on

Nothing is ever deleted. Whatever the instant at which a process is killed, the file loads again: a last line that
was not finished is left out, and a call whose result was not written has one that says so. Files are private
(mode 0600), and two processes do not write one file.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import re
import secrets
import signal
import threading
import time
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from .errors import UserError
from .executor import refusal
from .messages import Message, Problem, ToolCall

# A name is the name of a file on every system.
_NAME = re.compile(r"\w[\w.-]{0,79}")


class Session:
    """A conversation that is appended to a file, which is made with the first message that a person said."""

    def __init__(self, path: Path) -> None:
        """Hold the file, new or not, until ``close`` or the end of the process.

        Raises UserError where another process holds it, or where it cannot be written.
        """
        from filelock import FileLock, Timeout

        self.path = path
        self._waiting: list[dict[str, Any]] = []
        locks = path.parent / ".locks"
        try:
            for each in (path.parent, locks):
                each.mkdir(parents=True, exist_ok=True, mode=0o700)
            # Not the file itself: some systems let nobody read what is locked.
            self._lock = FileLock(locks / f"{path.stem}.lock", mode=0o600, thread_local=False)
            self._lock.acquire(timeout=0)
        except Timeout:
            raise UserError(
                f"the session {path.stem} is in use by another process; end that one, or choose another --session"
            ) from None
        except OSError as error:
            raise _unwritable(path, error) from error

    @classmethod
    def new(cls, name: str | None = None) -> Session:
        """A session in the user's data folder; without a name it is called after the time.

        Raises UserError for a name that is taken or is none.
        """
        path = path_of(time.strftime("%Y-%m-%d-%H%M%S-") + secrets.token_hex(3) if name is None else name)
        session = cls(path)
        if path.exists():
            session.close()
            raise UserError(f"there is a session {name} already: --session {name} goes on with it")
        return session

    @classmethod
    def open(cls, path: Path) -> Session:
        """Go on with the session of a file. Raises UserError where it is missing, or another process writes it."""
        if not path.is_file():
            raise UserError(f"there is no session {path}")
        session = cls(path)
        try:
            with path.open("r+b") as file:
                data = file.read()
                if not data.endswith(b"\n"):  # what a killed process did not finish must not begin the next line
                    file.truncate(data.rfind(b"\n") + 1)
        except OSError as error:
            session.close()
            raise _unwritable(path, error) from error
        return session

    def close(self) -> None:
        """Let others have the file."""
        self._lock.release()

    def about(self, model: str, family: str) -> None:
        """Say who answers from here on; it is written with the next message."""
        self._waiting.append(_dated({"model": model, "family": family}))

    def add(self, messages: Iterable[Message]) -> None:
        """Append messages; they are on disk when this returns, but for a system text that nobody has followed by a
        word. Raises UserError where they cannot be written.
        """
        for message in messages:
            self._waiting.append(_dated(_to_json(message)))
            if message.role != "system" or self.path.exists():
                self._write()

    def failed(self, message: Message, error: str) -> None:
        """Log a user's line whose turn failed."""
        self._waiting.append(_dated({"failed": _to_json(message), "error": error}))
        self._write()

    def rewind(self, count: int) -> None:
        """Leave only the first ``count`` messages in the conversation; the log keeps all."""
        self._waiting.append(_dated({"rewind": count}))
        self._write()

    def _write(self) -> None:
        # Half a surrogate pair, which a model may write, must not cost the conversation; json.loads reads it back.
        data = "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in self._waiting)
        try:
            with _ctrl_c_waits():
                _append(self.path, data.encode("utf-8", "surrogatepass"))
                self._waiting = []
        except OSError as error:
            raise _unwritable(self.path, error) from error


def _dated(record: dict[str, Any]) -> dict[str, Any]:
    return {**record, "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())}


@contextlib.contextmanager
def _ctrl_c_waits() -> Iterator[None]:
    """Hold back Ctrl-C, so that what is in the file is what was said to be in it."""
    before = signal.getsignal(signal.SIGINT)
    if before is None or threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    signal.signal(signal.SIGINT, lambda number, _: came.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if came:
            signal.raise_signal(signal.SIGINT)


def _append(path: Path, data: bytes) -> None:
    """Append to a file, wholly or not at all, and wait for the disk."""
    fresh = not path.exists()
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        end = file.seek(0, os.SEEK_END)
        try:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        except OSError:  # a full disk
            os.truncate(path, end)
            raise
    if fresh and os.name == "posix":  # the name of the file is on disk too
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def _unwritable(path: Path, error: OSError) -> UserError:
    return UserError(f"cannot write the session {path}: {error.strerror}; --no-log does without", code=1)


# ---- finding


def folder() -> Path:
    """Where the sessions are."""
    from platformdirs import user_data_path

    return user_data_path("qwen_tools") / "sessions"


def path_of(name: str) -> Path:
    """The file of a session of that name, there or not. Raises UserError for what is no name."""
    if not _NAME.fullmatch(name):
        raise UserError(
            f"{name!r} is no name for a session: up to 80 letters, digits, _ . and -, the first a letter or a digit"
        )
    return folder() / f"{name}.jsonl"


def paths() -> list[Path]:
    """All sessions, the one last written to first."""
    dated = []
    for path in folder().glob("*.jsonl"):
        try:
            dated.append((path.stat().st_mtime_ns, path.name, path))
        except OSError:  # gone since
            continue
    return [path for _, _, path in sorted(dated, reverse=True)]


def find(name: str) -> Path:
    """The file of the session that is called so, or is the only one whose name begins so.

    Raises UserError where there is none.
    """
    path = path_of(name)
    if path.is_file():
        return path
    known = {path.stem: path for path in paths()}
    begun = [path for stem, path in known.items() if stem.startswith(name)]
    if len(begun) == 1:
        return begun[0]
    close = [path.stem for path in begun[:3]] or get_close_matches(name, known, 3)
    hint = f"did you mean {' or '.join(close)}?" if close else "'logs list' lists them"
    raise UserError(f"there is no session {name}; {hint}")


def latest() -> Path:
    """The session that was last written to. Raises UserError where there is none."""
    known = paths()
    if not known:
        raise UserError("there is no session to go on with: none was kept so far")
    return known[0]


# ---- reading


@dataclass
class Log:
    """What a session file holds: the conversation as it stands, who made each message of it (model and family, empty
    where nobody said), the questions that failed with their errors, and the time of the first line.
    """

    messages: list[Message] = field(default_factory=list)
    makers: list[tuple[str, str]] = field(default_factory=list)
    failed: list[tuple[Message, str]] = field(default_factory=list)
    begun: str = ""

    @property
    def model(self) -> str:
        """Who answered last."""
        return self.makers[-1][0] if self.makers else ""


def load(path: Path, made_by: tuple[str, str] | None = None) -> list[Message]:
    """The conversation of a session file, well-formed.

    ``made_by`` is the model and the family that will go on with it: what another one generated comes without its
    raw text and token ids, so that it is written anew in the form that this one knows. Raises UserError when the
    file cannot be read or is no session.
    """
    log = read(path)
    return [
        message if made_by in (None, maker) else replace(message, prefill="", raw=None, token_ids=None)
        for message, maker in zip(log.messages, log.makers, strict=True)
    ]


def read(path: Path) -> Log:
    """All that a session file holds. Raises UserError when it cannot be read or is no session."""
    try:
        lines = path.read_bytes().split(b"\n")
    except OSError as error:
        raise UserError(f"cannot read the session {path}: {error.strerror}") from error
    log, maker = Log(), ("", "")
    waiting: deque[ToolCall] = deque()  # the calls without a result so far

    def append(message: Message) -> None:
        log.messages.append(message)
        log.makers.append(maker)

    def complete() -> None:
        """Give every call a result: the process may have been killed before it was written."""
        for call in waiting:
            told = refusal(
                call.name, "interrupted", "The program was ended while this call was open. Do not assume a result."
            )
            append(Message("tool", told.content, call_id=call.id, name=call.name))
        waiting.clear()

    for number, line in enumerate(lines[:-1], start=1):  # behind the last newline is what was not finished
        try:
            record = json.loads(line)
            log.begun = log.begun or record.get("time", "")
            record.pop("time", None)
            if "failed" in record:
                log.failed.append((_from_json(record["failed"]), record["error"]))
            elif "rewind" in record:
                complete()
                _rewind(log, record["rewind"])
                waiting.extend(_owed(log.messages))
            elif "model" in record:
                maker = (record["model"], record["family"])
            else:
                message = _from_json(record)
                if message.role != "tool":
                    complete()
                    waiting.extend(message.calls)
                elif waiting:
                    waiting.popleft()
                else:
                    raise ValueError("a result without a call")
                append(message)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise UserError(f"{path}, line {number} is not a message of a session: {error}") from error
    complete()
    return log


def _rewind(log: Log, count: Any) -> None:
    if type(count) is not int or not 0 <= count <= len(log.messages):
        raise ValueError(f"there are no {count} messages to go back to")
    del log.messages[count:], log.makers[count:]


def _owed(messages: list[Message]) -> tuple[ToolCall, ...]:
    """The calls that wait for a result at the end of a conversation."""
    results = 0
    while results < len(messages) and messages[-1 - results].role == "tool":
        results += 1
    return messages[-1 - results].calls[results:] if results < len(messages) else ()


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


# ---- for people


def markdown(messages: Iterable[Message]) -> str:
    """The conversation for reading: a heading for each side, calls and results in fences, thoughts as quotations."""
    parts = []
    for message in messages:
        if message.role == "tool":
            parts.append(f"**Result of {message.name or 'the call'}**\n\n{_fenced(message.full or message.content)}")
            continue
        parts.append(f"## {message.role.capitalize()}")
        if message.reasoning.strip():
            parts.append("\n".join(f"> {line}".rstrip() for line in message.reasoning.strip().splitlines()))
        if message.content.strip():
            parts.append(message.content.strip())
        for call in message.calls:
            if call.problems and not call.name:
                parts.append(f"**A call that could not be read**\n\n{_fenced(call.raw)}")
            else:
                arguments = json.dumps(call.arguments, ensure_ascii=False, indent=2)
                parts.append(f"**Call of {call.name}**\n\n{_fenced(arguments, 'json')}")
        if message.finish != "stop":
            why = "was interrupted" if message.finish == "interrupted" else "was cut by the length limit"
            parts.append(f"*(the answer {why})*")
    return "\n\n".join(parts) + "\n" if parts else ""


def _fenced(text: str, language: str = "") -> str:
    """A fence that is longer than any in the text."""
    fence = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", text)), default=0))
    return f"{fence}{language}\n{text}\n{fence}"

"""Which sessions there are and what is said in them, found by words.

The session files are the truth. This is an index over them, an SQLite database in the cache folder: every use brings it
up to date with the files that are new, changed or gone, and one that is missing or broken is made anew.
"""

from __future__ import annotations

import json
import os
import re
import sqlite3
from collections.abc import Callable, Iterable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from .errors import UserError
from .messages import Message
from .models import cache_folder
from .session import Log, paths, read

_Answer = TypeVar("_Answer")

# Raised with every change of the tables: an index of another version is made anew.
_VERSION = 1
_TABLES = """
    CREATE TABLE sessions (
        id INTEGER PRIMARY KEY, name TEXT UNIQUE, stamp TEXT, changed REAL, begun TEXT, question TEXT, model TEXT,
        messages INTEGER, calls INTEGER, problem TEXT
    );
    CREATE VIRTUAL TABLE said USING fts5(text, role UNINDEXED, tokenize = "unicode61 remove_diacritics 2");
"""
# A text's row is its session's id and its number in the session, so that a session's rows are a range.
_ROWS = 1 << 20
# Writing systems without spaces between words: every character is a word of its own, and a longer word a phrase of
# them, so that words of one and two characters are found (the trigram tokenizer of SQLite needs three). The
# separator has no width and, for the tokenizer, no meaning.
_UNSPACED = re.compile(
    "(["
    "\u3040-\u30ff\u31f0-\u31ff"  # kana
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"  # Chinese characters
    "\uac00-\ud7af"  # hangul: its spaces stand between words with their endings
    "])"
)
_SEPARATOR = "\u200b"
# Around what was found, in a Hit's text.
MARKS = ("\x02", "\x03")


@dataclass(frozen=True)
class Entry:
    """A session: ``changed`` is in seconds since the epoch, ``begun`` in ISO 8601; ``problem`` says why its file cannot
    be read, where it cannot.
    """

    name: str
    changed: float
    begun: str
    question: str
    model: str
    messages: int
    calls: int
    problem: str


@dataclass(frozen=True)
class Hit:
    """A place where the words were found: message ``number``, counted from 1, of a session. ``text`` is what stands
    around it, with MARKS around the words.
    """

    name: str
    number: int
    role: str
    text: str


def entries(limit: int) -> tuple[list[Entry], int]:
    """The sessions, the one last written to first, ``limit`` of them at most; and how many there are."""

    def ask(index: sqlite3.Connection) -> tuple[list[Entry], int]:
        rows = index.execute(
            "SELECT name, changed, begun, question, model, messages, calls, problem FROM sessions "
            "ORDER BY changed DESC, name DESC LIMIT ?",
            (limit,),
        )
        return [Entry(*row) for row in rows], index.execute("SELECT count(*) FROM sessions").fetchone()[0]

    return _asked(ask)


def search(words: Iterable[str], limit: int) -> tuple[list[Hit], int]:
    """The messages in which all the words stand, the newest session first, ``limit`` of them at most; and how many
    there are. A word may be the beginning of one, or several words that follow each other.

    Raises UserError where there is no letter or digit to look for.
    """
    phrases = [_spaced(word) for word in words]
    if not phrases or not all(any(letter.isalnum() for letter in phrase) for phrase in phrases):
        raise UserError("words are made of letters and digits")
    # Quoted, so that nothing in them is an operator of the query language.
    query = " AND ".join('"' + phrase.replace('"', '""') + '" *' for phrase in phrases)

    def ask(index: sqlite3.Connection) -> tuple[list[Hit], int]:
        rows = index.execute(
            "SELECT name, said.rowid % ?, role, snippet(said, 0, ?, ?, '…', 32) FROM said "
            "JOIN sessions ON sessions.id = said.rowid / ? WHERE said MATCH ? "
            "ORDER BY changed DESC, said.rowid LIMIT ?",
            (_ROWS, *MARKS, _ROWS, query, limit),
        )
        found = [Hit(name, number, role, text.replace(_SEPARATOR, "")) for name, number, role, text in rows]
        return found, index.execute("SELECT count(*) FROM said WHERE said MATCH ?", (query,)).fetchone()[0]

    return _asked(ask)


def _asked(ask: Callable[[sqlite3.Connection], _Answer]) -> _Answer:
    """The answer of the index, brought up to date before; of a new one where the one that is there is broken."""
    path = cache_folder() / "sessions.sqlite"
    try:
        try:
            with closing(_updated(path)) as index:
                return ask(index)
        except (sqlite3.DatabaseError, ValueError):  # ValueError: a damaged page may also give nonsense
            path.unlink(missing_ok=True)
            with closing(_updated(path)) as index:
                return ask(index)
    except (sqlite3.Error, OSError) as error:
        raise UserError(f"cannot use the index of the sessions, {path}: {error}", code=1) from error


def _updated(path: Path) -> sqlite3.Connection:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))  # SQLite would make it readable for all
    index = sqlite3.connect(path, timeout=30, isolation_level=None)
    try:
        index.execute("PRAGMA secure_delete = ON")  # what is deleted is gone
        index.execute("BEGIN IMMEDIATE")  # one process at a time
        version = index.execute("PRAGMA user_version").fetchone()[0]
        if version == 0:  # a new file
            for statement in _TABLES.split(";"):
                index.execute(statement)
            index.execute(f"PRAGMA user_version = {_VERSION}")
        elif version != _VERSION:
            raise sqlite3.DatabaseError("another version")
        _update(index)
        index.execute("COMMIT")
    except BaseException:
        index.close()
        raise
    return index


def _update(index: sqlite3.Connection) -> None:
    """Read the files that are new or changed, forget those that are gone."""
    known = {name: (number, stamp) for number, name, stamp in index.execute("SELECT id, name, stamp FROM sessions")}
    for path in paths():
        try:
            stat = path.stat()
        except OSError:  # gone since
            continue
        stamp = f"{stat.st_mtime_ns} {stat.st_size}"
        number, indexed = known.pop(path.stem, (None, ""))
        if stamp == indexed:
            continue
        if number is not None:
            _forget(index, number)
        log, problem = Log(), ""
        try:
            log = read(path)
        except UserError as error:
            problem = str(error)
        questions = [message.content for message in log.messages if message.role == "user"]
        questions += [message.content for message, _ in log.failed]
        row = index.execute(
            "INSERT INTO sessions VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                number,
                path.stem,
                stamp,
                stat.st_mtime,
                log.begun,
                _clean(questions[0]) if questions else "",
                log.model,
                len(log.messages),
                sum(len(message.calls) for message in log.messages),
                problem,
            ),
        ).lastrowid
        assert row is not None  # noqa: S101 - for the type checker: an INSERT has one
        texts = [(message.role, _text(message)) for message in log.messages]
        texts += [("failed", message.content) for message, _ in log.failed]
        index.executemany(
            "INSERT INTO said (rowid, text, role) VALUES (?, ?, ?)",
            [(row * _ROWS + at, _spaced(text), role) for at, (role, text) in enumerate(texts[: _ROWS - 1], start=1)],
        )
    for number, _ in known.values():
        _forget(index, number)


def _forget(index: sqlite3.Connection, number: int) -> None:
    index.execute("DELETE FROM sessions WHERE id = ?", (number,))
    index.execute("DELETE FROM said WHERE rowid BETWEEN ? AND ?", (number * _ROWS, (number + 1) * _ROWS - 1))


def _text(message: Message) -> str:
    """All that a message says."""
    calls = [f"{call.name} {json.dumps(call.arguments, ensure_ascii=False)}" for call in message.calls]
    name = message.name or ""
    return "\n".join(part for part in (name, message.reasoning, message.full or message.content, *calls) if part)


def _spaced(text: str) -> str:
    return _UNSPACED.sub(rf"\1{_SEPARATOR}", _clean(text))


def _clean(text: str) -> str:
    """Text that a database can hold and that has none of our marks."""
    text = text.encode("utf-8", "replace").decode()
    return re.sub(f"[{''.join(MARKS)}{_SEPARATOR}\0]", "", text)

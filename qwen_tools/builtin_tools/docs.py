"""``docs:DIR``: search and read a folder of Markdown or text, as the assistant of a course site does. All only read.

The index is SQLite's FTS5, in memory, one row a section; it is brought up to date before every search. FTS5 splits
text at spaces, which Chinese does not have, so a run of Chinese characters is indexed as its pairs: 明天下雨 as 明天,
天下, 下雨 and 雨. Every word of two characters is then a term, and one character is the beginning of one.
"""

from __future__ import annotations

import re
import sqlite3
import threading
import unicodedata
from collections.abc import Iterator
from pathlib import Path

from ..errors import UserError
from ..tools import Output, Tool
from .folder import Folder, lines_of

_SUFFIXES = (".md", ".markdown", ".txt", ".rst")
_SECTION = 1500  # characters of a section at most; a longer one is several rows
_EXCERPT = 320
_SHOWN = 5000
_LISTED = 100

_HEADING = re.compile(r"(#{1,6})\s+(.*?)\s*#*\s*$")
_CHINESE = "\u3005\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_RUN = re.compile(f"([{_CHINESE}]+)|([^\\W_{_CHINESE}]+)")


def terms(text: str) -> list[str]:
    """The terms of a text, as they are indexed."""
    found: list[str] = []
    for chinese, word in _RUN.findall(unicodedata.normalize("NFKC", text)):
        if word:
            found.append(word.lower())
        else:
            found += [chinese[at : at + 2] for at in range(len(chinese))]
    return found


def _query(text: str) -> str:
    """A search text as FTS5 reads it: sections with any of its terms, and the more and the rarer the better."""
    found = terms(text)
    # The last character of a Chinese run says nothing in a query of more than it: the pair before has it.
    kept = [term for at, term in enumerate(found) if not (_lone(term) and at and found[at - 1].endswith(term))]
    return " OR ".join(f'"{term}"*' if _lone(term) else f'"{term}"' for term in dict.fromkeys(kept))


def _lone(term: str) -> bool:
    return len(term) == 1 and bool(_RUN.fullmatch(term)[1])  # type: ignore[index]  # a term is a run


def sections(text: str) -> Iterator[tuple[str, int, str]]:
    """The sections of a document: (heading, line from 1, text), cut at headings and where they are too long."""
    heading, start, lines, length, fenced = "", 1, list[str](), 0, False
    for number, line in enumerate(text.split("\n"), start=1):
        if line.lstrip().startswith(("```", "~~~")):
            fenced = not fenced
        title = None if fenced else _HEADING.match(line)
        if title or length + len(line) > _SECTION:
            if any(each.strip() for each in lines):
                yield heading, start, "\n".join(lines).strip("\n")
            start, lines, length = number, [], 0
        if title:
            heading = title[2]
        lines.append(line)
        length += len(line) + 1
    if any(each.strip() for each in lines):
        yield heading, start, "\n".join(lines).strip("\n")


class _Index:
    """The sections of the documents of a folder."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self._lock = threading.Lock()  # calls run in threads of their own
        self._known: dict[str, tuple[int, int]] = {}  # time of change and size
        self._db = sqlite3.connect(":memory:", check_same_thread=False)
        try:
            self._db.execute(
                "CREATE VIRTUAL TABLE terms USING fts5(title, heading, body, tokenize = 'porter unicode61')"
            )
        except sqlite3.OperationalError as error:
            raise UserError(f"the docs tools need a Python whose SQLite has FTS5: {error}") from error
        self._db.execute("CREATE TABLE sections(id INTEGER PRIMARY KEY, path, title, heading, line, text)")
        self._db.execute("CREATE INDEX by_path ON sections(path)")

    def documents(self) -> list[tuple[str, str]]:
        """(path, title) of every document."""
        with self._lock:
            self._update()
            return self._db.execute("SELECT DISTINCT path, title FROM sections ORDER BY path").fetchall()

    def search(self, query: str, limit: int) -> list[tuple[str, str, str, int, str]]:
        """(path, title, heading, line, text) of the sections that fit best. A title or heading counts more."""
        asked = _query(query)
        if not asked:
            return []
        with self._lock:
            self._update()
            return self._db.execute(
                "SELECT path, sections.title, sections.heading, line, text "
                "FROM terms JOIN sections ON id = terms.rowid WHERE terms MATCH ? "
                "ORDER BY bm25(terms, 4.0, 3.0, 1.0), id LIMIT ?",
                (asked, limit),
            ).fetchall()

    def _update(self) -> None:
        """Index what is new or changed, forget what is gone."""
        found: dict[str, tuple[int, int]] = {}
        for file in self._folder.files(self._folder.root):
            if file.suffix.lower() in _SUFFIXES:
                stat = file.lstat()
                found[self._folder.name(file)] = (stat.st_mtime_ns, stat.st_size)
        if found == self._known:
            return
        for path in self._known:
            if found.get(path) != self._known[path]:
                self._db.execute("DELETE FROM terms WHERE rowid IN (SELECT id FROM sections WHERE path = ?)", (path,))
                self._db.execute("DELETE FROM sections WHERE path = ?", (path,))
        for path in found:
            if found[path] != self._known.get(path):
                self._add(path)
        self._known = found

    def _add(self, path: str) -> None:
        try:
            text = self._folder.read_text(self._folder.root / path).text
        except ValueError:
            return  # no text, or too large
        parts = list(sections(text))
        title = next((heading for heading, _, _ in parts if heading), Path(path).stem)
        for heading, line, body in parts:
            row = self._db.execute(
                "INSERT INTO sections(path, title, heading, line, text) VALUES (?, ?, ?, ?, ?)",
                (path, title, heading, line, body),
            ).lastrowid
            columns = (f"{title} {Path(path).stem}", heading, body)
            self._db.execute("INSERT INTO terms(rowid, title, heading, body) VALUES (?, ?, ?, ?)",
                             (row, *(" ".join(terms(column)) for column in columns)))  # fmt: skip


def tools(argument: str) -> list[Tool]:
    """The tools on a folder, the current one by default. Raises UserError where there is no such folder."""
    folder = Folder(argument)
    index = _Index(folder)

    def search_documents(query: str, limit: int = 4) -> Output:
        found = index.search(query, min(max(limit, 1), 10))
        if not found:
            return Output(f"no document has {query!r}; try other words, or list_documents")
        parts = [
            f"[{number}] {path}, line {line}: {heading or title}\n{_excerpt(text, query)}"
            for number, (path, title, heading, line, text) in enumerate(found, start=1)
        ]
        references = tuple(
            f"[{number}] {_place(title, heading)} ({path}:{line})"
            for number, (path, title, heading, line, _) in enumerate(found, start=1)
        )
        return Output("\n\n".join(parts), references)

    def list_documents() -> str:
        found = index.documents()
        lines = [f"{path}: {title}" for path, title in found[:_LISTED]]
        if len(found) > _LISTED:
            lines.append(f"… and {len(found) - _LISTED} more; search_documents finds them")
        return "\n".join(lines) or "there are no documents"

    def read_document(path: str, start_line: int = 1) -> Output:
        file = folder.find(path)
        if file.suffix.lower() not in _SUFFIXES:
            raise ValueError(f"{path} is not a document; list_documents shows them")
        text = folder.read_text(file).text
        shown = lines_of(text, start_line, _SHOWN, "read_document with") if text else "the document is empty"
        return Output(shown, (f"{folder.name(file)}:{start_line}",))

    text = {"type": "string"}
    return [
        Tool(
            "search_documents",
            "Search the documents; gives the sections that fit best.",
            {
                "type": "object",
                "properties": {
                    "query": {"type": "string", "description": "words to look for"},
                    "limit": {"type": "integer", "minimum": 1, "maximum": 10, "default": 4},
                },
                "required": ["query"],
            },
            search_documents,
            read_only=True,
        ),
        Tool("list_documents", "List the documents and their titles.", {}, list_documents, read_only=True),
        Tool(
            "read_document",
            "Read a document, from a line on.",
            {
                "type": "object",
                "properties": {"path": text, "start_line": {"type": "integer", "minimum": 1, "default": 1}},
                "required": ["path"],
            },
            read_document,
            read_only=True,
        ),
    ]


def _place(title: str, heading: str) -> str:
    return f"{title} › {heading}" if heading and heading != title else title


def _excerpt(text: str, query: str) -> str:
    """The part of a section in which most of what was asked for stands."""
    if len(text) <= _EXCERPT:
        return text
    wanted = [term for term in dict.fromkeys(terms(query)) if len(term) > 1]
    lowered = text.lower()
    places = [at for term in wanted if (at := lowered.find(term)) >= 0] or [0]
    best = max(places, key=lambda start: sum(start <= at < start + _EXCERPT for at in places))
    start = max(0, best - _EXCERPT // 4)
    # A whole line or sentence reads better than one that is cut.
    for mark in ("\n", "。", ". "):
        before = text.rfind(mark, start, best)
        if before >= 0:
            start = before + len(mark)
            break
    end = start + _EXCERPT
    return ("…" if start else "") + text[start:end].strip() + ("…" if end < len(text) else "")

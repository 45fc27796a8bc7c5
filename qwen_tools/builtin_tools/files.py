"""``files:DIR``: look into a folder, and write in it after asking."""

from __future__ import annotations

import time
from dataclasses import replace

from ..tools import Tool
from .folder import Folder, Text, lines_of, size

_ENTRIES = 200
_MATCHES = 40
_SHOWN = 6000  # characters of a file at once
_SEARCH_SECONDS = 15.0


def tools(argument: str) -> list[Tool]:
    """The tools on a folder, the current one by default. Raises UserError where there is no such folder."""
    folder = Folder(argument)

    def list_directory(path: str = ".") -> str:
        start = folder.find(path)
        if not start.is_dir():
            raise ValueError(f"{path} is not a folder" if start.exists() else f"there is no folder {path}")
        entries = sorted(start.iterdir(), key=lambda entry: (not entry.is_dir(), entry.name))
        lines = [
            f"{entry.name}/" if entry.is_dir() else f"{entry.name} ({size(entry.lstat().st_size)})" for entry in entries
        ]
        if len(lines) > _ENTRIES:
            lines[_ENTRIES:] = [f"… and {len(lines) - _ENTRIES} more"]
        return "\n".join(lines) or "the folder is empty"

    def read_file(path: str, start_line: int = 1) -> str:
        text = folder.read_text(folder.find(path)).text
        return lines_of(text, start_line, _SHOWN, "read_file with") if text else "the file is empty"

    def search_files(query: str, path: str = ".") -> str:
        if not query.strip():
            raise ValueError("query is empty: give the text to look for")
        wanted, start = query.casefold(), folder.find(path)
        if not start.exists():
            raise ValueError(f"there is no folder {path}")
        found: list[str] = []
        deadline = time.monotonic() + _SEARCH_SECONDS
        for file in [start] if start.is_file() else folder.files(start):
            name = folder.name(file)
            if wanted in name.casefold():
                found.append(name)
            try:
                text = folder.read_text(file).text
            except ValueError:
                continue  # binary, too large, or gone
            if wanted in text.casefold():
                for number, line in enumerate(text.split("\n"), start=1):
                    if wanted in line.casefold():
                        found.append(f"{name}:{number}: {_around(line, wanted)}")
            if len(found) > _MATCHES:
                return "\n".join([*found[:_MATCHES], "[there are more; search for something more special]"])
            if time.monotonic() > deadline:
                return "\n".join([*found, f"[stopped at {name}, too many files; give the path of a folder]"])
        return "\n".join(found) or f"nothing has {query!r} in it; try a shorter or another word"

    def write_file(path: str, content: str) -> str:
        target = folder.find(path)
        existed = target.exists()
        folder.write_text(target, Text(content, "utf-8", "\n"))
        return f"{'replaced' if existed else 'created'} {folder.name(target)} ({len(content)} characters)"

    def edit_file(path: str, old_text: str, new_text: str) -> str:
        target = folder.find(path)
        before = folder.read_text(target)
        old, new = old_text.replace("\r\n", "\n"), new_text.replace("\r\n", "\n")
        if not old:
            raise ValueError("old_text is empty: give the text to replace, exactly as it stands in the file")
        count = before.text.count(old)
        if count != 1:
            hint = "read the file and copy it exactly" if count == 0 else "give more of the lines around it"
            raise ValueError(f"old_text is in {path} {count} times, and must be there once: {hint}")
        folder.write_text(target, replace(before, text=before.text.replace(old, new)))
        line = before.text[: before.text.index(old)].count("\n") + 1
        return f"edited {folder.name(target)} at line {line}"

    text = {"type": "string"}
    path = {"type": "string", "description": "path inside the folder"}
    where = {**path, "default": "."}
    return [
        Tool(
            "list_directory",
            "List the files and folders in a folder.",
            {"type": "object", "properties": {"path": where}, "required": []},
            list_directory,
            read_only=True,
        ),
        Tool(
            "read_file",
            "Read a text file, from a line on.",
            {
                "type": "object",
                "properties": {"path": path, "start_line": {"type": "integer", "minimum": 1, "default": 1}},
                "required": ["path"],
            },
            read_file,
            read_only=True,
        ),
        Tool(
            "search_files",
            "Find the files and lines that hold a text.",
            {"type": "object", "properties": {"query": text, "path": where}, "required": ["query"]},
            search_files,
            read_only=True,
        ),
        Tool(
            "write_file",
            "Write a text file; one of that name is replaced.",
            {"type": "object", "properties": {"path": path, "content": text}, "required": ["path", "content"]},
            write_file,
        ),
        Tool(
            "edit_file",
            "Replace a piece of a text file that occurs once in it.",
            {
                "type": "object",
                "properties": {"path": path, "old_text": text, "new_text": text},
                "required": ["path", "old_text", "new_text"],
            },
            edit_file,
        ),
    ]


def _around(line: str, wanted: str, length: int = 160) -> str:
    """The part of a long line that holds what was looked for."""
    line = line.strip()
    if len(line) <= length:
        return line
    start = max(0, line.casefold().find(wanted) - length // 3)
    return ("…" if start else "") + line[start : start + length] + "…"

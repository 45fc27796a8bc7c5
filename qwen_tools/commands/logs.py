"""``logs``: the conversations that were kept: which there are, where something was said, and one of them in full."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict
from itertools import accumulate, takewhile
from typing import Any
from unicodedata import combining, east_asian_width

from ..messages import as_dicts
from ..session import find, latest, markdown, read
from ..session_index import MARKS, Entry, entries, search
from .terminal import colours, positive, say, visible


def configure(parser: argparse.ArgumentParser) -> None:
    """The arguments of logs."""
    parser.set_defaults(action=None)
    _shared(parser, False, 20)
    actions = parser.add_subparsers(metavar="list|search|show")
    listing = actions.add_parser("list", help="list the sessions, the newest first (what is done without an action)")
    listing.set_defaults(action=_list)
    searching = actions.add_parser("search", help="find messages in which all the words stand")
    searching.set_defaults(action=_search)
    searching.add_argument("words", nargs="+", metavar="WORD", help="a word, its beginning, or 'several in a row'")
    showing = actions.add_parser("show", help="show a session as Markdown")
    showing.set_defaults(action=_show)
    showing.add_argument("name", nargs="?", help="its name, or how its name begins (default: the latest)")
    showing.add_argument("--raw", action="store_true", help="the file as it is, with all that was undone")
    for action in (listing, searching, showing):
        # Without defaults of their own, so that the options count in either place.
        _shared(action, argparse.SUPPRESS, argparse.SUPPRESS if action is not showing else None)


def _shared(parser: argparse.ArgumentParser, as_json: Any, limit: Any) -> None:
    parser.add_argument("--json", action="store_true", default=as_json, help="one JSON object instead of text")
    if limit is not None:
        parser.add_argument("--limit", type=positive, default=limit, metavar="N", help="N at most (default 20)")


def run(args: argparse.Namespace) -> int:
    """Do what was asked; returns the exit code."""
    code: int = (args.action or _list)(args)
    return code


def _list(args: argparse.Namespace) -> int:
    found, count = entries(args.limit)
    if args.json:
        print(json.dumps({"sessions": [asdict(entry) for entry in found], "count": count}, ensure_ascii=False))
        return 0
    columns = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    for entry in found:
        print("\n".join(_lines(entry, columns)))
    _tell_rest(len(found), count, "no sessions were kept so far")
    return 0


def _search(args: argparse.Namespace) -> int:
    """Exit code 1 where nothing is found, as grep does."""
    found, count = search(args.words, args.limit)
    if args.json:
        hits = [asdict(hit) | {"text": hit.text.replace(MARKS[0], "").replace(MARKS[1], "")} for hit in found]
        print(json.dumps({"hits": hits, "count": count}, ensure_ascii=False))
    else:
        bold = ("\x1b[1m", "\x1b[0m") if colours(sys.stdout) else ("", "")
        for hit in found:
            line = visible(" ".join(hit.text.split()), keep="".join(MARKS))
            line = line.replace(MARKS[0], bold[0]).replace(MARKS[1], bold[1])
            print(f"{hit.name}  {hit.number:3} {hit.role:9}  {line}")
        _tell_rest(len(found), count, "nothing found")
    return 0 if found else 1


def _show(args: argparse.Namespace) -> int:
    path = find(args.name) if args.name else latest()
    log = read(path)
    if args.raw:
        text = path.read_text(encoding="utf-8", errors="surrogatepass")
    elif args.json:
        about = {"name": path.stem, "path": str(path), "model": log.model, "begun": log.begun}
        failed = [{"question": message.content, "error": error} for message, error in log.failed]
        text = json.dumps({**about, "messages": as_dicts(log.messages), "failed": failed}, ensure_ascii=False) + "\n"
    else:
        text = markdown(log.messages)
        for message, error in log.failed:
            text += f"\n## A question that failed\n\n{message.content}\n\n*({error})*\n"
    sys.stdout.write(visible(text, keep="\n\t") if sys.stdout.isatty() else text)
    return 0


def _tell_rest(shown: int, count: int, nothing: str) -> None:
    if not count:
        say(nothing)
    elif shown < count:
        say(f"{count - shown} more: --limit {count}")


def _lines(entry: Entry, columns: int | None) -> Iterator[str]:
    """A session in two lines, cut where the terminal ends: what it is, and what was asked first."""
    when = time.strftime("%Y-%m-%d %H:%M", time.localtime(entry.changed))
    counts = f"{_counted(entry.messages, 'message')}, {_counted(entry.calls, 'call')}"
    question = f"({entry.problem})" if entry.problem else entry.question
    for line in (f"{entry.name}  {when}  {counts}  {entry.model}", f"    {' '.join(question.split())}"):
        yield _cut(visible(line).rstrip(), columns)


def _counted(count: int, thing: str) -> str:
    return f"{count} {thing}{'s' if count != 1 else ''}"


def _width(text: str) -> int:
    """How many columns of a terminal a text takes."""
    return sum(0 if combining(letter) else 1 + (east_asian_width(letter) in "WF") for letter in text)


def _cut(text: str, width: int | None) -> str:
    if width is None or _width(text) <= width:
        return text
    room = width - 1
    kept = list(takewhile(lambda total: total <= room, accumulate(_width(letter) for letter in text)))
    return text[: len(kept)] + "…"

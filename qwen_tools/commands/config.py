"""``config``: what is set, and where each value comes from."""

from __future__ import annotations

import argparse
import json
from importlib import import_module

from .. import config
from .terminal import say, visible

# The commands whose long flags are settings.
CONFIGURED = ("chat",)


def configure(parser: argparse.ArgumentParser) -> None:
    """The arguments of config."""
    parser.set_defaults(action=_show)
    parser.add_argument("--json", action="store_true", help="one JSON object instead of text")
    actions = parser.add_subparsers(metavar="show|path")
    showing = actions.add_parser("show", help="every setting with where it comes from (what is done without an action)")
    showing.set_defaults(action=_show)
    where = actions.add_parser("path", help="the files that settings are read from")
    where.set_defaults(action=_path)
    for action in (showing, where):
        action.add_argument(
            "--json", action="store_true", default=argparse.SUPPRESS, help="one JSON object instead of text"
        )


def run(args: argparse.Namespace) -> int:
    """Do what was asked; returns the exit code."""
    args.action(args.json)
    return 0


def known_flags() -> dict[str, config.Flag]:
    """The settings of all commands."""
    known: dict[str, config.Flag] = {}
    for command in CONFIGURED:
        parser = argparse.ArgumentParser()
        import_module(f".{command}", __package__).configure(parser)
        known |= config.flags(parser)
    return known


def _show(as_json: bool) -> None:
    settings, notices = config.resolve(known_flags())
    if as_json:
        print(json.dumps({key: {"value": each.value, "from": each.source} for key, each in settings.items()}))
    else:
        texts = {key: visible(json.dumps(each.value, ensure_ascii=False)) for key, each in settings.items()}
        width = min(40, max(len(text) for text in texts.values()))
        names = max(map(len, texts))
        for key, text in texts.items():
            print(f"{key:{names}} {'-' if settings[key].value is None else text:{width}}  {settings[key].source}")
    for notice in notices:
        say(notice)


def _path(as_json: bool) -> None:
    user, project = config.user_file(), config.project_file()
    if as_json:
        print(json.dumps({"user": str(user), "project": str(project) if project else None}))
        return
    print(f"user     {user}{'' if user.is_file() else '  (not there)'}")
    print(f"project  {project or f'none: no {config.PROJECT_FILE} in this folder or one above'}")

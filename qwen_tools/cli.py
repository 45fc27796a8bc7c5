"""The command line: which command, and how an error becomes one line and an exit code.

A command is a module in ``commands/`` with ``configure(parser)`` and ``run(args) -> exit code``. Only the chosen one is
imported.
"""

from __future__ import annotations

import argparse
import io
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from . import config
from .commands.config import CONFIGURED, known_flags
from .commands.terminal import say, visible
from .errors import UserError

# One row a command: its name, and the line that --help shows without importing it.
COMMANDS = {
    "chat": "talk to a model that can use tools",
    "render": "show the exact raw prompt of a conversation",
    "convert": "write a conversation in another format: raw text, OpenAI, Anthropic",
    "parse": "read a model's raw answer and say what is in it",
    "tools": "list the tools, check their definitions, try one by hand",
    "logs": "list the conversations that were kept, search in them, show one",
    "config": "show the settings, and where each value comes from",
    "compare": "ask in several ways side by side, raw tags and others",
    "bench": "measure a model on BFCL's questions in several ways of asking, resumable",
    "why": "say how likely each tool was to be called, and how sure each argument",
    "demo": "show step by step how it works, without a model",
    "serve": "let OpenAI and Anthropic clients, and a browser, use a model",
    "models": "list the models on this machine, or remove one",
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code: 0 ok, 1 the task failed, 2 usage or configuration,
    3 model or endpoint not available, 130 interrupted.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    parser = argparse.ArgumentParser(
        prog="qwen_tools",
        description="Raw-prompt tool calling with local open-weight models.",
        epilog="'qwen_tools COMMAND --help' says more about a command.",
    )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    chosen = next((word for word in arguments if not word.startswith("-")), None)
    modules: dict[str, Any] = {}
    own: dict[str, config.Flag] = {}
    for name, line in COMMANDS.items():
        subparser = commands.add_parser(name, help=line, description=line[0].upper() + line[1:] + ".")
        if name == chosen:
            modules[name] = import_module(f".commands.{name}", __package__)
            modules[name].configure(subparser)
        if name == chosen and name in CONFIGURED:
            own = config.flags(subparser)
            config.defer(own.values())
    args = parser.parse_args(arguments)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A model may write half a surrogate pair, a terminal may know ASCII alone: neither is worth a crash.
            stream.reconfigure(errors="backslashreplace")
    try:
        if args.command in CONFIGURED:
            for notice in config.fill(args, own, known_flags()):
                say(f"qwen_tools: {visible(notice)}")
        return int(modules[args.command].run(args))
    except UserError as error:
        # It may quote what a file or a model holds.
        say(f"qwen_tools: {visible(str(error))}")
        return error.code
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # The reader of our output went away, as `head` does. Nobody is left to be told.
        sys.stderr.close()
        return 0

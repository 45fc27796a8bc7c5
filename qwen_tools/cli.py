"""The command line: which command, and how an error becomes one line and an exit code.

A command is a module in ``commands/`` with ``configure(parser)`` and ``run(args) -> exit code``. Only the chosen one is
imported.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import sys
from collections.abc import Sequence
from difflib import get_close_matches
from importlib import import_module
from typing import Any, NoReturn

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


class _Parser(argparse.ArgumentParser):
    """Says what is wrong in one line, where argparse prints all flags first."""

    def error(self, message: str) -> NoReturn:
        more = "" if message.endswith("?") else f"; '{self.prog} --help' says more"
        self.exit(2, f"{self.prog}: {visible(message)}{more}\n")

    def unknown(self, word: str) -> NoReturn:
        """There is no such flag, or nothing that the word could be."""
        close = get_close_matches(word.partition("=")[0], self._option_string_actions, 1) if word[:1] == "-" else []
        self.error(f"{word!r} is not understood" + (f"; did you mean {close[0]}?" if close else ""))


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code: 0 ok, 1 the task failed, 2 usage or configuration,
    3 model or endpoint not available, 130 interrupted.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    parser = _Parser(
        prog="qwen_tools",
        description="Raw-prompt tool calling with local open-weight models.",
        epilog="'qwen_tools COMMAND --help' says more about a command.",
    )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    chosen = next((word for word in arguments if not word.startswith("-")), None)
    if chosen is not None and chosen not in COMMANDS:
        close = get_close_matches(chosen, COMMANDS, 1, 0.5)
        parser.error(
            f"there is no command {chosen!r}"
            + (f"; did you mean {close[0]}?" if close else f": there are {', '.join(COMMANDS)}")
        )
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
    args, unknown = parser.parse_known_args(arguments)
    if unknown:
        commands.choices[args.command].unknown(unknown[0])
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A model may write half a surrogate pair, a terminal may know ASCII alone: neither is worth a crash.
            stream.reconfigure(errors="backslashreplace")
    try:
        if args.command in CONFIGURED:
            for notice in config.fill(args, own, known_flags()):
                say(f"qwen_tools: {visible(notice)}")
        code = int(modules[args.command].run(args))
        sys.stdout.flush()  # here, where an error can still be told
        return code
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
    except OSError as error:
        # What a command can say more of it says itself; this is a disk that is full, a terminal that is gone.
        with contextlib.suppress(OSError):
            say(f"qwen_tools: {visible(error.strerror or str(error))}{f': {error.filename}' if error.filename else ''}")
        sys.stdout = None  # what could not be written would be tried again at the end
        return 1

"""``chat``: one answer for a prompt, or a conversation at the terminal.

Reads the arguments, and prints what programs want to read: the answer to stdout, everything else to stderr. The
conversation is ``conversation.py``, what a person sees ``screen.py``, what a person types ``repl/``.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
import time
from dataclasses import asdict
from typing import Any

from .. import events as ev
from ..approval import MODES, Approval
from ..engines import Engine, Settings, open_engine
from ..errors import UserError
from ..families import read_options
from ..messages import as_dicts
from ..models import Progress
from ..session import Session, latest, path_of
from ..template import template_difference
from ..tool_sources import load as load_tools
from .activity import Activity
from .conversation import Asking, Conversation
from .question import person
from .screen import THINKING, Screen
from .terminal import positive, say

EXIT_CODES = {"stop": 0, "length": 1, "max_rounds": 1, "insisted": 1, "interrupted": 130}


def configure(parser: argparse.ArgumentParser) -> None:
    """The arguments of chat."""
    parser.add_argument("prompt", nargs="?", help="one question; without it, at a terminal, a conversation")
    model = parser.add_argument_group("the model")
    model.add_argument(
        "--model",
        help="hub id, folder, .gguf file, embedded (the default where it is installed), scripted:FILE, "
        "completions:URL[#MODEL] for a server, or a chat API: openai:URL#MODEL, anthropic:URL#MODEL",
    )
    model.add_argument("--family", help="how prompts are written; found from the model unless given")
    model.add_argument("--device", default="auto", help="auto, cpu or cuda[:N]")
    model.add_argument("--dtype", default="auto", help="auto, float32, bfloat16 or float16")
    model.add_argument(
        "--quantize",
        choices=("auto", "none", "int8", "int4"),
        default="auto",
        help="weights in fewer bits: int8 on a CPU, int8 or int4 on CUDA (auto: int8 for the embedded models on a CPU)",
    )
    asking = parser.add_argument_group("the conversation")
    asking.add_argument("--system", help="the system text, instead of the model's usual one")
    asking.add_argument(
        "--tools",
        help="built-in tools and .py files, separated by commas; none for no tools (default: all built-in tools)",
    )
    asking.add_argument("--tool-choice", default="auto", help="auto, none, required or the name of a tool")
    asking.add_argument("--guide", choices=("on", "off"), default="on", help="a grammar keeps calls valid (default on)")
    asking.add_argument("--salvage", action="store_true", help="also read calls that are not in tags")
    asking.add_argument("--max-rounds", type=positive, default=8, help="answers at most to a question (default 8)")
    asking.add_argument(
        "--max-new-tokens", type=positive, default=1024, help="tokens at most in one answer (default 1024)"
    )
    asking.add_argument(
        "--option",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="a render option of the family; repeatable",
    )
    asking.add_argument(
        "--template",
        choices=("family", "model"),
        default="family",
        help="who writes the prompt: we, or the model's own",
    )
    asking.add_argument(
        "--approve",
        choices=MODES,
        default="ask",
        help="what may run: ask (the default: what only reads runs, the rest asks), read (the rest is refused), "
        "all (without asking), none",
    )
    sampling = parser.add_argument_group("sampling", "what is not given is as the model's own generation_config says")
    sampling.add_argument("--temperature", type=float, help="0 for the likeliest token, always")
    sampling.add_argument("--top-p", type=float, help="sample from the likeliest tokens that make up this probability")
    sampling.add_argument("--top-k", type=int, help="sample from this many of the likeliest tokens")
    sampling.add_argument("--min-p", type=float, help="leave out tokens below this share of the likeliest one")
    sampling.add_argument("--repetition-penalty", type=float, help="above 1: tokens that were there are less likely")
    sampling.add_argument("--seed", type=int, help="the same seed draws the same answer")
    sampling.add_argument("--stop", action="append", default=[], help="a text that ends the answer; repeatable")
    kept = parser.add_argument_group("the session").add_mutually_exclusive_group()
    kept.add_argument("--continue", action="store_true", dest="go_on", help="go on with the latest session")
    kept.add_argument("--session", metavar="NAME", help="go on with the session of that name, or begin it")
    kept.add_argument("--no-log", action="store_true", help="keep no copy of the conversation on disk")
    output = parser.add_argument_group("output")
    output.add_argument("--json", action="store_true", help="one JSON object instead of text")
    output.add_argument("--events", action="store_true", help="JSON lines, one an event, as they happen")
    output.add_argument(
        "--thinking",
        choices=THINKING,
        default="show",
        help="thoughts in full, folded into a line, or off: none are shown, or had where the family can do without",
    )
    output.add_argument("--verbose", action="store_true", help="show the exact raw prompt of every round")
    output.add_argument("--stats", action="store_true", help="say what every answer cost: time, tokens, memory")


def run(args: argparse.Namespace) -> int:
    """Answer; returns the exit code."""
    if args.json and args.events:
        raise UserError("--json and --events exclude each other")
    talk = sys.stdin.isatty() and args.prompt is None
    if talk and (args.json or args.events):
        raise UserError("--json and --events need a PROMPT")
    prompt = None if talk else _whole_prompt(args.prompt)
    tools = load_tools(args.tools)
    asking = _asking(args)
    activity = Activity()
    approval = Approval(args.approve, person(activity))
    session = _session(args)  # before the model is loaded, which takes longer than an error should

    def load(name: str | None, progress: Progress | None = None) -> Engine:
        started = time.monotonic()
        engine = _open(args, name or args.model, asking.options, progress)
        screen.load_s = time.monotonic() - started
        return engine

    def begin(engine: Engine) -> Conversation:
        return Conversation(engine, tools, asking, approval, session)

    screen = Screen(activity, thinking=args.thinking, verbose=args.verbose, stats=args.stats)
    # stdout is the answer: what a tool prints goes to stderr.
    with contextlib.redirect_stdout(sys.stderr):
        if prompt is None:
            from .repl import Repl

            name = args.model or "embedded"
            return Repl(name, load, begin, tools, approval, screen, activity, keep=session is not None).run()
        conversation = begin(load(None))
        if args.events:
            done = conversation.ask(prompt, _print_event)
        elif args.json:
            answer = _Object()
            done = conversation.ask(prompt, answer.add)
            answer.print(done, conversation)
        else:
            done = screen.watch(lambda show: conversation.ask(prompt, show))
    return EXIT_CODES[done.reason]


def _session(args: argparse.Namespace) -> Session | None:
    """The session to begin or to go on with."""
    if args.go_on:
        return Session.open(latest())
    if args.session:
        path = path_of(args.session)
        return Session.open(path) if path.exists() else Session.new(args.session)
    return None if args.no_log else Session.new()


def _asking(args: argparse.Namespace) -> Asking:
    """How the command line says that the model is asked."""
    options = read_options(args.option)
    if args.thinking == "off":
        options["enable_thinking"] = False
    settings = Settings(
        max_new_tokens=args.max_new_tokens,
        temperature=args.temperature,
        top_p=args.top_p,
        top_k=args.top_k,
        min_p=args.min_p,
        repetition_penalty=args.repetition_penalty,
        seed=args.seed,
        stop=tuple(args.stop),
    )
    return Asking(
        settings,
        options,
        system=args.system,
        tool_choice=args.tool_choice,
        guided=args.guide == "on",
        salvage=args.salvage,
        max_rounds=args.max_rounds,
        template=args.template,
    )


def _whole_prompt(argument: str | None) -> str:
    """The question: what was piped in, in front of the argument."""
    piped = "" if sys.stdin is None or sys.stdin.isatty() else sys.stdin.read().strip()
    prompt = "\n\n".join(part for part in (piped, argument) if part)
    if not prompt.strip():
        raise UserError("nothing was asked: give a PROMPT, or pipe one in")
    return prompt


def _open(args: argparse.Namespace, model: str | None, options: dict[str, Any], progress: Progress | None) -> Engine:
    started = time.monotonic()
    engine = open_engine(
        model, family=args.family, device=args.device, dtype=args.dtype, progress=progress, quantize=args.quantize
    )
    if args.verbose:
        say(f"{engine.name} ({engine.family}) was ready after {time.monotonic() - started:.1f} s")
    if engine.tokenizer is not None and args.template == "family":
        difference = template_difference(engine.tokenizer, engine.family, **options)
        if difference:
            say(f"the model's own chat template writes prompts differently ({difference}); --template model uses it")
    return engine


def _print_event(event: ev.Event) -> None:
    """For programs: every event as a JSON line."""
    print(json.dumps(ev.to_dict(event), ensure_ascii=False), flush=True, file=sys.__stdout__)


class _Object:
    """For programs: one object when all is over."""

    def __init__(self) -> None:
        self._calls: list[dict[str, Any]] = []
        self._rounds: list[dict[str, Any]] = []

    def add(self, event: ev.Event) -> None:
        """Remember what the object will say."""
        if isinstance(event, ev.MessageAdded) and event.message.role == "assistant":
            self._calls += [{"name": call.name, "arguments": call.arguments} for call in event.message.calls]
        elif isinstance(event, ev.ToolEnd):
            open_call = next(call for call in self._calls if "ok" not in call)
            open_call.update(ok=event.ok, result=event.content)
        elif isinstance(event, ev.RoundEnd):
            self._rounds.append(asdict(event.usage))

    def print(self, done: ev.Done, conversation: Conversation) -> None:
        """Print the object."""
        last = conversation.messages[-1]
        print(
            json.dumps(
                {
                    "answer": last.content if last.role == "assistant" else "",
                    "finish_reason": done.reason,
                    "messages": as_dicts(conversation.messages),
                    "calls": self._calls,
                    "rounds": self._rounds,
                    "model": conversation.engine.name,
                    "family": conversation.engine.family,
                    "session": conversation.session_name,
                },
                ensure_ascii=False,
            ),
            file=sys.__stdout__,
        )

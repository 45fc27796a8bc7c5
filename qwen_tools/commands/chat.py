"""``chat``: one answer for a prompt, or a conversation at the terminal.

Prints what the loop says: the answer to stdout, everything else to stderr. No decision about turns, calls or
tools is made here.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from .. import events as ev
from ..builtin_tools import load as load_tools
from ..engines import Engine, Settings, open_engine
from ..engines.api import ApiPrompt, prompt_for
from ..errors import UserError
from ..families import read_options
from ..loop import run as run_loop
from ..messages import Message, ToolCall, as_dicts
from ..profiles import Profile, profile, system_text
from ..prompt import Prompt
from ..session import Session
from ..template import TemplatePrompt, template_difference
from ..tools import Tool, Toolbox
from .render import ids_view, table_view, text_view
from .stats import stats_lines
from .terminal import colours, say, visible

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
        "--quantize", choices=("int8", "int4"), help="weights in fewer bits: int8 on a CPU, int8 or int4 on CUDA"
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
    asking.add_argument("--max-rounds", type=_positive, default=8, help="answers at most to a question (default 8)")
    asking.add_argument(
        "--max-new-tokens", type=_positive, default=1024, help="tokens at most in one answer (default 1024)"
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
    sampling = parser.add_argument_group("sampling", "what is not given is as the model's own generation_config says")
    sampling.add_argument("--temperature", type=float, help="0 for the likeliest token, always")
    sampling.add_argument("--top-p", type=float, help="sample from the likeliest tokens that make up this probability")
    sampling.add_argument("--top-k", type=int, help="sample from this many of the likeliest tokens")
    sampling.add_argument("--min-p", type=float, help="leave out tokens below this share of the likeliest one")
    sampling.add_argument("--repetition-penalty", type=float, help="above 1: tokens that were there are less likely")
    sampling.add_argument("--seed", type=int, help="the same seed draws the same answer")
    sampling.add_argument("--stop", action="append", default=[], help="a text that ends the answer; repeatable")
    output = parser.add_argument_group("output")
    output.add_argument("--json", action="store_true", help="one JSON object instead of text")
    output.add_argument("--events", action="store_true", help="JSON lines, one an event, as they happen")
    output.add_argument("--verbose", action="store_true", help="show the exact raw prompt of every round")
    output.add_argument("--stats", action="store_true", help="say what every answer cost: time, tokens, memory")
    output.add_argument("--no-log", action="store_true", help="keep no copy of the conversation on disk")


def run(args: argparse.Namespace) -> int:
    """Answer; returns the exit code."""
    if args.json and args.events:
        raise UserError("--json and --events exclude each other")
    talk = sys.stdin.isatty() and args.prompt is None
    if talk and (args.json or args.events):
        raise UserError("--json and --events need a PROMPT")
    prompt = None if talk else _whole_prompt(args.prompt)
    toolbox = load_tools(args.tools)
    options = read_options(args.option)
    _settings(args, Profile())  # what is out of range is said before a model is loaded
    started = time.monotonic()
    engine = _open(args, options)
    chat = Chat(engine, toolbox, profile(engine.name), options, args, time.monotonic() - started)
    # stdout is the answer: what a tool prints goes to stderr.
    with contextlib.redirect_stdout(sys.stderr):
        return _converse(chat) if prompt is None else chat.ask(prompt)


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return number


def _whole_prompt(argument: str | None) -> str:
    """The question: what was piped in, in front of the argument."""
    piped = "" if sys.stdin is None or sys.stdin.isatty() else sys.stdin.read().strip()
    prompt = "\n\n".join(part for part in (piped, argument) if part)
    if not prompt.strip():
        raise UserError("nothing was asked: give a PROMPT, or pipe one in")
    return prompt


def _open(args: argparse.Namespace, options: dict[str, Any]) -> Engine:
    started = time.monotonic()
    engine = open_engine(args.model, family=args.family, device=args.device, dtype=args.dtype, quantize=args.quantize)
    if args.verbose:
        say(f"{engine.name} ({engine.family}) was ready after {time.monotonic() - started:.1f} s")
    if engine.tokenizer is not None and args.template == "family":
        difference = template_difference(engine.tokenizer, engine.family, **options)
        if difference:
            say(f"the model's own chat template writes prompts differently ({difference}); --template model uses it")
    return engine


def _settings(args: argparse.Namespace, asked: Profile) -> Settings:
    """How to generate: what the command line says, and else what the model's profile says."""
    how = {name: getattr(args, name) for name in ("temperature", "top_p", "top_k", "min_p")}
    given = any(value is not None for value in how.values())
    return Settings(
        max_new_tokens=args.max_new_tokens,
        do_sample=None if given else asked.do_sample,
        seed=args.seed,
        repetition_penalty=args.repetition_penalty,
        stop=tuple(args.stop),
        **how,
    )


class Chat:
    """A conversation: its messages, and how its answers are asked for and shown."""

    def __init__(
        self,
        engine: Engine,
        toolbox: Toolbox,
        asked: Profile,
        options: dict[str, Any],
        args: argparse.Namespace,
        load_s: float = 0.0,
    ) -> None:
        self.engine = engine
        self._load_s = load_s
        self.toolbox = toolbox
        self._profile = asked
        self._options = options
        self._args = args
        self._session: Session | None = None
        self.messages: list[Message] = []
        self.clear()

    def clear(self) -> None:
        """Begin anew."""
        given = self._args.system
        system = system_text(self._profile, self.toolbox) if given is None else given
        self.messages = [] if system is None else [Message("system", system)]
        if not self._args.no_log:
            self._session = Session.new()
            self._session.add(self.messages)

    def next_prompt(self) -> Prompt | TemplatePrompt | ApiPrompt:
        """The prompt as it stands: what the model has read and said, up to where it would go on."""
        prompt = prompt_for(self.engine, self.toolbox, self._args.template, self._options)
        prompt.append(self.messages)
        return prompt

    def ask(self, question: str) -> int:
        """One user turn. When it fails the conversation is as before, and the question is in the log."""
        user = Message("user", question)
        added: list[Message] = []
        screen = (
            _JsonScreen() if self._args.json else _EventScreen() if self._args.events else _Screen(self._args.verbose)
        )
        done = ev.Done("interrupted")
        costs: list[ev.Usage] = []
        try:
            events = run_loop(
                self.engine,
                [*self.messages, user],
                self.toolbox,
                tool_choice=self._args.tool_choice,
                parallel_calls=self._profile.parallel_calls,
                guided=self._args.guide == "on",
                salvage=self._args.salvage,
                answer_after_result=self._profile.answer_after_result,
                max_rounds=self._args.max_rounds,
                settings=_settings(self._args, self._profile),
                options=self._options,
                template=self._args.template,
                approve=_approve,
            )
            for event in _interruptible(events, screen.show):
                if isinstance(event, ev.MessageAdded):
                    added.append(event.message)
                elif isinstance(event, ev.RoundEnd):
                    costs.append(event.usage)
                elif isinstance(event, ev.Done):
                    done = event
        except Exception as error:
            if self._session:
                self._session.failed(user, str(error))
            raise
        self.messages += [user, *added]
        if self._session:
            self._session.add([user, *added])
        screen.end(done, self)
        if self._args.stats:
            for line in stats_lines(costs, self._load_s):
                say(line)
        return EXIT_CODES[done.reason]


def _interruptible(events: Iterator[ev.Event], show: Any) -> Iterator[ev.Event]:
    """Show and pass on every event; a Ctrl-C while showing is handed to the loop, which ends the
    answer in good order.
    """
    interrupted = False
    generator: Any = events
    while True:
        try:
            event = generator.throw(KeyboardInterrupt()) if interrupted else next(generator)
        except StopIteration:
            return
        interrupted = False
        yield event
        try:
            show(event)
        except KeyboardInterrupt:
            interrupted = not isinstance(event, ev.Done)


def _approve(call: ToolCall, tool: Tool) -> bool:  # noqa: ARG001 - what the executor calls
    """Ask the person before a tool runs that does more than read; no terminal means no."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    say(f"{call.name} may change something. It would run with:")
    say(json.dumps(call.arguments, ensure_ascii=True, indent=2))
    sys.stderr.write("Run it? [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")


class _Screen:
    """For people: the answer on stdout as it comes, what the tools do on stderr."""

    def __init__(self, verbose: bool) -> None:
        self._answer: Any = sys.__stdout__
        self._verbose = verbose
        self._line_open = False
        self._told_dropped = False

    def show(self, event: ev.Event) -> None:
        """Print one event."""
        if isinstance(event, ev.Text):
            # A program that reads the answer gets it as it is; a terminal must not be steered by it.
            text = visible(event.delta, keep="\n\t") if self._answer.isatty() else event.delta
            print(text, end="", flush=True, file=self._answer)
            self._line_open = not event.delta.endswith("\n")
        elif isinstance(event, ev.Reasoning):
            sys.stderr.write(_style(visible(event.delta, keep="\n\t"), "2"))
            sys.stderr.flush()
        elif isinstance(event, ev.ReasoningEnd):
            say("")
        elif isinstance(event, ev.RoundStart) and event.dropped and not self._told_dropped:
            self._told_dropped = True
            say("the thoughts of earlier turns are left out of the prompt, as this family's rule is")
        elif isinstance(event, ev.RoundStart) and self._verbose:
            say(_style(f"── prompt of round {event.round} ──", "2"))
            say(visible(event.prompt, keep="\n\t") if sys.stderr.isatty() else event.prompt)
            say(_style("──", "2"))
        elif isinstance(event, ev.TakenBack) and self._verbose:
            say(_style(f"taken back, to be written as a call: {visible(event.text)}", "2"))
        elif isinstance(event, ev.ToolStart):
            self._close_line()
            arguments = ", ".join(f"{key}={json.dumps(value, ensure_ascii=False)}" for key, value in _items(event.call))
            say(_style(f"⚙ {visible(event.call.name or 'call')}({visible(arguments)})", "36"))
        elif isinstance(event, ev.ToolEnd):
            say(
                _style(
                    f"  {'→' if event.ok else '✗'} {visible(_short(event.content))}",
                    "2" if event.ok else "31",
                )
            )

    def end(self, done: ev.Done, chat: Chat) -> None:  # noqa: ARG002 - the same shape as the other screens
        """Close the last line and say what else must be said."""
        self._close_line()
        if done.message:
            say(_style(done.message, "33"))

    def _close_line(self) -> None:
        if self._line_open:
            print(flush=True, file=self._answer)
            self._line_open = False


class _EventScreen:
    """For programs: every event as a JSON line."""

    def show(self, event: ev.Event) -> None:
        """Print one event."""
        print(json.dumps(ev.to_dict(event), ensure_ascii=False), flush=True, file=sys.__stdout__)

    def end(self, done: ev.Done, chat: Chat) -> None:
        """Nothing: Done was an event."""


class _JsonScreen:
    """For programs: one object when all is over."""

    def __init__(self) -> None:
        self._calls: list[dict[str, Any]] = []
        self._rounds: list[dict[str, Any]] = []

    def show(self, event: ev.Event) -> None:
        """Remember what the object will say."""
        if isinstance(event, ev.MessageAdded) and event.message.role == "assistant":
            self._calls += [{"name": call.name, "arguments": call.arguments} for call in event.message.calls]
        elif isinstance(event, ev.ToolEnd):
            open_call = next(call for call in self._calls if "ok" not in call)
            open_call.update(ok=event.ok, result=event.content)
        elif isinstance(event, ev.RoundEnd):
            self._rounds.append(asdict(event.usage))

    def end(self, done: ev.Done, chat: Chat) -> None:
        """Print the object."""
        last = chat.messages[-1]
        print(
            json.dumps(
                {
                    "answer": last.content if last.role == "assistant" else "",
                    "finish_reason": done.reason,
                    "messages": as_dicts(chat.messages),
                    "calls": self._calls,
                    "rounds": self._rounds,
                    "model": chat.engine.name,
                    "family": chat.engine.family,
                },
                ensure_ascii=False,
            ),
            file=sys.__stdout__,
        )


def _items(call: ToolCall) -> list[tuple[str, Any]]:
    return list(call.arguments.items()) if isinstance(call.arguments, dict) else [("arguments", call.arguments)]


def _style(text: str, code: str) -> str:
    return f"\x1b[{code}m{text}\x1b[0m" if colours(sys.stderr) else text


def _short(text: str, limit: int = 300) -> str:
    return text if len(text) <= limit else f"{text[:limit]}… ({len(text)} characters)"


def _converse(chat: Chat) -> int:
    """The conversation at a terminal."""
    with contextlib.suppress(ImportError):
        import readline  # noqa: F401 - arrow keys and history in input()

    names = ", ".join(tool.name for tool in chat.toolbox) or "no tools"
    say(f"{chat.engine.name} ({chat.engine.family}), {names}.")
    say("/prompt shows the raw prompt, /clear begins anew, /exit or Ctrl-D leaves, Ctrl-C stops an answer.")
    leaving = False
    while True:
        try:
            # input() has line editing only on the real stdout.
            with contextlib.redirect_stdout(sys.__stdout__):
                line = input("> ").strip()
        except EOFError:
            say("")
            return 0
        except KeyboardInterrupt:
            if leaving:
                return 130
            leaving = True
            say("\nCtrl-C again leaves.")
            continue
        leaving = False
        if line == "/exit":
            return 0
        try:
            if line == "/clear":
                chat.clear()
            elif line.startswith("/prompt"):
                _show_prompt(chat, line.removeprefix("/prompt").strip())
            elif line.startswith("/"):
                say(f"unknown command {line.split()[0]}; there are /prompt, /clear and /exit")
            elif line:
                chat.ask(line)
        except UserError as error:
            say(str(error))


def _show_prompt(chat: Chat, view: str) -> None:
    """The exact raw prompt that the next turn continues, in the views of ``render``."""
    prompt, tokenizer = chat.next_prompt(), chat.engine.tokenizer
    if view in ("--ids", "--table") and tokenizer is None:
        raise UserError(f"/prompt {view} needs a model with a tokenizer")
    if view == "--ids":
        lines = ids_view(prompt.segments, tokenizer)
    elif view == "--table":
        lines = table_view(prompt.segments, tokenizer)
    elif not view:
        lines = iter([text_view(prompt.segments, colours(sys.stderr))])
    else:
        raise UserError(f"/prompt takes --ids or --table, not {view}")
    for text in lines:
        say(text)

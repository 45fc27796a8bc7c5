"""``demo``: how raw-prompt tool calling works, step by step, without a model.

What a model would say is written in ``prompts/demo/scenes.json``; the prompt builder, the parser, the checks and the
loop are the real ones. Each step is shown and waits for Enter.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import textwrap
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

from .. import events as ev
from ..builtin_tools import BUILTIN
from ..engines import Settings
from ..engines.scripted import ScriptedEngine
from ..errors import UserError
from ..loop import run as run_loop
from ..messages import Message
from ..prompt import Prompt, Segment, tagged, text_file
from ..tools import Tool
from .render import text_view
from .terminal import colours, visible

# Colours of a terminal.
_TITLE, _STEP, _WORDS, _GOOD, _BAD = "1", "2", "33", "32", "31"
_MARGIN = 13  # columns for the name of an event


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("--scene", metavar="NAME", help="play only this one")
    parser.add_argument("--list", action="store_true", help="list the scenes")
    parser.add_argument("--fast", action="store_true", help="do not wait for Enter between the steps")


def run(args: argparse.Namespace) -> int:
    """Play the scenes; returns the exit code."""
    every = scenes()
    if args.list:
        width = max(len(scene["name"]) for scene in every)
        for scene in every:
            print(f"{scene['name']:<{width}}  {scene['title']}")
        return 0
    names = [scene["name"] for scene in every]
    if args.scene is not None and args.scene not in names:
        raise UserError(f"no scene {args.scene!r}: there are {', '.join(names)}")
    chosen = [scene for scene in every if args.scene in (None, scene["name"])]
    stage = _Stage(wait=not args.fast and sys.stdin.isatty() and sys.stdout.isatty())
    try:
        for number, scene in enumerate(chosen, start=1):
            stage.title(
                f"{number}/{len(chosen)}  {scene['title']}  ({scene['name']})" if chosen[1:] else scene["title"]
            )
            play(scene, stage)
    except EOFError:
        pass  # q or Ctrl-D: enough was seen
    return 0


def scenes() -> list[dict[str, Any]]:
    """The scenes, in the order in which they are played."""
    every: list[dict[str, Any]] = json.loads(text_file("demo/scenes.json"))
    return every


def perform(scene: Mapping[str, Any]) -> Iterator[ev.Event]:
    """What happens in a scene: the real loop on its question, its tools and its written answers."""
    engine = ScriptedEngine(["\n".join(answer["text"]) for answer in scene["answers"]], scene["family"], name="demo")
    settings = Settings(max_new_tokens=scene.get("max_new_tokens", Settings.max_new_tokens))
    return run_loop(engine, [Message("user", scene["question"])], tools_of(scene), settings=settings)


def tools_of(scene: Mapping[str, Any]) -> list[Tool]:
    """The tools of a scene: built-in ones by name; others as the dict a model reads, which give the written result, or
    do what the built-in tool of the same name does.
    """
    tools = []
    for each in scene["tools"]:
        if isinstance(each, str):
            tools.append(BUILTIN[each])
            continue
        tool = Tool.from_dict(each)
        result = scene.get("results", {}).get(tool.name)
        function = BUILTIN[tool.name].function if result is None else lambda result=result: result
        tools.append(replace(tool, function=function, read_only=True))
    return tools


def play(scene: Mapping[str, Any], stage: _Stage) -> None:
    """Show a scene: of each round the prompt, the answer, what it was read as, and what became of its calls."""
    stage.words(scene["about"])
    prompt = Prompt(tools_of(scene), scene["family"])
    prompt.append([Message("user", scene["question"])])
    shown = 0
    for events, answer in zip(_rounds(perform(scene)), scene["answers"], strict=True):
        start = next(event for event in events if isinstance(event, ev.RoundStart))
        added = [event.message for event in events if isinstance(event, ev.MessageAdded)]
        over = events.index(ev.MessageAdded(added[0]))  # the answer is over, its calls have not run
        stage.step(
            f"round {start.round}: the prompt grows by {len(start.prompt) - shown} characters"
            if shown
            else f"round {start.round}: the prompt, {len(start.prompt)} characters"
        )
        stage.prompt(_behind(prompt.segments, shown))
        shown = len(start.prompt)
        stage.step(f"round {start.round}: the answer, as the model writes it")
        stage.prompt(tagged(added[0].raw or ""))
        stage.step(f"round {start.round}: what the parser reads (· is where a piece ended)")
        stage.events(events[1 : over + 1])
        if added[0].calls:
            stage.step(f"round {start.round}: the calls are checked and run, their results added")
        stage.events(events[over + 1 :])
        if answer["note"]:
            stage.words(answer["note"])
        prompt.append(added)
    stage.pause()


def _rounds(events: Iterable[ev.Event]) -> list[list[ev.Event]]:
    """The events of each round; a round begins with its RoundStart."""
    rounds: list[list[ev.Event]] = []
    for event in events:
        if isinstance(event, ev.RoundStart):
            rounds.append([])
        rounds[-1].append(event)
    return rounds


def _behind(segments: Iterable[Segment], start: int) -> Iterator[Segment]:
    """The segments without their first ``start`` characters."""
    for segment in segments:
        if start < len(segment.text):
            yield segment._replace(text=segment.text[start:])
        start = max(0, start - len(segment.text))


class _Stage:
    """Where a scene is shown: stdout, as wide as the terminal. Between steps it waits where somebody is there."""

    def __init__(self, wait: bool) -> None:
        self._colour = colours(sys.stdout)
        self._wait = wait
        self._width = min(shutil.get_terminal_size((80, 24)).columns, 100)
        self._first = True

    def title(self, text: str) -> None:
        """The name of a scene."""
        self.show(("" if self._first else "\n") + self._styled(self._ruled("━", text), _TITLE))
        self._first = False

    def words(self, text: str) -> None:
        """An explanation."""
        self.show("\n" + self._styled(textwrap.fill(text, self._width), _WORDS))

    def step(self, heading: str) -> None:
        """The next step begins, once it was asked for."""
        self.pause()
        self.show("\n" + self._styled(self._ruled("─", heading), _STEP))

    def prompt(self, segments: Iterable[Segment]) -> None:
        """Raw text as the model reads or writes it."""
        *most, last = segments
        self.show(text_view([*most, last._replace(text=last.text.removesuffix("\n"))], self._colour))

    def events(self, events: Sequence[ev.Event]) -> None:
        """A line an event; pieces of text that follow one another share one, with a · where each ended."""
        for kind, group in groupby(events, type):
            same = list(group)
            pieces = [event.delta for event in same if isinstance(event, (ev.Text, ev.Reasoning, ev.CallArgs))]
            for text, code in [("·".join(pieces), "")] if pieces else map(_told, same):
                lines = _folded(visible(text), self._width - _MARGIN)
                for name, line in zip([kind.__name__, *[""] * len(lines)], lines, strict=False):
                    self.show(f"{name:<{_MARGIN}}{self._styled(line, code)}".rstrip())

    def pause(self) -> None:
        """Wait for Enter, where there is somebody. Raises EOFError when they leave."""
        if not self._wait:
            return
        if input(self._styled("Enter: on, q: leave ", _STEP)).strip().lower() in ("q", "quit"):
            raise EOFError
        # The question and the line of the answer make way.
        sys.stdout.write("\x1b[1A\x1b[2K")

    def show(self, text: str) -> None:
        """Print what is already safe to print."""
        print(text, flush=True)

    def _ruled(self, rule: str, text: str) -> str:
        return "\n".join(_folded(f"{rule * 2} {text} ", self._width)).ljust(self._width, rule)

    def _styled(self, text: str, code: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self._colour and code and text else text


def _folded(text: str, width: int) -> list[str]:
    """The text in lines of at most ``width`` columns, cut behind spaces where there are any; a Chinese character takes
    two.
    """
    lines, room = [""], width
    for letter in text:
        if _columns(letter) > room and letter != " ":
            whole, space, word = lines[-1].rpartition(" ")
            if not space:
                whole, word = word, ""
            lines[-1:] = [whole, word]
            room = width - _columns(word)
        lines[-1] += letter
        room -= _columns(letter)
    return lines


def _columns(text: str) -> int:
    return sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in text)


def _told(event: ev.Event) -> tuple[str, str]:
    """An event in words, and the code of its colour."""
    if isinstance(event, ev.CallStart):
        return f"number {event.index} opens", ""
    if isinstance(event, ev.CallName):
        return event.name, ""
    if isinstance(event, ev.CallEnd):
        problem = "; ".join(f"{problem.kind}: {problem.message}" for problem in event.call.problems)
        return (problem, _BAD) if problem else ("whole, offered, and valid by its schema", _GOOD)
    if isinstance(event, ev.CallError):
        return f"{event.problem.kind}: {event.problem.message}", _BAD
    if isinstance(event, ev.ToolStart):
        return (
            f"{event.call.name or 'an attempt that is no call'} {json.dumps(event.call.arguments, ensure_ascii=False)}",
            "",
        )
    if isinstance(event, ev.ToolEnd):
        return event.content, _GOOD if event.ok else _BAD
    if isinstance(event, ev.MessageAdded):
        return f"the {event.message.role}'s message joins the conversation", ""
    if isinstance(event, ev.RoundEnd):
        return f"{event.finish}, {event.usage.new_tokens} pieces", ""
    if isinstance(event, ev.Done):
        return " ".join([event.reason, event.message]).strip(), ""
    return getattr(event, "finish", ""), ""

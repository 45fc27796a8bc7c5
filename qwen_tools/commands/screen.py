"""What a person sees of an answer: its text on stdout as it comes, everything else on stderr."""

from __future__ import annotations

import contextlib
import json
import sys
import time
from collections.abc import Callable
from typing import TextIO

from .. import events as ev
from ..messages import ToolCall
from .activity import Activity
from .markdown import Markdown
from .stats import stats_lines
from .terminal import LAYOUT, colours, paragraph, say, shortened, style, visible

# How thoughts are shown: dim, as one line that says how long they took, or not at all.
THINKING = ("show", "hide", "off")


class Screen:
    """Shows events, one answer after the other. ``thinking`` (see ``THINKING``) may be changed between answers."""

    def __init__(
        self, activity: Activity, *, thinking: str = "show", verbose: bool = False, stats: bool = False
    ) -> None:
        self.thinking = thinking
        self.load_s = 0.0  # what loading the model took, for the statistics
        self._stats = stats
        self._spent: list[ev.Usage] = []  # for this answer
        self._activity = activity
        self._verbose = verbose
        # What a tool prints is not the answer, so sys.stdout is not where the answer goes.
        self._answer: TextIO = sys.__stdout__ or sys.stdout
        # A program that reads the answer gets it as it is; a terminal must not be steered by it.
        self._for_person = self._answer.isatty()
        self._markdown = Markdown() if colours(self._answer) else None
        self._line_open = False
        self._answered = False  # something of this answer was shown
        self._thought_since = 0.0
        self._thought = False
        self._told_dropped = False
        self._running: dict[int, ToolCall] = {}
        self._side_by_side = False  # calls of this round ran at the same time

    def show(self, event: ev.Event) -> None:
        """Print one event."""
        match event:
            case ev.Text():
                self._text(event.delta)
            case ev.ReasoningStart():
                self._thought_since, self._thought = time.monotonic(), False
                self._activity.start("thinking")
            case ev.Reasoning() if event.delta.strip() or self._thought:
                self._reason(event.delta)
            case ev.ReasoningEnd():
                self._end_thought()
            case ev.RoundStart():
                self._round(event)
            case ev.CallStart():
                self._wait("writing a call")
            case ev.CallName():
                self._wait(f"writing a call of {visible(event.name)}")
            case ev.TakenBack() if self._verbose:
                self._aside(f"taken back, to be written as a call: {visible(event.text)}")
            case ev.ToolStart():
                self._close_line()
                self._running[event.index] = event.call
                self._side_by_side = self._side_by_side or len(self._running) > 1
                say(style(f"⚙ {shown_call(event.call)}", "36"))
                self._wait_for_tools()
            case ev.ToolEnd():
                self._tool_end(event)
            case ev.RoundEnd():
                self._spent.append(event.usage)
                self._end_thought()
                self._activity.stop()

    def watch(self, answer: Callable[[Callable[[ev.Event], None]], ev.Done]) -> ev.Done:
        """Show what ``answer`` does with the function it is given, and leave the screen in order whatever ends it."""
        done = ev.Done("failed")
        self._spent.clear()
        try:
            done = answer(self.show)
        finally:
            with contextlib.suppress(OSError):  # the terminal may be gone
                self.end(done)
        return done

    def end(self, done: ev.Done) -> None:
        """Close the last line and say what else must be said."""
        self._activity.stop()
        self._end_thought()
        self._close_line()
        self._running.clear()
        if done.message:
            say(style(done.message, "33"))
        if self._stats:
            for line in stats_lines(self._spent, self.load_s):
                say(style(line, "2"))

    def _text(self, delta: str) -> None:
        if not self._for_person:
            shown = delta
        else:
            if not self._answered:
                delta = delta.lstrip()
            shown = visible(delta, keep=LAYOUT)
            if self._markdown:
                shown = self._markdown.feed(shown)
        self._answered = self._answered or bool(delta)
        if delta:
            self._line_open = not delta.endswith("\n")
        if shown:
            self._activity.stop()
            self._answer.write(shown)
            self._answer.flush()

    def _reason(self, delta: str) -> None:
        if self.thinking == "show":
            self._activity.stop()
            sys.stderr.write(style(visible(delta if self._thought else delta.lstrip(), keep=LAYOUT), "2"))
            sys.stderr.flush()
        self._thought = True

    def _end_thought(self) -> None:
        self._activity.stop()
        thought, self._thought = self._thought, False
        if thought and self.thinking == "show":
            say("")
        elif thought and self.thinking == "hide":
            self._aside(f"thought for {time.monotonic() - self._thought_since:.0f} s")

    def _round(self, event: ev.RoundStart) -> None:
        self._answered = self._side_by_side = False
        if event.dropped and not self._told_dropped:
            self._told_dropped = True
            say(paragraph("the thoughts of earlier turns are left out of the prompt, as this family's rule is"))
        if self._verbose:
            self._aside(f"── prompt of round {event.round} ──")
            say(visible(event.prompt, keep="\n\t") if sys.stderr.isatty() else event.prompt)
            self._aside("──")
        self._wait("reading")

    def _tool_end(self, event: ev.ToolEnd) -> None:
        self._activity.stop()
        self._close_line()
        self._running.pop(event.index, None)
        name = f"{visible(event.name)}: " if self._side_by_side else ""
        took = f" ({event.seconds:.1f} s)" if event.seconds >= 1 else ""
        say(
            style(
                f"  {'→' if event.ok else '✗'} {name}{visible(shortened(event.content))}{took}",
                "2" if event.ok else "31",
            )
        )
        for reference in event.references:
            say(style(f"    {visible(reference)}", "2"))
        if self._running:
            self._wait_for_tools()

    def _wait_for_tools(self) -> None:
        self._wait(", ".join(visible(call.name or "call") for call in self._running.values()))

    def _wait(self, what: str) -> None:
        if self._for_person:  # the answer's last line and the activity would share a line
            self._close_line()
        self._activity.start(what)

    def _aside(self, text: str) -> None:
        say(style(text, "2"))

    def _close_line(self) -> None:
        if self._markdown:
            self._answer.write(self._markdown.close())
            self._markdown = Markdown()
        if self._line_open:
            self._answer.write("\n")
            self._line_open = False
        self._answer.flush()


def shown_call(call: ToolCall) -> str:
    """A call as one would write it in Python."""
    items = list(call.arguments.items()) if isinstance(call.arguments, dict) else [("arguments", call.arguments)]
    arguments = ", ".join(f"{key}={json.dumps(value, ensure_ascii=False)}" for key, value in items)
    return f"{visible(call.name or 'call')}({visible(shortened(arguments))})"

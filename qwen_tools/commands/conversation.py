"""A conversation: what was said and what is offered, how it is gone on with, and that all of it is on disk.

It prints nothing: who shows the events is handed in. Whatever ends an answer early (Ctrl-C, the terminal that
closes, an error), the messages stay well-formed and what was said is kept.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from .. import events as ev
from ..engines import Engine, Settings
from ..engines.api import ApiPrompt, prompt_for
from ..errors import UserError
from ..executor import interrupted
from ..loop import run as run_loop
from ..messages import Message, ToolCall
from ..profiles import profile, system_text
from ..prompt import Prompt
from ..session import Session, load
from ..template import TemplatePrompt
from ..tools import Tool, Toolbox
from .stop import Stop


@dataclass
class Asking:
    """How the model is asked; may be changed between answers. ``system`` None is the model's usual text."""

    settings: Settings
    options: dict[str, Any]
    system: str | None = None
    tool_choice: str = "auto"
    guided: bool = True
    salvage: bool = False
    max_rounds: int = 8
    template: str = "family"


class Conversation:
    """What is said, and the tools that are offered. All of it is kept in ``session``, where there is one."""

    def __init__(
        self,
        engine: Engine,
        tools: Toolbox,
        asking: Asking,
        approve: Callable[[ToolCall, Tool], bool],
        session: Session | None = None,
    ) -> None:
        """Begin the conversation, or go on with that of the session.

        Raises UserError for one whose system text is another than the one asked for.
        """
        self.engine = engine
        self.tools = tools
        self.off: set[str] = set()  # the names of tools that are not offered now
        self.asking = asking
        self.usage: list[ev.Usage] = []  # of every answer that was asked for
        self.closed = False  # the terminal is gone: nothing more can be asked
        self.failed: str | None = None  # the last question, where its turn failed
        self.messages: list[Message] = []
        self._session: Session | None = None
        self._keeps = session is not None
        self._continues = False  # the next message stands in the place of the last
        self._approve = approve
        if session and session.path.exists():
            wanted = asking.system
            self._go_on(session, session.path)
            if wanted is not None and self.messages[:1] != [Message("system", wanted)]:
                raise UserError(f"the session {session.path.stem} has another system text; go on without --system")
        else:
            self._begin(session)

    @property
    def toolbox(self) -> Toolbox:
        """The tools that are offered now."""
        return Toolbox(tool for tool in self.tools if tool.name not in self.off)

    @property
    def session_name(self) -> str | None:
        """What --session calls it, where it is kept."""
        return self._session.path.stem if self._session else None

    def next_prompt(self) -> Prompt | TemplatePrompt | ApiPrompt:
        """The prompt as it stands: what the model has read and said, up to where it would go on."""
        prompt = prompt_for(self.engine, self.toolbox, self.asking.template, self.asking.options)
        prompt.append(self.messages)
        return prompt

    # ---- asking

    def ask(self, question: str, show: Callable[[ev.Event], None]) -> ev.Done:
        """One user turn. When it fails the conversation is as before, and the question is in the log."""
        return self._answer([Message("user", question)], show)

    def go_on(self, show: Callable[[ev.Event], None]) -> ev.Done:
        """Answer without a new question: an answer that was cut is continued, tool results are answered.

        Raises UserError where the last answer was complete.
        """
        last = self.messages[-1] if self.messages else Message("system")
        if last.role == "system" or (last.role == "assistant" and last.finish == "stop"):
            raise UserError("there is no answer that was cut")
        self._continues = last.role == "assistant"
        try:
            return self._answer([], show)
        finally:
            self._continues = False

    def _answer(self, new: list[Message], show: Callable[[ev.Event], None]) -> ev.Done:
        before = list(self.messages)
        self.failed = None
        lost = None
        stop = Stop(careful=(__name__, run_loop.__module__))
        known = profile(self.engine.name)
        settings = self.asking.settings.defaulting_to(known.do_sample)
        try:
            with stop.listening():
                self._add(new)
                events = run_loop(
                    self.engine,
                    self.messages,
                    self.toolbox,
                    tool_choice=self.asking.tool_choice,
                    parallel_calls=known.parallel_calls,
                    guided=self.asking.guided,
                    salvage=self.asking.salvage,
                    answer_after_result=known.answer_after_result,
                    max_rounds=self.asking.max_rounds,
                    settings=settings,
                    options=self.asking.options,
                    template=self.asking.template,
                    approve=self._approve,
                )
                done, lost = self._follow(events, show, stop)
        except Exception as error:
            self._replace(before)
            for question in new:
                self.failed = question.content
                if self._session:
                    self._session.failed(question, str(error))
            raise
        if isinstance(lost, BrokenPipeError):
            raise lost
        if lost and lost.errno != errno.EIO:  # which is what a terminal that is gone gives
            raise UserError(f"the answer cannot be written: {lost.strerror}", code=1)
        self.closed = stop.closed or lost is not None
        return done

    def _follow(
        self, events: Iterator[ev.Event], show: Callable[[ev.Event], None], stop: Stop
    ) -> tuple[ev.Done, OSError | None]:
        """Take in and show every event. A stop is handed to the loop, which ends the answer in good order; so is a
        terminal or a pipe that can no longer be written to, which is returned.
        """
        generator: Any = events
        lost: OSError | None = None
        done = ev.Done("interrupted", "interrupted")
        event = None
        try:
            while not isinstance(event, ev.Done):
                stop.holding = False
                event = generator.throw(KeyboardInterrupt()) if stop.take() else next(generator)
                stop.holding = True
                self._take(event)
                stop.holding = False
                try:
                    if not lost:
                        show(event)
                except KeyboardInterrupt:
                    stop.note()
                except OSError as error:
                    lost = error
                    stop.note()
            done = event
        except KeyboardInterrupt:
            # It came between two steps.
            stop.holding = True
            self._complete()
        finally:
            stop.holding = True
        return done, lost

    def _take(self, event: ev.Event) -> None:
        if isinstance(event, ev.MessageAdded):
            if self._continues:  # it stands for the whole answer
                self._replace(self.messages[:-1])
                self._continues = False
            self._add([event.message])
        elif isinstance(event, ev.RoundEnd):
            self.usage.append(event.usage)

    def _complete(self) -> None:
        """Give every call a result, as a conversation must have."""
        index = next((i for i, message in reversed(list(enumerate(self.messages))) if message.role != "tool"), 0)
        calls = self.messages[index].calls if self.messages else ()
        missing = calls[len(self.messages) - index - 1 :]
        self._add(
            [Message("tool", interrupted(call.name).content, call_id=call.id, name=call.name) for call in missing]
        )

    # ---- changing it

    def clear(self) -> None:
        """Begin anew, in a session of its own."""
        self._begin(Session.new() if self._keeps else None)

    def save(self, name: str) -> None:
        """Keep all of it in a session of that name, and go on there. Raises UserError for a name that is taken."""
        self._keep_in(Session.new(name))
        self._write(self.messages)

    def resume(self, path: Path) -> None:
        """Go on with the conversation of a session's file and with its system text. Raises UserError where it cannot
        be had.
        """
        same = self._session is not None and path.resolve() == self._session.path.resolve()
        self._go_on(self._session if same else Session.open(path) if self._keeps else None, path)

    def undo(self) -> str:
        """Take the last question and all that came of it out of the conversation; returns the question.

        Raises UserError where nothing was asked yet.
        """
        for index in range(len(self.messages) - 1, -1, -1):
            if self.messages[index].role == "user":
                question = self.messages[index].content
                self._replace(self.messages[:index])
                return question
        raise UserError("nothing was asked yet")

    def offer(self, name: str, on: bool) -> None:
        """Offer a tool from now on, or no longer. Raises UserError for a tool that there is not."""
        if name not in self.tools:
            raise UserError(f"no tool {name!r}: there are {', '.join(self.tools.names()) or 'none'}")
        (self.off.discard if on else self.off.add)(name)
        self._renew_system()

    def set_system(self, text: str | None) -> None:
        """Another system text from now on; None is the model's usual one."""
        self.asking.system = text
        self._renew_system()

    def use(self, engine: Engine) -> None:
        """Go on with another model, which reads in its own form what the one before generated."""
        if (engine.name, engine.family) != (self.engine.name, self.engine.family):
            self.messages = [replace(message, prefill="", raw=None, token_ids=None) for message in self.messages]
        self.engine = engine
        self._keep_in(self._session)
        self._renew_system()

    def _begin(self, session: Session | None) -> None:
        self._keep_in(session)
        self.messages = []
        self._add(self._system())

    def _go_on(self, session: Session | None, path: Path) -> None:
        self.messages = load(path, (self.engine.name, self.engine.family))
        self._keep_in(session)
        self.asking.system = None
        if self.messages and self.messages[0].role == "system" and self.messages[:1] != self._system():
            self.asking.system = self.messages[0].content

    def _keep_in(self, session: Session | None) -> None:
        """Where all that follows is kept."""
        if self._session and session is not self._session:
            self._session.close()
        self._session = session
        if session:
            session.about(self.engine.name, self.engine.family)

    def _system(self) -> list[Message]:
        given = self.asking.system
        text = system_text(profile(self.engine.name), self.toolbox) if given is None else given
        return [] if text is None else [Message("system", text)]

    def _renew_system(self) -> None:
        """The system text may depend on the model and on the tools."""
        told = 1 if self.messages and self.messages[0].role == "system" else 0
        if self.messages[:told] != self._system():
            self._replace([*self._system(), *self.messages[told:]])

    def _add(self, messages: Sequence[Message]) -> None:
        self.messages = [*self.messages, *messages]
        self._write(messages)

    def _write(self, messages: Sequence[Message]) -> None:
        if self._session and messages:
            self._session.add(messages)

    def _replace(self, messages: Sequence[Message]) -> None:
        """Other messages from now on; on disk nothing is lost, the file says what holds now."""
        shared = 0
        for old, new in zip(self.messages, messages, strict=False):
            if old is not new:
                break
            shared += 1
        if self._session and shared < len(self.messages):
            self._session.rewind(shared)
        self.messages = list(messages[:shared])
        self._add(messages[shared:])

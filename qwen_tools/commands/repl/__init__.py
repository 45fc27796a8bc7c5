"""The conversation at a terminal: a prompt, a question or a command, an answer, and again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ...approval import Approval
from ...engines import Engine
from ...errors import UserError
from ...models import Progress
from ...tools import Toolbox
from ..activity import Activity
from ..conversation import Conversation
from ..screen import Screen
from ..terminal import counted, paragraph, say, style
from . import slash
from .editor import DiscardedError, open_editor
from .loading import Loading


class Repl:
    """What the commands work on. The model loads behind the prompt; what needs it waits for it."""

    def __init__(
        self,
        model: str,
        load: Callable[[str | None, Progress], Engine],
        begin: Callable[[Engine], Conversation],
        tools: Toolbox,
        approval: Approval,
        screen: Screen,
        activity: Activity,
        *,
        keep: bool,
    ) -> None:
        """``load`` opens an engine, None the one that was asked for at the start; ``begin`` begins the conversation
        with it. ``keep`` is whether what is typed is remembered for the next time.
        """
        self.tools = tools
        self.approval = approval
        self.editor = open_editor(_history() if keep else None, lambda words: slash.complete(self, words))
        self._model, self._load, self._begin = model, load, begin
        self._screen, self._activity = screen, activity
        self._loading = Loading(model, lambda progress: load(None, progress))
        self._conversation: Conversation | None = None
        self._fatal: Exception | None = None
        self._stopped = False  # the last answer was stopped by Ctrl-C

    @property
    def conversation(self) -> Conversation:
        """The conversation, as soon as the model is there. Without one there is nothing to stay for."""
        if self._conversation is None:
            try:
                self._conversation = self._begin(self._loading.wait(self._activity))
            except Exception as error:
                self._fatal = error
                raise
            count = len(self._conversation.messages)
            if count > 1:
                say(style(f"{self._conversation.session_name} goes on behind {count} messages", "2"))
        return self._conversation

    @property
    def load_s(self) -> float:
        """Seconds that loading the model took."""
        return self._screen.load_s

    def run(self) -> int:
        """Talk until the person leaves; returns the exit code."""
        tools = counted(len(self.tools), "tool")
        say(paragraph(f"{self._model}, {tools}. /help lists the commands, Ctrl-D leaves."))
        again = False  # a second Ctrl-C leaves
        while True:
            try:
                line = self.editor.read(self._loading.status)
            except EOFError:
                return 0
            except KeyboardInterrupt as interrupt:
                if again and not isinstance(interrupt, DiscardedError):
                    return 130
                again = True
                say(style("Ctrl-C again leaves.", "2"))
                continue
            self._stopped = False
            try:
                self._obey(line)
            except EOFError:
                return 0
            except UserError as error:
                if error is self._fatal:
                    raise
                say(style(paragraph(str(error)), "33"))
            except BrokenPipeError:
                raise
            except Exception as error:  # a model that ran out of memory must not end the conversation
                if error is self._fatal:
                    raise
                say(style(paragraph(f"{type(error).__name__}: {error}"), "31"))
            except KeyboardInterrupt:
                self._stopped = True
                say(style("stopped", "33"))
            if self._conversation and self._conversation.closed:
                return 130
            again = self._stopped

    def ask(self, question: str) -> None:
        """Ask, and show the answer."""
        conversation = self.conversation
        done = self._screen.watch(lambda show: conversation.ask(question, show))
        self._stopped = done.reason == "interrupted"

    def go_on(self) -> None:
        """Continue the answer that was cut."""
        done = self._screen.watch(self.conversation.go_on)
        self._stopped = done.reason == "interrupted"

    def change_model(self, name: str) -> None:
        """Go on with another model. The one before is kept until the other is there."""
        loading = Loading(name, lambda progress: self._load(name, progress))
        self.conversation.use(loading.wait(self._activity))

    def set_thinking(self, mode: str) -> None:
        """How thoughts are shown, and whether the model has any (see ``screen.THINKING``)."""
        self.conversation.asking.options["enable_thinking"] = mode != "off"
        self._screen.thinking = mode

    def _obey(self, line: str) -> None:
        if slash.is_command(line):
            slash.run(self, line)
        elif line.strip():
            self.ask(line.strip())


def _history() -> Path:
    from platformdirs import user_data_path

    return user_data_path("qwen_tools") / "history"

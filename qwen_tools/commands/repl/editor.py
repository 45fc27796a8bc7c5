"""Where a person types: a line editor with history and completion, or plain lines on a terminal that cannot be steered.

A text of several lines is pasted, or written between two lines of three double quotes.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TextIO

from ...errors import UserError
from ..terminal import steerable

if TYPE_CHECKING:
    from prompt_toolkit.document import Document
    from prompt_toolkit.key_binding import KeyPressEvent

PROMPT = "> "
_CONTINUED = "… "
_QUOTES = '"""'

# Given the words in front of the cursor, the last of them unfinished: what that one may become, or None where it may
# be the path of a file.
Complete = Callable[[list[str]], Iterable[str] | None]


class Editor(Protocol):
    """What the REPL reads from."""

    def read(self, status: Callable[[], str]) -> str:
        """The next text. ``status`` says what goes on behind the prompt, and is shown beside it.

        Raises EOFError for Ctrl-D, DiscardedError or KeyboardInterrupt for Ctrl-C, and what ``status`` raises.
        """

    def remember(self, text: str) -> None:
        """Let a text that was not typed here be found in the history."""


class DiscardedError(KeyboardInterrupt):
    """Ctrl-C, and there was text that it took away."""


def open_editor(history: Path | None, complete: Complete) -> Editor:
    """The best editor for this terminal; ``history`` is a file, or None to keep none."""
    stream = next((stream for stream in (sys.__stderr__, sys.__stdout__) if stream and steerable(stream)), None)
    return LineEditor(history, complete, stream) if stream else PlainEditor()


def is_open(text: str) -> bool:
    """Whether a block of lines was begun and not ended."""
    return text.lstrip().startswith(_QUOTES) and _QUOTES not in text.lstrip()[len(_QUOTES) :]


def unquoted(text: str) -> str:
    """The text without the quotes around a block."""
    block = re.fullmatch(rf"\s*{_QUOTES}\n?(.*?)\n?{_QUOTES}\s*", text, re.DOTALL)
    return block.group(1) if block else text


def edited(text: str) -> str:
    """What a person makes of a text in $VISUAL, $EDITOR or vi. Raises UserError where that does not run."""
    program = os.environ.get("VISUAL") or os.environ.get("EDITOR") or ("notepad" if os.name == "nt" else "vi")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "question.md"
        path.write_text(text + "\n" if text else "", encoding="utf-8")
        try:
            # The person's own editor, as they named it.
            done = subprocess.run([*shlex.split(program), str(path)], check=False)  # noqa: S603
        except (OSError, ValueError) as error:
            raise UserError(f"cannot run the editor {program}: {error}; set EDITOR to one that is here") from error
        if done.returncode:
            raise UserError(f"the editor {program} ended with {done.returncode}; nothing was sent")
        try:
            return path.read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise UserError(f"cannot read what the editor wrote: {error}") from error


class PlainEditor:
    """Lines as the system reads them."""

    def read(self, status: Callable[[], str]) -> str:
        """See Editor."""
        status()
        text = self._line(PROMPT)
        while is_open(text):
            text += "\n" + self._line(_CONTINUED)
        return unquoted(text)

    def remember(self, text: str) -> None:
        """There is no history."""

    def _line(self, prompt: str) -> str:
        sys.stderr.write(prompt)
        sys.stderr.flush()
        line = sys.stdin.readline()
        if not line:
            raise EOFError
        return line.removesuffix("\n")


class LineEditor:
    """prompt_toolkit's, as a shell would have it."""

    def __init__(self, history: Path | None, complete: Complete, stream: TextIO) -> None:
        from prompt_toolkit import PromptSession
        from prompt_toolkit.history import FileHistory, InMemoryHistory
        from prompt_toolkit.shortcuts import CompleteStyle

        self._status: Callable[[], str] = str
        self._session: Any = PromptSession(
            PROMPT,
            multiline=True,  # Enter sends all the same, see _keys
            # A line that is only too long for the terminal is no new one.
            prompt_continuation=lambda _width, _line, wrapped: " " * len(_CONTINUED) if wrapped else _CONTINUED,
            history=FileHistory(_private(history)) if history else InMemoryHistory(),
            completer=_completer(complete),
            complete_while_typing=False,
            complete_style=CompleteStyle.READLINE_LIKE,
            reserve_space_for_menu=0,
            enable_open_in_editor=True,
            enable_suspend=True,
            tempfile_suffix=".md",
            key_bindings=_keys(),
            rprompt=self._right,
            output=_output(stream),
        )

    def read(self, status: Callable[[], str]) -> str:
        """See Editor."""
        from prompt_toolkit.patch_stdout import patch_stdout

        self._status = status
        with patch_stdout(raw=True):  # what a thread prints stands above the prompt
            text: str = self._session.prompt(refresh_interval=0.25 if status() else 0)
        return unquoted(text)

    def remember(self, text: str) -> None:
        """See Editor."""
        self._session.history.append_string(text)

    def _right(self) -> Any:
        """What stands at the right of the prompt, until it is sent. An error ends the prompt, which raises it."""
        app = self._session.app
        if app.is_done:
            return []
        try:
            return [("fg:ansibrightblack", self._status())]
        except Exception as error:  # noqa: BLE001 - handed on
            app.exit(exception=error)
            return []


def _output(stream: TextIO) -> Any:
    from prompt_toolkit.output import create_output
    from prompt_toolkit.output.vt100 import Vt100_Output

    output = create_output(stream)
    if isinstance(output, Vt100_Output):
        # Where the cursor is matters for menus alone, of which there are none: the terminal is not asked, so that
        # its answer cannot stand among what is typed.
        output.enable_cpr = False
    return output


def _private(path: Path) -> str:
    """The path of a file that only its owner reads."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with contextlib.suppress(FileExistsError):
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    return str(path)


def _keys() -> Any:
    """Enter sends, but for a block that is open; Alt-Enter begins a line; Ctrl-C discards."""
    from prompt_toolkit.enums import DEFAULT_BUFFER
    from prompt_toolkit.filters import has_focus
    from prompt_toolkit.key_binding import KeyBindings

    keys = KeyBindings()
    typing = has_focus(DEFAULT_BUFFER)

    @keys.add("enter", filter=typing)
    def _(event: KeyPressEvent) -> None:
        if is_open(event.current_buffer.text):
            event.current_buffer.insert_text("\n")
        else:
            event.current_buffer.validate_and_handle()

    @keys.add("escape", "enter", filter=typing)
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    @keys.add("c-c", filter=typing)
    @keys.add("<sigint>")
    def _(event: KeyPressEvent) -> None:
        event.app.exit(exception=DiscardedError if event.current_buffer.text else KeyboardInterrupt)

    return keys


def _completer(complete: Complete) -> Any:
    from prompt_toolkit.completion import Completer, Completion, PathCompleter
    from prompt_toolkit.document import Document

    paths = PathCompleter(expanduser=True)

    class Words(Completer):
        def get_completions(self, document: Document, complete_event: Any) -> Iterable[Completion]:
            words = re.split(r"\s+", document.text_before_cursor)
            found = complete(words)
            if found is None:
                yield from paths.get_completions(Document(words[-1]), complete_event)
            else:
                yield from (Completion(word, -len(words[-1])) for word in found if word.startswith(words[-1]))

    return Words()

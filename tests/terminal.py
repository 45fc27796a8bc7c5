"""A real terminal around the program: what a person types there, and what they see."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable

import pexpect
import pyte

KEYS = {"enter": "\r", "tab": "\t", "up": "\x1b[A", "alt-enter": "\x1b\r", "ctrl-c": "\x03", "ctrl-d": "\x04"}


class _Screen(pyte.HistoryScreen):
    """pyte does not keep what is dim; here ``blink`` says it."""

    def select_graphic_rendition(self, *attributes: int, **more: bool) -> None:
        if not {38, 48} & set(attributes):
            attributes = tuple(5 if attribute == 2 else attribute for attribute in attributes)
        super().select_graphic_rendition(*attributes, **more)


def _hear_signals() -> None:
    """As at a terminal, also where the tests themselves run in the background, which ignores these."""
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)


class Terminal:
    """``press`` keys and ``type`` text when ``ready``; ``text`` is everything that was on the screen, as lines.

    ``patience`` is for how many seconds something is waited for.
    """

    def __init__(
        self,
        arguments: list[str],
        *,
        width: int = 80,
        height: int = 24,
        patience: float = 30,
        cwd: str | None = None,
        **environment: str,
    ) -> None:
        self._screen = _Screen(width, height, history=5000)
        self._stream = pyte.ByteStream(self._screen)
        self._patience = patience
        self.raw = b""
        self._fresh = True  # something came since the last key
        self._child = pexpect.spawn(
            arguments[0],
            arguments[1:],
            cwd=cwd,
            env={**os.environ, "TERM": "xterm-256color", **environment},
            dimensions=(height, width),
            preexec_fn=_hear_signals,
        )
        self._child.delaybeforesend = None

    @property
    def rows(self) -> list[list[pyte.screens.Char]]:
        """The characters on the screen with their styles; what is dim has ``blink``."""
        buffer, columns = self._screen.buffer, range(self._screen.columns)
        return [[buffer[row][column] for column in columns] for row in range(self._screen.lines)]

    @property
    def lines(self) -> list[str]:
        """The lines on the screen, without the spaces behind them."""
        return [line.rstrip() for line in self._screen.display]

    @property
    def text(self) -> str:
        """What scrolled away, and the screen."""
        above = [
            "".join(row[column].data for column in range(self._screen.columns)).rstrip()
            for row in self._screen.history.top
        ]
        return "\n".join([*above, *self.lines]).rstrip()

    def style(self, words: str) -> pyte.screens.Char:
        """How the first character of these words looks."""
        for row, line in enumerate(self._screen.display):
            if words in line:
                return self._screen.buffer[row][line.index(words)]
        raise AssertionError(f"{words!r} is not on the screen:\n{self.text}")

    def shows(self, words: str, after: str = "") -> bool:
        """Whether the words are on the screen, perhaps in several lines, behind the last time that others are."""
        text = self.text.rpartition(after)[2] if after else self.text
        return words in text or words in " ".join(text.split()) or words in text.replace("\n", "")

    def wait(self, wanted: str | Callable[[], bool]) -> Terminal:
        """Read until the words are on the screen, perhaps in several lines, or what is wanted holds."""
        holds = (lambda: self.shows(wanted)) if isinstance(wanted, str) else wanted
        deadline = time.monotonic() + self._patience
        while not holds():
            try:
                self._take(self._child.read_nonblocking(65536, timeout=min(1, max(0, deadline - time.monotonic()))))
            except pexpect.TIMEOUT:
                pass
            except pexpect.EOF:
                if holds():
                    break
                raise AssertionError(f"the program ended before {wanted!r}:\n{self.text}") from None
            if time.monotonic() > deadline:
                raise AssertionError(f"{wanted!r} did not come:\n{self.text}")
        return self

    def ready(self) -> Terminal:
        """Wait for an empty prompt that was drawn after the last key."""
        return self.wait(lambda: self._fresh and self._line_to_cursor() == "> ")

    def type(self, text: str) -> Terminal:
        """Type text at a prompt, and see it there."""
        self.ready()
        self.send(text)
        last = text.splitlines()[-1]
        return self.wait(lambda: self._line_to_cursor().endswith(last[-10:]))

    def ask(self, text: str) -> Terminal:
        """Type a line and send it."""
        return self.type(text).press("enter")

    def press(self, key: str) -> Terminal:
        """Press a key (see ``KEYS``)."""
        return self.send(KEYS[key])

    def send(self, text: str) -> Terminal:
        """Send characters as they are."""
        self._fresh = False
        self._child.send(text)
        return self

    def resize(self, width: int, height: int) -> Terminal:
        """Another size; what is on the screen is drawn anew by whoever hears of it."""
        self._screen.resize(height, width)
        self._child.setwinsize(height, width)
        return self

    def close(self) -> None:
        """The window is closed: the program gets SIGHUP, and there is nobody to write to. Waits for its end."""
        self._child.ptyproc.fileobj.close()
        self._child.ptyproc.closed = self._child.closed = True  # what pexpect would close again
        deadline = time.monotonic() + self._patience
        while self._child.isalive():
            assert time.monotonic() < deadline, "the program did not end"
            time.sleep(0.05)

    def code(self) -> int:
        """Wait for the end; the exit code, negative for a signal."""
        self._child.expect(pexpect.EOF, timeout=60)
        self._take(self._child.before)
        self._child.wait()
        return self._child.exitstatus if self._child.signalstatus is None else -self._child.signalstatus

    def _take(self, data: bytes) -> None:
        self.raw += data
        self._fresh = self._fresh or bool(data)
        self._stream.feed(data)

    def _line_to_cursor(self) -> str:
        cursor = self._screen.cursor
        return "".join(cell.data for cell in self.rows[cursor.y][: cursor.x])

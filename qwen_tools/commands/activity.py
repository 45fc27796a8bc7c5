"""A line that says what is going on and for how long, while nothing else is shown.

It is drawn on stderr from a thread, appears when something is slow, and goes without a trace.
"""

from __future__ import annotations

import contextlib
import itertools
import sys
import threading
import time
from collections.abc import Iterator

from .terminal import columns, fitted, steerable, style

_FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_DELAY = 0.4  # seconds; what is faster needs no words
_EVERY = 0.1


class Activity:
    """``start`` it when the cursor is at the beginning of a line, and ``stop`` it before anything is written."""

    def __init__(self) -> None:
        self.what = ""  # may be changed while it goes on
        self._since = 0.0
        self._over = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self, what: str, since: float | None = None) -> None:
        """Say ``what`` from now on; the time counts from here, or from a time of ``time.monotonic``."""
        self.stop()
        self.what, self._since = what, time.monotonic() if since is None else since
        self._run()

    def stop(self) -> None:
        """Take the line away."""
        self._halt()
        self.what = ""

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Not drawn for a while, in which a person is waited for; the time counts from the end of it."""
        self._halt()
        try:
            yield
        finally:
            if self.what:
                self._since = time.monotonic()
                self._run()

    def _run(self) -> None:
        if not steerable(sys.stderr):
            return
        self._over.clear()
        self._thread = threading.Thread(target=self._draw, name="activity", daemon=True)
        self._thread.start()

    def _halt(self) -> None:
        thread, self._thread = self._thread, None
        if thread:
            self._over.set()
            thread.join()

    def _draw(self) -> None:
        if self._over.wait(_DELAY):
            return
        # Its own name for the stream: the terminal may be taken away while this runs.
        stream = sys.stderr
        with contextlib.suppress(OSError, ValueError):
            for frame in itertools.cycle(_FRAMES):
                line = fitted(f"{frame} {self.what} {time.monotonic() - self._since:.0f} s", columns() - 1)
                stream.write(f"\r\x1b[K{style(line, '2')}")
                stream.flush()
                if self._over.wait(_EVERY):
                    break
            stream.write("\r\x1b[K")
            stream.flush()

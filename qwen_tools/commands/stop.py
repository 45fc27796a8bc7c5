"""What ends an answer early: Ctrl-C, a terminal that closes, a polite kill. They often come several at a time.

An exception at any instant would lose what is just being kept, and a second one the keeping itself. So one answer is
interrupted once, and only where something is waited for.
"""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Callable, Collection, Iterator
from typing import Any

_SIGNALS = ("SIGINT", "SIGHUP", "SIGTERM")


class Stop:
    """Raises KeyboardInterrupt where the engine, a tool or the screen is at work, at most once.

    The wish is also noted, and ``take`` says so: in the modules named ``careful`` and while ``holding`` nothing is
    raised, and what is raised in a finalizer is lost.
    """

    def __init__(self, careful: Collection[str]) -> None:
        self.closed = False  # there is nobody to go on with
        self.holding = True
        self._careful = {__name__, *careful}
        self._noted = False
        self._over = False  # the answer is being ended

    def note(self) -> None:
        """The answer is to end with the next ``take``."""
        self._noted = True

    def take(self) -> bool:
        """Whether the answer is to be ended now; true once."""
        if not self._noted:
            return False
        self._noted, self._over = False, True
        return True

    @contextlib.contextmanager
    def listening(self) -> Iterator[None]:
        """Hear the signals, but for those that whoever started the program wants ignored (as nohup does)."""
        before: dict[int, Callable[..., Any] | int | None] = {}
        for name in _SIGNALS:
            number = getattr(signal, name, None)
            if number is not None and signal.getsignal(number) not in (signal.SIG_IGN, None):
                before[number] = signal.signal(number, self._hear)
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _hear(self, number: int, frame: Any) -> None:
        self.closed = self.closed or number != signal.SIGINT
        if self._over:
            return
        self._noted = True
        if not self.holding and frame.f_globals.get("__name__") not in self._careful:
            self._over = True
            raise KeyboardInterrupt

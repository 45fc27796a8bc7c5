"""A model that loads while the person already types."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from ...engines import Engine
from ...models import Progress
from ..activity import Activity


class Loading:
    """``load`` runs in a thread; its progress is shown where somebody waits, its error is raised there."""

    def __init__(self, name: str, load: Callable[[Progress], Engine]) -> None:
        self.error: Exception | None = None
        self._name = name
        self._doing, self._share = "", 0.0
        self._since = time.monotonic()
        self._engine: Engine | None = None
        self._done = threading.Event()

        def work() -> None:
            try:
                self._engine = load(self._progress)
            except Exception as error:  # noqa: BLE001 - raised again where somebody waits
                self.error = error
            finally:
                self._done.set()

        threading.Thread(target=work, name="loading", daemon=True).start()

    def status(self) -> str:
        """What is being done and for how long, or nothing when all is done. Raises what loading raised."""
        if self._done.is_set():
            if self.error:
                raise self.error
            return ""
        return f"{self._what()} {time.monotonic() - self._since:.0f} s"

    def wait(self, activity: Activity) -> Engine:
        """The engine, as soon as it is there. Raises what loading raised."""
        if not self._done.is_set():
            activity.start(self._what(), self._since)
            try:
                # In short waits: a single long one would not hear Ctrl-C on every system.
                while not self._done.wait(0.1):
                    activity.what = self._what()
            finally:
                activity.stop()
        if self.error or self._engine is None:
            raise self.error or RuntimeError("no engine")
        return self._engine

    def _what(self) -> str:
        return f"{self._doing} {self._share:.0%}" if self._doing else f"loading {self._name}"

    def _progress(self, doing: str, share: float) -> None:
        self._doing, self._share = (doing, share) if share < 1 else ("", 0.0)

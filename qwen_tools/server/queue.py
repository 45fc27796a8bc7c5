"""One engine, many clients: answers are made one at a time, in the order in which they were asked for.

A thread of its own makes them, so that no computation holds up the event loop. It never waits for a reader: what it
makes goes into the job's buffer, and an answer is no longer than its limit of tokens, so neither is the buffer.
"""

from __future__ import annotations

import asyncio
import math
import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Generator
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

Item = TypeVar("Item")


class ClosedError(Exception):
    """The server is about to end."""


class QueueFullError(Exception):
    """No place is free; one may be in ``retry_after`` seconds."""

    def __init__(self, retry_after: int) -> None:
        super().__init__("too many requests are waiting")
        self.retry_after = retry_after


@dataclass(frozen=True)
class _Over:
    """The end of a job, and what it raised."""

    error: BaseException | None = None


class Job(Generic[Item]):
    """One piece of work: ``make`` gets an event that is set once nobody wants the rest."""

    def __init__(self, make: Callable[[threading.Event], Generator[Item, None, None]]) -> None:
        self.cancelled = threading.Event()
        self._make = make
        self._loop = asyncio.get_running_loop()
        self._buffer: asyncio.Queue[Item | _Over] = asyncio.Queue()

    async def batches(self) -> AsyncIterator[list[Item]]:
        """What was made, as it is made: all that is there at a time, never nothing. Raises what the work raised."""
        while True:
            batch = [await self._buffer.get()]
            while not self._buffer.empty():
                batch.append(self._buffer.get_nowait())
            items = [item for item in batch if not isinstance(item, _Over)]
            if items:
                yield items
            last = batch[-1]
            if isinstance(last, _Over):
                if last.error is not None:
                    raise last.error
                return

    def refuse(self) -> None:
        """End the job without doing it."""
        self.cancelled.set()
        self._put(_Over(ClosedError()))

    def run(self) -> None:
        """Do the work, in the thread that calls."""
        error: BaseException | None = None
        try:
            with closing(self._make(self.cancelled)) as items:
                for item in items:
                    if self.cancelled.is_set():
                        break
                    self._put(item)
        except Exception as raised:  # noqa: BLE001 - it is the reader's, who gets it raised
            error = raised
        self._put(_Over(error))

    def _put(self, item: Item | _Over) -> None:
        try:
            self._loop.call_soon_threadsafe(self._buffer.put_nowait, item)
        except RuntimeError:  # the event loop is closed, and with it the reader gone
            self.cancelled.set()


class Queue:
    """Jobs in the order in which they came; at most ``places`` wait while one runs."""

    def __init__(self, places: int) -> None:
        self._places = places
        self._waiting: deque[Job[Any]] = deque()
        self._running: Job[Any] | None = None
        self._changed = threading.Condition()
        self._closed = False
        self._pace = 1.0  # seconds a job takes, the later ones counting more
        self._thread = threading.Thread(target=self._work, name="engine", daemon=True)
        self._thread.start()

    @property
    def waiting(self) -> int:
        """How many jobs wait."""
        return len(self._waiting)

    @property
    def busy(self) -> bool:
        """Whether a job runs."""
        return self._running is not None

    def add(self, make: Callable[[threading.Event], Generator[Item, None, None]]) -> Job[Item]:
        """A place for a piece of work. To be called where an event loop runs. Raises QueueFullError or ClosedError."""
        job = Job(make)
        with self._changed:
            if self._closed:
                raise ClosedError
            if len(self._waiting) >= self._places:
                raise QueueFullError(max(1, math.ceil(self._pace * (len(self._waiting) + 1))))
            self._waiting.append(job)
            self._changed.notify()
        return job

    def cancel(self, job: Job[Any]) -> None:
        """Nobody wants the rest of this job: its place is free at once, and if it runs it ends after the next token."""
        job.cancelled.set()
        with self._changed:
            if job in self._waiting:
                self._waiting.remove(job)

    def close(self) -> None:
        """Cancel everything and end the thread."""
        with self._changed:
            self._closed = True
            while self._waiting:
                self._waiting.popleft().refuse()
            if self._running is not None:
                self._running.cancelled.set()
            self._changed.notify()
        self._thread.join(timeout=10)

    def _work(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._closed)
                if self._closed:
                    return
                job = self._running = self._waiting.popleft()
            started = time.monotonic()
            job.run()
            self._pace += 0.2 * (time.monotonic() - started - self._pace)
            # What a job holds (its request, its events) must not live on until the next one comes.
            self._running = None
            del job

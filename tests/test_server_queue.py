"""The queue: whose turn it is, and what becomes of those who leave."""

from __future__ import annotations

import asyncio
import threading

import pytest

from qwen_tools.server.queue import ClosedError, Queue, QueueFullError


@pytest.fixture
def queue():
    made = Queue(places=2)
    yield made
    made.close()


def work(items, log=None, gate=None):
    def make(cancelled):
        if gate is not None:
            gate.wait(5)
        for item in items:
            if log is not None:
                log.append(item)
            yield item

    return make


async def everything(job):
    return [item async for batch in job.batches() for item in batch]


def test_jobs_are_done_in_the_order_in_which_they_came(queue):
    log = []

    async def ask():
        gate = threading.Event()
        jobs = [queue.add(work([1, 2], log, gate))]
        while queue.waiting:  # the first runs
            await asyncio.sleep(0.001)
        jobs += [queue.add(work([3, 4], log)), queue.add(work([5], log))]
        gate.set()
        return await asyncio.gather(*map(everything, reversed(jobs)))

    assert asyncio.run(ask()) == [[5], [3, 4], [1, 2]]
    assert log == [1, 2, 3, 4, 5]


def test_past_its_places_it_says_when_to_come_again(queue):
    async def ask():
        gate = threading.Event()
        first = queue.add(work([1], gate=gate))
        while queue.waiting:
            await asyncio.sleep(0.001)
        queue.add(work([2]))
        third = queue.add(work([3]))
        with pytest.raises(QueueFullError) as refusal:
            queue.add(work([4]))
        assert refusal.value.retry_after >= 1
        queue.cancel(third)  # its place is free at once
        fourth = queue.add(work([4]))
        gate.set()
        assert await everything(first) == [1]
        assert await everything(fourth) == [4]

    asyncio.run(ask())


def test_a_job_that_nobody_wants_ends_after_its_next_item(queue):
    log, closed = [], threading.Event()

    def endless(cancelled):
        try:
            number = 0
            while True:
                log.append(number)
                yield number
                number += 1
        finally:
            closed.set()

    async def ask():
        job = queue.add(endless)
        async for _ in job.batches():
            break
        queue.cancel(job)
        assert await everything(queue.add(work(["next"]))) == ["next"]

    asyncio.run(ask())
    assert closed.is_set()


def test_a_reader_who_is_late_gets_everything_and_holds_up_nobody(queue):
    async def ask():
        slow = queue.add(work(range(10_000)))
        fast = await everything(queue.add(work([1])))
        batches = [batch async for batch in slow.batches()]
        assert [item for batch in batches for item in batch] == list(range(10_000))
        assert len(batches) == 1  # all that was there, at once
        return fast

    assert asyncio.run(ask()) == [1]


def test_what_the_work_raises_is_the_readers(queue):
    def fails(cancelled):
        yield 1
        raise ValueError("no")

    def fails_at_once(cancelled):
        raise ValueError("not even begun")

    async def ask():
        for make, expected in ((fails, [1]), (fails_at_once, None)):
            batches = queue.add(make).batches()
            if expected:
                assert await anext(batches) == expected
            with pytest.raises(ValueError, match="no"):
                await anext(batches)
        assert await everything(queue.add(work([2]))) == [2]

    asyncio.run(ask())


def test_the_end_of_the_queue_is_the_end_of_all_jobs():
    queue = Queue(places=2)

    async def ask():
        gate = threading.Event()
        running = queue.add(work(range(100), gate=gate))
        while queue.waiting:
            await asyncio.sleep(0.001)
        waiting = queue.add(work([2]))
        threading.Timer(0.05, gate.set).start()
        queue.close()
        assert len(await everything(running)) < 100
        with pytest.raises(ClosedError):
            await everything(waiting)
        with pytest.raises(ClosedError):
            queue.add(work([3]))

    asyncio.run(ask())

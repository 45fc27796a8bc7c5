"""A program run once, with limits of time and output; afterwards nothing of it is left running.

What a tool runs is the person's own command or code that a model wrote: neither may hang the conversation, fill the
memory or outlive its call. Whoever cancels ``run`` ends the program too.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Outcome:
    """``stopped`` is empty where the program ended by itself, else why it was ended. ``code`` is its exit code,
    negative for a signal.
    """

    code: int
    stdout: str
    stderr: str
    stopped: str


async def run(
    arguments: Sequence[str],
    *,
    stdin: str = "",
    folder: str | None = None,
    environment: Mapping[str, str] | None = None,
    seconds: float,
    limit: int,
) -> Outcome:
    """Run a program, without a shell, in its own process group; ``limit`` is in bytes of output.

    Raises OSError when it cannot be started, and ValueError for a NUL in its arguments.
    """
    # Files, not pipes: a pipe stays open as long as any descendant holds it, and somebody must read it.
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        given.write(stdin.encode("utf-8", "surrogatepass"))
        given.seek(0)
        process = subprocess.Popen(  # noqa: S603 - running a program is what this is for
            list(arguments),
            stdin=given,
            stdout=out,
            stderr=err,
            cwd=folder,
            env=environment,
            start_new_session=True,
        )
        stopped, deadline = "", time.monotonic() + seconds
        try:
            while process.poll() is None and not stopped:
                if time.monotonic() > deadline:
                    stopped = f"stopped after {seconds:g} seconds"
                elif os.fstat(out.fileno()).st_size + os.fstat(err.fileno()).st_size > limit:
                    stopped = f"stopped after {limit} bytes of output"
                else:
                    await asyncio.sleep(0.01)
        finally:
            _end(process)
        texts = []
        for file in (out, err):
            file.seek(0)
            texts.append(file.read(limit).decode("utf-8", "replace"))
        return Outcome(process.wait(), texts[0], texts[1], stopped)


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill the program and what it started, also when it has ended itself."""
    if hasattr(os, "killpg"):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    else:
        process.kill()
    process.wait()

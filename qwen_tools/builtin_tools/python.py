"""``python``: run code that the model wrote, after asking.

What is limited: time, memory (where the system can), output, size of a file; the environment is nearly empty, and the
folder is a new one that is removed. What is not: the network, and reading what the user can read. It is no sandbox, and
therefore it asks.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from ..errors import UserError
from ..processes import run
from ..tools import Tool

_SECONDS = 10.0
_MEMORY = 2_000_000_000  # bytes of address space: libraries of numbers reserve more than they use
_OUTPUT = 100_000
_CHILD = Path(__file__).with_name("python_child.py")


async def run_python(code: str) -> str:
    """What the code printed, with its error if it failed. Raises OSError when Python cannot be started."""
    with tempfile.TemporaryDirectory(prefix="qwen_tools-") as folder:
        environment = {
            "HOME": folder,
            "TMPDIR": folder,
            "PATH": os.environ.get("PATH", os.defpath),
            **({"SYSTEMROOT": os.environ["SYSTEMROOT"]} if "SYSTEMROOT" in os.environ else {}),
        }
        done = await run(
            [sys.executable, "-I", "-X", "utf8", str(_CHILD), str(_MEMORY)],
            stdin=code,
            folder=folder,
            environment=environment,
            seconds=_SECONDS,
            limit=_OUTPUT,
        )
    said = done.stdout + done.stderr
    if done.stopped:
        raise RuntimeError(f"{done.stopped}; it had printed: {said[:300] or 'nothing'}")
    if done.code < 0:
        raise RuntimeError(f"the code was ended by signal {-done.code}; it had printed: {said[-300:] or 'nothing'}")
    if done.code and not done.stderr.strip():
        return f"{said}[exit code {done.code}]"
    return said.rstrip("\n") or "the code printed nothing; use print() to see a value"


def tools(argument: str) -> list[Tool]:
    """The tool. Raises UserError for an argument, of which it has none."""
    if argument:
        raise UserError(f"python takes no argument: write python, not python:{argument}")
    return [
        Tool(
            "python",
            "Run Python code in a new process and get what it prints.",
            {"type": "object", "properties": {"code": {"type": "string"}}, "required": ["code"]},
            run_python,
        )
    ]

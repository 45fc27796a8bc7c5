"""Writes conversations until it is killed; ``test_session`` does the killing.

Started once; for every path on stdin it forks a child, which goes on with the session of that path and says on stdout
after each message that the conversation now has it: "PID COUNT". A fork costs milliseconds, a new interpreter would
cost a second.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path

from qwen_tools import Message, Tool, run
from qwen_tools import events as ev
from qwen_tools.engines.scripted import ScriptedEngine
from qwen_tools.session import Session, load

CALL = '<tool_call>\n{"name": "dump", "arguments": {"number": %d}}\n</tool_call>'
PARAMETERS = {"type": "object", "properties": {"number": {"type": "integer"}}, "required": ["number"]}


def talk(path: Path) -> None:
    session = Session.open(path) if path.exists() else Session(path)
    count = len(load(path)) if path.exists() else 0
    tell(count)
    session.about("scripted", "qwen2.5")
    while True:
        begun = count
        count = ask(session, count)
        if count > 30:  # undo, as a person does
            session.rewind(begun)
            count = begun
            tell(count)


def ask(session: Session, count: int) -> int:
    tool = Tool("dump", "Dump.", PARAMETERS, lambda number: "北京" * number, read_only=True)
    count = keep(session, Message("user", "Dump it, 三次。"), count)
    engine = ScriptedEngine([CALL % 10 + CALL % 8000 + CALL % 3, CALL % 20_000, "Done 📝."])
    for event in run(engine, [Message("user", "Go.")], (tool,)):
        if isinstance(event, ev.MessageAdded):
            count = keep(session, event.message, count)
    return count


def keep(session: Session, message: Message, count: int) -> int:
    session.add([message])
    tell(count + 1)
    return count + 1


def tell(count: int) -> None:
    os.write(1, (json.dumps([os.getpid(), count]) + "\n").encode())


with tempfile.TemporaryDirectory() as folder:  # imports what is imported late, once for all children
    ask(Session(Path(folder) / "rehearsal.jsonl"), 0)
os.write(1, b"ready\n")
for line in sys.stdin:
    child = os.fork()
    if child == 0:
        talk(Path(line.strip()))
    os.waitpid(child, 0)
    os.write(1, b"dead\n")

"""A server on a free port, as clients meet it, and an engine whose answer is a function of the prompt."""

from __future__ import annotations

import contextlib
import json
import re
import socket
import threading
import time
from collections.abc import Callable, Generator, Iterator

import uvicorn

from qwen_tools.commands.serve import listen
from qwen_tools.engines import Piece, Settings
from qwen_tools.engines.stops import until_stop
from qwen_tools.events import Usage
from qwen_tools.server.answer import Serving
from qwen_tools.server.app import app

NAME = "test-model"


# As in the vocabularies of these families, the tag is one token; any other has five characters at most.
_TOKEN = re.compile(r"<tool_call>|(?s:(?:(?!<tool_call>).){1,5})")


class FunctionEngine:
    """Answers ``function(prompt text)``; half of a prompt is always cached. ``pace`` is in seconds a token, ``given``
    counts tokens. ``prompt``, ``settings`` and ``guide`` are those of the last answer.
    """

    tokenizer = None
    family = "qwen2.5"
    name = NAME

    def __init__(self, function: Callable[[str], str], *, pace: float = 0.0, can_guide: bool = False) -> None:
        self.function = function
        self.pace = pace
        self.can_guide = can_guide
        self.given = 0
        self.prompt, self.settings, self.guide = "", Settings(), None

    def generate(self, prompt, settings, *, begun=(), guide=None) -> Iterator[Piece]:
        self.guide, self.settings, self.prompt = guide, settings, prompt.text
        yield from until_stop(self._pieces(prompt.text, settings.max_new_tokens, len(begun)), settings.stop)

    def _pieces(self, prompt: str, limit: int, begun: int) -> Generator[Piece, None, None]:
        tokens, read, count = _TOKEN.findall(self.function(prompt)), len(prompt) // 4, 0
        for number in range(begun, len(tokens)):
            if count == limit:
                yield Piece("", (), Usage(read, read // 2, count), "length")
                return
            if self.pace:
                time.sleep(self.pace)
            count += 1
            self.given += 1
            yield Piece(tokens[number], (number,), Usage(read, read // 2, count))
        yield Piece("", (), Usage(read, read // 2, count), "stop")


def question(prompt: str) -> str:
    """The text of the last user message of a prompt."""
    return prompt.rpartition("<|im_start|>user\n")[2].partition("<|im_end|>")[0]


def echo(prompt: str) -> str:
    """An answer that repeats the question."""
    return f"You said: {question(prompt)}"


def call(name: str, **arguments) -> str:
    """A call as a model writes it."""
    return "<tool_call>\n" + json.dumps({"name": name, "arguments": arguments}) + "\n</tool_call>"


@contextlib.contextmanager
def serving(engine, *, send_buffer: int | None = None, **how) -> Iterator[str]:
    """A running server; gives its URL. ``how`` goes to Serving where that has such a field, else to ``app``.
    ``send_buffer`` is how many bytes the system takes for a client that does not read.
    """
    fields = {name: how.pop(name) for name in list(how) if name in Serving.__dataclass_fields__}
    listening = listen("127.0.0.1", 0)
    if send_buffer is not None:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, send_buffer)
    config = uvicorn.Config(app(Serving(engine, **fields), **how), log_level="critical", timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    wait_for(lambda: server.started)
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(10)
        listening.close()
    assert not thread.is_alive()


def wait_for(holds: Callable[[], bool], seconds: float = 10.0) -> None:
    """Wait until something holds."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.005)

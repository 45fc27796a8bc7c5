"""Whole tool tasks, from the question to the end of the last answer: ours, plain ``generate``, llama.cpp.

    python benchmarks/task.py [--model embedded-plain] [--also embedded] [--repeat 3] [--only ours,llama.cpp]
    npm install --no-save --prefix benchmarks node-llama-cpp        # for the rows of llama.cpp

Five fixed tasks on the embedded model, on this machine, in one run, on the CPU, with the same prompts and greedy
decoding for all. Calls and results are fixed too: each round's prompt holds what an ideal answer to the round before
would have been, so that no engine's luck decides how many rounds it has to do. A round is over when its call is
whole, when the model ends its turn, or after 96 tokens (24 where the round is to give text).

- ours: this package with its defaults: its own number format, the KV cache kept over rounds, the grammar from where a
  call opens (from the beginning in later rounds that are to call), prose after the last result, lookup.
- generate: ``model.generate`` from scratch in every round, float32: what a script would do.
- llama.cpp: node-llama-cpp on the same GGUF file (Q4_K_M), keeping its own cache of the prompt's beginning.

For each the seconds to the first token, to the first whole call and to the end of the task, and how many tokens were
generated in all; medians of the repetitions.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from qwen_tools import Message, Tool
from qwen_tools.messages import ToolCall
from qwen_tools.prompt import Prompt

HERE = Path(__file__).parent
SYSTEM = (
    "You are Qwen. Use a tool when it helps.\nUser: What is the root of 9?\nAssistant: "
    '{"name": "sqrt", "arguments": {"x": 9}}\nUser: Hello\nAssistant: Hello! How can I help?'
)
TEXT_TOKENS = 24
CALL_TOKENS = 96


def _tool(name: str, description: str, /, **properties: Any) -> Tool:
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    return Tool(name, description, schema)


SQRT = _tool("sqrt", "The square root of a number.", x={"type": "number", "description": "the number"})
WEATHER = _tool("get_weather", "The weather in a city today.", city={"type": "string", "description": "the city"})
READ = _tool("read_file", "Read a text file.", path={"type": "string", "description": "its path"})
OTHERS = [
    _tool(f"{verb}_{thing}", f"To {verb} a {thing}.", name={"type": "string", "description": f"the {thing}"})
    for verb, thing in zip(
        ("create", "delete", "rename", "list", "export", "import", "archive", "share"),
        ("note", "folder", "contact", "calendar", "invoice", "photo", "message", "playlist"),
        strict=True,
    )
]  # fmt: skip
LONG = "\n".join(f"{n:03d} The quick brown fox number {n} jumps over the lazy dog in the field." for n in range(165))


@dataclass(frozen=True)
class Round:
    """What an ideal answer is: a call with its result, or the final text."""

    call: ToolCall | None = None
    result: str = ""
    text: str = ""


@dataclass(frozen=True)
class Task:
    """A question, the tools offered, and the rounds it takes."""

    name: str
    question: str
    tools: tuple[Tool, ...]
    rounds: tuple[Round, ...]


TASKS = [
    Task("one call", "What is the square root of 7744?", (SQRT, WEATHER), (
        Round(ToolCall("sqrt", {"x": 7744})),
    )),
    Task("two rounds", "What is the square root of 7744?", (SQRT, WEATHER), (
        Round(ToolCall("sqrt", {"x": 7744}), "88.0"),
        Round(text="The square root of 7744 is 88."),
    )),
    Task("three calls", "How is the weather in Paris, in Rome and in Oslo?", (SQRT, WEATHER), (
        Round(ToolCall("get_weather", {"city": "Paris"}), '{"temperature": 21, "sky": "clear"}'),
        Round(ToolCall("get_weather", {"city": "Rome"}), '{"temperature": 27, "sky": "clear"}'),
        Round(ToolCall("get_weather", {"city": "Oslo"}), '{"temperature": 12, "sky": "rain"}'),
        Round(text="Paris has 21 degrees and a clear sky, Rome 27 and a clear sky, Oslo 12 and rain."),
    )),
    Task("a 3,000-token result", "What does line 120 of notes.txt say?", (READ, SQRT), (
        Round(ToolCall("read_file", {"path": "notes.txt"}), LONG),
        Round(text="It says that the quick brown fox number 120 jumps over the lazy dog in the field."),
    )),
    Task("ten tools", "What is the square root of 7744?", (SQRT, WEATHER, *OTHERS), (
        Round(ToolCall("sqrt", {"x": 7744}), "88.0"),
        Round(text="The square root of 7744 is 88."),
    )),
]  # fmt: skip


def messages(task: Task, number: int) -> list[Message]:
    """The conversation before a round, as it would ideally have gone."""
    said = [Message("system", SYSTEM), Message("user", task.question)]
    for index, each in enumerate(task.rounds[:number]):
        if each.call:
            call = ToolCall(each.call.name, each.call.arguments, id=f"c{index}")
            said += [Message("assistant", "", calls=(call,)), Message("tool", each.result, call_id=call.id)]
    return said


def prompts(task: Task) -> Iterator[Prompt]:
    """The prompt of every round."""
    for number in range(len(task.rounds)):
        prompt = Prompt(task.tools, "qwen2.5")
        prompt.append(messages(task, number))
        yield prompt


class Clock:
    """Seconds since the start of a task, by what happened; only the first time counts. Tokens are counted."""

    def __init__(self) -> None:
        self._started = time.perf_counter()
        self.at: dict[str, float] = {}
        self.tokens = 0

    def mark(self, what: str) -> None:
        """It happened now."""
        self.at.setdefault(what, time.perf_counter() - self._started)

    def token(self, count: int = 1) -> None:
        """Tokens were generated."""
        self.mark("first")
        self.tokens += count


class Column(Protocol):
    """An engine under test."""

    def round(self, task: Task, number: int, prompt: Prompt, clock: Clock) -> None:
        """Generate one round, telling the clock of tokens and of the whole call."""

    def forget(self) -> None:
        """Drop what is cached."""


def timed(column: Column, task: Task) -> tuple[float, float, float, float]:
    """Seconds to the first token, the first whole call, the end of the task; tokens."""
    clock = Clock()
    for number, prompt in enumerate(prompts(task)):
        column.round(task, number, prompt, clock)
    clock.mark("end")
    return clock.at["first"], clock.at.get("whole", float("nan")), clock.at["end"], clock.tokens


def limit(task: Task, number: int) -> int:
    """How many tokens a round may take."""
    return CALL_TOKENS if task.rounds[number].call else TEXT_TOKENS


def complete(text: str) -> bool:
    """Whether a call is there, in tags or, as this model likes it, in a fence or bare."""
    start = text.find("{")
    if start < 0:
        return False
    try:
        json.JSONDecoder().raw_decode(text[start:])
    except ValueError:
        return False
    return True


class Ours:
    """Our own loop on our own engine."""

    def __init__(self, model: str) -> None:
        from qwen_tools.engines import open_engine

        self._engine: Any = open_engine(model, device="cpu")

    def round(self, task: Task, number: int, prompt: Prompt, clock: Clock) -> None:  # noqa: ARG002 - it writes its own
        """One answer of the loop."""
        from qwen_tools.engines import Settings
        from qwen_tools.events import CallEnd, RoundEnd
        from qwen_tools.loop import turn

        choice = "none" if not task.rounds[number].call else "required" if number else "auto"
        settings = Settings(max_new_tokens=limit(task, number), do_sample=False)
        with self._watched(clock):
            for event in turn(
                self._engine,
                messages(task, number),
                task.tools,
                tool_choice=choice,
                parallel_calls=False,
                settings=settings,
            ):
                if isinstance(event, CallEnd):
                    clock.mark("whole")
                elif isinstance(event, RoundEnd):
                    clock.token(event.usage.new_tokens)

    @contextlib.contextmanager
    def _watched(self, clock: Clock) -> Iterator[None]:
        """Let the clock see the first piece, which the loop may hold back."""
        own = self._engine.generate

        def generate(*arguments: Any, **how: Any) -> Iterator[Any]:
            with contextlib.closing(own(*arguments, **how)) as pieces:
                for piece in pieces:
                    clock.mark("first")
                    yield piece

        self._engine.generate = generate
        try:
            yield
        finally:
            self._engine.generate = own

    def forget(self) -> None:
        """Crop the cache to nothing."""
        self._engine._cache.crop(0)


class Generate:
    """``model.generate`` from scratch every round."""

    def __init__(self, folder: Path) -> None:
        import torch
        import transformers

        auto: Any = transformers
        self._tokenizer = auto.AutoTokenizer.from_pretrained(folder)
        self._model = auto.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()

    def round(self, task: Task, number: int, prompt: Prompt, clock: Clock) -> None:
        """One call of generate, stopped when a call is whole."""
        import torch

        ids = torch.tensor([prompt.ids(self._tokenizer)])
        wants_call = task.rounds[number].call is not None

        def stop(so_far: torch.Tensor, *_: Any, **__: Any) -> torch.Tensor:
            clock.token()
            whole = wants_call and complete(self._tokenizer.decode(so_far[0, ids.shape[1] :]))
            if whole:
                clock.mark("whole")
            return torch.tensor([whole])

        self._model.generate(
            ids,
            attention_mask=torch.ones_like(ids),
            max_new_tokens=limit(task, number),
            do_sample=False,
            stopping_criteria=[stop],
        )

    def forget(self) -> None:
        """Nothing is kept."""


class Llama:
    """node-llama-cpp, in a process that is asked in lines of JSON."""

    def __init__(self, gguf: Path, tokenizer: Any, threads: int) -> None:
        self._tokenizer = tokenizer
        self._process = subprocess.Popen(
            ["node", str(HERE / "llama.mjs"), str(gguf), str(threads)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=HERE,
        )
        self._answer()  # loaded

    def round(self, task: Task, number: int, prompt: Prompt, clock: Clock) -> None:
        """One evaluation, stopped when a call is whole."""
        self._ask(ids=prompt.ids(self._tokenizer), limit=limit(task, number))
        text = ""
        while not (reply := self._answer())["done"]:
            clock.token()
            text += reply["text"]
            if task.rounds[number].call and "whole" not in reply and complete(text):
                clock.mark("whole")
                self._ask(stop=True)

    def forget(self) -> None:
        """Clear the sequence."""
        self._ask(clear=True)
        self._answer()

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()

    def _ask(self, **request: Any) -> None:
        assert self._process.stdin
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()

    def _answer(self) -> Any:
        assert self._process.stdout
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit("llama.mjs ended; its message is above")
        return json.loads(line)


def main() -> None:
    """Print the table, a row an engine and task."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="embedded-plain")
    parser.add_argument("--also", default="embedded", help="a second model, for ours alone; '' for none")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--only", default="", help="rows: ours, generate, llama.cpp; separated by commas")
    parser.add_argument("--tasks", default="", help="the beginnings of tasks' names, separated by commas")
    arguments = parser.parse_args()
    import torch

    from qwen_tools import models
    from qwen_tools.commands.render import load_tokenizer

    torch.set_num_threads(arguments.threads)
    folder = models.prepare(models.resolve(arguments.model))
    chosen = [task for task in TASKS if task.name.startswith(tuple(arguments.tasks.split(",")))]
    rows: dict[str, Callable[[], Column]] = {
        f"ours, {arguments.model}": lambda: Ours(arguments.model),
        "generate": lambda: Generate(folder),
    }
    if arguments.also:
        rows[f"ours, {arguments.also}"] = lambda: Ours(arguments.also)
    with tempfile.TemporaryDirectory() as temporary:
        if shutil.which("node") and (HERE / "node_modules" / "node-llama-cpp").is_dir():
            gguf = Path(temporary) / "model.gguf"
            rows["llama.cpp"] = lambda: Llama(gguf, load_tokenizer(arguments.model), arguments.threads)
            models._assemble(models.EMBEDDED[arguments.model], gguf, lambda *_: None)
        else:
            print("without llama.cpp: npm install --no-save --prefix benchmarks node-llama-cpp", file=sys.stderr)
        print(f"{'seconds to':<22}{'':<24}{'first token':>12}{'whole call':>12}{'end':>9}{'tokens':>8}")
        for name, make in rows.items():
            if not name.startswith(tuple(arguments.only.split(","))):
                continue
            column = make()
            timed(column, TASKS[0])  # imports, caches, the reading of the tokenizer
            for task in chosen:
                runs = []
                for _ in range(arguments.repeat):
                    column.forget()
                    runs.append(timed(column, task))
                first, whole, end, tokens = map(statistics.median, zip(*runs, strict=True))
                print(f"{name:<22}{task.name:<24}{first:>12.2f}{whole:>12.2f}{end:>9.2f}{tokens:>8.0f}", flush=True)
            if isinstance(column, Llama):
                column.close()


if __name__ == "__main__":
    main()

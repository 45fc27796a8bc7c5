"""A task: a question, the tools that are offered with it, and what a right answer calls.

A file of tasks has one JSON object a line:

    {"prompt": "What is 19 + 23?", "expect": [{"name": "add", "arguments": {"a": 19, "b": [23, 23.0]}}], "answer": "42"}

``expect`` is a list of calls, in any order, or ``"no call"``. Each argument has one value or a list of those that are
right (a value that is itself a list stands in such a list); those under ``optional`` may be left out. ``answer`` is a
text that an answer in words must hold. ``id``, ``messages`` (in the place of ``prompt``) and ``tools`` may be given.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .errors import UserError
from .messages import Message, ToolCall, as_messages
from .tools import Toolbox

_NO_CALL = "no call"


@dataclass(frozen=True)
class Expected:
    """A call that a right answer makes: by argument the values that are right."""

    name: str
    arguments: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    optional: Mapping[str, Sequence[Any]] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """The call as it stands in a file of tasks."""
        data: dict[str, Any] = {"name": self.name, "arguments": dict(self.arguments)}
        return {**data, "optional": dict(self.optional)} if self.optional else data

    def mismatch(self, call: ToolCall) -> str | None:
        """How a call differs from this one, in words, or None."""
        if call.name != self.name:
            return f"calls {call.name}, not {self.name}"
        if not isinstance(call.arguments, Mapping):
            return f"the arguments of {self.name} are no object"
        for name, values in {**self.optional, **self.arguments}.items():
            if name not in call.arguments:
                if name in self.arguments:
                    return f"{self.name} lacks {name}"
            elif not any(same(call.arguments[name], value) for value in values):
                right = " or ".join(_short(value) for value in values)
                return f"{name} of {self.name} is {_short(call.arguments[name])}, not {right}"
        more = [name for name in call.arguments if name not in self.arguments and name not in self.optional]
        return f"{self.name} has {more[0]}, which was not asked for" if more else None


@dataclass(frozen=True)
class Task:
    """``expect`` is None where it is not known what is right, and empty where nothing is to be called; ``tools`` is
    None where the task brings none of its own.
    """

    id: str
    messages: tuple[Message, ...]
    tools: Toolbox | None = None
    expect: tuple[Expected, ...] | None = None
    answer: str | None = None

    @property
    def question(self) -> str:
        """What the user asked last."""
        return next((message.content for message in reversed(self.messages) if message.role == "user"), "")

    def to_dict(self) -> dict[str, Any]:
        """The question and what is right, as JSON values."""
        expect = None if self.expect is None else [each.to_dict() for each in self.expect]
        return {"id": self.id, "question": self.question, "expect": expect, "answer": self.answer}

    def wrong_calls(self, calls: Sequence[ToolCall]) -> str | None:
        """Why these calls are not those that the task asks for, in words; None when they are, in any order.

        Only where ``expect`` is known.
        """
        expected = list(self.expect or ())
        if not expected:
            return f"calls {calls[0].name}, where no call is right" if calls else None
        if not calls:
            return f"does not call {expected[0].name}"
        if len(calls) != len(expected):
            return f"{_count(len(calls))}, not {len(expected)}"
        if _pairs(expected, list(calls)):
            return None
        return next(
            reason
            for each, call in zip(_alike(expected, calls), calls, strict=True)
            if (reason := each.mismatch(call)) is not None
        )

    def wrong_answer(self, text: str) -> str | None:
        """Why a text is not the answer, in words, or None. Only where ``answer`` is known."""
        return None if (self.answer or "") in text else f"the answer does not hold {_short(self.answer)}"


def load(path: str) -> list[Task]:
    """The tasks of a file. Raises UserError naming the line of what is none."""
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"cannot read {path}: {error}") from error
    tasks = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            tasks.append(from_dict(json.loads(line), str(number)))
        except (ValueError, RecursionError) as error:
            raise UserError(f"{path}, line {number}: not JSON: {error}") from error
        except UserError as error:
            raise UserError(f"{path}, line {number}: {error}") from error
    if not tasks:
        raise UserError(f"{path} holds no task")
    return tasks


def named(word: str) -> list[Task]:
    """What a person names on the command line: the tasks of a ``.jsonl`` file, or a question, of which it is not known
    what is right. Raises UserError.
    """
    return load(word) if word.endswith(".jsonl") else [Task("1", (Message("user", word),))]


def from_dict(data: Any, number: str) -> Task:
    """A task as it stands in a file. Raises UserError."""
    if not isinstance(data, Mapping):
        raise UserError("a task must be an object")
    if ("prompt" in data) == ("messages" in data):
        raise UserError("a task must have a prompt, or messages in its place")
    messages = data.get("messages", [{"role": "user", "content": data.get("prompt")}])
    if not isinstance(messages, list) or not messages:
        raise UserError("messages must be a list of messages")
    tools = data.get("tools")
    if tools is not None and not isinstance(tools, list):
        raise UserError("tools must be a list of tools")
    answer = data.get("answer")
    if answer is not None and not isinstance(answer, str):
        raise UserError("answer must be text")
    return Task(
        str(data.get("id", number)),
        tuple(as_messages(messages)),
        None if tools is None else Toolbox.of(tools),
        _expect(data["expect"]) if data.get("expect") is not None else None,
        answer,
    )


def same(value: Any, other: Any) -> bool:
    """Whether two JSON values are equal: numbers by value (2 and 2.0), but true is not 1."""
    if isinstance(value, bool) or isinstance(other, bool):
        return value is other
    if isinstance(value, Mapping) and isinstance(other, Mapping):
        return value.keys() == other.keys() and all(same(value[key], other[key]) for key in value)
    if isinstance(value, list) and isinstance(other, list):
        return len(value) == len(other) and all(map(same, value, other))
    return bool(value == other)


def _expect(data: Any) -> tuple[Expected, ...]:
    if data in (_NO_CALL, []):
        return ()
    calls = data if isinstance(data, list) else [data]
    if not all(isinstance(call, Mapping) and isinstance(call.get("name"), str) for call in calls):
        raise UserError(f'expect must be "{_NO_CALL}" or a list of calls, each with a name')
    return tuple(Expected(call["name"], _values(call, "arguments"), _values(call, "optional")) for call in calls)


def _values(call: Mapping[str, Any], key: str) -> dict[str, list[Any]]:
    given = call.get(key) or {}
    if not isinstance(given, Mapping):
        raise UserError(f"{key} of {call['name']} must be an object")
    return {name: value if isinstance(value, list) else [value] for name, value in given.items()}


def _pairs(expected: list[Expected], calls: list[ToolCall]) -> bool:
    """Whether each call can be given an expectation of its own that it meets."""
    if not calls:
        return True
    for index, each in enumerate(expected):
        if each.mismatch(calls[0]) is None and _pairs(expected[:index] + expected[index + 1 :], calls[1:]):
            return True
    return False


def _alike(expected: Iterable[Expected], calls: Iterable[ToolCall]) -> list[Expected]:
    """The expectations in the order of the calls that they are closest to, for saying what is different."""
    left = list(expected)
    order = []
    for call in calls:
        best = next((each for each in left if each.mismatch(call) is None), None)
        best = best or next((each for each in left if each.name == call.name), left[0])
        left.remove(best)
        order.append(best)
    return order


def _count(calls: int) -> str:
    return "one call" if calls == 1 else f"{calls} calls"


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else text[:60] + "…"

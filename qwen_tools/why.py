"""Why a model calls a tool or does not: the exact probabilities with which its answer begins.

``begins`` scores the place where the answer begins. With T the ids of ``<tool_call>``, and X those of the beginning of
a call of tool X up to the end of its name, in the tokens that the tokenizer itself gives that text (its canonical
tokenisation), the chain rule gives

    P(X)     = P(T) P(X | T)                   the answer begins as a call of X, for each offered tool
    P(text)  = 1 - P(T) - P(end of the turn)   it begins as anything else but a call
    P(other) = 1 - P(text) - sum over X P(X)   a call of no offered tool or in another form, or an empty answer

``walk`` follows the likeliest call token by token and says of each argument how sure the model was of its value, and
which other value was likely. Nothing is sampled and no grammar helps, so this is what the model itself wants. It is
scored behind an empty thought where a family thinks, since what a thought would say cannot be summed over.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from .engines.transformers import TransformersEngine
from .families import get
from .messages import Message, ToolCall
from .parser import parse
from .prompt import Prompt, Segment, encode, token_owners
from .tools import Toolbox

_OPEN, _CLOSE = "<tool_call>", "</tool_call>"
# Another value is worth showing from this probability on, and at most so many of an argument.
_LIKELY, _OTHERS = 0.02, 4
# A call that is longer is not followed to its end; nor is another value.
_CALL_TOKENS, _VALUE_TOKENS = 400, 64


@dataclass(frozen=True)
class Beginning:
    """How an answer begins: probabilities that sum to one. ``opened`` is that of any call; it is a part of the sum of
    ``tools`` and ``other``, not another summand.
    """

    text: float
    tools: dict[str, float]
    other: float
    opened: float

    def share(self, name: str) -> float:
        """The probability of this tool among the offered ones: what a model would take that had to take one."""
        return self.tools[name] / (sum(self.tools.values()) or 1.0)


@dataclass(frozen=True)
class Argument:
    """An argument of the likeliest call: the JSON (or XML) text of its value, the probability of that text given all
    that stands in front of it, and the others that were likely, the likeliest first.
    """

    name: str
    value: str
    p: float
    others: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True)
class Walk:
    """The likeliest call of a tool, token by token: the text behind ``<tool_call>``, its arguments, and what is wrong
    with it or had to be mended (empty when it is a valid call).
    """

    tool: str
    text: str
    arguments: tuple[Argument, ...] = ()
    problem: str = ""


@dataclass(frozen=True)
class Question:
    """The ids of a prompt up to where the answer begins, and those of each offered tool's call behind them."""

    ids: list[int]
    opener: list[int]
    calls: dict[str, list[int]] = field(default_factory=dict)


def ask(engine: TransformersEngine, messages: Iterable[Message], tools: Toolbox, **options: Any) -> Question:
    """The question as ids. Raises UserError for messages or tools that cannot be rendered."""
    prompt = Prompt(tools, engine.family, **{**options, "enable_thinking": False})
    prompt.append(messages)
    segments = prompt.segments
    if prompt.prefill.endswith("<think>\n"):  # a family that always thinks
        segments = [*segments, Segment("\n</think>\n\n", "marker", True)]
    opener = encode([Segment(_OPEN, "marker", True)], engine.tokenizer)
    return Question(
        encode(segments, engine.tokenizer),
        opener,
        {name: _head(engine, name)[len(opener) :] for name in tools.names()},
    )


def begins(engine: TransformersEngine, question: Question) -> Beginning:
    """The probabilities with which the answer begins: see the top of this file."""
    ends = [[number] for number in engine.end_ids]
    heads = [question.opener + head for head in question.calls.values()]
    scores = engine.log_probs(question.ids, [question.opener, *ends, *heads])
    opened = math.exp(sum(scores[0]))
    ended = sum(math.exp(score[0]) for score in scores[1 : len(ends) + 1])
    tools = {
        # The same P(T) for all, whatever the last digits of a batch say.
        name: opened * math.exp(sum(score[len(question.opener) :]))
        for name, score in zip(question.calls, scores[len(ends) + 1 :], strict=True)
    }
    return Beginning(1 - opened - ended, tools, max(0.0, opened - sum(tools.values())) + ended, opened)


def walk(engine: TransformersEngine, question: Question, tools: Toolbox, name: str) -> Walk:
    """Follow the likeliest call of this tool, and look aside at the values of its arguments."""
    start = [*question.ids, *question.opener]
    path = _Path(engine, start, question.calls[name])
    while len(path.ids) < _CALL_TOKENS and path.step():
        pass
    text = path.text
    read = parse(_OPEN + text + _CLOSE, tools, finish="stop")
    problem = read.problems[0].message if read.problems else "" if read.calls else "it is no call"
    repairs = [repair for call in read.calls for repair in call.repairs]
    if repairs and not problem:
        problem = f"not whole as it is written; mended: {', '.join(repairs)}"
    arguments = tuple(_looked_aside(engine, start, path, *found) for found in _values(text, get(engine.family).dialect))
    return Walk(name, text.strip(), arguments, problem)


# Two probabilities whose logarithms are closer than this are the same: nobody would see the difference.
_EQUAL = 0.01


def verdict(pairs: Sequence[tuple[float, float]]) -> str:
    """Which of two descriptions makes the right beginning likelier, in words, from its probability in each question
    with A and with B; empty without a question. The mean is that of the ratios (geometric).
    """
    if not pairs:
        return ""
    tiny = 1e-300  # where a probability is too small for a float
    logs = [math.log((b or tiny) / (a or tiny)) for a, b in pairs]
    mean = sum(logs) / len(logs)
    if abs(mean) < _EQUAL:
        return "The two descriptions do not differ: the right beginning is as likely with either."
    wins = sum(abs(log) >= _EQUAL and (log > 0) == (mean > 0) for log in logs)
    where = "," if len(pairs) == 1 else f" in {wins} of {len(pairs)} questions, and on average"
    better, times = "B" if mean > 0 else "A", math.exp(abs(mean))
    return f"{better} makes the right beginning likelier{where} {times:.3g} times as likely."


def _head(engine: TransformersEngine, name: str) -> list[int]:
    """The ids of a call from its tag to the token in which the name is over."""
    write = get(engine.family).call
    text = write(ToolCall(name, {}))
    # One character behind the name it is over.
    over = write(ToolCall("\0", {})).index("\0") + len(name) + 1
    segments = [
        Segment(_OPEN + "\n", "marker", True),
        Segment(text[:over], "call", False),
        Segment(text[over:], "text", False),
    ]
    owners = token_owners(segments, engine.tokenizer)
    return [number for number, owner in zip(encode(segments, engine.tokenizer), owners, strict=True) if owner < 2]


class _Path:
    """Ids behind a prompt, each the likeliest one, with their log probabilities and those of the runners-up."""

    def __init__(self, engine: TransformersEngine, prompt: list[int], ids: Sequence[int]) -> None:
        self.ids = list(ids)
        self.scores = [0.0] * len(self.ids)  # those given are not weighed
        self.rivals: list[list[tuple[int, float]]] = [[] for _ in self.ids]
        self._engine = engine
        self._prompt = prompt
        self._stop = {*engine.end_ids, *encode([Segment(_CLOSE, "marker", True)], engine.tokenizer)}

    @property
    def text(self) -> str:
        """The text of the ids."""
        return self.text_of(len(self.ids))

    def text_of(self, count: int) -> str:
        """The text of the first ``count`` ids."""
        return str(self._engine.tokenizer.decode(self.ids[:count], skip_special_tokens=False))

    def step(self) -> bool:
        """Go on by one token; False where the call is over."""
        scores, ids = self._engine.next_log_probs([*self._prompt, *self.ids]).topk(_OTHERS + 1)
        best, *rivals = zip(ids.tolist(), scores.tolist(), strict=True)
        if best[0] in self._stop:
            return False
        self.ids.append(best[0])
        self.scores.append(best[1])
        self.rivals.append(rivals)
        return True


def _looked_aside(
    engine: TransformersEngine, prompt: list[int], path: _Path, name: str, start: int, end: int, raw: bool
) -> Argument:
    """An argument whose value stands at ``start`` to ``end`` of the path's text; ``raw`` where it is XML."""
    ends = [len(path.text_of(count)) for count in range(1, len(path.ids) + 1)]
    first = next(index for index, stop in enumerate(ends) if stop > start)
    # A value that has no mark of its own ends with the character behind it.
    closed = end if path.text[start] in '"{[' and not raw else end + 1
    last = next((index for index, stop in enumerate(ends) if stop >= closed), len(ends) - 1)
    value = path.text[start:end]
    found: dict[str, float] = {value: math.exp(sum(path.scores[first : last + 1]))}
    candidates = []
    for index in range(first, last + 1):
        before = sum(path.scores[first:index])
        candidates += [(before + score, index, number) for number, score in path.rivals[index]]
    likely = [each for each in sorted(candidates, reverse=True) if math.exp(each[0]) >= _LIKELY]
    for _, index, number in likely[: 2 * _OTHERS]:
        aside = _Path(engine, prompt, path.ids[:index])
        aside.ids.append(number)
        score = sum(path.scores[first:index]) + dict(path.rivals[index])[number]
        begun = len(aside.ids)
        while (other := _value_at(aside.text, start, raw)) is None and len(aside.ids) < begun + _VALUE_TOKENS:
            if not aside.step():
                break
        if other is not None:
            found[other] = found.get(other, 0.0) + math.exp(score + sum(aside.scores[begun:]))
    others = sorted(((text, p) for text, p in found.items() if text != value), key=lambda pair: -pair[1])
    return Argument(name, value, found[value], tuple(others[:_OTHERS]))


def _value_at(text: str, start: int, raw: bool) -> str | None:
    """The value that begins at ``start``, or None while it is not whole."""
    if raw:
        end = text.find("\n</parameter>", start)
        return None if end < 0 else text[start:end]
    try:
        _, end = json.JSONDecoder(strict=False).raw_decode(text, start)
    except (ValueError, RecursionError):
        return None
    # What has no closing mark may go on: 77 may become 77.44.
    over = text[start] in '"{[' or text[end : end + 1].strip("0123456789.eE+-") or text[end : end + 1].isspace()
    return text[start:end] if over else None


_ARGUMENTS = re.compile(r'\s*\{.*?"arguments"\s*:\s*\{\s*', re.DOTALL)
_KEY = re.compile(r'"((?:[^"\\]|\\.)*)"\s*:\s*')
_COMMA = re.compile(r"\s*,\s*")
_PARAMETER = re.compile(r"<parameter=([^>\n]+)>\n(.*?)\n</parameter>", re.DOTALL)


def _values(text: str, dialect: str) -> Iterator[tuple[str, int, int, bool]]:
    """Where the value of each argument stands in the text of a call: name, start, end, whether it is XML."""
    if dialect == "xml":
        for match in _PARAMETER.finditer(text):
            yield match[1], *match.span(2), True
        return
    place = _ARGUMENTS.match(text)
    while place and (key := _KEY.match(text, place.end())):
        start = key.end()
        value = _value_at(text, start, raw=False)
        if value is None:
            return
        yield json.loads(f'"{key[1]}"', strict=False), start, start + len(value), False
        place = _COMMA.match(text, start + len(value))

"""BFCL in several ways of asking: every question goes to every arm, and what came of it is kept in a file at once.

The file begins with a line that says what run it belongs to; then comes a line a question, with the outcomes of all
arms. A killed run leaves whole lines and at most one that is torn, which is dropped: who goes on loses one question.
As all arms have the same questions, they are compared in pairs: McNemar's test looks at those that one arm has right
and the other has not.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from itertools import combinations
from pathlib import Path
from typing import Any

from . import compare, evaluate
from .compare import Outcome
from .engines import Engine, Settings
from .errors import UserError
from .evaluate import Item
from .messages import ToolCall
from .tasks import Task
from .tools import Toolbox

# The single-turn questions about Python functions whose right answers come with BFCL.
CATEGORIES = (
    *("simple_python", "multiple", "parallel", "parallel_multiple", "irrelevance"),
    *("live_simple", "live_multiple", "live_parallel", "live_parallel_multiple", "live_irrelevance"),
)
ALL = "all"  # the name of all categories together
SIGNIFICANT = 0.05

# An arm that fails with so many questions in a row will fail with the next: its server has gone, say.
_PATIENCE = 3

# What a results file has of an outcome: what was asked can be made again, what it took cannot.
_KEPT = (
    *("arm", "answer", "taken_back", "calls", "valid", "right", "why", "finish"),
    *("prompt_tokens", "new_tokens", "first_token_s", "total_s"),
)


@dataclass(frozen=True)
class Row:
    """A question with what came of it, an outcome an arm in the order of the arms. ``right`` of each is known."""

    category: str
    id: str
    question: str
    outcomes: tuple[Outcome, ...]

    @property
    def whole(self) -> bool:
        """Whether every arm could be asked."""
        return all(outcome.finish for outcome in self.outcomes)

    def to_dict(self) -> dict[str, Any]:
        """The row as it stands in a results file."""
        outcomes = [_kept(outcome) for outcome in self.outcomes]
        return {"category": self.category, "id": self.id, "question": self.question, "outcomes": outcomes}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Row:
        """The row of a results file. Raises KeyError or TypeError for what is none."""
        outcomes = [
            Outcome(**{**each, "calls": tuple(ToolCall(**call) for call in each["calls"])}) for each in data["outcomes"]
        ]
        return cls(data["category"], data["id"], data["question"], tuple(outcomes))


def _kept(outcome: Outcome) -> dict[str, Any]:
    calls = [{"name": call.name, "arguments": call.arguments} for call in outcome.calls]
    return {**{name: getattr(outcome, name) for name in _KEPT}, "calls": calls}


# --- What is asked --------------------------------------------------------------------------------


def categories(words: Iterable[str]) -> list[str]:
    """The categories that are named, each once; ``live_*`` names several. Raises UserError for a word without any."""
    found: list[str] = []
    for word in words:
        named = [category for category in CATEGORIES if fnmatchcase(category, word)]
        if not named:
            raise UserError(f"no category {word!r}: there are {', '.join(CATEGORIES)}")
        found += named
    if not found:
        raise UserError(f"name a category: there are {', '.join(CATEGORIES)}")
    return list(dict.fromkeys(found))


def ask(
    engine: Engine,
    item: Item,
    arms: Sequence[str],
    settings: Settings,
    *,
    api_settings: Settings | None = None,
    system: str | None = None,
    options: dict[str, Any] | None = None,
) -> Row:
    """Put a question to every arm, and have the calls judged by BFCL's checker. ``api_settings`` are those of the
    arms that are somebody's API, where they differ.

    An answer is right when the checker accepts its calls and no attempt at a call in it is broken.
    """
    task = Task(item.id, item.messages, Toolbox(item.tools))
    apis = [arm for arm in arms if compare.is_api(arm)]
    found: dict[str, Outcome] = {}
    for some, how in ([arm for arm in arms if arm not in apis], settings), (apis, api_settings or settings):
        for outcome in compare.compare(engine, task, some, Toolbox(), how, system=system, options=options):
            found[outcome.arm] = _judged(item, outcome)
    return Row(item.category, item.id, task.question, tuple(found[arm] for arm in arms))


def _judged(item: Item, outcome: Outcome) -> Outcome:
    if not outcome.finish:
        return outcome
    if outcome.valid is False:  # what is broken is never handed to the checker
        return replace(outcome, right=False)
    wrong = evaluate.fault(item, [(call.name, call.arguments) for call in outcome.calls])
    return replace(outcome, right=wrong is None, why=outcome.why or wrong or "")


def run(items: Sequence[Item], results: Results, question: Callable[[Item], Row]) -> Iterator[Row]:
    """Ask what the results lack, and keep it; yields every new row when it is on disk.

    A row in which an arm could not be asked is yielded but not kept: a later run asks it again. Raises UserError
    (code 1) when an arm could not be asked several times in a row, or where the file cannot be written.
    """
    failed: dict[str, int] = {}
    for item in items:
        if item.id in results.rows:
            continue
        row = question(item)
        if row.whole:
            results.add(row)
        yield row
        for outcome in row.outcomes:
            failed[outcome.arm] = 0 if outcome.finish else failed.get(outcome.arm, 0) + 1
            if failed[outcome.arm] == _PATIENCE:
                raise UserError(f"{outcome.arm} failed {_PATIENCE} times in a row: {outcome.why}", code=1)


# --- What is kept ---------------------------------------------------------------------------------


class Results:
    """A results file, held until ``close`` or the end of the process. ``rows`` are those that it has, by id."""

    def __init__(self, path: Path, about: Mapping[str, Any], ids: Iterable[str]) -> None:
        """Open the file of the run that ``about`` (JSON values) describes, or begin it. ``ids`` are its questions.

        Raises UserError where the file is another run's or none of ours, and leaves it as it is; likewise where
        another process writes it, or where it cannot be written.
        """
        from filelock import FileLock, Timeout

        self.path = path
        self.rows: dict[str, Row] = {}
        self._lock = FileLock(f"{path}.lock", thread_local=False)
        try:
            self._lock.acquire(timeout=0)
            self._file = path.open("a+b")
            try:
                self._read(json.loads(json.dumps(about)), set(ids))
            except BaseException:
                self.close()
                raise
        except Timeout:
            raise UserError(f"{path} is in use by another run") from None
        except OSError as error:
            raise self._unwritable(error) from error

    def close(self) -> None:
        """Let others have the file."""
        self._file.close()
        self._lock.release()

    def add(self, row: Row) -> None:
        """Append a row; it is on disk when this returns. Raises UserError where it cannot be written."""
        try:
            self._append(row.to_dict())
        except OSError as error:
            raise self._unwritable(error) from error
        self.rows[row.id] = row

    def _append(self, record: Mapping[str, Any]) -> None:
        self._file.write(_line(record))
        self._file.flush()
        os.fsync(self._file.fileno())

    def _read(self, about: Mapping[str, Any], ids: set[str]) -> None:
        self._file.seek(0)
        data = self._file.read()
        *lines, torn = data.split(b"\n")
        if not lines:
            if not _line(about).startswith(torn):
                raise UserError(f"{self.path} is no results file: name another one")
            self._file.truncate(0)
            self._append(about)
            return
        self._same(lines[0], about)
        for number, line in enumerate(lines[1:], start=2):
            try:
                row = Row.from_dict(json.loads(line))
            except (ValueError, KeyError, TypeError) as error:
                raise UserError(f"{self.path}, line {number} is no result: {error}") from error
            if row.id not in ids or [outcome.arm for outcome in row.outcomes] != about["arms"]:
                raise UserError(f"{self.path}, line {number} is not of this run: {row.id}")
            self.rows[row.id] = row
        self._file.truncate(len(data) - len(torn))

    def _same(self, line: bytes, about: Mapping[str, Any]) -> None:
        """Raises UserError where the first line is that of another run, naming what is different."""
        try:
            other = json.loads(line)
        except ValueError:
            other = None
        if not isinstance(other, dict) or "arms" not in other:
            raise UserError(f"{self.path} is no results file: name another one")
        for key in {**about, **other}:
            if other.get(key) != about.get(key):
                was, now = (json.dumps(each.get(key), ensure_ascii=False) for each in (other, about))
                raise UserError(f"{self.path} is of another run: its {key} is {was}, not {now}; name another file")

    def _unwritable(self, error: OSError) -> UserError:
        return UserError(f"cannot write {self.path}: {error.strerror}", code=1)


def _line(record: Mapping[str, Any]) -> bytes:
    # ASCII alone: half a surrogate pair, which a model may write, is no UTF-8.
    return json.dumps(record).encode() + b"\n"


# --- What came of it ------------------------------------------------------------------------------


def summary(rows: Iterable[Row]) -> dict[str, dict[str, dict[str, Any]]]:
    """By category, and for all of them together, what is said of each arm: see ``compare.summary``, and besides
    ``low`` and ``high`` (the 95 % interval of the share that is right), and per right answer ``tokens_per_right``
    (read and written) and ``seconds_per_right``, None where none is right.
    """
    outcomes: dict[str, dict[str, list[Outcome]]] = {}
    for row in rows:
        for category in (row.category, ALL):
            for outcome in row.outcomes:
                outcomes.setdefault(category, {}).setdefault(outcome.arm, []).append(outcome)
    order = [category for category in (*CATEGORIES, ALL) if category in outcomes]
    return {category: {arm: _summary(of_arm) for arm, of_arm in outcomes[category].items()} for category in order}


def _summary(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    row = compare.summary(outcomes)
    low, high = evaluate.wilson(row["right"], row["judged"])
    tokens = sum(outcome.prompt_tokens + outcome.new_tokens for outcome in outcomes)
    seconds = sum(outcome.total_s for outcome in outcomes)
    return {
        **row,
        "low": low,
        "high": high,
        "tokens_per_right": tokens / row["right"] if row["right"] else None,
        "seconds_per_right": seconds / row["right"] if row["right"] else None,
    }


def pairs(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Every two arms over all questions: ``arms``; ``only``, how many each has right that the other has not; ``p``,
    McNemar's exact one; ``p_holm``, the same with respect to how many pairs are looked at; and ``better``, the arm that
    is better at SIGNIFICANT by ``p_holm``, or None where no difference is shown.
    """
    right: dict[str, list[bool | None]] = {}
    for row in rows:
        for outcome in row.outcomes:
            right.setdefault(outcome.arm, []).append(outcome.right)
    arms = list(combinations(right, 2))
    only = []
    for one, other in arms:
        verdicts = list(zip(right[one], right[other], strict=True))
        only.append((verdicts.count((True, False)), verdicts.count((False, True))))
    values = [mcnemar(*counts) for counts in only]
    return [
        {
            "arms": pair,
            "only": counts,
            "p": p,
            "p_holm": adjusted,
            "better": pair[counts[0] < counts[1]] if adjusted < SIGNIFICANT else None,
        }
        for pair, counts, p, adjusted in zip(arms, only, values, holm(values), strict=True)
    ]


def mcnemar(one: int, other: int) -> float:
    """The exact two-sided p of McNemar's test: how likely it is that a fair coin, thrown for every question that just
    one of two arms has right, falls at least as unevenly as ``one`` to ``other``.
    """
    total = one + other
    tail = sum(math.comb(total, count) for count in range(min(one, other) + 1))
    return min(1.0, 2 * tail / (1 << total))


def holm(values: Sequence[float]) -> list[float]:
    """Probabilities adjusted for how many there are (Holm, 1979), in the order of ``values``."""
    adjusted, highest = [0.0] * len(values), 0.0
    for rank, place in enumerate(sorted(range(len(values)), key=lambda each: values[each])):
        highest = max(highest, min(1.0, (len(values) - rank) * values[place]))
        adjusted[place] = highest
    return adjusted

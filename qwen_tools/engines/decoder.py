"""One answer, step by step: what the grammar forces, what is guessed right, and one token of the model's choice."""

from __future__ import annotations

from collections.abc import Callable, Container
from itertools import zip_longest
from typing import TYPE_CHECKING, NamedTuple

from ..guide.constraint import Constraint
from .kv_cache import KvCache
from .lookup import Lookup

if TYPE_CHECKING:
    import torch


class Step(NamedTuple):
    """The next ids, how many of them the grammar ``forced`` or a lookup ``guessed``, and why the answer ends, if so."""

    ids: list[int]
    forced: int = 0
    guessed: int = 0
    finish: str | None = None


class Decoder:
    """An answer behind ``prompt``, of at most ``limit`` tokens.

    ``choose`` is a function of sampling (see ``sampling.chooser``), ``end_ids`` are those that end a turn.
    """

    def __init__(
        self,
        cache: KvCache,
        prompt: list[int],
        limit: int,
        choose: Callable[[torch.Tensor, torch.Tensor], int],
        end_ids: Container[int],
        constraint: Constraint | None = None,
    ) -> None:
        import torch

        self.cached = cache.keep(prompt)
        self._cache = cache
        self._room = limit
        self._choose = choose
        self._end_ids = end_ids
        self._constraint = constraint
        self._lookup = Lookup(prompt)
        self._pending = prompt[self.cached :]  # not computed yet
        # With room for the whole answer, so that a token is added in constant time.
        self._ids = torch.tensor(prompt + [0] * limit, device=cache.device)
        self._length = len(prompt)

    def step(self) -> Step:
        """What comes next; one computation of the model at most."""
        constraint = self._constraint
        if constraint and (forced := constraint.forced()[: self._room]):
            constraint.consume(forced)
            self._add(forced)
            self._pending += forced
            return Step(forced, forced=len(forced))
        if constraint and constraint.done:
            return Step([], finish="stop")
        if not self._room:
            return Step([], finish="length")
        guess = self._guess()
        before = len(self._cache.ids) + len(self._pending)
        rows = self._cache.forward([*self._pending, *guess], 1 + len(guess))
        chosen: list[int] = []
        right, finish = 0, None
        # A guess stands when the model chooses the same; behind the first that does not stand all is void.
        for logits, guessed in zip_longest(rows, guess):
            if constraint:
                constraint.mask(logits)
            token = self._choose(logits, self._ids[: self._length])
            if token in self._end_ids:
                finish = "stop"
                break
            if constraint:
                constraint.consume([token])
            chosen.append(token)
            self._add([token])
            right += token == guessed
            if token != guessed or (constraint and constraint.done):
                break
        if guess:
            self._cache.crop(before + right)
        self._pending = chosen[right:]
        return Step(chosen, guessed=right, finish=finish)

    def _guess(self) -> list[int]:
        """Ids that may come next, as far as the grammar allows them."""
        guess = self._lookup.guess(self._room - 1) if self._cache.can_crop else []
        return guess[: self._constraint.allowed(guess)] if guess and self._constraint else guess

    def _add(self, ids: list[int]) -> None:
        for number in ids:
            self._ids[self._length] = number
            self._length += 1
        self._room -= len(ids)
        self._lookup.add(ids)

"""Prompt lookup: where the answer repeats what was there before, guess that it goes on as it did there.

A guess costs little, since computing a few tokens at once takes hardly longer than one (the weights are read
once), and the model's own choice decides: what is accepted is what would have been generated. The idea is Saxena's
prompt lookup decoding (2023), there for transformers' ``generate`` as ``prompt_lookup_num_tokens``.
"""

from __future__ import annotations

from collections.abc import Iterable

# How many tokens must be the same before a guess is made, and how many are guessed. 0 guesses switches it off.
MATCH = 3
GUESSES = 8


class Lookup:
    """All ids so far, indexed by every ``MATCH`` of them in a row: constant time a token."""

    def __init__(self, ids: Iterable[int]) -> None:
        self._ids: list[int] = []
        self._after: dict[tuple[int, ...], int] = {}
        self.add(ids)

    def add(self, ids: Iterable[int]) -> None:
        """The sequence goes on with these."""
        for number in ids:
            self._after[tuple(self._ids[-MATCH:])] = len(self._ids)
            self._ids.append(number)

    def guess(self, most: int) -> list[int]:
        """What followed where the last ``MATCH`` ids stood the last time before; at most ``most`` ids."""
        start = self._after.get(tuple(self._ids[-MATCH:]))
        return [] if start is None or most < 1 else self._ids[start : start + min(most, GUESSES)]

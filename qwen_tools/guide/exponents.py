"""Keeps numbers within what a float holds: ``1e999`` is JSON by its grammar, and no JSON reader takes it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy

# Exponents of two digits; those of three are mostly too large, and no tool wants the rest.
_DIGITS = 2
_EXPONENT = re.compile(rb"[0-9][eE][+-]?([0-9]{0,%d})$" % _DIGITS)
_TAIL = 8  # bytes of the answer that say whether an exponent is being written


class Exponents:
    """Follows one answer; ``tokens`` are the vocabulary's tokens as bytes."""

    def __init__(self, tokens: Sequence[bytes], starts: Sequence[Any], quote: int) -> None:
        self._tokens = tokens
        self._starts = starts
        self._quote = quote
        self._tail = b""

    def consume(self, ids: Sequence[int]) -> None:
        """The answer goes on with these."""
        self._tail = (self._tail + b"".join(self._tokens[number] for number in ids[-_TAIL:]))[-_TAIL:]

    def limit(self, allowed: numpy.ndarray[Any, Any]) -> None:
        """Take away from the ``allowed`` tokens (booleans, shape: vocabulary), in place, those that would make an
        exponent too long. Where a quotation mark may come it is no number but a string.
        """
        found = _EXPONENT.search(self._tail)
        if found is None or allowed[self._quote]:
            return
        longer = self._starts[len(found.group(1))]
        held = allowed[longer].copy()
        allowed[longer] = False
        if not allowed.any():  # digits that a pattern asks for
            allowed[longer] = held


def digit_starts(tokens: Sequence[bytes]) -> list[Any]:
    """For an exponent that has 0, 1, ... digits, the ids of the tokens that would make it too long."""
    import numpy

    leading = {number: len(text) - len(text.lstrip(b"0123456789")) for number, text in enumerate(tokens)}
    digits = {number: count for number, count in leading.items() if count}
    return [
        numpy.array([number for number, count in digits.items() if count + had > _DIGITS], dtype=int)
        for had in range(_DIGITS + 1)
    ]

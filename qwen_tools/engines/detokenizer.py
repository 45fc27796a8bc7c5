"""Ids to text as they come."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


class Detokenizer:
    """Ids to text, a constant cost a token; a character is given out only when all its bytes are there."""

    def __init__(self, tokenizer: Any) -> None:
        from tokenizers.decoders import DecodeStream

        self._tokenizer = tokenizer
        self._stream = DecodeStream(skip_special_tokens=False)
        self._held: list[int] = []

    def add(self, ids: Sequence[int]) -> str:
        """The text that became certain with these ids."""
        pieces = []
        for number in ids:
            self._held.append(number)
            piece = self._stream.step(self._tokenizer.backend_tokenizer, number)
            if piece is not None:
                pieces.append(piece)
                self._held.clear()
        return "".join(pieces)

    def rest(self) -> str:
        """What is left at the end: an incomplete character, shown as U+FFFD."""
        return str(self._tokenizer.decode(self._held, skip_special_tokens=False)) if self._held else ""

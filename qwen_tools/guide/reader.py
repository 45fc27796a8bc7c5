"""A tokenizer as llguidance reads it."""

from __future__ import annotations

from typing import Any


class Reader:
    """A tokenizer as llguidance reads it (``tokenizer``), and its tokens as ``bytes`` where they are known.

    A byte-level vocabulary, which all families here have, is handed over as bytes: that takes a tenth of the
    seconds that llguidance needs to read the tokenizer's file. Every added token is special there: a tag is
    never written by a value's text.
    """

    def __init__(self, tokenizer: Any, vocabulary: int, eos_ids: list[int]) -> None:
        from llguidance import LLTokenizer, TokenizerWrapper
        from tokenizers import decoders

        self.bytes: list[bytes] = []
        if isinstance(tokenizer.backend_tokenizer.decoder, decoders.ByteLevel):
            own = _Bytes(tokenizer, vocabulary, eos_ids)
            self.tokenizer = LLTokenizer(TokenizerWrapper(own), eos_token=eos_ids)
            self.bytes = own.tokens
        else:
            from llguidance.hf import from_tokenizer

            self.tokenizer = from_tokenizer(tokenizer, n_vocab=vocabulary, eos_token=eos_ids)


class _Bytes:
    """What llguidance's TokenizerWrapper asks for: every token as bytes, and text to ids."""

    def __init__(self, tokenizer: Any, size: int, eos_ids: list[int]) -> None:
        from tokenizers import Tokenizer

        backend = tokenizer.backend_tokenizer
        self.eos_token_id = eos_ids[0]
        self.bos_token_id = None
        added = tokenizer.added_tokens_decoder
        self.special_token_ids = sorted(added)
        vocabulary = backend.get_vocab(with_added_tokens=True)
        self.tokens = [b""] * size  # a model may have more logits than there are tokens
        letters = _byte_letters()
        for text, number in vocabulary.items():
            self.tokens[number] = text.encode() if number in added else text.translate(letters).encode("latin-1")
        # Without added tokens, so that no text becomes one, and without a normaliser, which would change it.
        self._bare = Tokenizer(backend.model)
        self._bare.pre_tokenizer = backend.pre_tokenizer

    def __call__(self, text: str) -> list[int]:
        return list(self._bare.encode(text, add_special_tokens=False).ids)


def _byte_letters() -> dict[int, str]:
    """The letters by which byte-level BPE writes bytes, as a table for ``str.translate``: printable ones of Latin-1
    stand for themselves, the others are counted up from U+0100 (GPT-2's scheme).
    """
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    return {0x100 + count: chr(byte) for count, byte in enumerate(others)}

"""Guides at work on a tokenizer, through llguidance."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..errors import BadSchemaError, UserError
from ..tools import Tool
from . import Guide, UnsupportedSchemaError
from .exponents import Exponents, digit_starts
from .fault import place
from .grammar import lark
from .reader import Reader

if TYPE_CHECKING:
    import torch


# The place of a fault is found by compiling parts of the schema; in a huge one that has an end.
_SEARCH_SECONDS = 2.0


class Grammars:
    """Compiled guides of one tokenizer, which is read once, at the first guided answer.

    ``dialect`` is that of the model's family, ``vocabulary`` the number of the model's logits.
    """

    def __init__(self, tokenizer: Any, vocabulary: int, eos_ids: Sequence[int], dialect: str = "json") -> None:
        self._tokenizer = tokenizer
        self._vocabulary = vocabulary
        self._eos_ids = list(eos_ids)
        self._dialect = dialect
        self._reader: Reader | None = None
        self._added: dict[str, int] = {}
        self._starts: list[Any] = []

    def constraint(self, guide: Guide) -> Constraint:
        """A fresh constraint for one answer.

        Raises UserError naming the tool and the keyword when a schema cannot be made a grammar.
        """
        import llguidance

        if self._reader is None:
            self._reader = Reader(self._tokenizer, self._vocabulary, self._eos_ids)
            self._starts = digit_starts(self._reader.bytes)
            self._added = self._tokenizer.get_added_vocab()
        try:
            matcher = llguidance.LLMatcher(self._reader.tokenizer, lark(guide, self._dialect, self._added.get))
        except UnsupportedSchemaError:
            raise self._refusal(guide, "") from None
        if matcher.is_error():
            raise self._refusal(guide, matcher.get_error())
        tokens = self._reader.bytes
        exponents = Exponents(tokens, self._starts, tokens.index(b'"')) if tokens else None
        return Constraint(matcher, self._vocabulary, exponents, guide)

    def _refusal(self, guide: Guide, fault: str) -> UserError:
        """The error that says which schema is at fault, where in it and why."""
        wholes: list[tuple[str | None, Any, Callable[[Any], Guide]]] = [
            (tool.name, tool.parameters, _guide_of(tool)) for tool in guide.tools
        ]
        if guide.schema is not None:
            wholes.append((None, guide.schema, lambda schema: Guide(schema=schema)))
        for tool, schema, as_guide in wholes:
            deadline = time.monotonic() + _SEARCH_SECONDS

            def fault_of(schema: Any, as_guide: Callable[[Any], Guide] = as_guide, deadline: float = deadline) -> str:
                if time.monotonic() > deadline:
                    raise TimeoutError
                return self._fault(as_guide(schema))

            if own := self._fault(as_guide(schema)):
                try:
                    where = f" at {'.'.join(place(schema, fault_of)) or 'its top'}"
                except TimeoutError:
                    where = ""
                what = "the schema of the answer" if tool is None else f"the schema of tool {tool!r}"
                message = f"{what} cannot guide the model{where}: {own}; simplify it, or use --guide off"
                return BadSchemaError(message, tool)
        return UserError(f"these tools cannot guide the model: {_reason(fault)}; use --guide off")

    def _fault(self, guide: Guide) -> str:
        """Why a guide does not compile, or nothing."""
        import llguidance

        try:
            grammar = lark(guide, self._dialect, self._added.get)
        except UnsupportedSchemaError as error:
            return str(error)
        fault = llguidance.LLMatcher.validate_grammar(grammar, self._reader.tokenizer if self._reader else None)
        # A warning is none.
        return "" if fault.startswith("WARNING") else _reason(fault)


def _guide_of(tool: Tool) -> Callable[[Any], Guide]:
    return lambda schema: Guide((replace(tool, parameters=schema),))


def _reason(fault: str) -> str:
    """Llguidance's message on one line, without the grammar and the pattern it quotes."""
    own_words = re.split(r"\n +\d+ \|", fault)[0]
    own_words = re.sub(r"^at \d+\(\d+\): (failed to compile JSON schema: )?", "", own_words)
    own_words = re.sub(r"\n.*\nerror:", "", own_words, flags=re.DOTALL)
    return " ".join(own_words.partition(". Enable")[0].split())


class Constraint:
    """One answer's place in a grammar."""

    def __init__(self, matcher: Any, vocabulary: int, exponents: Exponents | None, guide: Guide) -> None:
        self._guide = guide
        self._matcher = matcher
        self._vocabulary = vocabulary
        self._exponents = exponents

    @property
    def done(self) -> bool:
        """Whether nothing but the end of the turn may follow."""
        return bool(self._matcher.is_stopped())

    def forced(self) -> list[int]:
        """Token ids that the grammar leaves no choice about; they still have to be consumed."""
        return list(self._matcher.compute_ff_tokens())

    def allowed(self, ids: Sequence[int]) -> int:
        """How many of these ids, from the first, the grammar would take."""
        return int(self._matcher.validate_tokens(list(ids)))

    def consume(self, ids: Sequence[int]) -> None:
        """Move on over ids that the grammar allows. Raises UserError as ``mask`` does."""
        if not self._matcher.consume_tokens(list(ids)):
            self._check()
            raise RuntimeError("the guide refused its own token")
        if self._exponents:
            self._exponents.consume(ids)

    def mask(self, logits: torch.Tensor) -> None:
        """Set the logits (shape: vocabulary) of tokens that may not come next to minus infinity, in place.

        Raises UserError when the grammar outgrows llguidance's limits, which shows only now.
        """
        import numpy
        import torch

        bits = numpy.frombuffer(self._matcher.compute_bitmask(), dtype=numpy.uint8)
        self._check()
        allowed = numpy.unpackbits(bits, bitorder="little")[: self._vocabulary].view(bool)
        if self._exponents:
            self._exponents.limit(allowed)
        logits.masked_fill_(torch.from_numpy(~allowed).to(logits.device), float("-inf"))

    def _check(self) -> None:
        if self._matcher.is_error():
            fault = _reason(self._matcher.get_error().partition("\n<state>")[0])
            message = f"the schema asks too much of the guide: {fault}; simplify it, or use --guide off"
            schemas = [tool.name for tool in self._guide.tools] + [None] * (self._guide.schema is not None)
            # Of several nobody knows which one it was.
            raise BadSchemaError(message, schemas[0]) if len(schemas) == 1 else UserError(message)

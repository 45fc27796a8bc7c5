"""Guided calls: which tokens may come next, so that even a weak model writes a valid call.

``lark`` writes the grammar as text; ``Constraint`` runs it on a tokenizer through llguidance
(extra ``guide``). When a guide is wanted is the loop's decision, and how its tokens
reach the model is the engine's.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .errors import UserError
from .tools import Tool

if TYPE_CHECKING:
    import torch

# What Qwen's templates and training data use between JSON tokens.
_JSON_STYLE = {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": "}


@dataclass(frozen=True)
class Guide:
    """What an answer must be: one call of ``tools`` (several when ``parallel``), or JSON that ``schema`` accepts, or
    either where both are given. With neither it is text that does not begin like a call; as ``prose`` it has no
    braces, brackets, tags or code at all.
    """

    tools: tuple[Tool, ...] = ()
    parallel: bool = False
    prose: bool = False
    schema: Mapping[str, Any] | None = None


def available() -> bool:
    """Whether llguidance is installed."""
    from importlib.util import find_spec

    return find_spec("llguidance") is not None


def lark(guide: Guide, token_id: Callable[[str], int | None]) -> str:
    """The guide as an llguidance Lark grammar.

    ``token_id`` gives the id of a tag that is one token, else None: llguidance
    wants added tokens by id (``<[151657]>``) and ordinary text as a string.
    """

    def tag(text: str) -> str:
        number = token_id(text)
        return json.dumps(text) if number is None else f"<[{number}]>"

    if not guide.tools and guide.schema is None:
        # The wrong forms of a call begin with a brace, a bracket, a tag or a fence.
        rest = "[^{}\\[\\]<`]*" if guide.prose else "(?s:.*)"
        return f"start: /[^\\s{{}}\\[\\]<`]{rest}/\n"
    lines = ["start: " + " | ".join(["calls"] * bool(guide.tools) + ["answer"] * (guide.schema is not None))]
    if guide.schema is not None:
        lines.append(f"answer: {_json(guide.schema)}")
    if guide.tools:
        calls = " | ".join(f"call_{index}" for index in range(len(guide.tools)))
        opener, closer = tag("<tool_call>"), tag("</tool_call>")
        lines.append('calls: block ("\\n" block)*' if guide.parallel else "calls: block")
        lines.append(f'block: {opener} "\\n" ({calls}) "\\n" {closer}')
    for index, tool in enumerate(guide.tools):
        head = json.dumps({"name": tool.name}, ensure_ascii=False)[:-1] + ', "arguments": '
        lines.append(f'call_{index}: {json.dumps(head, ensure_ascii=False)} args_{index} "}}"')
        lines.append(f"args_{index}: {_json(_closed(tool.parameters))}")
    return "\n".join(lines) + "\n"


def _json(schema: Mapping[str, Any]) -> str:
    """JSON that a schema accepts, in a rule of the grammar."""
    return "%json " + json.dumps({**schema, "x-guidance": _JSON_STYLE}, ensure_ascii=False)


def _closed(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """The schema without properties it does not name: valid all the same, and a weak model
    cannot wander off into arguments of its own.
    """
    if not schema:
        return {"type": "object", "properties": {}, "additionalProperties": False}
    if "properties" in schema and not schema.keys() & {
        "additionalProperties",
        "allOf",
        "anyOf",
        "oneOf",
        "$ref",
    }:
        return {**schema, "additionalProperties": False}
    return schema


class Grammars:
    """Compiled guides of one tokenizer. Reading the tokenizer takes seconds, so it is done once,
    at the first guided call.
    """

    def __init__(self, tokenizer: Any, vocabulary: int, eos_ids: Sequence[int]) -> None:
        self._tokenizer = tokenizer
        self._vocabulary = vocabulary
        self._eos_ids = list(eos_ids)
        self._reader: Any = None

    def constraint(self, guide: Guide) -> Constraint:
        """A fresh constraint for one answer.

        Raises UserError when a tool's schema cannot be made a grammar.
        """
        import llguidance

        if self._reader is None:
            from llguidance.hf import from_tokenizer

            self._reader = from_tokenizer(self._tokenizer, n_vocab=self._vocabulary, eos_token=self._eos_ids)
        added = {token.content: number for number, token in self._tokenizer.added_tokens_decoder.items()}
        grammar = lark(guide, added.get)
        matcher = llguidance.LLMatcher(self._reader, grammar)
        if matcher.is_error():
            raise self._refusal(guide, matcher.get_error(), added.get)
        return Constraint(matcher, self._vocabulary)

    def _refusal(self, guide: Guide, fault: str, token_id: Callable[[str], int | None]) -> UserError:
        import llguidance

        for tool in guide.tools:
            own = llguidance.LLMatcher.validate_grammar(lark(Guide((tool,)), token_id), self._reader)
            if own:
                return UserError(
                    f"the schema of tool {tool.name!r} cannot guide the model: {_reason(own)}; "
                    "simplify it, or use --guide off"
                )
        if guide.schema is not None:
            return UserError(f"the schema of the answer cannot guide the model: {_reason(fault)}; simplify it")
        return UserError(f"these tools cannot guide the model: {_reason(fault)}; use --guide off")


def _reason(fault: str) -> str:
    """Llguidance's message, which names the keyword, on one line and without the grammar it quotes."""
    own_words = re.split(r"\n +\d+ \|", fault)[0]
    return " ".join(re.sub(r"^at \d+\(\d+\): ", "", own_words).split())


class Constraint:
    """One answer's place in a grammar."""

    def __init__(self, matcher: Any, vocabulary: int) -> None:
        self._matcher = matcher
        self._vocabulary = vocabulary

    @property
    def done(self) -> bool:
        """Whether nothing but the end of the turn may follow."""
        return bool(self._matcher.is_stopped())

    def forced(self) -> list[int]:
        """Token ids that the grammar leaves no choice about; they still have to be consumed."""
        return list(self._matcher.compute_ff_tokens())

    def consume(self, ids: Sequence[int]) -> None:
        """Move on over ids that the grammar allows. Raises UserError as ``mask`` does."""
        if not self._matcher.consume_tokens(list(ids)):
            self._check()
            raise RuntimeError("the guide refused its own token")

    def mask(self, logits: torch.Tensor) -> None:
        """Set the logits (shape: vocabulary) of tokens that may not come next to minus infinity, in place.

        Raises UserError when the schema's grammar outgrows llguidance's limits, which shows only now.
        """
        import numpy
        import torch

        bits = numpy.frombuffer(self._matcher.compute_bitmask(), dtype=numpy.uint8)
        self._check()
        allowed = numpy.unpackbits(bits, bitorder="little")[: self._vocabulary].astype(bool)
        logits.masked_fill_(torch.from_numpy(~allowed).to(logits.device), float("-inf"))

    def _check(self) -> None:
        if self._matcher.is_error():
            fault = self._matcher.get_error().splitlines()[0]
            raise UserError(f"the schema asks too much of the guide: {_reason(fault)}; simplify it, or use --guide off")

"""Engines: what turns a prompt into the next tokens.

An engine knows nothing of tools or turns. It is given a whole prompt and yields pieces of text
until the model ends its turn, the length limit is reached, or the caller stops asking.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from ..events import Event, Usage
from ..guide import Guide


@dataclass(frozen=True)
class Piece:
    """Some more of the answer: ``text`` may lag behind ``ids`` by an unfinished character.

    ``usage`` counts up to here. The last piece has ``finish`` (``stop`` or ``length``).
    End-of-turn tokens are in neither ``text`` nor ``ids``. An API's answer comes as ``events``, read already, and
    not as text; ``meta`` of the last piece is then the message's.
    """

    text: str
    ids: tuple[int, ...] = ()
    usage: Usage = field(default_factory=Usage)
    finish: str | None = None
    events: tuple[Event, ...] | None = None
    meta: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Settings:
    """How to generate. None means what the model's own generation_config says."""

    max_new_tokens: int = 1024
    do_sample: bool | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    seed: int | None = None


class Engine(Protocol):
    """What the loop needs of an engine."""

    name: str
    family: str

    @property
    def tokenizer(self) -> Any:
        """The model's tokenizer, or None when the engine works on text."""

    @property
    def can_guide(self) -> bool:
        """Whether ``generate`` obeys a guide."""

    def generate(
        self,
        prompt: Any,  # a Prompt or TemplatePrompt; for an API its own ApiPrompt
        settings: Settings,
        *,
        begun: Sequence[int] = (),
        guide: Guide | None = None,
    ) -> Iterator[Piece]:
        """Continue ``prompt``, behind the ``begun`` ids of the answer where there are some.

        Closing the iterator stops the generation; what was computed stays cached.
        """


def open_engine(model: str | None, *, family: str | None = None, device: str = "auto", dtype: str = "auto") -> Engine:
    """The engine for what the user named: see ``models`` for the names, ``scripted:FILE``, and ``openai:URL#MODEL`` or
    ``anthropic:URL#MODEL`` for somebody's chat API.

    Raises UserError: code 3 when the model is not to be had, 2 when the name makes no sense.
    """
    if model and model.startswith("scripted:"):
        from .scripted import ScriptedEngine

        return ScriptedEngine.from_file(model.removeprefix("scripted:"), family or "qwen2.5")

    if model and model.startswith(("openai:", "anthropic:")):
        from .api import ApiEngine

        return ApiEngine.open(model)

    from .. import models

    source = models.resolve(model)
    folder = models.prepare(source)
    from .transformers import load

    return load(folder, name=source.name, family=family, device=device, dtype=dtype)

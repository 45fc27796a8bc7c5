"""Engines: what turns a prompt into the next tokens.

An engine knows nothing of tools or turns. It is given a whole prompt and yields pieces of text
until the model ends its turn, the length limit is reached, or the caller stops asking.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from ..errors import UserError
from ..events import Event, Usage
from ..guide import Guide
from ..models import Progress


@dataclass(frozen=True)
class Piece:
    """Some more of the answer: ``text`` may lag behind ``ids`` by an unfinished character.

    ``usage`` counts up to here. The last piece has ``finish`` (``stop`` or ``length``), and ``stop`` when it was
    a stop string that ended the answer. End-of-turn tokens and that string are in neither ``text`` nor ``ids``.
    An API's answer comes as ``events``, read already, and not as text; the last piece then has the message's ``meta``.
    """

    text: str
    ids: tuple[int, ...] = ()
    usage: Usage = field(default_factory=Usage)
    finish: str | None = None
    stop: str | None = None
    events: tuple[Event, ...] | None = None
    meta: Mapping[str, Any] = field(default_factory=dict)


# What a setting must be, in words and as a test.
_RANGES: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "max_new_tokens": ("at least 1", lambda value: value >= 1),
    "temperature": ("0 or more", lambda value: 0 <= value < math.inf),
    "top_p": ("above 0 and at most 1", lambda value: 0 < value <= 1),
    "top_k": ("0 (off) or more", lambda value: value >= 0),
    "min_p": ("from 0 to 1", lambda value: 0 <= value <= 1),
    "repetition_penalty": ("above 0", lambda value: 0 < value < math.inf),
    "seed": ("from 0 to 2**64 - 1", lambda value: 0 <= value < 2**64),
}


@dataclass(frozen=True)
class Settings:
    """How to generate. None means what the model's own generation_config says.

    ``temperature`` 0 means the likeliest token, always. To give ``temperature``, ``top_p``, ``top_k`` or ``min_p``
    means to sample, unless ``do_sample`` says otherwise. ``stop`` are strings at which the answer ends.
    Raises UserError for a value out of range.
    """

    max_new_tokens: int = 1024
    do_sample: bool | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    seed: int | None = None
    min_p: float | None = None
    repetition_penalty: float | None = None
    stop: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name, (wanted, holds) in _RANGES.items():
            value = getattr(self, name)
            if value is not None and not holds(value):
                raise UserError(f"{name} must be {wanted}, not {value}")
        if not all(self.stop):
            raise UserError("a stop string must not be empty")

    def defaulting_to(self, do_sample: bool | None) -> Settings:
        """These, with ``do_sample`` where nothing in them says how a token is chosen."""
        said = (self.do_sample, self.temperature, self.top_p, self.top_k, self.min_p)
        return self if any(each is not None for each in said) else replace(self, do_sample=do_sample)


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


def open_engine(
    model: str | None,
    *,
    family: str | None = None,
    device: str = "auto",
    dtype: str = "auto",
    progress: Progress | None = None,
    quantize: str = "auto",
) -> Engine:
    """The engine for what the user named: see ``models`` for the names; ``scripted:FILE``; ``completions:URL[#MODEL]``
    for a server of raw prompts; ``openai:URL#MODEL`` or ``anthropic:URL#MODEL`` for somebody's chat API. ``progress``
    is told how a model is made ready, where that takes long. ``quantize`` is ``none``, ``int8``, ``int4`` or ``auto``:
    int8 for the embedded models on a CPU, unless ``dtype`` says otherwise.

    Raises UserError: code 3 when the model is not to be had, 2 when the name makes no sense.
    """
    if model and model.startswith("scripted:"):
        from .scripted import ScriptedEngine

        return ScriptedEngine.from_file(model.removeprefix("scripted:"), family or "qwen2.5")

    if model and model.startswith(("openai:", "anthropic:")):
        from .api import ApiEngine

        return ApiEngine.open(model)

    if model and model.startswith("completions:"):
        from .completions import connect

        return connect(model.removeprefix("completions:"), family)

    from .. import models

    source = models.resolve(model)
    folder = models.prepare(source, progress)
    from . import int8
    from .transformers import device_of, load

    if quantize == "auto":
        # Those come in 4 bits: rounded to 8 they answer as before, and twice as fast.
        rounded = source.kind == "embedded" and dtype == "auto" and device_of(device).type == "cpu" and int8.is_fast()
        quantize = "int8" if rounded else "none"
    return load(
        folder,
        name=source.name,
        family=family,
        device=device,
        dtype=dtype,
        quantize=None if quantize == "none" else quantize,
    )

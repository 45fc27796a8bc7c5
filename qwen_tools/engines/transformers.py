"""The engine that runs a model here, through transformers, on a CPU or a GPU.

It decodes by itself instead of calling ``generate``, because three things are needed there that a
call from outside cannot have: the KV cache of the last prompt is kept and cropped to what the next
prompt shares with it (``kv_cache``); tokens that a grammar forces, or that a lookup in what was there guesses
right, are computed together in one pass (``decoder``); and the caller may stop after any token.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import UserError
from ..events import Usage
from ..families import detect, get
from ..guide import Guide, available
from ..guide.constraint import Constraint, Grammars
from ..prompt import Prompt
from ..template import TemplatePrompt
from . import Piece, Settings
from .decoder import Decoder
from .detokenizer import Detokenizer
from .kv_cache import KvCache
from .sampling import chooser
from .stops import until_stop

if TYPE_CHECKING:
    import torch


class TransformersEngine:
    """A causal language model and its tokenizer, with the KV cache of the last prompt."""

    def __init__(self, model: Any, tokenizer: Any, family: str, name: str) -> None:
        self.name = name
        self.family = family
        self.tokenizer = tokenizer
        self._model = model
        self._end_ids = _end_ids(model, tokenizer)
        self._grammars = Grammars(tokenizer, model.config.vocab_size, sorted(self._end_ids), get(family).dialect)
        self._cache = KvCache(model)

    @property
    def can_guide(self) -> bool:
        """Whether llguidance is installed."""
        return available()

    def generate(
        self,
        prompt: Prompt | TemplatePrompt,
        settings: Settings,
        *,
        begun: Sequence[int] = (),
        guide: Guide | None = None,
    ) -> Iterator[Piece]:
        """See Engine. An answer ends with ``length`` where the model's context is full.

        Raises UserError before anything is computed: code 1 when the prompt does not fit into the context, 2 when
        no answer of ``max_new_tokens`` ever could.
        """
        ids = [*prompt.ids(self.tokenizer), *begun]
        context = self._model.config.max_position_embeddings
        if settings.max_new_tokens > context:
            raise UserError(
                f"{self.name} has room for {context} tokens: {settings.max_new_tokens} new ones are too many"
            )
        if len(ids) >= context:
            raise UserError(
                f"the conversation has {len(ids)} tokens and {self.name} reads at most "
                f"{context}; start a new one or offer fewer tools",
                code=1,
            )
        limit = min(settings.max_new_tokens, context - len(ids))
        constraint = self._grammars.constraint(guide) if guide else None
        return until_stop(self._decode(ids, limit, settings, constraint), settings.stop)

    def _decode(
        self, ids: list[int], limit: int, settings: Settings, constraint: Constraint | None
    ) -> Generator[Piece, None, None]:
        """Generate at most ``limit`` tokens behind ``ids``."""
        started = time.perf_counter()
        choose = chooser(settings, self._model.generation_config)
        decoder = Decoder(self._cache, ids, limit, choose, self._end_ids, constraint)
        usage = Usage(prompt_tokens=len(ids), cached_tokens=decoder.cached)
        text = Detokenizer(self.tokenizer)
        finish = None
        while finish is None:
            step = decoder.step()
            finish = step.finish
            if not (step.forced or usage.prefill_s):
                usage = replace(usage, prefill_s=time.perf_counter() - started)
            usage = replace(
                usage,
                forced_tokens=usage.forced_tokens + step.forced,
                lookup_tokens=usage.lookup_tokens + step.guessed,
                decode_s=time.perf_counter() - started - usage.prefill_s,
            )
            # What is forced is one piece; of the rest the caller may want some and not the others.
            for piece in [step.ids] if step.forced else [[number] for number in step.ids]:
                usage = replace(usage, new_tokens=usage.new_tokens + len(piece))
                yield Piece(text.add(piece), tuple(piece), usage)
        yield Piece(text.rest(), (), usage, finish)

    def forget(self) -> None:
        """Forget what is cached, so that the next prompt costs what it costs by itself."""
        self._cache.crop(0)

    @property
    def end_ids(self) -> list[int]:
        """The ids that end a turn."""
        return sorted(self._end_ids)

    def next_log_probs(self, ids: Sequence[int]) -> torch.Tensor:
        """The natural log probability of every token to follow ``ids`` (shape: vocabulary), at temperature 1."""
        ids = list(ids)
        return self._cache.forward(ids[self._cache.keep(ids) :])[-1].log_softmax(-1)

    def log_probs(self, ids: Sequence[int], rows: Sequence[Sequence[int]]) -> list[list[float]]:
        """For each row the natural log probability of each of its tokens behind ``ids`` and the tokens before it, at
        temperature 1. ``ids`` are computed once; the rows go through the model together, a few at a time.
        """
        ids = list(ids)
        if new := ids[self._cache.keep(ids) : -1]:
            self._cache.forward(new)
        return list(self._cache.score(ids[-1], rows))


def _end_ids(model: Any, tokenizer: Any) -> set[int]:
    """All ids that end a turn: what the model's configuration says, and the ChatML markers."""
    configured = model.generation_config.eos_token_id
    ids = set(configured if isinstance(configured, list) else [configured] if configured is not None else [])
    vocabulary = tokenizer.get_added_vocab()
    return ids | {vocabulary[text] for text in ("<|im_end|>", "<|endoftext|>") if text in vocabulary}


def load(
    folder: Path,
    *,
    name: str,
    family: str | None = None,
    device: str = "auto",
    dtype: str = "auto",
    quantize: str | None = None,
) -> TransformersEngine:
    """Load a model folder that transformers can read.

    ``device`` is ``auto``, ``cpu`` or ``cuda[:N]``; ``dtype`` is ``auto``, ``float32``, ``bfloat16`` or ``float16``;
    ``quantize`` is None, ``int8`` or, on CUDA, ``int4``. Raises UserError when something of it is not to be had.
    """
    import torch
    import transformers

    log: Any = transformers.logging  # not typed
    log.set_verbosity_error()
    log.disable_progress_bar()
    target = device_of(device)
    if dtype == "auto":
        chosen = native_dtype(target.type)
    elif isinstance(getattr(torch, dtype, None), torch.dtype):
        chosen = getattr(torch, dtype)
    else:
        raise UserError(f"unknown dtype {dtype!r}: use auto, float32, bfloat16 or float16")
    if quantize and dtype != "auto":
        raise UserError("--quantize chooses the number format itself: leave --dtype out")
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
        model = _model(folder, target, chosen, quantize)
    except (OSError, ValueError) as error:
        reason = str(error).strip().splitlines()[0]
        raise UserError(f"cannot load {name}: {reason}", code=3) from error
    if family is None:
        family = detect(tokenizer.chat_template or "", tokenizer.get_added_vocab())
    return TransformersEngine(model, tokenizer, family, name)


def _model(folder: Path, device: torch.device, dtype: torch.dtype, quantize: str | None) -> Any:
    """The weights, ready on the device."""
    import transformers

    auto: Any = transformers.AutoModelForCausalLM
    if device.type == "cpu" and quantize == "int8":
        from .. import models
        from . import int8

        return int8.read(models.derived(folder, "int8", lambda part: int8.write(auto.from_pretrained(folder), part)))
    if device.type == "cpu" and quantize:
        raise UserError(f"on a CPU there is no --quantize {quantize}: int8 is as fast and answers better")
    if quantize:
        return auto.from_pretrained(
            folder, dtype=dtype, device_map=str(device), **_bitsandbytes(quantize, dtype)
        ).eval()
    if device.type == "cuda":
        # Straight to the device, with no copy in main memory.
        return auto.from_pretrained(folder, dtype=dtype, device_map=str(device), attn_implementation="sdpa").eval()
    return auto.from_pretrained(folder, dtype=dtype).eval()


def _bitsandbytes(quantize: str, dtype: torch.dtype) -> dict[str, Any]:
    """How transformers is told to quantise on CUDA."""
    from importlib.util import find_spec

    import transformers

    if find_spec("bitsandbytes") is None:
        raise UserError("--quantize on CUDA needs another package: pip install bitsandbytes", code=3)
    config: Any = transformers.BitsAndBytesConfig
    if quantize == "int8":
        return {"quantization_config": config(load_in_8bit=True)}
    return {"quantization_config": config(load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_compute_dtype=dtype)}


def device_of(wanted: str) -> torch.device:
    """The device that ``--device`` names. Raises UserError when there is none."""
    import torch

    if wanted == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(wanted)
    except RuntimeError as error:
        raise UserError(f"unknown device {wanted!r}: use auto, cpu or cuda[:N]") from error
    if device.type == "cuda" and not (torch.cuda.is_available() and (device.index or 0) < torch.cuda.device_count()):
        raise UserError(f"no CUDA device {wanted!r} here: use --device cpu, or install torch's CUDA build", code=3)
    return device


def native_dtype(device: str) -> torch.dtype:
    """The number format in which a device (``cpu`` or ``cuda``) computes fast: bfloat16, or float32 on a CPU that does
    not multiply bfloat16 itself.
    """
    import torch

    capabilities: dict[str, Any] = getattr(torch.cpu, "get_capabilities", dict)()
    fast = device == "cuda" or capabilities.get("avx512_bf16") or capabilities.get("amx_bf16")
    return torch.bfloat16 if fast else torch.float32

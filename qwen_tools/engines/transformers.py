"""The engine that runs a model here, through transformers, on a CPU or a GPU. The only importer of torch.

It decodes by itself instead of calling ``generate``, because three things are needed there that a
call from outside cannot have: the KV cache of the last prompt is kept and cropped to what the next
prompt shares with it; tokens that a grammar forces are computed together in one pass; and
the caller may stop after any token.
"""

from __future__ import annotations

import inspect
import time
from collections.abc import Generator, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import guide as guides
from ..errors import UserError
from ..events import Usage
from ..families import detect
from ..guide import Guide
from ..prompt import Prompt
from ..template import TemplatePrompt
from . import Piece, Settings
from .sampling import chooser
from .stops import until_stop

if TYPE_CHECKING:
    import torch

# A long prompt is computed in parts, so that Ctrl-C is heard between them.
_PREFILL_TOKENS = 512


class TransformersEngine:
    """A causal language model and its tokenizer, with the KV cache of the last prompt."""

    def __init__(self, model: Any, tokenizer: Any, family: str, name: str) -> None:
        from transformers import DynamicCache

        self.name = name
        self.family = family
        self.tokenizer = tokenizer
        self._model = model
        self._end_ids = _end_ids(model, tokenizer)
        self._grammars = guides.Grammars(tokenizer, model.config.vocab_size, sorted(self._end_ids))
        self._cache = DynamicCache(config=model.config)
        self._cached: list[int] = []
        # Renamed in transformers 5.24, the first for which Python 3.10 is too old.
        arguments = inspect.signature(model.forward).parameters
        self._cache_argument = "cache" if "cache" in arguments else "past_key_values"

    @property
    def can_guide(self) -> bool:
        """Whether llguidance is installed."""
        return guides.available()

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
        self, ids: list[int], limit: int, settings: Settings, constraint: guides.Constraint | None
    ) -> Generator[Piece, None, None]:
        """Generate at most ``limit`` tokens behind ``ids``."""
        import torch

        choose = chooser(settings, self._model.generation_config)
        text = _Detokenizer(self.tokenizer)
        started = time.perf_counter()
        cached = self._keep(ids)
        pending = ids[cached:]
        # Room for the whole answer: a token is added in constant time.
        sequence = torch.tensor(ids + [0] * limit, device=self._model.device)
        length = len(ids)
        usage = Usage(prompt_tokens=len(ids), cached_tokens=cached)
        finish = "length"
        while usage.new_tokens < limit:
            chosen = constraint.forced()[: limit - usage.new_tokens] if constraint else []
            forced = len(chosen)
            if constraint and constraint.done:
                finish = "stop"
                break
            if not chosen:
                logits = self._forward(pending)
                pending = []
                if not usage.prefill_s:
                    usage = replace(usage, prefill_s=time.perf_counter() - started)
                if constraint:
                    constraint.mask(logits)
                token = choose(logits, sequence[:length])
                if token in self._end_ids:
                    finish = "stop"
                    break
                chosen = [token]
            if constraint:
                constraint.consume(chosen)
            pending += chosen
            sequence[length : length + len(chosen)] = torch.tensor(chosen)
            length += len(chosen)
            usage = replace(
                usage,
                new_tokens=usage.new_tokens + len(chosen),
                forced_tokens=usage.forced_tokens + forced,
                decode_s=time.perf_counter() - started - usage.prefill_s,
            )
            yield Piece(text.add(chosen), tuple(chosen), usage)
        usage = replace(usage, decode_s=time.perf_counter() - started - usage.prefill_s)
        yield Piece(text.rest(), (), usage, finish)

    def _keep(self, ids: list[int]) -> int:
        """Crop the KV cache to the longest prefix it shares with ``ids``, short of the last id,
        whose logits are needed. Returns the length kept.
        """
        length = 0
        for ours, theirs in zip(ids[:-1], self._cached, strict=False):
            if ours != theirs:
                break
            length += 1
        self._crop(length)
        return length

    def _crop(self, length: int) -> None:
        """Cut the KV cache to ``length`` tokens, layer by layer: a computation that was interrupted
        leaves layers of different lengths, but all hold at least what was complete.
        """
        layers: list[Any] = self._cache.layers
        if all(hasattr(layer, "keys") and hasattr(layer, "values") for layer in layers):
            for layer in layers:
                if layer.is_initialized:
                    layer.keys = layer.keys[..., :length, :]
                    layer.values = layer.values[..., :length, :]
        else:
            self._cache.crop(length - self._cache.get_seq_length())
        del self._cached[length:]

    def _forward(self, ids: list[int]) -> torch.Tensor:
        """Compute ``ids`` behind what is cached; returns the logits after the last one (shape: vocabulary)."""
        import torch

        for start in range(0, len(ids), _PREFILL_TOKENS):
            part = ids[start : start + _PREFILL_TOKENS]
            try:
                with torch.inference_mode():
                    logits = self._model(
                        input_ids=torch.tensor([part], device=self._model.device),
                        use_cache=True,
                        logits_to_keep=1,
                        **{self._cache_argument: self._cache},
                    ).logits
            except BaseException:
                self._crop(len(self._cached))
                raise
            self._cached += part
        # A copy outside inference mode: masks and samplers write into it.
        result: torch.Tensor = logits[0, -1].to(torch.float32, copy=True)
        return result


class _Detokenizer:
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


def _end_ids(model: Any, tokenizer: Any) -> set[int]:
    """All ids that end a turn: what the model's configuration says, and the ChatML markers."""
    configured = model.generation_config.eos_token_id
    ids = set(configured if isinstance(configured, list) else [configured] if configured is not None else [])
    vocabulary = tokenizer.get_added_vocab()
    return ids | {vocabulary[text] for text in ("<|im_end|>", "<|endoftext|>") if text in vocabulary}


def load(
    folder: Path, *, name: str, family: str | None = None, device: str = "auto", dtype: str = "auto"
) -> TransformersEngine:
    """Load a model folder (or hub id) that transformers can read.

    ``device`` is ``auto``, ``cpu`` or ``cuda[:N]``; ``dtype`` is ``auto``, ``float32``, ``bfloat16`` or ``float16``.
    Raises UserError when the device or the family is not to be had.
    """
    import torch
    import transformers

    log: Any = transformers.logging  # not typed
    log.set_verbosity_error()
    log.disable_progress_bar()
    target = _device(device)
    if dtype == "auto":
        chosen = torch.bfloat16 if target.type == "cuda" or _cpu_has_bfloat16() else torch.float32
    elif isinstance(getattr(torch, dtype, None), torch.dtype):
        chosen = getattr(torch, dtype)
    else:
        raise UserError(f"unknown dtype {dtype!r}: use auto, float32, bfloat16 or float16")
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
        model: Any = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=chosen)
    except (OSError, ValueError) as error:
        reason = str(error).strip().splitlines()[0]
        raise UserError(f"cannot load {name}: {reason}", code=3) from error
    model.to(device=target).eval()
    if family is None:
        family = detect(tokenizer.chat_template or "", tokenizer.get_added_vocab())
    return TransformersEngine(model, tokenizer, family, name)


def _device(wanted: str) -> torch.device:
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


def _cpu_has_bfloat16() -> bool:
    """Whether the CPU multiplies bfloat16 itself; without that it is slower than float32."""
    import torch

    capabilities: dict[str, Any] = getattr(torch.cpu, "get_capabilities", dict)()
    return bool(capabilities.get("avx512_bf16") or capabilities.get("amx_bf16"))

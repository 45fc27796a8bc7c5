"""Which token comes next: the likeliest, or one drawn at random. transformers' own processors do the work."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from . import Settings

if TYPE_CHECKING:
    import torch


def chooser(settings: Settings, defaults: Any) -> Callable[[torch.Tensor, torch.Tensor], int]:
    """A function (logits, ids so far) -> next id, for logits of shape (vocabulary,) and ids of shape (length,).

    ``defaults`` is the model's generation_config; what it leaves open is off. The order is that of
    transformers' ``generate``: repetition penalty, temperature, top_k, top_p, min_p.
    """
    from transformers import MinPLogitsWarper, RepetitionPenaltyLogitsProcessor, TopPLogitsWarper

    def value(name: str, off: float) -> Any:
        own = getattr(settings, name)
        own = getattr(defaults, name, None) if own is None else own
        return off if own is None else own

    penalty = value("repetition_penalty", 1.0)
    penalise = RepetitionPenaltyLogitsProcessor(float(penalty)) if penalty != 1.0 else None
    if not _samples(settings, defaults):

        def likeliest(logits: torch.Tensor, ids: torch.Tensor) -> int:
            return int((penalise(ids[None], logits[None])[0] if penalise else logits).argmax())

        return likeliest

    temperature, top_k = float(value("temperature", 1.0)), int(value("top_k", 0))
    warpers: list[Any] = []
    if (top_p := float(value("top_p", 1.0))) < 1.0:
        warpers.append(TopPLogitsWarper(top_p))
    if (min_p := float(value("min_p", 0.0))) > 0.0:
        warpers.append(MinPLogitsWarper(min_p))
    generator: torch.Generator | None = None

    def sample(logits: torch.Tensor, ids: torch.Tensor) -> int:
        import torch

        nonlocal generator
        if generator is None:
            generator = torch.Generator(logits.device)
            generator.manual_seed(generator.seed() if settings.seed is None else settings.seed)
        scores: Any = (penalise(ids[None], logits[None]) if penalise else logits[None]) / temperature
        # With top_k the rest need only look at k tokens: top_p would sort the whole vocabulary at each step. They
        # stay in the vocabulary's order, so that a rounding error does not change which one a seed draws.
        tokens = None
        if 0 < top_k < scores.shape[-1]:
            tokens = scores.topk(top_k).indices.sort().values
            scores = scores.gather(-1, tokens)
        for warper in warpers:
            scores = warper(ids[None], scores)
        drawn = torch.multinomial(scores.softmax(-1)[0], 1, generator=generator)
        return int(drawn if tokens is None else tokens[0, drawn])

    return sample


def _samples(settings: Settings, defaults: Any) -> bool:
    """Whether to draw at random: as asked; when only how to draw was given, yes; else as the model's authors say."""
    if settings.temperature == 0:
        return False
    if settings.do_sample is not None:
        return settings.do_sample
    how = (settings.temperature, settings.top_p, settings.top_k, settings.min_p)
    return any(each is not None for each in how) or bool(getattr(defaults, "do_sample", False))

"""What an answer cost, in a few lines for a person."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import suppress

from ..events import Usage
from ..models import readable


def stats_lines(rounds: Sequence[Usage], load_s: float) -> list[str]:
    """The cost of all rounds of a question; ``load_s`` is how many seconds the model took to load."""
    prompt, cached = sum(each.prompt_tokens for each in rounds), sum(each.cached_tokens for each in rounds)
    prefill_s, decode_s = sum(each.prefill_s for each in rounds), sum(each.decode_s for each in rounds)
    new = sum(each.new_tokens for each in rounds)
    forced, found = sum(each.forced_tokens for each in rounds), sum(each.lookup_tokens for each in rounds)
    lines = [
        f"load     {load_s:.1f} s",
        f"prefill  {prefill_s:.2f} s, {prompt} tokens in {len(rounds)} rounds, {cached} of them cached"
        + _rate(prompt - cached, prefill_s),
        f"decode   {decode_s:.2f} s, {new} tokens, {forced} forced by the grammar, {found} found by lookup"
        + _rate(new, decode_s),
    ]
    memory = [f"{readable(size)} {where}" for where, size in _peaks()]
    return [*lines, f"memory   {', '.join(memory)} at most"] if memory else lines


def _rate(tokens: int, seconds: float) -> str:
    return f" ({tokens / seconds:.1f} token/s)" if tokens and seconds else ""


def _peaks() -> list[tuple[str, int]]:
    """Where memory was used, and how many bytes at the most."""
    peaks = []
    with suppress(ImportError):  # Windows has no such module
        import resource

        unit = 1 if sys.platform == "darwin" else 1024
        peaks.append(("resident", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit))
    # Looked at where an engine loaded it; not loaded to look.
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        peaks.append(("on the GPU", torch.cuda.max_memory_allocated()))
    return peaks

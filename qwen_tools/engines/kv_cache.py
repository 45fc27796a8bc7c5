"""The KV cache of one model: what was computed last, and the next prompt computed on top of what it shares with it."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

# A long prompt is computed in parts, so that Ctrl-C is heard between them.
_PREFILL_TOKENS = 512
# Rows that are scored together: each has its copy of the cache.
_BATCH_ROWS = 16


class KvCache:
    """Keys and values of ``ids``, for one model."""

    def __init__(self, model: Any) -> None:
        self.ids: list[int] = []
        self.device = model.device
        self._model = model
        self._begin()
        # Renamed in transformers 5.24, the first for which Python 3.10 is too old.
        arguments = inspect.signature(model.forward).parameters
        self._argument = "cache" if "cache" in arguments else "past_key_values"

    def _begin(self) -> None:
        from transformers import DynamicCache

        self.ids.clear()
        self._broken = False  # an interrupted computation left layers of different lengths
        self._cache = DynamicCache(config=self._model.config)

    @property
    def can_crop(self) -> bool:
        """Whether tokens can be taken back: not from a layer that keeps a running state, or a window, instead of
        all keys and values.
        """
        return all(hasattr(layer, "keys") and not getattr(layer, "is_sliding", False) for layer in self._cache.layers)

    def keep(self, ids: list[int]) -> int:
        """Crop to the longest prefix shared with ``ids``, short of the last id, whose logits are needed.
        Returns the length kept.
        """
        length = 0
        for ours, theirs in zip(self.ids, ids[:-1], strict=False):
            if ours != theirs:
                break
            length += 1
        self.crop(length)
        return len(self.ids)

    def crop(self, length: int) -> None:
        """Cut to ``length`` tokens, layer by layer: a computation that was interrupted leaves layers of
        different lengths, but all hold at least what was complete. What cannot be cropped is begun anew.
        """
        if not self.can_crop:
            if length < len(self.ids) or self._broken:
                self._begin()
            return
        layers: list[Any] = self._cache.layers
        for layer in layers:
            if layer.is_initialized:
                layer.keys = layer.keys[..., :length, :]
                layer.values = layer.values[..., :length, :]
        self._broken = False
        del self.ids[length:]

    def forward(self, ids: list[int], rows: int = 1) -> torch.Tensor:
        """Compute ``ids`` behind what is there; returns the logits after the last ``rows`` of them
        (shape: rows, vocabulary).
        """
        import torch

        # Of equal length, so that the last one has the wanted rows too.
        count = -(-len(ids) // _PREFILL_TOKENS)
        bounds = [len(ids) * part // count for part in range(count + 1)]
        for start, end in pairwise(bounds):
            part = ids[start:end]
            try:
                with torch.inference_mode():
                    logits = self._model(
                        input_ids=torch.tensor([part], device=self.device),
                        use_cache=True,
                        logits_to_keep=rows,
                        **{self._argument: self._cache},
                    ).logits
            except BaseException:
                self._broken = True
                self.crop(len(self.ids))
                raise
            self.ids += part
        # A copy outside inference mode: masks and samplers write into it.
        result: torch.Tensor = logits[0, -rows:].to(torch.float32, copy=True)
        return result

    def score(self, last: int, rows: Sequence[Sequence[int]]) -> Iterator[list[float]]:
        """For each row the natural log probabilities of its tokens behind what is there and the token ``last``. What is
        there stays as it is.
        """
        import torch

        for start in range(0, len(rows), _BATCH_ROWS):
            part = rows[start : start + _BATCH_ROWS]
            longest = max(map(len, part))
            # Behind the end of a row stands anything: no token sees what follows it.
            padded = [[last, *row, *[0] * (longest - len(row))] for row in part]
            given = torch.tensor(padded, device=self.device)
            cache = copy.deepcopy(self._cache)
            cache.batch_repeat_interleave(len(part))
            with torch.inference_mode():
                logits = self._model(input_ids=given[:, :-1], use_cache=True, **{self._argument: cache}).logits
                scores = logits.float().log_softmax(-1).gather(-1, given[:, 1:, None])[..., 0].tolist()
            yield from (score[: len(row)] for score, row in zip(scores, part, strict=True))

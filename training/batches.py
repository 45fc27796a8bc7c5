"""Many conversations at once: an engine whose answers are generated in batches, so that an evaluation takes minutes.

Greedy and without a guide. Each conversation runs in a thread of its own through the real loop; when all of them wait
for the model, their prompts become one batch.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from itertools import takewhile
from typing import Any, TypeVar

from qwen_tools.engines import Piece, Settings
from qwen_tools.events import Usage

Item = TypeVar("Item")
Result = TypeVar("Result")


class BatchEngine:
    """An engine for the loop; ``map`` is how it is used."""

    can_guide = False

    def __init__(self, model: Any, tokenizer: Any, family: str, size: int = 24) -> None:
        self.model, self.tokenizer, self.family, self.name = model, tokenizer, family, "batch"
        self._size = size
        self._changed = threading.Condition()
        self._waiting: list[tuple[list[int], int, Future[tuple[list[int], str]]]] = []
        self._running = 0
        ends = model.generation_config.eos_token_id
        ends = ends if isinstance(ends, list) else [] if ends is None else [ends]
        self._ends = {*ends, tokenizer.convert_tokens_to_ids("<|im_end|>")}

    def generate(
        self, prompt: Any, settings: Settings, *, begun: Sequence[int] = (), guide: Any = None
    ) -> Iterator[Piece]:
        """The whole answer in one piece; waits until its batch is computed. There is never a guide."""
        assert guide is None
        ids = [*prompt.ids(self.tokenizer), *begun]
        future: Future[tuple[list[int], str]] = Future()
        with self._changed:
            self._waiting.append((ids, settings.max_new_tokens, future))
            self._changed.notify_all()
        answer, finish = future.result()
        usage = Usage(prompt_tokens=len(ids), new_tokens=len(answer))
        yield Piece(self.tokenizer.decode(answer), tuple(answer), usage, finish)

    def map(self, work: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
        """``[work(item) for item in items]``, where each work uses this engine."""
        todo = list(items)
        results: list[Any] = [None] * len(todo)
        queue = iter(enumerate(todo))

        def run() -> None:
            try:
                while True:
                    with self._changed:
                        place, item = next(queue, (None, None))
                    if place is None:
                        return
                    results[place] = work(item)  # type: ignore[arg-type]
            finally:
                with self._changed:
                    self._running -= 1
                    self._changed.notify_all()

        self._running = min(self._size, len(todo))
        for _ in range(self._running):
            threading.Thread(target=run, daemon=True).start()
        while True:
            with self._changed:
                self._changed.wait_for(lambda: len(self._waiting) == self._running)
                batch, self._waiting = self._waiting, []
            if not batch:
                return results
            answers = self._answers([ids for ids, _, _ in batch], max(limit for _, limit, _ in batch))
            for (_, _, future), answer in zip(batch, answers, strict=True):
                future.set_result(answer)

    def _answers(self, prompts: list[list[int]], limit: int) -> list[tuple[list[int], str]]:
        """Greedy answers and how they ended. What all prompts begin with is computed once; the rest is padded on the
        left; who is ready leaves the batch.
        """
        import torch
        from transformers import DynamicCache

        cache = DynamicCache()
        # At least one token of each prompt is left, whose logits begin the answer.
        columns = zip(*(prompt[:-1] for prompt in prompts), strict=False)
        shared = len(list(takewhile(lambda column: len(set(column)) == 1, columns)))
        if shared:
            with torch.inference_mode():
                first = torch.tensor([prompts[0][:shared]])
                self.model(input_ids=first, past_key_values=cache, use_cache=True, logits_to_keep=1)
            cache.batch_repeat_interleave(len(prompts))
        width = max(map(len, prompts))
        ids = torch.tensor([[0] * (width - len(prompt)) + prompt[shared:] for prompt in prompts])
        mask = torch.tensor(
            [[1] * shared + [0] * (width - len(prompt)) + [1] * (len(prompt) - shared) for prompt in prompts]
        )
        positions = (mask.cumsum(-1) - 1).clamp(min=0)[:, shared:]
        answers: list[list[int]] = [[] for _ in prompts]
        finish = ["length"] * len(prompts)
        rows = list(range(len(prompts)))
        with torch.inference_mode():
            for _ in range(limit):
                logits = self.model(
                    input_ids=ids,
                    attention_mask=mask,
                    position_ids=positions,
                    past_key_values=cache,
                    use_cache=True,
                    logits_to_keep=1,
                ).logits[:, -1]
                chosen = logits.argmax(-1)
                keep = []
                for place, (row, token) in enumerate(zip(rows, chosen.tolist(), strict=True)):
                    if token in self._ends:
                        finish[row] = "stop"
                    else:
                        answers[row].append(token)
                        keep.append(place)
                if not keep:
                    break
                if len(keep) < len(rows):
                    index = torch.tensor(keep)
                    cache.batch_select_indices(index)
                    mask, positions, chosen = mask[index], positions[index], chosen[index]
                    rows = [rows[place] for place in keep]
                ids = chosen[:, None]
                mask = torch.cat([mask, torch.ones(len(rows), 1, dtype=mask.dtype)], -1)
                positions = positions[:, -1:] + 1
        return list(zip(answers, finish, strict=True))

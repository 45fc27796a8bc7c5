"""Teach a model the tags: LoRA on all projections, together with the rows of the two tags in embedding and head.

    python -m training.train MODEL OUT [--seed 0] [--steps 200] [--rank 8] [--device auto]

MODEL is a folder of a Qwen2.5 or Qwen3 model (``python -m qwen_tools models`` shows where converted ones are). OUT
becomes a folder with ``adapter.safetensors``: what ``qwen_tools.adapter`` merges into the weights. A step is one group:
its system text and tools once, then several conversations that see these but not each other.

Hu et al., LoRA: Low-Rank Adaptation of Large Language Models, 2021.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qwen_tools.engines.transformers import native_dtype
from qwen_tools.families import detect
from qwen_tools.messages import Message
from qwen_tools.prompt import Prompt

from .conversations import Group, groups

if TYPE_CHECKING:
    import torch

TAGS = ("<tool_call>", "</tool_call>")
PROJECTIONS = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
LEARNING_RATE, ROW_RATE, WARM_UP = 3e-4, 1e-3, 10
LIMIT = 832  # tokens in a step; attention takes the square of it
IGNORED = -100


def main() -> None:
    """Train, keep the checkpoint that is best on the validation tools, and write it."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--rank", type=int, default=8)
    parser.add_argument("--device", default="auto", help="auto, cpu or cuda")
    args = parser.parse_args()

    import torch
    from transformers import AutoTokenizer

    device = ("cuda" if torch.cuda.is_available() else "cpu") if args.device == "auto" else args.device
    torch.manual_seed(args.seed)
    tokenizer = AutoTokenizer.from_pretrained(args.model)
    learner = Learner(args.model, tokenizer, args.rank, device)
    family = detect(tokenizer.chat_template or "", tokenizer.get_added_vocab())
    validation = [packed(group, tokenizer, family) for group in islice(groups(10**6, validation=True), 12)]
    best, log, tokens, began = math.inf, [], 0, time.monotonic()
    args.out.mkdir(parents=True, exist_ok=True)
    for step, group in enumerate(islice(groups(args.seed), args.steps)):
        batch = packed(group, tokenizer, family)
        loss = learner.learn(batch, rate(step, args.steps))
        tokens += len(batch["ids"])
        log.append({"step": step, "loss": round(loss, 4), "tokens": tokens, "seconds": round(time.monotonic() - began)})
        if step % 10 == 9:
            recent = [entry["loss"] for entry in log[-10:]]
            print(f"step {step + 1} of {args.steps}, loss {sum(recent) / 10:.3f}, {log[-1]['seconds']} s", flush=True)
        if step + 1 in {args.steps * part // 5 for part in (3, 4, 5)}:
            right, lost = learner.judge(validation)
            log[-1].update(validation_right=right, validation_loss=lost)
            print(f"validation: {right:.1%} of the answers word for word, loss {lost:.3f}", flush=True)
            if lost <= best:
                best = lost
                learner.save(args.out / "adapter.safetensors", seed=args.seed, step=step + 1)
    (args.out / "log.json").write_text(json.dumps(log))


def rate(step: int, steps: int) -> float:
    """The share of the learning rate: a short rise, then half a cosine down to a twentieth."""
    return min(1.0, (step + 1) / WARM_UP) * (0.05 + 0.95 * 0.5 * (1 + math.cos(math.pi * step / steps)))


# --- What a step reads --------------------------------------------------------------------------------------------


def packed(group: Group, tokenizer: Any, family: str) -> dict[str, Any]:
    """A group as one sequence: ``ids``, ``labels`` (IGNORED where nothing is learnt), ``positions`` and ``parts``.

    Part 0 is the system text with the tools; each conversation is a part that begins at the position behind it.
    Conversations that would make the sequence longer than LIMIT are left out, the first one never.
    """
    system = [] if group.system is None else [Message("system", group.system)]
    start, _ = tokenizer.convert_tokens_to_ids(["<|im_start|>", "<|im_end|>"])
    ids: list[int] = []
    labels: list[int] = []
    positions: list[int] = []
    parts: list[int] = []
    for number, conversation in enumerate(group.conversations, start=1):
        prompt = Prompt(group.tools, family)
        prompt.append([*system, *conversation.messages])
        whole = prompt.ids(tokenizer)
        turns = [place for place, token in enumerate(whole) if token == start]
        # The first turn is the system's where there is one; the last is the generation prompt.
        common = turns[1] if system or group.tools or tokenizer.decode(whole[1:2]) == "system" else 0
        if ids and len(ids) + turns[-1] - common > LIMIT:
            continue
        if not ids:
            ids, labels = whole[:common], [IGNORED] * common
            positions, parts = list(range(common)), [0] * common
        learnt = _learnt(conversation, whole, turns, tokenizer)
        ids += whole[common : turns[-1]]
        labels += learnt[common : turns[-1]]
        positions += range(common, turns[-1])
        parts += [number] * (turns[-1] - common)
    return {"ids": ids, "labels": labels, "positions": positions, "parts": parts}


def _learnt(conversation: Any, ids: list[int], turns: list[int], tokenizer: Any) -> list[int]:
    """The labels of one conversation: the assistant's words and the end of its turn."""
    labels = [IGNORED] * len(ids)
    opening = tokenizer.encode("assistant\n", add_special_tokens=False)
    end = tokenizer.convert_tokens_to_ids("<|im_end|>")
    answers = iter(place for place, message in enumerate(conversation.messages) if message.role == "assistant")
    for turn in turns[:-1]:
        if ids[turn + 1 : turn + 1 + len(opening)] != opening:
            continue
        if next(answers) in conversation.unlearnt:
            continue
        first = turn + 1 + len(opening)
        last = ids.index(end, first)
        labels[first : last + 1] = ids[first : last + 1]
    return labels


# --- The model ----------------------------------------------------------------------------------------------------


class Learner:
    """The model in the device's own format with its LoRA matrices and the rows of the tags, which alone are trained."""

    def __init__(self, folder: Path, tokenizer: Any, rank: int, device: str) -> None:
        import torch
        from peft import LoraConfig, get_peft_model
        from transformers import AutoModelForCausalLM

        self.dtype = native_dtype(device)
        model = AutoModelForCausalLM.from_pretrained(folder, dtype=self.dtype).to(device)
        self.device, self.rank, self.scale = device, rank, 2.0
        self.tags = tokenizer.convert_tokens_to_ids(list(TAGS))
        embedding, head = model.get_input_embeddings().weight, model.get_output_embeddings().weight
        self.tied = embedding is head
        start = _first_rows(embedding, self.tags, tokenizer), _first_rows(head, self.tags, tokenizer)
        self.rows = torch.nn.Parameter(start[0])
        self.head_rows = self.rows if self.tied else torch.nn.Parameter(start[1])
        config = LoraConfig(
            r=rank, lora_alpha=int(self.scale * rank), target_modules=PROJECTIONS, task_type="CAUSAL_LM"
        )
        self.model = get_peft_model(model, config)
        self.body, self.head = self.model.base_model.model.model, head.detach()
        self.lora = [each for each in self.model.parameters() if each.requires_grad]
        rows = [self.rows] if self.tied else [self.rows, self.head_rows]
        self.optimizer = torch.optim.AdamW(
            [{"params": self.lora, "rate": LEARNING_RATE}, {"params": rows, "rate": ROW_RATE}], weight_decay=0.0
        )
        self.trained = [*self.lora, *rows]

    def learn(self, batch: dict[str, Any], share: float) -> float:
        """One step; returns the mean loss of the learnt tokens."""
        import torch

        for group in self.optimizer.param_groups:
            group["lr"] = group["rate"] * share
        logits, wanted = self._forward(batch)
        loss = torch.nn.functional.cross_entropy(logits.float(), wanted)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.trained, 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad()
        return float(loss.detach())

    def judge(self, batches: list[dict[str, Any]]) -> tuple[float, float]:
        """The share of the answers that greedy decoding would give word for word, and the mean loss."""
        import torch

        answers = right = tokens = 0
        total = 0.0
        with torch.inference_mode():
            for batch in batches:
                logits, wanted = self._forward(batch)
                total += float(torch.nn.functional.cross_entropy(logits.float(), wanted, reduction="sum"))
                tokens += len(wanted)
                same = (logits.argmax(-1) == wanted).tolist()
                places = [place for place, label in enumerate(batch["labels"]) if label != IGNORED]
                wrong: list[bool] = []  # one for each answer: whether a token of it would have been another
                for place, good in zip(places, same, strict=True):
                    if batch["labels"][place - 1] == IGNORED:
                        wrong.append(False)
                    wrong[-1] |= not good
                answers += len(wrong)
                right += wrong.count(False)
        return right / answers, total / tokens

    def _forward(self, batch: dict[str, Any]) -> tuple[torch.Tensor, torch.Tensor]:
        """The logits (tokens × vocabulary) before every learnt token, and those tokens."""
        import torch

        ids = torch.tensor(batch["ids"], device=self.device)
        parts = torch.tensor(batch["parts"], device=self.device)
        visible = torch.ones(len(ids), len(ids), dtype=torch.bool, device=self.device).tril()
        visible &= (parts[None] == 0) | (parts[None] == parts[:, None])
        embedded = torch.nn.functional.embedding(ids, self.model.get_input_embeddings().weight)
        for row, tag in enumerate(self.tags):
            embedded = torch.where((ids == tag)[:, None], self.rows[row].to(embedded.dtype), embedded)
        with torch.autocast(self.device, torch.bfloat16, enabled=self.dtype == torch.bfloat16):
            hidden = self.body(
                inputs_embeds=embedded[None],
                attention_mask=visible[None, None],
                position_ids=torch.tensor([batch["positions"]], device=self.device),
                use_cache=False,
            ).last_hidden_state[0]
            labels = torch.tensor(batch["labels"], device=self.device)
            places = (labels != IGNORED).nonzero().flatten()
            before = hidden[places - 1]
            logits = before @ self.head.T
            logits = logits.index_copy(
                1, torch.tensor(self.tags, device=self.device), (before @ self.head_rows.T).to(logits.dtype)
            )
        return logits, labels[places]

    def save(self, path: Path, **record: Any) -> None:
        """Write the adapter: ``NAME.A`` (rank × inputs) and ``NAME.B`` (outputs × rank) for each weight NAME, and the
        tags' rows, all in bfloat16; a merged weight is W + scale · B · A.
        """
        import torch
        from peft import get_peft_model_state_dict
        from safetensors.torch import save_file

        tensors = {}
        for name, value in get_peft_model_state_dict(self.model).items():
            name = (
                name.removeprefix("base_model.model.")
                .replace(".lora_A.weight", ".weight.A")
                .replace(".lora_B.weight", ".weight.B")
            )
            tensors[name] = value.detach().to("cpu", torch.bfloat16).contiguous()
        tensors["model.embed_tokens.weight.rows"] = self.rows.detach().to("cpu", torch.bfloat16)
        if not self.tied:
            tensors["lm_head.weight.rows"] = self.head_rows.detach().to("cpu", torch.bfloat16)
        metadata = {
            "scale": str(self.scale),
            "tokens": json.dumps(self.tags),
            **{key: str(value) for key, value in record.items()},
        }
        save_file(tensors, path, metadata=metadata)


def _first_rows(weight: Any, tags: list[int], tokenizer: Any) -> Any:
    """Where the tags' rows start: as they are, or, where they were never trained (both alike), at the mean of the rows
    of the tokens that spell the tag.
    """
    import torch

    rows = weight[tags].detach().float()
    if torch.nn.functional.cosine_similarity(rows[0], rows[1], dim=0) < 0.999:
        return rows
    spelt = [
        tokenizer.convert_tokens_to_ids(pieces)
        for pieces in (["<", "tool", "_call", ">"], ["</", "tool", "_call", ">"])
    ]
    return torch.stack([weight[ids].detach().float().mean(0) for ids in spelt])


if __name__ == "__main__":
    main()

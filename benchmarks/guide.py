"""What the guide costs beside the model's own step: reading the tokenizer, compiling, and a mask for every token.

    python benchmarks/guide.py [--model embedded-plain]

A guided call of ten tools, written by the model on the CPU. Printed: seconds to read the tokenizer (once a process),
milliseconds to compile the guide, milliseconds of a mask, of a step of the model, and the share of the mask in it.
"""

from __future__ import annotations

import argparse
import statistics
import time
from typing import Any

import torch

from qwen_tools import Message, Tool
from qwen_tools.engines import Settings, open_engine
from qwen_tools.guide import Guide
from qwen_tools.guide.constraint import Constraint
from qwen_tools.prompt import Prompt

TOOLS = tuple(
    Tool(
        f"tool_{number}",
        "Does something.",
        {
            "type": "object",
            "properties": {
                "text": {"type": "string"},
                "count": {"type": "integer", "minimum": 0, "maximum": 100},
                "kind": {"enum": ["small", "medium", "large"]},
                "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 5},
            },
            "required": ["text", "count", "kind", "tags"],
        },
    )
    for number in range(10)
)


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="embedded-plain")
    arguments = parser.parse_args()
    engine: Any = open_engine(arguments.model, device="cpu")
    guide = Guide(TOOLS)

    started = time.perf_counter()
    engine._grammars.constraint(guide)
    first = time.perf_counter() - started
    compiling = []
    for _ in range(10):
        started = time.perf_counter()
        engine._grammars.constraint(guide)
        compiling.append(time.perf_counter() - started)

    masks: list[float] = []
    mask = Constraint.mask

    def timed(self: Constraint, logits: torch.Tensor) -> None:
        begun = time.perf_counter()
        mask(self, logits)
        masks.append(time.perf_counter() - begun)

    Constraint.mask = timed  # type: ignore[method-assign]
    prompt = Prompt(TOOLS, engine.family)
    prompt.append([Message("user", "Use tool 3 with a short poem, count 12, size medium and four tags.")])
    pieces = list(engine.generate(prompt, Settings(max_new_tokens=200, do_sample=False), guide=guide))
    usage = pieces[-1].usage
    computed = [usage.decode_s / (usage.new_tokens - usage.forced_tokens - usage.lookup_tokens)]
    step, one = statistics.median(computed), statistics.median(masks)
    print(f"read the tokenizer {first - statistics.median(compiling):.2f} s, compile {min(compiling) * 1000:.1f} ms")
    print(
        f"mask {one * 1000:.2f} ms (worst {max(masks) * 1000:.2f}), step {step * 1000:.1f} ms: {one / step:.1%} of it"
    )
    print(f"{usage.new_tokens} tokens, of them {usage.forced_tokens} forced and {usage.lookup_tokens} by lookup")


if __name__ == "__main__":
    main()

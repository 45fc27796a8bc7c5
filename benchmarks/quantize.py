"""Ways to hold the weights in fewer bits on a CPU: speed, memory, load time, and whether the answers stay the same.

    python benchmarks/quantize.py [WAY ...] [--model embedded-plain] [--threads 2]

Each way runs in a process of its own, so that memory is its own too. For each: seconds to load and convert, the
rise of resident memory over that after imports and its peak (MB), prefill of 512 tokens and greedy decoding of 48
behind it with the KV cache (token/s, the best of three), and of 20 prompts how many get the same 32 greedy
tokens as from float32, and how many of all those tokens are the same where the text before is.

What is not installed is left out: ``pip install torchao``, ``pip install openvino optimum-intel``.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

DECODED, SAME, PREFILL = 48, 32, 512
_QUESTIONS = [
    f"{ask} {what}"
    for ask in ("What is", "Explain in one sentence:", "Write a Python function for", "Name three examples of")
    for what in ("a fjord?", "binary search.", "the square root of 7744.", "a JSON object.", "the planets.")
]


def _load(folder: Path, dtype: str, **how: Any) -> Any:
    import transformers

    auto: Any = transformers.AutoModelForCausalLM
    return auto.from_pretrained(folder, dtype=dtype, **how).eval()


def float32(folder: Path) -> Any:
    """As it is; what the others are compared with."""
    return _load(folder, "float32")


def bfloat16(folder: Path) -> Any:
    """Half the bytes; fast where the CPU multiplies it itself (AVX512_BF16, AMX)."""
    return _load(folder, "bfloat16")


def ours_int8(folder: Path) -> Any:
    """What ``--quantize int8`` does: int8 weights by row and activations, by fbgemm; kept on disk."""
    from qwen_tools import models
    from qwen_tools.engines import int8

    return int8.read(models.derived(folder, "int8", lambda part: int8.write(bfloat16(folder), part)))


def dynamic_int8(folder: Path) -> Any:
    """Torch's dynamic quantisation: int8 weights and activations (fbgemm or onednn)."""
    import torch

    engines = torch.backends.quantized.supported_engines
    torch.backends.quantized.engine = next(name for name in ("onednn", "x86", "fbgemm", "qnnpack") if name in engines)
    quantize: Any = torch.ao.quantization.quantize_dynamic
    return quantize(_load(folder, "float32"), {torch.nn.Linear}, dtype=torch.qint8)


def _replace_linear(model: Any, make: Callable[[Any], Any]) -> Any:
    """Every linear layer by what ``make`` gives for it."""
    import torch

    for parent in list(model.modules()):
        for name, child in list(parent.named_children()):
            if isinstance(child, torch.nn.Linear):
                setattr(parent, name, make(child))
    gc.collect()
    return model


def int8pack(folder: Path) -> Any:
    """Torch's own kernel for int8 weights by row and bfloat16 activations (``_weight_int8pack_mm``)."""
    import torch

    class Int8(torch.nn.Module):
        def __init__(self, linear: Any) -> None:
            super().__init__()
            weight = linear.weight.float()
            scale = weight.abs().amax(1) / 127
            self.register_buffer("weight", (weight / scale[:, None]).round().to(torch.int8))
            self.register_buffer("scale", scale.to(torch.bfloat16))
            self.bias = linear.bias

        def forward(self, x: Any) -> Any:
            flat = x.reshape(-1, x.shape[-1])
            if len(flat) > 32:  # the kernel reads the weights once a row
                out = flat @ (self.weight.to(x.dtype) * self.scale[:, None]).T
            else:
                out = torch._weight_int8pack_mm(flat, self.weight, self.scale)
            out = out.reshape(*x.shape[:-1], -1)
            return out if self.bias is None else out + self.bias

    return _replace_linear(_load(folder, "bfloat16"), Int8)


def int4pack(folder: Path) -> Any:
    """Torch's own kernel for int4 weights in groups of 32 (``_weight_int4pack_mm_for_cpu``)."""
    import torch

    group = 32

    class Int4(torch.nn.Module):
        def __init__(self, linear: Any) -> None:
            super().__init__()
            weight = linear.weight.float()
            rows, columns = weight.shape
            groups = weight.reshape(rows, columns // group, group)
            low, high = groups.amin(2), groups.amax(2)
            scale = ((high - low) / 15).clamp(min=1e-6)
            number = ((groups - low[..., None]) / scale[..., None]).round().clamp(0, 15).to(torch.int32)
            packed = number.reshape(rows, columns)
            self.register_buffer("weight", torch._convert_weight_to_int4pack_for_cpu(packed, 1))
            zero = low + 8 * scale  # the kernel's zero lies in the middle of the range
            both = torch.stack([scale, zero], 2).transpose(0, 1).contiguous()
            self.register_buffer("scale_and_zero", both.to(torch.bfloat16))
            self.bias = linear.bias

        def forward(self, x: Any) -> Any:
            flat = x.reshape(-1, x.shape[-1])
            out = torch._weight_int4pack_mm_for_cpu(flat, self.weight, group, self.scale_and_zero)
            out = out.reshape(*x.shape[:-1], -1)
            return out if self.bias is None else out + self.bias

    return _replace_linear(_load(folder, "bfloat16"), Int4)


def _torchao(folder: Path, config: Any, dtype: str) -> Any:
    from torchao.quantization import quantize_

    model = _load(folder, dtype)
    quantize_(model, config)
    return model


def torchao_int8(folder: Path) -> Any:
    """torchao, int8 weights, bfloat16 activations."""
    from torchao.quantization import Int8WeightOnlyConfig

    return _torchao(folder, Int8WeightOnlyConfig(), "bfloat16")


def torchao_int8_dynamic(folder: Path) -> Any:
    """torchao, int8 weights and activations."""
    from torchao.quantization import Int8DynamicActivationInt8WeightConfig

    return _torchao(folder, Int8DynamicActivationInt8WeightConfig(), "bfloat16")


def torchao_int4(folder: Path) -> Any:
    """torchao, int4 weights in groups of 32."""
    from torchao.quantization import Int4WeightOnlyConfig

    return _torchao(folder, Int4WeightOnlyConfig(group_size=32), "bfloat16")


def _openvino(folder: Path, bits: int) -> Any:
    from optimum.intel import OVModelForCausalLM, OVWeightQuantizationConfig

    return OVModelForCausalLM.from_pretrained(
        folder, export=True, quantization_config=OVWeightQuantizationConfig(bits=bits)
    )


def openvino_int8(folder: Path) -> Any:
    """OpenVINO through optimum-intel, int8 weights."""
    return _openvino(folder, 8)


def openvino_int4(folder: Path) -> Any:
    """OpenVINO through optimum-intel, int4 weights."""
    return _openvino(folder, 4)


WAYS: dict[str, Callable[[Path], Any]] = {
    way.__name__: way
    for way in (
        float32, bfloat16, ours_int8, dynamic_int8, int8pack, int4pack,
        torchao_int8, torchao_int8_dynamic, torchao_int4, openvino_int8, openvino_int4,
    )
}  # fmt: skip


def _resident() -> float:
    """Megabytes of this process now."""
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def _greedy(model: Any, ids: list[int], count: int) -> tuple[list[int], float, float]:
    """New ids, seconds of prefill, seconds of decoding."""
    import torch

    started = time.perf_counter()
    with torch.inference_mode():
        out = model(input_ids=torch.tensor([ids]), use_cache=True, logits_to_keep=1)
        new = [int(out.logits[0, -1].argmax())]
        middle = time.perf_counter()
        while len(new) < count:
            out = model(input_ids=torch.tensor([new[-1:]]), past_key_values=out.past_key_values, use_cache=True)
            new.append(int(out.logits[0, -1].argmax()))
    return new, middle - started, time.perf_counter() - middle


def measure(way: str, folder: Path, threads: int) -> dict[str, Any]:
    """In a process of its own."""
    import torch
    import transformers

    torch.set_num_threads(threads)
    transformers.logging.set_verbosity_error()  # type: ignore[no-untyped-call]
    transformers.logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    tokenizer: Any = transformers.AutoTokenizer.from_pretrained(folder)
    _load_nothing: Any = transformers.AutoModelForCausalLM  # its imports count as imports
    before, started = _resident(), time.perf_counter()
    model = WAYS[way](folder)
    gc.collect()
    loaded = time.perf_counter() - started
    rise = _resident() - before
    answers = []
    for question in _QUESTIONS:
        messages = [{"role": "user", "content": question}]
        ids = tokenizer.apply_chat_template(messages, add_generation_prompt=True, return_dict=False)
        answers.append(_greedy(model, ids, SAME)[0])
    long = tokenizer.encode("The quick brown fox jumps over the lazy dog. " * 60)[:PREFILL]
    runs = [_greedy(model, long, DECODED) for _ in range(3)]
    return {
        "load": loaded,
        "rise": rise,
        "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6 - before,
        "prefill": PREFILL / min(run[1] for run in runs),
        "decode": (DECODED - 1) / min(run[2] for run in runs),
        "answers": answers,
    }


def main() -> None:
    """Print the table, a row a way."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ways", nargs="*", metavar="WAY", help=", ".join(WAYS))
    parser.add_argument("--model", default="embedded-plain")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    from qwen_tools import models

    folder = models.prepare(models.resolve(arguments.model))
    if arguments.measure:
        print(json.dumps(measure(arguments.measure, folder, arguments.threads)))
        return
    wanted = ["float32", *(way for way in arguments.ways or WAYS if way != "float32")]
    heads = ("load s", "rise MB", "peak MB", "prefill/s", "decode/s", "same", "tokens")
    print(f"{'':<22}" + "".join(f"{head:>11}" for head in heads))
    reference: list[list[int]] = []
    for way in wanted:
        command = [sys.executable, __file__, "--measure", way, "--model", arguments.model]
        done = subprocess.run([*command, "--threads", str(arguments.threads)], capture_output=True, text=True)
        if done.returncode:
            print(f"{way:<22} {(done.stderr.strip().splitlines() or ['killed'])[-1][:100]}", flush=True)
            continue
        row = json.loads(done.stdout.splitlines()[-1])
        reference = reference or row["answers"]
        same = sum(ours == theirs for ours, theirs in zip(row["answers"], reference, strict=True))
        agreed = sum(_agreed(ours, theirs) for ours, theirs in zip(row["answers"], reference, strict=True))
        numbers = [row["load"], row["rise"], row["peak"], row["prefill"], row["decode"]]
        cells = "".join(f"{number:>11.1f}" for number in numbers)
        print(f"{way:<22}{cells}{f'{same}/{len(reference)}':>11}{agreed / len(reference) / SAME:>11.0%}", flush=True)


def _agreed(ours: list[int], theirs: list[int]) -> int:
    """How many tokens are the same before the first that is not."""
    return next((index for index, pair in enumerate(zip(ours, theirs, strict=True)) if pair[0] != pair[1]), len(ours))


if __name__ == "__main__":
    main()

"""Weights in 8 bits on a CPU: half the bytes of bfloat16 to read for every token, and integer multiplication.

Every linear layer's weights are rounded to int8, with a scale for each row; its inputs are rounded too, as they come,
with one scale a call. torch's kernels do it (``quantized::linear_dynamic``: fbgemm or oneDNN). The rest is computed
in float32. Embeddings are int8 by row as well. See docs/engine.md for what that costs in answers.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import torch

_FILE = "int8.safetensors"


class Int8Linear(torch.nn.Module):
    """A linear layer on int8 ``weight`` (shape: out, in) with a ``scale`` for each row."""

    def __init__(self, weight: torch.Tensor, scale: torch.Tensor, bias: torch.Tensor | None) -> None:
        super().__init__()
        zero = torch.zeros(len(scale), dtype=torch.long)
        with warnings.catch_warnings():
            # torch means to move quantised tensors to torchao, which has no kernel as fast as these on a CPU (2.13).
            warnings.simplefilter("ignore")
            whole = torch._make_per_channel_quantized_tensor(weight, scale.double(), zero, 0)
        self._packed = torch.ops.quantized.linear_prepack(whole, bias)
        # Without VNNI the kernel's sums may overflow unless a bit of the inputs is given up.
        capabilities: dict[str, Any] = getattr(torch.cpu, "get_capabilities", dict)()
        self._narrow = not (capabilities.get("avx512_vnni") or capabilities.get("avx_vnni"))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Shape (..., in) -> (..., out), float32."""
        result: torch.Tensor = torch.ops.quantized.linear_dynamic(x, self._packed, self._narrow)
        return result


class Int8Embedding(torch.nn.Module):
    """An embedding on int8 ``weight`` (shape: vocabulary, width) with a ``scale`` for each row."""

    def __init__(self, weight: torch.Tensor, scale: torch.Tensor) -> None:
        super().__init__()
        self.register_buffer("weight", weight)
        self.register_buffer("scale", scale)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """Ids -> vectors, float32."""
        weight: Any = self.weight
        scale: Any = self.scale
        vectors: torch.Tensor = weight[ids].float() * scale[ids][..., None]
        return vectors


def write(model: Any, folder: Path) -> None:
    """Write a model's weights in int8 into ``folder``, with its configuration."""
    from safetensors.torch import save_file

    tensors: dict[str, torch.Tensor] = {}
    rounded = set()
    for name, module in model.named_modules():
        if isinstance(module, (torch.nn.Linear, torch.nn.Embedding)):
            weight = module.weight.detach().float()
            scale = (weight.abs().amax(1) / 127).clamp(min=1e-12)
            tensors[f"{name}.weight"] = (weight / scale[:, None]).round().to(torch.int8)
            tensors[f"{name}.scale"] = scale
            rounded.add(f"{name}.weight")
    # What is tied has one name among the parameters, and is rounded under both.
    for name, parameter in model.named_parameters():
        if name not in rounded:
            tensors[name] = parameter.detach().float().contiguous()
    save_file(tensors, folder / _FILE)
    model.config.save_pretrained(folder)
    model.generation_config.save_pretrained(folder)


def read(folder: Path) -> Any:
    """The model that ``write`` wrote, read and packed layer by layer, so that memory follows the small form."""
    import accelerate  # type: ignore[import-untyped]
    import transformers
    from safetensors import safe_open

    auto: Any = transformers  # its annotations do not know these forms
    config = auto.AutoConfig.from_pretrained(folder)
    with accelerate.init_empty_weights(include_buffers=False):
        model = auto.AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    with safe_open(folder / _FILE, framework="pt") as file:
        for name, module in list(model.named_modules()):
            if isinstance(module, (torch.nn.Linear, torch.nn.Embedding)):
                weight, scale = file.get_tensor(f"{name}.weight"), file.get_tensor(f"{name}.scale")
                if isinstance(module, torch.nn.Embedding):
                    new: torch.nn.Module = Int8Embedding(weight, scale)
                else:
                    bias = file.get_tensor(f"{name}.bias") if module.bias is not None else None
                    new = Int8Linear(weight, scale, bias)
                parent, _, own = name.rpartition(".")
                setattr(model.get_submodule(parent), own, new)
        for name, _ in list(model.named_parameters()):
            parent, _, own = name.rpartition(".")
            setattr(model.get_submodule(parent), own, torch.nn.Parameter(file.get_tensor(name), requires_grad=False))
    model.generation_config = auto.GenerationConfig.from_pretrained(folder)
    return model.eval()

"""Weights in 8 bits on a CPU: half the bytes of bfloat16 to read for every token, and integer multiplication.

Every linear layer's weights are rounded to int8, with a scale for each row; its inputs are rounded too, as they come,
with a scale for each token. torch's kernels do it (``quantized::linear_dynamic``: fbgemm or oneDNN). The rest is
computed in float32. Embeddings are int8 by row as well. See docs/engine.md for what that costs in answers.
"""

from __future__ import annotations

import ctypes
import warnings
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch

_REST = "rest.safetensors"  # what is no linear layer and no embedding


class Int8Linear(torch.nn.Module):
    """A linear layer on int8 ``weight`` (shape: out, in) with a ``scale`` for each row."""

    def __init__(self, weight: torch.Tensor, scale: torch.Tensor, bias: torch.Tensor | None) -> None:
        super().__init__()
        zero = torch.zeros(len(scale), dtype=torch.long)
        with warnings.catch_warnings():
            # torch means to move quantised tensors to torchao, which has no kernel as fast as these on a CPU (2.13).
            warnings.simplefilter("ignore")
            whole = torch._make_per_channel_quantized_tensor(weight, scale.double(), zero, 0)
        self._packed = _pack(whole, None)
        self._bias = bias
        # Without VNNI the kernel's sums may overflow unless a bit of the inputs is given up.
        capabilities: dict[str, Any] = getattr(torch.cpu, "get_capabilities", dict)()
        self._narrow = not (capabilities.get("avx512_vnni") or capabilities.get("avx_vnni"))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Shape (..., in) -> (..., out), float32."""
        # The kernel has one scale a call, and the first token of a prompt is a thousand times as large as others in
        # some layers: all the others would be rounded to nothing. So every token is brought to the same size.
        size = x.abs().amax(-1, keepdim=True).clamp(min=1e-12)
        result: torch.Tensor = torch.ops.quantized.linear_dynamic(x / size, self._packed, self._narrow) * size
        return result if self._bias is None else result + self._bias


def is_fast() -> bool:
    """Whether this CPU has the kernels that make int8 faster than all else: fbgemm's, on x86."""
    return "fbgemm" in torch.backends.quantized.supported_engines


def _pack(weight: torch.Tensor, bias: torch.Tensor | None) -> Any:
    """A kernel's own form of a quantised weight. fbgemm's, where it is (x86): oneDNN's keeps the original too."""
    backend: Any = torch.backends.quantized
    before = backend.engine
    if is_fast():
        backend.engine = "fbgemm"
    try:
        return torch.ops.quantized.linear_prepack(weight, bias)
    finally:
        backend.engine = before


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


def _trim() -> None:
    """Give freed memory back to the system: glibc keeps what it thinks is of use, here as much again as the model."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL("libc.so.6").malloc_trim(0)


def write(model: Any, folder: Path) -> None:
    """Write a model's weights in int8 into ``folder``, a file a layer, with its configuration."""
    from safetensors.torch import save_file

    rounded = set()
    for name, module in model.named_modules():
        if isinstance(module, (torch.nn.Linear, torch.nn.Embedding)):
            weight = module.weight.detach().float()
            scale = (weight.abs().amax(1) / 127).clamp(min=1e-12)
            layer = {"weight": (weight / scale[:, None]).round().to(torch.int8), "scale": scale}
            bias: Any = getattr(module, "bias", None)
            if bias is not None:
                layer["bias"] = bias.detach().float()
            save_file(layer, folder / f"{name}.safetensors")
            rounded |= {f"{name}.weight", f"{name}.bias"}
    # What is tied has one name among the parameters, and was rounded under both.
    rest = {name: each.detach().float() for name, each in model.named_parameters() if name not in rounded}
    save_file(rest, folder / _REST)
    model.config.save_pretrained(folder)
    model.generation_config.save_pretrained(folder)


def read(folder: Path) -> Any:
    """The model that ``write`` wrote. A layer is read, packed and let go before the next: the files are mapped
    into memory while they are read.
    """
    import accelerate  # type: ignore[import-untyped]
    import transformers
    from safetensors.torch import load_file

    auto: Any = transformers  # its annotations do not know these forms
    config = auto.AutoConfig.from_pretrained(folder)
    with accelerate.init_empty_weights(include_buffers=False):
        model = auto.AutoModelForCausalLM.from_config(config, dtype=torch.float32)

    def put(name: str, value: Any) -> None:
        parent, _, own = name.rpartition(".")
        setattr(model.get_submodule(parent), own, value)

    layers = [each for each in model.named_modules() if isinstance(each[1], (torch.nn.Linear, torch.nn.Embedding))]
    # The largest first: while one is packed it is there more than once, which is best done while little else is.
    for name, module in sorted(layers, key=lambda each: -each[1].weight.numel()):
        layer = load_file(folder / f"{name}.safetensors")
        if isinstance(module, torch.nn.Embedding):
            put(name, Int8Embedding(layer["weight"].clone(), layer["scale"].clone()))
        else:
            put(name, Int8Linear(layer["weight"], layer["scale"], layer.get("bias")))
        del layer
        _trim()
    for name, value in load_file(folder / _REST).items():
        put(name, torch.nn.Parameter(value.clone(), requires_grad=False))
    model.generation_config = auto.GenerationConfig.from_pretrained(folder)
    return model.eval()

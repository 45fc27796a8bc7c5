"""A small change to a model's weights, kept beside them in a file and merged when the model is converted.

The file is safetensors in bfloat16: for a weight NAME two matrices ``NAME.A`` (rank × inputs) and ``NAME.B`` (outputs ×
rank) of a LoRA (Hu et al., 2021), and for the embedding and the output layer ``NAME.rows``, new rows of some
tokens. Its metadata has ``scale`` and the ids of these ``tokens``. ``training/train.py`` writes it.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from .errors import UserError


def merge(model: Any, file: Path, sha256: str | None = None) -> None:
    """Add the adapter to the model's weights, in place: W + scale · B · A, computed in float32.

    Raises UserError when the file is not the expected one, cannot be read, or was made for another model.
    """
    import safetensors

    try:
        if sha256 is not None and hashlib.sha256(file.read_bytes()).hexdigest() != sha256:
            raise UserError(f"the adapter {file} is damaged: install qwen-tools again", code=3)
        with safetensors.safe_open(file, framework="pt") as tensors:
            metadata = tensors.metadata()
            scale, tokens = float(metadata["scale"]), json.loads(metadata["tokens"])
            for name in sorted(tensors.keys()):
                target, _, part = name.rpartition(".")
                if part == "A":
                    change = tensors.get_tensor(f"{target}.B").float() @ tensors.get_tensor(name).float()
                    weight = model.get_parameter(target).data
                    weight += (scale * change).to(weight.device)
                elif part == "rows":
                    model.get_parameter(target).data[tokens] = tensors.get_tensor(name).to(model.dtype)
    except (OSError, safetensors.SafetensorError, KeyError, ValueError) as error:
        raise UserError(f"cannot read the adapter {file}: {error}", code=3) from error
    except (AttributeError, RuntimeError, IndexError) as error:
        raise UserError(f"the adapter {file} is not for this model: {error}", code=3) from error

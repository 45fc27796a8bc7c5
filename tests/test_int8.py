"""Weights in 8 bits: close to the model they were made of, small in memory, kept on disk."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch
from test_decoder import ask, ids_of, small_model

from qwen_tools import models
from qwen_tools.engines import Settings, int8, open_engine
from qwen_tools.engines.transformers import load
from qwen_tools.errors import UserError


@pytest.mark.parametrize("kind", ["qwen2", "qwen3_moe"])
def test_the_logits_are_close(kind, tmp_path):
    model = small_model(kind)
    int8.write(model, tmp_path)
    rounded = int8.read(tmp_path)
    ids = torch.arange(1000, 1040)[None]
    with torch.inference_mode():
        theirs, ours = model(ids).logits[0], rounded(ids).logits[0]
    assert (ours - theirs).norm() < 0.05 * theirs.norm()
    assert rounded.generation_config.to_dict() == model.generation_config.to_dict()


def test_a_token_that_is_a_thousand_times_as_large_does_not_coarsen_the_others(tmp_path):
    """As the first token of a prompt is in some layers."""
    torch.manual_seed(0)
    exact = torch.nn.Linear(64, 48)
    weight = exact.weight.detach()
    scale = weight.abs().amax(1) / 127
    rounded = int8.Int8Linear((weight / scale[:, None]).round().to(torch.int8), scale, exact.bias.detach())
    tokens = torch.randn(1, 20, 64)
    tokens[0, 0] *= 1000
    with torch.inference_mode():
        wanted, found = exact(tokens), rounded(tokens)
    errors = (found - wanted).norm(dim=-1) / wanted.norm(dim=-1)
    assert errors.max() < 0.02


@pytest.fixture
def folder(tmp_path, monkeypatch):
    from family_tokenizers import tokenizer

    monkeypatch.setenv("QWEN_TOOLS_CACHE", str(tmp_path / "cache"))
    small_model("qwen2").save_pretrained(tmp_path / "model")
    tokenizer("qwen3").save_pretrained(tmp_path / "model")
    return tmp_path / "model"


def test_it_is_made_once_and_kept(folder, monkeypatch):
    first = load(folder, name="small", device="cpu", quantize="int8")
    monkeypatch.setattr(int8, "write", None)  # would fail
    second = load(folder, name="small", device="cpu", quantize="int8")
    settings = Settings(max_new_tokens=20, do_sample=False)
    assert ids_of(first.generate(ask("Hi"), settings)) == ids_of(second.generate(ask("Hi"), settings))
    (stored,) = [entry for entry in models.stored() if entry.kind == "converted"]
    assert "int8" in stored.names[0]
    assert not stored.note
    models.remove(stored.names[0])
    assert not stored.path.exists()


def test_a_changed_model_is_made_anew(folder):
    load(folder, name="small", device="cpu", quantize="int8")
    kept = next((folder.parent / "cache").glob("*-int8-*/rest.safetensors"))
    before = kept.stat().st_mtime_ns
    small_model("qwen2").save_pretrained(folder)
    load(folder, name="small", device="cpu", quantize="int8")
    assert kept.stat().st_mtime_ns > before


def test_what_there_is_not(folder):
    with pytest.raises(UserError, match="int8 is as fast"):
        load(folder, name="small", device="cpu", quantize="int4")
    with pytest.raises(UserError, match="leave --dtype out"):
        load(folder, name="small", device="cpu", dtype="float32", quantize="int8")


@pytest.mark.model
def test_the_embedded_model_is_rounded_on_a_cpu_unless_asked_otherwise(embedded):
    def rounded(**how) -> bool:
        engine = open_engine("embedded", device="cpu", **how)
        return any(isinstance(module, int8.Int8Linear) for module in engine._model.modules())

    assert rounded() is int8.is_fast()
    assert not rounded(quantize="none")
    assert not rounded(dtype="float32")


def test_another_model_is_taken_as_it_is(folder):
    engine = open_engine(str(folder), device="cpu")
    assert not any(isinstance(module, int8.Int8Linear) for module in engine._model.modules())


@pytest.mark.model
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_memory_follows_the_small_form(embedded):
    """The rise over what is there after imports is at most 1.3 of the weights that are kept."""
    code = """
import gc, os
import torch, transformers, accelerate, safetensors
from transformers.models.qwen2 import modeling_qwen2
from qwen_tools import models
from qwen_tools.engines import int8
def resident():
    return int(open("/proc/self/statm").read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
folder = models.prepare(models.resolve("embedded-plain"))
kept = models.derived(folder, "int8", None)
before = resident()
model = int8.read(kept)
gc.collect()
size = sum(path.stat().st_size for path in kept.glob("*.safetensors"))
print((resident() - before) / size)
# getrusage would count what this process was before it became a Python of its own.
highest = int(open("/proc/self/status").read().split("VmHWM:")[1].split()[0]) * 1024
print((highest - before) / size)
"""
    load(models.prepare(models.resolve("embedded-plain")), name="embedded", device="cpu", quantize="int8")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    now, highest = map(float, done.stdout.split())
    assert now < 1.3
    assert highest < 1.3

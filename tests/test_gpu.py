"""On a CUDA device: the same answers, from weights that are there alone. Run with ``pytest -m gpu``."""

from __future__ import annotations

import pytest
import torch
from test_decoder import QUESTIONS, ask, differ, ids_of, small_model

from qwen_tools.engines import Settings
from qwen_tools.engines.transformers import load
from qwen_tools.guide import Guide

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device"),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    from family_tokenizers import tokenizer

    folder = tmp_path_factory.mktemp("model")
    small_model("qwen2").save_pretrained(folder)
    tokenizer("qwen3").save_pretrained(folder)
    return folder


@pytest.mark.parametrize("question", QUESTIONS)
def test_greedy_answers_are_those_of_a_cpu(question, folder):
    settings = Settings(max_new_tokens=40, do_sample=False)
    here = load(folder, name="small", family="qwen3", device="cpu", dtype="float32")
    there = load(folder, name="small", family="qwen3", device="cuda", dtype="float32")
    prompt = ask(question)
    ours, theirs = (ids_of(engine.generate(prompt, settings)) for engine in (there, here))
    assert not differ(here._model, prompt.ids(here.tokenizer), ours, theirs)


def test_bfloat16_is_the_default_and_a_guide_holds(folder):
    engine = load(folder, name="small", family="qwen3", device="cuda")
    assert engine._model.dtype == torch.bfloat16
    assert engine._model.device.type == "cuda"
    settings = Settings(max_new_tokens=40, temperature=1.0, seed=3)
    pieces = list(engine.generate(ask("Yes?"), settings, guide=Guide(schema={"enum": ["yes", "no"]})))
    assert "".join(piece.text for piece in pieces) in ('"yes"', '"no"')


@pytest.mark.parametrize("quantize", ["int8", "int4"])
def test_fewer_bits(quantize, folder):
    pytest.importorskip("bitsandbytes")
    engine = load(folder, name="small", family="qwen3", device="cuda", quantize=quantize)
    assert ids_of(engine.generate(ask("Hi"), Settings(max_new_tokens=8)))

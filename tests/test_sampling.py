"""Sampling: what transformers' own ``generate`` would allow is what may come, and the settings are checked."""

from __future__ import annotations

import io
from types import SimpleNamespace

import pytest
import torch
from transformers import (
    GenerationConfig,
    LogitsProcessorList,
    MinPLogitsWarper,
    RepetitionPenaltyLogitsProcessor,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
)

from qwen_tools.cli import main
from qwen_tools.engines import Settings
from qwen_tools.engines.sampling import chooser
from qwen_tools.errors import UserError

OPEN = GenerationConfig()
NO_IDS = torch.tensor([], dtype=torch.long)


def logits(seed: int = 0, size: int = 40) -> torch.Tensor:
    return 3 * torch.randn(size, generator=torch.Generator().manual_seed(seed))


def drawn(settings: Settings, scores: torch.Tensor, count: int = 3000, ids=NO_IDS, defaults=OPEN) -> torch.Tensor:
    """Shares of each token in ``count`` draws; shape (vocabulary,)."""
    choose = chooser(settings, defaults)
    picks = torch.tensor([choose(scores.clone(), ids) for _ in range(count)])
    return torch.bincount(picks, minlength=len(scores)) / count


@pytest.mark.parametrize(
    "how",
    [
        {"temperature": 1.0},
        {"temperature": 0.5},
        {"top_k": 5},
        {"top_p": 0.7},
        {"min_p": 0.2},
        {"temperature": 1.5, "top_k": 12, "top_p": 0.9, "min_p": 0.05, "repetition_penalty": 1.3},
    ],
)
def test_draws_follow_the_distribution_of_transformers(how):
    scores, ids = logits(), torch.tensor([0, 3, 3, 7])
    theirs = LogitsProcessorList()
    if "repetition_penalty" in how:
        theirs.append(RepetitionPenaltyLogitsProcessor(how["repetition_penalty"]))
    for name, warper in (
        ("temperature", TemperatureLogitsWarper),
        ("top_k", TopKLogitsWarper),
        ("top_p", TopPLogitsWarper),
        ("min_p", MinPLogitsWarper),
    ):
        if name in how:
            theirs.append(warper(how[name]))
    expected = theirs(ids[None], scores[None].clone()).softmax(-1)[0]
    shares = drawn(Settings(seed=1, **how), scores, ids=ids)
    assert not shares[expected == 0].any()
    # Four standard deviations of a share in 3000 draws.
    assert ((shares - expected).abs() <= 4 * (expected * (1 - expected) / 3000).sqrt() + 1e-6).all()


def test_the_models_own_configuration_is_the_default():
    scores = logits()
    own = GenerationConfig(do_sample=True, top_k=1)
    assert drawn(Settings(), scores, 20, defaults=own).argmax() == scores.argmax()
    wide = drawn(Settings(top_k=0, seed=1), scores, 300, defaults=own)
    assert (wide > 0).sum() > 5
    assert (drawn(Settings(), scores, 20, defaults=OPEN) > 0).sum() == 1  # it says nothing: the likeliest


def test_temperature_zero_is_the_likeliest():
    own = GenerationConfig(do_sample=True, temperature=2.0)
    assert (drawn(Settings(temperature=0), logits(), 20, defaults=own) > 0).sum() == 1


def test_repetition_penalty_holds_without_sampling():
    scores = torch.tensor([2.0, 1.9, -1.0])
    choose = chooser(Settings(repetition_penalty=1.2), OPEN)
    assert choose(scores, torch.tensor([2])) == 0
    assert choose(scores, torch.tensor([0])) == 1


def test_a_token_that_is_masked_is_never_drawn():
    scores = logits()
    scores[:38] = float("-inf")
    how = Settings(temperature=2.0, top_k=5, top_p=0.9, min_p=0.01, repetition_penalty=1.5)
    shares = drawn(how, scores, 200, ids=torch.arange(40))
    assert not shares[:38].any()


def test_the_same_seed_draws_the_same():
    def picks(seed):
        choose = chooser(Settings(temperature=1.5, seed=seed), OPEN)
        return [choose(logits(step), NO_IDS) for step in range(30)]

    assert picks(7) == picks(7)
    assert picks(7) != picks(8)
    assert picks(None) != picks(None)


def test_a_configuration_without_the_newer_fields_is_read():
    assert chooser(Settings(), SimpleNamespace(do_sample=False))(logits(), NO_IDS) == int(logits().argmax())


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"temperature": -0.1}, "temperature must be 0 or more"),
        ({"temperature": float("nan")}, "temperature must be"),
        ({"top_p": 0}, "top_p must be above 0 and at most 1"),
        ({"top_p": 1.1}, "top_p must be"),
        ({"top_k": -1}, "top_k must be"),
        ({"min_p": 2}, "min_p must be from 0 to 1"),
        ({"repetition_penalty": 0}, "repetition_penalty must be above 0"),
        ({"seed": -1}, "seed must be"),
        ({"max_new_tokens": 0}, "max_new_tokens must be at least 1"),
        ({"stop": ("a", "")}, "a stop string must not be empty"),
    ],
)
def test_settings_out_of_range_are_refused(how, words):
    with pytest.raises(UserError, match=words):
        Settings(**how)


def test_chat_refuses_them_before_a_model_is_loaded(monkeypatch, capsys):
    monkeypatch.setattr("sys.stdin", io.StringIO())
    assert main(["chat", "--model", "/no/such/model", "--top-p", "3", "Hi"]) == 2
    assert "top_p must be above 0 and at most 1, not 3.0" in capsys.readouterr().err

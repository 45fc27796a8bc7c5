"""Decoding on small random models of the real architectures: what saves steps changes no answer."""

from __future__ import annotations

import json

import pytest
import torch
from family_tokenizers import tokenizer as tokenizer_of

from qwen_tools import Tool
from qwen_tools.engines import Settings, decoder
from qwen_tools.engines.kv_cache import KvCache
from qwen_tools.engines.lookup import MATCH, Lookup
from qwen_tools.engines.transformers import TransformersEngine
from qwen_tools.guide import Guide
from qwen_tools.messages import Message
from qwen_tools.prompt import Prompt

SMALL = {
    "vocab_size": 151_936,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "max_position_embeddings": 2048,
    "tie_word_embeddings": True,  # makes a random model repeat itself
}


def small_model(kind: str):
    import transformers

    torch.manual_seed(3)
    config = {
        "qwen2": lambda: transformers.Qwen2Config(**SMALL),
        "qwen3_moe": lambda: transformers.Qwen3MoeConfig(
            **SMALL, num_experts=4, num_experts_per_tok=2, moe_intermediate_size=32
        ),
        # Three layers in four keep a running state, which cannot be taken back.
        "qwen3_next": lambda: transformers.Qwen3NextConfig(
            **{**SMALL, "num_hidden_layers": 4},
            num_experts=4, num_experts_per_tok=2, moe_intermediate_size=32, shared_expert_intermediate_size=32,
            linear_num_value_heads=4, linear_num_key_heads=2, linear_key_head_dim=8, linear_value_head_dim=8,
        ),
    }[kind]()  # fmt: skip
    return transformers.AutoModelForCausalLM.from_config(config, dtype=torch.float32).eval()


@pytest.fixture(scope="module")
def engine():
    made: dict[str, TransformersEngine] = {}

    def make(kind: str = "qwen2") -> TransformersEngine:
        if kind not in made:
            made[kind] = TransformersEngine(small_model(kind), tokenizer_of("qwen3"), "qwen3", kind)
        return made[kind]

    return make


@pytest.mark.parametrize("length", [9, 511, 512, 513, 515, 1030])
def test_the_logits_of_the_last_rows_are_there_wherever_a_long_prompt_is_cut(engine, length):
    model = engine()._model
    ids = [number * 7919 % 5000 for number in range(length)]
    rows = KvCache(model).forward(ids, 9)
    with torch.inference_mode():
        whole = model(torch.tensor([ids])).logits[0, -9:]
    assert rows.shape == whole.shape
    assert torch.allclose(rows, whole, atol=1e-4)


def ask(text: str) -> Prompt:
    prompt = Prompt((), "qwen3")
    prompt.append([Message("user", text)])
    return prompt


def ids_of(pieces) -> list[int]:
    return [number for piece in pieces for number in piece.ids]


def differ(model, prompt: list[int], ours: list[int], theirs: list[int]) -> bool:
    """Whether two greedy answers differ where the model is not undecided (two best logits within 1e-3)."""
    for index, (one, other) in enumerate(zip(ours, theirs, strict=False)):
        if one != other:
            with torch.inference_mode():
                logits = model(torch.tensor([prompt + ours[:index]]), use_cache=False).logits[0, -1]
            best, second = logits.topk(2).values.tolist()
            return best - second > 1e-3
    return len(ours) != len(theirs)


def plain(monkeypatch, engine, prompt, settings, **how):
    """Without guesses."""
    with monkeypatch.context() as patch:
        patch.setattr(decoder.Lookup, "guess", lambda self, most: [])
        return list(engine.generate(prompt, settings, **how))


QUESTIONS = ["one two three one two three one two", "a b a b a b", "Wie heißt du? Wie heißt du?", "1 2 3 4 5 6 7 8 9"]


@pytest.mark.parametrize("kind", ["qwen2", "qwen3_moe", "qwen3_next"])
def test_greedy_answers_are_those_of_generate(kind, engine, monkeypatch):
    settings = Settings(max_new_tokens=60, do_sample=False)
    guessed = 0
    for question in QUESTIONS:
        prompt = ask(question)
        ids = prompt.ids(engine(kind).tokenizer)
        model = engine(kind)._model
        expected = model.generate(
            torch.tensor([ids]), attention_mask=torch.ones(1, len(ids)), max_new_tokens=60, do_sample=False
        )[0, len(ids) :].tolist()
        pieces = list(engine(kind).generate(prompt, settings))
        assert not differ(model, ids, ids_of(pieces), expected)
        guessed += pieces[-1].usage.lookup_tokens
    assert (guessed > 30) == (kind != "qwen3_next")


def test_guesses_change_no_sampled_answer(engine, monkeypatch):
    settings = Settings(max_new_tokens=60, temperature=0.2, top_k=5, repetition_penalty=0.7, seed=5)
    prompt = ask(QUESTIONS[0])
    with_guesses = list(engine().generate(prompt, settings))
    assert ids_of(plain(monkeypatch, engine(), prompt, settings)) == ids_of(with_guesses)
    assert with_guesses[-1].usage.lookup_tokens > 0


LIST = Tool("list", "", {"type": "object", "properties": {"x": {"type": "array", "items": {"enum": [17, 25, 301]},
            "minItems": 12, "maxItems": 12}}, "required": ["x"]})  # fmt: skip


def test_guesses_change_no_guided_answer(engine, monkeypatch):
    settings = Settings(max_new_tokens=200, do_sample=False)
    prompt = ask('{"x": [17, 17, 17, 17, 25, 25, 25]}')
    guided = list(engine().generate(prompt, settings, guide=Guide((LIST,))))
    assert ids_of(plain(monkeypatch, engine(), prompt, settings, guide=Guide((LIST,)))) == ids_of(guided)
    usage = guided[-1].usage
    assert usage.lookup_tokens > 0
    assert usage.forced_tokens > 0
    assert len(json.loads("".join(piece.text for piece in guided).split("\n")[1])["arguments"]["x"]) == 12


def test_the_limit_holds_with_guesses(engine):
    for limit in range(1, 30):
        pieces = list(engine().generate(ask(QUESTIONS[0]), Settings(max_new_tokens=limit, do_sample=False)))
        assert len(ids_of(pieces)) == pieces[-1].usage.new_tokens == limit
        assert pieces[-1].finish == "length"


def test_stopping_anywhere_leaves_a_cache_that_can_be_used(engine):
    settings = Settings(max_new_tokens=40, do_sample=False)
    prompt = ask(QUESTIONS[0])
    whole = ids_of(engine().generate(prompt, settings))
    for stop in range(1, 40, 3):
        stream = engine().generate(prompt, settings)
        begun = [next(stream).ids[0] for _ in range(stop)]
        stream.close()
        rest = ids_of(engine().generate(prompt, Settings(max_new_tokens=40 - stop, do_sample=False), begun=begun))
        assert begun + rest == whole


@pytest.mark.parametrize("kind", ["qwen2", "qwen3_next"])
def test_a_cropped_cache_gives_the_logits_of_a_fresh_computation(kind, engine):
    model = engine(kind)._model
    generator = torch.Generator().manual_seed(1)
    first, second = (torch.randint(150_000, (40,), generator=generator).tolist() for _ in range(2))
    cache = KvCache(model)
    cache.forward(first)
    prompt = first[:25] + second[:10]
    kept = cache.keep(prompt)
    assert kept == (25 if kind == "qwen2" else 0)
    ours = cache.forward(prompt[kept:], rows=3)
    with torch.inference_mode():
        theirs = model(torch.tensor([prompt]), use_cache=False).logits[0, -3:]
    torch.testing.assert_close(ours, theirs.clone(), atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("kind", ["qwen2", "qwen3_next"])
def test_what_only_grew_is_kept(kind, engine):
    cache = KvCache(engine(kind)._model)
    ids = list(range(100, 130))
    cache.forward(ids)
    assert cache.keep([*ids, 5, 6]) == 30


@pytest.mark.parametrize("kind", ["qwen2", "qwen3_next"])
def test_an_interrupted_computation_leaves_a_cache_that_can_be_used(kind, engine):
    model = engine(kind)._model
    cache = KvCache(model)
    ids = list(range(200, 230))
    cache.forward(ids[:10])

    def interrupt(*_):
        raise KeyboardInterrupt

    hook = model.model.layers[1].register_forward_pre_hook(interrupt)
    with pytest.raises(KeyboardInterrupt):
        cache.forward(ids[10:])
    hook.remove()
    ours = cache.forward(ids[cache.keep(ids) :])
    with torch.inference_mode():
        theirs = model(torch.tensor([ids]), use_cache=False).logits[0, -1:]
    torch.testing.assert_close(ours, theirs.clone(), atol=1e-4, rtol=1e-4)


def test_a_lookup_guesses_what_followed_the_last_time():
    lookup = Lookup([1, 2, 3, 4, 5, 6, 1, 2])
    assert lookup.guess(8) == []
    lookup.add([3])
    assert lookup.guess(8)[:5] == [4, 5, 6, 1, 2]
    assert lookup.guess(2) == [4, 5]
    assert lookup.guess(0) == []
    lookup.add([9, 1, 2, 3])
    assert lookup.guess(1) == [9]  # the last time


def test_a_lookup_of_little_guesses_nothing():
    for length in range(MATCH + 1):
        assert Lookup([7] * length).guess(8) == []

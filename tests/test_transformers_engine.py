"""The engine on the real model: the cache, the guide, the limits."""

from __future__ import annotations

import json

import pytest

from qwen_tools import Tool
from qwen_tools.engines import Settings
from qwen_tools.errors import UserError
from qwen_tools.guide import Guide
from qwen_tools.messages import Message
from qwen_tools.prompt import Prompt

pytestmark = pytest.mark.model

GREEDY = Settings(max_new_tokens=24, do_sample=False)
SQRT = Tool(
    "sqrt",
    "The square root of a number.",
    {
        "type": "object",
        "properties": {"value": {"type": "number"}},
        "required": ["value"],
    },
)
PAINT = Tool(
    "paint",
    "Paint a wall.",
    {
        "type": "object",
        "properties": {
            "colour": {"enum": ["red", "dark blue"]},
            "coats": {"type": "integer", "minimum": 1, "maximum": 3},
        },
        "required": ["colour", "coats"],
    },
)


def ask(question: str, *tools: Tool) -> Prompt:
    prompt = Prompt(tools, "qwen2.5")
    prompt.append([Message("user", question)])
    return prompt


def generate(engine, prompt, settings=GREEDY, **how):
    pieces = list(engine.generate(prompt, settings, **how))
    return "".join(piece.text for piece in pieces), [i for piece in pieces for i in piece.ids], pieces[-1]


def reference(engine, ids: list[int], count: int) -> list[int]:
    """Greedy continuation computed from scratch at every step, without any cache."""
    import torch

    new: list[int] = []
    with torch.inference_mode():
        for _ in range(count):
            logits = engine._model(input_ids=torch.tensor([ids + new]), use_cache=False).logits[0, -1]
            new.append(int(logits.argmax()))
    return new


def test_greedy_equals_transformers_generate(embedded):
    import torch

    prompt = ask("Name the planets.")
    ids = prompt.ids(embedded.tokenizer)
    expected = embedded._model.generate(
        torch.tensor([ids]), max_new_tokens=24, do_sample=False, repetition_penalty=1.0
    )[0, len(ids) :].tolist()
    text, new, last = generate(embedded, prompt)
    assert new == expected[: len(new)]
    assert text == embedded.tokenizer.decode(new)
    assert (last.finish, last.usage.new_tokens) == ("length", 24)


def test_the_next_prompt_computes_only_what_is_new(embedded):
    prompt = ask("What is a fjord?")
    text, new, last = generate(embedded, prompt)
    before = last.usage.prompt_tokens
    prompt.append([Message("assistant", text, raw=text, token_ids=tuple(new)), Message("user", "Where?")])
    ids = prompt.ids(embedded.tokenizer)
    assert ids[before : before + len(new)] == new
    _, _, last = generate(embedded, prompt)
    # All but the last sampled token, which was never computed on.
    assert last.usage.cached_tokens == before + len(new) - 1


def test_a_cropped_cache_gives_what_a_fresh_computation_gives(embedded):
    generate(embedded, ask("Tell me a long story about a dragon."))
    prompt = ask("Tell me a long poem about a dragon.")
    _, cropped, last = generate(embedded, prompt, Settings(max_new_tokens=8, do_sample=False))
    assert last.usage.cached_tokens > 0
    assert cropped == reference(embedded, prompt.ids(embedded.tokenizer), 8)


def test_stopping_in_the_middle_leaves_a_cache_that_can_be_used(embedded):
    prompt = ask("Count from one to fifty.")
    stream = embedded.generate(prompt, GREEDY)
    for _ in range(3):
        next(stream)
    stream.close()
    _, new, last = generate(embedded, prompt, Settings(max_new_tokens=8, do_sample=False))
    assert last.usage.cached_tokens == last.usage.prompt_tokens - 1
    assert new == reference(embedded, prompt.ids(embedded.tokenizer), 8)


def test_an_interrupted_computation_leaves_a_cache_that_can_be_used(embedded):
    prompt = ask("Describe the sea at night.")
    layer = embedded._model.model.layers[11]

    def interrupt(*_):
        raise KeyboardInterrupt

    hook = layer.register_forward_pre_hook(interrupt)
    with pytest.raises(KeyboardInterrupt):
        generate(embedded, prompt)
    hook.remove()
    _, new, _ = generate(embedded, prompt, Settings(max_new_tokens=8, do_sample=False))
    assert new == reference(embedded, prompt.ids(embedded.tokenizer), 8)


def test_a_guided_call_is_whole_and_valid(embedded):
    text, _, last = generate(embedded, ask("Paint it twice in blue.", SQRT, PAINT), guide=Guide((PAINT,)))
    assert last.finish == "length" or text.endswith("\n</tool_call>")
    text, ids, last = generate(
        embedded,
        ask("Paint it twice in blue.", SQRT, PAINT),
        Settings(max_new_tokens=80, do_sample=False),
        guide=Guide((PAINT,)),
    )
    assert last.finish == "stop"
    opener, body, closer = text.split("\n")
    call = json.loads(body)
    assert (opener, closer) == ("<tool_call>", "</tool_call>")
    assert call["name"] == "paint"
    assert call["arguments"]["colour"] in ("red", "dark blue")
    assert call["arguments"]["coats"] in (1, 2, 3)
    # The tags are the model's own tokens, not their letters.
    assert ids[0] == embedded.tokenizer.convert_tokens_to_ids("<tool_call>")
    assert last.usage.forced_tokens > 10


def test_a_guide_behind_text_that_was_begun(embedded):
    prompt = ask("What is the square root of 2?", SQRT)
    begun = embedded.tokenizer.encode("Let me see.\n")
    text, _, last = generate(embedded, prompt, Settings(max_new_tokens=60), begun=begun, guide=Guide((SQRT,)))
    assert text.startswith('<tool_call>\n{"name": "sqrt", "arguments": {"value": ')
    assert last.finish == "stop"


def test_held_to_prose_the_answer_holds_no_markup(embedded):
    text, _, _ = generate(embedded, ask("Give me a JSON object.", SQRT), guide=Guide(prose=True))
    assert text
    assert not set(text) & set("{}[]<`")


def test_a_prompt_that_does_not_fit_is_refused_before_anything_is_computed(embedded):
    prompt = ask("word " * 40_000)
    with pytest.raises(UserError, match="at most 32768"):
        generate(embedded, prompt)


def test_an_answer_longer_than_the_context_is_refused(embedded):
    with pytest.raises(UserError, match="room for 32768 tokens"):
        generate(embedded, ask("Hi"), Settings(max_new_tokens=40_000))


def test_a_stop_string_ends_the_answer(embedded):
    whole = generate(embedded, ask("Count from one to ten in digits."), Settings(max_new_tokens=24, do_sample=False))[0]
    middle = whole[6:9]
    text, _, last = generate(
        embedded, ask("Count from one to ten in digits."), Settings(max_new_tokens=24, do_sample=False, stop=(middle,))
    )
    assert (text, last.finish, last.stop) == (whole[: whole.index(middle)], "stop", middle)


def test_a_schema_that_cannot_guide_is_named(embedded):
    odd = Tool("odd", "Odd.", {"type": "object", "properties": {"a": {"type": "array", "uniqueItems": True}}})
    with pytest.raises(UserError, match=r"'odd'.*uniqueItems"):
        generate(embedded, ask("Hi", odd), guide=Guide((odd,)))


def test_sampling_obeys_the_seed(embedded):
    settings = Settings(max_new_tokens=12, do_sample=True, temperature=1.5, top_p=0.95, top_k=50, seed=7)
    # A prompt computed at once is rounded otherwise than its last token behind a cache: the first call fills it.
    generate(embedded, ask("Invent a name."), settings)
    first = generate(embedded, ask("Invent a name."), settings)[1]
    assert generate(embedded, ask("Invent a name."), settings)[1] == first
    others = [
        generate(embedded, ask("Invent a name."), Settings(12, True, 1.5, 0.95, 50, seed))[1] for seed in (1, 2, 3)
    ]
    assert any(other != first for other in others)


def test_characters_of_several_tokens_come_whole(embedded):
    ids = embedded.tokenizer.encode("naïve 📝 天气 👩‍👩‍👧")
    from qwen_tools.engines.detokenizer import Detokenizer

    text = Detokenizer(embedded.tokenizer)
    pieces = [text.add([number]) for number in ids]
    assert "".join(pieces) + text.rest() == "naïve 📝 天气 👩‍👩‍👧"
    assert "�" not in "".join(pieces)


def test_loading_costs_little_more_than_from_pretrained(embedded):
    import time

    import transformers

    from qwen_tools import models
    from qwen_tools.engines.transformers import load

    folder = models.prepare(models.resolve("embedded"))

    def seconds(how) -> float:
        started = time.process_time()
        how()
        return time.process_time() - started

    def theirs():
        transformers.AutoTokenizer.from_pretrained(folder)
        transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=embedded._model.dtype)

    def ours():
        load(folder, name="embedded", device="cpu")

    # In turns, so that whatever else the machine does falls on both.
    times = [(seconds(ours), seconds(theirs)) for _ in range(5)]
    assert min(mine for mine, _ in times) <= 1.3 * min(peer for _, peer in times)

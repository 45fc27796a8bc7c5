"""What the adapter is trained on, and how: nothing of what it is judged by, and a step that does what it says."""

from __future__ import annotations

import json
import re
from itertools import islice

import pytest
from family_tokenizers import tokenizer

from qwen_tools import evaluate
from qwen_tools.adapter import merge
from qwen_tools.engines import Settings
from qwen_tools.errors import UserError
from qwen_tools.messages import Message
from qwen_tools.prompt import Prompt
from qwen_tools.validate import check_schema, problem
from training import heldout, mainjob
from training.batches import BatchEngine
from training.conversations import TOOLS, VALIDATION, groups
from training.evaluate import contains
from training.train import IGNORED, Learner, packed


@pytest.fixture(scope="module")
def seen():
    """The groups of a whole training run, and those that choose its checkpoint."""
    return [*islice(groups(0), 400), *islice(groups(10**6, validation=True), 12)]


def questions(seen) -> set[str]:
    return {
        message.content
        for group in seen
        for conversation in group.conversations
        for message in conversation.messages
        if message.role == "user"
    }


def runs(text: str, words: int, signs: int) -> set[str]:
    """All stretches of so many words in Latin letters, and of so many Chinese signs."""
    found = re.findall(r"[a-zà-ÿ0-9'.-]+", text.lower())
    chinese = "".join(re.findall(r"[一-鿿]", text))
    return {" ".join(found[at : at + words]) for at in range(len(found) - words + 1)} | {
        chinese[at : at + signs] for at in range(len(chinese) - signs + 1)
    }


def test_a_seed_gives_the_same_conversations_and_another_seed_others():
    first, again, other = (list(islice(groups(seed), 20)) for seed in (1, 1, 2))
    assert first == again
    assert first != other


def test_every_call_that_is_learnt_is_valid_and_of_an_offered_tool(seen):
    learnt = 0
    for group in seen:
        offered = {tool.name: tool.parameters for tool in group.tools}
        assert len(offered) == len(group.tools)
        for name, parameters in offered.items():
            check_schema(parameters, name)
        for conversation in group.conversations:
            for place, message in enumerate(conversation.messages):
                if place in conversation.unlearnt:
                    assert message.calls
                    continue
                for call in message.calls:
                    learnt += 1
                    assert problem(call.arguments, offered[call.name]) is None, (call, offered[call.name])
    assert learnt > 1500


def test_conversations_end_in_words_and_every_call_has_its_result(seen):
    for group in seen:
        for conversation in group.conversations:
            waiting = 0
            for message in conversation.messages:
                waiting += len(message.calls) if message.role == "assistant" else -(message.role == "tool")
                assert "{" not in message.content or message.role == "tool" or "```" in message.content, message
            assert waiting == 0
            assert conversation.messages[-1].role == "assistant"
            assert conversation.messages[-1].content


def test_validation_tools_are_in_no_training_group(seen):
    def topics(some):
        return {tool.description for group in some for tool in group.tools}

    kept = {about for tool in TOOLS if tool.names[0] in VALIDATION for about in tool.about}
    assert topics(seen[400:]) & kept
    assert not topics(seen[:400]) & kept


class TestNothingIsJudgedThatWasTrained:
    def test_bfcl(self, seen):
        pytest.importorskip("bfcl_eval", reason="pip install --no-deps bfcl-eval==2026.3.23")
        names, asked, gold = set(), set(), set()
        for category in [
            "simple_python",
            "multiple",
            "parallel",
            "parallel_multiple",
            "irrelevance",
            "live_simple",
            "live_multiple",
        ]:
            for item in evaluate.items(category):
                names |= {tool.name for tool in item.tools}
                asked.add(item.messages[-1].content)
                gold |= {name for call in item.truth for name in call}
        ours = {name for tool in TOOLS for name in tool.names} | {tool.name for tool in heldout.TOOLS}
        assert ours.isdisjoint(names | gold)
        theirs = set().union(*(runs(each, 8, 14) for each in asked))
        shared = {run for each in questions(seen) for run in runs(each, 8, 14)} & theirs
        assert not shared

    def test_heldout(self, seen):
        trained = set().union(*(runs(each, 5, 7) for each in questions(seen)))
        asked = [
            *(question for _, question, _, _ in heldout.QUESTIONS),
            *(question for question, *_ in heldout.FAULTS),
            *(question for question, *_ in heldout.FOLLOW_UPS),
        ]
        for question in asked:
            assert not runs(question, 5, 7) & trained, question
        ours = {name for tool in TOOLS for name in tool.names}
        slots = {tuple(sorted(names)) for tool in TOOLS for names, _, _ in tool.slots.values()}
        for tool in heldout.TOOLS:
            assert tool.name not in ours
            assert tuple(sorted(tool.parameters["properties"])) not in slots

    def test_the_held_out_questions_can_be_answered(self):
        """The value that is right comes out of the question's own tool for some arguments of the question."""
        by_name = {tool.name: tool for tool in heldout.TOOLS}
        assert len(heldout.QUESTIONS) == 100
        for place, (_, _, name, _) in enumerate(heldout.QUESTIONS):
            offered = heldout.offered(place)
            assert by_name[name] in offered
            assert 3 <= len(offered) <= 5
        assert by_name["ferry_fare"].function(passengers=2, vehicle="car") == {"fare": 70}
        assert by_name["power_meter"].function(flat="7c", month="2025-11") == {"kwh": 274}

    def test_the_main_job_is_not_asked_in_the_words_of_training(self, seen):
        asked = {question for _, row in mainjob.ROWS.values() for question in row}
        numbers = {number for each in questions(seen) for number in re.findall(r"[\d.]{4,}", each)}
        assert not numbers & {number for each in asked for number in re.findall(r"[\d.]{4,}", each)}


@pytest.mark.parametrize(
    ("text", "value", "found"),
    [
        ("There are 17 bikes.", "17", True), ("There are 217 bikes.", "17", False), ("17.5 kg", "17", False),
        ("You owe 1,260 cents.", "1260", True), ("It is 10.818703857262644.", "10.8187", True),
        ("6.0 litres", "6", True),
        ("at 05:42 h", "05:42", True), ("on Monday", "Monday", True), ("", "5", False), ("It ends at 5.", "5", True),
    ],
)  # fmt: skip
def test_what_counts_as_a_right_answer(text, value, found):
    assert contains(text, value) is found


class TestPacking:
    def test_learnt_are_the_assistants_words_and_the_ends_of_its_turns(self):
        codec = tokenizer("qwen2.5")
        for group in islice(groups(3), 12):
            batch = packed(group, codec, "qwen2.5")
            learnt = codec.decode([label for label in batch["labels"] if label != IGNORED])
            assert all(label in (IGNORED, token) for label, token in zip(batch["labels"], batch["ids"], strict=True))
            included = set(batch["parts"]) - {0}
            expected = []
            for number, conversation in enumerate(group.conversations, start=1):
                for place, message in enumerate(conversation.messages):
                    if number in included and message.role == "assistant" and place not in conversation.unlearnt:
                        expected.append(message.content or json.dumps(message.calls[0].arguments, ensure_ascii=False))
            assert 1 in included
            assert learnt.count("<|im_end|>") == len(expected)
            assert all(text in learnt for text in expected)
            assert "<|im_start|>" not in learnt

    def test_a_conversation_in_a_pack_is_read_as_if_it_were_alone(self, learner):
        group = next(group for group in groups(4) if len(group.conversations) > 2)
        together = packed(group, learner.codec, "qwen2.5")
        logits, wanted = learner._forward(together)
        alone = []
        for number in sorted(set(together["parts"]) - {0}):
            one = type(group)(group.system, group.tools, [group.conversations[number - 1]])
            alone.append(learner._forward(packed(one, learner.codec, "qwen2.5")))
        import torch

        assert torch.equal(wanted, torch.cat([each for _, each in alone]))
        assert torch.allclose(logits.float(), torch.cat([each for each, _ in alone]).float(), atol=0.05)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A tiny Qwen2 with random weights, the real vocabulary, and rows of the tags that are alike."""
    import torch
    from transformers import Qwen2Config, Qwen2ForCausalLM

    torch.manual_seed(0)
    path = tmp_path_factory.mktemp("tiny")
    codec = tokenizer("qwen2.5")
    config = Qwen2Config(
        vocab_size=151936, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=2,
        num_key_value_heads=1, tie_word_embeddings=False,
    )  # fmt: skip
    model = Qwen2ForCausalLM(config)
    tags = codec.convert_tokens_to_ids(["<tool_call>", "</tool_call>"])
    with torch.no_grad():
        for weight in (model.model.embed_tokens.weight, model.lm_head.weight):
            weight[tags[1]] = weight[tags[0]]
    model.save_pretrained(path)
    return path


@pytest.fixture
def learner(folder):
    pytest.importorskip("peft")
    codec = tokenizer("qwen2.5")
    made = Learner(folder, codec, 4, "cpu")
    made.codec = codec
    return made


class TestLearning:
    def test_steps_make_the_loss_smaller_and_the_merged_model_is_the_trained_one(self, learner, folder, tmp_path):
        import torch
        from transformers import AutoModelForCausalLM

        batch = packed(next(groups(5)), learner.codec, "qwen2.5")
        losses = [learner.learn(batch, 10.0) for _ in range(12)]
        assert losses[-1] < losses[0] - 0.1
        learner.save(tmp_path / "adapter.safetensors", seed=5)
        merged = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
        before = merged.lm_head.weight.clone()
        merge(merged, tmp_path / "adapter.safetensors")
        changed = (merged.lm_head.weight != before).any(-1).nonzero().flatten().tolist()
        assert changed == learner.tags
        # Without the pack's mask this holds for the first conversation.
        end = batch["parts"].index(2) if 2 in batch["parts"] else len(batch["ids"])
        with torch.inference_mode():
            logits = merged(torch.tensor([batch["ids"][:end]])).logits[0]
            expected, _ = learner._forward(batch)
        places = [place for place, label in enumerate(batch["labels"][:end]) if label != IGNORED]
        assert torch.allclose(logits[torch.tensor(places) - 1], expected[: len(places)].float(), atol=0.1)

    def test_rows_that_were_never_trained_start_at_the_mean_of_what_spells_the_tag(self, learner, folder):
        import torch
        from transformers import AutoModelForCausalLM

        weight = AutoModelForCausalLM.from_pretrained(folder, dtype=learner.dtype).model.embed_tokens.weight
        ids = learner.codec.convert_tokens_to_ids(["<", "tool", "_call", ">"])
        assert torch.allclose(learner.rows[0], weight[ids].float().mean(0))
        assert not torch.allclose(learner.rows[0], learner.rows[1])

    def test_answers_in_batches_are_those_of_one_prompt_at_a_time(self, learner, folder):
        """Whatever prompts have in common, however long they are, and whenever each of them ends."""
        import torch
        from transformers import AutoModelForCausalLM

        model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
        engine = BatchEngine(model, learner.codec, "qwen2.5", size=4)
        asked = ["Hi", "Hi", "How high is the tower?", "你好", "x " * 40, "What is 2 + 2?"]

        def answer(question):
            prompt = Prompt((), "qwen2.5")
            prompt.append([Message("user", question)])
            (piece,) = engine.generate(prompt, Settings(max_new_tokens=8, do_sample=False))
            return prompt.ids(learner.codec), list(piece.ids)

        for prompt, found in engine.map(answer, asked):
            wanted = model.generate(
                torch.tensor([prompt]), max_new_tokens=8, do_sample=False, eos_token_id=[*engine._ends]
            )[0, len(prompt) :].tolist()
            assert found == [token for token in wanted if token not in engine._ends]

    def test_an_adapter_for_another_model_or_a_damaged_one_is_refused(self, learner, tmp_path):
        import torch
        from transformers import Qwen2Config, Qwen2ForCausalLM

        file = tmp_path / "adapter.safetensors"
        learner.save(file)
        config = Qwen2Config(
            vocab_size=100,
            hidden_size=16,
            intermediate_size=8,
            num_hidden_layers=1,
            num_attention_heads=1,
            num_key_value_heads=1,
        )
        other = Qwen2ForCausalLM(config)
        with pytest.raises(UserError, match="not for this model"):
            merge(other, file)
        with pytest.raises(UserError, match="damaged"):
            merge(other, file, "0" * 64)
        file.write_bytes(b"no adapter")
        with pytest.raises(UserError, match="cannot read"):
            merge(other, file)
        with pytest.raises(UserError, match="cannot read"):
            merge(other, tmp_path / "missing")
        assert all(torch.isfinite(each).all() for each in other.parameters())

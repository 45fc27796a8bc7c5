"""An answer that was cut goes on where it was cut."""

from __future__ import annotations

import json

import pytest
from family_tokenizers import tokenizer
from hypothesis import given
from hypothesis import strategies as st

from qwen_tools import Message, Tool, parse, run
from qwen_tools import events as ev
from qwen_tools.engines import Settings
from qwen_tools.engines.scripted import ScriptedEngine
from qwen_tools.errors import UserError
from qwen_tools.prompt import Prompt, encode, segments

NUMBER = {"type": "number"}
ADD = Tool(
    "add", "Add.", {"type": "object", "properties": {"a": NUMBER, "b": NUMBER}}, lambda a, b: a + b, read_only=True
)
CALL = "<tool_call>\n" + json.dumps({"name": "add", "arguments": {"a": 1, "b": 2}}) + "\n</tool_call>"
QUESTION = Message("user", "Go.")


def cut(raw: str, finish: str = "interrupted", prefill: str = "", family: str = "qwen3") -> Message:
    return Message("assistant", parse(raw, prefill=prefill).content, prefill=prefill, raw=raw, finish=finish)


def go_on(message: Message, answers: list[str], **how):
    engine = ScriptedEngine(answers, family="qwen3")
    events = list(run(engine, [QUESTION, message], [ADD], **how))
    return engine, events, [event.message for event in events if isinstance(event, ev.MessageAdded)]


@given(st.text(st.sampled_from("ab <>\n中"), max_size=30), st.integers(0, 30))
def test_the_whole_is_as_if_it_had_not_been_cut(text, at):
    """Cut anywhere, the message is the one of an answer in one piece, and the new events are the rest."""
    begun, rest = text[:at], text[at:]
    engine, events, added = go_on(cut(begun), [rest])
    kept = engine.prompts[0].rpartition("<|im_start|>assistant\n")[2]
    assert begun.startswith(kept)  # a tag that was cut is begun anew
    assert [(message.raw, message.content) for message in added] == [(kept + rest, parse(kept + rest).content)]
    assert events[-1] == ev.Done("stop")


def test_the_prompt_ends_in_what_was_said():
    engine, events, added = go_on(cut("One, two"), [", three."])
    assert engine.prompts[0].endswith("<|im_start|>assistant\nOne, two")
    assert next(event for event in events if isinstance(event, ev.RoundStart)).prompt == engine.prompts[0]
    assert "".join(event.delta for event in events if isinstance(event, ev.Text)) == ", three."
    assert added[0].content == "One, two, three."


def test_a_call_that_was_cut_is_begun_anew():
    engine, _, added = go_on(cut("I add.\n" + CALL[:30]), [CALL, "It is 3."])
    assert engine.prompts[0].endswith("assistant\nI add.\n")
    assert [message.role for message in added] == ["assistant", "tool", "assistant"]
    assert (added[0].content.strip(), added[0].calls[0].arguments, added[1].content) == (
        "I add.",
        {"a": 1, "b": 2},
        "3",
    )


def test_a_thought_that_was_cut_goes_on():
    _, events, added = go_on(cut("<think>\nHm"), [", yes.\n</think>\n\nYes."])
    assert (added[0].reasoning.strip(), added[0].content) == ("Hm, yes.", "Yes.")
    assert "".join(event.delta for event in events if isinstance(event, ev.Reasoning)).strip() == ", yes."


def test_cut_again_it_goes_on_again():
    _, _, (once,) = go_on(cut("ab"), ["cdefghij"], settings=Settings(max_new_tokens=1))
    assert (once.finish, once.raw) == ("length", "abcdef")
    _, _, (twice,) = go_on(once, ["ghij"])
    assert (twice.finish, twice.raw) == ("stop", "abcdefghij")


def test_an_answer_that_was_whole_is_not_continued():
    engine, _, added = go_on(Message("assistant", "Done.", raw="Done."), ["More."])
    assert engine.prompts[0].endswith("Done.<|im_end|>\n<|im_start|>assistant\n")
    assert added[0].content == "More."


@pytest.mark.parametrize(
    "message",
    [
        Message("assistant", "Hi", "Hm", finish="length"),  # a thought that another model wrote
        cut("Hi", prefill="<think>\n\n</think>\n\n"),  # now the model is to think
    ],
)
def test_what_cannot_be_continued_is_said(message):
    with pytest.raises(UserError, match="cannot be continued"):
        go_on(message, ["No."])


@pytest.mark.parametrize("family", ["qwen2.5", "qwen3"])
def test_the_ids_that_were_sampled_stay(family):
    codec = tokenizer(family)
    text = "Well, 北京 <b>"
    ids = (*codec.encode("We", add_special_tokens=False), *codec.encode(text[2:], add_special_tokens=False))
    prompt = Prompt((), family)
    prompt.append([QUESTION])
    before = prompt.ids(codec)
    prompt.begin(text, ids)
    assert prompt.ids(codec) == [*before, *ids]
    prompt.begin(text)
    assert prompt.ids(codec) == [*before, *codec.encode(text, add_special_tokens=False)]
    prompt.append([Message("assistant", text, raw=text), QUESTION])
    assert prompt.ids(codec) == encode(segments([QUESTION, Message("assistant", text), QUESTION], family=family), codec)


@pytest.mark.model
def test_the_real_model_says_the_same_as_without_a_cut(embedded):
    question = Message("user", "Count from one to ten in words, separated by commas.")

    def last(messages, tokens):
        how = Settings(max_new_tokens=tokens, do_sample=False)
        events = run(embedded, messages, settings=how)
        return [event.message for event in events if isinstance(event, ev.MessageAdded)][-1]

    whole = last([question], 24)
    begun = last([question], 7)
    assert (begun.finish, len(begun.token_ids)) == ("length", 7)
    assert last([question, begun], 17) == whole

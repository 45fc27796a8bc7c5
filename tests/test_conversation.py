"""A conversation stays well-formed and on disk, whatever ends an answer early."""

from __future__ import annotations

import errno
import itertools
import json
import random
import signal
import threading

import pytest

from qwen_tools import events as ev
from qwen_tools.commands.conversation import Asking, Conversation
from qwen_tools.engines import Settings
from qwen_tools.engines.scripted import ScriptedEngine
from qwen_tools.errors import UserError
from qwen_tools.messages import Message, as_messages
from qwen_tools.session import Session, load
from qwen_tools.tool_sources import load as load_tools

ADD = "".join(
    f'<tool_call>\n{{"name": "add", "arguments": {{"a": {number}, "b": 2}}}}\n</tool_call>' for number in (1, 5)
)
ANSWERS = [f"I add.\n{ADD}", "It is 3 and 7.", "Welcome."]


@pytest.fixture
def begin(home):
    def begin(answers=ANSWERS, name="talk", **asking) -> Conversation:
        how = Asking(Settings(), {}, **asking)
        session = Session(home / f"{name}.jsonl")
        return Conversation(ScriptedEngine(answers), load_tools("add,sqrt"), how, lambda call, tool: False, session)

    return begin


def kept(tmp_path) -> list[Message]:
    return load(tmp_path / "talk.jsonl")


def roles(messages) -> list[str]:
    return [message.role for message in messages]


def raise_at(number: int, error: BaseException, seen: list[ev.Event]):
    def show(event: ev.Event) -> None:
        seen.append(event)
        if len(seen) == number:
            raise error

    return show


@pytest.mark.parametrize("error", [KeyboardInterrupt(), OSError(errno.EIO, "the terminal is gone")], ids=repr)
def test_an_answer_stopped_anywhere_leaves_a_conversation_that_goes_on(tmp_path, begin, error):
    conversation, everything = begin(), []
    assert conversation.ask("Add.", everything.append).reason == "stop"
    for number in range(1, len(everything) + 1):
        conversation, seen = begin([*ANSWERS, "Spare."], name=f"talk{number}"), []
        done = conversation.ask("Add.", raise_at(number, error, seen))
        assert done.reason == ("stop" if number == len(everything) else "interrupted")
        assert conversation.closed is isinstance(error, OSError)
        if conversation.closed:
            assert len(seen) == number  # nothing is written to a terminal that is gone
        assert load(tmp_path / f"talk{number}.jsonl") == conversation.messages
        calls = sum(len(message.calls) for message in conversation.messages)
        assert roles(conversation.messages).count("tool") == calls
        as_messages(conversation.messages)
        assert conversation.ask("Go on.", lambda event: None).reason == "stop"


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_ctrl_c_that_strikes_in_a_finalizer_is_not_lost(begin):
    class Closing:
        def __del__(self) -> None:
            signal.raise_signal(signal.SIGINT)

    def show(event: ev.Event) -> None:
        if isinstance(event, ev.Text):
            Closing()

    assert begin(["One two three four."]).ask("Go.", show).reason == "interrupted"


@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="there is no SIGHUP here")
def test_what_is_to_be_ignored_as_under_nohup_stops_nothing(begin):
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        conversation = begin(["One two three four."])
        assert conversation.ask("Go.", lambda event: signal.raise_signal(signal.SIGHUP)).reason == "stop"
        assert not conversation.closed
    finally:
        signal.signal(signal.SIGHUP, before)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_what_was_said_is_kept_however_often_and_whenever_an_answer_is_stopped(tmp_path, begin):
    over = threading.Event()
    main = threading.main_thread().ident

    def press() -> None:
        while not over.wait(random.uniform(0, 0.002)):
            signal.pthread_kill(main, signal.SIGINT)

    before = signal.signal(signal.SIGINT, lambda number, frame: None)
    try:
        for number in range(60):
            conversation = begin(["word " * 100_000], name=f"talk{number}")
            conversation.asking.settings = Settings(max_new_tokens=1_000_000)
            over.clear()
            presses = threading.Thread(target=press)
            count = itertools.count()
            done = conversation.ask("Go.", lambda event, n=count, start=presses.start: next(n) == 5 and start())
            over.set()
            presses.join()
            assert done.reason == "interrupted"
            question, answer = load(tmp_path / f"talk{number}.jsonl")
            assert [question, answer] == conversation.messages
            assert answer.finish == "interrupted"
            assert answer.content.startswith("word ")
    finally:
        over.set()
        signal.signal(signal.SIGINT, before)


def test_a_reader_that_went_away_is_told_to_the_caller_and_what_was_said_is_kept(tmp_path, begin):
    with pytest.raises(BrokenPipeError):
        begin(["One two three four."]).ask("Go.", raise_at(3, BrokenPipeError(), []))
    question, answer = kept(tmp_path)
    assert (question.content, answer.finish) == ("Go.", "interrupted")


def test_a_turn_that_fails_in_its_second_round_leaves_the_conversation_as_before(tmp_path, begin):
    conversation = begin(["Hello.", ADD])
    conversation.ask("Hi", lambda event: None)
    with pytest.raises(UserError, match="only 2 answers"):
        conversation.ask("Add.", lambda event: None)
    assert [message.content for message in conversation.messages] == ["Hi", "Hello."]
    assert kept(tmp_path) == conversation.messages
    assert conversation.failed == "Add."
    assert "Add." in (tmp_path / "talk.jsonl").read_text()


def test_what_is_undone_stays_on_disk_and_leaves_the_conversation(tmp_path, begin):
    conversation = begin()
    conversation.ask("Add.", lambda event: None)
    conversation.ask("Thanks.", lambda event: None)
    assert conversation.undo() == "Thanks."
    assert roles(kept(tmp_path)) == ["user", "assistant", "tool", "tool", "assistant"]
    assert conversation.undo() == "Add."
    assert kept(tmp_path) == []
    assert "Welcome." in (tmp_path / "talk.jsonl").read_text()
    with pytest.raises(UserError, match="nothing was asked"):
        conversation.undo()


def test_another_system_text_is_the_first_message_from_then_on(tmp_path, begin):
    conversation = begin(["One.", "Two."], system="Be brief.")
    conversation.ask("Hi", lambda event: None)
    conversation.set_system("Shout.")
    assert [message.content for message in kept(tmp_path)] == ["Shout.", "Hi", "One."]
    conversation.ask("And?", lambda event: None)
    conversation.set_system(None)
    assert roles(kept(tmp_path)) == ["user", "assistant"] * 2
    assert conversation.engine.prompts[1].startswith("<|im_start|>system\nShout.")


def test_a_tool_that_is_off_is_not_in_the_prompt(begin):
    conversation = begin()
    conversation.offer("add", on=False)
    assert '"sqrt"' in conversation.next_prompt().text
    assert '"add"' not in conversation.next_prompt().text
    conversation.offer("add", on=True)
    assert '"add"' in conversation.next_prompt().text
    with pytest.raises(UserError, match="no tool 'ad'"):
        conversation.offer("ad", on=True)


def test_another_model_reads_in_its_own_form_what_the_first_one_said(tmp_path, begin):
    conversation = begin([ADD, "It is 3 and 7."])
    conversation.ask("Add.", lambda event: None)
    conversation.use(ScriptedEngine(["Well."], family="qwen3-coder", name="other"))
    text = conversation.next_prompt().text
    assert "<function=add>" in text
    assert json.dumps({"name": "add"})[:-1] not in text
    conversation.ask("And?", lambda event: None)
    assert roles(kept(tmp_path)) == ["user", "assistant", "tool", "tool", "assistant", "user", "assistant"]
    assert load(tmp_path / "talk.jsonl", ("other", "qwen3-coder")) == conversation.messages


def test_a_session_goes_on_with_its_own_system_text_or_says_that_another_was_asked_for(tmp_path, begin):
    conversation = begin(["One."], system="Be brief.")
    conversation.ask("Hi", lambda event: None)
    conversation.clear()
    again = begin(["Two."])
    assert again.asking.system == "Be brief."
    again.ask("And?", lambda event: None)
    assert [message.content for message in kept(tmp_path)] == ["Be brief.", "Hi", "One.", "And?", "Two."]
    again.clear()
    with pytest.raises(UserError, match="another system text"):
        begin(["No."], system="Shout.")

"""What must be true of every answer, as one function; the property tests and the fuzzer apply it to theirs."""

from __future__ import annotations

import json
import re
from itertools import pairwise

from qwen_tools import StreamParser, events
from qwen_tools.parser import TRANSITIONS, fold

# Markup that may vanish outside of the attempts: of thoughts, lists, and tags that belong to nothing, or that the end
# of the answer cut. A token that ends the turn takes the rest along.
DROPPED = re.compile(
    r"</?think>|</?tool_call>|</[\w:.-]{1,40}>|[\[\],}]|\s+|<\|im_end\|>|<\|endoftext\|>|<\|im_start\|>|<[/|]?[\w:.-]*(?=\Z|<\|)"
)
KINDS = {"invalid_json", "unterminated", "missing_name", "unknown_tool", "schema", "too_large"}


def read(pieces, tools=(), prefill="", finish="stop", salvage=False, max_call=1_000_000):
    """The events of an answer in these pieces."""
    parser = StreamParser(tools, prefill, salvage, max_call)
    told = [event for piece in pieces for event in parser.feed(piece)]
    assert parser.state in TRANSITIONS
    told += parser.close(finish)
    assert parser.state == "done"
    return told


def cut(text, places):
    """The text in pieces."""
    places = sorted({place % (len(text) + 1) for place in places} | {0, len(text)})
    return [text[start:end] for start, end in pairwise(places)]


def check(text, places, **setting):
    """All laws, for one answer; returns the turn."""
    whole = read([text], **setting)
    turn = fold(whole)
    for pieces in (cut(text, places), list(text)):
        told = read(pieces, **setting)
        assert fold(told) == turn, pieces
        check_order(told)
    check_order(whole)
    check_attempts(text, turn, setting.get("finish", "stop"))
    if not any(repair.startswith("salvaged:") for call in turn.calls for repair in call.repairs):
        assert covers(text, turn), "something is lost, or told twice"
    return turn


def check_order(told):
    """Events come in an order that a program can rely on, and argument deltas join to the arguments."""
    assert isinstance(told[-1], events.End)
    thinking, opened, deltas, named = False, None, "", None
    count = 0
    for event in told[:-1]:
        if isinstance(event, events.ReasoningStart):
            assert not thinking
            assert opened is None
            thinking = True
        elif isinstance(event, events.Reasoning):
            assert thinking
            assert event.delta
        elif isinstance(event, events.ReasoningEnd):
            assert thinking
            thinking = False
        elif isinstance(event, events.Text):
            assert not thinking
            assert opened is None
            assert event.delta
        elif isinstance(event, events.CallStart):
            assert not thinking
            assert opened is None
            assert event.index == count
            opened, deltas, named, count = event.index, "", None, count + 1
        elif isinstance(event, events.CallName):
            assert event.index == opened
            assert named is None
            named = event.name
        elif isinstance(event, events.CallArgs):
            assert event.index == opened
            deltas += event.delta
        elif isinstance(event, events.CallEnd):
            assert event.index == opened
            assert named == event.call.name
            assert json.loads(deltas) == event.call.arguments
            opened = None
        else:
            assert isinstance(event, events.CallError), event
            assert event.index == opened
            opened = None
    assert not thinking
    assert opened is None


def check_attempts(text, turn, finish):
    """Attempts name their place in the answer, in order; each problem is of a known kind and says something."""
    spans = attempts(turn)
    assert spans == sorted(spans)
    assert all(end <= start for (_, end), (start, _) in pairwise(spans))
    for attempt in (*turn.calls, *turn.problems):
        start, end = attempt.span
        assert 0 <= start <= end <= len(text)
        assert text[start:end] == attempt.raw or getattr(attempt, "kind", "") == "too_large"
    for problem in turn.problems:
        assert problem.kind in KINDS
        assert problem.message.strip()
        assert "\n" not in problem.message
    own = [problem for call in turn.calls for problem in call.problems]
    assert all(problem in turn.problems for problem in own)
    if finish != "stop":
        assert "missing_closer" not in [
            repair for call in turn.calls if call.span[1] == len(text) for repair in call.repairs
        ]
    for call in turn.calls:
        json.dumps(call.arguments, ensure_ascii=False).encode()  # any tool and any prompt can take it


def attempts(turn):
    """The spans of calls, and of problems that are not a call's own, in the order of the turn's problems."""
    own = {problem.span for call in turn.calls for problem in call.problems}
    alone = [problem.span for problem in turn.problems if problem.span not in own]
    return sorted([call.span for call in turn.calls] + alone)


def covers(text, turn):
    """Whether thought, text and attempts are the answer, in order, but for markup that may vanish."""
    said = "".join((turn.reasoning + turn.content).split())
    starts = dict(attempts(turn))
    # Which amounts of what was said can be behind us at each place.
    reached = {0: {0}}
    for at in range(len(text) + 1):
        done = reached.pop(at, set())
        if not done:
            continue
        if at == len(text):
            return len(said) in done
        if at in starts and starts[at] > at:
            reached.setdefault(starts[at], set()).update(done)
            continue
        vanishing = DROPPED.match(text, at)
        if vanishing:
            end = len(text) if vanishing.group().startswith("<|") else vanishing.end()
            reached.setdefault(end, set()).update(done)
        following = {amount + 1 for amount in done if said[amount : amount + 1] == text[at]}
        if following:
            reached.setdefault(at + 1, set()).update(following)
    return False

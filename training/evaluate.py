"""The figures of a model, with or without an adapter: greedy, in strict tags, without and with the guide.

    python -m training.evaluate MODEL [--adapter FILE] [--parts bfcl,heldout,...] [--limit N] [--out FILE]

MODEL is a folder. Answers without the guide come from batches. The guide can change a greedy answer only where that
leaves the grammar, so with it only those conversations are held again, one by one.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from qwen_tools import adapter, evaluate
from qwen_tools import events as ev
from qwen_tools.engines import Engine, Settings
from qwen_tools.engines.transformers import TransformersEngine, native_dtype
from qwen_tools.errors import UserError
from qwen_tools.families import detect
from qwen_tools.guide import Guide
from qwen_tools.guide.constraint import Grammars
from qwen_tools.loop import run, turn
from qwen_tools.messages import Message, ToolCall
from qwen_tools.parser import parse
from qwen_tools.salvage import wrong_opening
from qwen_tools.tool_sources import load as builtin
from qwen_tools.tools import Toolbox

from . import heldout, mainjob
from .batches import BatchEngine

BFCL = {"simple_python": 100, "multiple": 50, "parallel": 50, "irrelevance": 100}
PARTS = ("bfcl", "heldout", "faults", "followups", "mainjob", "plain", "perplexity")
ROUNDS, TOKENS = 6, 512


@dataclass
class Talk:
    """What came of a conversation: the assistant's messages, the results, and how it ended."""

    answers: list[Message] = field(default_factory=list)
    results: list[str] = field(default_factory=list)
    reason: str = ""

    @property
    def calls(self) -> list[ToolCall]:
        """All calls, whole or broken."""
        return [call for message in self.answers for call in message.calls]

    @property
    def said(self) -> str:
        """The last answer's text."""
        return self.answers[-1].content if self.answers else ""


def main() -> None:
    """Run the parts that are asked for, print a table, and write every answer to a file."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("--adapter", type=Path, help="the file that training wrote; merged in memory")
    parser.add_argument("--parts", default=",".join(PARTS), help=f"some of {', '.join(PARTS)}")
    parser.add_argument("--limit", type=int, help="at most so many questions of each kind")
    parser.add_argument("--guide", choices=("both", "off"), default="both")
    parser.add_argument("--out", type=Path, help="JSON lines: every conversation with its verdict")
    args = parser.parse_args()

    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer: Any = AutoTokenizer.from_pretrained(args.model)
    model: Any = AutoModelForCausalLM.from_pretrained(args.model, dtype=torch.bfloat16).eval()
    if args.adapter:
        adapter.merge(model, args.adapter)
    model.to(native_dtype("cpu"))  # merged in the format in which it is kept, as conversion does
    family = detect(tokenizer.chat_template or "", tokenizer.get_added_vocab())
    exam = Exam(model, tokenizer, family, args.limit, args.guide == "both")
    for part in args.parts.split(","):
        began = time.monotonic()
        getattr(exam, part)()
        print(f"# {part} took {time.monotonic() - began:.0f} s", flush=True)
        if args.out:
            lines = [json.dumps(line, ensure_ascii=False) + "\n" for line in exam.lines]
            args.out.write_text("".join(lines), encoding="utf-8")


class Exam:
    """A model, its two engines, and what they answered so far."""

    def __init__(self, model: Any, tokenizer: Any, family: str, limit: int | None, guided: bool) -> None:
        self.model, self.tokenizer = model, tokenizer
        self.batch = BatchEngine(model, tokenizer, family)
        self.single = TransformersEngine(model, tokenizer, family, "model")
        self.limit, self.guided = limit, guided
        self.lines: list[dict[str, Any]] = []
        self._grammars = Grammars(tokenizer, model.config.vocab_size, [tokenizer.convert_tokens_to_ids("<|im_end|>")])

    # --- Parts ------------------------------------------------------------------------------------

    def bfcl(self) -> None:
        """First answers to BFCL's questions: in strict tags, right, right once salvaged, false calls."""
        for category, count in BFCL.items():
            questions = evaluate.items(category, min(count, self.limit or count))
            parallel = category == "parallel"
            for name, talks in self._both(
                questions,
                lambda engine, item, parallel=parallel: _answer(engine, list(item.messages), item.tools, parallel),
                lambda item: item.tools,
            ):
                counts: Counter[str] = Counter()
                for item, talk in zip(questions, talks, strict=True):
                    verdict = _bfcl_verdict(item, talk)
                    counts.update(verdict)
                    self._note(f"bfcl {category}", name, item.messages[-1].content, talk, sorted(verdict))
                wanted = ("false call",) if category == "irrelevance" else ("strict", "right", "salvaged right", "cut")
                self._row(f"bfcl {category}", name, counts, wanted, len(questions))

    def heldout(self) -> None:
        """Whole conversations about tools that training never saw."""
        places = list(range(len(heldout.QUESTIONS)))[: self.limit]
        for name, talks in self._both(
            places,
            lambda engine, place: _talk(engine, [_user(heldout.QUESTIONS[place][1])], heldout.offered(place)),
            heldout.offered,
        ):
            counts: Counter[str] = Counter()
            languages: Counter[str] = Counter()
            for place, talk in zip(places, talks, strict=True):
                language, question, tool, value = heldout.QUESTIONS[place]
                verdict = {"right"} if talk.reason == "stop" and contains(talk.said, value) else set()
                verdict |= {"refused"} if not talk.calls else set()
                verdict |= {"right tool"} if tool in [call.name for call in talk.calls] else set()
                counts.update(verdict)
                languages.update({f"{language}: {'right' if 'right' in verdict else 'wrong'}"})
                self._note("heldout", name, question, talk, sorted(verdict))
            self._row("heldout", name, counts, ("right", "right tool", "refused"), len(places))
            print("   ", dict(sorted(languages.items())))

    def faults(self) -> None:
        """Errors as results: a corrected call or an honest answer, and never one call three times."""
        cases = heldout.FAULTS[: self.limit]
        for name, talks in self._both(
            cases, lambda engine, case: _talk(engine, _broken(case), case[1]), lambda case: case[1]
        ):
            counts: Counter[str] = Counter()
            for case, talk in zip(cases, talks, strict=True):
                value = case[3]
                ended = talk.reason == "stop"
                # Honest: it says so in words, without a number of its own making.
                honest = value is None and ended and not re.search(r"\d", talk.said)
                verdict = (
                    {"well answered"}
                    if honest or (value is not None and ended and contains(talk.said, value))
                    else set()
                )
                same = Counter(json.dumps([call.name, call.arguments], sort_keys=True) for call in talk.calls)
                verdict |= {"three times"} if same and max(same.values()) > 2 else set()
                counts.update(verdict)
                self._note("faults", name, case[0], talk, sorted(verdict))
            self._row("faults", name, counts, ("well answered", "three times"), len(cases))

    def followups(self) -> None:
        """Ten questions in one conversation, with tools; then those that need none, without."""
        for name, engine in self._engines():
            for tools in (builtin(None), Toolbox.of(())):
                history: list[Message] = []
                right = asked = 0
                for question, value, needs_tool in heldout.FOLLOW_UPS:
                    if needs_tool and not len(tools):
                        continue
                    talk = Talk()
                    history.append(_user(question))
                    history += _added(talk, engine, history, tools)
                    wanted = talk.results[-1] if value == "{clock}" and talk.results else value
                    good = talk.reason == "stop" and contains(talk.said, wanted) and bool(talk.calls) == needs_tool
                    right, asked = right + good, asked + 1
                    self._note(
                        f"followups{'' if len(tools) else ', tools off'}", name, question, talk, ["right"] * good
                    )
                self._row(
                    f"followups{'' if len(tools) else ', tools off'}", name, Counter(right=right), ("right",), asked
                )

    def mainjob(self) -> None:
        """The main job's questions with the program's own tools."""
        tools = builtin(None)
        questions = [(title, value, each) for title, (value, row) in mainjob.ROWS.items() for each in row[: self.limit]]
        for name, talks in self._both(
            questions, lambda engine, asked: _talk(engine, [_user(asked[2])], tools), lambda _: tools
        ):
            counts: dict[str, Counter[str]] = {}
            for (title, value, question), talk in zip(questions, talks, strict=True):
                wanted = talk.results[-1] if value == "{clock}" and talk.results else value
                good = talk.reason == "stop" and (
                    not talk.calls and bool(talk.said) if wanted is None else contains(talk.said, wanted)
                )
                counts.setdefault(title, Counter()).update({"right": int(good), "asked": 1})
                self._note(f"mainjob {title}", name, question, talk, ["right"] * good)
            for title, count in counts.items():
                self._row(f"mainjob {title}", name, count, ("right",), count["asked"])

    def plain(self) -> None:
        """Answers without tools, to be read."""
        for question, talk in zip(
            heldout.PLAIN,
            self.batch.map(lambda each: _answer(self.batch, [_user(each)], (), False), heldout.PLAIN),
            strict=True,
        ):
            self._note("plain", "unguided", question, talk, [])
            print(f"    {question}\n        {talk.said[:400]!r}")

    def perplexity(self) -> None:
        """Of this repository's pages, 500 tokens at a time, without any chat template."""
        import torch

        text = "".join(
            (Path(__file__).parents[1] / "docs" / name).read_text(encoding="utf-8")
            for name in ("prompt.md", "parser.md")
        )
        ids = self.tokenizer(text, return_tensors="pt").input_ids[0]
        total, count = 0.0, 0
        with torch.inference_mode():
            for start in range(0, len(ids) - 1, 500):
                window = ids[start : start + 501]
                logits = self.model(input_ids=window[None, :-1]).logits[0].float()
                total += float(torch.nn.functional.cross_entropy(logits, window[1:], reduction="sum"))
                count += len(window) - 1
        print(f"perplexity {math.exp(total / count):.3f} over {count} tokens")
        self.lines.append({"part": "perplexity", "value": math.exp(total / count), "tokens": count})

    # --- How ----------------------------------------------------------------------------------------

    def _engines(self) -> list[tuple[str, Engine]]:
        return [("guided", self.single)] if self.guided else []

    def _both(self, items: list[Any], ask: Any, tools_of: Any) -> list[tuple[str, list[Talk]]]:
        """The talks without the guide, and with it."""
        free = self.batch.map(lambda item: ask(self.batch, item), items)
        if not self.guided:
            return [("unguided", free)]
        held = [
            talk if all(self._within(message, tools_of(item)) for message in talk.answers) else ask(self.single, item)
            for item, talk in zip(items, free, strict=True)
        ]
        return [("unguided", free), ("guided", held)]

    def _within(self, message: Message, tools: Any) -> bool:
        """Whether the guide would have left the answer as it is: plain text, or calls that the grammar allows."""
        toolbox = Toolbox.of(tools)
        if not message.calls:
            return not len(toolbox) or wrong_opening(message.content, toolbox.names()) != "call"
        ids, opener = list(message.token_ids or ()), self.tokenizer.convert_tokens_to_ids("<tool_call>")
        if opener not in ids or message.finish != "stop":
            return False
        end = self.tokenizer.convert_tokens_to_ids("<|im_end|>")
        try:
            self._grammars.constraint(Guide(tuple(toolbox), parallel=True)).consume([*ids[ids.index(opener) :], end])
        except UserError:
            return False
        return True

    def _note(self, part: str, name: str, question: str, talk: Talk, verdict: list[str]) -> None:
        self.lines.append(
            {
                "part": part,
                "arm": name,
                "question": question,
                "verdict": verdict,
                "reason": talk.reason,
                "answers": [message.raw if message.raw is not None else message.content for message in talk.answers],
                "results": talk.results,
            }
        )

    @staticmethod
    def _row(part: str, name: str, counts: Counter[str], wanted: tuple[str, ...], total: int) -> None:
        cells = []
        for key in wanted:
            low, high = evaluate.wilson(counts[key], total)
            cells.append(f"{key} {counts[key]} of {total} ({low:.0%} to {high:.0%})")
        print(f"{part:24} {name:9} {'; '.join(cells)}", flush=True)


def contains(text: str, value: str) -> bool:
    """Whether the text has the value, and a number not as a part of another; ``1,260`` is 1260."""
    text = re.sub(r"(?<=\d),(?=\d{3}\b)", "", text)
    # What goes on behind may be more decimals of a value that is given in short.
    return re.search(
        rf"(?<![\w.]){re.escape(value)}" if value[0].isdigit() else re.escape(value), text
    ) is not None and (
        not value.isdigit()
        or re.search(rf"(?<![\w.]){value}(?!\d|[.,]\d)", text) is not None
        or re.search(rf"(?<![\w.]){value}\.0+\b", text) is not None
    )


def _user(text: str) -> Message:
    return Message("user", text)


def _broken(case: tuple[Any, ...]) -> list[Message]:
    """The conversation of a fault: the question, and the wrong call with the executor's words where there is one."""
    from qwen_tools.executor import execute

    question, tools, wrong, _ = case
    if wrong is None:
        return [_user(question)]
    call = ToolCall(wrong[0], wrong[1], "", (0, 0))
    return [
        _user(question),
        Message("assistant", "", calls=(call,)),
        Message("tool", execute(call, Toolbox.of(tools)).content),
    ]


def _answer(engine: Engine, messages: list[Message], tools: Any, parallel: bool) -> Talk:
    """One answer, nothing executed."""
    talk = Talk()
    events = turn(
        engine,
        messages,
        tools,
        parallel_calls=parallel,
        guided=engine.can_guide,
        settings=Settings(max_new_tokens=TOKENS, do_sample=False),
    )
    for event in events:
        if isinstance(event, ev.MessageAdded):
            talk.answers.append(event.message)
            talk.reason = event.message.finish or ""
    return talk


def _talk(engine: Engine, messages: list[Message], tools: Any) -> Talk:
    """A conversation through the loop, until plain text."""
    talk = Talk()
    _added(talk, engine, messages, tools)
    return talk


def _added(talk: Talk, engine: Engine, messages: list[Message], tools: Any) -> list[Message]:
    """Let the loop go on from ``messages``; fills ``talk`` and returns the new messages."""
    added = []
    events = run(
        engine,
        messages,
        tools,
        guided=engine.can_guide,
        max_rounds=ROUNDS,
        settings=Settings(max_new_tokens=TOKENS, do_sample=False),
    )
    for event in events:
        if isinstance(event, ev.MessageAdded):
            added.append(event.message)
            if event.message.role == "assistant":
                talk.answers.append(event.message)
            else:
                talk.results.append(event.message.content)
        elif isinstance(event, ev.Done):
            talk.reason = event.reason
    return added


def _bfcl_verdict(item: evaluate.Item, talk: Talk) -> set[str]:
    """``strict``: calls and nothing broken; ``right``: BFCL's checker accepts them; ``salvaged right``: or what can be
    salvaged from the text.
    """
    message = talk.answers[-1]
    good = bool(message.calls) and all(not call.problems for call in message.calls)
    calls = [(call.name, call.arguments) for call in message.calls]
    verdict = {"strict"} if good else set()
    verdict |= {"false call"} if calls and not item.truth else set()
    verdict |= {"cut"} if message.finish == "length" else set()
    if good and evaluate.accepts(item, calls):
        verdict |= {"right", "salvaged right"}
    elif not message.calls and item.truth:
        found = parse(message.raw or "", item.tools, salvage=True).calls
        if found and evaluate.accepts(item, [(call.name, call.arguments) for call in found]):
            verdict |= {"salvaged right"}
    return verdict


if __name__ == "__main__":
    main()

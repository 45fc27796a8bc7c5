"""One task in several forms: the same question and tools as raw tags, read strictly or generously, guided, and as the
objects of other formats; what each cost, and whether it worked.

Every arm starts cold (nothing of its prompt is cached), with the settings that the chat uses for the model. What came
of it is an ``Outcome``; nothing is executed. Pages and tables are made elsewhere.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from . import events as ev
from .coerce import loads
from .engines import Engine, Settings, open_engine
from .engines.api import ApiEngine, ApiPrompt
from .envelope import check
from .errors import UserError
from .loop import turn
from .messages import Message, Problem, ToolCall
from .parser import ParsedTurn, fold, parse
from .profiles import profile, system_text
from .prompt import text_file
from .tasks import Task
from .tools import Toolbox
from .wire import Request, anthropic, openai
from .wire.names import Names

# One row an arm: its name and what it is.
ARMS = {
    "raw": "the family's own prompt; calls in tags, read strictly",
    "raw+salvage": "the same answer, read again: calls outside of tags count where there is no doubt",
    "raw+guide": "the same prompt; from where a call opens a grammar keeps it valid",
    "no-tools": "the same question, no tools offered",
    "openai-json": "OpenAI's tools in the system text, its message object asked for as text",
    "anthropic-json": "the same with Anthropic's tools and message object",
}


_FENCED = re.compile(r"\s*```\w*\n(.*?)\n?```\s*", re.DOTALL)


@dataclass(frozen=True)
class Outcome:
    """What came of a task in one arm.

    ``request`` is the exact prompt (or the JSON of a request) and ``prefill`` how much of the answer it had opened,
    ``answer`` what the model wrote, character for character, ``taken_back`` what it wrote first and a guide made it
    write anew. ``valid`` says whether every attempt at a call is a whole call of an offered tool with arguments by its
    schema; it is None without an attempt. ``right`` is None where the task does not say what is right. ``why`` says in
    words what went wrong. ``finish`` is empty where the arm could not be run. Token counts are 0 where they are not
    known; times are wall time in seconds from the request to the first token and to the end.
    """

    arm: str
    request: str = ""
    prefill: str = ""
    answer: str = ""
    taken_back: str = ""
    content: str = ""
    calls: tuple[ToolCall, ...] = ()
    problems: tuple[Problem, ...] = ()
    valid: bool | None = None
    right: bool | None = None
    why: str = ""
    finish: str = ""
    prompt_tokens: int = 0
    new_tokens: int = 0
    first_token_s: float = 0.0
    total_s: float = 0.0


def compare(
    engine: Engine,
    task: Task,
    arms: Sequence[str],
    tools: Toolbox,
    settings: Settings,
    *,
    system: str | None = None,
    options: dict[str, Any] | None = None,
) -> Iterator[Outcome]:
    """The outcomes of a task, one by one as they are there. ``tools`` are offered where the task brings none;
    ``system`` stands in for the system text that the model usually gets; ``options`` are the family's render options.

    An arm that cannot be run has an outcome that says why.
    """
    tools = tools if task.tools is None else task.tools
    asked = _Asked(engine, task, tools, settings, system, options or {})
    strict: Outcome | None = None
    for arm in arms:
        try:
            if arm == "raw+salvage":
                strict = strict or asked.raw()
                outcome = asked.salvaged(strict)
            elif is_api(arm):
                outcome = asked.api(arm)
            else:
                outcome = _RUN[arm](asked)
                strict = outcome if arm == "raw" else strict
        except UserError as error:
            outcome = Outcome(arm, why=str(error))
        yield outcome


def is_api(arm: str) -> bool:
    """Whether an arm is the name of an API's engine, such as ``openai:URL#MODEL``."""
    return arm.startswith(("openai:", "anthropic:"))


def summary(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Counts and means of the outcomes of one arm. Means are None where nothing was measured."""
    ran = [outcome for outcome in outcomes if outcome.finish]
    judged = [outcome for outcome in ran if outcome.right is not None]
    right = sum(outcome.right is True for outcome in judged)
    return {
        "tasks": len(outcomes),
        "ran": len(ran),
        "called": sum(bool(outcome.calls) for outcome in ran),
        "valid": sum(outcome.valid is True for outcome in ran),
        "judged": len(judged),
        "right": right,
        "prompt_tokens": _mean([outcome.prompt_tokens for outcome in ran if outcome.prompt_tokens]),
        "new_tokens": _mean([outcome.new_tokens for outcome in ran if outcome.new_tokens]),
        "first_token_s": _mean([outcome.first_token_s for outcome in ran]),
        "total_s": _mean([outcome.total_s for outcome in ran]),
    }


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


@dataclass(frozen=True)
class _Asked:
    """What all arms of a task have in common, and one method an arm."""

    engine: Engine
    task: Task
    tools: Toolbox
    settings: Settings
    system: str | None
    options: dict[str, Any]

    def raw(self) -> Outcome:
        """Strict tags."""
        self._needs_raw_text()
        return self._judged(self._turn("raw", self.tools))

    def guided(self) -> Outcome:
        """Calls under a grammar."""
        self._needs_raw_text()
        if not self.engine.can_guide:
            raise UserError("this engine cannot be guided: that takes a model that runs here, and llguidance")
        return self._judged(self._turn("raw+guide", self.tools, guided=True))

    def _needs_raw_text(self) -> None:
        if isinstance(self.engine, ApiEngine):
            raise UserError("an API writes its own prompt: raw tags need a model that is asked with raw text")

    def no_tools(self) -> Outcome:
        """Words alone: right when they hold the answer."""
        outcome = self._turn("no-tools", Toolbox())
        if self.task.answer is None:
            return outcome
        wrong = self.task.wrong_answer(outcome.content)
        return replace(outcome, right=wrong is None, why=outcome.why or wrong or "")

    def salvaged(self, strict: Outcome) -> Outcome:
        """The answer of ``raw``, read again; it cost what that one cost."""
        read = parse(strict.answer, self.tools, strict.prefill, strict.finish, salvage=True)
        return self._judged(_read(replace(strict, arm="raw+salvage"), read))

    def openai_json(self) -> Outcome:
        """OpenAI's message object as text."""
        return self._as_json("openai-json", openai, lambda value: {"choices": [{"index": 0, "message": value}]})

    def anthropic_json(self) -> Outcome:
        """Anthropic's message object as text."""
        return self._as_json("anthropic-json", anthropic, lambda value: value)

    def _as_json(self, arm: str, format_: Any, body: Callable[[Any], Any]) -> Outcome:
        """Offer the tools as an API's JSON, and read the answer as one of its messages: ``body`` makes a response of
        what the model wrote.
        """
        names = Names(tool.name for tool in self.tools)
        lines = [json.dumps(tool, ensure_ascii=False) for tool in self._written(format_)["tools"]]
        first, *rest = self.task.messages
        texts = [first.content] if first.role == "system" else [] if self.system is None else [self.system]
        texts.append(text_file(f"compare/{arm}.txt").replace("{tools}", "\n".join(lines)))
        asked = [Message("system", "\n\n".join(texts)), *([] if first.role == "system" else [first]), *rest]
        outcome = self._turn(arm, Toolbox(), asked)
        return self._judged(self._read_json(outcome, format_, body, names.table))

    def _written(self, format_: Any) -> Any:
        return format_.write_request(Request(list(self.task.messages), list(self.tools)))

    def _read_json(
        self, outcome: Outcome, format_: Any, body: Callable[[Any], Any], names: Mapping[str, str]
    ) -> Outcome:
        """The outcome with what its answer says as JSON. A fence around the whole of it is taken off, and named; an
        answer that does not begin like JSON is one in words.
        """
        whole = outcome.content if not (outcome.calls or outcome.problems) else outcome.answer
        fenced = _FENCED.fullmatch(whole)
        inside = fenced[1] if fenced else whole
        if not inside.lstrip().startswith(("{", "[", "<tool_call>")):
            return outcome
        span = (0, len(outcome.answer))
        try:
            message, _, _ = format_.read_response(body(loads(inside)))
        except (ValueError, RecursionError, UserError) as error:
            turn = ParsedTurn(outcome.content, "", (), (Problem("invalid_json", str(error), span, outcome.answer),))
            return _read(outcome, turn)
        repairs = ("fence",) if fenced else ()
        calls = [
            replace(call, name=names.get(call.name, call.name), span=span, raw=outcome.answer, repairs=repairs)
            for call in message.calls
        ]
        return self._checked(replace(outcome, content=message.content, calls=tuple(calls), problems=()))

    def api(self, arm: str) -> Outcome:
        """An API's own tool calls: ``arm`` is the name of its engine. The request is shown as it is sent, the answer
        as the object that its stream amounts to.
        """
        engine = open_engine(arm)
        if not isinstance(engine, ApiEngine):
            raise UserError(f"{arm} is no API")
        outcome = self._turn(arm, self.tools, engine=engine)
        return self._judged(self._checked(outcome))

    def _checked(self, outcome: Outcome) -> Outcome:
        """The outcome with calls that no parser of ours read: their names and arguments are looked at here."""
        schemas = {tool.name: tool.parameters for tool in self.tools}
        calls = []
        for call in outcome.calls:
            wrong = None if call.problems else check(call.name, call.arguments, schemas)
            calls.append(replace(call, problems=(Problem(*wrong, call.span, call.raw),)) if wrong else call)
        # Those of attempts that gave no call, and those of calls.
        found = [each for each in outcome.problems if not any(each in call.problems for call in calls)]
        found += [each for call in calls for each in call.problems]
        return _read(outcome, ParsedTurn(outcome.content, "", tuple(calls), tuple(found)))

    def _judged(self, outcome: Outcome) -> Outcome:
        """The outcome with whether its calls are right."""
        if self.task.expect is None:
            return outcome
        wrong = self.task.wrong_calls(outcome.calls)
        if wrong is None and not self.task.expect and self.task.answer is not None:
            wrong = self.task.wrong_answer(outcome.content)
        right = wrong is None and outcome.valid is not False
        return replace(outcome, right=right, why=outcome.why or wrong or "")

    def _turn(
        self,
        arm: str,
        tools: Toolbox,
        messages: Sequence[Message] | None = None,
        *,
        guided: bool = False,
        engine: Engine | None = None,
    ) -> Outcome:
        """Ask once and read the answer: the task's messages and engine unless others are given."""
        engine = engine or self.engine
        asked = profile(engine.name)
        messages = list(messages or self.task.messages)
        if messages[0].role != "system":
            system = system_text(asked, tools) if self.system is None else self.system
            messages[:0] = [] if system is None else [Message("system", system)]
        settings = self.settings.defaulting_to(asked.do_sample)
        options = None if isinstance(engine, ApiEngine) else self.options
        # Where the engine keeps a cache, no arm may profit from an earlier one.
        getattr(engine, "forget", lambda: None)()
        outcome = Outcome(arm)
        said: list[ev.Event] = []
        started = time.perf_counter()
        for event in turn(
            engine,
            messages,
            tools,
            guided=guided,
            parallel_calls=asked.parallel_calls,
            settings=settings,
            options=options,
        ):
            now = time.perf_counter() - started
            said.append(event)
            if isinstance(event, ev.RoundStart):
                outcome = replace(outcome, request=event.prompt)
                started = time.perf_counter()
                continue
            outcome = replace(outcome, first_token_s=outcome.first_token_s or now)
            if isinstance(event, ev.TakenBack):
                outcome = replace(outcome, taken_back=event.text)
            elif isinstance(event, ev.RoundEnd):
                if event.finish == "interrupted":
                    raise KeyboardInterrupt  # one answer less would be a wrong comparison
                outcome = replace(
                    outcome,
                    finish=event.finish,
                    prompt_tokens=event.usage.prompt_tokens,
                    new_tokens=event.usage.new_tokens,
                    # An engine knows better than who waits for the first event.
                    first_token_s=event.usage.prefill_s or outcome.first_token_s,
                    total_s=now,
                )
            elif isinstance(event, ev.MessageAdded):
                outcome = replace(outcome, answer=event.message.raw or "", prefill=event.message.prefill)
                if isinstance(engine, ApiEngine):
                    request = ApiPrompt(engine, tools, asked.parallel_calls)
                    request.append(messages)
                    sent, _ = request.body(settings, None)
                    outcome = replace(outcome, request=_shown(sent), answer=_shown(_object(engine, event.message)))
        return _read(outcome, fold(said))


def _shown(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2)


def _object(engine: ApiEngine, message: Message) -> Any:
    """The message as an object of the API that sent it."""
    body = engine.api.wire.response(message, id="0", created=0, model=engine.model, finish=message.finish)
    return body["choices"][0]["message"] if "choices" in body else {"role": body["role"], "content": body["content"]}


def _read(outcome: Outcome, turn: ParsedTurn) -> Outcome:
    """The outcome with what its answer was read as."""
    why = f"{turn.problems[0].kind}: {turn.problems[0].message}" if turn.problems else ""
    if outcome.finish == "length":
        why = "; ".join(part for part in ("cut by the length limit", why) if part)
    return replace(
        outcome,
        content=turn.content,
        calls=turn.calls,
        problems=turn.problems,
        valid=not turn.problems if turn.calls or turn.problems else None,
        why=why,
    )


_RUN: dict[str, Callable[[_Asked], Outcome]] = {
    "raw": _Asked.raw,
    "raw+guide": _Asked.guided,
    "no-tools": _Asked.no_tools,
    "openai-json": _Asked.openai_json,
    "anthropic-json": _Asked.anthropic_json,
}

"""The conversation with the model: one answer (``turn``), or answers and tools until plain text (``run``).

Both are generators of events and print nothing. ``turn`` executes nothing. A KeyboardInterrupt
while they work ends the answer, not the conversation: what was said is kept and marked as cut.

How a weak model is helped, where the engine can be guided and ``tool_choice`` is ``auto``: text flows
freely until the answer opens a call. From there the grammar takes over, so that the name is an
offered one and the arguments follow its schema. An answer that begins like a call in a wrong form (a fence,
bare JSON) is withheld until it names an offered tool, then taken back and written anew under the grammar;
if it turns out to be anything else, it is shown as the text it is.
"""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Any

from . import events as ev
from .engines import Engine, Piece, Settings
from .engines.api import ApiEngine, ApiPrompt, prompt_for
from .errors import UserError
from .events import Event, Usage
from .executor import Execution, ToolResult, begin, interrupted, refusal
from .guide import Guide
from .messages import Message, ToolCall, as_messages
from .parser import StreamParser
from .prompt import Prompt, encode, generated
from .salvage import wrong_opening
from .template import TemplatePrompt
from .tools import Tool, Toolbox
from .validate import check_schema
from .wire.answer import message_of

# Tags of a call that are single tokens in the families' vocabularies.
_OPENER = "<tool_call>"
_CUT_TAG = re.compile(r"</?[a-z_]*\Z")
# How many calls run at the same time.
_SIDE_BY_SIDE = 8

_AnyPrompt = Prompt | TemplatePrompt | ApiPrompt


@dataclass(frozen=True)
class _Asking:
    """How the model is asked for one answer."""

    engine: Engine
    settings: Settings
    toolbox: Toolbox
    prefill: str
    parallel: bool
    guided: bool
    salvage: bool


def turn(
    engine: Engine,
    messages: Iterable[Message | dict[str, Any]],
    tools: Iterable[Any] = (),
    *,
    tool_choice: str = "auto",
    allowed: Collection[str] | None = None,
    parallel_calls: bool = True,
    schema: Mapping[str, Any] | None = None,
    guided: bool = True,
    salvage: bool = False,
    answer_after_result: bool = False,
    settings: Settings | None = None,
    options: dict[str, Any] | None = None,
    template: str = "family",
) -> Iterator[Event]:
    """Ask for one answer and say what happens; nothing is executed.

    ``tool_choice`` is ``auto``, ``none``, ``required`` or the name of an offered tool; of the offered tools only those
    ``allowed`` may be called, where that is given. An answer that is no call is JSON which ``schema`` accepts.
    ``guided`` lets the grammar help where the engine can. ``salvage`` also reads calls outside of tags.
    ``answer_after_result`` holds a weak model, which would call for ever, to plain words where the conversation ends in
    a result. ``options`` are the family's render options; ``template="model"`` lets the model's own chat template write
    the prompt. Where ``messages`` end with an answer that was cut (its ``finish`` says so), it is continued, and the
    message that is added stands for the whole of it. Ends with RoundEnd and MessageAdded (the assistant's message).
    Raises UserError for what the caller got wrong.
    """
    toolbox = Toolbox.of(tools)
    messages = as_messages(messages)
    prompt, asking, begun = _prepare(
        engine, messages, toolbox, parallel_calls, guided, salvage, settings, options, template
    )
    if allowed is not None:
        asking = replace(asking, toolbox=Toolbox(tool for tool in toolbox if tool.name in allowed))
    guide = _guide(asking, tool_choice, schema)
    if answer_after_result and guide is None and asking.guided and _ends_in_result(messages):
        guide = Guide(prose=True)
    yield ev.RoundStart(1, prompt.text, prompt.dropped)
    yield from _answer(asking, prompt, 1, guide, watched=guide is None and tool_choice == "auto", begun=begun)


def _ends_in_result(messages: Sequence[Message]) -> bool:
    """Whether a call of the last turn gave a result that is no error."""
    results = list(takewhile(lambda message: message.role == "tool", reversed(messages)))
    return any(not result.content.startswith('{"error": ') for result in results)


def run(
    engine: Engine,
    messages: Iterable[Message | dict[str, Any]],
    tools: Iterable[Any] = (),
    *,
    tool_choice: str = "auto",
    parallel_calls: bool = True,
    guided: bool = True,
    salvage: bool = False,
    answer_after_result: bool = False,
    max_rounds: int = 8,
    settings: Settings | None = None,
    options: dict[str, Any] | None = None,
    template: str = "family",
    approve: Callable[[ToolCall, Tool], bool] | None = None,
    tool_timeout: float = 30.0,
    result_limit: int = 8000,
) -> Iterator[Event]:
    """Answer, execute the calls, answer again, until the model answers in plain text.

    Takes what ``turn`` takes. ``answer_after_result`` holds a weak model, which would call for ever, to plain words
    once a tool gave a result. At most ``max_rounds`` answers are asked for. ``approve`` is asked before any tool runs,
    one call at a time; without it the read-only ones run and the others are refused. Calls of one answer that only
    read run side by side. A tool may take ``tool_timeout`` seconds; a result longer than ``result_limit`` characters
    is shortened for the model.

    Every message that becomes part of the conversation is a MessageAdded event; together with ``messages`` they
    are a well-formed conversation at any time the generator is not running. Ends with Done. ``tool_choice``
    other than ``none`` holds for the first answer; afterwards the model is free to answer in text.
    """
    toolbox = Toolbox.of(tools)
    prompt, asking, begun = _prepare(
        engine, messages, toolbox, parallel_calls, guided, salvage, settings, options, template
    )
    history = _CallHistory()
    guide, watched = _guide(asking, tool_choice), tool_choice == "auto"
    text_only = tool_choice == "none"
    for number in range(1, max_rounds + 1):
        try:
            yield ev.RoundStart(number, prompt.text, prompt.dropped)
        except KeyboardInterrupt:
            yield ev.Done("interrupted", "interrupted")
            return
        message = yield from _answer(asking, prompt, number, guide, watched, begun)
        begun = None
        prompt.append([message])
        stopped = yield from _attend(
            message, prompt, toolbox, history, text_only, approve=approve, timeout=tool_timeout, limit=result_limit
        )
        if stopped:
            yield ev.Done("interrupted", "interrupted")
            return
        if not message.calls:
            cut = message.finish == "length"
            yield ev.Done(message.finish, "the answer was cut by the length limit" if cut else "")
            return
        if text_only:
            yield ev.Done("insisted", "the model keeps calling tools instead of answering")
            return
        text_only = history.insists or (answer_after_result and history.gave_result)
        guide, watched = (Guide(prose=True) if asking.guided and text_only else None), not text_only
    yield ev.Done("max_rounds", f"no answer after {max_rounds} rounds of tool calls; ask again, or raise --max-rounds")


def _prepare(
    engine: Engine,
    messages: Iterable[Message | dict[str, Any]],
    toolbox: Toolbox,
    parallel: bool,
    guided: bool,
    salvage: bool,
    settings: Settings | None,
    options: dict[str, Any] | None,
    template: str,
) -> tuple[_AnyPrompt, _Asking, Piece | None]:
    for tool in toolbox:
        check_schema(tool.parameters, tool.name)
    prompt = prompt_for(engine, toolbox, template, options, parallel)
    given = as_messages(messages)
    last = given[-1] if given else None
    begun = None
    if last and last.role == "assistant" and last.finish != "stop" and not last.calls:
        if isinstance(prompt, ApiPrompt):
            raise UserError("the answer cannot be continued: a chat API begins every answer anew")
        begun = _begun(given.pop(), prompt.prefill, toolbox, engine.tokenizer)
        prompt.append(given)
        prompt.begin(begun.text, begun.ids or None)
    else:
        prompt.append(given)
    # An API keeps its own grammar: it is not ours to leave out.
    guided = engine.can_guide and (guided or isinstance(engine, ApiEngine))
    return prompt, _Asking(engine, settings or Settings(), toolbox, prompt.prefill, parallel, guided, salvage), begun


def _begun(message: Message, prefill: str, toolbox: Toolbox, tokenizer: Any) -> Piece:
    """What stands of an answer that was cut. A call or a tag that was cut in it is begun anew.

    Raises UserError where the rest of it cannot be asked for.
    """
    if message.raw is None and (message.reasoning or prefill):
        raise UserError("the answer cannot be continued: its thoughts are not kept as they were generated")
    if message.raw is not None and message.prefill != prefill:
        raise UserError("the answer cannot be continued: it was begun with other options for thinking")
    raw = message.content if message.raw is None else message.raw
    text = _CUT_TAG.sub("", raw)
    events = StreamParser(toolbox, prefill=prefill).feed(text)
    calls = [event for event in events if isinstance(event, (ev.CallStart, ev.CallEnd, ev.CallError))]
    if calls and isinstance(calls[-1], ev.CallStart):
        text = text.rpartition(_OPENER)[0]
    if tokenizer is None:
        return Piece(text)
    return Piece(text, tuple(encode(generated(text, message.token_ids if text == raw else None), tokenizer)))


def _attend(
    message: Message,
    prompt: _AnyPrompt,
    toolbox: Toolbox,
    history: _CallHistory,
    text_only: bool,
    *,
    approve: Callable[[ToolCall, Tool], bool] | None,
    timeout: float,
    limit: int,
) -> Generator[Event, None, bool]:
    """Give every call of an answer its result, in call order; returns whether the person stopped it.

    Calls that only read run side by side. One that does more begins when all before it have ended, and the next
    begins when it has ended.
    """
    calls = message.calls
    stopped = message.finish == "interrupted"
    begun: deque[Execution | ToolResult] = deque()  # the calls from number ``ended`` on
    ended = 0

    def reads(call: ToolCall) -> bool:
        tool = toolbox.get(call.name)
        return tool is None or tool.read_only

    try:
        while ended < len(calls):
            call = calls[ended]
            try:
                while not stopped and not text_only and (index := ended + len(begun)) < len(calls):
                    beside = len(begun) < _SIDE_BY_SIDE and reads(calls[index - 1]) and reads(calls[index])
                    if begun and not beside:
                        break
                    yield ev.ToolStart(index, calls[index])
                    begun.append(
                        history.repeated(calls[index])
                        or begin(calls[index], toolbox, approve=approve, timeout=timeout, limit=limit)
                    )
                    history.begun(calls[index])
                first = begun[0] if begun else None
                if isinstance(first, Execution):
                    result = first.interrupt() if stopped else first.result()
                elif first:
                    result = first
                elif stopped:
                    result = interrupted(call.name)
                else:
                    result = refusal(call.name, "no_tools_now", "No tool can be called now. Answer in words.")
                if begun:
                    history.ended(call, toolbox, result)
                full = result.full if result.full != result.content else ""
                answer = Message(
                    "tool", result.content, call_id=call.id, name=call.name, is_error=not result.ok, full=full
                )
                prompt.append([answer])
                end = ev.ToolEnd(
                    ended, result.name, result.ok, result.content, result.full, result.seconds, result.references
                )
                said = (end, ev.MessageAdded(answer))
                if begun:
                    begun.popleft()
                ended += 1
            except KeyboardInterrupt:
                # Every call of the turn still gets its result, so that the conversation stays well-formed.
                stopped = True
                continue
            for event in said:
                try:
                    yield event
                except KeyboardInterrupt:
                    stopped = True
    finally:  # also where nobody listens any more
        for each in begun:
            if isinstance(each, Execution):
                each.interrupt()
    return stopped


class _CallHistory:
    """The calls of one user turn: a call that ran already is not run again.

    A call that may have changed something makes earlier results stale, so after it
    anything may be read anew.
    """

    def __init__(self) -> None:
        self.gave_result = False
        self._ran: set[str] = set()
        self._told = 0

    @property
    def insists(self) -> bool:
        """Whether the model repeated itself after having been told."""
        return self._told > 1

    def repeated(self, call: ToolCall) -> ToolResult | None:
        """The result that tells the model so, where the call ran before."""
        if call.problems or self._key(call) not in self._ran:
            return None
        self._told += 1
        return refusal(
            call.name,
            "repeated",
            f"{call.name} was already called with these arguments and its result is above. "
            "Use that result and answer the user in words.",
        )

    def begun(self, call: ToolCall) -> None:
        """Remember a call, so that the same one does not run beside it."""
        self._ran.add(self._key(call))

    def ended(self, call: ToolCall, toolbox: Toolbox, result: ToolResult) -> None:
        """Remember what came of a call."""
        self.gave_result = self.gave_result or result.ok
        tool = toolbox.get(call.name)
        if tool and not tool.read_only and result.kind in ("", "tool_error", "timeout"):  # it ran
            self._ran.clear()
        self._ran.add(self._key(call))

    @staticmethod
    def _key(call: ToolCall) -> str:
        return json.dumps([call.name, call.arguments], sort_keys=True, ensure_ascii=False)


def _guide(asking: _Asking, tool_choice: str, schema: Mapping[str, Any] | None = None) -> Guide | None:
    """The grammar an answer is under from its first token."""
    tools = tuple(asking.toolbox)
    if schema is not None and tool_choice in ("auto", "none"):
        if not asking.guided:
            raise UserError("an answer by a schema needs the guide: pip install 'qwen-tools[guide]'")
        return Guide(tools if tool_choice == "auto" else (), asking.parallel, schema=schema)
    if tool_choice == "auto" or (tool_choice == "none" and not asking.guided):
        return None
    if tool_choice == "none":
        return Guide() if tools else None
    if not tools:
        raise UserError("a tool is required but none is offered")
    if tool_choice != "required":
        chosen = asking.toolbox.get(tool_choice)
        if chosen is None:
            raise UserError(f"tool_choice {tool_choice!r} is not an offered tool: {', '.join(t.name for t in tools)}")
        tools = (chosen,)
    if not asking.guided:
        raise UserError("tool_choice other than auto or none needs the guide: pip install 'qwen-tools[guide]'")
    return Guide(tools, asking.parallel)


def _answer(
    asking: _Asking,
    prompt: _AnyPrompt,
    round_number: int,
    guide: Guide | None,
    watched: bool,
    begun: Piece | None = None,
) -> Generator[Event, None, Message]:
    """Generate one answer, under a grammar from its first token or ``watched`` for a call that opens; returns the
    assistant's message after having announced it. ``begun`` is what the prompt holds of the answer already.
    """
    # An API keeps its own model's calls in form.
    watched = watched and asking.guided and not isinstance(asking.engine, ApiEngine)
    parser = StreamParser(asking.toolbox, prefill=asking.prefill, salvage=asking.salvage)
    draft = _Draft(begun)
    said: list[Event] = parser.feed(begun.text) if begun else []
    watch = None
    if watched and len(asking.toolbox):
        watch = _Watch(asking.toolbox, text_began=any(isinstance(event, ev.Text) for event in said))
    spent, usage = Usage(), Usage()
    finish = ""
    try:
        while not finish:
            for piece in _pieces(asking, prompt, draft.new_ids, guide, spent.new_tokens):
                usage = piece.usage
                if piece.events is None:
                    fresh = parser.feed(piece.text) + (parser.close(piece.finish) if piece.finish else [])
                else:
                    fresh = list(piece.events)
                finish = piece.finish or finish
                if watch:
                    fresh = watch.feed(fresh, draft.pieces)
                draft.add(piece)
                said += fresh
                yield from fresh
                if watch and watch.opened:
                    finish = ""
                    break
            if watch and watch.opened:
                # Begin again behind what was said before the call opened, under the grammar.
                taken_back = draft.cut(draft.opener() if watch.strict else watch.started)
                if not watch.strict:
                    yield ev.TakenBack(taken_back)
                parser = StreamParser(asking.toolbox, prefill=asking.prefill)
                parser.feed(draft.text)
                guide, watch = Guide(tuple(asking.toolbox), asking.parallel), None
                spent, usage = _sum(spent, usage), Usage()
    except KeyboardInterrupt:
        finish = "interrupted"
        # It may have struck between any two steps: what is kept is what was generated.
        parser = StreamParser(asking.toolbox, prefill=asking.prefill, salvage=asking.salvage)
        said = [*parser.feed(draft.text), *parser.close(finish)]
    message = _message(said, draft, asking, finish)
    for event in (ev.RoundEnd(round_number, finish, _sum(spent, usage)), ev.MessageAdded(message)):
        try:
            yield event
        except KeyboardInterrupt:
            # The message stands as it was announced; its calls do not run.
            message = replace(message, finish="interrupted")
    return message


def _pieces(
    asking: _Asking, prompt: _AnyPrompt, begun: Sequence[int], guide: Guide | None, spent: int
) -> Iterator[Piece]:
    """What the engine generates, as far as the limit of length goes. Tokens that were ``spent`` on what was taken back
    count too: the limit is also one of cost.
    """
    left = asking.settings.max_new_tokens - spent
    if left < 1:
        yield Piece("", finish="length")
        return
    settings = replace(asking.settings, max_new_tokens=left)
    yield from asking.engine.generate(prompt, settings, begun=begun, guide=guide)


class _Watch:
    """Waits for an answer to open a call, holding back text that may be one in a wrong form."""

    def __init__(self, toolbox: Toolbox, text_began: bool) -> None:
        self.opened = False
        self.strict = False
        self.held: list[Event] = []
        self._names = [tool.name for tool in toolbox]
        self.started = 0  # the piece with which the content began
        self._text: str | None = None if text_began else ""  # None: it is text for certain

    def feed(self, events: list[Event], pieces: int) -> list[Event]:
        """The events that may be shown now; they came from the piece after ``pieces`` others.
        Once ``opened`` is true, whatever came behind the opening is void.
        """
        shown: list[Event] = []
        for event in events:
            if isinstance(event, ev.CallStart):
                self.opened = self.strict = True
                break
            if isinstance(event, ev.Text) and self._text is not None:
                if not self._text:
                    self.started = pieces
                self._text += event.delta
                verdict = wrong_opening(self._text, self._names)
                if verdict == "call":
                    self.opened = True
                    break
                if verdict == "pending":
                    self.held.append(event)
                    continue
                self._text = None
            if isinstance(event, (ev.Text, ev.CallError, ev.End)):
                shown += self.held
                self.held = []
            shown.append(event)
        return shown


class _Draft:
    """What the model generated so far, piece by piece; the first is ``begun``, if anything was."""

    def __init__(self, begun: Piece | None) -> None:
        self._pieces = [begun] if begun else []
        self._begun_ids = len(begun.ids) if begun else 0

    @property
    def pieces(self) -> int:
        """How many pieces there are."""
        return len(self._pieces)

    @property
    def ids(self) -> tuple[int, ...]:
        """All ids."""
        return tuple(number for piece in self._pieces for number in piece.ids)

    @property
    def new_ids(self) -> tuple[int, ...]:
        """The ids behind the prompt."""
        return self.ids[self._begun_ids :]

    @property
    def text(self) -> str:
        """All text."""
        return "".join(piece.text for piece in self._pieces)

    @property
    def meta(self) -> Mapping[str, Any]:
        """What an API said that our fields cannot say."""
        return self._pieces[-1].meta if self._pieces else {}

    def add(self, piece: Piece) -> None:
        """One more piece."""
        self._pieces.append(piece)

    def cut(self, pieces: int) -> str:
        """Take back all but the first ``pieces``; returns their text."""
        taken = "".join(piece.text for piece in self._pieces[pieces:])
        del self._pieces[pieces:]
        return taken

    def opener(self) -> int:
        """The piece in which the last call's tag begins."""
        position = self.text.rfind(_OPENER)
        for index, piece in enumerate(self._pieces):
            position -= len(piece.text)
            if position < 0:
                return index
        return len(self._pieces)


def _message(said: list[Event], draft: _Draft, asking: _Asking, finish: str) -> Message:
    """The assistant's message: as generated, or, where a call was salvaged, in canonical form."""
    attempts = finish != "interrupted"
    message = message_of((event for event in said if attempts or not isinstance(event, ev.CallError)), finish)
    calls = message.calls
    if isinstance(asking.engine, ApiEngine):
        return replace(message, meta=draft.meta)
    if any(repair.startswith("salvaged") for call in calls for repair in call.repairs):
        return message
    # None where the engine gave no ids: those of nothing would stand for the text.
    ids = draft.ids or None
    return replace(message, prefill=asking.prefill, raw=draft.text, token_ids=ids)


def _sum(first: Usage, second: Usage) -> Usage:
    """The cost of an answer that was begun twice: the prompt counts once."""
    if not first.prompt_tokens:
        return second
    return replace(
        first,
        new_tokens=first.new_tokens + second.new_tokens,
        forced_tokens=first.forced_tokens + second.forced_tokens,
        lookup_tokens=first.lookup_tokens + second.lookup_tokens,
        prefill_s=first.prefill_s + second.prefill_s,
        decode_s=first.decode_s + second.decode_s,
    )

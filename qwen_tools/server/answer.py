"""How a request is put to the model: what the server adds to ``loop.turn``, in the thread that runs the model.

The formats promise three things that an unguided model may not keep: no call where none is allowed, one call where
parallel ones are not, and an end when the client or the clock says so.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from .. import events as ev
from ..engines import Engine, Piece, Settings
from ..events import Event
from ..guide import Guide
from ..loop import turn
from ..messages import Message
from ..profiles import profile, system_text
from ..prompt import Prompt, Segment, encode
from ..template import TemplatePrompt
from ..tools import Toolbox

if TYPE_CHECKING:
    from ..wire import Request, Sampling


@dataclass(frozen=True)
class Serving:
    """A model, and what holds for every answer of it. An answer has at most ``max_new_tokens`` tokens and takes at
    most ``seconds``; past either it ends as one that was cut.
    """

    engine: Engine
    guided: bool = True
    options: Mapping[str, Any] = field(default_factory=dict)
    template: str = "family"
    max_new_tokens: int = 4096
    seconds: float = 600.0

    def settings(self, asked: Sampling) -> Settings:
        """How to generate what a request asks for; what it leaves open is as the model is best asked."""
        given = {name: value for name, value in vars(asked).items() if value is not None}
        limit = min(given.pop("max_new_tokens", self.max_new_tokens), self.max_new_tokens)
        if given.get("top_p") == 0:  # the likeliest token alone, as the formats allow it to be said
            given["top_p"] = sys.float_info.min
        if "seed" in given:  # any whole number is one in OpenAI's format
            given["seed"] %= 2**64
        return Settings(max_new_tokens=limit, **given).defaulting_to(profile(self.engine.name).do_sample)


class Reins:
    """The engine for one answer, stopped between two tokens when nobody wants the rest, when the time is up, or when
    ``enough`` is set. The time begins now. ``stop`` is the stop string that ended the answer, if one did.
    """

    def __init__(self, serving: Serving, cancelled: threading.Event) -> None:
        self.name = serving.engine.name
        self.family = serving.engine.family
        self.enough = False
        self.stop: str | None = None
        self._engine = serving.engine
        self._cancelled = cancelled
        self._deadline = time.monotonic() + serving.seconds

    @property
    def tokenizer(self) -> Any:
        """See Engine."""
        return self._engine.tokenizer

    @property
    def can_guide(self) -> bool:
        """See Engine."""
        return self._engine.can_guide

    def generate(
        self,
        prompt: Prompt | TemplatePrompt | RawPrompt,
        settings: Settings,
        *,
        begun: Sequence[int] = (),
        guide: Guide | None = None,
    ) -> Iterator[Piece]:
        """See Engine."""
        for piece in self._engine.generate(prompt, settings, begun=begun, guide=guide):
            finish = piece.finish or self._finish()
            self.stop = piece.stop
            yield replace(piece, finish=finish)
            if finish:
                return

    def _finish(self) -> str | None:
        if self._cancelled.is_set():
            return "interrupted"
        if self.enough:
            return "stop"
        return "length" if time.monotonic() > self._deadline else None


def answer(serving: Serving, request: Request, reins: Reins) -> Generator[Event, None, None]:
    """The events of one answer. Raises UserError for a request that the model cannot be asked."""
    asked = profile(reins.name)
    toolbox = Toolbox.of(request.tools)
    messages = list(request.messages)
    usual = system_text(asked, toolbox)
    if usual is not None and not any(message.role == "system" for message in messages):
        messages.insert(0, Message("system", usual))
    parallel = request.parallel_calls and asked.parallel_calls
    events = turn(
        reins,
        messages,
        toolbox,
        tool_choice=request.tool_choice,
        allowed=request.allowed,
        parallel_calls=parallel,
        schema=request.response_schema,
        guided=serving.guided,
        answer_after_result=asked.answer_after_result,
        settings=serving.settings(request.settings),
        options=dict(serving.options),
        template=serving.template,
    )
    if not len(toolbox) or request.tool_choice == "none":
        events = _without_calls(events)
    elif not parallel:
        events = _with_one_call(events, reins)
    yield from events


def _without_calls(events: Iterator[Event]) -> Generator[Event, None, None]:
    """Where nothing can be called, what looks like a call is text, as it was written."""
    text: list[str] = []
    for event in events:
        if isinstance(event, ev.CallEnd | ev.CallError):
            event = ev.Text(event.call.raw if isinstance(event, ev.CallEnd) else event.problem.raw)
        if isinstance(event, ev.Text):
            text.append(event.delta)
        elif isinstance(event, ev.CallStart | ev.CallName | ev.CallArgs):
            continue
        elif isinstance(event, ev.MessageAdded):
            event = ev.MessageAdded(replace(event.message, content="".join(text), calls=()))
        yield event


def _with_one_call(events: Iterator[Event], reins: Reins) -> Generator[Event, None, None]:
    """Where one call is allowed, the answer is over with it."""
    for event in events:
        if isinstance(event, ev.RoundEnd):
            yield event
        elif isinstance(event, ev.MessageAdded):
            yield ev.MessageAdded(replace(event.message, calls=event.message.calls[:1]))
        elif not reins.enough:
            yield event
            reins.enough = isinstance(event, ev.CallEnd)


@dataclass(frozen=True)
class RawPrompt:
    """A prompt as somebody wrote it, control tokens and all."""

    text: str

    @property
    def segments(self) -> list[Segment]:
        """All of it is trusted: who sends a raw prompt writes its control tokens."""
        return [Segment(self.text, "marker", True)]

    def ids(self, tokenizer: Any) -> list[int]:
        """Its token ids."""
        return encode(self.segments, tokenizer)


def continuation(serving: Serving, prompt: str, settings: Sampling, reins: Reins) -> Generator[Piece, None, None]:
    """The pieces with which the model goes on behind a raw prompt. Raises UserError as ``answer`` does."""
    yield from reins.generate(RawPrompt(prompt), serving.settings(settings))

"""The prompt: a conversation as segments of text, each trusted or not, and from them a string or token ids.

Rendering gives what the family's official template gives, character for character, and for harmless text
its ids. Two things are better than there. Control tokens (``<|im_end|>``, ``<tool_call>``, ...) become ids
only where the renderer itself wrote them: in the text of a user, a tool or a tool's description they are
encoded as the plain text they are. And what a model generated is never written again from its parts: its
sampled ids stay.

Nothing here knows a model; ``families`` says how each line of models writes things down.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property, lru_cache
from importlib.resources import files
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from .errors import UserError
from .families import Family, Options, Place, get
from .messages import Message, as_messages
from .tools import as_tool

ASSISTANT = "<|im_start|>assistant\n"

# What the vocabularies of these families have as control tokens, and tags that a model takes for some.
CONTROL = re.compile(r"(<\|\w+\|>|</?(?:tool_call|tool_response|think|tools)>|<tts_\w+>)")

# Tags that a model writes itself, and what kind of text follows each.
_TAGS = {"<think>": "reasoning", "</think>": "text", "<tool_call>": "call", "</tool_call>": "text"}
_TAG = re.compile("({})".format("|".join(map(re.escape, _TAGS))))


class Segment(NamedTuple):
    """A stretch of the prompt.

    ``kind`` is ``marker`` (control tokens and role names), ``system``, ``tools``, ``user``, ``call``,
    ``text``, ``reasoning`` or ``response``. Only in a ``trusted`` segment are control tokens control tokens.
    ``ids`` are those of a text that a model generated. ``label`` names the tool that a segment describes.
    """

    text: str
    kind: str
    trusted: bool
    ids: tuple[int, ...] | None = None
    label: str = ""


@cache
def text_file(name: str) -> str:
    """The text ``prompts/NAME``, without its final newline."""
    packaged = files(__package__) / "prompts" / name
    # A checkout has the texts at its top, where people read them; only a wheel has them inside the package.
    source = packaged if packaged.is_file() else Path(__file__).parents[1] / "prompts" / name
    return source.read_text(encoding="utf-8").removesuffix("\n")


def segments(
    messages: Iterable[Message | Mapping[str, Any]],
    tools: Iterable[Any] = (),
    family: str = "qwen3",
    **options: Any,
) -> list[Segment]:
    """The whole prompt of a conversation, generation prompt included.

    ``tools`` are Tools or OpenAI-style dicts, ``options`` those of the official templates (families.Options).
    Raises UserError naming the message, counted from 1, or the tool that cannot be rendered.
    """
    prompt = Prompt(tools, family, **options)
    prompt.append(as_messages(messages))
    return prompt.segments


def render(
    messages: Iterable[Message | Mapping[str, Any]],
    tools: Iterable[Any] = (),
    family: str = "qwen3",
    **options: Any,
) -> str:
    """The text of ``segments``: equal to what the family's official template gives."""
    return "".join(segment.text for segment in segments(messages, tools, family, **options))


def generation_prefill(family: str, **options: Any) -> str:
    """What the generation prompt opens behind the role's name: nothing, or the beginning of a thought."""
    return get(family).prefill(Options.of(options))


def encode(segments: Iterable[Segment], tokenizer: Any) -> list[int]:
    """The token ids of segments, for a transformers tokenizer that is backed by ``tokenizers``.

    Between two control tokens the text is encoded in one piece, whoever wrote it, so that harmless text gives
    exactly the ids of ``apply_chat_template``. A generated text keeps its ids.
    """
    codec = _codec(tokenizer)
    ids: list[int] = []
    for run in _runs(segments, codec):
        ids += run.ids or codec.ids(run.text)
    return ids


def escaped(segments: Iterable[Segment]) -> list[Segment]:
    """Segments that are safe as text: a zero-width joiner breaks control tokens in what is not trusted.

    For servers that take a prompt as text and read every control token in it. It is no longer the very text
    that was sent, so ids are the better way where there is one.
    """
    return [
        segment if segment.trusted else segment._replace(text=CONTROL.sub(_break, segment.text)) for segment in segments
    ]


def _break(token: re.Match[str]) -> str:
    return "<\u200d" + token.group()[1:]


def token_owners(segments: Iterable[Segment], tokenizer: Any) -> list[int]:
    """For each id that ``encode`` gives, the index of the segment in which its text begins."""
    codec = _codec(tokenizer)
    owners: list[int] = []
    for run in _runs(segments, codec):
        if run.ids:
            owners += [run.owners[0]] * len(run.ids)
            continue
        ends = list(accumulate(map(len, run.texts)))
        owners += [run.owners[bisect_right(ends, start)] for start, _ in codec.plain(run.text).offsets]
    return owners


@dataclass
class _Run:
    """What is encoded in one piece: fixed ids of one segment, or neighbouring texts of several."""

    owners: list[int]
    texts: list[str]
    ids: Sequence[int] = ()

    @property
    def text(self) -> str:
        return "".join(self.texts)


def _runs(segments: Iterable[Segment], codec: _Codec) -> Iterator[_Run]:
    run = _Run([], [])
    for owner, segment in enumerate(segments):
        if segment.ids is not None and codec.wrote(segment):
            pieces: list[tuple[str, Sequence[int]]] = [("", segment.ids)]
        else:
            parts = [segment] if segment.ids is None else tagged(segment.text)
            pieces = [piece for part in parts for piece in codec.pieces(part)]
        for text, ids in pieces:
            if text:
                run.owners.append(owner)
                run.texts.append(text)
            elif ids:
                if run.texts:
                    yield run
                    run = _Run([], [])
                yield _Run([owner], [], ids)
    if run.texts:
        yield run


class Prompt:
    """A prompt that grows. Adding a turn costs the turn: what is there is neither rendered nor encoded again.

    An exception are the thoughts of earlier user turns where the family leaves them out: with the next user
    message the turn before is written once more, without them, and ``dropped`` counts it.
    """

    def __init__(self, tools: Iterable[Any] = (), family: str = "qwen3", **options: Any) -> None:
        """Raises UserError for an unknown family or option, or a tool that is none."""
        self.family: Family = get(family)
        self.options = Options.of(options)
        self.dropped = 0
        # What the generation prompt opens behind the role's name.
        self.prefill = self.family.prefill(self.options)
        self._preamble = self.family.preamble(self.options)
        self._tools = _tool_segments(self.family, tools)
        self._end = _marker(self.family.end_of_turn + "\n")
        self._results_open, self._result_open, self._result_close = map(
            _marker, (self.family.results_open, self.family.result_open, self.family.result_close)
        )
        self._systems: list[Message] = []
        self._opening = _Turn([])
        self._turns: list[_Turn] = []
        self._query: int | None = None
        self._count = 0
        self._waiting = 0  # calls without a result
        self._tokenizer: Any = None
        self._begun: list[Segment] = []

    def append(self, messages: Iterable[Message]) -> None:
        """Add messages; results must already be in the order of their calls (``as_messages`` sees to that).

        Raises UserError naming a result without a call; what else cannot be rendered is said when the prompt
        is asked for. The prompt is then of no further use.
        """
        for message in messages:
            self._begun = []
            self._count += 1
            self._add(message)

    def begin(self, text: str, ids: tuple[int, ...] | None = None) -> None:
        """The answer begins with this text, which was generated before; until the next message is added."""
        self._begun = generated(text, ids)

    @property
    def segments(self) -> list[Segment]:
        """All segments, generation prompt included."""
        return [segment for turn in self._all_turns() for segment in turn.segments]

    @property
    def text(self) -> str:
        """The exact prompt as text."""
        return "".join([turn.text for turn in self._all_turns()])

    def ids(self, tokenizer: Any) -> list[int]:
        """The exact prompt as token ids; equal to ``encode(prompt.segments, tokenizer)``."""
        if tokenizer is not self._tokenizer:
            self._tokenizer = tokenizer
            for turn in (self._opening, *self._turns):
                turn.ids = None
        ids: list[int] = []
        for turn in self._all_turns():
            # A turn begins with a control token and so is encoded by itself.
            if turn.ids is None:
                turn.ids = encode(turn.segments, tokenizer)
            ids += turn.ids
        return ids

    def _add(self, message: Message) -> None:
        previous = self._turns[-1] if self._turns else None
        if message.role == "tool":
            if not self._waiting:
                raise UserError(f"message {self._count}: a tool result without a call")
            self._waiting -= 1
            if previous is not None and previous.role == "tool":
                previous.messages.append(message)
                previous.forget()
                return
        elif message.role == "system" and previous is None and (not self._systems or self.family.joins_systems):
            self._systems.append(message)
            self._opening.forget()
            return
        else:
            self._waiting = len(message.calls)
        if previous is not None and previous.role == "assistant":
            previous.forget()  # it was the last
        self._turns.append(_Turn([message], number=self._count))
        if message.role == "user" and self._is_query(message.content):
            for turn in self._turns[0 if self._query is None else self._query :]:
                if turn.role == "assistant":
                    turn.forget()
                    self.dropped += self._drops(turn.messages[0])
            self._query = len(self._turns) - 1

    def _is_query(self, content: str) -> bool:
        """Some clients send results as a user's text; the templates do not take those for a new question."""
        content = content.strip() if self.family.trims else content
        return not (content.startswith("<tool_response>") and content.endswith("</tool_response>"))

    def _drops(self, message: Message) -> bool:
        """Whether a thought is left out of earlier turns that was part of the prompt when it was new."""
        return message.raw is not None and bool(message.reasoning) and self.family.drops_reasoning(self.options)

    def _all_turns(self) -> Iterator[_Turn]:
        """Every turn, rendered."""
        if not self._opening.segments:
            self._opening.segments = _tidy(self._system_turn())
        if self._opening.segments:
            yield self._opening
        for index, turn in enumerate(self._turns):
            if not turn.segments:
                turn.segments = _tidy(self._turn(turn, index))
            yield turn
        yield _Turn([], [_marker(ASSISTANT + self.prefill), *self._begun])

    def _system_turn(self) -> Iterator[Segment]:
        family = self.family
        contents = [self._content(message) for message in self._systems]
        if family.joins_systems:
            contents = [text for text in contents if text]
        system = [Segment("\n".join(contents), "system", False)] if contents else []
        if not self._systems and (
            family.default_system == "always" or (self._tools and family.default_system == "tools")
        ):
            system = [Segment(text_file(f"{family.name}/system.txt"), "system", True)]
        parts = []
        if self._preamble:
            parts.append([Segment(text_file(f"{family.name}/{self._preamble}"), "system", True)])
        parts += [system] if system and not family.system_last else []
        parts += [self._tools] if self._tools else []
        parts += [system] if system and family.system_last else []
        for index, part in enumerate(parts):
            yield _marker("\n\n" if index else "<|im_start|>system\n")
            yield from part
        if parts:
            yield self._end

    def _turn(self, turn: _Turn, index: int) -> Iterator[Segment]:
        message = turn.messages[0]
        if turn.role == "tool":
            yield self._results_open
            for result in turn.messages:
                yield self._result_open
                yield Segment(self._content(result), "response", False)
                yield self._result_close
        elif turn.role == "assistant":
            old = self._query is not None and index < self._query
            place = Place(not old and self._query is not None, old, index == len(self._turns) - 1)
            write = self._said if message.raw is None else self._generated
            try:
                yield from write(message, place)
            except UserError as error:
                raise UserError(f"message {turn.number}: {error}") from error
        else:
            yield _marker(f"<|im_start|>{turn.role}\n")
            yield Segment(self._content(message), turn.role, False)
        yield self._end

    def _generated(self, message: Message, place: Place) -> Iterator[Segment]:
        """A message in the very text and ids that the model generated."""
        raw = message.raw or ""
        if place.old and self._drops(message):
            answer = raw.partition("</think>")[2].lstrip("\n")
            if answer:
                yield _marker(ASSISTANT)
                yield from tagged(answer)
            else:  # the thought never ended; a call in it stands in the parts
                yield from self._said(message, place)
            return
        yield _marker(ASSISTANT + message.prefill)
        if message.token_ids is not None:
            yield Segment(raw, "call" if message.calls else "text", True, message.token_ids)
        else:
            yield from tagged(raw, _TAGS[_TAG.findall("</think>" + message.prefill)[-1]])

    def _said(self, message: Message, place: Place) -> Iterator[Segment]:
        """A message from its parts."""
        thought, content, gap = self.family.speak(message, place, self.options)
        yield _marker(ASSISTANT)
        if thought is not None:
            yield _marker("<think>\n")
            yield Segment(thought, "reasoning", False)
            yield _marker("\n</think>\n\n")
        yield Segment(content, "text", False)
        for index, call in enumerate(message.calls):
            yield _marker(("\n" if index else gap) + "<tool_call>\n")
            yield Segment(self.family.call(call), "call", False)
            yield _marker("\n</tool_call>")

    def _content(self, message: Message) -> str:
        return message.content.strip() if self.family.trims else message.content


@dataclass
class _Turn:
    """A message, or all results of a turn. Rendered and encoded when asked for."""

    messages: list[Message]
    segments: list[Segment] = field(default_factory=list)
    ids: list[int] | None = None
    number: int = 0

    @property
    def role(self) -> str:
        return self.messages[0].role

    @cached_property
    def text(self) -> str:
        return "".join([segment.text for segment in self.segments])

    def forget(self) -> None:
        """Render and encode anew."""
        self.segments, self.ids = [], None
        self.__dict__.pop("text", None)


@lru_cache(maxsize=64)
def _marker(text: str) -> Segment:
    """Structure: the same few over and over."""
    return Segment(text, "marker", True)


def _tidy(segments: Iterable[Segment]) -> list[Segment]:
    """Without empty segments, and without halves of surrogate pairs, which a file name or a JSON escape can
    bring in and no tokenizer takes: each becomes U+FFFD.
    """
    tidy = []
    for segment in segments:
        if not segment.text.isascii():
            text = segment.text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
            segment = segment._replace(text=text)
        if segment.text or segment.ids:
            tidy.append(segment)
    return tidy


def tagged(text: str, kind: str = "text") -> Iterator[Segment]:
    """A generated text whose ids are not known: the tags are the model's own, anything else is plain."""
    for index, piece in enumerate(_TAG.split(text)):
        if index % 2:
            kind = _TAGS[piece]
            yield _marker(piece)
        elif piece:
            yield Segment(piece, kind, False)


def generated(text: str, ids: tuple[int, ...] | None) -> list[Segment]:
    """The beginning of an answer that a model generated, with its ids where they are known."""
    return list(tagged(text)) if ids is None else [Segment(text, "text", True, ids)]


def tool_dict(tool: Any) -> Mapping[str, Any]:
    """A tool as templates see it. A dict stays as it is: the order of its keys is part of the prompt."""
    return tool if isinstance(tool, Mapping) else as_tool(tool).to_dict()


def _tool_segments(family: Family, tools: Iterable[Any]) -> list[Segment]:
    """The part of the system text that offers the tools; empty without tools."""
    lines: list[Segment] = []
    for number, tool in enumerate(tools, start=1):
        data = tool_dict(tool)
        function = data.get("function", data)
        if not isinstance(function, Mapping) or not isinstance(function.get("name"), str):
            raise UserError(f"tool {number} has no name: it must be an object with a function that has one")
        try:
            lines.append(Segment(family.tool(data), "tools", False, label=function["name"]))
        except (TypeError, ValueError) as error:
            raise UserError(f"tool {number} ({function['name']}) cannot be written as JSON: {error}") from error
        lines.append(Segment("\n", "tools", True))
    if not lines:
        return []
    before, after = text_file(f"{family.name}/tools.txt").split("{tools}")
    return [Segment(before, "tools", True), *lines[:-1], Segment(after, "tools", True)]


class _Codec:
    """How a tokenizer writes control tokens, and how it encodes text in which none is recognised."""

    def __init__(self, tokenizer: Any) -> None:
        from tokenizers import Tokenizer

        backend = tokenizer.backend_tokenizer
        self._added: dict[str, int] = tokenizer.get_added_vocab()
        longest_first = sorted(self._added, key=len, reverse=True)
        self._control = re.compile("({})".format("|".join(map(re.escape, longest_first)) or "(?!)"))
        # The same model and normaliser, but without added tokens. Switches such as split_special_tokens do
        # not do this: <tool_call> is an added token of Qwen2.5, but not a special one.
        self._bare = Tokenizer(backend.model)
        if backend.normalizer is not None:
            self._bare.normalizer = backend.normalizer
        if backend.pre_tokenizer is not None:
            self._bare.pre_tokenizer = backend.pre_tokenizer
        self._decode = backend.decode
        # Every prompt of a program offers the same tools, and every turn ends in the same newline.
        self.ids = lru_cache(maxsize=256)(lambda text: tuple(self.plain(text).ids))

    def plain(self, text: str) -> Any:
        """A text encoded as text: ``ids`` and ``offsets``."""
        return self._bare.encode(text, add_special_tokens=False)

    def pieces(self, segment: Segment) -> Iterator[tuple[str, Sequence[int]]]:
        """Texts and, where the segment is trusted, the ids of the control tokens between them."""
        pieces = self._control.split(segment.text) if segment.trusted else [segment.text]
        for index, piece in enumerate(pieces):
            yield ("", [self._added[piece]]) if index % 2 else (piece, ())

    def wrote(self, segment: Segment) -> bool:
        """Whether the ids are of this tokenizer: a saved session may be continued with another model. A text
        with U+FFFD is believed, since its ids may be those of an unfinished character.
        """
        if "\ufffd" in segment.text:
            return True
        return bool(self._decode(list(segment.ids or ()), skip_special_tokens=False) == segment.text)


_codecs: WeakKeyDictionary[Any, _Codec] = WeakKeyDictionary()


def _codec(tokenizer: Any) -> _Codec:
    """Made once a tokenizer."""
    if tokenizer not in _codecs:
        _codecs[tokenizer] = _Codec(tokenizer)
    return _codecs[tokenizer]

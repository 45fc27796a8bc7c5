"""The model's own chat template: whether our prompts equal it, and prompts written by it instead of by us.

A template is Jinja source that came with a model. It is run by transformers, in its sandbox.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from .errors import UserError
from .families import get
from .messages import Message, as_messages
from .prompt import ASSISTANT, Prompt, Segment, encode, generated, render, tool_dict

# Unicode noncharacters, which no text holds: around a control token in somebody's text, and in the place of a
# generated text.
_BEGIN, _END, _HERE = "\ufdd0", "\ufdd1", "\ufdd2"
_MARKS = re.compile(f"[{_BEGIN}{_END}{_HERE}]")

_TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "look_up",
            "description": 'Look up a word; it may be <any> & "quoted".',
            "parameters": {
                "type": "object",
                "properties": {"word": {"type": "string", "enum": ["é", "b"]}, "exact": {"type": "boolean"}},
                "required": ["word"],
            },
        },
    }
]


def _call(word: str) -> dict[str, Any]:
    return {"type": "function", "function": {"name": "look_up", "arguments": {"word": word, "exact": True}}}


# Conversations that show how a template writes each thing.
_PROBES: dict[str, tuple[list[dict[str, Any]], list[dict[str, Any]]]] = {
    "a question": ([{"role": "user", "content": "Hello!"}], []),
    "a system text": (
        [{"role": "system", "content": "Be terse."}, {"role": "user", "content": "Hello!"}],
        [],
    ),
    "a tool": ([{"role": "user", "content": "What is b?"}], _TOOLS),
    "a system text and a tool": (
        [{"role": "system", "content": "Be terse."}, {"role": "user", "content": "What is b?"}],
        _TOOLS,
    ),
    "two calls": (
        [
            {"role": "user", "content": "What are é and b?"},
            {"role": "assistant", "content": "", "tool_calls": [_call("é"), _call("b")]},
            {"role": "tool", "content": "a letter"},
            {"role": "tool", "content": "another"},
        ],
        _TOOLS,
    ),
    "a thought, a text and a call": (
        [
            {"role": "user", "content": "What is b?"},
            {
                "role": "assistant",
                "content": "I look it up.",
                "reasoning_content": "A letter?",
                "tool_calls": [_call("b")],
            },
            {"role": "tool", "content": "a letter\n"},
        ],
        _TOOLS,
    ),
    "an earlier answer": (
        [
            {"role": "user", "content": "Hello!"},
            {"role": "assistant", "content": "Hello.", "reasoning_content": "They greet."},
            {"role": "user", "content": "Who are you?"},
        ],
        [],
    ),
}


def template_difference(tokenizer: Any, family: str, **options: Any) -> str | None:
    """Where our prompts first differ from those of the tokenizer's own chat template, in one line.

    None where a small set of conversations comes out equal, or the tokenizer has no template.
    """
    if not tokenizer.chat_template:
        return None
    get(family)
    for name, (messages, tools) in _PROBES.items():
        ours = render(messages, tools, family, **options)
        try:
            theirs = _run(tokenizer, messages, tools, options)
        except UserError as error:
            return f"for {name}: {error}"
        difference = first_difference(ours, theirs)
        if difference:
            return f"for {name}: {difference}"
    return None


def first_difference(ours: str, theirs: str, context: int = 30) -> str | None:
    """Where two prompts begin to differ, with ``context`` characters of each; None where they are equal."""
    if ours == theirs:
        return None
    position = next(
        (index for index, (a, b) in enumerate(zip(ours, theirs, strict=False)) if a != b),
        min(len(ours), len(theirs)),
    )
    start = max(0, position - context // 2)
    return (
        f"character {position} is different: ours {ours[start : position + context]!r}, "
        f"the model's template {theirs[start : position + context]!r}"
    )


def open_prompt(
    template: str, tokenizer: Any, tools: Iterable[Any], family: str, **options: Any
) -> Prompt | TemplatePrompt:
    """An empty prompt, written by the family's rules or, where ``template`` is ``model``, by the model's own template.

    Raises UserError where there is no such template, and what the prompts themselves raise.
    """
    if template == "family":
        return Prompt(tools, family, **options)
    if tokenizer is None:
        raise UserError("there is no model here that has a chat template of its own; use --template family")
    return TemplatePrompt(tokenizer, tools, **options)


class TemplatePrompt:
    """A prompt that the model's own template writes; used like ``prompt.Prompt``.

    What a model generated keeps its text and ids within the answer to one user message. The template is run
    over the whole conversation each time: a turn costs the history.
    """

    def __init__(self, tokenizer: Any, tools: Iterable[Any] = (), **options: Any) -> None:
        """``options`` are handed to the template as they are. Raises UserError where there is no template."""
        if not tokenizer.chat_template:
            raise UserError("the model has no chat template of its own; use --template family")
        self.dropped = 0
        self._tokenizer = tokenizer
        self._tools = [tool_dict(tool) for tool in tools]
        self._options = options
        self._messages: list[Message] = []
        self._begun: list[Segment] = []
        self._control = re.compile("|".join(map(re.escape, sorted(tokenizer.get_added_vocab(), key=len, reverse=True))))

    def append(self, messages: Iterable[Message]) -> None:
        """Add messages. What the template cannot write is said when the prompt is asked for."""
        self._begun = []
        self._messages += messages

    def begin(self, text: str, ids: tuple[int, ...] | None = None) -> None:
        """The answer begins with this text, which was generated before; until the next message is added."""
        self._begun = generated(text, ids)

    @property
    def prefill(self) -> str:
        """What the generation prompt opens behind the role's name."""
        probe = [Message("user", "Hello!")]
        return self._write(probe).rpartition(ASSISTANT)[2]

    @property
    def segments(self) -> list[Segment]:
        """All segments, generation prompt included. Their kind is not known: all are ``text``. Control tokens
        that stand in somebody's text are segments of their own, not trusted.
        """
        as_messages(self._messages)
        query = max((index for index, message in enumerate(self._messages) if message.role == "user"), default=-1)
        kept = [
            message
            for index, message in enumerate(self._messages)
            if message.raw is not None and (index > query or not message.reasoning)
        ]
        parts = self._write(self._messages, kept).split(_HERE)
        segments = self._split(parts[0])
        for message, part in zip(kept, parts[1:], strict=True):
            # The header is ours to write: some templates put an empty thought behind it.
            last = segments.pop().text
            before, header, _ = last.rpartition(ASSISTANT)
            segments.append(Segment(before + header + message.prefill if header else last, "text", True))
            segments.append(Segment(message.raw or "", "text", True, message.token_ids))
            segments += self._split(part)
        return segments + self._begun

    @property
    def text(self) -> str:
        """The exact prompt as text."""
        return "".join(segment.text for segment in self.segments)

    def ids(self, tokenizer: Any) -> list[int]:
        """The exact prompt as token ids."""
        return encode(self.segments, tokenizer)

    def _write(self, messages: list[Message], kept: Iterable[Message] = ()) -> str:
        """The template's text; in it every control token of somebody's text is marked, and ``kept`` messages
        are one ``_HERE`` each.
        """
        places = {id(message) for message in kept}
        data = [
            {"role": "assistant", "content": _HERE} if id(message) in places else self._mark(_as_template_dict(message))
            for message in messages
        ]
        return _run(self._tokenizer, data, self._mark(self._tools), self._options)

    def _mark(self, value: Any) -> Any:
        if isinstance(value, str):
            return self._control.sub(f"{_BEGIN}\\g<0>{_END}", _MARKS.sub("", value))
        if isinstance(value, Mapping):
            return {self._mark(key): self._mark(item) for key, item in value.items()}
        if isinstance(value, (list, tuple)):
            return [self._mark(item) for item in value]
        return value

    @staticmethod
    def _split(text: str) -> list[Segment]:
        pieces = re.split(f"{_BEGIN}([^{_BEGIN}{_END}]*){_END}", text)
        segments = [Segment(_MARKS.sub("", piece), "text", index % 2 == 0) for index, piece in enumerate(pieces)]
        return [segment for segment in segments if segment.text]


def _as_template_dict(message: Message) -> dict[str, Any]:
    """What templates read: arguments as values, no null content, no id."""
    data: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.reasoning:
        data["reasoning_content"] = message.reasoning
    if message.calls:
        data["tool_calls"] = [
            {"type": "function", "function": {"name": call.name, "arguments": call.arguments}} for call in message.calls
        ]
    if message.name is not None:
        data["name"] = message.name
    return data


def _run(tokenizer: Any, messages: list[Any], tools: list[Any], options: Mapping[str, Any]) -> str:
    """The template's text. Raises UserError with the template's reason where it refuses."""
    try:
        text: str = tokenizer.apply_chat_template(
            messages, tools=tools or None, tokenize=False, add_generation_prompt=True, **options
        )
    except Exception as error:  # a template may raise anything
        raise UserError(f"the model's template refuses: {error}") from error
    return text

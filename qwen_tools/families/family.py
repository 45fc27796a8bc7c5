"""What a family is: the value, and the forms that several families share.

All families here write ChatML turns (``<|im_start|>``, role, text, ``<|im_end|>``); a Family says what
differs. Its texts are in ``prompts/NAME/``: ``tools.txt``, with ``{tools}`` where the tools go, and
``system.txt`` where it has a default system text. Turning a conversation into a prompt is not done here.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from ..errors import UserError
from ..messages import Message, ToolCall


@dataclass(frozen=True)
class Options:
    """The switches of the official templates, by the names and with the defaults they have there."""

    enable_thinking: bool = True
    preserve_thinking: bool = True
    reasoning_effort: str = "xhigh"

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Options:
        """Read options; None means the default. A family ignores those it has no use for, as templates do.

        Raises UserError for a name that no family has, or a value of the wrong kind.
        """
        defaults = {field.name: field.default for field in dataclasses.fields(cls)}
        for name, value in given.items():
            if name not in defaults:
                raise UserError(f"unknown option {name!r}: use {', '.join(defaults)}")
            if value is not None and type(value) is not type(defaults[name]):
                raise UserError(f"option {name} must be {'true or false' if defaults[name] is True else 'text'}")
        return cls(**{name: value for name, value in given.items() if value is not None})


def read_options(pairs: Iterable[str]) -> dict[str, Any]:
    """Options from ``KEY=VALUE`` texts, as commands take them; a value that is JSON is read as JSON."""
    options: dict[str, Any] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals:
            raise UserError(f"an option must be KEY=VALUE, for example enable_thinking=false, not {pair!r}")
        try:
            options[key] = json.loads(value)
        except ValueError:
            options[key] = value
    return options


class Place(NamedTuple):
    """Where an assistant message stands: ``current`` when it belongs to the answer of the last user
    message, ``old`` when a user message follows it, ``last`` when nothing follows it.
    """

    current: bool
    old: bool
    last: bool


class Spoken(NamedTuple):
    """An assistant message as its family writes it: the thought (None: no ``<think>`` block), the text, and
    what stands between the text and the first call.
    """

    thought: str | None
    content: str
    gap: str


def speak(message: Message, place: Place, options: Options) -> Spoken:  # noqa: ARG001 - the shape of all such functions
    """Text and calls; a thought is never written."""
    return Spoken(None, message.content, "\n" if message.content else "")


def tool_line(tool: Mapping[str, Any]) -> str:
    """A tool as one line of JSON, as Python's json writes it: in its own key order, < and é as they are."""
    return json.dumps(tool, ensure_ascii=False)


def json_call(call: ToolCall) -> str:
    """What stands between the tags of a call, in JSON. The templates do not escape the name."""
    return '{"name": "' + call.name + '", "arguments": ' + json.dumps(call.arguments, ensure_ascii=False) + "}"


def xml_call(call: ToolCall, value: Callable[[Any], str]) -> str:
    """What stands between the tags of a call, in XML; ``value`` writes one argument.

    Raises UserError where the arguments are not an object, which this form cannot say.
    """
    if not isinstance(call.arguments, Mapping):
        raise UserError(f"the arguments of the call to {call.name!r} must be an object")
    parameters = "".join(
        f"<parameter={name}>\n{value(argument)}\n</parameter>\n" for name, argument in call.arguments.items()
    )
    return f"<function={call.name}>\n{parameters}</function>"


@dataclass(frozen=True)
class Family:
    """How one line of models writes prompts and calls. The defaults are those of Qwen2.5."""

    name: str
    # A chat template is of this family when it holds all of these.
    signs: tuple[str, ...]
    # ``json`` or ``xml``: what the model writes inside <tool_call>.
    dialect: str = "json"
    # When ``system.txt`` stands in for a missing system message: ``always``, with ``tools``, or ``never``.
    default_system: str = "never"
    # The system text stands behind the tools, not in front of them, and is left out when empty.
    system_last: bool = False
    # Several system messages at the beginning become one.
    joins_systems: bool = False
    # White space around every content is removed.
    trims: bool = False
    # The file in ``prompts/NAME/`` with which the system text begins, or None.
    preamble: Callable[[Options], str | None] = lambda options: None  # noqa: ARG005
    tool: Callable[[Mapping[str, Any]], str] = tool_line
    call: Callable[[ToolCall], str] = json_call
    speak: Callable[[Message, Place, Options], Spoken] = speak
    # What the generation prompt opens behind "<|im_start|>assistant\n".
    prefill: Callable[[Options], str] = lambda options: ""  # noqa: ARG005
    # Whether the thoughts of earlier user turns are left out.
    drops_reasoning: Callable[[Options], bool] = lambda options: False  # noqa: ARG005
    # How the results of a turn begin, and what stands around each of them.
    results_open: str = "<|im_start|>user"
    result_open: str = "\n<tool_response>\n"
    result_close: str = "\n</tool_response>"
    end_of_turn: str = "<|im_end|>"

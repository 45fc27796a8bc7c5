"""Qwen3.8: tools in JSON, calls in XML, a reasoning effort; thoughts stay unless told otherwise."""

import json
from typing import Any

from ..errors import UserError
from ..messages import Message, ToolCall
from .family import Family, Options, Place, Spoken, xml_call

# A newer template takes OpenAI's ``high`` for its own highest; ``medium`` needs no words.
_EFFORTS = {"xhigh": "effort-xhigh.txt", "high": "effort-xhigh.txt", "medium": None, "low": "effort-low.txt"}


def _preamble(options: Options) -> str | None:
    if not options.enable_thinking:
        return None
    if options.reasoning_effort not in _EFFORTS:
        raise UserError(f"unknown reasoning_effort {options.reasoning_effort!r}: use xhigh, medium or low")
    return _EFFORTS[options.reasoning_effort]


def _value(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _call(call: ToolCall) -> str:
    return xml_call(call, _value)


def _speak(message: Message, place: Place, options: Options) -> Spoken:
    content = message.content.strip()
    thought = message.reasoning.strip() if options.preserve_thinking or place.current else None
    return Spoken(thought, content, "\n\n" if content else "")


FAMILY = Family(
    "qwen3.8",
    signs=("<|im_start|>", "<function=", "reasoning_content"),
    dialect="xml",
    system_last=True,
    joins_systems=True,
    trims=True,
    preamble=_preamble,
    call=_call,
    speak=_speak,
    prefill=lambda options: "<think>\n" if options.enable_thinking else "<think>\n\n</think>\n\n",
    drops_reasoning=lambda options: not options.preserve_thinking,
)

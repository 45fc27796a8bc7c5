"""QwQ: Qwen2.5's form with a thought before every answer; thoughts are not part of the history."""

from ..messages import Message
from .family import Family, Options, Place, Spoken


def _speak(message: Message, place: Place, options: Options) -> Spoken:  # noqa: ARG001
    content = message.content if place.last else message.content.split("</think>")[-1].lstrip("\n")
    return Spoken(None, content, "\n" if message.content else "")


FAMILY = Family(
    "qwq",
    signs=("<|im_start|>assistant\\n<think>\\n", "<tool_call>"),
    default_system="tools",
    speak=_speak,
    prefill=lambda options: "<think>\n",  # noqa: ARG005
    drops_reasoning=lambda options: True,  # noqa: ARG005
)

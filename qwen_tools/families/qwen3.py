"""Qwen3: calls in JSON; a thought is kept until the user speaks again."""

from ..messages import Message
from .family import Family, Options, Place, Spoken


def _speak(message: Message, place: Place, options: Options) -> Spoken:  # noqa: ARG001
    thought, content = message.reasoning, message.content
    if not thought and "</think>" in content:
        thought = content.split("</think>")[0].rstrip("\n").split("<think>")[-1].lstrip("\n")
        content = content.split("</think>")[-1].lstrip("\n")
    gap = "\n" if content else ""
    if place.current and (place.last or thought):
        return Spoken(thought.strip("\n"), content.lstrip("\n"), gap)
    return Spoken(None, content, gap)


FAMILY = Family(
    "qwen3",
    signs=("<|im_start|>", "<tool_call>", "reasoning_content"),
    speak=_speak,
    prefill=lambda options: "" if options.enable_thinking else "<think>\n\n</think>\n\n",
    drops_reasoning=lambda options: True,  # noqa: ARG005
)

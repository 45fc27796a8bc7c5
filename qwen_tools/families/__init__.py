"""How model families write things down: one frozen value each, one file each, and this table of them."""

from __future__ import annotations

from collections.abc import Container, Mapping

from ..errors import UserError
from . import qwen2_5, qwen3, qwen3_8, qwen3_coder, qwq
from .family import Family, Options, Place, Spoken, read_options

__all__ = ["FAMILIES", "Family", "Options", "Place", "Spoken", "detect", "get", "read_options"]

# In the order in which ``detect`` tries them: an earlier template also holds the signs of later families.
FAMILIES: dict[str, Family] = {
    module.FAMILY.name: module.FAMILY for module in (qwen3_coder, qwen3_8, qwen3, qwq, qwen2_5)
}


def get(name: str) -> Family:
    """The family of that name. Raises UserError naming those there are."""
    try:
        return FAMILIES[name]
    except KeyError:
        raise UserError(f"unknown family {name!r}: use {', '.join(sorted(FAMILIES))}") from None


def detect(chat_template: str | Mapping[str, str], added_tokens: Container[str]) -> str:
    """The family of a model, from its chat template (Jinja source, or several by name) and its added tokens.

    A template that is close to a family's but not equal is found too: ``template.template_difference`` tells
    them apart. Raises UserError where the model does not write ChatML turns at all.
    """
    if not isinstance(chat_template, str):
        chat_template = "\n".join(chat_template.values())
    if "<|im_start|>" in added_tokens and "<|im_end|>" in added_tokens:
        for family in FAMILIES.values():
            if all(sign in chat_template for sign in family.signs):
                return family.name
        if not chat_template:
            # Qwen3 made <tool_response> a token; before it only <tool_call> was one.
            return "qwen3" if "<tool_response>" in added_tokens else "qwen2.5"
    names = ", ".join(sorted(FAMILIES))
    raise UserError(f"the model's chat template is of no known family; name the closest with --family ({names})")

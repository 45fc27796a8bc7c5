"""Qwen3-Coder: tools and calls in XML, no thoughts. Values are written as Python writes them (True, None)."""

import json
from collections.abc import Mapping
from typing import Any

from ..messages import Message, ToolCall
from .family import Family, Options, Place, Spoken, xml_call


def _value(value: Any) -> str:
    """An object or a list as JSON, anything else as Python's str."""
    return json.dumps(value, ensure_ascii=False) if isinstance(value, (Mapping, list, tuple)) else str(value)


def _call(call: ToolCall) -> str:
    return xml_call(call, _value)


def _extra(fields: Any, handled: tuple[str, ...]) -> list[str]:
    """What a schema says beyond the ``handled`` keys."""
    if not isinstance(fields, Mapping):
        return []
    return [f"<{key}>{_value(value)}</{key}>" for key, value in fields.items() if key not in handled]


def _description(fields: Mapping[str, Any]) -> list[str]:
    return [f"<description>{str(fields['description']).strip()}</description>"] if "description" in fields else []


def _tool(tool: Mapping[str, Any]) -> str:
    function = tool.get("function", tool)
    parameters = function.get("parameters")
    properties = parameters.get("properties") if isinstance(parameters, Mapping) else None
    lines = ["<function>", f"<name>{function['name']}</name>", *_description(function), "<parameters>"]
    for name, fields in properties.items() if isinstance(properties, Mapping) else ():
        lines += ["<parameter>", f"<name>{name}</name>"]
        if isinstance(fields, Mapping):
            lines += [f"<type>{fields['type']!s}</type>"] if "type" in fields else []
            lines += _description(fields)
        lines += [*_extra(fields, ("name", "type", "description")), "</parameter>"]
    lines += [*_extra(parameters, ("type", "properties")), "</parameters>"]
    lines += [*_extra(function, ("type", "name", "description", "parameters")), "</function>"]
    return "\n".join(lines)


def _speak(message: Message, place: Place, options: Options) -> Spoken:  # noqa: ARG001
    content = message.content.strip() if message.calls else message.content
    return Spoken(None, content, "\n\n" if content else "")


FAMILY = Family(
    "qwen3-coder",
    signs=("<|im_start|>", "<function=", "<parameters>"),
    dialect="xml",
    default_system="tools",
    tool=_tool,
    call=_call,
    speak=_speak,
    results_open="<|im_start|>user\n",
    result_open="<tool_response>\n",
    result_close="\n</tool_response>\n",
)

"""A guide as an llguidance grammar, in its Lark syntax. Text only: nothing is compiled here.

A call is written as the family writes it: JSON, or XML with its raw values. What the grammar allows is never more
than the schema does, but may be less: properties come in the schema's order, and an object that lists its
properties has no others, so that a weak model cannot wander off into arguments of its own.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from . import Guide, UnsupportedSchemaError
from .xml import parameters as xml_parameters

# What Qwen's templates and training data use between JSON tokens.
_STYLE = {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": "}

_NO_ARGUMENTS = {"type": "object", "properties": {}, "additionalProperties": False}

# The id of a text that is one added token, else None: llguidance wants such tokens by id, ordinary text as a string.
TokenId = Callable[[str], int | None]


def lark(guide: Guide, dialect: str, token_id: TokenId) -> str:
    """The grammar of a guide. ``dialect`` is the family's: ``json`` or ``xml``.

    Raises UnsupportedSchemaError for a schema whose values XML cannot be held to.
    """
    if not guide.tools and guide.schema is None:
        # The wrong forms of a call begin with a brace, a bracket, a tag or a fence.
        rest = "[^{}\\[\\]<`]*" if guide.prose else "(?s:.*)"
        return f"start: /[^\\s{{}}\\[\\]<`]{rest}/\n"
    lines = ["start: " + " | ".join(["calls"] * bool(guide.tools) + ["answer"] * (guide.schema is not None))]
    if guide.schema is not None:
        lines.append(f"answer: {json_value(guide.schema)}")
    if guide.tools:
        calls = " | ".join(f"call_{index}" for index in range(len(guide.tools)))
        block = f'{_tag("<tool_call>", token_id)} "\\n" ({calls}) "\\n" {_tag("</tool_call>", token_id)}'
        lines += ['calls: block ("\\n" block)*' if guide.parallel else "calls: block", f"block: {block}"]
    for index, tool in enumerate(guide.tools):
        schema = _of_arguments(tool.parameters)
        if dialect == "xml":
            rules = xml_parameters(schema, f"_{index}", json_value)
            head, tail = f"<function={tool.name}>\n", "</function>"
        else:
            rules = [f"args_{index}: {json_value(schema)}"]
            head, tail = json.dumps({"name": tool.name}, ensure_ascii=False)[:-1] + ', "arguments": ', "}"
        lines += [f"call_{index}: {_text(head)} args_{index} {_text(tail)}", *rules]
    return "\n".join(lines) + "\n"


def json_value(schema: Any) -> str:
    """A value by a schema, as a grammar writes it."""
    own = _prepared(schema)
    # Only an object can carry the style.
    own = {"x-guidance": _STYLE, **(own if isinstance(own, dict) else {} if own else {"not": {}})}
    return f"%json {json.dumps(own, ensure_ascii=False)}"


def _text(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _tag(text: str, token_id: TokenId) -> str:
    number = token_id(text)
    return _text(text) if number is None else f"<[{number}]>"


def _of_arguments(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """The schema of a tool's parameters; whatever it says, arguments are an object."""
    if not schema:
        return _NO_ARGUMENTS
    types = schema.get("type", "object")
    if types != "object" and "object" not in types:
        raise UnsupportedSchemaError("the type of arguments must be object")
    return {**schema, "type": "object"}


# What llguidance 1.9 knows of JSON Schema's formats.
_FORMATS = ("date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uri", "uuid")

_SCHEMAS_BY_NAME = ("properties", "patternProperties", "$defs", "definitions")
_SCHEMAS = ("items", "prefixItems", "additionalProperties", "anyOf", "oneOf", "allOf")


def _prepared(schema: Any, close: bool = True) -> Any:
    """The schema in llguidance's terms, and closed where that only narrows it.

    ``nullable`` is OpenAPI's word for one more type. A ``format`` that llguidance does not know is left out: in
    JSON Schema it is a remark, not a rule.
    """
    if isinstance(schema, list):
        return [_prepared(each, close) for each in schema]
    if not isinstance(schema, Mapping):
        return schema
    result: dict[str, Any] = {}
    for key, value in schema.items():
        if key in _SCHEMAS_BY_NAME and isinstance(value, Mapping):
            # A definition may be referred to from anywhere.
            result[key] = {name: _prepared(each, close and key == "properties") for name, each in value.items()}
        elif key in _SCHEMAS:
            # Of oneOf and allOf several branches are looked at together: narrowing one would widen the rest.
            result[key] = _prepared(value, close and key not in ("oneOf", "allOf"))
        elif key == "format" and value not in _FORMATS:
            continue
        else:
            result[key] = value
    if schema.get("nullable") is True and isinstance(schema.get("type"), str):
        result["type"] = [schema["type"], "null"]
    named = schema.get("properties")
    if (
        close
        and isinstance(named, Mapping)
        and not schema.keys() & {"additionalProperties", "patternProperties", "allOf", "anyOf", "oneOf", "$ref"}
        and named.keys() >= set(schema.get("required", ()))
    ):
        result["additionalProperties"] = False
    return result

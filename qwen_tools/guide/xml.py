"""The parameters of a call in the XML dialect, as rules of a grammar.

A value is raw text, and only the schema says what it means (``coerce``): so what is held to is not how the text
looks but what it will be read as. JSON Schema's rules for strings become regular expressions; any other value is
written as JSON. Where text could be read as a value of another kind that the schema limits, it is excluded.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from .. import coerce
from ..validate import problem
from . import UnsupportedSchemaError

# Rules for the arguments as a whole; their order and number cannot be held to here.
_OF_THE_WHOLE = (
    "$ref", "allOf", "anyOf", "oneOf", "not", "if", "then", "else", "enum", "const",
    "minProperties", "maxProperties", "patternProperties", "propertyNames", "unevaluatedProperties",
    "dependencies", "dependentRequired", "dependentSchemas",
)  # fmt: skip

_COMBINATIONS = ("$ref", "anyOf", "oneOf", "allOf", "not", "if", "then", "else", "$dynamicRef", "$recursiveRef")

# What limits a string, and what limits nothing.
_OF_STRINGS = frozenset(("minLength", "maxLength", "pattern", "format"))
_REMARKS = frozenset(
    ("title", "description", "default", "examples", "example", "deprecated", "readOnly", "writeOnly", "$comment",
     "$defs", "definitions", "nullable", "$schema", "$id")
)  # fmt: skip

# What would end a value, or what a model could take for its end.
_MARKUP = ("</parameter>", "</function>", "</tool_call>", "<parameter=", "<function=", "<tool_call>")

# Texts that ``coerce`` reads as something else than a string, where that may be.
_READ_AS = {
    "null": r"\s*(null|None)\s*",
    "boolean": r"\s*(?i:true|false)\s*",
    "integer": r"\s*[+\-]?[0-9]+(\.0+)?\s*",
    "number": r"\s*[+\-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+\-]?[0-9]+)?\s*",
    "container": r"\s*[{\[](?s:.*)",
}

_CLOSE = "\n</parameter>\n"


def parameters(schema: Mapping[str, Any], suffix: str, json_value: Callable[[Any], str]) -> list[str]:
    """The rule ``args<suffix>`` and those it needs; ``json_value`` writes a value that is JSON.

    Raises UnsupportedSchemaError.
    """
    if faults := [key for key in _OF_THE_WHOLE if key in schema]:
        raise UnsupportedSchemaError(f"{', '.join(faults)} of all parameters cannot be held to in XML")
    properties = {name: own for name, own in schema.get("properties", {}).items() if _has_values(own, schema)}
    required = schema.get("required", [])
    if absent := [name for name in required if name not in properties]:
        raise UnsupportedSchemaError(f"{', '.join(absent)}: required, but false, or its enum has no value of its type")
    parts, rules = [], []
    for index, (name, own) in enumerate(properties.items()):
        if ">" in name or "\n" in name:
            raise UnsupportedSchemaError(f"the name {name!r} in properties cannot be written in a tag")
        key = f"{suffix}_{index}"
        parts.append(f"parameter{key}" + ("" if name in required else "?"))
        value, terminals = _value(own, schema, f"VALUE{key}", json_value)
        rules += [f"parameter{key}: {_quoted(f'<parameter={name}>' + chr(10))} ({value})", *terminals]
    return [f"args{suffix}: " + (" ".join(parts) or '""'), *rules]


def _has_values(schema: Any, root: Mapping[str, Any]) -> bool:
    """False for a parameter that must not be there, or whose ``enum`` has nothing of its ``type``."""
    if isinstance(schema, Mapping) and "enum" in schema:
        whole = {**root, "required": [], "properties": {"value": schema}}
        return any(problem({"value": each}, whole) is None for each in schema["enum"])
    return schema is not False


def _value(
    schema: Any, root: Mapping[str, Any], terminal: str, json_value: Callable[[Any], str]
) -> tuple[str, list[str]]:
    """A value up to the end of its closing tag, and the terminals that it needs."""

    def as_json(own: Any) -> str:
        definitions = {key: root[key] for key in ("$defs", "definitions") if key in root}
        return f"{json_value({**own, **definitions})} {_quoted(_CLOSE)}"

    allowed = coerce.kinds(schema, root)
    if "string" not in allowed:
        return as_json(schema), []
    written, literal, texts = [], [], []
    limited: set[str] = set()  # kinds of which not every value will do
    for branch in _branches(schema, root, ()):
        kinds = coerce.kinds(branch, root)
        values = branch["enum"] if "enum" in branch else [branch["const"]] if "const" in branch else None
        if values is not None:
            texts_of = [each if isinstance(each, str) else json.dumps(each, ensure_ascii=False) for each in values]
            literal += [
                _quoted(text + _CLOSE)
                for text, each in zip(texts_of, values, strict=True)
                if coerce.value(text, allowed) == each and not any(tag in text for tag in _MARKUP)
            ]
        elif "string" in kinds:
            texts.append(_string(branch))
            if branch.keys() - _OF_STRINGS - _REMARKS - {"type"}:
                limited |= kinds
        else:
            written.append(as_json(branch))
            if branch.keys() - _REMARKS - {"type"}:
                limited |= kinds
    if not texts:
        return " | ".join([*literal, *written]), []
    # Free text covers whatever can be written as text.
    excluded = [_READ_AS[kind] for kind in sorted(limited - {"string"})]
    text = " | ".join(texts)
    unlike = "".join(f" & ~/{each}/" for each in [*excluded, f"(?s:.*)({'|'.join(map(_escaped, _MARKUP))})(?s:.*)"])
    return terminal, [f"{terminal}_TEXT: ({text}){unlike}", f"{terminal}: {terminal}_TEXT {_quoted(_CLOSE)}"]


def _branches(schema: Any, root: Mapping[str, Any], seen: tuple[str, ...]) -> Iterator[Mapping[str, Any]]:
    """The alternatives of a schema that allows strings, each without references and combinations."""
    if not isinstance(schema, Mapping):
        if schema:
            yield {}
        return
    ways = [key for key in _COMBINATIONS if key in schema]
    if not ways:
        yield schema
        return
    way = ways[0]
    if len(ways) > 1 or way not in ("$ref", "anyOf", "oneOf", "allOf") or schema.keys() - _REMARKS - {way, "type"}:
        raise UnsupportedSchemaError(f"a text cannot be held to {', '.join(ways)} in XML")
    if way == "$ref":
        if schema[way] in seen or not isinstance(target := coerce.target(schema[way], root), (Mapping, bool)):
            raise UnsupportedSchemaError(f"the $ref {schema[way]} names nothing here")
        yield from _branches(target, root, (*seen, schema[way]))
        return
    branches = [each for one in schema[way] for each in _branches(one, root, seen)]
    kinds = [kind for each in branches for kind in coerce.kinds(each, root)]
    if (way == "allOf" and len(schema[way]) > 1) or (way == "oneOf" and len(kinds) > len(set(kinds))):
        raise UnsupportedSchemaError(f"a text cannot be held to this {way} in XML")
    yield from branches


def _string(schema: Mapping[str, Any]) -> str:
    """The strings that a schema allows, as a regular expression."""
    least, most = int(schema.get("minLength", 0)), schema.get("maxLength", "")
    length = f"/(?s:.){{{least},{most}}}/" if least or most != "" else "/(?s:.*)/"
    pattern = schema.get("pattern")
    if pattern is None:
        return length
    # A pattern may lie anywhere in the string unless it is anchored.
    begin = "" if pattern.startswith("^") else "(?s:.*)"
    end = "" if pattern.endswith("$") and not pattern.endswith("\\$") else "(?s:.*)"
    inner = pattern.removeprefix("^") if not begin else pattern
    inner = inner.removesuffix("$") if not end else inner
    if not (begin and end) and _has_alternatives(inner):
        raise UnsupportedSchemaError("the pattern has an anchor beside alternatives")
    return f"({length} & /{begin}({_escaped(inner)}){end}/)"


def _has_alternatives(pattern: str) -> bool:
    """Whether a ``|`` stands outside of all groups."""
    outside, count = re.sub(r"\\.|\[[^\]]*\]", "", pattern), 1
    while count:
        outside, count = re.subn(r"\([^()]*\)", "", outside)
    return "|" in outside


def _escaped(regex: str) -> str:
    return regex.replace("/", "\\/")


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)

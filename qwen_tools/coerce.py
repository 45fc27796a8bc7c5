"""The text of an XML parameter as a typed value, by the parameter's schema.

The XML dialect writes every value as bare text: ``25`` may be a number or a string, and only the schema knows. A
value that does not fit stays the text it is, and validation says so; nothing is guessed.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any

# Of JSON that a model writes: deeper than any tool wants, and far from Python's limit of recursion.
MAX_DEPTH = 100

_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_ORDER = ("null", "boolean", "integer", "number", "container", "string")
_KINDS = {"object": "container", "array": "container"}


def kinds(schema: Any, root: Mapping[str, Any]) -> frozenset[str]:
    """What a value may be: ``null``, ``boolean``, ``integer``, ``number``, ``container``, ``string``.

    Through ``$ref`` (within ``root``), ``allOf`` of one, ``anyOf`` and ``oneOf``; without a type, from ``enum`` or
    ``const``; a schema that says nothing means string.
    """
    return frozenset(_kinds(schema, root, frozenset())) or frozenset(("string",))


def value(text: str, allowed: frozenset[str]) -> Any:
    """The text as the first kind that it fits, in the order null, boolean, integer, number,
    container, string; the text itself where it fits none.
    """
    if allowed == {"string"}:
        return text
    bare = text.strip()
    for kind in _ORDER:
        if kind in allowed:
            found, result = _READ[kind](text if kind == "string" else bare)
            if found:
                return result
    return text


def _kinds(schema: Any, root: Mapping[str, Any], seen: frozenset[str]) -> set[str]:
    """``seen`` are the references on the way here: one that comes again says nothing new."""
    if not isinstance(schema, Mapping):
        return set()
    reference = schema.get("$ref")
    if isinstance(reference, str):
        return set() if reference in seen else _kinds(target(reference, root), root, seen | {reference})
    named = schema.get("type")
    if isinstance(named, str):
        named = [named]
    if isinstance(named, list):
        result = {_KINDS.get(each, each) for each in named if isinstance(each, str)} & set(_ORDER)
        return result | ({"null"} if schema.get("nullable") is True else set())
    for key in ("anyOf", "oneOf"):
        if isinstance(schema.get(key), list):
            return {kind for each in schema[key] for kind in _kinds(each, root, seen)}
    if isinstance(schema.get("allOf"), list) and len(schema["allOf"]) == 1:
        return _kinds(schema["allOf"][0], root, seen)
    values = schema["enum"] if isinstance(schema.get("enum"), list) else [schema["const"]] if "const" in schema else []
    return {_kind_of(each) for each in values}


def target(reference: str, root: Mapping[str, Any]) -> Any:
    """What a local JSON pointer names."""
    if not reference.startswith("#"):
        return None
    node: Any = root
    for part in reference[1:].split("/")[1:]:
        key = part.replace("~1", "/").replace("~0", "~")
        if isinstance(node, Mapping) and key in node:
            node = node[key]
        else:
            return None
    return node


def _kind_of(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int):
        return "integer"
    if isinstance(value, float):
        return "number"
    return "container" if isinstance(value, (dict, list)) else "string"


def _null(text: str) -> tuple[bool, Any]:
    return text in ("null", "None"), None


def _boolean(text: str) -> tuple[bool, Any]:
    return text.lower() in ("true", "false"), text.lower() == "true"


def _integer(text: str) -> tuple[bool, Any]:
    # Python reads no integers beyond 4,300 digits; such a value stays text.
    if re.fullmatch(r"[+-]?\d{1,4000}", text, re.ASCII):
        return True, int(text)
    if re.fullmatch(r"[+-]?\d{1,300}\.0+", text, re.ASCII):
        return True, int(text.split(".")[0])
    return False, None


def _number(text: str) -> tuple[bool, Any]:
    if re.fullmatch(r"[+-]?\d{1,4000}", text, re.ASCII):
        return True, int(text)
    if re.fullmatch(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?", text, re.ASCII):
        number = float(text)
        return math.isfinite(number), number
    return False, None


def _container(text: str) -> tuple[bool, Any]:
    if not text.startswith(("{", "[")):
        return False, None
    try:
        result = loads(text)
    except ValueError:
        return False, None
    return True, result


def _string(text: str) -> tuple[bool, Any]:
    return True, text


_READ = {
    "null": _null,
    "boolean": _boolean,
    "integer": _integer,
    "number": _number,
    "container": _container,
    "string": _string,
}


def loads(text: str) -> Any:
    """JSON as a model may write it: raw control characters in strings pass, NaN and infinities do not.

    Raises ValueError, also for what no program could take further: nesting deeper than MAX_DEPTH, integers beyond
    Python's limit of digits, halves of surrogate pairs.
    """
    try:
        value = json.loads(text, strict=False, parse_constant=_no_constant, parse_float=_finite)
    except RecursionError:
        raise ValueError(f"nested deeper than {MAX_DEPTH} levels") from None
    # Counting is cheap, and nearly always enough.
    if text.count("{") + text.count("[") > MAX_DEPTH and _deeper(value, MAX_DEPTH):
        raise ValueError(f"nested deeper than {MAX_DEPTH} levels")
    if _SURROGATE.search(text):
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            raise ValueError("half of a surrogate pair stands alone in a string") from None
    return value


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"the number {text[:20]} is too large")
    return number


def _deeper(value: Any, levels: int) -> bool:
    """Whether lists and objects are nested deeper; goes no deeper itself than one level beyond."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    if inner is None:
        return False
    return levels == 0 or any(_deeper(each, levels - 1) for each in inner)

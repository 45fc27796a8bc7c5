"""How a Python function is described as a JSON Schema.

transformers' ``get_json_schema`` reads hints and docstring; around it stands what it lacks: dataclasses and TypedDicts,
null as a type that jsonschema knows, defaults, no arguments beyond the named ones, and refusals that say where.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import inspect
import json
import re
import types
import typing
from collections.abc import Callable, Mapping
from typing import Any

from .errors import UserError

_NO_TEXT = "-"  # stands in for a description that is missing, which get_json_schema would refuse


def describe(function: Callable[..., Any]) -> tuple[str, dict[str, Any], Callable[..., Any]]:
    """The description, the JSON Schema of the arguments, and a callable that takes them as JSON values.

    Raises UserError with file, line and reason for a function that cannot be described.
    """
    try:
        hints = typing.get_type_hints(function, include_extras=False)
        signature = inspect.signature(function)
    except (NameError, TypeError, ValueError) as error:
        raise _refusal(function, str(error)) from error
    hints.pop("return", None)
    for name, parameter in signature.parameters.items():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
            raise _refusal(function, f"parameter {name} cannot be passed by name")
        if name not in hints:
            raise _refusal(function, f"parameter {name} has no type hint")
    documentation = inspect.getdoc(function) or ""
    summary, texts = _documented(documentation)
    if not summary:
        raise _refusal(function, "it has no docstring to tell the model what it does")
    try:
        schema = _object(hints, texts, {name: p.default for name, p in signature.parameters.items()})
        json.dumps(schema, allow_nan=False)
    except _CannotDescribeError as error:
        raise _refusal(function, str(error)) from error
    except RecursionError as error:
        raise _refusal(function, "the type of a parameter contains itself") from error
    except (TypeError, ValueError) as error:
        raise _refusal(function, f"a Literal or Enum holds what JSON cannot say: {error}") from error
    return summary, schema, _caller(function, hints)


class _CannotDescribeError(Exception):
    pass


def _refusal(function: Callable[..., Any], reason: str) -> UserError:
    code = getattr(inspect.unwrap(function), "__code__", None)
    where = f"{code.co_filename}, line {code.co_firstlineno}: " if code else ""
    name = getattr(function, "__name__", repr(function))
    return UserError(f"{where}the function {name} cannot be a tool: {reason}")


def _documented(documentation: str) -> tuple[str, Mapping[str, str]]:
    from transformers.utils.chat_template_utils import parse_google_format_docstring

    summary, arguments, _ = parse_google_format_docstring(documentation)
    return re.sub(r"\s*\n\s*", " ", summary or ""), arguments or {}


def _object(hints: Mapping[str, Any], texts: Mapping[str, str], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """The schema of named values, in their order."""
    properties = {}
    for name, hint in hints.items():
        schema = _value(hint, name)
        if texts.get(name):
            schema.update(_choices(texts[name], name))
        if defaults.get(name, inspect.Parameter.empty) is not inspect.Parameter.empty:
            default = defaults[name].value if isinstance(defaults[name], enum.Enum) else defaults[name]
            try:
                json.dumps(default, allow_nan=False)
            except (TypeError, ValueError):
                pass  # a default that JSON cannot say stays a secret of the function
            else:
                schema["default"] = default
        properties[name] = schema
    required = [name for name in hints if defaults.get(name, inspect.Parameter.empty) is inspect.Parameter.empty]
    return {
        "type": "object",
        "properties": properties,
        **({"required": required} if required else {}),
        "additionalProperties": False,
    }


def _choices(text: str, name: str) -> dict[str, Any]:
    """The text of a parameter; ``(choices: ["a", "b"])`` at its end is an enum, as in get_json_schema."""
    found = re.search(r"\(choices:\s*(.*?)\)\s*$", text, re.IGNORECASE | re.DOTALL)
    if not found:
        return {"description": text}
    try:
        choices = json.loads(found[1])
    except ValueError:
        choices = None
    if not isinstance(choices, list):
        raise _CannotDescribeError(f'parameter {name}: its choices must be a JSON list such as ["a", "b"]')
    return {"enum": choices, "description": text[: found.start()].strip()}


def _value(hint: Any, name: str) -> dict[str, Any]:
    """The schema of one value."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if dataclasses.is_dataclass(hint):
        fields = {field.name: _default(field) for field in dataclasses.fields(hint) if field.init}
        hints = typing.get_type_hints(hint)
        return _object({name: hints[name] for name in fields}, {}, fields)
    if typing.is_typeddict(hint):
        optional = dict.fromkeys(hint.__optional_keys__)
        schema = _object(typing.get_type_hints(hint), {}, optional)
        for key in optional:
            del schema["properties"][key]["default"]
        return schema
    if origin is list and arguments:
        return {"type": "array", "items": _value(arguments[0], name)}
    if origin is dict and len(arguments) == 2:
        if arguments[0] is not str:
            raise _CannotDescribeError(f"parameter {name}: the keys of a JSON object are text, so use dict[str, ...]")
        return {"type": "object", "additionalProperties": _value(arguments[1], name)}
    if origin in (typing.Union, types.UnionType):
        inner = [each for each in arguments if each is not type(None)]
        if len(inner) == 1:
            return _nullable({**_value(inner[0], name), "nullable": True})
        if not all(_is_plain(each) for each in inner):
            return {"anyOf": [_value(each, name) for each in arguments]}
    if _is_enum(hint):
        return _choice([member.value for member in hint], name)
    if hint is type(None):
        return {"type": "null"}
    return _nullable(_by_transformers(hint, name))


def _is_record(hint: Any) -> bool:
    return dataclasses.is_dataclass(hint) or typing.is_typeddict(hint)


def _is_enum(hint: Any) -> bool:
    return isinstance(hint, type) and issubclass(hint, enum.Enum)


def _is_plain(hint: Any) -> bool:
    """Whether get_json_schema knows it."""
    return not (typing.get_origin(hint) in (list, dict) or _is_record(hint) or _is_enum(hint))


def _choice(values: list[Any], name: str) -> dict[str, Any]:
    """The schema of an Enum's values, as newer versions of transformers write it."""
    kinds = {str: "string", bool: "boolean", int: "integer", float: "number"}
    if not values or not all(type(value) in kinds for value in values):
        raise _CannotDescribeError(f"parameter {name}: the values of an Enum must be text, numbers or booleans")
    found = list(dict.fromkeys(kinds[type(value)] for value in values))
    return {"type": found if len(found) > 1 else found[0], "enum": values}


def _default(field: dataclasses.Field[Any]) -> Any:
    if field.default is not dataclasses.MISSING:
        return field.default
    return object() if field.default_factory is not dataclasses.MISSING else inspect.Parameter.empty


def _by_transformers(hint: Any, name: str) -> dict[str, Any]:
    """The schema of a plain hint, by get_json_schema on a function with this one parameter."""
    from transformers.utils.chat_template_utils import get_json_schema

    def stand_in() -> None: ...

    stand_in.__doc__ = f"{_NO_TEXT}\n\nArgs:\n    value: {_NO_TEXT}"
    stand_in.__annotations__ = {"value": hint}
    stand_in.__signature__ = inspect.Signature(  # type: ignore[attr-defined]  # inspect.signature looks for it
        [inspect.Parameter("value", inspect.Parameter.KEYWORD_ONLY, annotation=hint)]
    )
    try:
        schema = get_json_schema(stand_in)["function"]["parameters"]["properties"]["value"]
    except Exception as error:
        reason = str(error).strip().splitlines()[0]
        raise _CannotDescribeError(f"parameter {name}: {reason}") from error
    schema.pop("description", None)
    return dict(schema)


def _nullable(schema: dict[str, Any]) -> dict[str, Any]:
    """``nullable: true`` is OpenAPI's word; jsonschema knows null only as a type."""
    if not schema.pop("nullable", False):
        return schema
    if "enum" in schema and None not in schema["enum"]:
        schema["enum"] = [*schema["enum"], None]
    if "anyOf" in schema:
        schema["anyOf"] = [*schema["anyOf"], {"type": "null"}]
    if "type" in schema:
        kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
        schema["type"] = kinds if "null" in kinds else [*kinds, "null"]
    return schema


def _caller(function: Callable[..., Any], hints: Mapping[str, Any]) -> Callable[..., Any]:
    """The function itself, or one that makes enum members and dataclasses of the JSON values first."""
    if not any(_needs_making(hint) for hint in hints.values()):
        return function

    @functools.wraps(function)
    def call(**arguments: Any) -> Any:
        return function(**{name: _made(value, hints[name]) for name, value in arguments.items()})

    return call


def _needs_making(hint: Any) -> bool:
    if _is_enum(hint) or dataclasses.is_dataclass(hint):
        return True
    inner = typing.get_type_hints(hint).values() if typing.is_typeddict(hint) else typing.get_args(hint)
    return any(_needs_making(each) for each in inner)


def _made(value: Any, hint: Any) -> Any:
    """A JSON value as what the hint says."""
    arguments = typing.get_args(hint)
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        hint = next((each for each in arguments if _needs_making(each) and _fits(value, each)), None)
        return value if hint is None else _made(value, hint)
    if _is_enum(hint):
        return hint(value)
    if _is_record(hint):
        hints = typing.get_type_hints(hint)
        return hint(**{key: _made(each, hints[key]) for key, each in value.items()})
    if isinstance(value, list) and arguments:
        return [_made(each, arguments[0]) for each in value]
    if isinstance(value, dict) and len(arguments) == 2:
        return {key: _made(each, arguments[1]) for key, each in value.items()}
    return value


def _fits(value: Any, hint: Any) -> bool:
    """Whether this alternative of a union is the one that a value, which fits one of them, was written for."""
    if _is_enum(hint):
        return any(member.value == value for member in hint)
    if _is_record(hint):
        schema = _value(hint, "")
        return isinstance(value, dict) and set(schema.get("required", ())) <= set(value) <= set(schema["properties"])
    return isinstance(value, typing.get_origin(hint) or hint)

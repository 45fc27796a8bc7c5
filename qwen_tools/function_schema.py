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
    except _CannotDescribeError as error:
        raise _refusal(function, str(error)) from error
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
            schema["description"] = texts[name]
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


def _value(hint: Any, name: str) -> dict[str, Any]:
    """The schema of one value."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if dataclasses.is_dataclass(hint):
        fields = {field.name: _default(field) for field in dataclasses.fields(hint)}
        return _object(typing.get_type_hints(hint), {}, fields)
    if typing.is_typeddict(hint):
        optional = dict.fromkeys(hint.__optional_keys__)
        schema = _object(typing.get_type_hints(hint), {}, optional)
        for key in optional:
            del schema["properties"][key]["default"]
        return schema
    if origin is list and arguments:
        return {"type": "array", "items": _value(arguments[0], name)}
    if origin is dict and len(arguments) == 2:
        return {"type": "object", "additionalProperties": _value(arguments[1], name)}
    if origin in (typing.Union, types.UnionType):
        if any(typing.get_origin(each) in (list, dict) or _is_record(each) for each in arguments):
            return {"anyOf": [_value(each, name) for each in arguments]}
        return _nullable(_by_transformers(hint, name))
    if hint is type(None):
        return {"type": "null"}
    return _nullable(_by_transformers(hint, name))


def _is_record(hint: Any) -> bool:
    return dataclasses.is_dataclass(hint) or typing.is_typeddict(hint)


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
    if "enum" in schema:
        schema["enum"] = [*schema["enum"], None]
    if "anyOf" in schema:
        schema["anyOf"] = [*schema["anyOf"], {"type": "null"}]
    if "type" in schema:
        types_ = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
        schema["type"] = [*types_, "null"]
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
    if isinstance(hint, type) and (issubclass(hint, enum.Enum) or dataclasses.is_dataclass(hint)):
        return True
    return any(_needs_making(each) for each in typing.get_args(hint))


def _made(value: Any, hint: Any) -> Any:
    """A JSON value as what the hint says."""
    arguments = typing.get_args(hint)
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return hint(value)
    if isinstance(hint, type) and dataclasses.is_dataclass(hint) and isinstance(value, dict):
        fields = typing.get_type_hints(hint)
        return hint(**{key: _made(each, fields[key]) for key, each in value.items()})
    if isinstance(value, list) and arguments:
        return [_made(each, arguments[0]) for each in value]
    if isinstance(value, dict) and len(arguments) == 2:
        return {key: _made(each, arguments[1]) for key, each in value.items()}
    if typing.get_origin(hint) in (typing.Union, types.UnionType) and value is not None:
        for each in arguments:
            if _needs_making(each):
                return _made(value, each)
    return value

"""Arguments against a tool's JSON Schema: what is wrong, in words that a model can act on.

Nothing is fetched: a ``$ref`` reaches within the schema and to the published meta-schemas. A check has a limit of
time: a schema may come from anybody, and one of a few lines can keep a validator busy for ever, by a pattern that
backtracks or by references that branch.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from functools import cache
from typing import Any

from .errors import BadSchemaError

SECONDS = 0.5
# When the check that is going on has to be done.
_deadline: ContextVar[float] = ContextVar("_deadline")


def problem(arguments: Any, schema: Mapping[str, Any]) -> str | None:
    """What is wrong with the arguments, as ``path: message``, or None. The one error that is told is
    jsonschema's best match; ``$`` is the whole of the arguments.
    """
    if not isinstance(arguments, dict):
        return "the arguments must be a JSON object"
    if not schema:
        return None
    from jsonschema.exceptions import best_match

    _deadline.set(time.monotonic() + SECONDS)
    try:
        error = best_match(_validator(schema).iter_errors(arguments))
    except RecursionError:
        return "the arguments are nested too deeply"
    except TimeoutError:
        return "the tool's schema takes too long to check"
    except Exception as fault:  # noqa: BLE001 - an unresolvable $ref raises one of many; check_schema tells the user
        return f"the tool's schema cannot be used: {_line(str(fault), 200)}"
    return None if error is None else f"{error.json_path}: {_line(error.message, 300)}"


def check_schema(schema: Mapping[str, Any], name: str) -> None:
    """Raises BadSchemaError naming the tool when its schema is no JSON Schema."""
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import SchemaError
    from jsonschema.validators import validator_for

    try:
        validator_for(schema, default=Draft202012Validator).check_schema(dict(schema))
    except SchemaError as error:
        message = f"tool {name!r} has a broken schema at {error.json_path}: {_line(error.message, 300)}"
        raise BadSchemaError(message, name) from error


def _line(text: str, limit: int) -> str:
    """A message as one line that is not too long; its end often says what was expected."""
    text = " ".join(text.split())
    return text if len(text) <= limit else f"{text[: limit - 100]} … {text[-80:]}"


_validators: dict[str, Any] = {}


def _validator(schema: Mapping[str, Any]) -> Any:
    """The validator of a schema; made once, since finding ``$ref`` targets is the slow part."""
    from jsonschema import Draft202012Validator
    from jsonschema.validators import validator_for
    from jsonschema_specifications import REGISTRY  # type: ignore[import-untyped]

    key = json.dumps(schema, sort_keys=True, default=str)
    if key not in _validators:
        if len(_validators) > 1000 or len(key) > 100_000:  # schemas of a long-running server come and go
            _validators.clear()
        kind = _ours(validator_for(schema, default=Draft202012Validator))
        _validators[key] = kind(schema, registry=REGISTRY)
    return _validators[key]


@cache
def _ours(kind: Any) -> Any:
    """A validator class that keeps to the limit of time, and that knows OpenAPI's ``nullable: true``, which
    transformers' get_json_schema writes for Optional; JSON Schema alone would refuse the null that it allows.
    """
    from jsonschema.validators import extend

    usual = kind.VALIDATORS

    def type_(validator: Any, types: Any, instance: Any, schema: Any) -> Iterator[Any]:
        if instance is not None or schema.get("nullable") is not True:
            yield from usual["type"](validator, types, instance, schema)

    def ref(validator: Any, target: Any, instance: Any, schema: Any) -> Iterator[Any]:
        _time_left()
        yield from usual["$ref"](validator, target, instance, schema)

    def pattern(validator: Any, wanted: Any, instance: Any, schema: Any) -> Iterator[Any]:  # noqa: ARG001 - jsonschema's
        if validator.is_type(instance, "string") and not _found(wanted, instance):
            from jsonschema import ValidationError

            yield ValidationError(f"{instance!r} does not match {wanted!r}")

    def pattern_properties(validator: Any, patterns: Any, instance: Any, schema: Any) -> Iterator[Any]:  # noqa: ARG001
        for name, value in instance.items() if validator.is_type(instance, "object") else ():
            for wanted, inner in patterns.items():
                if _found(wanted, name):
                    yield from validator.descend(value, inner, path=name, schema_path=wanted)

    def additional_properties(validator: Any, wanted: Any, instance: Any, schema: Any) -> Iterator[Any]:
        patterns = schema.get("patternProperties")
        if patterns and validator.is_type(instance, "object"):
            named = [name for name in instance if any(_found(pattern, name) for pattern in patterns)]
            schema = {"properties": {**schema.get("properties", {}), **dict.fromkeys(named, True)}}
        yield from usual["additionalProperties"](validator, wanted, instance, schema)

    own = {"type": type_, "$ref": ref, "pattern": pattern, "patternProperties": pattern_properties}
    return extend(kind, {**own, "additionalProperties": additional_properties})  # type: ignore[no-untyped-call]


def _time_left() -> float:
    """Seconds. Raises TimeoutError when there are none."""
    left = _deadline.get() - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


def _found(pattern: str, text: str) -> bool:
    import regex  # re, with a limit of time

    return regex.search(pattern, text, timeout=_time_left()) is not None

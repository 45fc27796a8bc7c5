"""Arguments against a tool's JSON Schema: what is wrong, in words that a model can act on.

Nothing is fetched: a ``$ref`` reaches within the schema and to the published meta-schemas.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from .errors import UserError


def problem(arguments: Any, schema: Mapping[str, Any]) -> str | None:
    """What is wrong with the arguments, as ``path: message``, or None. The one error that is told is
    jsonschema's best match; ``$`` is the whole of the arguments.
    """
    if not isinstance(arguments, dict):
        return "the arguments must be a JSON object"
    if not schema:
        return None
    from jsonschema.exceptions import best_match

    try:
        error = best_match(_validator(schema).iter_errors(arguments))
    except RecursionError:
        return "the arguments are nested too deeply"
    except Exception as fault:  # noqa: BLE001 - an unresolvable $ref raises one of many; check_schema tells the user
        return f"the tool's schema cannot be used: {_line(str(fault), 200)}"
    return None if error is None else f"{error.json_path}: {_line(error.message, 300)}"


def check_schema(schema: Mapping[str, Any], name: str) -> None:
    """Raises UserError naming the tool when its schema is no JSON Schema."""
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import SchemaError
    from jsonschema.validators import validator_for

    try:
        validator_for(schema, default=Draft202012Validator).check_schema(dict(schema))
    except SchemaError as error:
        message = f"tool {name!r} has a broken schema at {error.json_path}: {_line(error.message, 300)}"
        raise UserError(message) from error


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
        if len(_validators) > 1000:  # schemas of a long-running server come and go
            _validators.clear()
        kind = _with_nullable(validator_for(schema, default=Draft202012Validator))
        _validators[key] = kind(schema, registry=REGISTRY)
    return _validators[key]


@cache
def _with_nullable(kind: Any) -> Any:
    """A validator class that knows OpenAPI's ``nullable: true``, which transformers' get_json_schema writes for
    Optional; JSON Schema alone would refuse the null that it allows.
    """
    from jsonschema.validators import extend

    check = kind.VALIDATORS["type"]

    def type_(validator: Any, types: Any, instance: Any, schema: Any) -> Iterator[Any]:
        if instance is not None or schema.get("nullable") is not True:
            yield from check(validator, types, instance, schema)

    return extend(kind, {"type": type_})  # type: ignore[no-untyped-call]

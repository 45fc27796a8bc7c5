"""Arguments against a tool's JSON Schema: what is wrong, in words that a model can act on."""

from __future__ import annotations

import json
from collections.abc import Mapping
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
        return f"the tool's schema cannot be used: {' '.join(str(fault).split())[:200]}"
    if error is None:
        return None
    message = error.message if len(error.message) <= 300 else error.message[:200] + " … " + error.message[-80:]
    return f"{error.json_path}: {message}"


def check_schema(schema: Mapping[str, Any], name: str) -> None:
    """Raises UserError naming the tool when its schema is no JSON Schema."""
    from jsonschema.exceptions import SchemaError
    from jsonschema.validators import validator_for

    try:
        validator_for(schema, default=_default()).check_schema(dict(schema))
    except SchemaError as error:
        raise UserError(f"tool {name!r} has a broken schema at {error.json_path}: {error.message}") from error


def _default() -> Any:
    from jsonschema import Draft202012Validator

    return Draft202012Validator


_validators: dict[str, Any] = {}


def _validator(schema: Mapping[str, Any]) -> Any:
    """The validator of a schema; made once, since finding ``$ref`` targets is the slow part."""
    from jsonschema.validators import validator_for

    key = json.dumps(schema, sort_keys=True, default=str)
    if key not in _validators:
        if len(_validators) > 1000:  # schemas of a long-running server come and go
            _validators.clear()
        _validators[key] = validator_for(schema, default=_default())(schema)
    return _validators[key]

"""The generation settings as a person reads and writes them. Which there are is said by ``engines.Settings`` alone."""

from __future__ import annotations

import difflib
import json
import types
import typing
from dataclasses import fields, replace
from typing import Any

from ...engines import Settings
from ...errors import UserError

NAMES = tuple(field.name for field in fields(Settings))


def shown(settings: Settings, name: str) -> str:
    """The value of a setting."""
    value = getattr(settings, name)
    return "as the model says" if value is None else json.dumps(value, ensure_ascii=False)


def changed(settings: Settings, name: str, text: str) -> Settings:
    """The settings with another value, ``default`` for the one that it had at first.

    Raises UserError for a setting that there is not, with the closest that there is, and for a value that it cannot
    have.
    """
    if name not in NAMES:
        close = difflib.get_close_matches(name, NAMES, 1, 0.5)
        raise UserError(
            f"no setting {name!r}: " + (f"did you mean {close[0]}?" if close else f"there are {', '.join(NAMES)}")
        )
    if text == "default":
        value = getattr(Settings(), name)
    else:
        value = _value(name, text, typing.get_type_hints(Settings)[name])
    return replace(settings, **{name: value})


def _value(name: str, text: str, wanted: Any) -> Any:
    """The text as a value of the type."""
    kinds = typing.get_args(wanted) if isinstance(wanted, types.UnionType) else (wanted,)
    try:
        value = json.loads(text)
    except ValueError:
        value = text
    if typing.get_origin(kinds[0]) is tuple:
        values = value if isinstance(value, list) else [value]
        if all(isinstance(each, str) for each in values):
            return tuple(values)
        raise UserError(f"{name} must be a text or a JSON list of texts, not {text}")
    if bool in kinds:
        if isinstance(value, bool):
            return value
        raise UserError(f"{name} must be true or false, not {text}")
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if float in kinds and number:
        return float(value)
    if int in kinds and number and isinstance(value, int):
        return value
    raise UserError(f"{name} must be a {'number' if float in kinds else 'whole number'}, not {text}")

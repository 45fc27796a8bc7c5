"""JSON from outside, read key by key. What is wrong is named by its place: ``messages[2].content[0].type``."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from .errors import UserError


class WireError(UserError):
    """A JSON value is not what its format demands. ``field`` says where (empty: the whole value), ``reason`` what
    is wrong, in one line.
    """

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(f"{field}: {reason}" if field else reason)
        self.field = field
        self.reason = reason


class Fields:
    """An object, read key by key. A key that is missing or null counts as not given.

    ``path`` is where the object stands. Every method raises WireError for a value of another kind.
    """

    def __init__(self, value: Any, path: str = "") -> None:
        if not isinstance(value, Mapping):
            raise WireError(path, f"must be an object, not {kind(value)}")
        self.value: Mapping[str, Any] = value
        self.path = path
        self._read: set[str] = set()

    def at(self, key: str) -> str:
        """Where the value of a key stands."""
        return f"{self.path}.{key}" if self.path else key

    def get(self, key: str) -> Any:
        """Any value, or None."""
        self._read.add(key)
        return self.value.get(key)

    def need(self, key: str) -> str:
        """A text that must be there and say something."""
        text = self.text(key)
        if not text:
            raise WireError(self.at(key), "must be given" if text is None else "must not be empty")
        return text

    def text(self, key: str) -> str | None:
        """A text."""
        value: str | None = self._typed(key, "text", str)
        return value

    def flag(self, key: str) -> bool | None:
        """True or false."""
        value: bool | None = self._typed(key, "true or false", bool)
        return value

    def number(self, key: str, least: float, most: float = math.inf) -> float | None:
        """A number between two bounds, inclusive."""
        value = self.get(key)
        if value is None:
            return None
        if not isinstance(value, (int, float)) or isinstance(value, bool):
            raise WireError(self.at(key), f"must be a number, not {kind(value)}")
        if not least <= value <= most:  # also false for NaN
            bounds = f"at least {least:g}" if math.isinf(most) else f"between {least:g} and {most:g}"
            raise WireError(self.at(key), f"must be {bounds}")
        return value

    def integer(self, key: str, least: int) -> int | None:
        """A whole number that is not smaller than ``least``."""
        value = self.number(key, least)
        if value is None:
            return None
        if not isinstance(value, int):
            raise WireError(self.at(key), "must be a whole number")
        return value

    def object(self, key: str) -> Fields | None:
        """An object."""
        value = self.get(key)
        return None if value is None else Fields(value, self.at(key))

    def items(self, key: str) -> list[tuple[str, Any]]:
        """The elements of a list, each with its place."""
        value = self._typed(key, "a list", list)
        return [(f"{self.at(key)}[{index}]", item) for index, item in enumerate(value or ())]

    def texts(self, key: str) -> tuple[str, ...]:
        """A text, or a list of texts; each says something."""
        given = [(self.at(key), self.value[key])] if isinstance(self.get(key), str) else self.items(key)
        for path, item in given:
            if not isinstance(item, str):
                raise WireError(path, f"must be text, not {kind(item)}")
            if not item:
                raise WireError(path, "must not be empty")
        return tuple(item for _, item in given)

    def one_of(self, key: str, names: Iterable[str], default: str | None = None) -> str:
        """One of several words."""
        names = list(names)
        value = self.text(key)
        value = default if value is None else value
        if value not in names:
            given = "must be given" if value is None else f"unknown value {short(value)}"
            raise WireError(self.at(key), f"{given}: use {', '.join(names)}")
        return value

    def unread(self) -> list[str]:
        """Where the values stand that say something and that nobody asked for."""
        return [
            self.at(str(key))
            for key, value in self.value.items()
            if key not in self._read and value not in (None, [], {}, "")
        ]

    def _typed(self, key: str, named: str, wanted: type) -> Any:
        value = self.get(key)
        if value is None or isinstance(value, wanted):
            return value
        raise WireError(self.at(key), f"must be {named}, not {kind(value)}")


def kind(value: Any) -> str:
    """How JSON calls the type of a value."""
    if isinstance(value, bool):
        return "a boolean"
    names = {
        dict: "an object",
        list: "a list",
        str: "text",
        int: "a number",
        float: "a number",
        type(None): "null",
    }
    return names.get(type(value), type(value).__name__)


def short(value: str) -> str:
    """A text for a message: quoted, on one line, not too long."""
    return repr(value if len(value) <= 60 else value[:60] + "…")

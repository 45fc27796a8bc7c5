"""Names of tools in formats that allow only some letters: changed reversibly, by a table."""

from __future__ import annotations

import re
from collections.abc import Iterable

# OpenAI: ^[A-Za-z0-9_-]{1,64}$; Anthropic allows 128, so that the narrower of both fits everywhere.
ALLOWED = re.compile(r"[A-Za-z0-9_-]{1,64}")
_OTHER = re.compile(r"[^A-Za-z0-9_-]")
_LIMIT = 64
_DIGITS = 8


class Names:
    """The names of one request. One that is allowed stays; in any other every wrong letter becomes ``_``, and where
    that is taken a number follows: ``a.b`` is ``a_b``, or ``a_b_2``.
    """

    def __init__(self, names: Iterable[str]) -> None:
        own = list(dict.fromkeys(name for name in names if name))
        self._wire = {name: name for name in own if ALLOWED.fullmatch(name)}
        taken = set(self._wire)
        next_number: dict[str, int] = {}  # by the letters that any number leaves
        for name in own:
            if name in self._wire:
                continue
            base = _OTHER.sub("_", name)
            stem = base[: _LIMIT - _DIGITS]
            changed, number = base[:_LIMIT], next_number.get(stem, 2)
            while changed in taken:
                suffix = f"_{number}"
                changed, number = base[: _LIMIT - len(suffix)] + suffix, number + 1
            next_number[stem] = number
            taken.add(changed)
            self._wire[name] = changed

    def wire(self, name: str) -> str:
        """The name that goes over the wire."""
        return self._wire.get(name, name)

    @property
    def table(self) -> dict[str, str]:
        """The way back, for names that were changed: changed -> own."""
        return {changed: name for name, changed in self._wire.items() if changed != name}

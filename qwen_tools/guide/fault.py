"""Where in a schema the fault lies, found by taking things out of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

# What gives a keyword its meaning stays beside it.
_COMPANIONS = ("type", "$defs", "definitions")


def place(schema: Any, fault_of: Callable[[Any], str]) -> Iterator[str]:
    """The way to what makes a schema faulty: the part that is so by itself, or without which the rest is not."""

    def rebuilt(part: Any) -> Any:
        return part

    node = schema
    while isinstance(node, (dict, list)):
        keys: list[Any] = list(node) if isinstance(node, dict) else list(range(len(node)))
        # A wrong type, and a wrong property that is required, are told by what is wrong with them.
        keys.sort(key=lambda key: key in (*_COMPANIONS, "required"))
        way = next((key for key in keys if fault_of(rebuilt(_only(node, key)))), None)
        if way is not None and isinstance(node, dict):
            node = _only(node, way)
        if way is None:
            way = next((key for key in keys if not fault_of(rebuilt(_without(node, key)))), None)
        if way is None:
            return
        yield str(way)

        def deeper(part: Any, node: Any = node, way: Any = way, outer: Callable[[Any], Any] = rebuilt) -> Any:
            return outer(_with(node, way, part))

        rebuilt, node = deeper, node[way]
        # Faulty with nothing in it: it is the keyword itself.
        if isinstance(node, (dict, list)) and fault_of(rebuilt(type(node)())):
            return


def _only(node: Any, key: Any) -> Any:
    if isinstance(node, list):
        return [node[key]]
    return {each: value for each, value in node.items() if each == key or each in _COMPANIONS}


def _without(node: Any, key: Any) -> Any:
    if isinstance(node, list):
        return node[:key] + node[key + 1 :]
    return {each: value for each, value in node.items() if each != key}


def _with(node: Any, key: Any, part: Any) -> Any:
    if isinstance(node, list):
        return [*node[:key], part, *node[key + 1 :]]
    return {**node, key: part}

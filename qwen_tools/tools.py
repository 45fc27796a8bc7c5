"""Tools: what a model may call, and how a Python function becomes one. Nothing is executed here."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import os
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

from .errors import UserError


@dataclass(frozen=True)
class Tool:
    """A tool: ``parameters`` is a JSON Schema of type object, or empty for a tool without parameters; ``function`` may
    be missing for a tool that is only offered. ``read_only`` is True only when the tool changes nothing. ``origin``
    says to a person where the tool comes from.
    """

    name: str
    description: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    function: Callable[..., Any] | None = None
    read_only: bool = False
    origin: str = field(default="", compare=False)
    # The dict it was read from: the order of its keys is part of the prompt.
    source: Mapping[str, Any] | None = field(default=None, repr=False, compare=False)

    def to_dict(self) -> dict[str, Any]:
        """The OpenAI-style dict, as a chat template sees it."""
        if self.source is not None:
            return dict(self.source)
        function = {
            "name": self.name,
            "description": self.description,
            "parameters": self.parameters or {"type": "object", "properties": {}},
        }
        return {"type": "function", "function": function}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Tool:
        """Read an OpenAI-style dict, or the bare function object. Raises UserError for what is neither."""
        function = data.get("function", data)
        if not isinstance(function, Mapping) or not isinstance(function.get("name"), str) or not function["name"]:
            raise UserError("a tool must be an object with a function that has a name")
        parameters = {} if function.get("parameters") is None else function["parameters"]
        if not isinstance(parameters, Mapping):
            raise UserError(f"tool {function['name']!r}: parameters must be a JSON Schema object")
        return cls(function["name"], str(function.get("description") or ""), parameters, source=data)

    @classmethod
    def from_function(cls, function: Callable[..., Any], *, read_only: bool = False) -> Tool:
        """Describe a function by its hints and its Google-style docstring.

        Defaults, Optional, Literal, Enum, lists, dataclasses and TypedDicts are understood, async functions too. A
        function marked with ``tool(read_only=True)`` is read-only. Raises UserError with file and line for one
        that cannot be described.
        """
        from .function_schema import describe

        description, parameters, call = describe(function)
        return cls(
            function.__name__,
            description,
            parameters,
            call,
            read_only or getattr(function, "_read_only", False),
        )


def tool(*, read_only: bool) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Mark a function as one that only reads, so that it runs without asking."""

    def mark(function: Callable[..., Any]) -> Callable[..., Any]:
        function._read_only = read_only  # type: ignore[attr-defined]  # a mark on the function itself
        return function

    return mark


@dataclass(frozen=True)
class Output:
    """A result with references: the model reads ``content``, as it reads any result; ``references`` say to the person
    where it stands, one line each.
    """

    content: Any
    references: tuple[str, ...] = ()


def as_tool(value: Any) -> Tool:
    """A Tool from a Tool, an OpenAI-style dict or a function. Raises UserError for what cannot be one."""
    if isinstance(value, Tool):
        return value
    if isinstance(value, Mapping):
        return Tool.from_dict(value)
    if callable(value):
        return Tool.from_function(value)
    raise UserError(f"a tool must be a Tool, a dict or a function, not {type(value).__name__}")


class Toolbox:
    """Tools by name, in the order in which they are offered."""

    def __init__(self, tools: Iterable[Tool] = ()) -> None:
        """Raises UserError for two tools of one name."""
        self._tools: dict[str, Tool] = {}
        for each in tools:
            if each.name in self._tools:
                raise UserError(f"two tools have the name {each.name!r}: rename one")
            self._tools[each.name] = each

    @classmethod
    def of(cls, tools: Iterable[Any]) -> Toolbox:
        """A toolbox of Tools, OpenAI-style dicts and functions."""
        return tools if isinstance(tools, Toolbox) else cls(as_tool(each) for each in tools)

    def get(self, name: str) -> Tool | None:
        """The tool of that name, or None."""
        return self._tools.get(name)

    def names(self) -> list[str]:
        """The names, in order."""
        return list(self._tools)

    def __contains__(self, name: object) -> bool:
        return name in self._tools

    def __iter__(self) -> Iterator[Tool]:
        return iter(self._tools.values())

    def __len__(self) -> int:
        return len(self._tools)


def from_file(path: str) -> list[Tool]:
    """The tools of a Python file: its own public functions, and Tool values. The file is executed.

    Raises UserError naming file and line for what cannot be loaded or cannot be a tool.
    """
    file = Path(path).expanduser()
    if not file.is_file():
        raise UserError(f"no tools file {path}")
    name = f"tools of {file.resolve()}"  # no two files share it, and no import can mean it
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise UserError(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses and hints look themselves up there
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        raise _cannot_load(path, str(file), error) from error
    return _of_module(module, path)


def from_module(name: str) -> list[Tool]:
    """The tools of an installed module, or of one in the current folder; it is imported.

    Raises UserError for what cannot be imported or cannot be a tool.
    """
    if os.getcwd() not in sys.path and "" not in sys.path:
        sys.path.insert(0, os.getcwd())  # as with ``python -m``, however the program was started
    try:
        module = importlib.import_module(name)
    except (Exception, SystemExit) as error:
        spec = None if isinstance(error, ModuleNotFoundError) else importlib.util.find_spec(name)
        raise _cannot_load(f"module {name}", (spec and spec.origin) or "", error) from error
    return _of_module(module, f"module {name}")


def _cannot_load(what: str, file: str, error: BaseException) -> UserError:
    lines = [step.lineno for step in traceback.extract_tb(error.__traceback__) if step.filename == file]
    where = f"{what}, line {lines[-1]}" if lines else what
    reason = " ".join(f"{type(error).__name__}: {error}".split())
    return UserError(f"{where}: cannot be loaded: {reason}")


def _of_module(module: ModuleType, what: str) -> list[Tool]:
    """The Tool values of a module, and the public functions that it defines itself."""
    tools = []
    for attribute, value in vars(module).items():
        if isinstance(value, Tool):
            tools.append(value)
        elif inspect.isfunction(value) and value.__module__ == module.__name__ and not attribute.startswith("_"):
            try:
                tools.append(Tool.from_function(value))
            except UserError as error:
                raise UserError(f"{error} (the name of a helper begins with _)") from error
    if not tools:
        raise UserError(f"{what} has no public functions to offer as tools")
    return tools

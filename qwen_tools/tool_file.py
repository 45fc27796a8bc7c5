"""Tools from a JSON file: OpenAI-style schemas and, beside each, a canned result or a command to run.

The format is described in docs/tools.md. Of canned results ``when`` chooses, and ``{name}`` in their texts stands for
an argument; in a command ``{name}`` is a whole argument of the program, and no shell reads it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from .errors import UserError
from .processes import run
from .tools import Tool

# What stands beside the function, and is no part of the prompt.
_OWN = ("read_only", "result", "command", "seconds")
_SECONDS = 20.0  # below the executor's limit, so that what the command wrote is not lost
_OUTPUT = 1_000_000

_PLACEHOLDER = re.compile(r"\{(\w+)\}")


def read_json(path: str) -> Any:
    """The JSON value in a file. Raises UserError."""
    try:
        return json.loads(Path(path).expanduser().read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path} is not JSON: {error}") from error


def from_json_file(path: str) -> list[Tool]:
    """The tools in a file: a list, or an object with the list as ``tools``. Raises UserError."""
    return from_value(read_json(path), path)


def from_value(data: Any, path: str) -> list[Tool]:
    """The tools in the JSON value that was read from ``path``. Raises UserError naming the file."""
    data = data.get("tools") if isinstance(data, dict) and "tools" in data else data
    if not isinstance(data, list):
        raise UserError(f"{path} must be a JSON list of tools")
    folder = str(Path(path).expanduser().resolve().parent)
    try:
        return [_tool(each, folder) for each in data]
    except UserError as error:
        raise UserError(f"{path}: {error}") from error


def _tool(data: Any, folder: str) -> Tool:
    if not isinstance(data, Mapping):
        raise UserError("a tool must be an object with a function that has a name")
    own = {key: data[key] for key in _OWN if key in data}
    offered = {key: value for key, value in data.items() if key not in _OWN}
    if "function" not in offered:  # a bare function is offered in the form that models were trained on
        offered = {"type": "function", "function": {key: offered[key] for key in offered if key != "type"}}
    tool = Tool.from_dict(offered)
    where = f"tool {tool.name!r}"
    for key in {**offered, **offered["function"]}:
        if key in ("input_schema", "inputSchema"):
            raise UserError(f"{where} has {key!r}, which is called 'parameters' here")
        close = get_close_matches(key, _OWN, 1, 0.7)
        if close:
            raise UserError(f"{where} has {key!r}: did you mean {close[0]!r}?")
    read_only = own.get("read_only", False)
    if not isinstance(read_only, bool):
        raise UserError(f"{where}: read_only must be true or false")
    if "result" in own and "command" in own:
        raise UserError(f"{where} has both a result and a command: leave one out")
    if "seconds" in own and "command" not in own:
        raise UserError(f"{where}: seconds is the time that a command may take, and there is no command")
    function: Callable[..., Any] | None = None
    if "result" in own:
        function = _canned(own["result"], tool, where)
    elif "command" in own:
        function = _command(own["command"], own.get("seconds", _SECONDS), tool, folder, where)
    return replace(tool, function=function, read_only=read_only)


def _canned(result: Any, tool: Tool, where: str) -> Callable[..., Any]:
    """A function that answers with what the file says."""
    cases = result if _is_cases(result) else [{"result": result}]
    properties = _properties(tool)
    for case in cases:
        when = case.get("when", {})
        if not isinstance(when, dict):
            raise UserError(f"{where}: when must be an object of arguments and their values")
        for name in when:
            if name not in properties:
                raise UserError(f"{where}: when names {name!r}, which is no parameter")

    def answer(**arguments: Any) -> Any:
        for case in cases:
            if all(_fits(arguments.get(name), wanted) for name, wanted in case.get("when", {}).items()):
                return _filled(case["result"], arguments, properties)
        raise LookupError("there is no canned result for these arguments")

    return answer


def _is_cases(result: Any) -> bool:
    """Whether a result is a list of cases, not a list that is the result."""
    return (
        isinstance(result, list)
        and bool(result)
        and all(isinstance(each, dict) and "result" in each and set(each) <= {"when", "result"} for each in result)
    )


def _properties(tool: Tool) -> Mapping[str, Any]:
    found = tool.parameters.get("properties")
    return found if isinstance(found, Mapping) else {}


def _fits(value: Any, wanted: Any) -> bool:
    """Whether an argument is the wanted value, or one of a list; capitals and outer spaces do not count."""
    if isinstance(value, str) and isinstance(wanted, str):
        return value.strip().casefold() == wanted.strip().casefold()
    if isinstance(wanted, list) and not isinstance(value, list):
        return any(_fits(value, each) for each in wanted)
    return type(value) is type(wanted) and bool(value == wanted)


def _filled(result: Any, arguments: Mapping[str, Any], properties: Mapping[str, Any]) -> Any:
    """A result with the arguments in place of ``{name}``; what names no parameter stays as it is."""
    if isinstance(result, dict):
        return {key: _filled(value, arguments, properties) for key, value in result.items()}
    if isinstance(result, list):
        return [_filled(each, arguments, properties) for each in result]
    if not isinstance(result, str):
        return result

    def value(name: str) -> Any:
        default = properties[name].get("default", "") if isinstance(properties[name], Mapping) else ""
        return arguments.get(name, default)

    whole = _PLACEHOLDER.fullmatch(result)
    if whole and whole[1] in properties:
        return value(whole[1])
    return _PLACEHOLDER.sub(lambda found: _text(value(found[1])) if found[1] in properties else found[0], result)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _command(command: Any, seconds: Any, tool: Tool, folder: str, where: str) -> Callable[..., Any]:
    """A function that runs a program: the arguments are JSON on its stdin, and its stdout is the result."""
    if not isinstance(command, list) or not command or not all(isinstance(item, str) and item for item in command):
        raise UserError(f"{where}: command must be a list of texts: the program and its arguments")
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)) or not 0 < seconds <= 3600:
        raise UserError(f"{where}: seconds must be a number above 0 and at most 3600")
    properties = _properties(tool)
    required = tool.parameters.get("required") or ()
    for item in command:
        for name in _PLACEHOLDER.findall(item):
            if item != f"{{{name}}}":
                if name in properties:
                    raise UserError(
                        f"{where}: {{{name}}} must be an item of the command by itself, not part of {item!r}"
                    )
            elif name not in properties:
                raise UserError(f"{where}: its command has {item}, which is no parameter")
            elif name not in required and "default" not in properties[name]:
                raise UserError(f"{where}: its command has {item}, so {name} must be required or have a default")

    async def call(**arguments: Any) -> str:
        items = []
        for item in command:
            name = item[1:-1] if _PLACEHOLDER.fullmatch(item) else None
            value = arguments.get(name, properties[name].get("default")) if name else item
            # What a model wrote must not become an option of the program. Behind -- nothing is one.
            if name and isinstance(value, str) and value.startswith("-") and "--" not in items:
                raise ValueError(f"{name} must not begin with -")
            items.append(_text(value))
        given = json.dumps(arguments, ensure_ascii=False)
        done = await run(items, stdin=given, folder=folder, seconds=seconds, limit=_OUTPUT)
        if done.stopped or done.code:
            said = done.stderr.strip()[-400:] or done.stdout.strip()[-400:]
            raise RuntimeError(f"{done.stopped or f'exit code {done.code}'}: {said or 'it wrote nothing'}")
        return done.stdout.rstrip("\n")

    return call

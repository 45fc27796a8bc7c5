"""Settings: what a command's long flags are where they are not given.

From the weakest to the strongest: the flags' own defaults, the user's ``config.toml``, the project's
``.qwen_tools.toml``, the environment (``QWEN_TOOLS_MODEL`` for ``--model``), the flags. The keys of the files are the
flags, so that there is one list of them. A project's file comes with somebody's repository and may set only what
shapes the words; for more, the user names the project's folder in ``trusted-projects``.
"""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from .errors import UserError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

PROJECT_FILE = ".qwen_tools.toml"
_PREFIX = "QWEN_TOOLS_"
_LARGEST = 1_000_000  # bytes of a file
# What holds for one call only.
_FOR_ONCE = {"help", "json", "events", "continue", "session"}
# What anybody's project may set: how the model is asked. Nothing here runs, permits, sends, loads or keeps anything.
_HARMLESS = {
    "guide",
    "max-new-tokens",
    "max-rounds",
    "option",
    "salvage",
    "system",
    "template",
    "thinking",
    "tool-choice",
}
# The one key that is no flag.
_TRUSTED = "trusted-projects"


@dataclass(frozen=True)
class Flag:
    """A long flag that may be set elsewhere: ``dest`` is its attribute, ``default`` what it is otherwise."""

    key: str
    dest: str
    default: Any
    action: argparse.Action


@dataclass(frozen=True)
class Setting:
    """A value, and where it comes from: ``default``, a file or a variable of the environment."""

    value: Any
    source: str


def flags(parser: argparse.ArgumentParser) -> dict[str, Flag]:
    """The long flags of a command that are settings, by key."""
    found = {}
    for action in parser._actions:  # argparse has no public way to list them
        key = next((name[2:] for name in action.option_strings if name.startswith("--")), "")
        if key and key not in _FOR_ONCE:
            found[key] = Flag(key, action.dest, action.default, action)
    return found


def defer(known: Iterable[Flag]) -> None:
    """Let the parser leave out what is not given, for ``fill`` to fill in."""
    for flag in known:
        flag.action.default = argparse.SUPPRESS


def fill(args: argparse.Namespace, own: Mapping[str, Flag], known: Mapping[str, Flag]) -> list[str]:
    """Give the flags that were not given their values. ``own`` are the command's, ``known`` those of all commands.

    Returns what the person should be told. Raises UserError as ``resolve`` does.
    """
    settings, notices = resolve({**known, **own})
    for key, flag in own.items():
        if not hasattr(args, flag.dest):
            setattr(args, flag.dest, settings[key].value)
    return notices


def resolve(known: Mapping[str, Flag]) -> tuple[dict[str, Setting], list[str]]:
    """Every setting where no flag is given, and what was ignored. Raises UserError, naming file and key, for an
    unknown key and for a value of a wrong type.
    """
    settings = {key: Setting(flag.default, "default") for key, flag in known.items()}
    notices: list[str] = []
    user, project = user_file(), project_file()
    trusted: list[Any] = []
    if os.path.isfile(user):
        table = _table(user)
        trusted = table.pop(_TRUSTED, [])
        if not isinstance(trusted, list) or not all(isinstance(each, str) for each in trusted):
            raise UserError(f"{user}: {_TRUSTED} must be a list of folders")
        settings |= {key: Setting(_checked(value, key, known, str(user)), str(user)) for key, value in table.items()}
    if project:
        theirs = {
            key: Setting(_checked(value, key, known, str(project)), str(project))
            for key, value in _table(project).items()
        }
        refused = sorted(theirs.keys() - _HARMLESS)
        if refused and project.parent not in [Path(each).expanduser().resolve() for each in trusted]:
            allow = f"to allow it, add '{project.parent}' to {_TRUSTED} in {user}"
            notices.append(f"ignored in {project}: {', '.join(refused)}; {allow}")
            theirs = {key: setting for key, setting in theirs.items() if key in _HARMLESS}
        settings |= theirs
    variables = {_PREFIX + key.upper().replace("-", "_"): flag for key, flag in known.items()}
    for name, text in sorted(os.environ.items()):
        if name in variables and text:
            settings[variables[name].key] = Setting(_from_text(text, variables[name], name), name)
        elif name.startswith(_PREFIX) and name not in variables:
            # Other things have variables too, so only what must be a slip is one.
            close = get_close_matches(name, variables, 1, 0.9)
            if close:
                raise UserError(f"{name} in the environment is no setting; did you mean {close[0]}?")
    return settings, notices


def user_file() -> Path:
    """The user's file, there or not."""
    from platformdirs import user_config_path

    return user_config_path("qwen_tools", appauthor=False) / "config.toml"


def project_file() -> Path | None:
    """The file of the project that the current folder is in: in the folder, or in the nearest above."""
    try:
        here = Path.cwd()
    except OSError:  # somebody removed it
        return None
    # os.path and not Path: a folder that nobody may look into has no file.
    return next((each / PROJECT_FILE for each in (here, *here.parents) if os.path.isfile(each / PROJECT_FILE)), None)


def _table(path: Path) -> dict[str, Any]:
    try:
        if path.stat().st_size > _LARGEST:
            raise UserError(f"{path} is too large for settings")
        table: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}") from error
    except RecursionError as error:
        raise UserError(f"{path} is not TOML that can be read: it is nested too deeply") from error
    except ValueError as error:  # also what is not UTF-8
        raise UserError(f"{path} is not TOML: {error}") from error
    return table


def _checked(value: Any, key: str, known: Mapping[str, Flag], where: str) -> Any:
    """The value of a key in a TOML file, as the flag would have it."""
    if key not in known:
        close = get_close_matches(key.replace("_", "-"), known, 1)
        if key == _TRUSTED:
            hint = "only the user's own file may hold it"
        elif key in _FOR_ONCE:
            hint = f"--{key} holds for one call"
        else:
            hint = f"did you mean {close[0]}?" if close else "'config show' lists the keys"
        raise UserError(f"{where}: unknown key {key!r}; {hint}")
    action = known[key].action
    if _is_switch(action):
        if not isinstance(value, bool):
            raise UserError(f"{where}: {key} must be true or false, not {_shown(value)}")
        return _switched(action, value)
    if _is_list(action):
        if not isinstance(value, list):
            raise UserError(f"{where}: {key} must be a list, not {_shown(value)}")
        return [_scalar(each, known[key], where) for each in value]
    return _scalar(value, known[key], where)


def _scalar(value: Any, flag: Flag, where: str) -> Any:
    """A TOML value as the flag's type makes it of its text: numbers are numbers, text is text."""
    numeric = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not numeric and not isinstance(value, str):
        raise UserError(f"{where}: {flag.key} must be {_wanted(flag.action)}, not {_shown(value)}")
    result = _converted(value, flag, where)
    if numeric != isinstance(result, (int, float)):
        raise UserError(f"{where}: {flag.key} must be {_wanted(flag.action)}, not {_shown(value)}")
    return result


def _from_text(text: str, flag: Flag, name: str) -> Any:
    """The value of a variable; a list is written as a shell would have it."""
    if _is_switch(flag.action):
        words = {
            "1": True,
            "true": True,
            "yes": True,
            "on": True,
            "0": False,
            "false": False,
            "no": False,
            "off": False,
        }
        if text.lower() not in words:
            raise UserError(f"{name} in the environment must be 1 or 0, not {text!r}")
        return _switched(flag.action, words[text.lower()])
    if _is_list(flag.action):
        try:
            return [_converted(each, flag, name) for each in shlex.split(text)]
        except ValueError as error:
            raise UserError(f"{name} in the environment is no list of words: {error}") from error
    return _converted(text, flag, name)


def _converted(value: str | float, flag: Flag, where: str) -> Any:
    action = flag.action
    try:
        result = action.type(str(value)) if callable(action.type) else str(value)
    except argparse.ArgumentTypeError as error:  # in the flag's own words
        raise UserError(f"{where}: {flag.key} {error}, not {_shown(value)}") from error
    except (ValueError, TypeError) as error:
        raise UserError(f"{where}: {flag.key} must be {_wanted(action)}, not {_shown(value)}") from error
    if action.choices is not None and result not in action.choices:
        raise UserError(f"{where}: {flag.key} must be {_wanted(action)}, not {_shown(value)}")
    return result


def _shown(value: Any) -> str:
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # a number of thousands of digits
        return "this"
    return text if len(text) <= 60 else text[:59] + "…"


def _wanted(action: argparse.Action) -> str:
    if action.choices is not None:
        return "one of " + ", ".join(str(choice) for choice in action.choices)
    return "text" if action.type in (None, str) else "a number"


def _is_switch(action: argparse.Action) -> bool:
    return action.nargs == 0 or isinstance(action, argparse.BooleanOptionalAction)


def _switched(action: argparse.Action, on: bool) -> bool:
    return not on if action.const is False else on


def _is_list(action: argparse.Action) -> bool:
    return isinstance(action, argparse._AppendAction) or action.nargs in ("*", "+")

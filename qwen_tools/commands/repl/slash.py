"""The commands of the REPL: one row each, with what ``/help`` says of it and what completes its arguments."""

from __future__ import annotations

import difflib
import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ... import session as sessions
from ...approval import MODES
from ...errors import UserError
from ...messages import Message, as_dicts
from ...models import EMBEDDED
from ..render import ids_view, table_view, text_view
from ..screen import THINKING
from ..stats import stats_lines
from ..terminal import LAYOUT, colours, columns, fitted, paragraph, say, style, two_columns, visible
from .editor import edited
from .setting import NAMES, changed, shown

if TYPE_CHECKING:
    from . import Repl


@dataclass(frozen=True)
class Command:
    """``complete`` gives what the argument behind ``words`` may be; None where it is a path."""

    usage: str
    help: str
    run: Callable[[Repl, str], None]
    complete: Callable[[Repl, list[str]], Iterable[str] | None] = lambda repl, words: ()  # noqa: ARG005

    @property
    def name(self) -> str:
        """What is typed."""
        return self.usage.split()[0]


def is_command(line: str) -> bool:
    """Whether a line is a command: /word. A path is none, and nothing is that begins with a space."""
    return re.match(r"/[\w-]*(\s|$)", line) is not None


def run(repl: Repl, line: str) -> None:
    """Run a command. Raises UserError for one that there is not, with the closest that there is."""
    name, *rest = line.split(None, 1)
    argument = rest[0] if rest else ""
    command = _named(name)
    if argument and command.usage == name:
        raise UserError(f"usage: {name}, and nothing behind it")
    command.run(repl, argument.strip())


def _named(name: str) -> Command:
    command = COMMANDS.get(name)
    if command is None:
        close = difflib.get_close_matches(name, COMMANDS, 1, 0.5)
        raise UserError(
            f"there is no {name}" + (f", did you mean {close[0]}?" if close else "; /help lists the commands")
        )
    return command


def complete(repl: Repl, words: list[str]) -> Iterable[str] | None:
    """What the last word may become: a command, its argument, a tool's name; None where it may be a path."""
    if is_command(words[0]) and len(words) == 1:
        return COMMANDS
    if words[0] in COMMANDS:
        return COMMANDS[words[0]].complete(repl, words[1:])
    last = words[-1]
    if "/" in last or last.startswith(("~", ".")):
        return None
    found = [name for name in repl.tools.names() if last and name.startswith(last)]
    return found or None


# ---- looking

_KEYS = (
    'Enter sends. For several lines paste them, press Alt-Enter, or put """ before and after them. Tab completes, ↑ '
    "goes back. What begins with a space is never a command. Ctrl-C stops an answer, Ctrl-D leaves."
)


def _help(repl: Repl, argument: str) -> None:  # noqa: ARG001 - the shape of all commands
    if argument:
        command = _named("/" + argument.removeprefix("/"))
        say(paragraph(f"{command.usage}: {command.help}"))
        return
    say(two_columns((command.usage, command.help) for command in COMMANDS.values()))
    say(paragraph(_KEYS))


def _tools(repl: Repl, argument: str) -> None:
    word, _, name = argument.partition(" ")
    names = name.replace(",", " ").split()
    if not argument:
        _list_tools(repl)
    elif word in ("on", "off") and names:
        for each in names:
            repl.conversation.offer(each, word == "on")
        say(f"offered: {', '.join(repl.conversation.toolbox.names()) or 'none'}")
    elif word == "show" and len(names) == 1:
        tool = repl.tools.get(names[0])
        if tool is None:
            raise UserError(f"no tool {names[0]!r}: there are {', '.join(repl.tools.names()) or 'none'}")
        say(visible(json.dumps(tool.to_dict(), ensure_ascii=False, indent=2), keep=LAYOUT))
    else:
        raise UserError(f"usage: {COMMANDS['/tools'].usage}")


def _list_tools(repl: Repl) -> None:
    if not len(repl.tools):
        say("There are no tools.")
    for tool in repl.tools:
        kind = "off" if tool.name in repl.conversation.off else "reads" if tool.read_only else "asks"
        summary = (tool.description.strip().splitlines() or [""])[0]
        say(fitted(f"  {kind:<5}  {visible(tool.name)}: {visible(summary)}", columns()))


def _prompt(repl: Repl, argument: str) -> None:
    prompt, tokenizer = repl.conversation.next_prompt(), repl.conversation.engine.tokenizer
    if argument == "--ids":
        if tokenizer is None:
            raise UserError("/prompt --ids needs a model with a tokenizer")
        lines = ids_view(prompt.segments, tokenizer)
    elif argument == "--table":
        lines = (fitted(line, columns()) for line in table_view(prompt.segments, tokenizer))
    elif not argument:
        lines = iter([text_view(prompt.segments, colours(sys.stderr))])
    else:
        raise UserError(f"usage: {COMMANDS['/prompt'].usage}")
    for line in lines:
        say(line)


def _raw(repl: Repl, argument: str) -> None:  # noqa: ARG001
    rounds: list[Message] = []
    for message in reversed(repl.conversation.messages):
        if message.role in ("user", "system"):
            break
        if message.role == "assistant":
            rounds.insert(0, message)
    if not rounds:
        raise UserError("nothing was answered yet")
    for number, message in enumerate(rounds, start=1):
        if len(rounds) > 1:
            say(style(f"── round {number} ──", "2"))
        # A call that was salvaged is kept in its canonical form.
        raw = message.content if message.raw is None else message.raw
        say(visible(raw, keep="\n\t"))


def _stats(repl: Repl, argument: str) -> None:  # noqa: ARG001
    spent = repl.conversation.usage
    say(paragraph(f"{len(spent)} answers with {len(repl.conversation.messages)} messages in the conversation"))
    for line in stats_lines(spent, repl.load_s):
        say(line)


# ---- changing


def _system(repl: Repl, argument: str) -> None:
    if argument:
        repl.conversation.set_system(None if argument == "default" else argument)
    first = repl.conversation.messages[0] if repl.conversation.messages else None
    if first and first.role == "system":
        say(visible(first.content, keep=LAYOUT))
    else:
        say("no system text but what the model's family has by itself")


def _model(repl: Repl, argument: str) -> None:
    if argument:
        repl.change_model(argument)
    say(f"{repl.conversation.engine.name} ({repl.conversation.engine.family})")


def _set(repl: Repl, argument: str) -> None:
    asking = repl.conversation.asking
    name, _, text = argument.partition(" ")
    if name and not text:
        raise UserError(f"usage: {COMMANDS['/set'].usage}")
    if name:
        asking.settings = changed(asking.settings, name, text)
    for each in [name] if name else NAMES:
        say(f"  {each:<20} {shown(asking.settings, each)}")


def _think(repl: Repl, argument: str) -> None:
    mode = argument or "show"
    if mode not in THINKING:
        raise UserError(f"usage: {COMMANDS['/think'].usage}")
    repl.set_thinking(mode)
    said = {
        "show": "the model thinks, and its thoughts are shown",
        "hide": "the model thinks, and its thoughts are folded",
        "off": "the model answers without thinking, where its family can",
    }
    say(paragraph(said[mode]))


def _no_think(repl: Repl, argument: str) -> None:  # noqa: ARG001
    _think(repl, "off")


def _approve(repl: Repl, argument: str) -> None:
    if argument:
        if argument not in MODES:
            raise UserError(f"usage: {COMMANDS['/approve'].usage}")
        repl.approval.mode = argument
        repl.approval.forget()
    said = {
        "ask": "tools that only read run, others ask first",
        "read": "tools that only read run, others are refused",
        "all": "every tool runs without asking",
        "none": "every tool is refused",
    }
    say(paragraph(said[repl.approval.mode]))


# ---- the conversation


def _clear(repl: Repl, argument: str) -> None:  # noqa: ARG001
    repl.conversation.clear()
    repl.approval.forget()
    say("a new conversation")


def _undo(repl: Repl, argument: str) -> None:  # noqa: ARG001
    say(f"taken back: {visible(fitted(repl.conversation.undo(), columns() - 13))}")


def _retry(repl: Repl, argument: str) -> None:  # noqa: ARG001
    conversation = repl.conversation
    repl.ask(conversation.undo() if conversation.failed is None else conversation.failed)


def _continue(repl: Repl, argument: str) -> None:  # noqa: ARG001
    repl.go_on()


def _edit(repl: Repl, argument: str) -> None:
    text = edited(argument)
    if text:
        repl.editor.remember(text)
        say(style("\n".join(f"> {line}" for line in visible(text, keep=LAYOUT).split("\n")), "2"))
        repl.ask(text)


def _save(repl: Repl, argument: str) -> None:
    if not argument:
        raise UserError(f"usage: {COMMANDS['/save'].usage}")
    repl.conversation.save(argument)
    say(paragraph(f"kept as {argument} from now on; --session {argument} or /load {argument} goes on with it"))


def _load(repl: Repl, argument: str) -> None:
    if not argument:
        raise UserError(f"usage: {COMMANDS['/load'].usage}")
    repl.approval.forget()
    repl.conversation.resume(Path(argument).expanduser() if argument.endswith(".jsonl") else sessions.find(argument))
    count = len(repl.conversation.messages)
    say(f"{count} message{'s' if count != 1 else ''}; the conversation goes on")
    for message in repl.conversation.messages[-2:]:
        if message.role in ("user", "assistant"):
            say(style(f"{message.role}: {visible(fitted(message.content, columns() - 12))}", "2"))


def _export(repl: Repl, argument: str) -> None:
    if not argument:
        raise UserError(f"usage: {COMMANDS['/export'].usage}")
    path = Path(argument).expanduser()
    messages = repl.conversation.messages
    if path.suffix == ".json":
        text = json.dumps({"messages": as_dicts(messages)}, ensure_ascii=False, indent=2) + "\n"
    else:
        text = sessions.markdown(messages)
    try:
        with path.open("x", encoding="utf-8", errors="surrogatepass") as file:
            file.write(text)
    except FileExistsError:
        raise UserError(f"{argument} is there already; choose another name") from None
    except OSError as error:
        raise UserError(f"cannot write {argument}: {error.strerror}") from error
    say(f"written to {path}")


def _exit(repl: Repl, argument: str) -> None:  # noqa: ARG001
    raise EOFError


# ---- completion


def _one_of(*words: str) -> Callable[[Repl, list[str]], Iterable[str]]:
    return lambda repl, given: words if len(given) == 1 else ()  # noqa: ARG005


def _complete_command(repl: Repl, given: list[str]) -> Iterable[str]:  # noqa: ARG001
    return COMMANDS if len(given) == 1 else ()


def _complete_tools(repl: Repl, given: list[str]) -> Iterable[str]:
    return ("on", "off", "show") if len(given) == 1 else repl.tools.names()


def _complete_path(repl: Repl, given: list[str]) -> None:  # noqa: ARG001
    return None


def _complete_session(repl: Repl, given: list[str]) -> Iterator[str] | None:  # noqa: ARG001
    if "/" in given[-1] or given[-1].startswith(("~", ".")):
        return None
    return (path.stem for path in sessions.paths())


def _complete_model(repl: Repl, given: list[str]) -> Iterable[str] | None:  # noqa: ARG001
    return [name for name in EMBEDDED if name.startswith(given[-1])] or None


COMMANDS = {
    command.name: command
    for command in (
        Command("/help [COMMAND]", "this list, or one line of it", _help, _complete_command),
        Command("/tools [on|off|show NAME]", "the tools; offer one or not; its schema", _tools, _complete_tools),
        Command(
            "/prompt [--ids|--table]",
            "the raw prompt: text, token ids, tokens a segment",
            _prompt,
            _one_of("--ids", "--table"),
        ),
        Command("/raw", "the last answer exactly as it was generated", _raw),
        Command("/system [TEXT|default]", "see or change the system text", _system, _one_of("default")),
        Command("/model [NAME]", "see or change the model", _model, _complete_model),
        Command(
            "/set [NAME VALUE|default]",
            "see or change how the model generates",
            _set,
            _one_of(*NAMES),
        ),
        Command("/think [show|hide|off]", "let the model think, and show it or fold it", _think, _one_of(*THINKING)),
        Command("/no_think", "answers without thinking", _no_think),
        Command("/approve [ask|read|all|none]", "which tools run", _approve, _one_of(*MODES)),
        Command("/edit [TEXT]", "write in $EDITOR", _edit),
        Command("/undo", "take back the last question and its answer", _undo),
        Command("/retry", "ask the last question again", _retry),
        Command("/continue", "go on with an answer that was cut", _continue),
        Command("/clear", "begin a new conversation", _clear),
        Command("/save NAME", "keep the conversation under a name", _save),
        Command("/load NAME|FILE", "go on with another conversation", _load, _complete_session),
        Command("/export FILE", "write it as Markdown, or as JSON (.json)", _export, _complete_path),
        Command("/stats", "tokens and seconds so far", _stats),
        Command("/exit", "leave, as Ctrl-D does", _exit),
    )
}

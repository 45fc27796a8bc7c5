"""``render``: the exact raw prompt of a conversation, as text, as token ids, or as a table of costs.

The views are functions of segments, so that a chat can show its next prompt in the same way. No model is run;
a tokenizer is loaded only where ids are wanted.
"""

from __future__ import annotations

import argparse
import difflib
import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from .. import session
from ..errors import UserError
from ..families import FAMILIES, detect, read_options
from ..messages import as_messages
from ..prompt import CONTROL, Segment, encode, escaped, tagged, token_owners
from ..template import TemplatePrompt, first_difference, open_prompt
from .terminal import colours, say, visible

_COLOURS = {
    "marker": "2",
    "system": "35",
    "tools": "34",
    "user": "32",
    "call": "33",
    "reasoning": "2;3",
    "response": "36",
    "text": "",
}
# A control token in somebody's text is encoded as the plain text it is, and must not look like a real one.
_FALSE = "31;4"


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "file",
        help='JSON {"messages": [...], "tools": [...]}, a list of messages, or a saved session; - is stdin',
    )
    parser.add_argument("--model", help="whose tokenizer and template: a folder, a hub id, embedded")
    parser.add_argument("--family", help=f"how prompts are written: {', '.join(sorted(FAMILIES))}")
    parser.add_argument(
        "--option",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="a render option, such as enable_thinking=false; repeatable",
    )
    parser.add_argument(
        "--template", choices=("family", "model"), default="family", help="who writes: we, or the model's own"
    )
    parser.add_argument(
        "--escape", action="store_true", help="break control tokens in the text of messages and tools visibly"
    )
    views = parser.add_mutually_exclusive_group()
    views.add_argument("--ids", action="store_true", help="every token: its id, its text, its kind")
    views.add_argument("--table", action="store_true", help="the tokens of every segment, such as each tool")
    views.add_argument("--json", action="store_true", help="everything, for programs")
    views.add_argument("--diff", action="store_true", help="where the model's own template differs")


def run(args: argparse.Namespace) -> int:
    """Show the prompt; with --diff 1 when there is a difference."""
    if args.model is None and (args.ids or args.diff or args.template == "model"):
        wish = "--ids" if args.ids else "--diff" if args.diff else "--template model"
        raise UserError(f"{wish} needs a tokenizer: name its model with --model")
    data = _read(args.file)
    tokenizer = None if args.model is None else load_tokenizer(args.model)
    family = args.family or data.get("family")
    options = {**(data.get("options") or {}), **read_options(args.option)}
    messages, tools = as_messages(data["messages"]), data.get("tools") or []
    if family is None and args.template == "family":
        family = "qwen3" if tokenizer is None else family_of(tokenizer)
    family = family or "unknown"
    prompt = open_prompt(args.template, tokenizer, tools, family, **options)
    prompt.append(messages)
    shown = escaped(prompt.segments) if args.escape else prompt.segments
    if args.diff:
        own = TemplatePrompt(tokenizer, tools, **options)
        own.append(messages)
        return _show_difference(prompt.text, own.text)
    if prompt.dropped:
        say(f"{family} leaves the thoughts of {prompt.dropped} earlier answers out")
    false = sum(len(CONTROL.findall(segment.text)) for segment in shown if not segment.trusted)
    if false:
        say(f"control tokens in the text of messages or tools: {false}; they are encoded as plain text")
    if args.json:
        print(json.dumps(as_json(shown, family, tokenizer), ensure_ascii=False))
    elif args.ids:
        print("\n".join(ids_view(shown, tokenizer)))
    elif args.table:
        print("\n".join(table_view(shown, tokenizer)))
    elif sys.stdout.isatty():
        print(text_view(shown, colour=colours(sys.stdout)))
    else:
        sys.stdout.write(_text(shown))  # exact: a program reads it
    return 0


def load_tokenizer(model: str) -> Any:
    """The tokenizer of a model, or of a folder that holds only a tokenizer.

    Raises UserError (code 3) when there is none.
    """
    import transformers

    from .. import models

    folder = Path(model).expanduser()
    where = (
        str(folder) if (folder / "tokenizer.json").is_file() else models.prepare(models.resolve(model), weights=False)
    )
    transformers.logging.set_verbosity_error()  # type: ignore[no-untyped-call]
    try:
        return transformers.AutoTokenizer.from_pretrained(where)
    except (OSError, ValueError) as error:
        reason = str(error).strip().splitlines()[0]
        raise UserError(f"cannot load the tokenizer of {model}: {reason}", code=3) from error


def family_of(tokenizer: Any) -> str:
    """The family of a tokenizer's model. Raises UserError where it is none of ours."""
    return detect(tokenizer.chat_template or "", tokenizer.get_added_vocab())


def text_view(segments: Iterable[Segment], colour: bool) -> str:
    """The prompt for a terminal: in colour by kind, control tokens in somebody's text underlined in red, and
    control characters made visible, since a text from outside must not steer the terminal.
    """
    shown = []
    for segment in _parts(segments):
        for index, piece in enumerate([segment.text] if segment.trusted else CONTROL.split(segment.text)):
            code = _FALSE if index % 2 else _COLOURS[segment.kind]
            text = visible(piece, keep="\n\t")
            shown.append(f"\x1b[{code}m{text}\x1b[0m" if colour and code and text else text)
    return "".join(shown)


def ids_view(segments: list[Segment], tokenizer: Any) -> Iterator[str]:
    """A line for every token: id, text (its vocabulary's form where it is part of a character), kind."""
    for number, owner in zip(encode(segments, tokenizer), token_owners(segments, tokenizer), strict=True):
        text = tokenizer.decode([number], skip_special_tokens=False)
        if "\ufffd" in text:
            text = tokenizer.convert_ids_to_tokens(number)
        yield f"{number:>7}  {json.dumps(text, ensure_ascii=False):<24} {segments[owner].kind}"


def table_view(segments: list[Segment], tokenizer: Any = None) -> Iterator[str]:
    """A line for every segment, tools by name, and a total; counts characters where there is no tokenizer."""
    counts = _counts(segments, tokenizer)
    unit = "characters" if tokenizer is None else "tokens"
    yield f"{unit:>10}  {'kind':<10} text"
    for segment, count in zip(segments, counts, strict=True):
        text = segment.text if len(segment.text) <= 60 else segment.text[:60] + "…"
        if count:  # a newline between tools is part of the token before it
            shown = segment.label or visible(text, keep="\n\t").replace("\n", "⏎")
            yield f"{count:>10}  {segment.kind:<10} {shown}"
    yield f"{sum(counts):>10}  total"


def as_json(segments: list[Segment], family: str, tokenizer: Any = None) -> dict[str, Any]:
    """The prompt as JSON values; ``tokens`` and ``token_ids`` are known only with a tokenizer."""
    counts = [None] * len(segments) if tokenizer is None else _counts(segments, tokenizer)
    data: dict[str, Any] = {"prompt": _text(segments), "family": family}
    if tokenizer is not None:
        data["token_ids"] = encode(segments, tokenizer)
    data["segments"] = [
        {
            "text": segment.text,
            "kind": segment.kind,
            "trusted": segment.trusted,
            "tokens": count,
            **({"label": segment.label} if segment.label else {}),
        }
        for segment, count in zip(segments, counts, strict=True)
    ]
    return data


def _show_difference(ours: str, theirs: str) -> int:
    difference = first_difference(ours, theirs)
    if difference is None:
        say("equal to the model's own template")
        return 0
    say(difference)
    lines = difflib.unified_diff(
        theirs.splitlines(), ours.splitlines(), "the model's own template", "ours", lineterm="", n=1
    )
    for line in lines:
        print(line)
    return 1


def _read(file: str) -> Mapping[str, Any]:
    """The conversation in a file: ``messages`` and, where given, ``tools``, ``family`` and ``options``."""
    if file.endswith(".jsonl"):
        return {"messages": session.load(Path(file))}
    try:
        text = sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"cannot read {file}: {error}") from error
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UserError(f"{file} is not JSON: {error}") from error
    if isinstance(data, list):
        data = {"messages": data}
    if not isinstance(data, dict) or not isinstance(data.get("messages"), list):
        raise UserError(f'{file} must hold {{"messages": [...], "tools": [...]}} or a list of messages')
    for key, kind in {"tools": list, "options": dict, "family": str}.items():
        if not isinstance(data.get(key), (kind, type(None))):
            raise UserError(f"{file}: {key} is of the wrong type")
    return data


def _parts(segments: Iterable[Segment]) -> Iterator[Segment]:
    """Segments whose text is of one kind: a generated text with known ids holds several."""
    for segment in segments:
        yield from [segment] if segment.ids is None else tagged(segment.text)


def _counts(segments: list[Segment], tokenizer: Any) -> list[int]:
    if tokenizer is None:
        return [len(segment.text) for segment in segments]
    counts = [0] * len(segments)
    for owner in token_owners(segments, tokenizer):
        counts[owner] += 1
    return counts


def _text(segments: Iterable[Segment]) -> str:
    return "".join([segment.text for segment in segments])

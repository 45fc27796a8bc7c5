"""Raw prompts and answers of the Qwen families, read back into messages.

``read_request`` inverts ``prompt.render``: what it gives renders to the very text that was read, or it raises WireError
with line and column. Raw text has no ids, so results belong to calls by position. What an assistant said in other than
the canonical form (compact JSON, text behind calls) keeps its own text as ``Message.raw``.

Raw text does not tell structure from quotation: a user who wrote ``<|im_end|>`` ended the turn there as far as anybody
can see. So this reads documents. It decides nothing about what runs.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from ..errors import UserError
from ..events import Event, Usage
from ..families import Family, Options, get
from ..fields import WireError, short
from ..messages import Message, as_messages
from ..parser import StreamParser
from ..prompt import ASSISTANT, generation_prefill, render, text_file
from ..tools import Tool
from .answer import message_of, parts
from .request import Request

_TURN = re.compile(r"<\|im_end\|>\n<\|im_start\|>(system|user|assistant)\n")
_FIRST = re.compile(r"<\|im_start\|>(system|user|assistant)\n")
# Every combination of options that changes what a family writes.
_OPTIONS: dict[str, list[dict[str, Any]]] = {
    "qwen3": [{}, {"enable_thinking": False}],
    "qwen3.8": [
        {"enable_thinking": thinking, "preserve_thinking": preserve, "reasoning_effort": effort}
        for thinking, efforts in ((True, ("xhigh", "low", "medium")), (False, ("xhigh",)))
        for effort in efforts
        for preserve in (True, False)
    ],
}


class _Turn(NamedTuple):
    role: str
    content: str
    start: int  # of the content, in the whole text


def read_request(text: str, family: str | None = None) -> Request:
    """Read a prompt. Without ``family`` it is the one that explains the text with the fewest turns, the most tools and
    the fewest oddities; the results of one turn are many messages. ``meta["qwen"]`` says which, and with which options.

    Raises WireError with line and column for what no renderer of the family writes.
    """
    names = [family] if family else ["qwen3", "qwen2.5", "qwen3.8", "qwen3-coder", "qwq"]
    turns, closed = _split(text)
    best: tuple[tuple[int, int, int], Request] | None = None
    first: WireError | None = None
    for name in names:
        chosen = get(name)
        for options in _OPTIONS.get(chosen.name, [{}]):
            try:
                odd, request = _read(text, turns, closed, chosen, options)
            except WireError as error:
                first = first or error
                continue
            said = sum(message.role != "tool" for message in request.messages)
            rank = (said, -len(request.tools), odd)
            if best is None or rank < best[0]:
                best = rank, request
    if best is None:
        raise first or WireError("", "no family of models writes such a prompt")
    return best[1]


def write_request(request: Request, family: str = "qwen3", **options: Any) -> str:
    """The raw prompt. ``tool_choice`` none leaves the tools out; the rest of the settings has no place in it.

    Raises UserError for what the family cannot write.
    """
    before = request.meta.get("qwen") or {}
    if before.get("family") == family:
        options = {**before["options"], **options}
    tools = [] if request.tool_choice == "none" else request.tools
    text = render(as_messages(request.messages), tools, family, **options)
    if before.get("closed"):
        text = text.removesuffix(ASSISTANT + generation_prefill(family, **options))
    return text


def response(message: Message, family: str = "qwen3", **options: Any) -> str:
    """The answer as the model would have written it behind the generation prompt, without the end of turn."""
    prefill = generation_prefill(family, **options)
    if message.raw is not None and message.prefill == prefill:
        return message.raw
    said = list(parts(message))
    text = "".join(part for part in said if isinstance(part, str))
    message = replace(message, content=text, calls=tuple(part for part in said if not isinstance(part, str)))
    question = [Message("user", "")]
    start = len(render(question, (), family, **options)) - len(prefill)
    end = len(get(family).end_of_turn + "\n" + ASSISTANT + prefill)
    body = render([*question, replace(message, raw=None)], (), family, **options)[start:-end]
    if not prefill and not message.reasoning:  # a model that does not think does not say so
        return body.removeprefix("<think>\n\n</think>\n\n")
    if body.startswith(prefill):
        return body[len(prefill) :]
    thought = body.partition("</think>\n\n")
    if prefill.endswith("</think>\n\n") and thought[0].startswith("<think>"):
        return thought[2]
    # The prompt opened a thought that the family does not write in a history.
    return f"{message.reasoning}\n</think>\n\n{body}" if prefill else body


def read_response(
    text: str, family: str = "qwen3", tools: Iterable[Any] = (), finish: str = "stop", **options: Any
) -> tuple[Message, str, Usage]:
    """The message of a raw answer; calls that are no calls are in it without a name (``answer.message_of``)."""
    reader = StreamReader(family, tools, **options)
    reader.feed(text)
    reader.close(finish)
    return reader.message, finish, reader.usage


class StreamReader:
    """Events from a raw answer, in whatever pieces it comes."""

    def __init__(self, family: str = "qwen3", tools: Iterable[Any] = (), **options: Any) -> None:
        self._parser = StreamParser(tools, generation_prefill(family, **options))
        self._said: list[Event] = []
        self.message = Message("assistant")
        self.finish: str | None = None
        self.usage = Usage()

    def feed(self, text: str) -> list[Event]:
        """The events of one piece."""
        new = self._parser.feed(text)
        self._said += new
        return new

    def close(self, finish: str = "stop") -> list[Event]:
        """The answer is over."""
        new = self._parser.close(finish)
        self.finish = finish
        self.message = message_of([*self._said, *new], finish)
        return new


# --- Reading a prompt ------------------------------------------------------------------------------------------------


def _split(text: str) -> tuple[list[_Turn], bool]:
    """The turns, and whether the text ends with a whole one, without a generation prompt."""
    first = _FIRST.match(text)
    if first is None:
        raise WireError(_place(text, 0), "a prompt begins with <|im_start|> and a role")
    turns: list[_Turn] = []
    role, start = first.group(1), first.end()
    for found in _TURN.finditer(text, start):
        turns.append(_Turn(role, text[start : found.start()], start))
        role, start = found.group(1), found.end()
    rest = text[start:]
    closed = rest.endswith(("<|im_end|>\n", "<|im_end|>"))
    if closed:
        rest = rest.removesuffix("\n").removesuffix("<|im_end|>")
    turns.append(_Turn(role, rest, start))
    return turns, closed


def _read(
    text: str, turns: list[_Turn], closed: bool, family: Family, options: Mapping[str, Any]
) -> tuple[int, Request]:
    """The request, and how many of the assistant's turns are not in canonical form."""
    prefill = generation_prefill(family.name, **options)
    if not closed:
        last = turns[-1]
        if last.role != "assistant" or last.content != prefill:
            raise WireError(
                _place(text, last.start),
                f"the prompt of {family.name} ends with <|im_start|>assistant\\n{short(prefill) if prefill else ''}; "
                "an answer is read as a response",
            )
        turns = turns[:-1]
    messages: list[Message] = []
    numbers: list[int] = []  # of the turn each message came from
    tools: list[Tool] = []
    for number, turn in enumerate(turns):
        if number == 0 and turn.role == "system":
            system, tools = _read_system(text, turn, family, options)
            read = [] if system is None else [Message("system", system)]
        elif turn.role == "assistant":
            read = [_read_answer(turn.content, tools)]
        elif turn.role == "user" and messages and messages[-1].calls:
            read = list(_read_results(text, turn, number, family, len(messages[-1].calls)))
        else:
            read = [Message(turn.role, turn.content)]
        messages += read
        numbers += [number] * len(read)
    meta = {"qwen": {"family": family.name, "options": dict(options), "closed": closed}}
    request = Request(messages, tools, meta=meta)
    odd = _keep_oddities(request, turns, numbers)
    written = write_request(request, family.name)
    if written != text and written != text + "\n":  # a last newline is easily lost
        at = next(
            (i for i, (a, b) in enumerate(zip(text, written, strict=False)) if a != b), min(len(text), len(written))
        )
        raise WireError(_place(text, at), f"{family.name} would write {short(written[at : at + 40])} here")
    return odd, request


def _keep_oddities(request: Request, turns: list[_Turn], numbers: list[int]) -> int:
    """Give each of the assistant's messages that is not written from its parts as it was the text that it had."""
    family = request.meta["qwen"]["family"]
    odd = 0
    for attempt in ("raw", "raw without thought"):
        try:
            written, _ = _split(write_request(request, family))
        except UserError:
            written = []
        # A default system text is a turn and no message, on both sides alike.
        for index, message in enumerate(request.messages):
            turn = turns[numbers[index]]
            if message.role != "assistant":
                continue
            if numbers[index] < len(written) and written[numbers[index]].content == turn.content:
                continue
            odd += 1
            reasoning = message.reasoning if attempt == "raw" else ""
            request.messages[index] = replace(message, raw=turn.content, reasoning=reasoning)
    return odd


def _read_system(text: str, turn: _Turn, family: Family, options: Mapping[str, Any]) -> tuple[str | None, list[Tool]]:
    """The system text, or None where it is the family's own, and the tools."""
    content, start = turn.content, turn.start
    preamble = family.preamble(Options.of(options))
    if preamble:
        fixed = text_file(f"{family.name}/{preamble}")
        if not content.startswith(fixed):
            raise WireError(_place(text, start), f"{family.name} begins the system text with {short(fixed[:40])}")
        rest = content[len(fixed) :]
        if not rest:
            return None, []
        if not rest.startswith("\n\n"):
            raise WireError(_place(text, start + len(fixed)), "an empty line must follow")
        content, start = rest[2:], start + len(fixed) + 2
    before, after = text_file(f"{family.name}/tools.txt").split("{tools}")
    system: str | None = content
    tools: list[Tool] = []
    if family.system_last and content.startswith(before):
        end = content.find(after, len(before))
        if end < 0:
            raise WireError(_place(text, start), "the list of tools has no end")
        tools = _read_tools(text, content[len(before) : end], start + len(before), family)
        rest = content[end + len(after) :]
        system = rest.removeprefix("\n\n") if rest else None
    elif not family.system_last and content.endswith(after):
        begin = content.find(before) if family.name == "qwen3-coder" else content.rfind(before, 0, -len(after))
        if begin >= 0:
            listed = content[begin + len(before) : -len(after)]
            tools = _read_tools(text, listed, start + begin + len(before), family)
            system = content[:begin].removesuffix("\n\n") if begin else None
    default = family.default_system == "always" or (tools and family.default_system == "tools")
    if default and system == text_file(f"{family.name}/system.txt"):
        system = None
    return system, tools


def _read_tools(text: str, listed: str, start: int, family: Family) -> list[Tool]:
    if family.name == "qwen3-coder":
        return [Tool.from_dict(tool) for tool in _xml_tools(text, listed, start)]
    tools = []
    for line in listed.split("\n"):
        try:
            tools.append(Tool.from_dict(json.loads(line)))
        except (ValueError, RecursionError, UserError, AttributeError) as error:
            raise WireError(_place(text, start), f"this line is no tool: {error}") from error
        start += len(line) + 1
    return tools


def _read_answer(content: str, tools: list[Tool]) -> Message:
    """A message of the assistant from its parts. Names and schemas are not judged: this is history."""
    parser = StreamParser(tools)
    message = message_of(parser.feed(content) + parser.close("stop"))
    if any(not call.name for call in message.calls):  # what is no call is text
        _, closed, text = content.partition("</think>") if content.startswith("<think>") else ("", "", content)
        return Message("assistant", text.lstrip("\n") if closed else content, message.reasoning if closed else "")
    calls = tuple(replace(call, problems=(), raw="", span=(0, 0)) for call in message.calls)
    return replace(message, calls=calls)


def _read_results(text: str, turn: _Turn, number: int, family: Family, calls: int) -> Iterator[Message]:
    """The results of a turn, or the user's words where there are none."""
    whole = f"<|im_start|>user\n{turn.content}"
    opening = family.results_open + family.result_open
    if not (whole.startswith(opening) and whole.endswith(family.result_close) and len(whole) >= len(opening)):
        yield Message("user", turn.content)
        return
    results = whole[len(opening) : -len(family.result_close)].split(family.result_close + family.result_open)
    if len(results) != calls:
        raise WireError(
            _place(text, turn.start),
            f"turn {number + 1} has {len(results)} results for {calls} calls, and only their order says which is whose",
        )
    for result in results:
        yield Message("tool", result)


def _place(text: str, position: int) -> str:
    line = text.count("\n", 0, position) + 1
    return f"line {line}, column {position - text.rfind(chr(10), 0, position)}"


# --- Tools in XML (qwen3-coder) --------------------------------------------------------------------------------------

_NAMED = re.compile(r"<name>(.*?)</name>\n", re.DOTALL)
_TYPED = re.compile(r"<type>(.*?)</type>\n", re.DOTALL)
_DESCRIBED = re.compile(r"<description>(.*?)</description>\n", re.DOTALL)
_EXTRA = re.compile(r"<([^\n<>/]+)>(.*?)</\1>\n", re.DOTALL)


class _Cursor:
    """Reads the listing of tools from front to back."""

    def __init__(self, text: str, listed: str, start: int) -> None:
        self._text, self._listed, self._start = text, listed, start
        self.at = 0

    @property
    def done(self) -> bool:
        return self.at >= len(self._listed)

    def skip(self, mark: str) -> bool:
        if not self._listed.startswith(mark, self.at):
            return False
        self.at += len(mark)
        return True

    def need(self, mark: str) -> None:
        if not self.skip(mark):
            raise WireError(_place(self._text, self._start + self.at), f"{mark.strip()} must stand here")

    def take(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        found = pattern.match(self._listed, self.at)
        if found:
            self.at = found.end()
        return found


def _xml_tools(text: str, listed: str, start: int) -> Iterator[dict[str, Any]]:
    cursor = _Cursor(text, listed + "\n", start)
    while not cursor.done:
        cursor.need("<function>\n")
        function: dict[str, Any] = {}
        _describe(cursor, function)
        cursor.need("<parameters>\n")
        properties: dict[str, Any] = {}
        while cursor.skip("<parameter>\n"):
            found = cursor.take(_NAMED)
            if found is None:
                cursor.need("<name>")
            fields: dict[str, Any] = {}
            properties[found.group(1) if found else ""] = fields
            typed = cursor.take(_TYPED)
            if typed:
                fields["type"] = _value(typed.group(1))
            _describe(cursor, fields, named=False)
            fields.update(_extras(cursor))
            cursor.need("</parameter>\n")
        function["parameters"] = {"type": "object", "properties": properties, **_extras(cursor)}
        cursor.need("</parameters>\n")
        function.update(_extras(cursor))
        cursor.need("</function>\n")
        yield {"type": "function", "function": function}


def _describe(cursor: _Cursor, fields: dict[str, Any], named: bool = True) -> None:
    if named:
        found = cursor.take(_NAMED)
        if found is None:
            cursor.need("<name>")
        fields["name"] = found.group(1) if found else ""
    described = cursor.take(_DESCRIBED)
    if described:
        fields["description"] = described.group(1)


def _extras(cursor: _Cursor) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    while True:
        found = cursor.take(_EXTRA)
        if found is None:
            return fields
        fields[found.group(1)] = _value(found.group(2))


def _value(text: str) -> Any:
    """A value that the family's writer would write as this text."""
    words = {"True": True, "False": False, "None": None}
    if text in words:
        return words[text]
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    if isinstance(value, (dict, list)):
        return value if json.dumps(value, ensure_ascii=False) == text else text
    return value if not isinstance(value, (str, bool)) and value is not None and str(value) == text else text

"""Conversations to learn from: what is asked, which calls follow, what the tools say, what is answered.

A ``Group`` offers a few invented tools and has several conversations about them, so that a training step reads the
tools once. Everything is drawn from one random generator: a seed gives the same conversations always.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Any

from qwen_tools.executor import execute, refusal
from qwen_tools.messages import Message, ToolCall
from qwen_tools.tools import Tool, Toolbox

from . import households, pastimes, sentences, tools, towns, trades, written
from .chains import CHAINS
from .invented import Invented
from .lookups import akin, lookup
from .values import Value, joined

TOOLS = [*tools.TOOLS, *towns.TOOLS, *households.TOOLS, *trades.TOOLS, *pastimes.TOOLS]
# Tools kept for choosing a checkpoint, by first name; none of a chain is among them.
VALIDATION = frozenset(
    [
        "savings_growth",
        "places_to_eat",
        "table_booking",
        "motion_energy",
        "match_result",
        "light_switch",
        "describe_numbers",
        "mail_out",
        "species_info",
        "zone_time",
        "dark_lamp",
        "passport_slot",
        "minibar_tab",
        "cow_yield",
        "tyre_bar",
        "who_has",
        "newest_snapshot",
        "hearing_slot",
        "array_yield",
        "hut_beds",
        "rhyme_hunt",
        "log_sighting",
    ]
)
# Areas whose tools cannot answer each other's questions, near as they are: the hard cases of "no tool fits".
_NEAR = frozenset(["dates", "file", "geometry", "health", "home", "physics", "random", "sport", "statistics", "todo"])
_UNSEEN = 0.3  # the share of tools that come from ``lookups``
# Areas in which something is done rather than found out.
_DEEDS = frozenset(["home", "message", "music", "order", "timer", "calendar", "booking"])
_BY_NAME = {tool.names[0]: tool for tool in TOOLS}


class Unfit(Exception):  # noqa: N818 - no error: a group has not what a conversation needs
    """The tools of the group do not allow this conversation."""


@dataclass(frozen=True)
class Conversation:
    """Messages behind the system text. ``unlearnt`` are the positions of answers that are mistakes on purpose."""

    kind: str
    language: str
    messages: list[Message]
    unlearnt: frozenset[int] = frozenset()


@dataclass
class Group:
    """A system text (None: the family's own), the offered tools, and conversations about them."""

    system: str | None
    tools: list[Tool]
    conversations: list[Conversation] = field(default_factory=list)


@dataclass(frozen=True)
class Offered:
    """An invented tool as this group offers it: with one of its names, and one name for each parameter."""

    invented: Invented
    tool: Tool
    parameters: dict[str, str]


@dataclass(frozen=True)
class Use:
    """One question that a tool answers, from the question to the answer."""

    offered: Offered
    question: str
    values: dict[str, Value]
    call: ToolCall
    result: str
    answer: str


def _call(name: str, arguments: dict[str, Any]) -> ToolCall:
    return ToolCall(name, arguments, "", (0, 0))


def _ask(text: str) -> Message:
    return Message("user", text)


def _say(text: str) -> Message:
    return Message("assistant", text)


def _calls(*calls: ToolCall) -> Message:
    return Message("assistant", "", calls=calls)


def _told(content: str) -> Message:
    return Message("tool", content)


def _of_other_type(value: Any) -> Any:
    """A number as text, digits as a number; None where that cannot be."""
    if isinstance(value, str):
        return int(value) if value.isascii() and value.isdigit() and value[0] != "0" else None
    return str(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


class Maker:
    """Makes groups about ``tools``, one after the other."""

    def __init__(self, seed: int, tools: list[Invented]) -> None:
        self.random = Random(seed)
        self._tools = tools
        self._offered: dict[str, Offered] = {}
        self._frozen = False

    # --- Tools and questions ----------------------------------------------------------------------

    def offer(self, invented: Invented) -> Offered:
        """The tool as the group offers it. Raises Unfit when the group is complete without it."""
        key = invented.names[0]
        if key not in self._offered:
            if self._frozen:
                raise Unfit
            self._offered[key] = self._dressed(invented)
        return self._offered[key]

    def _dressed(self, invented: Invented) -> Offered:
        random = self.random
        slots = list(invented.slots.items())
        if random.random() < 0.3:
            random.shuffle(slots)
        parameters, properties = {}, {}
        for key, (names, abouts, kind) in slots:
            parameters[key] = random.choice([name for name in names if name not in parameters.values()])
            schema = {"type": kind.schema["type"]} | dict(kind.schema)
            about = random.choice(abouts)
            drawn = kind.draw(random, "en").json
            if about and random.random() < 0.15:
                about += f", for example {_as_text(drawn)}"
            if about:
                schema["description"] = about
            if key not in invented.required and random.random() < 0.25:
                schema["default"] = drawn
            properties[parameters[key]] = schema
        required = [name for key, name in parameters.items() if key in invented.required]
        schema = {"type": "object", "properties": properties, "required": required}
        free = [name for name in invented.names if all(name != other.tool.name for other in self._offered.values())]
        name = random.choice(free)
        return Offered(invented, Tool(name, random.choice(invented.about), schema, None, read_only=True), parameters)

    def use(self, invented: Invented, language: str, fixed: dict[str, Value] | None = None) -> Use:
        """A question for a tool; ``fixed`` are values that are given. Raises Unfit for a language it has not."""
        random, offered = self.random, self.offer(invented)
        if language not in invented.asks:
            raise Unfit
        template = self._with_or_without(random.choice(invented.asks[language]))
        asked = re.findall(r"\{(\w+)\}", template)
        if any(key not in asked for key in invented.required):
            raise Unfit
        values = {key: invented.slots[key][2].draw(random, language) for key in dict.fromkeys(asked)}
        values.update({key: value for key, value in (fixed or {}).items() if key in values})
        return self._used(offered, language, template, values)

    def _with_or_without(self, template: str) -> str:
        """The template with some of its optional parts."""
        return re.sub(r"\[([^][]*)\]", lambda part: part[1] if self.random.random() < 0.45 else "", template)

    def _used(self, offered: Offered, language: str, template: str, values: dict[str, Value]) -> Use:
        random, invented = self.random, offered.invented
        texts = {key: value.text for key, value in values.items()}
        question = " ".join(template.format(**texts).replace(" ,", ",").split())
        question = question[0].upper() + question[1:]
        arguments = {name: values[key].json for key, name in offered.parameters.items() if key in values}
        result = invented.result({key: value.json for key, value in values.items()}, random)
        known: dict[str, Any] = _Fields(texts)
        if isinstance(result, dict):
            known.update(result)
        else:
            known["value"] = result
        said = random.choice(invented.says[language])
        answer = said.format_map(_Fields({key: self._spoken(value, language) for key, value in known.items()}))
        if isinstance(result, dict) and random.random() < 0.25:
            noise = random.choice(
                [{"source": "station 4"}, {"updated": "10:20"}, {"request_id": random.randint(10**5, 10**6)}]
            )
            result = {**result, **noise} if random.random() < 0.5 else {**noise, **result}
        return Use(offered, question, values, _call(offered.tool.name, arguments), _as_text(result), answer)

    @staticmethod
    def _spoken(value: Any, language: str) -> str:
        if isinstance(value, list):
            return joined([str(each) for each in value], language)
        return str(value)

    def _any(self, language: str) -> Invented:
        """A tool that can be asked for in the language; one of the group's when that is complete."""
        known = [each.invented for each in self._offered.values()] if self._frozen else self._tools
        able = [each for each in known if language in each.asks]
        if not able:
            raise Unfit
        return self.random.choice(able) if self._frozen or self.random.random() > _UNSEEN else lookup(self.random)

    def _new(self) -> Invented:
        """A tool to be offered: of the tables, or one that nobody has seen."""
        return lookup(self.random) if self.random.random() < _UNSEEN else self.random.choice(self._tools)

    # --- Kinds of conversations -------------------------------------------------------------------

    def single(self, language: str) -> Conversation:
        """One call, one result, one answer."""
        use = self.use(self._any(language), language)
        return Conversation(
            "single",
            language,
            [self._dress(use.question, language), _calls(use.call), _told(use.result), _say(use.answer)],
        )

    def many(self, language: str) -> Conversation:
        """Several calls of one tool in one answer: the question lists values for one of its slots."""
        random, invented = self.random, self._any(language)
        first = self.use(invented, language)
        slots = [
            key
            for key in first.values
            if invented.slots[key][2].schema["type"] in ("string", "number", "integer")
            and "enum" not in invented.slots[key][2].schema
        ]
        if not slots:
            raise Unfit
        slot, count = random.choice(slots), random.choice([2, 2, 2, 3, 3, 4])
        drawn = {value.text: value for value in (invented.slots[slot][2].draw(random, language) for _ in range(count))}
        if len(drawn) < 2 or any("and" in text.split() for text in drawn):
            raise Unfit
        uses = [self._used(first.offered, language, "-", {**first.values, slot: value}) for value in drawn.values()]
        texts = {key: value.text for key, value in first.values.items()} | {slot: joined(list(drawn), language)}
        templates = [
            each
            for each in invented.asks[language]
            if set(re.findall(r"\{(\w+)\}", re.sub(r"\[[^][]*\]", "", each))) == set(first.values)
        ]
        if not templates:
            raise Unfit
        question = re.sub(r"\[[^][]*\]", "", random.choice(templates)).format(**texts)
        return Conversation(
            "many",
            language,
            [self._dress(question, language), *self._parallel(uses), _say(" ".join(use.answer for use in uses))],
        )

    def several(self, language: str) -> Conversation:
        """Calls of different tools, or of one tool with other values throughout, in one answer."""
        if language not in sentences.AND_THEN:
            raise Unfit
        invented = self._any(language)
        first = self.use(invented, language)
        second = self.use(invented if self.random.random() < 0.4 and first.values else self._any(language), language)
        if first.call.name == second.call.name and first.call.arguments == second.call.arguments:
            raise Unfit
        then = second.question if language == "zh" else second.question[0].lower() + second.question[1:]
        question = self.random.choice(sentences.AND_THEN[language]).format(
            first=first.question, second=second.question, then=then
        )
        separator = "" if language == "zh" else " "
        return Conversation(
            "several",
            language,
            [
                self._dress(question, language),
                *self._parallel([first, second]),
                _say(first.answer + separator + second.answer),
            ],
        )

    @staticmethod
    def _parallel(uses: list[Use]) -> list[Message]:
        return [_calls(*(use.call for use in uses)), *(_told(use.result) for use in uses)]

    def chain(self, language: str) -> Conversation:
        """A second call that needs the first one's result."""
        if _BY_NAME["compute"] not in self._tools:
            raise Unfit
        language = language if language == "en" else "zh"
        made = self.random.choice(CHAINS)(self, language)
        place = ("en", "zh").index(language)
        second, answer = made.second, made.say[place] if made.say else made.second.answer
        messages = [_ask(made.ask[place]), *self._parallel(made.first), *self._parallel([second]), _say(answer)]
        return Conversation("chain", language, messages)

    def needs(self, *names: str) -> None:
        """The tools of a chain, by first name. Raises Unfit when the group cannot have them."""
        for name in names:
            self.offer(_BY_NAME[name])

    def step(self, name: str, language: str, /, **values: Any) -> Use:
        """A call with these values, by slot; what is no Value is said as it is written."""
        offered = self.offer(_BY_NAME[name])
        given = {key: value if isinstance(value, Value) else Value(value, str(value)) for key, value in values.items()}
        return self._used(offered, language, "-", given)

    def draw(self, name: str, slot: str, language: str) -> Value:
        """A value for a slot of a tool."""
        return _BY_NAME[name].slots[slot][2].draw(self.random, language)

    @staticmethod
    def different(first: Value, second: Value) -> None:
        """Raises Unfit when two values are the same."""
        if first == second:
            raise Unfit

    def mistake(self, language: str) -> Conversation:
        """A wrong call, the executor's own words about it, the right call. The wrong one is not learnt."""
        random, use = self.random, self.use(self._any(language), language)
        arguments, required = dict(use.call.arguments), use.offered.tool.parameters["required"]
        name = use.call.name
        enums = [key for key in arguments if "enum" in use.offered.tool.parameters["properties"][key]]
        typed = [key for key, value in arguments.items() if _of_other_type(value) is not None]
        kind = random.choice(["name", "missing", "enum", "type", "type"])
        if kind == "missing" and required:
            del arguments[random.choice(required)]
        elif kind == "enum" and enums:
            arguments[enums[0]] = "automatic"
        elif kind == "type" and typed:
            key = random.choice(typed)
            arguments[key] = _of_other_type(arguments[key])
        else:
            others = [
                other
                for other in use.offered.invented.names
                if all(other != each.tool.name for each in self._offered.values())
            ]
            name = random.choice([*others, f"get_{name}", f"{name}_tool"])
        wrong = _call(name, arguments)
        offered = [each.tool for each in self._offered.values()]
        failure = execute(wrong, Toolbox.of(self._runnable(offered)))
        return Conversation(
            "mistake",
            language,
            [
                _ask(use.question),
                _calls(wrong),
                _told(failure.content),
                _calls(use.call),
                _told(use.result),
                _say(use.answer),
            ],
            frozenset([1]),
        )

    @staticmethod
    def _runnable(tools: list[Tool]) -> list[Tool]:
        return [Tool(tool.name, tool.description, tool.parameters, lambda **_: "", read_only=True) for tool in tools]

    def misspelt(self, language: str) -> Conversation:
        """The user's word is unknown to the tool, which knows a near one."""
        random, invented = self.random, self._any(language)
        use = self.use(invented, language)
        slots = [
            key
            for key in use.values
            if invented.slots[key][2].schema == {"type": "string"}
            and len(use.values[key].text) > 3
            and use.values[key].text.isalpha()
        ]
        if not slots or language == "zh":
            raise Unfit
        slot = random.choice(slots)
        right = use.values[slot]
        place = random.randrange(1, len(right.text) - 1)
        text = right.text[:place] + right.text[place] + right.text[place:]
        wrong = self._used(use.offered, language, "-", {**use.values, slot: Value(text, text)})
        error = refusal("", "tool_error", f"ValueError: {text!r} is not known; did you mean {right.text}?").content
        question = use.question.replace(right.text, text)
        return Conversation(
            "misspelt",
            language,
            [_ask(question), _calls(wrong.call), _told(error), _calls(use.call), _told(use.result), _say(use.answer)],
        )

    def listed(self, language: str) -> Conversation:
        """The call says a name in other words than the tool, which lists those it knows. Where the right one is
        among them, it is called for; else that it is not is the answer.
        """
        random, invented = self.random, self._any(language)
        use = self.use(invented, language)
        slots = [
            key
            for key, value in use.values.items()
            if invented.slots[key][2].schema == {"type": "string"} and 0 < len(value.text) < 20
        ]
        if not slots:
            raise Unfit
        slot = random.choice(slots)
        right, kind = use.values[slot].text, invented.slots[slot][2]
        others = {kind.draw(random, language).text for _ in range(3)} - {right}
        parts = right.split()
        said = random.choice(
            [f"{slot} {right}", f"the {right}", f"{right} {slot}", parts[0] if parts[1:] else right.lower()]
        )
        if not others or said in (right, *others):
            raise Unfit
        known = random.random() < 0.7
        names = sorted({*others, right} if known else others, key=lambda _: random.random())
        words = random.choice(sentences.LISTED)
        told = refusal("", "tool_error", words.format(value=said if known else right, names=", ".join(names))).content
        if known:
            wrong = self._used(use.offered, language, "-", {**use.values, slot: Value(said, said)})
            rest = [_calls(wrong.call), _told(told), _calls(use.call), _told(use.result), _say(use.answer)]
        else:
            answer = random.choice(sentences.NOT_LISTED[language])
            rest = [_calls(use.call), _told(told), _say(answer.format(value=right, names=joined(names, language)))]
        return Conversation("listed", language, [_ask(use.question), *rest], frozenset([1] if known else []))

    def failure(self, language: str) -> Conversation:
        """A tool that fails, or was not allowed: said honestly, not tried again."""
        use, random = self.use(self._any(language), language), self.random
        if random.random() < 0.3:
            content = refusal(
                "", "denied", "The user did not allow this call. Do not try it again; say what you would have done."
            ).content
            answer = random.choice(sentences.DENIED[language])
        else:
            fault = random.choice(sentences.FAULTS)
            content = refusal("", "tool_error", fault).content
            answer = random.choice(sentences.FAILED[language]).format(message=fault.partition(": ")[2] + ".")
        return Conversation("failure", language, [_ask(use.question), _calls(use.call), _told(content), _say(answer)])

    def repeated(self, language: str) -> Conversation:
        """The same call again is a mistake; what follows is the answer."""
        use = self.use(self._any(language), language)
        told = refusal(
            "",
            "repeated",
            f"{use.call.name} was already called with these arguments and its result is above. "
            "Use that result and answer the user in words.",
        ).content
        return Conversation(
            "repeated",
            language,
            [_ask(use.question), _calls(use.call), _told(use.result), _calls(use.call), _told(told), _say(use.answer)],
            frozenset([3]),
        )

    def unsuitable(self, language: str) -> Conversation:
        """No offered tool fits the question."""
        random = self.random
        if not self._frozen:
            for _ in range(random.choice([1, 1, 1, 2, 3])):
                self.offer(self._new())
            self._frozen = True
        offered = [each.invented for each in self._offered.values()]
        taken = frozenset[str]().union(*(each.topics for each in offered))
        strangers = [lookup(random) for _ in range(len(self._tools) // 2)]
        others = [each for each in [*self._tools, *strangers] if each not in offered and language in each.asks]
        near = [each for each in others if each.topics & taken and each.topics & taken <= _NEAR]
        near += [each for each in strangers if language in each.asks and akin(each.topics, taken)]
        foreign = [each for each in others if not each.topics & taken]
        if taken & {"search", "code", "calculation"}:  # those can answer most things
            foreign = [each for each in foreign if each.topics & _DEEDS]
        elif near and random.random() < 0.2:
            foreign = near
        if not foreign:
            raise Unfit
        # A maker of its own: this tool must not become one that is offered.
        use = Maker(random.randrange(2**32), self._tools).use(random.choice(foreign), language)
        return Conversation(
            "unsuitable",
            language,
            [self._dress(use.question, language), _say(random.choice(sentences.NO_TOOL[language]))],
        )

    def known(self, language: str) -> Conversation:
        """Small talk, knowledge or code, though tools are offered."""
        if not self._offered:
            for _ in range(self.random.choice([1, 2, 3, 4, 6])):
                self.offer(self._new())
        question, answer = self._known(language)
        return Conversation("known", language, [_ask(question), _say(answer)])

    def _known(self, language: str) -> tuple[str, str]:
        """A question that needs no tool, and its answer: of the list, or for some JSON or code."""
        if language in written.LANGUAGES and self.random.random() < 0.4:
            return written.task(self.random, language)
        return self.random.choice(sentences.KNOWN[language])

    def unclear(self, language: str) -> Conversation:
        """What a tool needs was not said: ask back."""
        known = self._offered if self._frozen else [tool.names[0] for tool in self._tools]
        names = [name for name in sentences.UNCLEAR if name in known]
        if not names or language not in ("en", "zh"):
            raise Unfit
        name = self.random.choice(names)
        self.offer(_BY_NAME[name])
        question, answer = sentences.UNCLEAR[name][language]
        return Conversation("unclear", language, [_ask(question), _say(answer)])

    def longer(self, language: str) -> Conversation:
        """A second question behind the first: thanks, the same for another value, another tool, or no tool."""
        random, invented = self.random, self._any(language)
        use = self.use(invented, language)
        messages = [_ask(use.question), _calls(use.call), _told(use.result), _say(use.answer)]
        slots = [
            key
            for key in use.values
            if invented.slots[key][2].schema["type"] in ("string", "integer", "number") and use.values[key].text
        ]
        kind = random.choice(["thanks", "again", "again", "other", "known"])
        if kind == "again" and slots:
            slot = random.choice(slots)
            value = invented.slots[slot][2].draw(random, language)
            if value.text == use.values[slot].text:
                raise Unfit
            again = self._used(use.offered, language, "-", {**use.values, slot: value})
            messages += [
                _ask(random.choice(sentences.AGAIN[language]).format(value=value.text)),
                _calls(again.call),
                _told(again.result),
                _say(again.answer),
            ]
        elif kind == "other":
            other = self.use(self._any(language), language)
            messages += [_ask(other.question), _calls(other.call), _told(other.result), _say(other.answer)]
        else:
            thanks = kind == "thanks"
            question, answer = random.choice(sentences.THANKS[language]) if thanks else self._known(language)
            messages += [_ask(question), _say(answer)]
        return Conversation("longer", language, messages)

    def _dress(self, question: str, language: str) -> Message:
        """The question as people write it: with words in front of it or behind it, now and then."""
        random = self.random
        if random.random() < 0.25 and language in sentences.IN_FRONT:
            front = random.choice(sentences.IN_FRONT[language])
            lower = (
                front.endswith((": ", ", "))
                and question[:2].istitle()
                and question.split()[0] in ("What", "How", "Is", "Find", "Give", "Tell", "Which", "Where")
            )
            question = front + (question[0].lower() + question[1:] if lower else question)
            if random.random() < 0.3:
                question += random.choice(sentences.BEHIND[language])
        return _ask(question)

    # --- Groups -----------------------------------------------------------------------------------

    def group(self, size: int = 6) -> Group:
        """A group of ``size`` conversations about the same tools."""
        random = self.random
        while True:
            self._offered, self._frozen = {}, False
            try:
                first = self._conversation(_FIRST)
            except Unfit:
                continue
            break
        conversations = [first]
        if not self._frozen:
            for _ in range(random.choice([0, 0, 1, 1, 2, 2, 3, 4, 5])):
                self.offer(self._new())
        self._frozen = True
        for _ in range(60):
            if len(conversations) == size:
                break
            try:
                more = self._conversation(_KINDS)
            except Unfit:
                continue
            if all(more.messages[0] != other.messages[0] for other in conversations):
                conversations.append(more)
        tools = [each.tool for each in self._offered.values()]
        random.shuffle(tools)
        return Group(self._system(), tools, conversations)

    def _conversation(self, kinds: dict[str, int]) -> Conversation:
        kind = self.random.choices(list(kinds), list(kinds.values()))[0]
        conversation: Conversation = getattr(self, kind)(self._language())
        return conversation

    def plain(self, size: int = 4) -> Group:
        """A group without tools."""
        conversations = []
        for _ in range(size):
            language = self._language()
            blind = sentences.BLIND.get(language, [])
            question, answer = (
                self.random.choice(blind) if blind and self.random.random() < 0.1 else self._known(language)
            )
            conversations.append(Conversation("plain", language, [_ask(question), _say(answer)]))
        return Group(self._system(), [], conversations)

    def _language(self) -> str:
        return self.random.choices(["en", "zh", "es", "fr", "de"], [50, 17, 11, 11, 11])[0]

    def _system(self) -> str | None:
        return self.random.choice(sentences.SYSTEMS) if self.random.random() < 0.35 else None


# How often each kind is drawn; the first of a group decides which tools are offered, so chains come first.
_KINDS = {
    "single": 40,
    "many": 10,
    "several": 8,
    "chain": 10,
    "mistake": 6,
    "misspelt": 4,
    "listed": 6,
    "failure": 4,
    "repeated": 2,
    "unsuitable": 7,
    "known": 10,
    "unclear": 3,
    "longer": 7,
}
_FIRST = {**_KINDS, "chain": 40, "unclear": 4}


class _Fields(dict[str, Any]):
    """Fields of an answer; a result that is one value answers to any name."""

    def __missing__(self, key: str) -> Any:
        return self["value"] if "value" in self else next(iter(self.values()), "")


def groups(seed: int, validation: bool = False) -> Iterator[Group]:
    """Groups without end: one in six without tools. The tools of the ``validation`` are in no other group."""
    maker = Maker(seed, [tool for tool in TOOLS if (tool.names[0] in VALIDATION) == validation])
    while True:
        for _ in range(5):
            yield maker.group()
        yield maker.plain()

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

from . import sentences
from .tools import TOOLS, Invented
from .values import Value, joined

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
    ]
)
# Areas whose tools cannot answer each other's questions, near as they are: the hard cases of "no tool fits".
_NEAR = frozenset(["dates", "file", "geometry", "health", "home", "physics", "random", "sport", "statistics", "todo"])
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

    def _any(self) -> Invented:
        """A tool; one of the group's when that is complete."""
        if self._frozen:
            return self.random.choice(list(self._offered.values())).invented
        return self.random.choice(self._tools)

    def _named(self, name: str) -> Invented:
        return _BY_NAME[name]

    # --- Kinds of conversations -------------------------------------------------------------------

    def single(self, language: str) -> Conversation:
        """One call, one result, one answer."""
        use = self.use(self._any(), language)
        return Conversation(
            "single",
            language,
            [self._dress(use.question, language), _calls(use.call), _told(use.result), _say(use.answer)],
        )

    def many(self, language: str) -> Conversation:
        """Several calls of one tool in one answer: the question lists values for one of its slots."""
        random, invented = self.random, self._any()
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
        invented = self._any()
        first = self.use(invented, language)
        second = self.use(invented if self.random.random() < 0.4 and first.values else self._any(), language)
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
        if language not in ("en", "zh") or self._named("compute") not in self._tools:
            raise Unfit
        kind = self.random.choice(
            [
                self._customer_weather,
                self._first_file,
                self._share_in_money,
                self._travel_time,
                self._sum_then_root,
                self._root_sum,
                self._price_of_many,
                self._warmer,
                self._headline_translated,
                self._hours_between,
                self._found_then_read,
            ]
        )
        return Conversation("chain", language, kind(language == "zh", language))

    def _step(self, name: str, language: str, /, **values: Any) -> Use:
        """A use with these arguments; texts are those of the values."""
        invented = self._named(name)
        offered = self.offer(invented)
        given = {key: value if isinstance(value, Value) else Value(value, str(value)) for key, value in values.items()}
        return self._used(offered, language, "-", given)

    def _draw(self, name: str, slot: str, language: str) -> Value:
        return self._named(name).slots[slot][2].draw(self.random, language)

    def _customer_weather(self, zh: bool, language: str) -> list[Message]:
        customer = self.random.randint(100, 9999)
        self.offer(self._named("customer_record")), self.offer(self._named("weather_now"))
        record = self._step("customer_record", language, customer_id=customer)
        city = json.loads(record.result)["city"]
        weather = self._step("weather_now", language, city=city)
        ask = (
            f"客户 {customer} 所在的城市天气怎么样？"
            if zh
            else f"What's the weather like where customer {customer} lives?"
        )
        return [
            _ask(ask),
            _calls(record.call),
            _told(record.result),
            _calls(weather.call),
            _told(weather.result),
            _say(weather.answer),
        ]

    def _first_file(self, zh: bool, language: str) -> list[Message]:
        folder = self._draw("list_folder", "folder", language)
        self.offer(self._named("list_folder")), self.offer(self._named("open_text"))
        listing = self._step("list_folder", language, folder=folder)
        name = json.loads(listing.result)["files"][0]
        reading = self._step("open_text", language, path=f"{folder.text}/{name}")
        ask = (
            f"列出 {folder.text}，然后读第一个文件。"
            if zh
            else f"Open the first file in {folder.text} and tell me what it says."
        )
        return [
            _ask(ask),
            _calls(listing.call),
            _told(listing.result),
            _calls(reading.call),
            _told(reading.result),
            _say(reading.answer),
        ]

    def _found_then_read(self, zh: bool, language: str) -> list[Message]:
        folder, pattern = self._draw("grep_text", "folder", language), self._draw("grep_text", "pattern", language)
        self.offer(self._named("grep_text")), self.offer(self._named("open_text"))
        found = self._step("grep_text", language, pattern=pattern, folder=folder)
        reading = self._step("open_text", language, path="notes.txt")
        ask = (
            f"找出 {folder.text} 里含有“{pattern.text}”的文件并读出来。"
            if zh
            else f'Find the file in {folder.text} that has "{pattern.text}" in it, and read it to me.'
        )
        return [
            _ask(ask),
            _calls(found.call),
            _told(found.result),
            _calls(reading.call),
            _told(reading.result),
            _say(reading.answer),
        ]

    def _share_in_money(self, zh: bool, language: str) -> list[Message]:
        ticker, target = self._draw("share_quote", "ticker", language), self.random.choice(["EUR", "CNY", "GBP", "CHF"])
        self.offer(self._named("share_quote")), self.offer(self._named("money_exchange"))
        quote = self._step("share_quote", language, ticker=ticker)
        money = self._step(
            "money_exchange", language, amount=json.loads(quote.result)["price"], source="USD", target=target
        )
        ask = (
            f"一股 {ticker.text} 合多少 {target}？" if zh else f"What does one share of {ticker.text} cost in {target}?"
        )
        return [
            _ask(ask),
            _calls(quote.call),
            _told(quote.result),
            _calls(money.call),
            _told(money.result),
            _say(money.answer),
        ]

    def _travel_time(self, zh: bool, language: str) -> list[Message]:
        start, end, speed = (
            self._draw("route_length", "origin", language),
            self._draw("route_length", "target", language),
            self.random.choice([60, 80, 90, 100, 120]),
        )
        self.offer(self._named("route_length")), self.offer(self._named("compute"))
        road = self._step("route_length", language, origin=start, target=end)
        hours = self._step("compute", language, expression=f"{json.loads(road.result)['km']} / {speed}")
        ask = (
            f"从{start.text}到{end.text}，以每小时 {speed} 公里行驶要几个小时？"
            if zh
            else f"How many hours does it take from {start.text} to {end.text} at {speed} km/h?"
        )
        say = f"大约需要 {hours.result} 小时。" if zh else f"It takes {hours.result} hours."
        return [_ask(ask), _calls(road.call), _told(road.result), _calls(hours.call), _told(hours.result), _say(say)]

    def _sum_then_root(self, zh: bool, language: str) -> list[Message]:
        left, right = self._draw("plus", "left", language), self._draw("plus", "right", language)
        self.offer(self._named("plus")), self.offer(self._named("square_root"))
        total = self._step("plus", language, left=left, right=right)
        root = self._step("square_root", language, x=json.loads(total.result))
        value = self._value(root.result)
        ask = (
            f"先把 {left.text} 和 {right.text} 相加，再开平方。"
            if zh
            else f"Add {left.text} and {right.text}, then take the square root of the sum."
        )
        return [
            _ask(ask),
            _calls(total.call),
            _told(total.result),
            _calls(root.call),
            _told(root.result),
            _say(f"结果是 {value}。" if zh else f"The result is {value}."),
        ]

    def _root_sum(self, zh: bool, language: str) -> list[Message]:
        left, right = self._draw("square_root", "x", language), self._draw("square_root", "x", language)
        self.offer(self._named("square_root")), self.offer(self._named("plus"))
        roots = [self._step("square_root", language, x=each) for each in (left, right)]
        values = [self._value(root.result) for root in roots]
        total = self._step("plus", language, left=values[0], right=values[1])
        ask = (
            f"{left.text} 的平方根加 {right.text} 的平方根是多少？"
            if zh
            else f"What do the square roots of {left.text} and {right.text} add up to?"
        )
        return [
            _ask(ask),
            *self._parallel(roots),
            _calls(total.call),
            _told(total.result),
            _say(f"结果是 {total.result}。" if zh else f"They add up to {total.result}."),
        ]

    def _price_of_many(self, zh: bool, language: str) -> list[Message]:
        item, count = self._draw("article_search", "query", language), self.random.randint(2, 12)
        self.offer(self._named("article_search")), self.offer(self._named("times"))
        price = self._step("article_search", language, query=item)
        total = self._step("times", language, left=count, right=json.loads(price.result)["price"])
        ask = f"{count} 个{item.text}一共多少钱？" if zh else f"What do {count} of the {item.text} cost together?"
        return [
            _ask(ask),
            _calls(price.call),
            _told(price.result),
            _calls(total.call),
            _told(total.result),
            _say(f"一共 {total.result}。" if zh else f"Together they cost {total.result}."),
        ]

    def _warmer(self, zh: bool, language: str) -> list[Message]:
        first, second = self._draw("weather_now", "city", language), self._draw("weather_now", "city", language)
        if first == second:
            raise Unfit
        self.offer(self._named("weather_now")), self.offer(self._named("compute"))
        both = [self._step("weather_now", language, city=city) for city in (first, second)]
        here, there = (json.loads(use.result)["temperature"] for use in both)
        sign = f"{here} - {there}" if there >= 0 else f"{here} - ({there})"
        difference = self._step("compute", language, expression=sign)
        ask = (
            f"{first.text}比{second.text}高几度？"
            if zh
            else f"How many degrees warmer is {first.text} than {second.text}?"
        )
        say = f"温差是 {difference.result} 度。" if zh else f"The difference is {difference.result} degrees."
        return [_ask(ask), *self._parallel(both), _calls(difference.call), _told(difference.result), _say(say)]

    def _headline_translated(self, zh: bool, language: str) -> list[Message]:
        subject, target = (
            self._draw("headlines", "subject", language),
            self._draw("translate_phrase", "language", language),
        )
        self.offer(self._named("headlines")), self.offer(self._named("translate_phrase"))
        news = self._step("headlines", language, subject=subject)
        translated = self._step("translate_phrase", language, text=json.loads(news.result)["headline"], language=target)
        ask = (
            f"把关于{subject.text}的最新标题翻译成{target.text}。"
            if zh
            else f"Translate the latest headline about {subject.text} into {target.text}."
        )
        return [
            _ask(ask),
            _calls(news.call),
            _told(news.result),
            _calls(translated.call),
            _told(translated.result),
            _say(translated.answer),
        ]

    def _hours_between(self, zh: bool, language: str) -> list[Message]:
        start, end = self._draw("days_apart", "start", language), self._draw("days_apart", "end", language)
        self.offer(self._named("days_apart")), self.offer(self._named("compute"))
        days = self._step("days_apart", language, start=start, end=end)
        hours = self._step("compute", language, expression=f"{json.loads(days.result)['days']} * 24")
        ask = (
            f"{start.text}到{end.text}之间有多少小时？"
            if zh
            else f"How many hours lie between {start.text} and {end.text}?"
        )
        return [
            _ask(ask),
            _calls(days.call),
            _told(days.result),
            _calls(hours.call),
            _told(hours.result),
            _say(f"共 {hours.result} 小时。" if zh else f"There are {hours.result} hours."),
        ]

    @staticmethod
    def _value(result: str) -> Any:
        read = json.loads(result)
        return read["root"] if isinstance(read, dict) else read

    def mistake(self, language: str) -> Conversation:
        """A wrong call, the executor's own words about it, the right call. The wrong one is not learnt."""
        random, use = self.random, self.use(self._any(), language)
        arguments, required = dict(use.call.arguments), use.offered.tool.parameters["required"]
        name = use.call.name
        enums = [key for key in arguments if "enum" in use.offered.tool.parameters["properties"][key]]
        kind = random.choice(["name", "missing", "enum"])
        if kind == "missing" and required:
            del arguments[random.choice(required)]
        elif kind == "enum" and enums:
            arguments[enums[0]] = "automatic"
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
        random, invented = self.random, self._any()
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

    def failure(self, language: str) -> Conversation:
        """A tool that fails, or was not allowed: said honestly, not tried again."""
        use, random = self.use(self._any(), language), self.random
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
        use = self.use(self._any(), language)
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
            for invented in random.sample(self._tools, random.choice([1, 1, 1, 2, 3])):
                self.offer(invented)
            self._frozen = True
        offered = [each.invented for each in self._offered.values()]
        taken = frozenset[str]().union(*(each.topics for each in offered))
        others = [each for each in self._tools if each not in offered and language in each.asks]
        near = [each for each in others if each.topics & taken and each.topics & taken <= _NEAR]
        foreign = [each for each in others if not each.topics & taken]
        if taken & {"search", "code", "calculation"}:  # those can answer most things
            foreign = [each for each in foreign if each.topics & _DEEDS]
        elif near and random.random() < 0.5:
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
            for invented in self.random.sample(self._tools, self.random.choice([1, 2, 3, 4, 6])):
                self.offer(invented)
        question, answer = self.random.choice(sentences.KNOWN[language])
        return Conversation("known", language, [_ask(question), _say(answer)])

    def unclear(self, language: str) -> Conversation:
        """What a tool needs was not said: ask back."""
        known = self._offered if self._frozen else [tool.names[0] for tool in self._tools]
        names = [name for name in sentences.UNCLEAR if name in known]
        if not names or language not in ("en", "zh"):
            raise Unfit
        name = self.random.choice(names)
        self.offer(self._named(name))
        question, answer = sentences.UNCLEAR[name][language]
        return Conversation("unclear", language, [_ask(question), _say(answer)])

    def longer(self, language: str) -> Conversation:
        """A second question behind the first: thanks, the same for another value, another tool, or no tool."""
        random, invented = self.random, self._any()
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
            other = self.use(self._any(), language)
            messages += [_ask(other.question), _calls(other.call), _told(other.result), _say(other.answer)]
        else:
            question, answer = random.choice((sentences.THANKS if kind == "thanks" else sentences.KNOWN)[language])
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
            for invented in random.sample(self._tools, random.choice([0, 0, 1, 1, 2, 2, 3, 4, 5])):
                self.offer(invented)
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
            pairs = sentences.KNOWN[language] + sentences.BLIND.get(language, [])
            question, answer = self.random.choice(pairs)
            conversations.append(Conversation("plain", language, [_ask(question), _say(answer)]))
        return Group(self._system(), [], conversations)

    def _language(self) -> str:
        return self.random.choices(["en", "zh", "es", "fr", "de"], [70, 20, 4, 3, 3])[0]

    def _system(self) -> str | None:
        return self.random.choice(sentences.SYSTEMS) if self.random.random() < 0.35 else None


# How often each kind is drawn; the first of a group decides which tools are offered, so chains come first.
_KINDS = {
    "single": 30,
    "many": 10,
    "several": 8,
    "chain": 10,
    "mistake": 5,
    "misspelt": 3,
    "failure": 4,
    "repeated": 2,
    "unsuitable": 24,
    "known": 9,
    "unclear": 4,
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

"""Kinds of argument values: how each is written in a call, and in a question of either language.

A kind draws a ``Value`` from a random generator. What a call says is what the question says wherever the schema does
not ask for something else: names stay in the language of the question, numbers keep their digits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

LANGUAGES = ("en", "zh", "es", "fr", "de")


@dataclass(frozen=True)
class Value:
    """One argument: ``json`` in a call, ``text`` in a sentence."""

    json: Any
    text: str


@dataclass(frozen=True)
class Kind:
    """A kind of values: the schema of its argument, and how one is drawn for a language."""

    schema: dict[str, Any]
    draw: Callable[[Random, str], Value]


def _pair(entry: str, language: str) -> str:
    """``English|Chinese``; other languages take the English form."""
    english, _, chinese = entry.partition("|")
    return chinese or english if language == "zh" else english


def words(*entries: str) -> Kind:
    """Text from a list of ``English|Chinese``; the argument has the question's own words."""

    def draw(random: Random, language: str) -> Value:
        text = _pair(random.choice(entries), language)
        return Value(text, text)

    return Kind({"type": "string"}, draw)


def choice(*entries: str) -> Kind:
    """One of an enumeration; each entry is ``argument``, ``argument=English`` or ``argument=English|Chinese``."""
    table = {}
    for entry in entries:
        argument, _, spoken = entry.partition("=")
        table[argument] = spoken or argument

    def draw(random: Random, language: str) -> Value:
        argument = random.choice(list(table))
        return Value(argument, _pair(table[argument], language))

    return Kind({"type": "string", "enum": list(table)}, draw)


def integer(low: int, high: int) -> Kind:
    """A whole number."""

    def draw(random: Random, language: str) -> Value:
        number = random.randint(low, high)
        return Value(number, str(number))

    return Kind({"type": "integer"}, draw)


def number(low: float, high: float, digits: int = 1) -> Kind:
    """A number, whole half of the time."""

    def draw(random: Random, language: str) -> Value:
        whole = random.random() < 0.5 and high - low > 3
        drawn = random.randint(int(low) + 1, int(high)) if whole else round(random.uniform(low, high), digits)
        return Value(drawn, str(drawn))

    return Kind({"type": "number"}, draw)


def amount(low: int, high: int) -> Kind:
    """A sum of money or another large number; a comma between thousands, now and then, is the question's own."""

    def draw(random: Random, language: str) -> Value:
        drawn = random.randint(low, high)
        drawn = drawn if drawn < 1000 else round(drawn, -random.choice([0, 1, 2]))
        grouped = language == "en" and drawn >= 1000 and random.random() < 0.3
        return Value(drawn, f"{drawn:,}" if grouped else str(drawn))

    return Kind({"type": "number"}, draw)


def percent(low: float, high: float) -> Kind:
    """A share that the schema wants in percent."""

    def draw(random: Random, language: str) -> Value:
        drawn = random.choice([round(random.uniform(low, high), 1), random.randint(int(low) + 1, int(high))])
        return Value(drawn, f"{drawn}%")

    return Kind({"type": "number"}, draw)


def fraction(low: float, high: float) -> Kind:
    """A share that the question says in percent and the schema wants as a fraction of one."""

    def draw(random: Random, language: str) -> Value:
        drawn = random.choice([round(random.uniform(low, high), 1), random.randint(int(low) + 1, int(high))])
        return Value(round(drawn / 100, 6), f"{drawn}%")

    return Kind({"type": "number"}, draw)


def spoken_number(**spoken: int) -> Kind:
    """A whole number that the question says as a word: ``monthly=12``."""

    def draw(random: Random, language: str) -> Value:
        word = random.choice(list(spoken))
        return Value(spoken[word], word)

    return Kind({"type": "integer"}, draw)


def flag() -> Kind:
    """Yes, when the question says so in the words around it."""
    return Kind({"type": "boolean"}, lambda random, language: Value(True, ""))


def several(kind: Kind, low: int, high: int) -> Kind:
    """A list."""

    def draw(random: Random, language: str) -> Value:
        values = [kind.draw(random, language) for _ in range(random.randint(low, high))]
        if kind.schema["type"] == "string":
            values = list({value.text: value for value in values}.values())
        texts = [value.text for value in values]
        bracketed = kind.schema["type"] != "string" and random.random() < 0.3
        text = f"[{', '.join(texts)}]" if bracketed else joined(texts, language)
        return Value([value.json for value in values], text)

    return Kind({"type": "array", "items": dict(kind.schema)}, draw)


def record(spoken: str, spoken_zh: str, **fields: Kind) -> Kind:
    """An object; ``spoken`` says it with a placeholder for each field."""

    def draw(random: Random, language: str) -> Value:
        values = {name: kind.draw(random, language) for name, kind in fields.items()}
        template = spoken_zh if language == "zh" else spoken
        text = template.format(**{name: value.text for name, value in values.items()})
        return Value({name: value.json for name, value in values.items()}, text)

    properties = {name: dict(kind.schema) for name, kind in fields.items()}
    return Kind({"type": "object", "properties": properties, "required": list(fields)}, draw)


def joined(texts: list[str], language: str) -> str:
    """A list in a sentence."""
    if len(texts) == 1:
        return texts[0]
    if language == "zh":
        return "、".join(texts[:-1]) + "和" + texts[-1]
    last = {"en": "and", "es": "y", "fr": "et", "de": "und"}[language]
    return f"{', '.join(texts[:-1])} {last} {texts[-1]}"


_MONTHS = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
]


def date() -> Kind:
    """A day that the schema wants as YYYY-MM-DD; an English question may write it out."""

    def draw(random: Random, language: str) -> Value:
        year, month, day = random.choice([2025, 2026, 2027]), random.randint(1, 12), random.randint(1, 28)
        iso = f"{year}-{month:02}-{day:02}"
        if language == "zh" and random.random() < 0.4:
            return Value(iso, f"{year}年{month}月{day}日")
        written = language == "en" and random.random() < 0.4
        return Value(iso, f"{_MONTHS[month - 1]} {day}, {year}" if written else iso)

    return Kind({"type": "string", "format": "date"}, draw)


def clock_time() -> Kind:
    """A time of day, HH:MM."""

    def draw(random: Random, language: str) -> Value:
        text = f"{random.randint(6, 22):02}:{random.choice(['00', '10', '15', '30', '45'])}"
        return Value(text, text)

    return Kind({"type": "string"}, draw)


def code(pattern: str) -> Kind:
    """An identifier: ``#`` is a digit, ``@`` a capital letter."""

    def draw(random: Random, language: str) -> Value:
        replace = {"#": lambda: str(random.randint(1, 9)), "@": lambda: random.choice("ABCDEFGHJKLMNPRSTUVWXYZ")}
        text = "".join(replace[sign]() if sign in replace else sign for sign in pattern)
        return Value(text, text)

    return Kind({"type": "string"}, draw)


def sum_of_numbers() -> Kind:
    """Arithmetic: the question says it in words or signs, the argument has it as an expression."""

    def draw(random: Random, language: str) -> Value:
        a, b, c = random.randint(2, 999), random.randint(2, 99), random.randint(2, 30)
        x, y = round(random.uniform(1, 99), random.randint(1, 5)), round(random.uniform(1, 99), random.randint(1, 4))
        zh = language == "zh"
        forms = [
            (f"{a} * {b}", f"{a} times {b}", f"{a} 乘以 {b}"),
            (f"{a} * {b}", f"the product of {a} and {b}", f"{a} 和 {b} 的乘积"),
            (f"{a} * {b}", f"{a} × {b}", f"{a}×{b}"),
            (f"{a} * {b}", f"{a} multiplied by {b}", f"{a}乘{b}"),
            (f"{a} + {b}", f"{a} plus {b}", f"{a} 加 {b}"),
            (f"{a} + {b} + {c}", f"the sum of {a}, {b} and {c}", f"{a}、{b} 与 {c} 之和"),
            (f"{a} - {b}", f"{a} minus {b}", f"{a} 减 {b}"),
            (f"{a} / {b}", f"{a} divided by {b}", f"{a} 除以 {b}"),
            (f"({a} + {b}) * {c}", f"({a} + {b}) * {c}", f"({a} + {b}) * {c}"),
            (f"{a} * {b} - {c}", f"{a} * {b} - {c}", f"{a} * {b} - {c}"),
            (f"({a} - {b}) / {c}", f"the difference of {a} and {b}, divided by {c}", f"{a} 与 {b} 的差再除以 {c}"),
            (f"{b} ** 2", f"{b} squared", f"{b} 的平方"),
            (f"{c} ** 3", f"{c} to the power of 3", f"{c} 的三次方"),
            (f"sqrt({a})", f"√{a}", f"√{a}"),
            (f"sqrt({x}) + sqrt({y})", f"the square root of {x} plus the square root of {y}",
             f"{x} 的平方根加上 {y} 的平方根"),
            (f"sqrt({x}) - sqrt({c})", f"√{x} - √{c}", f"{x}的平方根减去{c}的平方根"),
            (f"sqrt({a}) * {c}", f"{c} times the square root of {a}", f"{a} 的平方根乘以 {c}"),
            (f"{x} * {c}", f"{x} * {c}", f"{x} 乘以 {c}"),
            (f"{a} * {b} / 100", f"{b} percent of {a}", f"{a} 的百分之 {b}"),
        ]  # fmt: skip
        expression, english, chinese = random.choice(forms)
        return Value(expression, chinese if zh else english)

    return Kind({"type": "string"}, draw)


CITY = words(
    "Oslo|奥斯陆", "Lima|利马", "Hangzhou|杭州", "Cairo|开罗", "Madrid|马德里", "Chengdu|成都", "Toronto|多伦多",
    "Nairobi|内罗毕", "Osaka|大阪", "Lyon|里昂", "Xi'an|西安", "Denver|丹佛", "Porto|波尔图", "Harbin|哈尔滨",
    "Hanoi|河内", "Bergen|卑尔根", "Suzhou|苏州", "Quito|基多", "New York|纽约", "Paris|巴黎", "Beijing|北京",
    "Berlin|柏林", "Shanghai|上海", "São Paulo|圣保罗", "Kuala Lumpur|吉隆坡", "Cape Town|开普敦", "Guangzhou|广州",
    "Zurich|苏黎世", "Mumbai|孟买", "San Diego, California|圣地亚哥", "Austin, TX|奥斯汀", "Boston|波士顿",
)  # fmt: skip
PERSON = words(
    "Mia Torres|李娜", "Omar Haddad|王强", "Jonas Berg|赵敏", "Priya Nair|陈晨", "Ken Ito|刘洋", "Elsa Kran|周婷",
    "Tom Reed|孙磊", "Ana Silva|吴迪", "Dr. Weber|张医生", "Lucas|小明", "Fatima|小红", "Grandma|奶奶",
)  # fmt: skip
TOPIC = words(
    "solar panels|太阳能板", "sourdough bread|天然酵母面包", "black holes|黑洞", "electric buses|电动公交",
    "coral reefs|珊瑚礁", "the history of tea|茶的历史", "bird migration|候鸟迁徙", "quantum dots|量子点",
    "bamboo flooring|竹地板", "ocean plastic|海洋塑料", "remote work|远程办公", "volcanoes|火山",
)  # fmt: skip
ITEM = words(
    "desk lamp|台灯", "wool scarf|羊毛围巾", "USB cable|数据线", "kettle|电热水壶", "yoga mat|瑜伽垫", "backpack|双肩包",
    "notebook|笔记本", "rice cooker|电饭煲", "tent|帐篷", "running shoes|跑鞋", "water bottle|水杯",
)  # fmt: skip
MESSAGE = words(
    "I will be ten minutes late|我会晚到十分钟", "the report is finished|报告写完了", "dinner is at seven|七点吃晚饭",
    "please call me back|请给我回电话", "happy birthday|生日快乐", "the meeting is moved to Friday|会议改到周五",
    "can you buy milk?|能买点牛奶吗？", "thanks for your help|谢谢你的帮助",
)  # fmt: skip
SENTENCE = words(
    "Where is the station?", "I would like a cup of coffee", "The garden is beautiful in spring", "See you tomorrow",
    "Could you help me with my bags?", "The train was late again",
)  # fmt: skip
CURRENCY = words("USD", "EUR", "JPY", "CNY", "GBP", "CHF", "SEK", "INR", "BRL")
FILE = words(
    "notes.txt", "budget.csv", "src/main.py", "docs/readme.md", "/home/lee/todo.txt", "config.yaml", "report_2025.pdf",
    "data/sales.csv", "会议记录.txt",
)  # fmt: skip
FOLDER = words("/home/lee/docs", "src", "/var/data", "projects/blue", "/tmp/out", "music", "photos/2025")
COUNTRY = words(
    "Portugal|葡萄牙",
    "Kenya|肯尼亚",
    "Chile|智利",
    "Vietnam|越南",
    "Canada|加拿大",
    "Egypt|埃及",
    "Norway|挪威",
    "Brazil|巴西",
)
TICKER = words("ACME", "NVRX", "TLQ", "ORBT", "ZENK", "MPLX")
ROOM = words("kitchen|厨房", "living room|客厅", "bedroom|卧室", "hallway|走廊", "office|书房", "garage|车库")
NUMBERS = several(number(1, 500), 3, 7)
LONG_NUMBERS = several(integer(1, 999), 10, 28)

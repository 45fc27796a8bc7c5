"""Questions that take two steps: a second call that needs what the first one gave."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .conversations import Maker, Use


@dataclass(frozen=True)
class Chain:
    """``first`` are the calls of the first answer, ``second`` the call of the next. ``ask`` and ``say`` are in English
    and Chinese; where nothing is to say, the second call's own answer is.
    """

    first: list[Use]
    second: Use
    ask: tuple[str, str]
    say: tuple[str, str] | None = None


def _read(use: Use, key: str) -> Any:
    """A field of a result that is an object, or the result itself."""
    value = json.loads(use.result)
    return value[key] if isinstance(value, dict) else value


def _weather_of_customer(make: Maker, language: str) -> Chain:
    customer = make.random.randint(100, 9999)
    make.needs("customer_record", "weather_now")
    record = make.step("customer_record", language, customer_id=customer)
    weather = make.step("weather_now", language, city=_read(record, "city"))
    ask = f"What's the weather like where customer {customer} lives?", f"客户 {customer} 所在的城市天气怎么样？"
    return Chain([record], weather, ask)


def _first_file(make: Maker, language: str) -> Chain:
    folder = make.draw("list_folder", "folder", language)
    make.needs("list_folder", "open_text")
    listing = make.step("list_folder", language, folder=folder)
    reading = make.step("open_text", language, path=f"{folder.text}/{_read(listing, 'files')[0]}")
    ask = (
        f"Open the first file in {folder.text} and tell me what it says.",
        f"列出 {folder.text}，然后读第一个文件。",
    )
    return Chain([listing], reading, ask)


def _share_in_money(make: Maker, language: str) -> Chain:
    ticker, target = make.draw("share_quote", "ticker", language), make.random.choice(["EUR", "CNY", "GBP", "CHF"])
    make.needs("share_quote", "money_exchange")
    quote = make.step("share_quote", language, ticker=ticker)
    money = make.step("money_exchange", language, amount=_read(quote, "price"), source="USD", target=target)
    ask = f"What does one share of {ticker.text} cost in {target}?", f"一股 {ticker.text} 合多少 {target}？"
    return Chain([quote], money, ask)


def _travel_time(make: Maker, language: str) -> Chain:
    start, end = make.draw("route_length", "origin", language), make.draw("route_length", "target", language)
    speed = make.random.choice([60, 80, 90, 100, 120])
    make.needs("route_length", "compute")
    road = make.step("route_length", language, origin=start, target=end)
    hours = make.step("compute", language, expression=f"{_read(road, 'km')} / {speed}")
    ask = (
        f"How many hours does it take from {start.text} to {end.text} at {speed} km/h?",
        f"从{start.text}到{end.text}，以每小时 {speed} 公里行驶要几个小时？",
    )
    return Chain([road], hours, ask, (f"It takes {hours.result} hours.", f"大约需要 {hours.result} 小时。"))


def _sum_then_root(make: Maker, language: str) -> Chain:
    left, right = make.draw("plus", "left", language), make.draw("plus", "right", language)
    make.needs("plus", "square_root")
    total = make.step("plus", language, left=left, right=right)
    root = make.step("square_root", language, x=_read(total, ""))
    ask = make.random.choice(
        [
            (
                f"Add {left.text} and {right.text}, then take the square root of the sum.",
                f"先把 {left.text} 和 {right.text} 相加，再开平方。",
            ),
            (
                f"What is the square root of the sum of {left.text} and {right.text}?",
                f"{left.text} 加 {right.text} 的和，开平方是多少？",
            ),
        ]
    )
    value = _read(root, "root")
    return Chain([total], root, ask, (f"The result is {value}.", f"结果是 {value}。"))


def _of_two_roots(make: Maker, language: str) -> Chain:
    left, right = make.draw("square_root", "x", language), make.draw("square_root", "x", language)
    name, asks = make.random.choice([("plus", _SUMS), ("plus", _SUMS), ("times", _PRODUCTS)])
    make.needs("square_root", name)
    roots = [make.step("square_root", language, x=each) for each in (left, right)]
    last = make.step(name, language, left=_read(roots[0], "root"), right=_read(roots[1], "root"))
    english, chinese = make.random.choice(asks)
    ask = english.format(left.text, right.text), chinese.format(left.text, right.text)
    return Chain(roots, last, ask, (f"The result is {last.result}.", f"结果是 {last.result}。"))


_SUMS = [
    ("What do the square roots of {} and {} add up to?", "{} 的平方根加 {} 的平方根是多少？"),
    ("The root of {} plus the root of {}, please.", "请算出 {} 和 {} 各自的平方根，再相加。"),
    ("Take the square root of {}, take that of {}, and add the two.", "先求{}和{}的平方根，然后求两个平方根之和。"),
    ("√{} + √{}, in numbers?", "√{} 与 √{} 的和是多少？"),
    ("How much is the square root of {} together with the one of {}?", "{}的平方根和{}的平方根加起来等于多少"),
]
_PRODUCTS = [
    ("Multiply the square root of {} by the square root of {}.", "{} 的平方根乘以 {} 的平方根是多少？"),
    ("What is the product of the roots of {} and {}?", "求{}和{}的平方根之积。"),
]


def _price_of_many(make: Maker, language: str) -> Chain:
    item, count = make.draw("article_search", "query", language), make.random.randint(2, 12)
    make.needs("article_search", "times")
    price = make.step("article_search", language, query=item)
    total = make.step("times", language, left=count, right=_read(price, "price"))
    ask = f"What do {count} of the {item.text} cost together?", f"{count} 个{item.text}一共多少钱？"
    return Chain([price], total, ask, (f"Together they cost {total.result}.", f"一共 {total.result}。"))


def _warmer(make: Maker, language: str) -> Chain:
    first, second = make.draw("weather_now", "city", language), make.draw("weather_now", "city", language)
    make.different(first, second)
    make.needs("weather_now", "compute")
    both = [make.step("weather_now", language, city=city) for city in (first, second)]
    here, there = (_read(use, "temperature") for use in both)
    expression = f"{here} - {there}" if there >= 0 else f"{here} - ({there})"
    difference = make.step("compute", language, expression=expression)
    ask = (
        f"How many degrees warmer is {first.text} than {second.text}?",
        f"{first.text}比{second.text}高几度？",
    )
    say = f"The difference is {difference.result} degrees.", f"温差是 {difference.result} 度。"
    return Chain(both, difference, ask, say)


def _headline_translated(make: Maker, language: str) -> Chain:
    subject = make.draw("headlines", "subject", language)
    target = make.draw("translate_phrase", "language", language)
    make.needs("headlines", "translate_phrase")
    news = make.step("headlines", language, subject=subject)
    translated = make.step("translate_phrase", language, text=_read(news, "headline"), language=target)
    ask = (
        f"Translate the latest headline about {subject.text} into {target.text}.",
        f"把关于{subject.text}的最新标题翻译成{target.text}。",
    )
    return Chain([news], translated, ask)


def _hours_between(make: Maker, language: str) -> Chain:
    start, end = make.draw("days_apart", "start", language), make.draw("days_apart", "end", language)
    make.needs("days_apart", "compute")
    days = make.step("days_apart", language, start=start, end=end)
    hours = make.step("compute", language, expression=f"{_read(days, 'days')} * 24")
    ask = (
        f"How many hours lie between {start.text} and {end.text}?",
        f"{start.text}到{end.text}之间有多少小时？",
    )
    return Chain([days], hours, ask, (f"There are {hours.result} hours.", f"共 {hours.result} 小时。"))


def _found_then_read(make: Maker, language: str) -> Chain:
    folder, pattern = make.draw("grep_text", "folder", language), make.draw("grep_text", "pattern", language)
    make.needs("grep_text", "open_text")
    found = make.step("grep_text", language, pattern=pattern, folder=folder)
    reading = make.step("open_text", language, path="notes.txt")
    ask = (
        f'Find the file in {folder.text} that has "{pattern.text}" in it, and read it to me.',
        f"找出 {folder.text} 里含有“{pattern.text}”的文件并读出来。",
    )
    return Chain([found], reading, ask)


CHAINS: list[Callable[[Maker, str], Chain]] = [
    _weather_of_customer, _first_file, _share_in_money, _travel_time, _sum_then_root, _of_two_roots, _of_two_roots,
    _price_of_many, _warmer, _headline_translated, _hours_between, _found_then_read,
]  # fmt: skip

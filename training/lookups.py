"""Tools without end: one property of one kind of thing, a thousand pairs of them.

A small model learns ninety tools by heart, and then refuses every other one. That a tool fits because of what its
description says is learnt only where hardly any tool comes twice.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

from .invented import Invented
from .values import Kind, Value


@dataclass(frozen=True)
class _Property:
    """``said`` and ``asked`` are by language: the property with its article, and a question for it."""

    key: str
    said: dict[str, str]
    asked: dict[str, list[str]]
    draw: Any


def _property(key: str, draw: Any, said: str, asked: str, asked_zh: str) -> _Property:
    english, chinese, spanish, french, german = said.split("|")
    return _Property(
        key,
        {"en": english, "zh": chinese, "es": spanish, "fr": french, "de": german},
        {"en": asked.split("|"), "zh": asked_zh.split("|")},
        draw,
    )


def _number(low: int, high: int, digits: int = 0) -> Any:
    return lambda r: r.randint(low, high) if not digits or r.random() < 0.5 else round(r.uniform(low, high), digits)


def _word(*words: str) -> Any:
    return lambda r: r.choice(words)


def _time(r: Random) -> str:
    time = f"{r.randint(5, 23):02}:{r.randint(0, 59):02}"
    return r.choice([time, time, f"{time} (gate {r.randint(2, 40)})", f"{time} UTC"])


def _day(r: Random) -> str:
    day = f"2026-{r.randint(1, 12):02}-{r.randint(1, 28):02}"
    weekday = r.choice(["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"])
    moment = f"{day} {r.randint(0, 23):02}:{r.randint(0, 59):02}:{r.randint(0, 59):02}"
    return r.choice([day, f"{day} ({weekday})", f"{moment} UTC ({weekday})", f"{moment} ({weekday})"])


_PROPERTIES = [
    _property("height_m", _number(2, 300, 1), "height|高度|la altura|la hauteur|die Höhe", "How high is {x}?|How tall is {x}?", "{x}有多高？"),
    _property("temperature", _number(-20, 90, 1), "temperature|温度|la temperatura|la température|die Temperatur", "How warm is it in {x}?|Is it hot in {x}?", "{x}现在多少度？"),
    _property("owner", _word("Rosa Lind", "the city", "Harun Aydin", "Falk & Sons"), "owner|所有者|el propietario|le propriétaire|den Besitzer", "Who owns {x}?|To whom does {x} belong?", "{x}是谁的？"),
    _property("price", _number(3, 900, 2), "price|价格|el precio|le prix|den Preis", "What does {x} cost?|How much do I pay for {x}?", "{x}多少钱？"),
    _property("status", _word("in order", "closed for repairs", "offline", "ready", "delayed"), "status|状态|el estado|l'état|den Zustand", "Is {x} in order?|Is anything wrong with {x}?|How is {x} doing?", "{x}正常吗？"),
    _property("age_years", _number(1, 400), "age|年龄|la edad|l'âge|das Alter", "How old is {x}?", "{x}有多少年了？"),
    _property("location", _word("hall 3", "the north bank", "Quay 12", "second floor", "Elder Lane"), "location|位置|la ubicación|l'emplacement|den Ort", "Where is {x}?|Where can I find {x}?", "{x}在哪里？"),
    _property("departs", _time, "next departure|下一班时间|la próxima salida|le prochain départ|die nächste Abfahrt", "When does {x} leave next?|At what time does {x} depart?", "{x}下一班几点出发？"),
    _property("load_percent", _number(0, 100), "load|负荷|la carga|la charge|die Auslastung", "How full is {x}?|How busy is {x} at the moment?", "{x}现在有多满？"),
    _property("inspected_on", _day, "last inspection|上次检查|la última inspección|la dernière inspection|die letzte Prüfung", "When was {x} last inspected?|On which day did somebody check {x}?", "{x}上次是什么时候检查的？"),
    _property("in_charge", _word("Ines Okafor", "Mr Halvorsen", "Dr. Lindqvist", "Paula Weiss"), "person in charge|负责人|el responsable|le responsable|den Verantwortlichen", "Who is in charge of {x}?|Whom do I call about {x}?", "{x}由谁负责？"),
    _property("colour", _word("green", "dark red", "silver", "white and blue"), "colour|颜色|el color|la couleur|die Farbe", "Which colour is {x}?|What colour has {x}?", "{x}是什么颜色？"),
    _property("capacity", _number(4, 4000), "capacity|容量|la capacidad|la capacité|das Fassungsvermögen", "How much fits into {x}?|What can {x} hold?", "{x}能容纳多少？"),
    _property("depth_m", _number(1, 90, 1), "depth|深度|la profundidad|la profondeur|die Tiefe", "How deep is {x}?", "{x}有多深？"),
    _property("visitors", _number(0, 900), "number of visitors|访客人数|el número de visitantes|le nombre de visiteurs|die Besucherzahl", "How many people visited {x} today?|Did many people come to {x}?", "今天有多少人去了{x}？"),
    _property("battery_percent", _number(1, 100), "battery level|电量|el nivel de batería|le niveau de batterie|den Akkustand", "How much battery has {x} left?|Must {x} be charged?", "{x}还剩多少电？"),
    _property("opens", _time, "opening time|开放时间|la hora de apertura|l'heure d'ouverture|die Öffnungszeit", "When does {x} open?|From what time can I enter {x}?", "{x}几点开门？"),
    _property("code", lambda r: f"{r.choice('KLMNPR')}{r.randint(100, 999)}", "access code|密码|el código|le code|den Zugangscode", "What's the code of {x}?|How do I get into {x}? I need the code.", "{x}的密码是什么？"),
    _property("members", _number(3, 240), "number of members|人数|el número de miembros|le nombre de membres|die Mitgliederzahl", "How many members has {x}?|How many people belong to {x}?", "{x}有多少人？"),
    _property("distance_km", _number(1, 600, 1), "distance|距离|la distancia|la distance|die Entfernung", "How far away is {x}?|How many kilometres is it to {x}?", "{x}有多远？"),
]  # fmt: skip

_THINGS = (
    "lighthouse|灯塔", "tram line|电车线路", "server|服务器", "warehouse|仓库", "greenhouse|温室", "vineyard|葡萄园", "mine shaft|矿井", "chapel|小教堂",
    "windmill|风车", "reservoir|水库", "laboratory|实验室", "sailing boat|帆船", "bus|公交车", "robot|机器人", "drone|无人机", "theatre|剧院",
    "orchard|果园", "bakery|面包店", "tunnel|隧道", "bridge|大桥", "statue|雕像", "cave|洞穴", "campsite|营地", "ski slope|滑雪道",
    "cable car|缆车", "aquarium|水族馆", "satellite|卫星", "telescope|望远镜", "generator|发电机", "tractor|拖拉机", "silo|筒仓", "meeting room|会议室",
    "tennis court|网球场", "study group|学习小组", "rowing team|划艇队", "orchestra|乐团", "allotment|菜园", "fountain|喷泉", "well|水井", "castle|城堡",
    "market stall|摊位", "food truck|餐车", "container|集装箱", "crane|起重机", "water tank|水箱", "wind turbine|风力发电机", "test bench|试验台", "freezer|冷冻柜",
    "locker|储物柜", "observatory|天文台", "zoo|动物园", "farm|农场", "planetarium|天文馆", "escape room|密室", "sculpture|雕塑", "gallery|画廊",
)  # fmt: skip
_NAMES = (
    "Nordpunkt", "B12", "7", "Old Anna", "Silver Fox", "4-East", "Marigold", "K-9", "Sunfield", "31", "Bluebell", "Delta", "Hilltop", "R2", "Santa Rosa",
    "Waldhof", "东门", "三号", "红星", "Pelican", "C3", "Juniper", "108", "Kestrel", "Lower End", "9-", "B2+", "X-", "0+", "44", "2020", "6A", "05", "K+",
)  # fmt: skip


def lookup(random: Random) -> Invented:
    """A tool that nobody has seen: the property of a thing that has a name."""
    thing, _, chinese = random.choice(_THINGS).partition("|")
    chosen = random.choice(_PROPERTIES)
    slug, key = thing.replace(" ", "_"), chosen.key
    words = chosen.said["en"].replace(" ", "_")
    camel = slug.split("_")[0] + "".join(
        part.capitalize() for part in f"{slug}_{words}".split("_")[len(slug.split("_")) - 1 :]
    )
    names = (f"{slug}_{key}", f"get_{slug}_{words}", f"{slug}.{words}", f"{words}_of_{slug}", f"{slug}_info", camel)
    abouts = (
        f"The {chosen.said['en']} of a {thing}.", f"Look up the {chosen.said['en']} of a {thing} by its name.",
        f"Returns a {thing}'s {chosen.said['en']}.",
    )  # fmt: skip

    def draw(random: Random, language: str) -> Value:
        name = random.choice(_NAMES)
        return Value(name, name)

    slot = (
        ("name", slug, f"{slug}_id", "which", "id"),
        (f"Name of the {thing}", f"Name or number of the {thing}", ""),
        Kind({"type": "string"}, draw),
    )
    asks = {
        "en": [each.format(x=x) for each in chosen.asked["en"] for x in (f"{thing} {{name}}", f"the {{name}} {thing}")]
        + [f"What is the {chosen.said['en']} of the {thing} {{name}}?", f"{thing.capitalize()} {{name}}: {chosen.said['en']}, please."],
        "zh": [each.format(x=x) for each in chosen.asked["zh"] for x in (f"{chinese}{{name}}", f"{{name}} {chinese}")] + [f"{chinese}{{name}}的{chosen.said['zh']}是什么？"],
        "es": [f"Dime {chosen.said['es']} de {{name}} ({thing})."],
        "fr": [f"Donne-moi {chosen.said['fr']} de {{name}} ({thing})."],
        "de": [f"Nenne mir {chosen.said['de']} von {{name}} ({thing})."],
    }  # fmt: skip
    says = {
        "en": [f"The {chosen.said['en']} of {{name}} is {{{key}}}.", f"{{name}}: {chosen.said['en']} {{{key}}}."],
        "zh": [f"{{name}}的{chosen.said['zh']}是 {{{key}}}。"],
        "es": [f"{chosen.said['es'].capitalize()} de {{name}}: {{{key}}}."],
        "fr": [f"{chosen.said['fr'].capitalize()} de {{name}} : {{{key}}}."],
        "de": [f"{{name}}: {{{key}}}."],
    }  # fmt: skip

    def result(values: Mapping[str, Any], random: Random) -> Any:
        value = chosen.draw(random)
        return value if isinstance(value, str) and random.random() < 0.3 else {key: value}

    return Invented(
        frozenset([f"{slug} {key}"]), names, abouts, {"name": slot}, asks, says, result, frozenset(["name"])
    )


def akin(topics: frozenset[str], others: frozenset[str]) -> bool:
    """Whether two tools of this module share the thing or the property, but not both."""
    pairs = [(one.split(), other.split()) for one in topics for other in others if " " in one and " " in other]
    return any((one[0] == other[0]) != (one[1] == other[1]) for one, other in pairs)

"""Tools on data that ships with the program: sample weather, and distances computed from coordinates.

The weather is made up, and every answer says so. Coordinates are rounded to a tenth of a degree, which is up to
8 km off.
"""

from __future__ import annotations

import math
import unicodedata
from difflib import get_close_matches
from functools import cache
from typing import Any, NamedTuple

from ..tools import Tool

_EARTH_KM = 6371.0  # mean radius


class City(NamedTuple):
    """A city: latitude and longitude in degrees, north and east positive."""

    name: str
    latitude: float
    longitude: float


# Name, other names, latitude, longitude.
_CITIES = """
Amsterdam|阿姆斯特丹|52.4|4.9
Athens|雅典|38.0|23.7
Auckland|奥克兰|-36.8|174.8
Baghdad|巴格达|33.3|44.4
Bangkok|曼谷|13.8|100.5
Barcelona|巴塞罗那|41.4|2.2
Beijing|北京,Peking|39.9|116.4
Berlin|柏林|52.5|13.4
Bogota|波哥大|4.7|-74.1
Boston|波士顿|42.4|-71.1
Brussels|布鲁塞尔|50.8|4.4
Bucharest|布加勒斯特|44.4|26.1
Budapest|布达佩斯|47.5|19.0
Buenos Aires|布宜诺斯艾利斯|-34.6|-58.4
Cairo|开罗|30.0|31.2
Cape Town|开普敦|-33.9|18.4
Caracas|加拉加斯|10.5|-66.9
Casablanca|卡萨布兰卡|33.6|-7.6
Chengdu|成都|30.7|104.1
Chicago|芝加哥|41.9|-87.6
Chongqing|重庆|29.6|106.5
Copenhagen|哥本哈根|55.7|12.6
Dallas|达拉斯|32.8|-96.8
Delhi|德里,New Delhi,新德里|28.6|77.2
Dhaka|达卡|23.8|90.4
Dubai|迪拜|25.2|55.3
Dublin|都柏林|53.3|-6.3
Frankfurt|法兰克福|50.1|8.7
Geneva|日内瓦|46.2|6.1
Guangzhou|广州,Canton|23.1|113.3
Hamburg|汉堡|53.6|10.0
Hangzhou|杭州|30.3|120.2
Hanoi|河内|21.0|105.8
Harbin|哈尔滨|45.8|126.5
Havana|哈瓦那|23.1|-82.4
Helsinki|赫尔辛基|60.2|24.9
Ho Chi Minh City|胡志明市,Saigon|10.8|106.7
Hong Kong|香港|22.3|114.2
Honolulu|檀香山,火奴鲁鲁|21.3|-157.9
Houston|休斯敦|29.8|-95.4
Istanbul|伊斯坦布尔|41.0|29.0
Jakarta|雅加达|-6.2|106.8
Jerusalem|耶路撒冷|31.8|35.2
Johannesburg|约翰内斯堡|-26.2|28.0
Karachi|卡拉奇|24.9|67.0
Kyiv|基辅,Kiev|50.5|30.5
Kuala Lumpur|吉隆坡|3.1|101.7
Lagos|拉各斯|6.5|3.4
Lima|利马|-12.0|-77.0
Lisbon|里斯本,Lisboa|38.7|-9.1
London|伦敦|51.5|-0.1
Los Angeles|洛杉矶,LA|34.1|-118.2
Madrid|马德里|40.4|-3.7
Manila|马尼拉|14.6|121.0
Melbourne|墨尔本|-37.8|145.0
Mexico City|墨西哥城|19.4|-99.1
Miami|迈阿密|25.8|-80.2
Milan|米兰,Milano|45.5|9.2
Montreal|蒙特利尔|45.5|-73.6
Moscow|莫斯科|55.8|37.6
Mumbai|孟买,Bombay|19.1|72.9
Munich|慕尼黑,München,Muenchen|48.1|11.6
Nairobi|内罗毕|-1.3|36.8
Nanjing|南京|32.1|118.8
Naples|那不勒斯|40.9|14.3
New York|纽约,New York City,NYC|40.7|-74.0
Osaka|大阪|34.7|135.5
Oslo|奥斯陆|59.9|10.8
Paris|巴黎|48.9|2.4
Philadelphia|费城|40.0|-75.2
Prague|布拉格,Praha|50.1|14.4
Reykjavik|雷克雅未克|64.1|-21.9
Rio de Janeiro|里约热内卢,Rio|-22.9|-43.2
Riyadh|利雅得|24.7|46.7
Rome|罗马,Roma|41.9|12.5
San Francisco|旧金山,SF|37.8|-122.4
Santiago|圣地亚哥|-33.4|-70.7
Sao Paulo|圣保罗|-23.6|-46.6
Seattle|西雅图|47.6|-122.3
Seoul|首尔|37.6|127.0
Shanghai|上海|31.2|121.5
Shenzhen|深圳|22.5|114.1
Singapore|新加坡|1.4|103.8
Stockholm|斯德哥尔摩|59.3|18.1
Sydney|悉尼|-33.9|151.2
Taipei|台北|25.0|121.6
Tehran|德黑兰|35.7|51.4
Tel Aviv|特拉维夫|32.1|34.8
Tianjin|天津|39.1|117.2
Tokyo|东京|35.7|139.7
Toronto|多伦多|43.7|-79.4
Vancouver|温哥华|49.3|-123.1
Venice|威尼斯,Venezia|45.4|12.3
Vienna|维也纳,Wien|48.2|16.4
Warsaw|华沙|52.2|21.0
Washington|华盛顿,Washington DC,Washington D.C.|38.9|-77.0
Wuhan|武汉|30.6|114.3
Xi'an|西安,Xian|34.3|108.9
Zurich|苏黎世|47.4|8.5
"""
_CONDITIONS = ("sunny", "partly cloudy", "cloudy", "light rain", "windy")


def get_current_weather(location: str, unit: str) -> dict[str, Any]:
    """Sample weather. Raises ValueError for a city that is not in the table."""
    city = _city(location)
    celsius = round(30 - abs(city.latitude) * 0.4)
    return {
        "location": city.name,
        "temperature": celsius if unit == "celsius" else round(celsius * 9 / 5 + 32),
        "unit": unit,
        "condition": _CONDITIONS[len(city.name) % len(_CONDITIONS)],
        "note": "sample data, not a measurement",
    }


def get_distance_between_cities(city1: str, city2: str) -> dict[str, Any]:
    """The distance along the great circle (haversine formula). Raises ValueError for an unknown city."""
    first, second = _city(city1), _city(city2)
    phi1, phi2 = math.radians(first.latitude), math.radians(second.latitude)
    half_turn = math.radians(second.longitude - first.longitude) / 2
    chord = math.sin((phi2 - phi1) / 2) ** 2 + math.cos(phi1) * math.cos(phi2) * math.sin(half_turn) ** 2
    distance = 2 * _EARTH_KM * math.asin(math.sqrt(chord))
    return {
        "city1": first.name,
        "city2": second.name,
        "distance_km": round(distance),
        "note": "as the crow flies, from sample coordinates",
    }


def _plain(name: str) -> str:
    """Without case, diacritics, and what follows a comma (``Paris, France``)."""
    name = name.replace("，", ",").split(",")[0].strip().removesuffix("市").casefold()
    return "".join(letter for letter in unicodedata.normalize("NFKD", name) if not unicodedata.combining(letter))


@cache
def _table() -> dict[str, City]:
    table = {}
    for line in _CITIES.split("\n"):
        if line:
            name, others, latitude, longitude = line.split("|")
            city = City(name, float(latitude), float(longitude))
            table.update({_plain(each): city for each in (name, *others.split(","))})
    return table


def _city(name: str) -> City:
    table = _table()
    try:
        return table[_plain(name)]
    except KeyError:
        close = get_close_matches(_plain(name), table, 1)
        hint = f"did you mean {table[close[0]].name}?" if close else "try a large city"
        raise ValueError(f"{name!r} is not in the sample data; {hint}") from None


_TEXT = {"type": "string"}

TOOLS = [
    Tool(
        "get_current_weather",
        "The current weather in a city.",
        {
            "type": "object",
            "properties": {
                "location": {"type": "string", "description": "name of the city"},
                "unit": {"type": "string", "enum": ["celsius", "fahrenheit"]},
            },
            "required": ["location", "unit"],
        },
        get_current_weather,
        read_only=True,
    ),
    Tool(
        "get_distance_between_cities",
        "How far two cities are apart, in kilometres.",
        {"type": "object", "properties": {"city1": _TEXT, "city2": _TEXT}, "required": ["city1", "city2"]},
        get_distance_between_cities,
        read_only=True,
    ),
]

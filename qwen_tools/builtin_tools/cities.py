"""A table of large cities: where they are, and what time they keep. Sample data, by no means all cities.

Coordinates are rounded to a tenth of a degree, which is up to 8 km off.
"""

from __future__ import annotations

import re
import unicodedata
from difflib import get_close_matches
from functools import cache
from typing import NamedTuple


class City(NamedTuple):
    """A city: latitude and longitude in degrees, north and east positive; its IANA time zone."""

    name: str
    latitude: float
    longitude: float
    timezone: str


# Name, other names, latitude, longitude, time zone. A city that gave its zone the name needs no more than "Europe/".
_CITIES = """
Abu Dhabi|阿布扎比|24.5|54.4|Asia/Dubai
Accra|阿克拉|5.6|-0.2|Africa/
Addis Ababa|亚的斯亚贝巴|9.0|38.7|Africa/
Algiers|阿尔及尔|36.8|3.1|Africa/
Amsterdam|阿姆斯特丹|52.4|4.9|Europe/
Athens|雅典|38.0|23.7|Europe/
Atlanta|亚特兰大|33.7|-84.4|America/New_York
Auckland|奥克兰|-36.8|174.8|Pacific/
Baghdad|巴格达|33.3|44.4|Asia/
Bangalore|班加罗尔,Bengaluru|13.0|77.6|Asia/Kolkata
Bangkok|曼谷|13.8|100.5|Asia/
Barcelona|巴塞罗那|41.4|2.2|Europe/Madrid
Beijing|北京,Peking|39.9|116.4|Asia/Shanghai
Berlin|柏林|52.5|13.4|Europe/
Bogota|波哥大|4.7|-74.1|America/
Boston|波士顿|42.4|-71.1|America/New_York
Brasilia|巴西利亚|-15.8|-47.9|America/Sao_Paulo
Brisbane|布里斯班|-27.5|153.0|Australia/
Brussels|布鲁塞尔|50.8|4.4|Europe/
Bucharest|布加勒斯特|44.4|26.1|Europe/
Budapest|布达佩斯|47.5|19.0|Europe/
Buenos Aires|布宜诺斯艾利斯|-34.6|-58.4|America/Argentina/Buenos_Aires
Busan|釜山|35.2|129.1|Asia/Seoul
Cairo|开罗|30.0|31.2|Africa/
Cape Town|开普敦|-33.9|18.4|Africa/Johannesburg
Caracas|加拉加斯|10.5|-66.9|America/
Casablanca|卡萨布兰卡|33.6|-7.6|Africa/
Chengdu|成都|30.7|104.1|Asia/Shanghai
Chennai|金奈,Madras|13.1|80.3|Asia/Kolkata
Chicago|芝加哥|41.9|-87.6|America/
Chongqing|重庆|29.6|106.5|Asia/Shanghai
Cologne|科隆,Köln,Koeln|50.9|7.0|Europe/Berlin
Copenhagen|哥本哈根|55.7|12.6|Europe/
Dallas|达拉斯|32.8|-96.8|America/Chicago
Delhi|德里,New Delhi,新德里|28.6|77.2|Asia/Kolkata
Denver|丹佛|39.7|-105.0|America/
Detroit|底特律|42.3|-83.0|America/
Dhaka|达卡|23.8|90.4|Asia/
Doha|多哈|25.3|51.5|Asia/Qatar
Dubai|迪拜|25.2|55.3|Asia/
Dublin|都柏林|53.3|-6.3|Europe/
Edinburgh|爱丁堡|56.0|-3.2|Europe/London
Frankfurt|法兰克福|50.1|8.7|Europe/Berlin
Geneva|日内瓦|46.2|6.1|Europe/Zurich
Guangzhou|广州,Canton|23.1|113.3|Asia/Shanghai
Hamburg|汉堡|53.6|10.0|Europe/Berlin
Hangzhou|杭州|30.3|120.2|Asia/Shanghai
Hanoi|河内|21.0|105.8|Asia/Bangkok
Harbin|哈尔滨|45.8|126.7|Asia/Shanghai
Havana|哈瓦那|23.1|-82.4|America/
Helsinki|赫尔辛基|60.2|24.9|Europe/
Ho Chi Minh City|胡志明市,Saigon|10.8|106.7|Asia/Ho_Chi_Minh
Hong Kong|香港|22.3|114.2|Asia/
Honolulu|檀香山,火奴鲁鲁|21.3|-157.9|Pacific/
Houston|休斯敦|29.8|-95.4|America/Chicago
Istanbul|伊斯坦布尔|41.0|29.0|Europe/
Jakarta|雅加达|-6.2|106.8|Asia/
Jerusalem|耶路撒冷|31.8|35.2|Asia/
Johannesburg|约翰内斯堡|-26.2|28.0|Africa/
Karachi|卡拉奇|24.9|67.0|Asia/
Kolkata|加尔各答,Calcutta|22.6|88.4|Asia/
Krakow|克拉科夫|50.1|19.9|Europe/Warsaw
Kuala Lumpur|吉隆坡|3.1|101.7|Asia/
Kyiv|基辅,Kiev|50.5|30.5|Europe/Kiev
Kyoto|京都|35.0|135.8|Asia/Tokyo
Lagos|拉各斯|6.5|3.4|Africa/
Las Vegas|拉斯维加斯|36.2|-115.1|America/Los_Angeles
Lima|利马|-12.0|-77.0|America/
Lisbon|里斯本,Lisboa|38.7|-9.1|Europe/
London|伦敦|51.5|-0.1|Europe/
Los Angeles|洛杉矶,LA|34.1|-118.2|America/
Lyon|里昂|45.8|4.8|Europe/Paris
Macau|澳门,Macao|22.2|113.5|Asia/
Madrid|马德里|40.4|-3.7|Europe/
Manchester|曼彻斯特|53.5|-2.2|Europe/London
Manila|马尼拉|14.6|121.0|Asia/
Marseille|马赛|43.3|5.4|Europe/Paris
Melbourne|墨尔本|-37.8|145.0|Australia/
Mexico City|墨西哥城|19.4|-99.1|America/Mexico_City
Miami|迈阿密|25.8|-80.2|America/New_York
Milan|米兰,Milano|45.5|9.2|Europe/Rome
Montevideo|蒙得维的亚|-34.9|-56.2|America/
Montreal|蒙特利尔|45.5|-73.6|America/Toronto
Moscow|莫斯科|55.8|37.6|Europe/
Mumbai|孟买,Bombay|19.1|72.9|Asia/Kolkata
Munich|慕尼黑,München,Muenchen|48.1|11.6|Europe/Berlin
Nairobi|内罗毕|-1.3|36.8|Africa/
Nanjing|南京|32.1|118.8|Asia/Shanghai
Naples|那不勒斯|40.9|14.3|Europe/Rome
New York|纽约,New York City,NYC|40.7|-74.0|America/
Osaka|大阪|34.7|135.5|Asia/Tokyo
Oslo|奥斯陆|59.9|10.8|Europe/
Ottawa|渥太华|45.4|-75.7|America/Toronto
Paris|巴黎|48.9|2.4|Europe/
Perth|珀斯|-32.0|115.9|Australia/
Philadelphia|费城|40.0|-75.2|America/New_York
Phoenix|菲尼克斯|33.4|-112.1|America/
Prague|布拉格,Praha|50.1|14.4|Europe/
Qingdao|青岛|36.1|120.4|Asia/Shanghai
Quito|基多|-0.2|-78.5|America/Guayaquil
Reykjavik|雷克雅未克|64.1|-21.9|Atlantic/
Rio de Janeiro|里约热内卢,Rio|-22.9|-43.2|America/Sao_Paulo
Riyadh|利雅得|24.7|46.7|Asia/
Rome|罗马,Roma|41.9|12.5|Europe/
San Diego||32.7|-117.2|America/Los_Angeles
San Francisco|旧金山,SF|37.8|-122.4|America/Los_Angeles
Santiago|圣地亚哥|-33.4|-70.7|America/
Sao Paulo|圣保罗|-23.6|-46.6|America/
Seattle|西雅图|47.6|-122.3|America/Los_Angeles
Seoul|首尔|37.6|127.0|Asia/
Shanghai|上海|31.2|121.5|Asia/
Shenzhen|深圳|22.5|114.1|Asia/Shanghai
Singapore|新加坡|1.4|103.8|Asia/
St. Petersburg|圣彼得堡,Saint Petersburg|59.9|30.3|Europe/Moscow
Stockholm|斯德哥尔摩|59.3|18.1|Europe/
Suzhou|苏州|31.3|120.6|Asia/Shanghai
Sydney|悉尼|-33.9|151.2|Australia/
Taipei|台北,臺北|25.0|121.6|Asia/
Tehran|德黑兰|35.7|51.4|Asia/
Tel Aviv|特拉维夫|32.1|34.8|Asia/Jerusalem
Tianjin|天津|39.1|117.2|Asia/Shanghai
Tokyo|东京,東京|35.7|139.7|Asia/
Toronto|多伦多|43.7|-79.4|America/
Tunis|突尼斯|36.8|10.2|Africa/
Vancouver|温哥华|49.3|-123.1|America/
Venice|威尼斯,Venezia|45.4|12.3|Europe/Rome
Vienna|维也纳,Wien|48.2|16.4|Europe/
Warsaw|华沙|52.2|21.0|Europe/
Washington|华盛顿,Washington DC|38.9|-77.0|America/New_York
Wellington|惠灵顿|-41.3|174.8|Pacific/Auckland
Wuhan|武汉|30.6|114.3|Asia/Shanghai
Xi'an|西安|34.3|108.9|Asia/Shanghai
Xiamen|厦门|24.5|118.1|Asia/Shanghai
Zurich|苏黎世|47.4|8.5|Europe/
"""


def find(name: str) -> City | None:
    """The city of that name, or None. Case, diacritics and what follows a comma (``Paris, France``) do not count."""
    return _table().get(_plain(name))


def closest(name: str) -> City | None:
    """The city whose name is written most nearly like this, or None where none is near."""
    close = get_close_matches(_plain(name)[:50], _table(), 1)
    return _table()[close[0]] if close else None


def names() -> list[str]:
    """The names of all cities."""
    return sorted({city.name for city in _table().values()})


def _plain(name: str) -> str:
    name = re.split(r"[,，(（]", unicodedata.normalize("NFKD", name).casefold())[0]
    name = "".join(letter for letter in name if not unicodedata.combining(letter) and letter not in "'’.")
    return " ".join(name.replace("-", " ").replace("_", " ").split()).removesuffix("市")


@cache
def _table() -> dict[str, City]:
    table = {}
    for line in _CITIES.strip().split("\n"):
        name, others, latitude, longitude, zone = line.split("|")
        zone += name.replace(" ", "_") if zone.endswith("/") else ""
        city = City(name, float(latitude), float(longitude), zone)
        table.update({_plain(each): city for each in (name, *others.split(",")) if each})
    return table

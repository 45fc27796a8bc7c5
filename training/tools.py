"""The invented tools that the training conversations use: schemas, ways of asking, results, ways of answering.

None of them is a tool of a benchmark or of the held-out evaluation; a test checks the names and the sentences.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping
from random import Random
from typing import Any

from .invented import Invented, rounded, tool
from .values import (
    CITY,
    COUNTRY,
    CURRENCY,
    FILE,
    FOLDER,
    ITEM,
    LONG_NUMBERS,
    MESSAGE,
    NUMBERS,
    PERSON,
    ROOM,
    SENTENCE,
    TICKER,
    TOPIC,
    amount,
    choice,
    clock_time,
    code,
    date,
    flag,
    fraction,
    integer,
    number,
    percent,
    record,
    several,
    spoken_number,
    sum_of_numbers,
    words,
)  # fmt: skip

TOOLS: list[Invented] = []


def _tool(*description: Any) -> None:
    """Add a tool."""
    TOOLS.append(tool(*description))


# --- Weather and places -------------------------------------------------------------------------------------------

_tool(
    "weather", "weather_now|check_weather|current_conditions|cityWeather|weather.now",
    "Current weather for a city.|Get the weather conditions in a place right now.",
    {"city|location|place|town": ("The city|Name of the place to look up", CITY),
     "unit|units|temperature_unit": ("Unit of the temperature", choice("celsius=Celsius|摄氏度", "fahrenheit=Fahrenheit|华氏度"))},
    lambda v, r: {"temperature": r.randint(-8, 36), "sky": r.choice(["sunny", "cloudy", "light rain", "fog", "snow"]), "humidity": r.randint(20, 95)},
    {"en": ["What's the weather like in {city}[ in {unit}]?", "How is the weather in {city} right now?", "Is it warm in {city}[, in {unit}]?",
            "I'm flying to {city}; tell me the current weather there[ in {unit}]."],
     "zh": ["{city}今天天气怎么样？", "查询{city}的天气[，用{unit}]。", "{city}现在冷吗？"],
     "es": ["¿Qué tiempo hace en {city}?", "Dime el tiempo actual en {city}."], "fr": ["Quel temps fait-il à {city} ?"], "de": ["Wie ist das Wetter in {city}?"]},
    {"en": ["In {city} it is {temperature} degrees with {sky}.", "It is {temperature} degrees in {city} now, {sky}."],
     "zh": ["{city}现在 {temperature} 度，天气为 {sky}。"], "es": ["En {city} hay {temperature} grados ({sky})."],
     "fr": ["À {city}, il fait {temperature} degrés ({sky})."], "de": ["In {city} sind es {temperature} Grad ({sky})."]},
)  # fmt: skip
_tool(
    "weather forecast", "rain_outlook|forecast.rain|weather_forecast_days|getRainForecast",
    "Rain forecast for the coming days.|Forecast the chance of rain in a city.",
    {"place|city|location": ("Where", CITY), "days|day_count|num_days": ("How many days ahead, 1 to 7|Number of days", integer(1, 7))},
    lambda v, r: {"chance_percent": r.randint(0, 100), "millimetres": r.randint(0, 40)},
    {"en": ["Will it rain in {place} over the next {days} days?", "Give me the {days}-day rain forecast for {place}.", "Do I need an umbrella in {place} in the next {days} days?"],
     "zh": ["{place}未来 {days} 天会下雨吗？", "{place}接下来{days}天需要带伞吗？"], "de": ["Regnet es in den nächsten {days} Tagen in {place}?"]},
    {"en": ["The chance of rain in {place} over the next {days} days is {chance_percent}%."], "zh": ["{place}未来 {days} 天下雨的概率是 {chance_percent}%。"],
     "de": ["Die Regenwahrscheinlichkeit in {place} liegt in den nächsten {days} Tagen bei {chance_percent} %."]},
)  # fmt: skip
_tool(
    "air weather", "air_index|aqi_lookup|airQuality|environment.air", "Air quality index of a place.|Look up how clean the air is.",
    {"location|city|area": ("City or area", CITY)}, lambda v, r: {"aqi": r.randint(10, 240)},
    {"en": ["How is the air quality in {location}?", "What's the AQI in {location} today?", "Is the air in {location} clean?"],
     "zh": ["{location}的空气质量如何？", "{location}今天空气好吗？"], "fr": ["Quelle est la qualité de l'air à {location} ?"]},
    {"en": ["The air quality index in {location} is {aqi}."], "zh": ["{location}的空气质量指数是 {aqi}。"], "fr": ["L'indice de qualité de l'air à {location} est {aqi}."]},
)  # fmt: skip
_tool(
    "distance route", "route_length|trip_distance|road.distance|distanceBetween", "Road distance between two places.|How far two places are apart by road.",
    {"origin|start|from_place|from_city": ("Where the trip starts", CITY), "target|destination|end|to_city": ("Where it ends", CITY),
     "mode|vehicle|travel_mode": ("How one travels", choice("car=car|开车", "bike=bike|骑车", "walk=foot|步行"))},
    lambda v, r: {"km": r.randint(40, 3000)},
    {"en": ["How far is it from {origin} to {target}[ by {mode}]?", "What's the distance between {origin} and {target}?", "How many kilometres from {origin} to {target}?"],
     "zh": ["从{origin}到{target}有多远？", "{origin}离{target}多少公里？[我要{mode}去。]"], "es": ["¿Qué distancia hay de {origin} a {target}?"], "de": ["Wie weit ist es von {origin} nach {target}?"]},
    {"en": ["It is {km} km from {origin} to {target}.", "The distance between {origin} and {target} is {km} km."], "zh": ["从{origin}到{target}有 {km} 公里。"],
     "es": ["De {origin} a {target} hay {km} km."], "de": ["Von {origin} nach {target} sind es {km} km."]},
)  # fmt: skip
_tool(
    "geo", "geo_locate|coordinates_of|map.find|geocodeAddress", "Get latitude and longitude of an address.|Turn an address into coordinates.",
    {"address|place|query": ("Address or place name", words("12 Park Lane, Bristol|人民路12号", "Oslo Central Station|上海虹桥站", "5 Rue Verte, Lyon|长江路5号", "Mount Kenya|泰山"))},
    lambda v, r: {"lat": round(r.uniform(-60, 60), 3), "lon": round(r.uniform(-170, 170), 3)},
    {"en": ["What are the coordinates of {address}?", "Where on the map is {address}? Give me latitude and longitude."], "zh": ["{address}的经纬度是多少？"]},
    {"en": ["{address} is at latitude {lat}, longitude {lon}."], "zh": ["{address}位于纬度 {lat}，经度 {lon}。"]},
)  # fmt: skip
_tool(
    "country population", "country_facts|nation_info|geo.country", "Facts about a country: capital, population, area.|Country information.",
    {"country|name|nation": ("The country", COUNTRY), "fact|field|aspect": ("Which fact", choice("population=population|人口", "area=area|面积", "currency=currency|货币"))},
    lambda v, r: {"value": r.randint(1_000_000, 90_000_000)},
    {"en": ["What is the {fact} of {country}?", "Look up the {fact} of {country}.", "Tell me {country}'s {fact}."], "zh": ["{country}的{fact}是多少？"]},
    {"en": ["The {fact} of {country} is {value}."], "zh": ["{country}的{fact}是 {value}。"]},
)  # fmt: skip

# --- Time ---------------------------------------------------------------------------------------------------------


def _moment(v: Mapping[str, Any], r: Random) -> Any:
    day = f"2026-{r.randint(1, 12):02}-{r.randint(1, 28):02}"
    text = f"{day} {r.randint(0, 23):02}:{r.randint(0, 59):02}:{r.randint(0, 59):02}"
    weekday = r.choice(["Monday", "Tuesday", "Wednesday", "Friday", "Saturday"])
    zone = r.choice([" UTC", " UTC", " CET", " +08:00", ""])
    return r.choice([text, f"{weekday}, {text}", f"{text}{zone} ({weekday})", f"{text}{zone} ({weekday})"])


_tool(
    "clock", "clock_now|read_clock|now|system.time|localNow|current_datetime", "Get the current date and time.|Read the clock.|The current time in a time zone.",
    {"zone|timezone|tz": ("IANA name of the time zone|Time zone, local when left out", words("Asia/Tokyo", "Europe/Madrid", "America/Lima", "UTC"))},
    _moment,
    {"en": ["What time is it[ in {zone}]?", "Tell me the current time[ ({zone})].", "What's the date today?", "Do you know what time it is right now?", "Current date and time[ for {zone}], please.", "Give me the time."],
     "zh": ["现在几点了？", "今天几号？", "现在是什么时间？", "请告诉我[{zone}的]当前时间。", "几点？"], "es": ["¿Qué hora es?"], "fr": ["Quelle heure est-il ?"], "de": ["Wie spät ist es?"]},
    {"en": ["It is {value} now.", "The current date and time is {value}.", "Right now it is {value}."], "zh": ["现在是 {value}。", "当前时间是 {value}。"],
     "es": ["Ahora es {value}."], "fr": ["Il est {value}."], "de": ["Es ist jetzt {value}."]},
)  # fmt: skip
_tool(
    "clock", "zone_time|city_clock|worldClock|time_in_city", "Get the current time in a city.",
    {"city|place": ("City name", CITY)}, lambda v, r: {"city": v["city"], "time": f"{r.randint(0, 23):02}:{r.randint(0, 59):02}"},
    {"en": ["What time is it in {city}?", "Current time in {city}?", "Is it already evening in {city}? Tell me the time there."], "zh": ["{city}现在几点？", "查一下{city}的当地时间。"], "es": ["¿Qué hora es en {city}?"]},
    {"en": ["It is {time} in {city}.", "The local time in {city} is {time}."], "zh": ["{city}现在是 {time}。"], "es": ["En {city} son las {time}."]},
)  # fmt: skip
_tool(
    "timer", "start_countdown|timer.start|launchTimer", "Start a countdown timer.",
    {"minutes|duration|duration_minutes": ("Duration in minutes", integer(1, 90)), "label|name|title": ("What it is for", words("tea|泡茶", "pasta|煮面", "laundry|洗衣", "break|休息"))},
    lambda v, r: {"ok": True, "timer_id": r.randint(10, 99)},
    {"en": ["Set a timer for {minutes} minutes[ called {label}].", "Start a {minutes}-minute timer[ for the {label}].", "Count down {minutes} minutes, please."], "zh": ["设一个 {minutes} 分钟的计时器[，名称是{label}]。", "{minutes} 分钟倒计时。"],
     "de": ["Stell einen Timer auf {minutes} Minuten."]},
    {"en": ["Done, your {minutes}-minute timer is running (number {timer_id})."], "zh": ["好的，{minutes} 分钟的计时器已启动（编号 {timer_id}）。"], "de": ["Erledigt, der Timer läuft {minutes} Minuten (Nummer {timer_id})."]},
)  # fmt: skip
_tool(
    "reminder calendar", "remind_me|reminders.add|createReminder", "Create a reminder at a time.",
    {"text|what|message": ("What to be reminded of", words("call the dentist|给牙医打电话", "water the plants|浇花", "pay the rent|交房租", "take the medicine|吃药", "buy bread|买面包")),
     "time|at|when": ("Time of day, HH:MM", clock_time()), "date|day": ("Day, YYYY-MM-DD", date())},
    lambda v, r: {"status": "saved", "id": r.randint(100, 999)},
    {"en": ["Remind me to {text} at {time}[ on {date}].", "At {time}[ on {date}] I have to {text}; please remind me."], "zh": ["[{date}]{time} 提醒我{text}。"]},
    {"en": ["I will remind you to {text} at {time} (reminder {id})."], "zh": ["已设置提醒：{time} {text}（编号 {id}）。"]},
)  # fmt: skip
_tool(
    "dates", "days_apart|date_gap|dates.difference|daysBetweenDates", "Count the days between two dates.",
    {"start|from_date|first": ("First day, YYYY-MM-DD", date()), "end|to_date|second": ("Last day, YYYY-MM-DD", date())}, lambda v, r: {"days": r.randint(1, 300)},
    {"en": ["How many days are there from {start} to {end}?", "Days between {start} and {end}?"], "zh": ["从{start}到{end}有多少天？"], "fr": ["Combien de jours y a-t-il entre {start} et {end} ?"]},
    {"en": ["There are {days} days between {start} and {end}."], "zh": ["从{start}到{end}共 {days} 天。"], "fr": ["Il y a {days} jours entre {start} et {end}."]},
)  # fmt: skip
_tool(
    "dates", "weekday_for|day_name|calendar.weekday", "Tell the weekday of a date.", {"date|day": ("YYYY-MM-DD", date())},
    lambda v, r: {"weekday": r.choice(["Monday", "Tuesday", "Friday", "Sunday"])},
    {"en": ["Which weekday is {date}?", "What day of the week is {date}?"], "zh": ["{date}是星期几？"]}, {"en": ["{date} is a {weekday}."], "zh": ["{date}是 {weekday}。"]},
)  # fmt: skip

# --- Arithmetic and mathematics -----------------------------------------------------------------------------------


def _evaluated(v: Mapping[str, Any], r: Random) -> Any:
    value = eval(v["expression"], {"__builtins__": {}, "sqrt": math.sqrt})  # noqa: S307 - written in values.py
    return rounded(value, r.choice([6, 12]))


_tool(
    "calculation sum root product percent", "compute|evaluate_expression|math_eval|calc|calculator.run", "Evaluate an arithmetic expression.|Calculator: numbers, + - * / ** and functions such as sqrt.",
    {"expression|formula|expr": ("The expression, in plain syntax|What to compute, for example 3 * (4 + 5)", sum_of_numbers())},
    _evaluated,
    {"en": ["What is {expression}?", "Compute {expression}.", "{expression} = ?", "How much is {expression}?", "Please work out {expression} for me.", "Calculate {expression}, please.", "I need {expression}."],
     "zh": ["{expression}等于多少？", "计算{expression}", "帮我算一下{expression}。", "{expression}是多少？", "求{expression}"], "es": ["¿Cuánto es {expression}?"], "fr": ["Combien font {expression} ?"], "de": ["Was ist {expression}?"]},
    {"en": ["The result is {value}.", "{expression} is {value}.", "It equals {value}."], "zh": ["结果是 {value}。", "{expression}等于 {value}。"], "es": ["El resultado es {value}."], "fr": ["Le résultat est {value}."], "de": ["Das Ergebnis ist {value}."]},
)  # fmt: skip
_tool(
    "root calculation", "square_root|root2|mathx.sqrt|squareRootOf", "Square root of a number.", {"x|number|value|n": ("The number|A number that is not negative", number(1, 9999, 4))},
    lambda v, r: r.choice([math.sqrt(v["x"]), {"root": math.sqrt(v["x"])}]),
    {"en": ["What is the square root of {x}?", "Take the square root of {x}.", "Find the root of {x}.", "√{x}?"], "zh": ["{x} 的平方根是多少？", "求 {x} 的平方根。", "{x}开平方等于多少？"], "es": ["¿Cuál es la raíz cuadrada de {x}?"], "de": ["Was ist die Quadratwurzel von {x}?"]},
    {"en": ["The square root of {x} is {root}.", "√{x} = {root}"], "zh": ["{x} 的平方根是 {root}。"], "es": ["La raíz cuadrada de {x} es {root}."], "de": ["Die Quadratwurzel von {x} ist {root}."]},
)  # fmt: skip
_tool(
    "sum calculation", "total_of|add_list|numbers.total", "Add up a list of numbers.", {"values|numbers|items": ("The numbers", NUMBERS)}, lambda v, r: {"total": rounded(sum(v["values"]), 6)},
    {"en": ["Add up {values}.", "What is the total of {values}?", "Sum these numbers: {values}"], "zh": ["把{values}加起来是多少？", "求和：{values}"]}, {"en": ["The total is {total}.", "They add up to {total}."], "zh": ["总和是 {total}。"]},
)  # fmt: skip
_tool(
    "sum calculation", "plus|add_two|sum_pair|arith.add", "Add two numbers.", {"left|a|first|x": ("First number|", number(1, 9000, 2)), "right|b|second|y": ("Second number|", number(1, 9000, 2))},
    lambda v, r: rounded(v["left"] + v["right"], 6), {"en": ["What is {left} plus {right}?", "Add {left} and {right}.", "{left} + {right}"], "zh": ["{left} 加 {right} 等于多少？", "{left}与{right}之和是多少？"]},
    {"en": ["{left} plus {right} is {value}.", "The sum is {value}."], "zh": ["{left} 加 {right} 等于 {value}。"]},
)  # fmt: skip
_tool(
    "product calculation", "times|multiply_two|arith.product", "Multiply two numbers.", {"left|a|first|x": ("First factor|", number(2, 900, 1)), "right|b|second|y": ("Second factor|", number(2, 900, 1))},
    lambda v, r: rounded(v["left"] * v["right"], 6), {"en": ["Multiply {left} by {right}.", "What is {left} times {right}?", "What do I get for {left} x {right}?"], "zh": ["{left} 乘以 {right} 等于多少？"]}, {"en": ["{left} times {right} is {value}."], "zh": ["{left} 乘以 {right} 等于 {value}。"]},
)  # fmt: skip
_tool(
    "percent calculation", "percent_of|percentage_value|sharePart", "Compute a percentage of an amount.", {"amount|base|total": ("The whole", amount(10, 40000)), "percent|rate|share": ("Percentage, 0 to 100", percent(1, 95))},
    lambda v, r: {"value": rounded(v["amount"] * v["percent"] / 100)}, {"en": ["What is {percent} of {amount}?", "How much is {percent} of {amount}?", "Take {percent} of {amount}."], "zh": ["{amount} 的 {percent} 是多少？"]},
    {"en": ["{percent} of {amount} is {value}."], "zh": ["{amount} 的 {percent} 是 {value}。"]},
)  # fmt: skip
_tool(
    "tip bill", "tip_amount|restaurant.tip|splitBill", "Work out the tip of a bill and what each person pays.",
    {"bill|total|amount": ("The bill", amount(10, 400)), "tip|tip_percent|percentage": ("Tip in percent", percent(5, 25)), "people|guests|num_people": ("Number of people who share|How many share; 1 when left out", integer(2, 9))},
    lambda v, r: {"tip_sum": rounded(v["bill"] * v["tip"] / 100), "each": rounded(v["bill"] * (1 + v["tip"] / 100) / v.get("people", 1))},
    {"en": ["The bill is {bill}; what does each pay with a tip of {tip}[ split between {people} people]?", "Add a {tip} tip to a bill of {bill}[ and split it {people} ways]."], "zh": ["账单 {bill} 元，小费 {tip}[，{people} 个人平分]，每人付多少？"]},
    {"en": ["The tip is {tip_sum}, so each pays {each}."], "zh": ["每人付 {each}。"]},
)  # fmt: skip
_tool(
    "statistics mean", "describe_numbers|stat_summary|stats.measure|dataStatistic", "Compute one statistic of a list of numbers.|Statistics of data.",
    {"data|values|numbers|samples": ("The data points|List of numbers", NUMBERS), "measure|statistic|kind": ("Which statistic", choice("mean=mean|平均值", "median=median|中位数", "max=maximum|最大值", "min=minimum|最小值"))},
    lambda v, r: {"value": rounded({"mean": statistics.mean, "median": statistics.median, "max": max, "min": min}[v["measure"]](v["data"]), 4)},
    {"en": ["What is the {measure} of {data}?", "Give me the {measure} of these values: {data}.", "Find the {measure} for the data {data}."], "zh": ["{data}的{measure}是多少？", "求以下数据的{measure}：{data}"]}, {"en": ["The {measure} is {value}."], "zh": ["{measure}是 {value}。"]},
)  # fmt: skip
_tool(
    "sort", "order_numbers|sort_values|listSorter", "Sort a list of numbers.", {"values|items|array": ("The list to sort", LONG_NUMBERS), "descending|reverse": ("True for the largest first. Default is false", flag())},
    lambda v, r: {"sorted": [*sorted(v["values"], reverse=v.get("descending", False))[:3], "..."], "largest": max(v["values"])},
    {"en": ["Sort these numbers[{descending}, largest first]: {values}.", "Put {values} in order[{descending}, from the largest to the smallest]."], "zh": ["把{values}排序[{descending}，从大到小]。"]}, {"en": ["They are sorted; the largest is {largest}."], "zh": ["已排序，最大的是 {largest}。"]},
)  # fmt: skip
_tool(
    "geometry area", "circle_metrics|circle_info|shapes.circle", "Area and perimeter of a circle.", {"radius|r": ("The radius|Radius of the circle in the given unit", number(1, 60)), "unit|units": ("Unit of length. Default is cm", choice("cm", "m", "inches"))},
    lambda v, r: {"area": rounded(math.pi * v["radius"] ** 2), "perimeter": rounded(2 * math.pi * v["radius"])},
    {"en": ["How big is a circle with a radius of {radius}[ {unit}]?", "Area and perimeter of a circle of radius {radius}[ {unit}], please.", "My round table has a radius of {radius}[ {unit}]. What is its area?"], "zh": ["半径为 {radius}[ {unit}] 的圆面积和周长是多少？"]},
    {"en": ["The circle has an area of {area} and a perimeter of {perimeter}."], "zh": ["面积是 {area}，周长是 {perimeter}。"]},
)  # fmt: skip
_tool(
    "geometry area", "rect_area|rectangle_surface|geometryTools.rectangle", "Area of a rectangle.", {"width|side_a|w": ("Width of the rectangle", number(1, 90)), "height|side_b|length|h": ("Height of the rectangle", number(1, 90))},
    lambda v, r: {"area": rounded(v["width"] * v["height"])}, {"en": ["What is the area of a rectangle that is {width} wide and {height} high?", "A field is {width} by {height} metres: how large is it?", "Area of a rectangle, width {width}, height {height}"], "zh": ["长方形宽 {width}、高 {height}，面积是多少？"]},
    {"en": ["The area is {area}."], "zh": ["面积是 {area}。"]},
)  # fmt: skip
_tool(
    "geometry volume", "solid_volume|volume_of_solid|geometryTools.volume", "Volume of a solid body.", {"shape|solid": ("The kind of body", choice("cube=cube|立方体", "sphere=sphere|球", "cylinder=cylinder|圆柱")), "size|edge_or_radius|dimension": ("Edge or radius", number(1, 40)), "height|h": ("Height, for a cylinder only", number(1, 40))},
    lambda v, r: {"volume": rounded(v["size"] ** 3 * 3.3)}, {"en": ["What is the volume of a {shape} with size {size}[ and height {height}]?", "How much fits into a {shape} of size {size}[, height {height}]?"], "zh": ["尺寸为 {size}[、高 {height}] 的{shape}体积是多少？"]},
    {"en": ["Its volume is {volume}."], "zh": ["体积是 {volume}。"]},
)  # fmt: skip
_tool(
    "primes divisors", "factors_of|divisor_list|numbers.factorize", "Prime factors of a whole number.", {"number|n|value": ("The number to factor", integer(6, 5000))},
    lambda v, r: {"factors": [2, 3, r.choice([5, 7, 11, 13])]}, {"en": ["What are the prime factors of {number}?", "Factorise {number}.", "Break {number} into primes."], "zh": ["{number} 的质因数是什么？", "分解质因数：{number}"]}, {"en": ["The prime factors are {factors}."], "zh": ["质因数是 {factors}。"]},
)  # fmt: skip
_tool(
    "divisors", "common_divisor|largestCommonDivisor|numbers.gcd", "Greatest common divisor of two whole numbers.", {"first|a|num1|x": ("First number", integer(6, 900)), "second|b|num2|y": ("Second number", integer(6, 900))},
    lambda v, r: {"gcd": math.gcd(v["first"], v["second"])}, {"en": ["What is the greatest common divisor of {first} and {second}?", "GCD of {first} and {second}?"], "zh": ["{first} 和 {second} 的最大公约数是多少？"]}, {"en": ["It is {gcd}."], "zh": ["最大公约数是 {gcd}。"]},
)  # fmt: skip
_tool(
    "convert units", "unit_change|convert_measure|units.to|measureConverter", "Convert a value between units.|Unit conversion: length, mass, volume.",
    {"value|amount|quantity": ("The value to convert", number(1, 500)), "from_unit|source_unit|unit_from": ("Unit of the value", words("kilometres|公里", "kilograms|公斤", "litres|升", "inches|英寸", "pounds|磅", "feet|英尺")), "to_unit|target_unit|unit_to": ("Unit wanted", words("miles|英里", "ounces|盎司", "gallons|加仑", "centimetres|厘米", "grams|克", "metres|米"))},
    lambda v, r: {"converted": rounded(v["value"] * r.uniform(0.2, 4), 3)}, {"en": ["Convert {value} {from_unit} to {to_unit}.", "How many {to_unit} is {value} {from_unit}?", "{value} {from_unit} in {to_unit}?"], "zh": ["{value} {from_unit}等于多少{to_unit}？", "把 {value} {from_unit}换算成{to_unit}。"], "fr": ["Convertis {value} {from_unit} en {to_unit}."]},
    {"en": ["{value} {from_unit} is {converted} {to_unit}."], "zh": ["{value} {from_unit}等于 {converted} {to_unit}。"], "fr": ["{value} {from_unit} font {converted} {to_unit}."]},
)  # fmt: skip
_tool(
    "temperature units", "degrees_change|thermo.convert", "Convert a temperature.", {"degrees|value|temperature": ("The temperature", number(-30, 110)), "to|target|scale": ("Scale wanted", choice("celsius=Celsius|摄氏", "fahrenheit=Fahrenheit|华氏", "kelvin=Kelvin|开尔文"))},
    lambda v, r: {"value": rounded(v["degrees"] * 1.8 + 32)}, {"en": ["What is {degrees} degrees in {to}?", "Change {degrees} degrees to {to}."], "zh": ["{degrees} 度换算成{to}是多少？"]}, {"en": ["That is {value} degrees {to}."], "zh": ["是{to} {value} 度。"]},
)  # fmt: skip
_tool(
    "equation", "solve_quadratic_eq|quadratic.solver|parabolaRoots", "Solve a*x^2 + b*x + c = 0.", {"a|coef_a": ("Factor of x squared", integer(1, 9)), "b|coef_b": ("Factor of x", integer(-20, 20)), "c|coef_c": ("The constant", integer(-20, 20))},
    lambda v, r: {"roots": [r.randint(-9, 0), r.randint(1, 9)]}, {"en": ["Solve the quadratic equation with a = {a}, b = {b} and c = {c}.", "Find the roots for a={a}, b={b}, c={c}."], "zh": ["解一元二次方程，a={a}，b={b}，c={c}。"]}, {"en": ["The roots are {roots}."], "zh": ["根是 {roots}。"]},
)  # fmt: skip

# --- Money --------------------------------------------------------------------------------------------------------

_tool(
    "currency", "money_exchange|fx.convert|exchangeMoney", "Convert money between currencies.", {"amount|sum|value": ("How much", amount(5, 20000)), "source|from_currency|base": ("ISO code to convert from", CURRENCY), "target|to_currency|quote": ("ISO code to convert to", CURRENCY)},
    lambda v, r: {"result": rounded(v["amount"] * r.uniform(0.1, 9))}, {"en": ["How much is {amount} {source} in {target}?", "Convert {amount} {source} to {target}.", "Change {amount} {source} into {target}, please."], "zh": ["{amount} {source} 等于多少 {target}？", "把 {amount} {source} 换成 {target}。"], "es": ["¿Cuánto son {amount} {source} en {target}?"]},
    {"en": ["{amount} {source} is {result} {target}."], "zh": ["{amount} {source} 等于 {result} {target}。"], "es": ["{amount} {source} son {result} {target}."]},
)  # fmt: skip
_tool(
    "stock", "share_quote|ticker_price|market.quote|stockQuote", "Latest price of a share.", {"ticker|symbol": ("Ticker symbol", TICKER), "exchange|market": ("Stock exchange", words("NYSE", "LSE", "HKEX"))},
    lambda v, r: {"price": round(r.uniform(5, 900), 2), "currency": "USD"}, {"en": ["What is {ticker} trading at[ on {exchange}]?", "Share price of {ticker}[ at the {exchange}]?", "How much does one {ticker} share cost?"], "zh": ["{ticker} 的股价是多少？", "查询 {ticker}[ 在 {exchange}]的股价。"], "de": ["Wie hoch ist der Kurs von {ticker}?"]},
    {"en": ["{ticker} trades at {price} {currency}."], "zh": ["{ticker} 的股价是 {price} {currency}。"], "de": ["{ticker} steht bei {price} {currency}."]},
)  # fmt: skip
_tool(
    "loan", "loan_payment|monthly_rate|finance.loanPayment|mortgagePayment", "Monthly payment of a loan.",
    {"principal|loan_amount|amount": ("The sum borrowed", amount(1000, 400000)), "rate|annual_rate|interest_rate": ("Interest a year, as a fraction (0.05 is 5 %)|Annual interest rate as a decimal|The annual interest rate|Interest rate of the loan|", fraction(1, 12)), "years|term_years|duration": ("Years to pay it back", integer(1, 30))},
    lambda v, r: {"monthly": rounded(v["principal"] * (1 + v["rate"]) / v["years"] / 12)}, {"en": ["What is the monthly payment for a loan of {principal} at {rate} over {years} years?", "I borrow {principal} for {years} years at an interest rate of {rate}. What do I pay each month?"], "zh": ["贷款 {principal} 元，年利率 {rate}，{years} 年还清，每月还多少？"]},
    {"en": ["You pay {monthly} a month."], "zh": ["每月还款 {monthly} 元。"]},
)  # fmt: skip
_tool(
    "savings", "savings_growth|grow_deposit|finance.futureValue", "Value of a deposit with compound interest.",
    {"deposit|principal|initial_amount": ("The sum at the beginning", amount(100, 90000)), "rate|interest|rate_percent": ("Interest in percent a year|Yearly interest in percent, for example 4.5", percent(1, 10)), "years|num_years|period": ("How many years", integer(1, 40)), "compounds|times_per_year": ("How often interest is added in a year. Default is 1", integer(2, 12))},
    lambda v, r: {"value": rounded(v["deposit"] * (1 + v["rate"] / 100) ** v["years"])}, {"en": ["What will {deposit} grow to in {years} years at {rate}[, compounded {compounds} times a year]?", "I put {deposit} in the bank at {rate}[ with interest {compounds} times a year]. What is it worth after {years} years?"], "zh": ["存 {deposit} 元，年利率 {rate}，{years} 年后有多少？"]},
    {"en": ["It will be worth {value}."], "zh": ["到期后是 {value} 元。"]},
)  # fmt: skip
_tool(
    "investment", "investment_worth|fund.grow|capitalGrowth", "What an investment is worth after some years.",
    {"capital|principal|start_value|amount": ("The money invested|Initial amount", amount(500, 90000)), "rate|yearly_rate|annual_return|interest_rate": ("The yearly rate of interest|Annual rate of return|Rate of return||As a decimal", fraction(1, 14)), "years|duration_years|time": ("Number of years", integer(1, 30)), "periods|compounds_per_year|n": ("How often interest is compounded in a year. Default is 1", spoken_number(monthly=12, quarterly=4, daily=365, weekly=52))},
    lambda v, r: {"worth": rounded(v["capital"] * (1 + v["rate"]) ** v["years"])}, {"en": ["What will an investment of ${capital} at {rate} a year be worth in {years} years[, compounded {periods}]?", "I invest {capital} dollars for {years} years and get {rate} a year[ with {periods} compounding]. How much is that in the end?"], "zh": ["投资 {capital} 元，年收益率 {rate}，{years} 年后值多少？"]},
    {"en": ["It will be worth {worth}."], "zh": ["{years} 年后值 {worth} 元。"]},
)  # fmt: skip
_tool(
    "discount", "sale_price|prices.reduced|reducedPrice", "The price after a discount.",
    {"price|list_price|original": ("Price before", amount(5, 3000)), "discount|discount_rate|reduction": ("The discount|Rate of the discount|Discount as a decimal, 0.2 for 20 %", fraction(5, 70)), "tax|tax_rate|sales_tax": ("Rate of the tax that is added|Tax rate", fraction(3, 25))},
    lambda v, r: {"final": rounded(v["price"] * (1 - v["discount"]) * (1 + v.get("tax", 0)))}, {"en": ["What does a {price} dollar coat cost with {discount} off[ and {tax} tax]?", "Take a discount of {discount} off {price}[, then add {tax} sales tax]."], "zh": ["原价 {price} 元，打折 {discount}[，再加税 {tax}]，最后多少钱？"]},
    {"en": ["It costs {final}."], "zh": ["最后是 {final} 元。"]},
)  # fmt: skip
_tool(
    "tax", "income_tax_due|tax.estimate|estimateTax", "Estimate the income tax.", {"income|yearly_income|gross": ("Income of the year", amount(9000, 200000)), "country|region": ("Where it is taxed", COUNTRY), "married|joint": ("Whether a couple is taxed together", flag())},
    lambda v, r: {"tax": rounded(v["income"] * 0.21)}, {"en": ["How much tax is due on an income of {income} in {country}[{married} for a married couple]?", "Estimate the income tax in {country} for {income}."], "zh": ["在{country}年收入 {income} 要交多少税？"]}, {"en": ["About {tax} is due."], "zh": ["大约要交 {tax}。"]},
)  # fmt: skip

# --- Messages, people, calendar -----------------------------------------------------------------------------------

_tool(
    "message", "send_note|post_message|messenger.send|textSomeone", "Send a short message to somebody.", {"to|recipient|person|contact": ("Who gets it", PERSON), "text|body|message|content": ("What it says", MESSAGE)},
    lambda v, r: {"status": "sent", "id": r.randint(1000, 9999)}, {"en": ["Send a message to {to}: {text}", "Text {to} that {text}.", "Tell {to}: \"{text}\""], "zh": ["给{to}发消息：{text}", "告诉{to}：“{text}”"], "es": ["Envía un mensaje a {to}: {text}"]},
    {"en": ["Your message to {to} was {status}."], "zh": ["已给{to}发送消息。"], "es": ["He enviado el mensaje a {to}."]},
)  # fmt: skip
_tool(
    "message email", "mail_out|email.compose|dispatchEmail", "Send an e-mail.", {"to|address|recipient": ("E-mail address", words("ana@example.org", "team@blue.example", "li.na@example.cn", "office@school.example")), "subject|title": ("Subject line", words("Invoice 12|发票", "Trip plans|旅行计划", "Question|问题")), "body|text|content": ("The text", MESSAGE)},
    lambda v, r: {"status": "queued"}, {"en": ["E-mail {to} with the subject \"{subject}\": {body}", "Write to {to}, subject {subject}, saying: {body}"], "zh": ["发邮件给 {to}，主题“{subject}”，内容：{body}"]}, {"en": ["The e-mail to {to} is {status}."], "zh": ["给 {to} 的邮件已发送（{status}）。"]},
)  # fmt: skip
_tool(
    "contact", "phone_book|contacts.find|lookupContact", "Find somebody's phone number.", {"name|person|who": ("Name of the person", PERSON)}, lambda v, r: {"phone": f"+{r.randint(10, 99)} {r.randint(100, 999)} {r.randint(1000, 9999)}"},
    {"en": ["What's the phone number of {name}?", "Look up {name} in my contacts.", "How do I reach {name} by phone?"], "zh": ["{name}的电话是多少？", "查一下{name}的联系方式。"], "fr": ["Quel est le numéro de {name} ?"]}, {"en": ["{name}'s number is {phone}."], "zh": ["{name}的电话是 {phone}。"], "fr": ["Le numéro de {name} est {phone}."]},
)  # fmt: skip
_tool(
    "calendar", "new_event|calendar.insert|scheduleMeeting", "Put an event in the calendar.", {"title|summary|name": ("Title of the event", words("Team lunch|团队午餐", "Dentist|看牙", "Budget review|预算评审", "Yoga class|瑜伽课")), "date|day": ("YYYY-MM-DD", date()), "time|start_time|at": ("Start, HH:MM", clock_time()), "guests|attendees|people": ("Who is invited", several(PERSON, 1, 3))},
    lambda v, r: {"event_id": f"E{r.randint(100, 999)}", "status": "created"}, {"en": ["Put \"{title}\" in my calendar on {date} at {time}[ and invite {guests}].", "Schedule {title} for {date}, {time}[, with {guests}]."], "zh": ["在日历上添加“{title}”，{date} {time}[，邀请{guests}]。"]},
    {"en": ["{title} is in your calendar on {date} at {time}."], "zh": ["已添加“{title}”，{date} {time}。"]},
)  # fmt: skip
_tool(
    "todo", "todo_append|tasks.create|addTask", "Add a task to the to-do list.", {"task|text|title": ("What is to be done", words("clean the car|洗车", "book the tickets|订票", "call the plumber|找水管工", "renew the passport|换护照")), "priority|urgency": ("How urgent it is", choice("low=low|低", "normal=normal|普通", "high=high|高"))},
    lambda v, r: {"id": r.randint(1, 99)}, {"en": ["Add \"{task}\" to my to-do list[ with {priority} priority].", "I must {task}; put it on my list[, priority {priority}]."], "zh": ["把“{task}”加到待办清单[，优先级{priority}]。"]}, {"en": ["I added \"{task}\" to your list."], "zh": ["已把“{task}”加到清单。"]},
)  # fmt: skip
_tool(
    "todo", "todo_list|tasks.open|showTasks", "List the open tasks.", {}, lambda v, r: {"tasks": r.sample(["call Ana", "buy milk", "fix the bike", "send the form"], 2)}, {"en": ["What is on my to-do list?", "Show my open tasks.", "What do I still have to do?"], "zh": ["我的待办事项有哪些？"]},
    {"en": ["Your open tasks: {tasks}."], "zh": ["你的待办事项：{tasks}。"]},
)  # fmt: skip

# --- Files and text -----------------------------------------------------------------------------------------------

_tool(
    "file", "open_text|files.read|showFile|cat_file", "Read a text file.", {"path|file|filename": ("Path of the file", FILE), "lines|max_lines": ("How many lines at most", integer(2, 50))}, lambda v, r: r.choice(["Meeting on Tuesday at 10.", "total: 4312", "name = blue\nport = 8080", "Buy paint and screws."]),
    {"en": ["What does {path} say?", "Read {path}[, the first {lines} lines].", "Show me [the first {lines} lines of ]{path}."], "zh": ["{path} 里写了什么？", "读取 {path}[ 的前 {lines} 行]。"], "de": ["Was steht in {path}?"]}, {"en": ["{path} says: {value}"], "zh": ["{path} 的内容是：{value}"], "de": ["In {path} steht: {value}"]},
)  # fmt: skip
_tool(
    "file", "list_folder|files.list|dirContents", "List the files of a folder.", {"folder|path|directory": ("The folder", FOLDER), "hidden|show_hidden|all": ("Also hidden files. Default false", flag())}, lambda v, r: {"files": r.sample(["a.txt", "b.csv", "main.py", "logo.png", "todo.md"], 3)},
    {"en": ["Which files are in {folder}[{hidden}, hidden ones too]?", "List {folder}[{hidden} including hidden files].", "What's inside the folder {folder}?"], "zh": ["{folder} 里有哪些文件？", "列出 {folder}[{hidden}，包括隐藏文件]。"]}, {"en": ["{folder} has {files}."], "zh": ["{folder} 里有 {files}。"]},
)  # fmt: skip
_tool(
    "file filesearch", "grep_text|files.search|searchInFiles", "Find text in the files of a folder.", {"pattern|query|text": ("What to look for", words("TODO", "password|密码", "invoice|发票", "def main")), "folder|path|directory": ("Where to look", FOLDER)}, lambda v, r: {"matches": r.randint(0, 14), "first": "notes.txt:3"},
    {"en": ["Which files in {folder} contain \"{pattern}\"?", "Search {folder} for {pattern}."], "zh": ["在 {folder} 中搜索“{pattern}”。"]}, {"en": ["There are {matches} matches, the first in {first}."], "zh": ["共有 {matches} 处，第一处在 {first}。"]},
)  # fmt: skip
_tool(
    "file", "save_text|files.write|writeNote", "Write text to a file.", {"path|file|target": ("Path of the file", FILE), "text|content|data": ("What to write", MESSAGE)}, lambda v, r: {"bytes": r.randint(10, 90)}, {"en": ["Write \"{text}\" to {path}.", "Save this in {path}: {text}"], "zh": ["把“{text}”写入 {path}。"]},
    {"en": ["I wrote {bytes} bytes to {path}."], "zh": ["已写入 {path}。"]},
)  # fmt: skip
_tool(
    "translate", "translate_phrase|lang.translate|toLanguage", "Translate a text.", {"text|phrase|sentence": ("The text to translate", SENTENCE), "language|target_language|to": ("Language wanted", words("Spanish|西班牙语", "German|德语", "Japanese|日语", "French|法语", "Italian|意大利语"))}, lambda v, r: {"translation": r.choice(["Hasta mañana", "Guten Tag", "C'est ici", "Grazie"])},
    {"en": ["Translate \"{text}\" into {language}.", "How do you say \"{text}\" in {language}?"], "zh": ["把“{text}”翻译成{language}。"]}, {"en": ["In {language}: {translation}"], "zh": ["{language}是：{translation}"]},
)  # fmt: skip
_tool(
    "text", "text_measure|count_text|strings.length", "Count the words or characters of a text.", {"text|input|string": ("The text", SENTENCE), "what|unit|mode": ("What is counted", choice("words=words|单词", "characters=characters|字符"))}, lambda v, r: {"count": r.randint(3, 40)}, {"en": ["How many {what} has \"{text}\"?", "Count the {what} in: {text}"], "zh": ["“{text}”有多少个{what}？"]},
    {"en": ["It has {count} {what}."], "zh": ["有 {count} 个{what}。"]},
)  # fmt: skip
_tool(
    "dictionary", "word_meaning|dictionary.entry|defineTerm", "Look a word up in a dictionary.", {"word|term": ("The word", words("ephemeral", "serendipity", "candid", "lucid", "苍茫|苍茫")), "synonyms|with_synonyms": ("Also list synonyms", flag())}, lambda v, r: {"definition": r.choice(["lasting a very short time", "open and honest", "a happy accident"])},
    {"en": ["What does \"{word}\" mean[{synonyms}, and what are its synonyms]?", "Look up the word {word}."], "zh": ["“{word}”是什么意思？"]}, {"en": ["\"{word}\" means: {definition}."], "zh": ["“{word}”的意思是：{definition}。"]},
)  # fmt: skip
_tool(
    "sentiment", "feeling_of_text|nlp.mood|moodAnalysis", "Tell whether a text is positive or negative.", {"text|review|comment": ("The text", words("The food was cold and the waiter rude|菜是凉的，服务员态度也差", "I love this phone|我很喜欢这部手机", "It was an ordinary day|今天很平常"))}, lambda v, r: {"mood": r.choice(["positive", "negative", "neutral"]), "score": round(r.random(), 2)},
    {"en": ["Is this review positive: \"{text}\"?", "What is the mood of \"{text}\"?"], "zh": ["这句话的情绪是什么：“{text}”？"]}, {"en": ["It is {mood} (score {score})."], "zh": ["是 {mood}（{score}）。"]},
)  # fmt: skip
_tool(
    "code run", "run_snippet|sandbox.execute|execCode", "Run a piece of Python and return what it prints.", {"code|source|script": ("Python source", words("print(sum(range(10)))", "print(len('hello'))", "print(2**16)"))}, lambda v, r: str(r.randint(5, 65536)), {"en": ["Run this: {code}", "What does `{code}` print? Execute it."], "zh": ["运行这段代码：{code}"]}, {"en": ["It prints {value}."], "zh": ["输出是 {value}。"]},
)  # fmt: skip

# --- Looking things up --------------------------------------------------------------------------------------------

_tool(
    "search news", "search_pages|net.search|lookOnline", "Search the web.", {"query|q|keywords": ("What to search for", TOPIC), "count|limit|max_results": ("How many results. Default is 5", integer(2, 20))}, lambda v, r: {"title": r.choice(["A short guide", "What everybody should know", "Ten questions answered"]), "url": f"https://example.org/{r.randint(10, 99)}"},
    {"en": ["Search the web for {query}[ and give me {count} results].", "Find something online about {query}[, {count} results].", "Look up {query} on the internet."], "zh": ["在网上搜索{query}[，要 {count} 条结果]。", "查一下关于{query}的资料。"], "fr": ["Cherche sur le web : {query}."]}, {"en": ["I found \"{title}\": {url}"], "zh": ["找到“{title}”：{url}"], "fr": ["J'ai trouvé « {title} » : {url}"]},
)  # fmt: skip
_tool(
    "news search", "headlines|news.latest|topNews", "Latest news about a subject.", {"subject|topic|about": ("The subject", TOPIC), "day|date": ("Day, YYYY-MM-DD; today when left out", date())}, lambda v, r: {"headline": r.choice(["New record this year", "Experts disagree", "Prices fall again"])}, {"en": ["What's in the news about {subject}[ on {day}]?", "Latest headlines on {subject}[ from {day}]?"], "zh": ["有关{subject}的最新新闻？"]},
    {"en": ["The latest headline: {headline}."], "zh": ["最新的标题：{headline}。"]},
)  # fmt: skip
_tool(
    "book", "find_book|library.find|bookSearch", "Find books in the library.", {"topic|title|query": ("Title or subject", TOPIC), "author|writer": ("The author", PERSON), "language|lang": ("Language of the book", choice("en=English|英文", "zh=Chinese|中文", "fr=French|法文"))}, lambda v, r: {"title": r.choice(["The Long Road", "Quiet Water", "Beginnings"]), "year": r.randint(1960, 2025)},
    {"en": ["Is there a book about {topic}[ by {author}][ in {language}]?", "Find a book on {topic}[ written by {author}]."], "zh": ["有没有关于{topic}的[{language}]书？"]}, {"en": ["There is \"{title}\" from {year}."], "zh": ["有《{title}》，{year} 年出版。"]},
)  # fmt: skip
_tool(
    "movie", "film_finder|movies.suggest|recommendFilm", "Suggest films.", {"genre|kind|category": ("The genre", choice("comedy=comedy|喜剧", "drama=drama|剧情", "thriller=thriller|惊悚", "documentary=documentary|纪录")), "year|released|after_year": ("Released after this year", integer(1970, 2024)), "minimum_rating|min_score": ("Rating of at least, 0 to 10", number(5, 9))}, lambda v, r: {"film": r.choice(["Blue Rain", "The Last Tram", "Paper Moon Road"]), "rating": round(r.uniform(6, 9), 1)},
    {"en": ["Suggest a {genre} film[ made after {year}][ rated at least {minimum_rating}].", "I want to watch a {genre}[ from after {year}]."], "zh": ["推荐一部[{year} 年以后的]{genre}片。"], "de": ["Empfiehl mir einen Film: {genre}."]}, {"en": ["How about \"{film}\", rated {rating}?"], "zh": ["可以看《{film}》，评分 {rating}。"], "de": ["Wie wäre es mit „{film}“ ({rating})?"]},
)  # fmt: skip
_tool(
    "recipe", "dish_ideas|recipes.match|cookWith", "Find a recipe that uses some ingredients.", {"ingredients|items|foods": ("What must be in it", several(words("rice|米饭", "eggs|鸡蛋", "tomatoes|番茄", "tofu|豆腐", "mushrooms|蘑菇", "chicken|鸡肉"), 1, 4)), "diet|restriction": ("Kind of diet", choice("vegan=vegan|纯素", "vegetarian=vegetarian|素食", "gluten_free=gluten-free|无麸质")), "minutes|max_minutes|time_limit": ("Minutes at most", integer(10, 90))},
    lambda v, r: {"dish": r.choice(["Golden stew", "Quick bowl", "Sunday pan"]), "minutes_needed": r.randint(10, 60)}, {"en": ["What can I cook with {ingredients}[, {diet}][ in {minutes} minutes]?", "Find me a [{diet} ]recipe with {ingredients}[ that takes at most {minutes} minutes]."], "zh": ["用{ingredients}能做什么[{diet}]菜？[最多 {minutes} 分钟。]"]}, {"en": ["Try \"{dish}\"; it takes {minutes_needed} minutes."], "zh": ["可以做 {dish}，需要 {minutes_needed} 分钟。"]},
)  # fmt: skip
_tool(
    "restaurant", "places_to_eat|food.nearby|restaurantFinder", "Find restaurants.", {"area|city|near": ("Where", CITY), "cuisine|food|kitchen": ("Kind of food", words("Italian|意大利菜", "Sichuan|川菜", "Mexican|墨西哥菜", "seafood|海鲜", "Thai|泰国菜")), "price|price_level|budget": ("How expensive", choice("low=cheap|便宜", "medium=mid-priced|中等", "high=fine|高档")), "open_now|only_open": ("Only places that are open now", flag())}, lambda v, r: {"name": r.choice(["Luna", "Green Bowl", "Old Mill"]), "rating": round(r.uniform(3, 5), 1)},
    {"en": ["Find a [{price} ]{cuisine} restaurant in {area}[{open_now} that is open now].", "Where can I eat {cuisine} food in {area}[{open_now} right now]?"], "zh": ["{area}有什么[{price}的]{cuisine}餐厅？"], "es": ["Busca un restaurante ({cuisine}) en {area}."]}, {"en": ["{name} in {area} has a rating of {rating}."], "zh": ["{area}的 {name} 评分 {rating}。"], "es": ["{name}, en {area}, tiene una nota de {rating}."]},
)  # fmt: skip
_tool(
    "booking restaurant", "table_booking|reserve_seats|tables.book", "Reserve a table at a restaurant.", {"restaurant|venue|place": ("The restaurant", words("Luna Cafe|月亮餐厅", "Green Bowl|绿碗小馆", "Old Mill|老磨坊")), "guests|party_size|people": ("Number of guests", integer(2, 9)), "time|at|hour": ("HH:MM", clock_time()), "outside|terrace": ("True for a table outside", flag())}, lambda v, r: {"status": "confirmed", "code": f"B{r.randint(100, 999)}"},
    {"en": ["Book a table at {restaurant} for {guests} at {time}[{outside}, outside].", "Table for {guests} at {restaurant}, {time}[{outside}, on the terrace], please."], "zh": ["在{restaurant}订 {guests} 个人的位子，{time}[{outside}，要户外]。"]}, {"en": ["Your table at {restaurant} is {status}; the code is {code}."], "zh": ["已订好{restaurant}，确认码 {code}。"]},
)  # fmt: skip
_tool(
    "hotel", "rooms_search|lodging.search|hotelFinder", "Find hotel rooms.", {"city|destination|where": ("City", CITY), "check_in|arrival|from_date": ("Arrival, YYYY-MM-DD", date()), "nights|stay|num_nights": ("Number of nights", integer(1, 9)), "max_price|price_limit": ("Price a night at most", integer(60, 300)), "stars|min_stars": ("Stars at least. Default is 3", integer(2, 5)), "breakfast|with_breakfast": ("Breakfast included", flag())},
    lambda v, r: {"hotel": r.choice(["Blue Door Inn", "Hotel Mira", "Harbor Lodge", "Pine House"]), "price": r.randint(50, 220)}, {"en": ["Find a hotel in {city} from {check_in} for {nights} nights[, at most {max_price} a night][{breakfast}, with breakfast].", "I need a room in {city}, arriving {check_in}, {nights} nights[, {stars} stars or more]."], "zh": ["帮我找{city}的酒店，{check_in}入住，住 {nights} 晚[{breakfast}，含早餐]。"]},
    {"en": ["{hotel} in {city} costs {price} a night."], "zh": ["{city}的 {hotel}，每晚 {price}。"]},
)  # fmt: skip
_tool(
    "flight", "flight_options|air.search|planeTickets", "Find flights.", {"origin|from_airport|departure": ("Where it starts", CITY), "destination|to_airport|arrival": ("Where it goes", CITY), "date|departure_date|day": ("YYYY-MM-DD", date()), "cabin|travel_class": ("Class. Default is economy", choice("economy=economy|经济舱", "business=business|商务舱", "first=first|头等舱")), "passengers|adults": ("How many travel. Default is 1", integer(2, 6))}, lambda v, r: {"flight": f"QX{r.randint(100, 999)}", "departs": f"{r.randint(6, 22):02}:15", "price": r.randint(90, 900)},
    {"en": ["Find a [{cabin} class ]flight from {origin} to {destination} on {date}[ for {passengers} people].", "Which flights go from {origin} to {destination} on {date}?", "I want to fly from {origin} to {destination} on {date}[ in {cabin} class]."], "zh": ["{date}从{origin}飞{destination}有哪些[{cabin}]航班？"], "fr": ["Trouve un vol de {origin} à {destination} le {date}."]}, {"en": ["Flight {flight} leaves {origin} at {departs} and costs {price}."], "zh": ["{flight} 航班 {departs} 起飞，价格 {price}。"], "fr": ["Le vol {flight} part à {departs} et coûte {price}."]},
)  # fmt: skip
_tool(
    "train", "train_lookup|rail.timetable|trainTimes", "Look up trains between two stations.", {"from_station|origin|start": ("First station", CITY), "to_station|destination|end": ("Last station", CITY), "date|day": ("YYYY-MM-DD", date())}, lambda v, r: {"train": f"T{r.randint(10, 999)}", "departs": f"{r.randint(6, 22):02}:40"}, {"en": ["Which trains go from {from_station} to {to_station} on {date}?", "Find me a train from {from_station} to {to_station} on {date}."], "zh": ["查一下{date}从{from_station}到{to_station}的火车。"]},
    {"en": ["Train {train} leaves at {departs}."], "zh": ["{train} 次列车，{departs} 发车。"]},
)  # fmt: skip
_tool(
    "carrental", "rent_vehicle|cars.rent|carHire", "Rent a car.", {"city|pickup|location": ("Where it is picked up", CITY), "days|duration": ("For how many days", integer(1, 20)), "type|car_type|category": ("Kind of car", choice("small=small|小型", "suv=SUV", "van=van|面包车")), "automatic|auto_gear": ("Automatic gears", flag())}, lambda v, r: {"price": r.randint(80, 900), "car": r.choice(["Fiora", "Bergo", "Lumo X"])},
    {"en": ["Rent a {type} car in {city} for {days} days[{automatic} with automatic gears].", "I need a {type} car for {days} days in {city}."], "zh": ["在{city}租一辆{type}车，{days} 天[{automatic}，自动挡]。"]}, {"en": ["A {car} costs {price} for {days} days."], "zh": ["{car}，{days} 天 {price}。"]},
)  # fmt: skip

# --- Shopping, home, records --------------------------------------------------------------------------------------

_tool(
    "product", "article_search|shop.find|itemLookup", "Search the shop's products.", {"query|product|item": ("What is wanted", ITEM), "max_price|price_below": ("Price at most", integer(10, 300)), "in_stock|available_only": ("Only what is in stock", flag())}, lambda v, r: {"price": round(r.uniform(5, 200), 2), "stock": r.randint(0, 40)}, {"en": ["Do you sell a {query}[ for less than {max_price}]?", "How much is a {query}[{in_stock} that is in stock]?", "Find me a {query}[ under {max_price}]."], "zh": ["有{query}吗[，{max_price} 元以内]？", "{query}多少钱？"]},
    {"en": ["A {query} costs {price}; there are {stock} in stock."], "zh": ["{query}价格 {price}，库存 {stock}。"]},
)  # fmt: skip
_tool(
    "order", "place_order|shop.buy|createOrder", "Order articles.", {"lines|items|articles": ("What is ordered", several(record("{quantity} of the {item}", "{quantity} 个{item}", item=ITEM, quantity=integer(1, 9)), 1, 3)), "address|ship_to": ("Where it is sent", words("12 Park Lane, Bristol|人民路12号", "5 Rue Verte, Lyon|长江路5号"))}, lambda v, r: {"order": r.randint(1000, 9999), "total": round(r.uniform(20, 500), 2)},
    {"en": ["Order {lines}[ and send it to {address}].", "I want to buy {lines}[; ship to {address}]."], "zh": ["订购{lines}[，送到{address}]。"]}, {"en": ["Order {order} is placed; the total is {total}."], "zh": ["订单 {order} 已提交，共 {total}。"]},
)  # fmt: skip
_tool(
    "order parcel", "track_parcel|shipping.status|whereIsPackage", "Where a parcel is.", {"code|tracking_number|parcel_id": ("Tracking number", code("@@####@"))}, lambda v, r: {"status": r.choice(["in transit", "delivered", "at customs"]), "place": "Leipzig"}, {"en": ["Where is my parcel {code}?", "Track {code}.", "Has package {code} arrived?"], "zh": ["快递 {code} 到哪了？", "查询包裹 {code}。"], "de": ["Wo ist mein Paket {code}?"]},
    {"en": ["Parcel {code} is {status} ({place})."], "zh": ["包裹 {code}：{status}（{place}）。"], "de": ["Das Paket {code} ist {status} ({place})."]},
)  # fmt: skip
_tool(
    "order", "order_state|orders.get|checkOrder", "State of an order.", {"number|order_id|id": ("Order number", integer(1000, 99999)), "email|customer_email": ("The customer's e-mail", words("ana@example.org", "kim@example.net"))}, lambda v, r: {"state": r.choice(["paid", "packed", "shipped", "cancelled"])}, {"en": ["What is the state of order {number}[, placed by {email}]?", "Has order {number} been shipped?"], "zh": ["订单 {number} 的状态是什么？"]}, {"en": ["Order {number} is {state}."], "zh": ["订单 {number} 的状态是 {state}。"]},
)  # fmt: skip
_tool(
    "home", "light_switch|home.lights|setLights", "Switch the lights of a room.", {"room|where|area": ("The room", ROOM), "state|action": ("on or off", choice("on=on|打开", "off=off|关掉")), "brightness|level": ("Brightness in percent", integer(10, 100))}, lambda v, r: {"ok": True}, {"en": ["Turn the lights in the {room} {state}[ at {brightness} percent].", "Switch {state} the {room} lights[, brightness {brightness}]."], "zh": ["把{room}的灯{state}[，亮度 {brightness}]。"], "es": ["Pon las luces ({room}): {state}."]},
    {"en": ["The lights in the {room} are {state}."], "zh": ["已{state}{room}的灯。"], "es": ["Hecho: {room}, {state}."]},
)  # fmt: skip
_tool(
    "home heating", "heat_to|home.thermostat|setRoomTemperature", "Set the heating.", {"degrees|temperature|target": ("Degrees Celsius", number(15, 26)), "room|zone": ("The room; the whole home when left out", ROOM)}, lambda v, r: {"ok": True, "set_to": v["degrees"]}, {"en": ["Set the heating[ in the {room}] to {degrees} degrees.", "Make it {degrees} degrees[ in the {room}]."], "zh": ["把[{room}的]暖气调到 {degrees} 度。"]}, {"en": ["The heating is set to {degrees} degrees."], "zh": ["暖气已调到 {degrees} 度。"]},
)  # fmt: skip
_tool(
    "music", "play_track|player.play|startMusic", "Play music.", {"what|song|query": ("Song, artist or mood", words("Clair de Lune|月光", "the Blue Notes|蓝调", "something calm|轻松的音乐", "piano music|钢琴曲")), "room|speaker|device": ("Where to play", ROOM), "volume|loudness": ("0 to 100", integer(5, 90))}, lambda v, r: {"playing": True}, {"en": ["Play {what}[ in the {room}][ at volume {volume}].", "I want to hear {what}[ in the {room}]."], "zh": ["[在{room}]播放{what}[，音量 {volume}]。"], "fr": ["Mets de la musique : {what}."]}, {"en": ["Now playing {what}."], "zh": ["正在播放{what}。"], "fr": ["C'est parti : {what}."]},
)  # fmt: skip
_tool(
    "customer database", "customer_record|crm.customer|getClient", "Data of a customer.", {"customer_id|id|client": ("Number of the customer", integer(100, 9999)), "fields|columns|include": ("Which data. All when left out", several(choice("name=name|姓名", "city=city|城市", "phone=phone|电话", "balance=balance|余额"), 1, 3))}, lambda v, r: {"name": r.choice(["Ines Roth", "Paul Okoro", "Mei Lin"]), "city": r.choice(["Graz", "Accra", "Nanjing"]), "balance": r.randint(0, 900)},
    {"en": ["Who is customer {customer_id}[? I need the {fields}]?", "Get the [{fields} of the ]record of customer {customer_id}."], "zh": ["客户 {customer_id} 是谁？", "查询客户 {customer_id} 的[{fields}]资料。"]}, {"en": ["Customer {customer_id} is {name} from {city}, balance {balance}."], "zh": ["客户 {customer_id} 是 {name}，来自 {city}，余额 {balance}。"]},
)  # fmt: skip
_tool(
    "database", "rows_where|db.select|tableQuery", "Rows of a table that fulfil a condition.", {"table|source": ("The table", words("employees|员工表", "orders|订单表", "products|产品表")), "filter|where|condition": ("Column, operator and value", record("{column} {operator} {value}", "{column} {operator} {value}", column=words("age", "price", "salary"), operator=choice(">", "<", "="), value=integer(5, 9000))), "limit|max_rows": ("Rows at most", integer(1, 100))}, lambda v, r: {"rows": r.randint(0, 70)},
    {"en": ["How many rows of {table} have {filter}[? At most {limit} rows]?", "Select from {table} where {filter}[, {limit} rows at most]."], "zh": ["{table}中{filter}的有多少行[，最多 {limit} 行]？"]}, {"en": ["There are {rows} rows."], "zh": ["共有 {rows} 行。"]},
)  # fmt: skip
_tool(
    "account", "new_user|users.create|registerAccount", "Create a user account.", {"profile|user|data": ("The user's data", record("{name}, aged {age}", "{name}，{age} 岁", name=PERSON, age=integer(18, 90))), "role|access": ("Rights. Default is reader", choice("reader=reader|读者", "editor=editor|编辑", "admin=administrator|管理员"))}, lambda v, r: {"user_id": r.randint(100, 999)}, {"en": ["Create an account for {profile}[ as {role}].", "Register {profile}[ with the role {role}]."], "zh": ["为{profile}创建账户[，角色是{role}]。"]}, {"en": ["The account has the number {user_id}."], "zh": ["账户已创建，编号 {user_id}。"]},
)  # fmt: skip
_tool(
    "random password", "make_password|secrets.generate|passwordMaker", "Make a random password.", {"length|size|chars": ("Number of characters", integer(8, 32)), "symbols|special": ("With special characters. Default true", flag())}, lambda v, r: {"password": "".join(r.choice("abcdefghkmnpqrstuvwxyz23456789") for _ in range(10))}, {"en": ["Make a password with {length} characters[{symbols}, symbols too].", "I need a random password, {length} characters long."], "zh": ["生成一个 {length} 位的密码。"]}, {"en": ["Your password: {password}"], "zh": ["密码：{password}"]},
)  # fmt: skip
_tool(
    "random dice", "dice_throw|games.dice|throwDice", "Throw dice.", {"sides|faces": ("Sides of a die", integer(4, 20)), "count|dice|times": ("How many dice. Default is 1", integer(2, 6))}, lambda v, r: {"rolls": [r.randint(1, v["sides"]) for _ in range(v.get("count", 1))]}, {"en": ["Throw [{count} dice with ]{sides} sides.", "Roll a {sides}-sided die[ {count} times]."], "zh": ["掷[ {count} 个] {sides} 面的骰子。"]}, {"en": ["You rolled {rolls}."], "zh": ["掷出了 {rolls}。"]},
)  # fmt: skip

# --- Science, sport, health, law ----------------------------------------------------------------------------------

_tool(
    "physics energy", "motion_energy|physics.kinetic|kineticOf", "Kinetic energy of a moving body.", {"mass|m|mass_kg": ("Mass in kilograms", number(1, 900)), "speed|v|velocity": ("Speed in metres per second", number(1, 120))}, lambda v, r: {"joule": rounded(0.5 * v["mass"] * v["speed"] ** 2)}, {"en": ["What is the kinetic energy of {mass} kg moving at {speed} m/s?", "A car of {mass} kg drives at {speed} m/s. How much kinetic energy has it?"], "zh": ["质量 {mass} 公斤、速度 {speed} 米每秒的物体动能是多少？"]}, {"en": ["It is {joule} joules."], "zh": ["动能是 {joule} 焦耳。"]},
)  # fmt: skip
_tool(
    "physics motion", "fall_time|physics.drop|freeFall", "How long something falls.", {"height|h|drop_height": ("Height in metres", number(1, 500)), "gravity|g": ("Acceleration in m/s². Default is 9.81", number(1, 25, 2))}, lambda v, r: {"seconds": rounded(math.sqrt(2 * v["height"] / v.get("gravity", 9.81)))}, {"en": ["How long does a stone fall from {height} metres[ when gravity is {gravity} m/s²]?", "Falling time from a height of {height} m[ with g = {gravity}]?"], "zh": ["从 {height} 米高处落下要多久[，重力加速度 {gravity}]？"]}, {"en": ["It falls for {seconds} seconds."], "zh": ["下落 {seconds} 秒。"]},
)  # fmt: skip
_tool(
    "physics electricity", "ohms_law|circuit.current|currentThrough", "Electric current by Ohm's law.", {"voltage|volts|u": ("Voltage in volts", number(1, 400)), "resistance|ohms|r": ("Resistance in ohms", number(1, 900))}, lambda v, r: {"ampere": rounded(v["voltage"] / v["resistance"], 4)}, {"en": ["Which current flows at {voltage} volts through {resistance} ohms?", "Current for {voltage} V and {resistance} Ω?"], "zh": ["电压 {voltage} 伏、电阻 {resistance} 欧姆时电流是多少？"]}, {"en": ["The current is {ampere} A."], "zh": ["电流是 {ampere} 安培。"]},
)  # fmt: skip
_tool(
    "chemistry", "molar_weight|chem.mass|compoundMass", "Molar mass of a compound.", {"formula|compound|substance": ("Chemical formula", words("H2O", "CO2", "NaCl", "C6H12O6", "NH3", "H2SO4")), "digits|precision": ("Decimal places", integer(1, 4))}, lambda v, r: {"grams_per_mole": round(r.uniform(17, 180), 2)}, {"en": ["What is the molar mass of {formula}[ with {digits} decimals]?", "How heavy is one mole of {formula}?"], "zh": ["{formula} 的摩尔质量是多少？"]}, {"en": ["It is {grams_per_mole} g/mol."], "zh": ["是 {grams_per_mole} 克每摩尔。"]},
)  # fmt: skip
_tool(
    "biology", "species_info|bio.species|animalFacts", "Facts about an animal or a plant.", {"species|name|organism": ("The species", words("red fox|赤狐", "blue whale|蓝鲸", "oak|橡树", "honey bee|蜜蜂")), "aspect|topic|fact": ("What is wanted", choice("habitat=habitat|栖息地", "diet=diet|食性", "lifespan=lifespan|寿命"))}, lambda v, r: {"text": r.choice(["lives in forests", "up to 20 years", "mostly insects"])}, {"en": ["What is the {aspect} of the {species}?", "Tell me about the {aspect} of a {species}."], "zh": ["{species}的{aspect}是什么？"]}, {"en": ["About the {species}: {text}."], "zh": ["{species}：{text}。"]},
)  # fmt: skip
_tool(
    "space", "planet_data|astro.planet|planetLookup", "Data of a planet.", {"planet|body|name": ("The planet", words("Mars|火星", "Saturn|土星", "Venus|金星", "Neptune|海王星")), "quantity|property": ("What is wanted", choice("mass=mass|质量", "diameter=diameter|直径", "moons=number of moons|卫星数量"))}, lambda v, r: {"value": r.randint(2, 140000)}, {"en": ["What is the {quantity} of {planet}?", "Look up the {quantity} of the planet {planet}."], "zh": ["{planet}的{quantity}是多少？"]}, {"en": ["The {quantity} of {planet} is {value}."], "zh": ["{planet}的{quantity}是 {value}。"]},
)  # fmt: skip
_tool(
    "health bmi", "body_index|health.bmi|bodyMassIndex", "Body mass index.", {"mass_kg|weight|kg": ("Weight in kilograms", number(40, 120)), "height_m|height|tall": ("Height in metres", number(1.5, 2.0, 2))}, lambda v, r: {"bmi": rounded(v["mass_kg"] / v["height_m"] ** 2, 1)}, {"en": ["I weigh {mass_kg} kg and I am {height_m} m tall. What is my BMI?", "BMI for {mass_kg} kg and {height_m} m?"], "zh": ["体重 {mass_kg} 公斤，身高 {height_m} 米，BMI 是多少？"]}, {"en": ["Your BMI is {bmi}."], "zh": ["你的 BMI 是 {bmi}。"]},
)  # fmt: skip
_tool(
    "health sport", "energy_burned|fitness.calories|workoutEnergy", "Calories burned in a workout.", {"activity|sport|exercise": ("The activity", words("running|跑步", "swimming|游泳", "cycling|骑车", "rowing|划船")), "minutes|duration": ("Minutes", integer(5, 180)), "weight|body_weight": ("Weight in kilograms", number(45, 110))}, lambda v, r: {"kcal": r.randint(50, 1200)}, {"en": ["How many calories do I burn {activity} for {minutes} minutes[ at {weight} kg]?", "{minutes} minutes of {activity}[, I weigh {weight} kg]: how many calories?"], "zh": ["{activity} {minutes} 分钟消耗多少卡路里？[我 {weight} 公斤。]"]}, {"en": ["You burn about {kcal} kcal."], "zh": ["大约消耗 {kcal} 千卡。"]},
)  # fmt: skip
_tool(
    "nutrition", "food_values|nutrition.lookup|nutrientsOf", "Nutrients of a food.", {"food|dish|item": ("The food", words("banana|香蕉", "boiled rice|米饭", "salmon|三文鱼", "cheddar|奶酪")), "grams|amount|weight": ("Grams. Default is 100", integer(20, 900)), "nutrient|component": ("Which one", choice("protein=protein|蛋白质", "sugar=sugar|糖", "fat=fat|脂肪"))}, lambda v, r: {"value": round(r.uniform(0, 60), 1), "unit": "g"}, {"en": ["How much {nutrient} is in [{grams} grams of ]{food}?", "{nutrient} content of {food}[, {grams} g]?"], "zh": ["[{grams} 克]{food}含多少{nutrient}？"]}, {"en": ["It has {value} {unit} of {nutrient}."], "zh": ["含{nutrient} {value} {unit}。"]},
)  # fmt: skip
_tool(
    "sport", "match_result|sports.result|lastGame", "Result of a team's last match.", {"team|club|side": ("The team", words("Red Hawks|红鹰队", "Riverside United|河滨联队", "Northern Stars|北方之星")), "season|year": ("Season. The current one when left out", integer(2015, 2026))}, lambda v, r: {"score": f"{r.randint(0, 5)}:{r.randint(0, 5)}", "opponent": r.choice(["Lakers Town", "Blue Sea"])}, {"en": ["How did {team} play[ in {season}]?", "What was the last result of {team}[ in the {season} season]?"], "zh": ["{team}上一场比赛结果如何？"], "es": ["¿Cómo quedó {team}?"]}, {"en": ["{team} played {score} against {opponent}."], "zh": ["{team}对 {opponent} 的比分是 {score}。"], "es": ["{team} quedó {score} contra {opponent}."]},
)  # fmt: skip
_tool(
    "sport player", "athlete_numbers|sports.player|playerRecord", "Numbers of a player in a season.", {"player|athlete|name": ("The player", PERSON), "metric|stat|number": ("What is counted", choice("goals=goals|进球", "assists=assists|助攻", "minutes=minutes played|上场时间")), "season|year": ("The season", integer(2010, 2026))}, lambda v, r: {"value": r.randint(0, 60)}, {"en": ["How many {metric} did {player} have in {season}?", "{player}'s {metric} in the {season} season?"], "zh": ["{player}在 {season} 赛季有多少{metric}？"]}, {"en": ["{player} had {value} {metric} in {season}."], "zh": ["{season} 赛季{player}的{metric}是 {value}。"]},
)  # fmt: skip
_tool(
    "history", "event_lookup|history.event|pastEvents", "What happened in a year at a place.", {"year|when": ("The year", integer(1200, 1990)), "region|place|country": ("Where", COUNTRY)}, lambda v, r: {"event": r.choice(["a great fire", "a peace treaty", "the first railway"])}, {"en": ["What happened in {region} in {year}?", "Which event in {year} is known in {region}?"], "zh": ["{year} 年{region}发生了什么？"]}, {"en": ["In {year} there was {event} in {region}."], "zh": ["{year} 年{region}有 {event}。"]},
)  # fmt: skip
_tool(
    "law", "court_case|legal.case|findRuling", "Find a court case.", {"case_number|docket|id": ("Number of the case", code("##-@@-###")), "court|venue": ("The court", words("Supreme Court|最高法院", "District Court|地方法院")), "full_text|with_text": ("Return the whole text. Default is false", flag())}, lambda v, r: {"decision": r.choice(["dismissed", "granted", "settled"]), "year": r.randint(1990, 2025)}, {"en": ["How was case {case_number} at the {court} decided[{full_text}? Give me the full text]?", "Look up the ruling {case_number} of the {court}[{full_text} with its full text]."], "zh": ["{court}的案件 {case_number} 判决如何？"]}, {"en": ["It was {decision} in {year}."], "zh": ["{year} 年，{decision}。"]},
)  # fmt: skip
_tool(
    "jobs", "open_positions|jobs.search|jobFinder", "Search job offers.", {"role|title|profession": ("The profession", words("nurse|护士", "data analyst|数据分析师", "carpenter|木匠", "teacher|教师")), "city|location|where": ("Where", CITY), "remote|work_from_home": ("Only remote work", flag()), "salary|min_salary": ("Salary a year at least", amount(20000, 90000))}, lambda v, r: {"offers": r.randint(0, 70), "best": "Blue Harbor Ltd"}, {"en": ["Are there jobs for a {role} in {city}[{remote}, remote only][ paying at least {salary}]?", "Find {role} positions in {city}[ with a salary of {salary} or more]."], "zh": ["{city}有{role}的工作吗？"]}, {"en": ["There are {offers} offers; the best is from {best}."], "zh": ["有 {offers} 个职位，最好的是 {best}。"]},
)  # fmt: skip
_tool(
    "estate", "homes_for_sale|estate.search|houseHunt", "Find homes for sale.", {"city|area|location": ("Where", CITY), "bedrooms|rooms|min_bedrooms": ("Bedrooms at least", integer(1, 6)), "max_price|budget|price_limit": ("Price at most", amount(90000, 900000)), "garden|with_garden": ("Must have a garden", flag())}, lambda v, r: {"found": r.randint(0, 30), "cheapest": r.randint(90000, 400000)}, {"en": ["Find homes in {city} with {bedrooms} bedrooms for at most {max_price}[{garden}, with a garden].", "I look for a house in {city}, {bedrooms} bedrooms, budget {max_price}."], "zh": ["在{city}找 {bedrooms} 室的房子，预算 {max_price}[{garden}，带花园]。"]}, {"en": ["There are {found} homes, from {cheapest}."], "zh": ["共 {found} 套，最低 {cheapest}。"]},
)  # fmt: skip
_tool(
    "genetics probability", "chance_of|probability.binomial|luckOdds", "Probability of a number of successes.", {"trials|n|attempts": ("How often it is tried", integer(2, 40)), "successes|k|wins": ("Successes wanted", integer(1, 12)), "p|probability|chance": ("Chance of one success, as a fraction of one", fraction(5, 95))}, lambda v, r: {"probability": round(r.random(), 4)}, {"en": ["How likely are {successes} successes in {trials} tries when each has a chance of {p}?", "Probability of {successes} wins in {trials} games at {p} each?"], "zh": ["每次成功率 {p}，{trials} 次中成功 {successes} 次的概率是多少？"]}, {"en": ["The probability is {probability}."], "zh": ["概率是 {probability}。"]},
)  # fmt: skip

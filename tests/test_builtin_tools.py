"""The tools that come with the program, by what they answer."""

from __future__ import annotations

import json
import math
import subprocess
import sys
import time
from datetime import datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qwen_tools.builtin_tools import BUILTIN, cities
from qwen_tools.errors import UserError
from qwen_tools.executor import execute
from qwen_tools.messages import ToolCall
from qwen_tools.tool_sources import load


def use(name: str, **arguments):
    return execute(ToolCall(name, arguments), load(None), timeout=5)


def test_there_are_six_and_all_only_read():
    assert set(BUILTIN) == {
        "get_current_time", "calculate", "sqrt", "add", "get_current_weather", "get_distance_between_cities",
    }  # fmt: skip
    for tool in BUILTIN.values():
        assert tool.read_only
        jsonschema.Draft202012Validator.check_schema(dict(tool.parameters))


def test_importing_them_loads_nothing_heavy():
    heavy = "{'torch', 'transformers', 'simpleeval'}"
    code = f"import sys, qwen_tools.builtin_tools; sys.exit(bool({heavy} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("37 * 492", "18204"),
        ("sqrt(7744)", "88.0"),
        ("sqrt(31.415926) + sqrt(27.1828)", "10.818703857262644"),
        ("2 ** 10", "1024"),
        ("2^10", "1024"),
        ("7 / 2", "3.5"),
        ("7 // 2", "3"),
        ("1,234,567 + 1", "1234568"),
        ("12 × 3 ÷ 4", "9.0"),
        ("（1＋2）＊3", "9"),
        ("√7744", "88.0"),
        ("15% * 80", "12.0"),
        ("17 % 5", "2"),
        ("max(1, 2, 3)", "3"),
        ("factorial(20)", "2432902008176640000"),
        ("2 ** 64", "18446744073709551616"),
        ("-3 + +4", "1"),
        ("round(2.567, 2)", "2.57"),
        ("log(8, 2)", "3.0"),
        ("37 * 492 =", "18204"),
        ("3 + 4 = ?", "7"),
        ("31.415926加上27.1828", "58.598726"),
        ("10 减去 3 乘以 2", "4"),
        ("10除以4", "2.5"),
        ("３　＋　４", "7"),
        ("3 x 4", "12"),
        ("10X5", "50"),
        ("0x10", "16"),
        ("2(3+4)(1+1)", "28"),
        ("log2(8)", "3.0"),
        ("5²", "25"),
        ("2¹⁰", "1024"),
        ("5!", "120"),
        ("15% of 80", "12.0"),
        ("20 - 15%", "19.85"),
        ("math.sqrt(16) + np.pi * 0", "4.0"),
        ("SQRT(16) * PI / PI", "4.0"),
        ("1,234.5 + (1,000)", "2234.5"),
        ("max(1,234)", "234"),
        ("1 ** 1000000", "1"),
        ("0.1 + 0.2", "0.30000000000000004"),
        ("1 +\n2", "3"),
        ("round(1234, -2)", "1200"),
    ],
)
def test_arithmetic(expression, value):
    result = use("calculate", expression=expression)
    assert (result.ok, result.content) == (True, value)


@pytest.mark.parametrize(
    "expression",
    [
        "1 / 0",
        "9 ** 9 ** 9",
        "10 ** 100000",
        "2.0 ** 100000",
        "factorial(100000)",
        "factorial(factorial(20))",
        "(-1) ** 0.5",
        "sqrt(-1)",
        "'a' * 1000000000",
        "[1] * 100000000",
        "[x for x in range(10**9)]",
        "__import__('os').system('true')",
        "().__class__.__bases__",
        "open('/etc/passwd')",
        "print(1)",
        "x",
        "",
        "   ",
        "1 +",
        "lambda: 1",
        "(" * 200 + ")" * 200,
        "1 + " * 200 + "1",
        "999999999999 ** 999999999999 % 7",
        "hello world",
        "round(12345, -99999999)",
        "round(1.5, 10**300)",
        "f'{1:>900000000}'",
        "(1).__class__",
        "1.5.real",
        "(5).bit_length()",
        "1if 1else 2",
        "(1).to_bytes(900000000)",
        "1.234,567 + 1",
        "12,34",
        "sqrt(1,234)",
        "1; 2",
        "1\n2",
        "x = 3",
        "1 == 1",
        "True",
        "½",
        "3j",
        "1e400",
        "{1}",
        "1 if 1 else (2 for a in b)",
        "(" + "9" * 200 + "**" * 100 + "9)",
        "99!!!",
        "factorial(1.5)",
        "pow(3, 1000000, 7)",
        "-" * 499 + "1",
        "1" * 501,
        "\x00",
        "\ud800",
    ],
)
def test_what_is_no_arithmetic_is_refused_at_once(expression):
    started = time.monotonic()
    result = use("calculate", expression=expression)
    assert not result.ok
    assert "tool_error" in result.content
    assert len(result.content) < 900
    assert time.monotonic() - started < 2


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet="0123456789+-*/().,^% esqrtlog×√{}[]'\"_", max_size=60))
def test_no_expression_escapes(expression):
    started = time.monotonic()
    result = use("calculate", expression=expression)
    assert time.monotonic() - started < 3
    if result.ok:
        assert math.isfinite(float(result.content)) or len(result.content) > 300


NUMBERS = st.integers(0, 99).map(str) | st.sampled_from(["0.5", "pi", "e", "7."])
EXPRESSIONS = st.recursive(
    NUMBERS,
    lambda part: (
        st.tuples(part, st.sampled_from("+-*/"), part).map(" ".join)
        | part.map("({})".format)
        | st.tuples(st.sampled_from(["sqrt", "abs", "floor", "-"]), part).map(lambda pair: f"{pair[0]}({pair[1]})")
    ),
    max_leaves=12,
)


@settings(max_examples=200, deadline=None)
@given(EXPRESSIONS)
def test_ordinary_expressions_mean_what_they_mean_in_python(expression):
    names = {"pi": math.pi, "e": math.e, "sqrt": math.sqrt, "abs": abs, "floor": math.floor}
    try:
        expected = eval(expression, {"__builtins__": {}}, names)  # our own text; Python is the oracle
    except (ZeroDivisionError, ValueError, OverflowError):
        assert not use("calculate", expression=expression).ok
    else:
        assert use("calculate", expression=expression).content == repr(expected)


def test_an_unknown_function_or_name_is_told_what_there_is():
    assert "factorial" in use("calculate", expression="mean(1, 2)").content
    assert "'y' has no value" in use("calculate", expression="y + 1").content


@given(st.integers(-(10**12), 10**12), st.integers(-(10**12), 10**12))
def test_integers_are_exact(a, b):
    assert use("calculate", expression=f"({a}) * ({b})").content == str(a * b)
    assert use("add", a=a, b=b).content == str(a + b)


def test_square_roots():
    assert use("sqrt", value=7744).content == "88.0"
    assert not use("sqrt", value=-1).ok
    assert not use("sqrt", value="7744").ok
    assert not use("sqrt", value=10**400).ok
    assert not use("add", a=1e308, b=1e308).ok


def test_the_time_here_and_elsewhere():
    here = use("get_current_time").content
    then = datetime.strptime(here.rsplit(" ", 2)[0], "%Y-%m-%d %H:%M:%S")
    assert abs((datetime.now() - then).total_seconds()) < 5
    utc = use("get_current_time", timezone="UTC").content
    then = datetime.strptime(utc, "%Y-%m-%d %H:%M:%S UTC (%A)").replace(tzinfo=timezone.utc)
    assert abs((datetime.now(timezone.utc) - then).total_seconds()) < 5
    assert use("get_current_time", timezone="Asia/Tokyo").content.split()[2] == "JST"
    assert use("get_current_time", timezone="tokyo").content.split()[2] == "JST"


@pytest.mark.parametrize(
    ("zone", "hours"),
    [
        ("Asia/Tokyo", 9),
        ("asia/tokyo", 9),
        ("Asia/Beijing", 8),
        ("北京", 8),
        ("Mumbai", 5.5),
        ("Ho_Chi_Minh", 7),
        ("UTC+8", 8),
        ("GMT-3", -3),
        ("utc+05:30", 5.5),
        ("Etc/GMT+8", -8),
        ("Zulu", 0),
    ],
)
def test_a_zone_as_models_write_it(zone, hours):
    then = datetime.now(timezone.utc) + timedelta(hours=hours)
    told = use("get_current_time", timezone=zone).content.rsplit(" ", 2)[0]
    assert abs((datetime.strptime(told, "%Y-%m-%d %H:%M:%S") - then.replace(tzinfo=None)).total_seconds()) < 5


def test_a_misspelt_zone_is_told_the_right_one():
    assert "did you mean Europe/Paris?" in use("get_current_time", timezone="Europe/Pairs").content
    assert not use("get_current_time", timezone="UTC+99").ok
    assert not use("get_current_time", timezone="z" * 100_000).ok


@pytest.mark.parametrize("zone", ["Nowhere/City", "../../etc/passwd", "/etc/localtime", "a\x00b"])
def test_an_unknown_zone_is_an_error_that_says_what_to_use(zone):
    result = use("get_current_time", timezone=zone)
    assert not result.ok
    assert "IANA" in result.content


@pytest.mark.parametrize(
    ("first", "second", "kilometres"),
    # Great-circle distances as published, to within the table's rounding.
    [
        ("Berlin", "Madrid", 1870),
        ("北京", "上海", 1068),
        ("New York", "London", 5570),
        ("Sydney", "tokyo", 7820),
        ("Peking", "BEIJING, China", 0),
        ("Auckland", "Honolulu", 7090),
    ],
)
def test_distances(first, second, kilometres):
    result = use("get_distance_between_cities", city1=first, city2=second)
    assert result.ok
    assert json.loads(result.content)["distance_km"] == pytest.approx(kilometres, rel=0.01)
    assert "sample" in result.content


def test_weather_says_that_it_is_made_up_and_converts():
    celsius = json.loads(use("get_current_weather", location="Paris, France", unit="celsius").content)
    fahrenheit = json.loads(use("get_current_weather", location="巴黎", unit="fahrenheit").content)
    assert celsius["location"] == fahrenheit["location"] == "Paris"
    assert fahrenheit["temperature"] == round(celsius["temperature"] * 9 / 5 + 32)
    assert "sample data" in celsius["note"]


def test_an_unknown_city_is_an_error_with_the_closest():
    result = use("get_current_weather", location="Berlni", unit="celsius")
    assert not result.ok
    assert "Berlin" in result.content
    assert not use("get_current_weather", location="Berlin", unit="kelvin").ok
    assert not use("get_distance_between_cities", city1="Berlin", city2="Atlantis").ok
    assert not use("get_current_weather", location="", unit="celsius").ok


@pytest.mark.parametrize(
    ("written", "city"),
    [
        ("são paulo", "Sao Paulo"),
        ("ZÜRICH", "Zurich"),
        ("Xi’an", "Xi'an"),
        ("xian", "Xi'an"),
        ("Washington, D.C.", "Washington"),
        ("New York City (NY)", "New York"),
        ("St Petersburg", "St. Petersburg"),
        ("北京市", "Beijing"),
        ("Saigon", "Ho Chi Minh City"),
    ],
)
def test_a_city_by_any_of_its_names(written, city):
    assert json.loads(use("get_current_weather", location=written, unit="celsius").content)["location"] == city


def test_every_city_has_a_zone_that_fits_its_longitude():
    """A wrong zone or a swapped sign would put a city hours away from the sun."""
    found = {city for city in map(cities.find, cities.names()) if city}
    assert len(found) > 100
    for city in found:
        january = datetime(2026, 1, 15, tzinfo=ZoneInfo(city.timezone))
        assert abs(january.utcoffset() / timedelta(hours=1) - city.longitude / 15) < 2.5, city


def test_a_file_beside_the_built_in_ones(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text('def mine(a: int) -> int:\n    """Mine."""\n    return a\n')
    assert load(f"builtin,{path}").names() == [*BUILTIN, "mine"]


def test_a_broken_schema_is_found_when_the_file_is_loaded(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text("from qwen_tools import Tool\nodd = Tool('odd', 'Odd.', {'type': 'no such type'})\n")
    with pytest.raises(UserError, match="'odd'"):
        load(str(path))


def test_selection():
    assert load("sqrt, add").names() == ["sqrt", "add"]
    assert load("none").names() == []
    assert load("builtin").names() == load(None).names()
    with pytest.raises(UserError, match="did you mean calculate"):
        load("calcualte")
    with pytest.raises(UserError, match="did you mean calculate"):
        load("Calculate")
    with pytest.raises(UserError, match=r"there are .* \.py and \.json files"):
        load("weather.toml")
    assert load("sqrt,builtin,sqrt").names()[0] == "sqrt"
    assert len(load("sqrt,builtin,sqrt")) == len(BUILTIN)
    with pytest.raises(UserError, match="no tools file"):
        load("missing.py")

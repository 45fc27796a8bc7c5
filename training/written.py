"""Questions for a piece of JSON or code, and what is written: what no tool is needed for, though one is offered.

A small model that has learnt to write JSON for a tool takes any question for JSON as a reason to call one.
"""

from __future__ import annotations

import json
from random import Random

LANGUAGES = ("en", "zh")

_ASKED_JSON = {
    "en": (
        "Show me JSON for {thing}.", "Give me an example of {thing} in JSON.", "I need a sample JSON document that describes {thing}.", "What could {thing} look like as JSON?",
        "Make up {thing} and write it as JSON.", "JSON sample: {thing}", "Could you write {thing} as a JSON object?", "Write down {thing} in JSON format, please.",
        "An example JSON object for {thing}, please.",
    ),
    "zh": ("用 JSON 写一个{thing}的例子。", "给我看{thing}的 JSON 示例。", "请把{thing}写成 JSON。"),
}  # fmt: skip
_THINGS = (
    ("an invoice|发票", {"number": "R-208", "total": 149.5, "paid": False}), ("a recipe|菜谱", {"title": "Lentil soup", "minutes": 35, "ingredients": ["lentils", "carrots", "cumin"]}),
    ("a song|歌曲", {"title": "Blue Hour", "artist": "The Larkins", "seconds": 214}), ("a house|房子", {"rooms": 5, "garden": True, "built": 1962}),
    ("a student|学生", {"name": "Ines Okafor", "age": 17, "courses": ["maths", "art"]}), ("an employee|员工", {"name": "Karl Lind", "role": "welder", "since": 2014}),
    ("a dog|狗", {"name": "Bruno", "breed": "beagle", "age": 4}), ("a shopping cart|购物车", {"items": [{"name": "kettle", "price": 29.9}], "currency": "EUR"}),
    ("a flight booking|机票订单", {"from": "OSL", "to": "LIS", "passengers": 2}), ("a weather report|天气报告", {"city": "Bergen", "temperature": 9, "sky": "rain"}),
    ("a user profile|用户资料", {"user": "mira7", "language": "en", "admin": False}), ("a to-do list|待办清单", [{"task": "water the plants", "done": False}, {"task": "call Ana", "done": True}]),
    ("a country|国家", {"name": "Portugal", "capital": "Lisbon", "languages": ["Portuguese"]}), ("a bus stop|公交站", {"name": "Mill Lane", "lines": [4, 17], "shelter": True}),
    ("a customer|顾客", {"id": 318, "name": "Rosa Lind", "city": "Lyon"}), ("a football player|足球运动员", {"name": "Omar Haddad", "number": 9, "goals": 12}),
    ("a configuration file|配置文件", {"port": 8080, "debug": False, "hosts": ["a.example", "b.example"]}), ("a point on a map|地图上的点", {"lat": 60.39, "lon": 5.32}),
)  # fmt: skip
_ASKED_CODE = {
    "en": (
        "Write {what}.", "Show me {what}.", "Can you code {what}?", "I need {what}; please write it.", "How would you write {what}?", "Please give me {what}.",
    ),
    "zh": ("写{what}。", "请给我{what}。"),
}  # fmt: skip
_CODE = (
    ("a Python function that multiplies its two arguments|一个把两个参数相乘的 Python 函数", "python", "def product(a, b):\n    return a * b"),
    ("a Python function that returns the largest of a list|一个返回列表最大值的 Python 函数", "python", "def largest(numbers):\n    return max(numbers)"),
    ("Python code that counts the words of a text|统计单词数的 Python 代码", "python", "def count_words(text):\n    return len(text.split())"),
    ("a function that turns Celsius into Fahrenheit in Python|把摄氏度换成华氏度的 Python 函数", "python", "def to_fahrenheit(celsius):\n    return celsius * 9 / 5 + 32"),
    ("a Python function for the square root of a number|求平方根的 Python 函数", "python", "import math\n\ndef root(x):\n    return math.sqrt(x)"),
    ("a Python script that prints the current time|打印当前时间的 Python 脚本", "python", "from datetime import datetime\n\nprint(datetime.now())"),
    ("a Python function that tests whether a number is even|判断偶数的 Python 函数", "python", "def is_even(n):\n    return n % 2 == 0"),
    ("a recursive factorial in Python|递归求阶乘的 Python 代码", "python", "def factorial(n):\n    return 1 if n < 2 else n * factorial(n - 1)"),
    ("a JavaScript function that subtracts b from a|一个做减法的 JavaScript 函数", "javascript", "function subtract(a, b) {\n  return a - b;\n}"),
    ("a JavaScript arrow function that doubles a number|把数字翻倍的 JavaScript 箭头函数", "javascript", "const double = (x) => x * 2;"),
    ("a SQL query that counts the rows of the table orders|统计 orders 表行数的 SQL", "sql", "SELECT COUNT(*) FROM orders;"),
    ("a shell command that lists the largest files|列出最大文件的 shell 命令", "bash", "du -ah . | sort -rh | head"),
    ("a C function that swaps two integers|交换两个整数的 C 函数", "c", "void swap(int *a, int *b) {\n    int t = *a;\n    *a = *b;\n    *b = t;\n}"),
    ("a Python class for a bank account|一个银行账户的 Python 类", "python", "class Account:\n    def __init__(self):\n        self.balance = 0\n\n    def deposit(self, amount):\n        self.balance += amount"),
    ("a regular expression for a date like 2026-05-04|匹配 2026-05-04 这种日期的正则表达式", "text", "\\d{4}-\\d{2}-\\d{2}"),
    ("an HTML page with one heading|只有一个标题的 HTML 页面", "html", "<!doctype html>\n<title>Hello</title>\n<h1>Hello</h1>"),
)  # fmt: skip


def task(random: Random, language: str) -> tuple[str, str]:
    """A question for something written, and the answer: a block of code, nothing else."""
    if random.random() < 0.5:
        named, value = random.choice(_THINGS)
        asked, kind, text = _ASKED_JSON, "json", json.dumps(value, indent=2)
    else:
        named, kind, text = random.choice(_CODE)
        asked = _ASKED_CODE
    what = named.split("|")[LANGUAGES.index(language)]
    return random.choice(asked[language]).format(thing=what, what=what), f"```{kind}\n{text}\n```"

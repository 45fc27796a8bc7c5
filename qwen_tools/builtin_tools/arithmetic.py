"""Arithmetic. Expressions are evaluated by simpleeval, never by Python; size and time are bounded."""

from __future__ import annotations

import ast
import math
import operator
import re
import unicodedata
from collections.abc import Callable
from typing import Any

from ..tools import Tool

_LONGEST = 500  # characters of an expression
_BITS = 13_000  # of an integer, about 3,900 decimal digits: Python writes no more than 4,300

_SIGNS = str.maketrans({"×": "*", "✕": "*", "·": "*", "÷": "/", "−": "-", "–": "-", "π": "pi"})


def calculate(expression: str) -> int | float | bool:
    """The value of an arithmetic expression. Raises ValueError for what is none, or is too large."""
    from simpleeval import SimpleEval

    if len(expression) > _LONGEST:
        raise ValueError(f"the expression is longer than {_LONGEST} characters")
    evaluator = SimpleEval(operators=_OPERATORS, functions=_FUNCTIONS, names={"pi": math.pi, "e": math.e})
    try:
        value = evaluator.eval(_normalised(expression))
    except ZeroDivisionError:
        raise ValueError("division by zero") from None
    except OverflowError:
        raise ValueError("the result is too large") from None
    except (RecursionError, MemoryError):
        raise ValueError("the expression is nested too deeply") from None
    except ValueError:
        raise
    except Exception as error:
        reason = " ".join(str(error).split())
        raise ValueError(f"{expression!r} is not an arithmetic expression: {reason}") from error
    return _number(value)


def square_root(value: float) -> float:
    """The square root. Raises ValueError for a negative number."""
    if value < 0:
        raise ValueError("a negative number has no real square root")
    return math.sqrt(value)


def add(a: float, b: float) -> float:
    """The sum."""
    return a + b


def _normalised(expression: str) -> str:
    """As Python writes it: full-width characters, × ÷ √ ^, percent signs and thousands separators."""
    text = unicodedata.normalize("NFKC", expression).translate(_SIGNS).replace("^", "**").strip().rstrip("=").strip()
    text = re.sub(r"√\s*(\d+(?:\.\d+)?)", r"sqrt(\1)", text).replace("√", "sqrt")
    text = re.sub(r"(\d+(?:\.\d+)?)\s*%(?!\s*[\w(.])", r"(\1/100)", text)
    if not re.search(r"[A-Za-z]\w*\s*\(", text):  # a comma between arguments separates no thousands
        text = re.sub(r"(?<=\d),(?=\d{3}(?!\d))", "", text)
    return text


def _number(value: Any) -> int | float | bool:
    if isinstance(value, bool):
        return value
    if isinstance(value, int) and value.bit_length() <= _BITS:
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    if isinstance(value, (int, float)):
        raise ValueError("the result is too large")
    raise ValueError(f"the result is no real number but {type(value).__name__}")


def _checked(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function on real numbers only, its result not too large."""

    def call(*values: Any) -> Any:
        for value in values:
            _number(value)
        return _number(function(*values))

    return call


def _power(base: Any, exponent: Any) -> Any:
    if isinstance(base, int) and isinstance(exponent, int) and exponent > 0 and base.bit_length() * exponent > _BITS:
        raise ValueError("the result is too large")
    return base**exponent


def _factorial(value: int | float) -> int:
    if value != int(value) or not 0 <= value <= 1000:
        raise ValueError("factorial takes a whole number from 0 to 1000")
    return math.factorial(int(value))


_OPERATORS = {
    ast.Add: _checked(operator.add),
    ast.Sub: _checked(operator.sub),
    ast.Mult: _checked(operator.mul),
    ast.Div: _checked(operator.truediv),
    ast.FloorDiv: _checked(operator.floordiv),
    ast.Mod: _checked(operator.mod),
    ast.Pow: _checked(_power),
    ast.USub: _checked(operator.neg),
    ast.UAdd: _checked(operator.pos),
}
_FUNCTIONS = {
    name: _checked(function)
    for name, function in {
        "sqrt": square_root,
        "cbrt": lambda value: math.copysign(abs(value) ** (1 / 3), value),
        "pow": _power,
        "factorial": _factorial,
        "abs": abs,
        "round": round,
        "min": min,
        "max": max,
        "sum": lambda *values: sum(values),
        **{
            name: getattr(math, name)
            for name in (
                "sin",
                "cos",
                "tan",
                "asin",
                "acos",
                "atan",
                "atan2",
                "sinh",
                "cosh",
                "tanh",
                "exp",
                "log",
                "log2",
                "log10",
                "floor",
                "ceil",
                "trunc",
                "degrees",
                "radians",
                "hypot",
                "gcd",
            )
        },
        "ln": math.log,
    }.items()
}


_NUMBER = {"type": "number"}

TOOLS = [
    Tool(
        "calculate",
        "The value of an arithmetic expression of numbers.",
        {
            "type": "object",
            "properties": {
                "expression": {
                    "type": "string",
                    "description": "numbers, + - * / ** and functions such as sqrt",
                }
            },
            "required": ["expression"],
        },
        calculate,
        read_only=True,
    ),
    Tool(
        "sqrt",
        "The square root of a number.",
        {"type": "object", "properties": {"value": _NUMBER}, "required": ["value"]},
        square_root,
        read_only=True,
    ),
    Tool(
        "add",
        "The sum of two numbers.",
        {"type": "object", "properties": {"a": _NUMBER, "b": _NUMBER}, "required": ["a", "b"]},
        add,
        read_only=True,
    ),
]

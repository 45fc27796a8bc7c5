"""Arithmetic. Expressions are evaluated by simpleeval, never by Python; size and time are bounded."""

from __future__ import annotations

import ast
import math
import operator
import re
from collections.abc import Callable
from typing import Any

from ..tools import Tool

_LONGEST = 500  # characters of an expression
_BITS = 13_000  # of an integer, about 3,900 decimal digits: Python writes no more than 4,300

# Signs of arithmetic as people and models write them, and full-width characters.
_SIGNS = str.maketrans(
    {chr(code): chr(code - 0xFEE0) for code in range(0xFF01, 0xFF5F)}
    | dict.fromkeys("×✕·⋅", "*")
    | dict.fromkeys("÷∕⁄", "/")
    | dict.fromkeys("−–—", "-")
    | {"π": "pi"}
)
_RAISED = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789")
# What is rewritten, in this order, into what Python writes.
_FORMS: list[tuple[str, str | Callable[[re.Match[str]], str]]] = [
    ("加上|加", "+"),
    ("减去|减|減去|減", "-"),
    ("乘以|乘", "*"),
    ("除以", "/"),
    (r"[⁰¹²³⁴⁵⁶⁷⁸⁹]+", lambda found: "**" + found[0].translate(_RAISED)),
    (r"\^", "**"),
    (r"\b(?:math|np|numpy)\s*\.\s*", ""),
    (r"√\s*(\d+(?:\.\d+)?)", r"sqrt(\1)"),
    ("√", "sqrt"),
    (r"(\d+)\s*!", r"factorial(\1)"),
    (r"(\d+(?:\.\d+)?)\s*%\s*of\b", r"(\1/100)*"),
    (r"(\d+(?:\.\d+)?)\s*%(?!\s*[\w(.])", r"(\1/100)"),  # 17 % 5 is the remainder
    (r"(?<=[\d)])(?<!\b0)\s*x\s*(?=[\d(.])", "*"),  # 3 x 4, but not 0x4
    (r"(\)|(?<![\w.])[\d.]+)\s*(?=\()", r"\1*"),  # 2(3+4), but not log2(8)
]
_THOUSANDS = re.compile(r"(?<![\w.,])\d{1,3}(?:,\d{3})+(?![\d,])")
# Also a keyword glued to a number, of which Python would warn on stderr.
_STRANGE = re.compile(r"[^0-9a-z_.,+\-*/%() ]|\d(?:and|else|for|if|in|is|not|or)")


def calculate(expression: str) -> int | float:
    """The value of an arithmetic expression; integers are exact. Raises ValueError for what is none, or is too
    large.
    """
    from simpleeval import FunctionNotDefined, NameNotDefined, SimpleEval

    if len(expression) > _LONGEST:
        raise ValueError(f"the expression is longer than {_LONGEST} characters")
    evaluator = SimpleEval(operators=_OPERATORS, functions=_FUNCTIONS, names={"pi": math.pi, "e": math.e})
    # Numbers and functions of them; no attributes, no choices, no texts.
    evaluator.nodes = {kind: evaluator.nodes[kind] for kind in _NODES}
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
    except FunctionNotDefined as error:
        known = ", ".join(_FUNCTIONS)
        raise ValueError(f"there is no function {error.func_name!r}; the functions are {known}") from error
    except NameNotDefined as error:
        raise ValueError(f"{error.name!r} has no value; use numbers, pi and e") from error
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
    """The sum. Raises ValueError when it is too large."""
    return _number(a + b)


def _normalised(expression: str) -> str:
    """As Python writes it, on one line. Raises ValueError for a character that is in no arithmetic expression."""
    text = " ".join(expression.translate(_SIGNS).lower().split()).strip("=? ")
    for pattern, replacement in _FORMS:
        text = re.sub(pattern, replacement, text)
    # A comma between arguments separates no thousands.
    if not re.search(r"[a-z]\w*\s*\(", text):
        text = _THOUSANDS.sub(lambda number: number[0].replace(",", ""), text)
    strange = _STRANGE.search(text)
    if strange or not text:
        reason = f"{strange[0]!r} does not belong there" if strange else "it is empty"
        raise ValueError(
            f"{expression!r} is not an arithmetic expression: {reason}. "
            "Use numbers, + - * / ** % ( ) and functions such as sqrt"
        )
    return text


def _number(value: Any) -> int | float:
    """The value itself. Raises ValueError for what is no finite real number, or has too many digits."""
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
    if isinstance(base, int) and isinstance(exponent, int) and abs(base) > 1 and base.bit_length() * exponent > _BITS:
        raise ValueError("the result is too large")
    return base**exponent


def _round(value: Any, digits: Any = None) -> Any:
    # Python would compute ten to the power of minus digits, however long that takes.
    if digits is not None and (not isinstance(digits, int) or abs(digits) > 300):
        raise ValueError("round takes a whole number of digits up to 300")
    return round(value, digits)


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
        "round": _round,
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


_NODES = (ast.Expr, ast.Constant, ast.UnaryOp, ast.BinOp, ast.Call, ast.Name)

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

"""Tools from dictionaries, functions and files."""

from __future__ import annotations

import asyncio
import dataclasses
import enum
import math
from typing import Literal, Optional, TypedDict

import jsonschema
import pytest

from qwen_tools import Tool, Toolbox
from qwen_tools.errors import UserError
from qwen_tools.tools import as_tool, from_file, tool


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclasses.dataclass
class Point:
    x: int
    y: float = 0.5


class Options(TypedDict, total=False):
    fast: bool


def everything(
    count: int,
    point: Point,
    colour: Colour = Colour.RED,
    note: Optional[str] = None,  # noqa: UP045 - the old spelling is what is tested
    more: list[Point] = [],  # noqa: B006 - a default that JSON can say
    mode: Literal["a", "b"] = "a",
    either: int | str = 3,
    options: Options = {},  # noqa: B006
    sizes: dict[str, int] | None = None,
) -> str:
    """Do everything,
    in two lines.

    Args:
        count: how many
        point: where
    """
    return f"{count} {point} {colour} {more} {note}"


def parameters(function) -> dict:
    return dict(Tool.from_function(function).parameters)


def accepts(schema, value) -> bool:
    return not list(jsonschema.Draft202012Validator(schema).iter_errors(value))


def test_a_function_is_described_with_types_texts_and_defaults():
    described = Tool.from_function(everything)
    schema = parameters(everything)
    jsonschema.Draft202012Validator.check_schema(schema)
    assert described.name == "everything"
    assert described.description == "Do everything, in two lines."
    assert schema["required"] == ["count", "point"]
    assert schema["properties"]["count"] == {"type": "integer", "description": "how many"}
    assert schema["properties"]["colour"]["enum"] == ["red", "blue"]
    assert schema["properties"]["colour"]["default"] == "red"
    assert schema["properties"]["mode"]["enum"] == ["a", "b"]
    assert "return" not in schema["properties"]


@pytest.mark.parametrize(
    ("arguments", "good"),
    [
        ({"count": 1, "point": {"x": 1}}, True),
        ({"count": 1, "point": {"x": 1, "y": 2.5}, "note": None}, True),
        ({"count": 1, "point": {"x": 1}, "more": [{"x": 2}], "either": "three", "options": {"fast": True}}, True),
        ({"count": 1, "point": {"x": 1}, "sizes": {"a": 1}}, True),
        ({"count": 1, "point": {"x": 1}, "sizes": None}, True),
        ({"count": "1", "point": {"x": 1}}, False),
        ({"count": 1}, False),
        ({"count": 1, "point": {"y": 1}}, False),
        ({"count": 1, "point": {"x": 1}, "colour": "green"}, False),
        ({"count": 1, "point": {"x": 1}, "sizes": {"a": "b"}}, False),
        ({"count": 1, "point": {"x": 1}, "unknown": 1}, False),
    ],
)
def test_the_schema_accepts_what_the_function_takes_and_nothing_else(arguments, good):
    assert accepts(parameters(everything), arguments) is good


def test_json_values_become_enums_and_dataclasses():
    result = Tool.from_function(everything).function(count=1, point={"x": 2}, colour="blue", more=[{"x": 3, "y": 1.0}])
    assert result == "1 Point(x=2, y=0.5) Colour.BLUE [Point(x=3, y=1.0)] None"


def variadic(*words: str) -> str:
    """Join."""


def hintless(word) -> str:
    """Say."""


def forward(word: "Nowhere") -> str:  # noqa: F821, UP037 - a name that is not there is the point
    """Say."""


def undocumented(word: str) -> str:
    pass


def strange(words: set[int]) -> str:
    """Say."""


def numbered(words: dict[int, str]) -> str:
    """Say."""


@dataclasses.dataclass
class Tree:
    branch: Optional["Tree"]  # noqa: UP037, UP045 - the class is not there yet


def circular(tree: Tree) -> str:
    """Say."""


class Limit(enum.Enum):
    NONE = float("inf")


def unsayable(limit: Limit) -> str:
    """Say."""


class Corner(enum.Enum):
    ORIGIN = (0, 0)


class Nothing(enum.Enum):
    pass


def no_member(nothing: Nothing) -> str:
    """Say."""


def no_scalar(corner: Corner) -> str:
    """Say."""


def raw(data: Literal[b"raw"]) -> str:
    """Say."""


def wrong_choices(word: str) -> str:
    """Say.

    Args:
        word: a word (choices: a, b)
    """


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (variadic, "by name"),
        (hintless, "no type hint"),
        (forward, "Nowhere"),
        (undocumented, "docstring"),
        (strange, "words"),
        (numbered, "keys"),
        (circular, "contains itself"),
        (unsayable, "JSON cannot say"),
        (raw, "parameter data"),
        (no_scalar, "values of an Enum"),
        (no_member, "values of an Enum"),
        (wrong_choices, "choices"),
        (math.sqrt, "by name"),
        (lambda: 1, "docstring"),
    ],
)
def test_what_cannot_be_described_is_refused_with_file_line_and_reason(function, reason):
    with pytest.raises(UserError) as refusal:
        Tool.from_function(function)
    message = str(refusal.value)
    assert "test_tools.py, line " in message or function is math.sqrt  # which has no lines
    assert function.__name__ in message
    assert reason in message
    assert "\n" not in message


def weather(city: str, days: int, unit: str = "celsius", detail: Literal["short", "long"] = "short") -> str:
    """Tell the weather.

    Args:
        city: where
        days: how many days
            ahead
        unit: the unit (choices: ["celsius", "fahrenheit"])
        detail: how much

    Returns:
        what it will be
    """


def test_plain_functions_are_described_as_transformers_does():
    from transformers.utils import get_json_schema

    theirs = get_json_schema(weather)["function"]
    ours = Tool.from_function(weather)
    assert (ours.name, ours.description) == (theirs["name"], theirs["description"])
    schema = parameters(weather)
    assert schema.pop("additionalProperties") is False
    defaults = {name: value.pop("default", None) for name, value in schema["properties"].items()}
    assert defaults == {"city": None, "days": None, "unit": "celsius", "detail": "short"}
    assert schema == theirs["parameters"]


@dataclasses.dataclass
class Circle:
    radius: float
    area: float = dataclasses.field(init=False, default=0.0)


class Wish(TypedDict):
    colour: Colour
    shape: Point | Circle | None


def grant(wish: Wish, size: int | Colour = 1, spare: Optional[list[Colour]] = None) -> object:  # noqa: UP045
    """Grant."""
    return wish, size, spare


@pytest.mark.parametrize(
    ("arguments", "made"),
    [
        ({"wish": {"colour": "red", "shape": None}}, ({"colour": Colour.RED, "shape": None}, 1, None)),
        (
            {"wish": {"colour": "blue", "shape": {"radius": 2}}, "size": 3, "spare": ["red"]},
            ({"colour": Colour.BLUE, "shape": Circle(2)}, 3, [Colour.RED]),
        ),
        (
            {"wish": {"colour": "red", "shape": {"x": 1, "y": 2}}, "size": "blue"},
            ({"colour": Colour.RED, "shape": Point(1, 2)}, Colour.BLUE, None),
        ),
    ],
)
def test_values_are_made_where_types_are_nested_and_alternative(arguments, made):
    described = Tool.from_function(grant)
    assert accepts(described.parameters, arguments)
    assert described.function(**arguments) == made


class Mixed(enum.Enum):
    ONE = 1
    TWO = "two"


@pytest.mark.parametrize(
    ("hint", "schema"),
    [
        (Colour, {"type": "string", "enum": ["red", "blue"]}),
        (Mixed, {"type": ["integer", "string"], "enum": [1, "two"]}),
        (Optional[Colour], {"type": ["string", "null"], "enum": ["red", "blue", None]}),  # noqa: UP045
        (Optional[int], {"type": ["integer", "null"]}),  # noqa: UP045
        (list[int] | None, {"type": ["array", "null"], "items": {"type": "integer"}}),
        (int | str | None, {"type": ["integer", "string", "null"]}),
        (Literal["a", 1, None], {"type": ["string", "integer", "null"], "enum": ["a", 1, None]}),
        (
            dict[str, list[bool]],
            {"type": "object", "additionalProperties": {"type": "array", "items": {"type": "boolean"}}},
        ),
        (int | list[str], {"anyOf": [{"type": "integer"}, {"type": "array", "items": {"type": "string"}}]}),
        (Literal["a", None] | None, {"type": ["string", "null"], "enum": ["a", None]}),
        (None, {"type": "null"}),
    ],
)
def test_the_schema_of_a_hint(hint, schema):
    def take(value):
        """Take."""

    take.__annotations__["value"] = hint
    assert parameters(take)["properties"]["value"] == schema


def test_what_a_dataclass_computes_by_itself_is_not_asked_for():
    shape = parameters(grant)["properties"]["wish"]["properties"]["shape"]
    assert [list(each.get("properties", ())) for each in shape["anyOf"]] == [["x", "y"], ["radius"], []]
    assert not accepts(parameters(grant), {"wish": {"colour": "red", "shape": {"radius": 1, "area": 2}}})


def test_a_method_is_a_tool():
    class Counter:
        def count(self, step: int = 1) -> int:
            """Count."""
            return step

    described = as_tool(Counter().count)
    assert list(described.parameters["properties"]) == ["step"]
    assert described.function(step=2) == 2


def test_an_async_function_is_a_tool():
    async def wait(seconds: float) -> str:
        """Wait."""
        await asyncio.sleep(seconds)
        return "done"

    assert parameters(wait)["properties"]["seconds"] == {"type": "number"}


def test_read_only_is_declared_never_assumed():
    def look() -> str:
        """Look."""

    assert not Tool.from_function(look).read_only
    assert Tool.from_function(tool(read_only=True)(look)).read_only


def test_a_dict_stays_as_it_is():
    data = {
        "type": "function",
        "function": {"parameters": {"type": "object", "properties": {"b": {}, "a": {}}}, "name": "f", "strict": True},
    }
    assert list(as_tool(data).to_dict()["function"]) == ["parameters", "name", "strict"]
    assert as_tool(data["function"]).name == "f"
    assert as_tool({"name": "now"}).parameters == {}


@pytest.mark.parametrize("value", [{}, {"function": {}}, {"function": {"name": 3}}, {"name": "a", "parameters": []}, 7])
def test_what_is_no_tool_is_refused(value):
    with pytest.raises(UserError):
        as_tool(value)


def test_a_toolbox_keeps_order_and_refuses_two_of_one_name():
    box = Toolbox.of([{"name": "b"}, {"name": "a"}])
    assert box.names() == ["b", "a"]
    assert "a" in box
    assert box.get("c") is None
    with pytest.raises(UserError, match="two tools"):
        Toolbox.of([{"name": "a"}, {"name": "a"}])


def test_tools_from_a_file(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(
        "from __future__ import annotations\nfrom math import hypot\nfrom dataclasses import dataclass\n"
        "@dataclass\nclass P:\n    x: int\n"
        'def move(p: P) -> str:\n    """Move."""\n    return str(p)\n'
        'def _hidden() -> str:\n    """No."""\n'
    )
    tools = from_file(str(path))
    assert [each.name for each in tools] == ["move"]
    assert tools[0].function(p={"x": 1}) == "P(x=1)"


def test_two_files_of_one_name_do_not_disturb_each_other(tmp_path):
    files = []
    for folder, field in (("a", "x"), ("b", "y")):
        files.append(tmp_path / folder / "mine.py")
        files[-1].parent.mkdir()
        files[-1].write_text(
            "from __future__ import annotations\nfrom dataclasses import dataclass\n"
            f"@dataclass\nclass P:\n    {field}: Inner\n"
            "@dataclass\nclass Inner:\n    n: int\n"
            f'def move_{folder}(p: P) -> str:\n    """Move."""\n    return str(p)\n'
        )
    first, second = (from_file(str(file))[0] for file in files)
    assert first.function(p={"x": {"n": 1}}) == "P(x=Inner(n=1))"
    assert second.function(p={"y": {"n": 2}}) == "P(y=Inner(n=2))"


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("def broken(:", "SyntaxError"),
        ("import nowhere_to_be_found", "nowhere_to_be_found"),
        ("x = 1", "no public functions"),
        ('def f(a) -> str:\n    """F."""\n', "line 1.*begins with _"),
        ("a = 1\nb = 1 / 0", "mine.py, line 2: .*ZeroDivisionError"),
        ("import sys\nsys.exit('two\\nlines')", "line 2.*SystemExit: two lines"),
        ("a = 'b\0'", "null bytes"),
    ],
)
def test_a_file_that_gives_no_tools_is_refused_in_one_line(tmp_path, source, reason):
    path = tmp_path / "mine.py"
    path.write_text(source)
    with pytest.raises(UserError, match=reason) as refusal:
        from_file(str(path))
    assert "\n" not in str(refusal.value)


def test_the_example_file_in_the_repository_loads():
    from pathlib import Path

    tools = from_file(str(Path(__file__).parents[1] / "examples" / "my_tools.py"))
    assert [(each.name, each.read_only) for each in tools] == [("word_count", True), ("append_note", False)]
    assert tools[0].function(text="one two") == 2

"""The text of an XML parameter as a typed value."""

from __future__ import annotations

import json

import pytest

from qwen_tools.coerce import MAX_DEPTH, kinds, loads, value

ROOT = {
    "$defs": {
        "count": {"type": "integer"},
        "maybe": {"anyOf": [{"$ref": "#/$defs/count"}, {"type": "null"}]},
        "a/b~c": {"type": "boolean"},
        "loop": {"anyOf": [{"$ref": "#/$defs/loop"}, {"$ref": "#/$defs/loop"}, {"type": "array"}]},
    }
}


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"type": "integer"}, {"integer"}),
        ({"type": ["string", "null"]}, {"string", "null"}),
        ({"type": "object"}, {"container"}),
        ({"type": "integer", "nullable": True}, {"integer", "null"}),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, {"integer", "null"}),
        ({"oneOf": [{"type": "number"}, {"type": "array"}]}, {"number", "container"}),
        ({"allOf": [{"type": "boolean"}]}, {"boolean"}),
        ({"allOf": [{"type": "boolean"}, {"type": "integer"}]}, {"string"}),
        ({"enum": [1, "auto", None]}, {"integer", "string", "null"}),
        ({"enum": [True, 0.5, [1]]}, {"boolean", "number", "container"}),
        ({"const": 3}, {"integer"}),
        ({"$ref": "#/$defs/maybe"}, {"integer", "null"}),
        ({"$ref": "#/$defs/a~1b~0c"}, {"boolean"}),
        ({"$ref": "#/$defs/loop"}, {"container"}),
        ({"$ref": "#/$defs/nowhere"}, {"string"}),
        ({"$ref": "https://example.org/schema"}, {"string"}),
        ({}, {"string"}),
        ({"description": "anything"}, {"string"}),
        ({"type": "dict"}, {"string"}),
        (True, {"string"}),
        (None, {"string"}),
    ],
)
def test_what_a_schema_allows(schema, expected):
    assert kinds(schema, ROOT) == expected


@pytest.mark.parametrize(
    ("text", "allowed", "expected"),
    [
        # a string is left alone
        ("42", {"string"}, "42"),
        ("02139", {"string"}, "02139"),
        ("null", {"string"}, "null"),
        (" x ", {"string"}, " x "),
        # null, boolean, integer, number, container, string: the first that fits
        ("null", {"string", "null"}, None),
        ("None", {"integer", "null"}, None),
        ("nothing", {"integer", "null"}, "nothing"),
        ("true", {"boolean"}, True),
        ("False", {"boolean"}, False),
        ("maybe", {"boolean"}, "maybe"),
        ("1", {"boolean"}, "1"),
        ("12", {"integer"}, 12),
        (" -7\n", {"integer"}, -7),
        ("18446744073709551617", {"integer"}, 18446744073709551617),
        ("5.0", {"integer"}, 5),
        ("5.5", {"integer"}, "5.5"),
        ("a few", {"integer"}, "a few"),
        ("٣", {"integer"}, "٣"),
        ("1_000", {"integer"}, "1_000"),
        ("9" * 5000, {"integer"}, "9" * 5000),
        ("25", {"number"}, 25),
        ("2.50", {"number"}, 2.5),
        (".5", {"number"}, 0.5),
        ("1e3", {"number"}, 1000.0),
        ("1e999", {"number"}, "1e999"),
        ("nan", {"number"}, "nan"),
        ("Infinity", {"number"}, "Infinity"),
        ("3", {"integer", "string"}, 3),
        ("three", {"integer", "string"}, "three"),
        ('[1, {"a": null}]', {"container"}, [1, {"a": None}]),
        ("{}", {"container", "string"}, {}),
        ("[1,", {"container", "string"}, "[1,"),
        ("3", {"container"}, "3"),
        ("['a']", {"container"}, "['a']"),
        ("[NaN]", {"container"}, "[NaN]"),
        ("[" * 200 + "]" * 200, {"container"}, "[" * 200 + "]" * 200),
        ("", {"integer"}, ""),
    ],
)
def test_values(text, allowed, expected):
    result = value(text, frozenset(allowed))
    assert result == expected
    assert type(result) is type(expected)


@pytest.mark.parametrize(
    "text",
    [
        *("NaN", "[Infinity]", "-Infinity", "1e999", '"\\ud83d"', '{"\\uDC00": 1}', "{'a': 1}", "[1,]", "", "9" * 5000),
        "[" * (MAX_DEPTH + 2) + "]" * (MAX_DEPTH + 2),
        '{"a":' * 100_000 + "1" + "}" * 100_000,
    ],
    ids=lambda text: text[:20],
)
def test_what_no_program_could_take_further_is_refused(text):
    with pytest.raises(ValueError, match=r"."):
        loads(text)


@pytest.mark.parametrize("text", ['"a\tb\nc"', '"\\ud83d\\ude00"', '"\\\\ud83d"', "[" * MAX_DEPTH + "]" * MAX_DEPTH])
def test_what_a_model_may_write_is_read(text):
    assert loads(text) == json.loads(text, strict=False)


def test_wide_values_are_not_deep():
    wide = [[[]]] * 1000
    assert loads(json.dumps(wide)) == wide

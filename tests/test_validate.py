"""Arguments against a schema: one line that a model can act on."""

from __future__ import annotations

import socket
import time

import pytest
from jsonschema import Draft202012Validator

from qwen_tools.errors import UserError
from qwen_tools.validate import check_schema, problem

SCHEMA = {
    "type": "object",
    "properties": {
        "town": {"type": "string"},
        "days": {"type": "integer", "minimum": 1},
        "unit": {"enum": ["c", "f"]},
        "stops": {"type": "array", "items": {"type": "object", "properties": {"name": {"type": "string"}}}},
        "after": {"type": "integer", "nullable": True},
    },
    "required": ["town"],
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"town": "Oslo"}, None),
        ({"town": "Oslo", "days": 3, "unit": "c", "stops": [{"name": "Lom"}], "after": 3}, None),
        ({}, "$: 'town' is a required property"),
        ({"town": 3}, "$.town: 3 is not of type 'string'"),
        ({"town": "Oslo", "days": 0}, "$.days: 0 is less than the minimum of 1"),
        ({"town": "Oslo", "days": True}, "$.days: True is not of type 'integer'"),
        ({"town": "Oslo", "unit": "k"}, "$.unit: 'k' is not one of ['c', 'f']"),
        ({"town": "Oslo", "stops": [{}, {"name": None}]}, "$.stops[1].name: None is not of type 'string'"),
        ({"town": "Oslo", "zip": 1}, "$: Additional properties are not allowed ('zip' was unexpected)"),
        ([], "the arguments must be a JSON object"),
        (None, "the arguments must be a JSON object"),
        ("{}", "the arguments must be a JSON object"),
    ],
)
def test_problems(arguments, said):
    assert problem(arguments, SCHEMA) == said


def test_a_tool_without_a_schema_takes_any_object():
    assert problem({"a": 1}, {}) is None
    assert problem([1], {}) is not None


def test_null_is_allowed_where_the_schema_says_nullable():
    """transformers' get_json_schema writes it for Optional; JSON Schema itself does not know it."""
    assert problem({"town": "Oslo", "after": None}, SCHEMA) is None
    assert problem({"town": None}, SCHEMA) == "$.town: None is not of type 'string'"


def test_a_message_is_one_line_and_not_too_long():
    said = problem({"town": ["x\n" * 10_000]}, SCHEMA)
    assert said.startswith("$.town: ")
    assert said.endswith("is not of type 'string'")
    assert "\n" not in said
    assert len(said) < 350


def test_references_within_the_schema_are_followed():
    schema = {"properties": {"n": {"$ref": "#/$defs/n"}}, "$defs": {"n": {"type": "integer"}}}
    assert problem({"n": 1}, schema) is None
    assert problem({"n": "1"}, schema) == "$.n: '1' is not of type 'integer'"


@pytest.mark.parametrize(
    "broken",
    [{"$ref": "#/$defs/none"}, {"$ref": "https://example.invalid/x.json"}, {"type": "dict"}, {"pattern": "("}],
)
def test_a_schema_that_cannot_be_used_is_said_not_raised(broken, monkeypatch):
    def no_network(*arguments, **more):
        pytest.fail("the network was asked")

    monkeypatch.setattr(socket.socket, "connect", no_network)
    monkeypatch.setattr(socket, "getaddrinfo", no_network)
    said = problem({"n": "x"}, {"properties": {"n": broken}})
    assert said.startswith("the tool's schema cannot be used: ")
    assert "\n" not in said


def test_values_nested_too_deeply_for_the_schema_are_a_problem():
    schema = {"$defs": {"t": {"properties": {"t": {"$ref": "#/$defs/t"}}}}, "$ref": "#/$defs/t"}
    deep = {}
    for _ in range(5000):
        deep = {"t": deep}
    assert problem(deep, schema) == "the arguments are nested too deeply"


def test_a_broken_schema_is_the_callers_fault():
    check_schema(SCHEMA, "weather")
    check_schema({}, "now")
    with pytest.raises(UserError, match=r"tool 'weather' has a broken schema at \$\.properties\.n\.type"):
        check_schema({"type": "object", "properties": {"n": {"type": "dict"}}}, "weather")


@pytest.mark.parametrize(
    ("schema", "arguments", "said"),
    [
        ({"properties": {"a": {"pattern": "^x+$"}}}, {"a": "xx"}, None),
        ({"properties": {"a": {"pattern": "^x+$"}}}, {"a": "xy"}, "$.a: 'xy' does not match '^x+$'"),
        ({"properties": {"a": {"pattern": "b"}}}, {"a": "abc"}, None),
        ({"properties": {"a": {"pattern": "b"}}}, {"a": 7}, None),
        ({"patternProperties": {"^n": {"type": "integer"}}}, {"n1": 1, "x": "y"}, None),
        ({"patternProperties": {"^n": {"type": "integer"}}}, {"n1": "1"}, "$.n1: '1' is not of type 'integer'"),
        ({"patternProperties": {"^n": {}}, "additionalProperties": False}, {"n1": 1}, None),
        ({"patternProperties": {"^n": {}}, "additionalProperties": {"type": "null"}}, {"n1": 1, "x": None}, None),
        ({"patternProperties": {"^n": {}}, "properties": {"x": {}}, "additionalProperties": False}, {"x": 1}, None),
        ({"propertyNames": {"pattern": "^a"}}, {"b": 1}, "$: 'b' does not match '^a'"),
    ],
)
def test_patterns_mean_what_json_schema_says(schema, arguments, said):
    assert problem(arguments, schema) == said
    expected = [error.message for error in Draft202012Validator(schema).iter_errors(arguments)]
    assert bool(expected) == bool(said)


def test_what_a_pattern_does_not_name_is_additional():
    said = problem({"y": 1}, {"patternProperties": {"^n": {}}, "additionalProperties": False})
    assert said.startswith("$: Additional properties are not allowed ('y'")


BRANCHING = {f"d{number}": {"allOf": [{"$ref": f"#/$defs/d{number + 1}"}] * 2} for number in range(40)}


@pytest.mark.parametrize(
    ("schema", "arguments"),
    [
        ({"$defs": {**BRANCHING, "d40": {}}, "$ref": "#/$defs/d0"}, {}),
        ({"properties": {"a": {"pattern": "^(a|a)*$"}}}, {"a": "a" * 60 + "!"}),
        ({"patternProperties": {"^(a|a)*$": {}}}, {"a" * 60 + "!": 1}),
        ({"patternProperties": {"^(a|a)*$": {}}, "additionalProperties": False}, {"a" * 60 + "!": 1}),
    ],
    ids=["references", "pattern", "names", "additional"],
)
def test_a_schema_cannot_keep_us_busy(schema, arguments):
    check_schema(schema, "x")
    started = time.process_time()
    assert problem(arguments, schema) == "the tool's schema takes too long to check"
    assert time.process_time() - started < 5

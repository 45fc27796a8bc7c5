"""Arguments against a schema: one line that a model can act on."""

from __future__ import annotations

import socket

import pytest

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

"""The guide on the schemas of the Berkeley Function-Calling Leaderboard (BFCL): people wrote them, not we."""

from __future__ import annotations

import contextlib
import json

import pytest
from test_bfcl import DATA, as_json_schema
from test_guide import DIALECTS, Dice, arguments

from qwen_tools import Tool
from qwen_tools.errors import UserError
from qwen_tools.guide import Guide
from qwen_tools.validate import check_schema

# Faults of their own: an enum of values that the type excludes, in a parameter that is required.
CONTRADICTORY = {"get_response", "Events_3_BuyEventTickets", "extract_parameters_v1"}


def functions() -> list[dict]:
    """Every function of the wheel, each schema once."""
    found: dict[str, dict] = {}
    for path in sorted(DATA.rglob("*.json")):
        for line in path.read_text(encoding="utf-8").splitlines():
            try:
                row = json.loads(line)
            except ValueError:
                break  # one file is a single object over many lines, without functions
            if not isinstance(row, dict):
                break
            for function in row.get("function") or ([row] if "parameters" in row else []):
                found.setdefault(json.dumps(function["parameters"]), function)
    return list(found.values())


def tools(chosen: list[dict]) -> list[Tool]:
    """As tools, but for a few whose parameters are no JSON Schema."""
    result = []
    for function in chosen:
        tool = Tool(function["name"], "", as_json_schema(function["parameters"]))
        with contextlib.suppress(UserError):
            check_schema(tool.parameters, tool.name)
            result.append(tool)
    return result


def compile_all(dice: Dice, chosen: list[Tool]) -> dict[str, str]:
    """The refusals, by the name of the tool."""
    refused = {}
    for tool in chosen:
        try:
            dice.grammars.constraint(Guide((tool,)))
        except UserError as error:
            refused[tool.name] = str(error)
    return refused


@pytest.fixture(scope="module")
def everything():
    return functions()


@pytest.mark.parametrize("dialect", DIALECTS)
def test_some_of_them(dialect, everything):
    dice = Dice(dialect)
    some = tools(everything[:: len(everything) // 60])
    assert not compile_all(dice, some)
    for seed, tool in enumerate(some[::3]):
        arguments(dice, tool, seed)


@pytest.mark.slow
@pytest.mark.parametrize("dialect", DIALECTS)
def test_all_of_them(dialect, everything):
    everything = tools(everything)
    assert len(everything) > 3300
    dice = Dice(dialect)
    refused = compile_all(dice, everything)
    assert refused.keys() == CONTRADICTORY
    assert all("enum" in message for message in refused.values())
    for seed, tool in enumerate(everything[:: len(everything) // 400]):
        if tool.name not in refused:
            arguments(dice, tool, seed)

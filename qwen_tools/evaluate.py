"""Questions with known answers: the Berkeley Function-Calling Leaderboard (BFCL), judged by its own checker.

The data and the checker come with the package bfcl-eval (``pip install --no-deps bfcl-eval==2026.3.23``; its pins clash
with ours). Its schemas are not quite JSON Schema; ``as_json_schema`` makes them so.
"""

from __future__ import annotations

import json
import math
import sys
import types
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from .errors import UserError
from .messages import Message
from .tools import Tool


@dataclass(frozen=True)
class Item:
    """A question. ``truth`` is BFCL's list of accepted calls, empty where no call is right; ``functions`` are the
    tools as BFCL writes them, which its checker wants.
    """

    id: str
    category: str
    messages: tuple[Message, ...]
    tools: tuple[Tool, ...]
    functions: list[dict[str, Any]]
    truth: list[dict[str, Any]]


@cache
def bfcl_data() -> Path:
    """The folder of the data. Raises UserError when the package is not installed."""
    found = find_spec("bfcl_eval")
    if found is None or not found.submodule_search_locations:
        raise UserError("BFCL is not installed: pip install --no-deps bfcl-eval==2026.3.23")
    return Path(found.submodule_search_locations[0]) / "data"


def bfcl_version() -> str:
    """The version of the package."""
    return version("bfcl-eval")


def items(category: str, limit: int | None = None) -> list[Item]:
    """The single-turn questions of a category that can be judged, ``limit`` of them evenly spread over the file.

    Raises UserError for an unknown category.
    """
    file = bfcl_data() / f"BFCL_v4_{category}.json"
    if not file.is_file():
        raise UserError(f"BFCL has no category {category!r}")
    answers = bfcl_data() / "possible_answer" / file.name
    truths = {row["id"]: row["ground_truth"] for row in _rows(answers)} if answers.is_file() else {}
    found = [_item(row, category, truths) for row in _rows(file) if row["id"] in truths or "irrelevance" in category]
    if limit is None or limit >= len(found):
        return found
    return [found[index * len(found) // limit] for index in range(limit)]


def _rows(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def _item(row: dict[str, Any], category: str, truths: dict[str, Any]) -> Item:
    messages = tuple(Message(each["role"], each["content"]) for each in row["question"][0])
    tools = tuple(
        Tool(each["name"], each["description"], as_json_schema(each["parameters"]), None, read_only=True)
        for each in row["function"]
    )
    return Item(row["id"], category, messages, tools, row["function"], truths.get(row["id"], []))


def as_json_schema(schema: Any) -> Any:
    """BFCL's types (``dict``, ``float``, ``tuple``, ...) as those of JSON Schema, by its own table."""
    from bfcl_eval.constants.type_mappings import GORILLA_TO_OPENAPI

    if isinstance(schema, list):
        return [as_json_schema(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: GORILLA_TO_OPENAPI.get(value, value) if key == "type" and isinstance(value, str) else as_json_schema(value)
        for key, value in schema.items()
    }


def accepts(item: Item, calls: Sequence[tuple[str, dict[str, Any]]]) -> bool:
    """Whether BFCL's checker accepts these calls (name, arguments); no call is right where no truth is given."""
    return fault(item, calls) is None


def fault(item: Item, calls: Sequence[tuple[str, dict[str, Any]]]) -> str | None:
    """Why BFCL's checker does not accept these calls, in words, or None."""
    if not item.truth:
        return f"calls {calls[0][0]}, where no call is right" if calls else None
    if not calls:
        return "no call, where one is right"
    wanted = [{name: arguments} for name, arguments in calls]
    check, python = _checker()
    category = item.category.removeprefix("live_")
    verdict = check(item.functions, wanted, item.truth, python, category, "any")
    # Its first words; what may follow is how each call differs from each answer.
    return None if verdict["valid"] else next(map(str, verdict["error"]), verdict["error_type"])


@cache
def _checker() -> tuple[Any, Any]:
    """BFCL's checker. It reads one switch of a table of models whose module needs dozens of packages, so a
    stand-in for that table is put in its place.
    """
    bfcl_data()
    name = "bfcl_eval.constants.model_config"
    table: Any = types.ModuleType(name)
    table.MODEL_CONFIG_MAPPING = defaultdict(lambda: types.SimpleNamespace(underscore_to_dot=False))
    sys.modules.setdefault(name, table)
    from bfcl_eval.constants.enums import Language
    from bfcl_eval.eval_checker.ast_eval.ast_checker import ast_checker

    return ast_checker, Language.PYTHON


def wilson(right: int, total: int, z: float = 1.96) -> tuple[float, float]:
    """The interval of a share, at 95 % (Wilson, 1927)."""
    if not total:
        return 0.0, 1.0
    share = right / total
    middle = share + z * z / (2 * total)
    spread = z * math.sqrt(share * (1 - share) / total + z * z / (4 * total * total))
    scale = 1 + z * z / total
    return max(0.0, (middle - spread) / scale), min(1.0, (middle + spread) / scale)

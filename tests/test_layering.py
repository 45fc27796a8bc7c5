"""Data flows one way: a module imports only from modules above it. And what is heavy is imported late."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "qwen_tools"

# From the top down. A folder counts as one layer.
LAYERS = [
    "errors",
    "fields",
    "coerce",
    "messages",
    "events",
    "function_schema",
    "tools",
    "tasks",
    "families",
    "prompt",
    "template",
    "validate",
    "envelope",
    "salvage",
    "parser",
    "approval",
    "wire",
    "executor",
    "guide",
    "profiles",
    "adapter",
    "models",
    "engines",
    "loop",
    "evaluate",
    "session",
    "session_index",
    "config",
    "processes",
    "tool_file",
    "mcp",
    "builtin_tools",
    "tool_sources",
    "why",
    "report",
    "compare",
    "bench",
    "server",
    "commands",
    "cli",
    "__main__",
]


def layer(path: Path) -> str:
    relative = path.relative_to(PACKAGE)
    return relative.parts[0].removesuffix(".py")


def imported(path: Path) -> set[str]:
    """The layers that a file imports, wherever in the file the import stands."""
    parts = ("qwen_tools", *path.relative_to(PACKAGE).with_suffix("").parts)
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(parts[: len(parts) - node.level]) + "." if node.level else ""
            module = base + (node.module or "")
            names = [f"{module}.{alias.name}".replace("..", ".") for alias in node.names]
        else:
            continue
        found |= {name.split(".")[1] for name in names if name.startswith("qwen_tools.")}
    return found & set(LAYERS)


FILES = sorted(path for path in PACKAGE.rglob("*.py") if path != PACKAGE / "__init__.py")


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_module_imports_only_from_modules_above_it(path):
    own = LAYERS.index(layer(path))
    below = {name for name in imported(path) if LAYERS.index(name) > own}
    assert not below


def test_only_the_engine_imports_torch():
    importers = {
        str(path.relative_to(PACKAGE))
        for path in FILES
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Import)
        and any(alias.name.split(".")[0] == "torch" for alias in node.names)
        # The guide's mask works on the tensor that the engine gives it.
        and path.name != "constraint.py"
    }
    assert importers
    assert all(importer.startswith("engines/") for importer in importers)


HEAVY = ("prompt_toolkit", "torch", "transformers", "llguidance", "numpy", "mcp", "httpx2", "starlette", "uvicorn")


@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        ["chat", "--help"],
        ["parse", "--json"],
        ["render", "--json", "-"],
        ["models", "--help"],
        ["demo", "--scene", "two-tools"],
        ["compare", "--model", "scripted:SCRIPT", "--arms", "raw", "Hi"],
        ["why", "--help"],
        ["bench", "--help"],
        ["serve", "--help"],
        ["chat", "--no-log", "--model", "scripted:SCRIPT", "Hi"],
    ],
    ids=" ".join,
)
def test_a_command_that_needs_no_model_loads_none(arguments, tmp_path):
    script = tmp_path / "script.json"
    script.write_text('["Hello."]')
    arguments = [argument.replace("SCRIPT", str(script)) for argument in arguments]
    code = (
        "import sys; from qwen_tools.cli import main\n"
        "try: main(sys.argv[1:])\n"
        "except SystemExit as leaving: assert not leaving.code, leaving.code\n"
        f"loaded = [name for name in {HEAVY!r} if name in sys.modules]\n"
        "sys.exit(f'loaded {loaded}' if loaded else 0)"
    )
    stdin = '{"messages": [{"role": "user", "content": "Hi"}]}' if "render" in arguments else "Hello."
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        input=stdin,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_importing_the_package_does_nothing():
    code = (
        "import os, sys; before = set(os.listdir('.')); import qwen_tools; "
        f"assert not any(name in sys.modules for name in {HEAVY!r}); assert set(os.listdir('.')) == before"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")

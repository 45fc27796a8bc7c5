"""What reading a long argument costs, beside transformers' ResponseParser and SGLang's detectors.

    pip install --no-deps llm-router-utils==0.8.1 && pip install partial-json-parser orjson    # SGLang's algorithms
    python benchmarks/parser.py [KILOBYTES ...]

One call with one string argument of source code comes in pieces of 4 characters, as a model writes it. Microseconds a
character, the best of three, and in brackets how many pieces of the arguments were handed on before the call
ended. What grows with the length is quadratic. A parser is not asked for a length that would take it minutes.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from qwen_tools import StreamParser, events
from qwen_tools.families import get
from qwen_tools.messages import ToolCall

# Reads pieces; returns how many pieces of arguments came out, and the arguments.
Reader = Callable[[list[str]], tuple[int, Any]]

_PATIENCE = 60.0  # seconds, for one length
_LINE = """\
def area(w, h):
    if w < 0 or h < 0:
        raise ValueError("no size: %s" % [w, h])
    return {"w*h": w * h}

"""
_TOOL = {
    "type": "function",
    "function": {
        "name": "write_file",
        "description": "Write a file.",
        "parameters": {"type": "object", "properties": {"path": {"type": "string"}, "text": {"type": "string"}}},
    },
}


def ours(pieces: list[str]) -> tuple[int, Any]:
    """The parser of this package."""
    parser = StreamParser([_TOOL])
    told = [event for piece in pieces for event in parser.feed(piece)]
    arguments = sum(isinstance(event, events.CallArgs) for event in told)
    told += parser.close()
    return arguments, next(event.call.arguments for event in told if isinstance(event, events.CallEnd))


def sglang(detector: Callable[[], Any], tool: Any) -> Reader:
    """A detector of SGLang; it never says that a call is whole."""

    def read(pieces: list[str]) -> tuple[int, Any]:
        parser = detector()
        calls = [call for piece in pieces for call in parser.parse_streaming_increment(piece, [tool]).calls]
        deltas = [call.parameters for call in calls if call.parameters]
        try:
            return len(deltas), json.loads("".join(deltas))
        except ValueError:
            return len(deltas), None

    return read


def transformers(template: dict[str, Any]) -> Reader:
    """The parser of ``transformers serve``, which hands on a call once it is closed."""
    from transformers.utils.chat_parsing import ResponseParser

    def read(pieces: list[str]) -> tuple[int, Any]:
        parser = ResponseParser(template, prefix="", tools=[_TOOL])
        for piece in pieces:
            parser.feed(piece)
        message, _ = parser.finalize()
        return 0, message["tool_calls"][0]["function"]["arguments"]

    return read


def readers() -> dict[str, dict[str, Reader]]:
    """The parsers that are installed, by dialect."""
    found: dict[str, dict[str, Reader]] = {"JSON": {"ours": ours}, "XML": {"ours": ours}}
    try:
        from llm_router_utils.sglang.srt.entrypoints.openai.protocol import Tool
        from llm_router_utils.sglang.srt.function_call.qwen3_coder_detector import Qwen3CoderDetector
        from llm_router_utils.sglang.srt.function_call.qwen25_detector import Qwen25Detector
    except ImportError as error:
        print(f"without SGLang's detectors: {error}", file=sys.stderr)
    else:
        found["JSON"]["SGLang"] = sglang(Qwen25Detector, Tool(**_TOOL))
        found["XML"]["SGLang"] = sglang(Qwen3CoderDetector, Tool(**_TOOL))
    try:
        from transformers.cli.serving.utils import get_response_template
    except ImportError as error:
        print(f"without transformers' parser: {error}", file=sys.stderr)
    else:
        for dialect, kind in (("JSON", "qwen3"), ("XML", "qwen3_5")):
            model: Any = SimpleNamespace(config=SimpleNamespace(model_type=kind))
            found[dialect]["transformers"] = transformers(get_response_template(SimpleNamespace(), model))
    return found


def answer(dialect: str, size: int) -> tuple[str, dict[str, str]]:
    """An answer with one call whose argument has ``size`` characters, and the arguments."""
    arguments = {"path": "area.py", "text": (_LINE * (size // len(_LINE) + 1))[:size].rstrip() + "#"}
    family = get("qwen3" if dialect == "JSON" else "qwen3-coder")
    return f"<tool_call>\n{family.call(ToolCall('write_file', arguments))}\n</tool_call>", arguments


def measure(read: Reader, dialect: str, size: int) -> tuple[float, str]:
    """Seconds a character, and what to print."""
    text, arguments = answer(dialect, size)
    pieces = [text[at : at + 4] for at in range(0, len(text), 4)]
    best = float("inf")
    for _ in range(3):
        start = time.process_time()
        streamed, result = read(pieces)
        best = min(best, time.process_time() - start)
        if best > _PATIENCE / 10:
            break
    wrong = "" if result == arguments else " WRONG"
    return best / len(text), f"{best / len(text) * 1e6:.2f} ({streamed}){wrong}"


def main(kilobytes: list[int]) -> None:
    """Print the table."""
    for dialect, parsers in readers().items():
        print(f"{dialect:<14}" + "".join(f"{size:>15} KB" for size in kilobytes))
        for name, read in parsers.items():
            measure(read, dialect, 100)  # imports and caches
            cells, cost, before = [], 0.0, 0
            for size in kilobytes:
                # Quadratic until shown otherwise.
                if cost * (size * 1024) * (size / before if before else 1) > _PATIENCE:
                    cells.append("too slow")
                    continue
                cost, cell = measure(read, dialect, size * 1024)
                before = size
                cells.append(cell)
            print(f"{name:<14}" + "".join(f"{cell:>18}" for cell in cells))


if __name__ == "__main__":
    main([int(size) for size in sys.argv[1:]] or [2, 8, 32, 256])

"""Fuzz the parser for a given time: python tests/fuzz_parser.py [SECONDS] [SEED]

Random answers, made of markup, of pieces of JSON and of mutated valid answers, are read in random pieces and judged by
``parser_laws``; random pieces repeated many times show whether the time stays linear. What fails is made
smaller and printed as a Python literal; it belongs into ``tests/cases/`` then. pytest does not collect this file.
"""

from __future__ import annotations

import random
import sys
import time
import traceback

from parser_laws import check, cut, read

TEXT, WHOLE, THING = {"type": "string"}, {"type": "integer"}, {"type": "object"}
TOOLS = [
    {"name": "f", "parameters": {"type": "object", "properties": {"a": TEXT, "ab": WHOLE, "o": THING}}},
    {"name": "fun", "parameters": {"type": "object", "properties": {"a": {"anyOf": [WHOLE, {"type": "null"}]}}}},
]
PIECES = [
    *("<tool_call>", "</tool_call>", "<tool_call>\n", "\n</tool_call>", "<tools>", "</tools>", "</function_calls>"),
    *("<function=f>", "<function=fun>\n", "<function=x>\n", "</function>", "\n</function>\n", "<function="),
    *("<parameter=a>", "<parameter=ab>\n", "\n</parameter>\n", "</parameter>", "\n<parameter=a>", "<parameter="),
    *("<think>", "</think>", "<think>\n", "\n</think>\n\n", "<|im_end|>", "<|im_start|>", "<|endoftext|>", "<|im"),
    *("```", "```json\n", "\n```\n", "~~~\n", "`", "````", "\n   ```", "``", "\n    ~~~\n"),
    *('{"name": "f", "arguments": {"a": "x"}}', '{"name": "fun", "arguments": {}}', '{"name": "', '"f"', '"name"'),
    *('"arguments": ', '", "arguments": {', '"parameters": {}', '"arguments": "{}"', '"a": "', '"ab": 1', '"a": null'),
    *("{", "}", "[", "]", '"', "\\", '\\"', "\\u00e9", "\\ud83d", ",", ":", "12", "1e999", "NaN", "null", "true"),
    *(" ", "\n", "\n\n", "\t", "<", "</", "<t", ">", "x", "word", "é", "📝", "\x00", "\u2028", "\r\n", "a b"),
]
VALID = [
    "<think>\nhm\n</think>\n\nOk.\n<tool_call>\n"
    '{"name": "f", "arguments": {"a": "x</tool_call>", "ab": 1}}\n</tool_call>',
    "<tool_call>\n<function=f>\n<parameter=a>\nx <b>\n</parameter>\n"
    "<parameter=ab>\n3\n</parameter>\n</function>\n</tool_call>",
    '<tool_call>[{"name": "f", "arguments": {"ab": 1}}, {"name": "fun"}]</tool_call>\nand then',
    "So:\n<function=fun>\n<parameter=a>\nnull\n</parameter>\n</function>\n</tool_call>",
    '```json\n{"name": "f", "arguments": {"a": "Oslo"}}\n```',
    'So:\n```xml\n<tool_call>\n{"name": "f", "arguments": {}}\n</tool_call>\n```\nas `<tool_call>` says.',
    '<think>\nDraft:\n<tool_call>\n{"name": "f", "arguments": {}}\n</tool_call>\nNo.\n</think>\n'
    '<tool_call>{"name": "fun"}</tool_call>',
]


def answer(random_: random.Random) -> str:
    """One random answer."""
    if random_.random() < 0.5:
        return "".join(random_.choice(PIECES) for _ in range(random_.randint(1, 30)))
    text = random_.choice(VALID)
    for _ in range(random_.randint(1, 4)):
        at = random_.randint(0, len(text))
        end = min(len(text), at + random_.choice((0, 0, 1, 5, 20)))
        text = text[:at] + random_.choice(("", random_.choice(PIECES), text[:at][-12:])) + text[end:]
    return text


def setting(random_: random.Random) -> dict:
    """How it is read."""
    return {
        "tools": random_.choice((TOOLS, TOOLS, ())),
        "prefill": random_.choice(("", "", "<think>\n", "<think>\n\n</think>\n\n", '<tool_call>\n{"name": "f')),
        "finish": random_.choice(("stop", "stop", "length")),
        "salvage": random_.random() < 0.3,
        "max_call": random_.choice((1_000_000, 1_000_000, 30)),
    }


def failure(text: str, places: list[int], how: dict) -> str | None:
    """What is wrong, or None."""
    try:
        check(text, places, **how)
    except Exception:  # noqa: BLE001 - whatever it is, it is what the fuzzer looks for
        return traceback.format_exc()
    return None


def smaller(text: str, places: list[int], how: dict) -> str:
    """The shortest answer that still fails, found by leaving out stretches."""
    size = len(text) // 2
    while size:
        for at in range(0, len(text), size):
            shorter = text[:at] + text[at + size :]
            if failure(shorter, places, how):
                text = shorter
                break
        else:
            size //= 2
    return text


def seconds(text: str, step: int, tools: object) -> float:
    """How long reading takes, in pieces of ``step`` characters; the best of two."""
    best = float("inf")
    for _ in range(2):
        start = time.process_time()
        read(cut(text, list(range(0, len(text), step))), tools=tools)
        best = min(best, time.process_time() - start)
    return best


def slow(random_: random.Random) -> str | None:
    """What makes the time grow faster than the answer, or None."""
    start = "".join(random_.choice(PIECES) for _ in range(random_.randint(0, 5)))
    unit = "".join(random_.choice(PIECES) for _ in range(random_.randint(1, 3)))
    step, tools = random_.choice((1, 3, 50_000)), random_.choice((TOOLS, ()))
    few, many = (start + unit * (size // len(unit)) for size in (5_000, 40_000))
    if seconds(many, step, tools) < 0.3:
        return None
    ratio = seconds(many, step, tools) / seconds(few, step, tools) / 8
    what = f"{start!r} + {unit!r} * n in pieces of {step}"
    return f"{ratio:.1f} times slower a character: {what}" if ratio > 2.5 else None


def main(budget: float, seed: int) -> int:
    """Fuzz until the time is over or something fails."""
    random_, start, count = random.Random(seed), time.monotonic(), 0
    while time.monotonic() - start < budget:
        count += 1
        if count % 2000 == 0:
            found = slow(random_)
            if found:
                print(found)
                return 1
        text, how = answer(random_), setting(random_)
        places = [random_.randint(0, 300) for _ in range(random_.randint(1, 6))]
        if failure(text, places, how):
            text = smaller(text, places, how)
            print(f"seed {seed}, answer {count}, cut at {places}, {how}\n{text!r}\n{failure(text, places, how)}")
            return 1
    print(f"seed {seed}: {count} answers in {budget:.0f} s, nothing found")
    return 0


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1]) if len(sys.argv) > 1 else 60, int(sys.argv[2]) if len(sys.argv) > 2 else 0))

"""What ``chat --stats`` says."""

from __future__ import annotations

import io
import re

from qwen_tools.cli import main
from qwen_tools.commands.stats import stats_lines
from qwen_tools.events import Usage


def test_all_rounds_are_summed():
    rounds = [
        Usage(800, 0, 40, 20, 6, prefill_s=2.0, decode_s=4.0),
        Usage(900, 840, 10, 0, 0, prefill_s=0.5, decode_s=1.0),
    ]
    load, prefill, decode, memory = stats_lines(rounds, 3.21)
    assert load == "load     3.2 s"
    assert prefill == "prefill  2.50 s, 1700 tokens in 2 rounds, 840 of them cached (344.0 token/s)"
    assert decode == "decode   5.00 s, 50 tokens, 20 forced by the grammar, 6 found by lookup (10.0 token/s)"
    assert re.fullmatch(r"memory   [\d.]+ [MG]B resident( .*)? at most", memory)


def test_an_engine_that_counts_nothing():
    assert stats_lines([Usage()], 0)[1] == "prefill  0.00 s, 0 tokens in 1 rounds, 0 of them cached"


def test_chat_says_them_on_stderr(tmp_path, monkeypatch, capfd):
    monkeypatch.setattr("sys.stdin", io.StringIO())
    script = tmp_path / "script.json"
    script.write_text('["Hello."]')
    assert main(["chat", "--no-log", "--model", f"scripted:{script}", "--stats", "Hi"]) == 0
    out, err = capfd.readouterr()
    assert out == "Hello.\n"
    assert [line.split()[0] for line in err.splitlines()] == ["load", "prefill", "decode", "memory"]

"""Markdown for a terminal while it streams: styles are added, no character is changed or moved.

A line is styled as it comes; held back is only what cannot be judged yet, a few characters at the start of a
line or a run of ``*`` or backticks. So nothing is drawn twice, and what is copied from the screen is what the model
wrote. Without its styles the output is the input, however it was cut.
"""

from __future__ import annotations

import re

_PLAIN, _MARK, _BOLD, _CODE, _HEADING, _BULLET = "", "2", "1", "36", "1", "33"

# The start of a line that may still become a heading, a list item or a fence.
_UNDECIDED = re.compile(r" {0,8}(?:#{1,6}|`+|~+|[-*+]|\d{1,9}[.)]?)?")
_HEADING_LINE = re.compile(r" {0,3}#{1,6}\s")
_ITEM = re.compile(r"( *(?:[-*+]|\d{1,9}[.)]))\s")
_FENCE = re.compile(r" {0,8}(`{3,}|~{3,})")


class Markdown:
    """``feed`` pieces of an answer, show what it returns, and ``close`` at the end."""

    def __init__(self) -> None:
        self._out: list[str] = []
        self._shown = _PLAIN  # the style the terminal is in
        self._fence = ""  # what opened the block of code that is open
        self._new_line()

    def feed(self, text: str) -> str:
        """What can be shown now."""
        for letter in text:
            if self._start is None:
                self._inline(letter)
            else:
                self._start += letter
                self._judge(self._start)
        return self._flush()

    def close(self) -> str:
        """The rest, with the terminal's own style restored."""
        if self._start:
            self._decide(self._start)
        self._end_run("")
        self._write("", _PLAIN)
        return self._flush()

    def _new_line(self) -> None:
        self._start: str | None = ""  # the held back start of a line; None when its kind is known
        self._line = _PLAIN  # the style of the whole line
        self._bold = False
        self._code = ""  # the backticks that opened a span of code
        self._run = ""  # a run of * or ` that is held back
        self._before = " "  # the character in front of it

    def _judge(self, start: str) -> None:
        """See whether the start of a line says what kind of line it is."""
        if self._fence:
            # Only a line of nothing but the fence closes the block.
            closing = start.lstrip(" ").rstrip(" ")
            if start.endswith("\n") or closing.strip(self._fence[0]):
                self._decide(start)
        elif not _UNDECIDED.fullmatch(start):
            self._decide(start)

    def _decide(self, start: str) -> None:
        self._start = None
        fence = _FENCE.match(start)
        if self._fence:
            bare = start.strip()
            closes = len(bare) >= len(self._fence) and not bare.strip(self._fence[0])
            self._line = _MARK if closes else _CODE
            if closes:
                self._fence = ""
            self._code = "whole line"
        elif fence:
            self._fence = fence.group(1)
            self._line, self._code = _MARK, "whole line"
        elif _HEADING_LINE.match(start):
            self._line = _HEADING
        elif item := _ITEM.match(start):
            self._write(item.group(1), _BULLET)
            start = start[item.end(1) :]
        for letter in start:
            self._inline(letter)

    def _inline(self, letter: str) -> None:
        """One character of a line whose kind is known."""
        if letter == "\n":
            self._end_run(letter)
            self._write("", _PLAIN)
            self._out.append(letter)
            self._new_line()
        elif letter in "*`" and self._code != "whole line" and (not self._run or letter == self._run[0]):
            self._run += letter
        else:
            self._end_run(letter)
            if letter in "*`" and self._code != "whole line":
                self._run = letter
            else:
                self._write(letter, self._style())
                self._before = letter

    def _end_run(self, after: str) -> None:
        """A run of ``*`` or backticks ended in front of ``after``: does it begin or end something?"""
        run, self._run = self._run, ""
        if not run:
            return
        if run[0] == "`" and self._code in ("", run):
            opens = not self._code
            self._code = run if opens else ""
            self._write(run, _MARK)
        elif run[0] == "*" and len(run) > 1 and not self._code and self._turns_bold(after):
            self._bold = not self._bold
            self._write(run, _MARK)
        else:
            self._write(run, self._style())
        self._before = run[-1]

    def _turns_bold(self, after: str) -> bool:
        """What CommonMark calls flanking, so that 2 ** 3 and 2**3 stay what they are."""
        if self._bold:
            return not self._before.isspace()
        return bool(after) and not after.isspace() and not self._before.isalnum()

    def _style(self) -> str:
        if self._code and self._code != "whole line":
            return _CODE
        return _BOLD if self._bold else self._line

    def _write(self, text: str, code: str) -> None:
        if code != self._shown:
            self._out.append(f"\x1b[0;{code}m" if code else "\x1b[0m")
            self._shown = code
        self._out.append(text)

    def _flush(self) -> str:
        out, self._out = "".join(self._out), []
        return out

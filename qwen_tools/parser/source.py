"""The answer as it comes in: a cursor over what is not read yet, and a memory of what was read since a mark.

Knows nothing of calls but the shape of tags.
"""

from __future__ import annotations

import re

OPEN, CLOSE = "<tool_call>", "</tool_call>"
FUNCTION, FUNCTION_END = "<function=", "</function>"
PARAMETER, PARAMETER_END = "<parameter=", "</parameter>"
THINK, THINK_END = "<think>", "</think>"
# A second turn that the model opens itself is no part of this one, so its header ends the answer too.
END_TOKENS = ("<|im_end|>", "<|endoftext|>", "<|im_start|>")

LONGEST_TAG = max(map(len, (CLOSE, PARAMETER_END, *END_TOKENS)))
# Names of functions and parameters; longer ones are no names.
MAX_NAME = 1000

_SPACE = re.compile(r"\s+")
# A closing tag of another format, such as </function_calls>.
_FOREIGN = re.compile(r"</[\w:.-]{1,40}>")
_FOREIGN_BEGUN = re.compile(r"<(/[\w:.-]{0,40})?\Z")


class Source:
    """The input with a cursor ``at`` in ``text``, which is what is still held of it.

    What was read is dropped piece by piece, unless a mark keeps it. Positions count characters of the answer;
    those of a prefill are negative.
    """

    def __init__(self, start: int, limit: int) -> None:
        self.text = ""
        self.at = 0
        self.start = 0  # position of the mark
        self._limited = False  # what is kept has a limit, being an attempt at a call
        self._limit = limit
        self._base = start  # position of text[0]
        self._from: int | None = None  # in text: from where on it is kept
        self._kept: list[str] = []

    @property
    def position(self) -> int:
        """The cursor as a position in the answer."""
        return self._base + self.at

    @property
    def too_large(self) -> bool:
        """Whether the attempt that is kept has outgrown the limit; its end is not kept then."""
        return self._limited and self.position - self.start > self._limit

    def add(self, text: str) -> None:
        """More input. Only what is not read yet is copied."""
        if not self.at:
            self.text += text
            return
        if self._from is not None:
            room = self._limit - (self._base + self._from - self.start) if self._limited else self.at
            if room > 0:
                self._kept.append(self.text[self._from : min(self.at, self._from + room)])
            self._from = 0
        self._base += self.at
        self.text = self.text[self.at :] + text
        self.at = 0

    def mark(self) -> None:
        """Keep what is read from the cursor on."""
        self.start = self.position
        self._limited = False
        self._from = self.at
        self._kept = []

    def limit(self) -> None:
        """What is kept is an attempt at a call from now on; it begins at the cursor where nothing is kept."""
        if self._from is None:
            self.mark()
        self._limited = True

    def forget(self) -> None:
        """Keep nothing any more."""
        self._limited = False
        self._from = None
        self._kept = []

    def kept(self) -> str:
        """What was read since the mark, as far as the limit."""
        text = "".join(self._kept) + self.text[self._from : self.at]
        return text[: self._limit] if self._limited else text

    def rewind(self) -> None:
        """Back to the mark, which stays. Each stretch of the answer is read twice at most."""
        self.text = self.kept() + self.text[self.at :]
        self.at = self._from = 0
        self._base = self.start
        self._kept = []

    def drop(self) -> None:
        """Nothing that is not read yet will be read."""
        self.text = self.text[: self.at]

    def space(self) -> str:
        """Step over white space; returns it."""
        found = _SPACE.match(self.text, self.at)
        if not found:
            return ""
        self.at = found.end()
        return found.group()

    def open(self, tag: str) -> None:
        """Mark the place and step over the tag that stands there."""
        self.mark()
        self.at += len(tag)

    def tag(self, *tags: str) -> str | None:
        """Which of the tags stands at the cursor; ``""`` when more input may make it one, else None."""
        text, at = self.text, self.at
        for tag in tags:
            if text.startswith(tag, at):
                return tag
        if len(text) - at < LONGEST_TAG:
            rest = text[at:]
            if any(tag.startswith(rest) for tag in tags):
                return ""
        return None

    def foreign(self) -> str | None:
        """A closing tag of another format at the cursor; ``""`` when more input may make it one, else None."""
        found = _FOREIGN.match(self.text, self.at)
        if found:
            return found.group()
        return "" if _FOREIGN_BEGUN.match(self.text, self.at) else None

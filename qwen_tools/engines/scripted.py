"""An engine that plays back written answers, for tests and demonstrations without a model."""

from __future__ import annotations

import json
from collections.abc import Generator, Iterator, Sequence
from pathlib import Path
from typing import Any

from ..errors import UserError
from ..events import Usage
from ..guide import Guide
from ..prompt import Prompt
from ..template import TemplatePrompt
from . import Piece, Settings
from .stops import until_stop


class ScriptedEngine:
    """Plays ``answers`` in order, one a generation; each is given out in small pieces.

    ``prompts`` keeps the exact text of every prompt it was given.
    """

    tokenizer: Any = None
    can_guide = False

    def __init__(self, answers: Sequence[str], family: str = "qwen2.5", name: str = "scripted") -> None:
        self.name = name
        self.family = family
        self.prompts: list[str] = []
        self._answers = list(answers)
        self._next = 0

    @classmethod
    def from_file(cls, path: str, family: str = "qwen2.5") -> ScriptedEngine:
        """Read a JSON list of answers. Raises UserError when the file is not one."""
        try:
            answers = json.loads(Path(path).read_text(encoding="utf-8"))
        except OSError as error:
            raise UserError(f"cannot read the script {path}: {error.strerror}") from error
        except ValueError as error:
            raise UserError(f"the script {path} is not JSON: {error}") from error
        if not isinstance(answers, list) or not all(isinstance(answer, str) for answer in answers):
            raise UserError(f"the script {path} must be a JSON list of strings, one answer each")
        return cls(answers, family, name=f"scripted:{path}")

    def generate(
        self,
        prompt: Prompt | TemplatePrompt,
        settings: Settings,
        *,
        begun: Sequence[int] = (),  # noqa: ARG002 - a script begins at its beginning
        guide: Guide | None = None,  # noqa: ARG002 - what is written cannot be guided
    ) -> Iterator[Piece]:
        """The next answer, cut after ``settings.max_new_tokens`` pieces of four characters."""
        self.prompts.append(prompt.text)
        if self._next == len(self._answers):
            raise UserError(f"the script has only {self._next} answers and one more was asked for", code=1)
        answer = self._answers[self._next]
        self._next += 1
        yield from until_stop(_pieces(answer, settings.max_new_tokens), settings.stop)


def _pieces(answer: str, limit: int) -> Generator[Piece, None, None]:
    pieces = [answer[start : start + 4] for start in range(0, len(answer), 4)]
    given = 0
    for given, piece in enumerate(pieces[:limit], start=1):
        yield Piece(piece, usage=Usage(new_tokens=given))
    yield Piece("", usage=Usage(new_tokens=given), finish="stop" if given == len(pieces) else "length")

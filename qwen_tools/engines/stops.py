"""Stop strings: the text of an answer ends where one of them would stand in it."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import replace

from . import Piece


def until_stop(pieces: Generator[Piece, None, None], stop: Sequence[str]) -> Iterator[Piece]:
    """Pass on an engine's pieces until a string of ``stop`` is complete in their text, however it is cut.

    Of several that complete with the same character the longest counts. It is left out of the text, and
    the last piece names it. A piece whose text may be the beginning of one waits, with its ids, until that is
    certain. The work a piece is bounded by its own length and that of the stop strings.
    """
    with closing(pieces):
        if not stop:
            yield from pieces
            return
        waiting: list[Piece] = []
        held = ""  # the text of those that wait
        for piece in pieces:
            waiting.append(piece)
            held += piece.text
            found = _first(held, stop)
            if found is not None:
                end, string = found
                yield from _before(waiting, end - len(string))
                yield Piece("", usage=piece.usage, finish="stop", stop=string)
                return
            open_from = len(held) if piece.finish else len(held) - _begun(held, stop)
            while waiting and len(waiting[0].text) <= open_from:
                first = waiting.pop(0)
                open_from -= len(first.text)
                held = held[len(first.text) :]
                yield first


def _first(text: str, stop: Sequence[str]) -> tuple[int, str] | None:
    """Where the first stop string in the text ends, and which it is."""
    ends = [(start + len(string), -len(string), string) for string in stop if (start := text.find(string)) >= 0]
    if not ends:
        return None
    end, _, string = min(ends)
    return end, string


def _begun(text: str, stop: Sequence[str]) -> int:
    """How many characters at the end of the text may be the beginning of a stop string."""
    longest = min(len(text), max(map(len, stop)) - 1)
    return next(
        (length for length in range(longest, 0, -1) if any(string.startswith(text[-length:]) for string in stop)), 0
    )


def _before(pieces: Sequence[Piece], length: int) -> Iterator[Piece]:
    """The first ``length`` characters. A piece that is cut loses its ids, which say more than is left of it."""
    for piece in pieces:
        if not length:
            return
        if len(piece.text) > length:
            piece = replace(piece, text=piece.text[:length], ids=())
        length -= len(piece.text)
        yield replace(piece, finish=None)

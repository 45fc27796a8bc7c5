"""A folder that tools may look into and nothing beside it: no ``..``, no symbolic link leads out.

A path is resolved and checked, and then opened component by component without following links, so that a link that is
put in between the check and the opening is refused too (where the system can open relative to a folder, as POSIX ones).
"""

from __future__ import annotations

import contextlib
import errno
import mimetypes
import os
import secrets
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ..errors import UserError

MAX_BYTES = 10_000_000
_RELATIVE = os.open in os.supports_dir_fd
_NOFOLLOW = getattr(os, "O_NOFOLLOW", 0)
_DIRECTORY = getattr(os, "O_DIRECTORY", 0)
_PLAIN = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)  # a FIFO must not keep us waiting


@dataclass(frozen=True)
class Text:
    """The text of a file, and what is needed to write it back in the same way. Every line ends in a plain newline."""

    text: str
    encoding: str
    newline: str


class Folder:
    """The root, by the path that a person gave. Raises UserError where there is no such folder."""

    def __init__(self, path: str) -> None:
        root = Path(path or ".").expanduser()
        if not root.is_dir():
            raise UserError(f"no folder {path}")
        self.root = root.resolve()

    def find(self, path: str) -> Path:
        """The absolute path of what a model calls ``path``. Raises ValueError where it is outside."""
        if "\0" in path:
            raise ValueError("a path has no NUL characters")
        try:
            found = (self.root / path).resolve()
        except (OSError, RuntimeError):  # links that lead in a circle
            raise ValueError(f"{path} cannot be followed") from None
        if not found.is_relative_to(self.root):
            raise ValueError(f"{path} is outside of the folder; use a path relative to it, such as notes.txt")
        return found

    def name(self, path: Path) -> str:
        """How the model calls a path."""
        return path.relative_to(self.root).as_posix()

    def files(self, start: Path) -> Iterator[Path]:
        """The files below ``start``, in order; hidden ones and links are left out."""
        for where, folders, names in os.walk(start):
            folders[:] = sorted(name for name in folders if not name.startswith("."))
            for name in sorted(names):
                path = Path(where, name)
                if not name.startswith(".") and stat.S_ISREG(path.lstat().st_mode):
                    yield path

    def read_bytes(self, path: Path) -> bytes:
        """The content of a file. Raises ValueError for what is none, is not there, or is too large."""
        if path.is_dir():
            raise ValueError(f"{self.name(path)} is a folder, not a file")
        with self._parent(path) as parent, _told(self.name(path)):
            flags = os.O_RDONLY | _NOFOLLOW | _PLAIN
            descriptor = os.open(path.name if _RELATIVE else path, flags, dir_fd=parent)
            with os.fdopen(descriptor, "rb") as file:
                found = os.fstat(descriptor)
                if not stat.S_ISREG(found.st_mode):
                    raise ValueError(f"{self.name(path)} is not a file")
                if found.st_size > MAX_BYTES:
                    raise ValueError(f"{self.name(path)} is too large to read ({size(found.st_size)})")
                return file.read(MAX_BYTES)

    def read_text(self, path: Path) -> Text:
        """The text of a file: UTF-8, or GB18030 as older Chinese files are. Raises ValueError also for a binary one."""
        data = self.read_bytes(path)
        if b"\0" not in data[:8192]:
            for encoding in ("utf-8-sig" if data.startswith(b"\xef\xbb\xbf") else "utf-8", "gb18030"):
                with contextlib.suppress(UnicodeDecodeError):
                    text = data.decode(encoding)
                    newline = "\r\n" if "\r\n" in text else "\n"
                    return Text(text.replace("\r\n", "\n"), encoding, newline)
        kind = mimetypes.guess_type(path.name)[0] or "unknown type"
        raise ValueError(f"{self.name(path)} is a binary file ({kind}, {size(len(data))}), not text")

    def write_text(self, path: Path, text: Text) -> None:
        """Put a text in place of a file, whole or not at all; missing folders are made. Raises ValueError."""
        data = text.text.replace("\n", text.newline).encode(text.encoding, "replace")
        if path.is_dir():
            raise ValueError(f"{self.name(path)} is a folder, not a file")
        with self._parent(path, make=True) as parent, _told(self.name(path)):
            target = path.name if _RELATIVE else str(path)
            mode = 0o644
            with contextlib.suppress(FileNotFoundError):
                found = os.stat(target, dir_fd=parent, follow_symlinks=False)
                if not stat.S_ISREG(found.st_mode):
                    raise ValueError(f"{self.name(path)} is not a file")
                mode = stat.S_IMODE(found.st_mode)
            beside = f"{target}.{secrets.token_hex(4)}.tmp"
            descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _PLAIN, mode, dir_fd=parent)
            try:
                with os.fdopen(descriptor, "wb") as file:
                    file.write(data)
                os.replace(beside, target, src_dir_fd=parent, dst_dir_fd=parent)
            except BaseException:
                os.unlink(beside, dir_fd=parent)
                raise

    @contextlib.contextmanager
    def _parent(self, path: Path, make: bool = False) -> Iterator[int | None]:
        """The open folder of a path that was found, reached without following a link."""
        if not _RELATIVE:
            if make:
                path.parent.mkdir(parents=True, exist_ok=True)
            yield None
            return
        with contextlib.ExitStack() as stack, _told(self.name(path)):
            here = os.open(self.root, os.O_RDONLY | _DIRECTORY)
            stack.callback(os.close, here)
            for part in path.relative_to(self.root).parts[:-1]:
                if make:
                    with contextlib.suppress(FileExistsError):
                        os.mkdir(part, dir_fd=here)
                here = os.open(part, os.O_RDONLY | _DIRECTORY | _NOFOLLOW, dir_fd=here)
                stack.callback(os.close, here)
            yield here


@contextlib.contextmanager
def _told(name: str) -> Iterator[None]:
    """What the system says about a file, in words for the model."""
    try:
        yield
    except FileNotFoundError:
        raise ValueError(f"there is no file {name}; list the folder to see what there is") from None
    except OSError as error:
        # Not a link a moment ago: somebody changes it under our hands.
        reason = "it is a link" if error.errno == errno.ELOOP else error.strerror
        raise ValueError(f"{name}: {reason}") from None


def size(count: int) -> str:
    """A size in bytes for reading: ``12 KB``."""
    amount = float(count)
    for unit in ("bytes", "KB", "MB"):
        if amount < 1000:
            break
        amount, unit = amount / 1000, {"bytes": "KB", "KB": "MB", "MB": "GB"}[unit]
    return f"{amount:.0f} {unit}"


def lines_of(text: str, start: int, characters: int, read_on: str) -> str:
    """The lines from ``start`` on (counted from 1) that fit, and a last line that says how to read on.

    Raises ValueError where the text ends before.
    """
    lines = text.split("\n")
    if lines[-1] == "" and len(lines) > 1:
        lines.pop()
    if not 1 <= start <= len(lines):
        raise ValueError(f"the file has {len(lines)} lines; start_line must be from 1 to {len(lines)}")
    shown: list[str] = []
    room = characters
    for line in lines[start - 1 :]:
        if shown and len(line) > room:
            break
        shown.append(line if len(line) <= characters else f"{line[:characters]} … (line cut)")
        room -= len(line) + 1
    end = start - 1 + len(shown)
    if start == 1 and end == len(lines):
        return "\n".join(shown)
    more = f"; {read_on} start_line {end + 1} reads on" if end < len(lines) else ""
    return "\n".join([*shown, f"[lines {start}-{end} of {len(lines)}{more}]"])

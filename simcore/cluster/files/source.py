"""The text of a cluster file, and places in it for messages."""

from __future__ import annotations

import os
import stat

from simcore.diagnostics import Diagnostic, InputError, printable
from simcore.toml_text import place_at

# A cluster is a page of text; more is another kind of file.
_MOST_BYTES = 1 << 20


class Source:
    """The text of the file at `path`. Raises InputError when there is no such text."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.text = self._read()

    def _read(self) -> str:
        try:
            mode = os.stat(self.path).st_mode
            if not stat.S_ISREG(mode):
                kind = "a directory" if stat.S_ISDIR(mode) else "no regular file"
                raise self.refusal("not-a-cluster-file", f"found {kind}, expected a file")
            with open(self.path, "rb") as file:
                data = file.read(_MOST_BYTES + 1)
        except OSError as error:
            raise self.refusal("unreadable-file", f"the file cannot be read: {error.strerror}") from None
        except ValueError:  # a NUL character in the path
            raise self.refusal("no-such-file", "there is no such file") from None
        if len(data) > _MOST_BYTES:
            raise self.refusal("not-a-cluster-file", "found more than 1 MiB, expected a cluster file")
        try:
            return data.decode("utf-8-sig").replace("\r\n", "\n")
        except UnicodeDecodeError as error:
            line = data.count(b"\n", 0, error.start) + 1
            message = f"found byte 0x{data[error.start]:02x}, expected UTF-8 text"
            raise InputError(Diagnostic("error", "not-a-cluster-file", message, self.path, line)) from None

    def place(self, offset: int) -> tuple[int, int]:
        """Line and column of the character at `offset`, from 1."""
        return place_at(self.text, offset)

    def refusal(self, code: str, message: str, place: tuple[int, int] | None = None) -> InputError:
        """The error that says what was found and what was expected, at a (line, column)."""
        line, column = place or (None, None)
        return InputError(Diagnostic("error", code, message, self.path, line, column))

    def ignored(self, keys: list[tuple[str, tuple[int, int]]]) -> tuple[Diagnostic, ...]:
        """A note for each key that means nothing here."""
        return tuple(
            Diagnostic("note", "cluster-key-ignored", f"{quoted(key)} is ignored", self.path, *place)
            for key, place in keys
        )


def quoted(value: object) -> str:
    """A value of a file in backquotes, safe for a terminal."""
    return f"`{printable(str(value), 40)}`"

"""What a command prints passes here: only text that a terminal just shows reaches it.

`guarded` puts a `PrintedStream` in place of standard output and of standard error, so that no command can
forget a name of a file. What shall steer the terminal is of type `Controls`, which the program alone makes.
Bytes of an export (`sys.stdout.buffer`) are those of a file, and pass as they are.
"""

import re
from collections.abc import Iterable
from typing import Any, TextIO

# Everything that the program itself writes, and most names.
_PLAIN = re.compile(
    "[\n -~\u00a1-\u00ac\u00ae-\u02ff\u0370-\u0482\u048a-\u052f\u2010-\u2027\u2030-\u205e\u2190-\u27ff]*"
)


# What the program steers a terminal with: colours, and the line that it writes again.
_CONTROLS = re.compile("(\r|\x1b\\[[0-9;]*[mK])")


class Controls(str):
    """Text with controls of the program among what is shown."""

    __slots__ = ()

    def __str__(self) -> str:
        # `print` asks for it; a plain text would have lost the type.
        return self


def shown_text(text: str) -> str:
    """Returns the text with everything but line ends escaped that a terminal would not just show."""
    if _PLAIN.fullmatch(text):
        return text
    # Imported here: most runs print nothing else.
    from simcore.diagnostics import printable

    return "\n".join(printable(line, len(line)) for line in text.split("\n"))


class PrintedStream:
    """A stream of text, to which everything but `Controls` is written as it is shown."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Writes a text."""
        if type(text) is Controls:
            parts = _CONTROLS.split(text)
            parts[::2] = map(shown_text, parts[::2])
            self._stream.write("".join(parts))
        else:
            self._stream.write(shown_text(text))
        return len(text)

    def writelines(self, texts: Iterable[str]) -> None:
        """Writes several texts."""
        for text in texts:
            self.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

"""What a command prints passes here: only text that a terminal just shows reaches it.

`guarded` puts a `PrintedStream` in place of standard output and of standard error, so that no command can
forget a name of a file. What shall steer the terminal is of type `Controls`, which the program alone makes.
Bytes of an export (`sys.stdout.buffer`) are those of a file, and pass as they are.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any, TextIO

# What the program steers a terminal with: colours, and the line that it writes again.
_CONTROLS = "(\r|\x1b\\[[0-9;]*[mK])"


class Controls(str):
    """Text with controls of the program among what is shown."""

    __slots__ = ()

    def __str__(self) -> str:
        # `print` asks for it; a plain text would have lost the type.
        return self


def shown_text(text: str) -> str:
    """Returns the text with everything but line ends escaped that a terminal would not just show."""
    if text.isascii() and text.replace("\n", "").isprintable():
        return text
    # Imported here: `--version` prints nothing else.
    from simcore.diagnostics import is_mark, is_shown, printable

    # Of a page with a million blocks there are ten characters.
    if all(is_shown(char) and not is_mark(char) for char in {*text} - {"\n"}):
        return text
    return "\n".join(printable(line, len(line)) for line in text.split("\n"))


class PrintedStream:
    """A stream of text, to which everything but `Controls` is written as it is shown."""

    def __init__(self, stream: "TextIO") -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Writes a text."""
        if type(text) is Controls:
            import re

            parts = re.split(_CONTROLS, text)
            parts[::2] = map(shown_text, parts[::2])
            self._stream.write("".join(parts))
        else:
            self._stream.write(shown_text(text))
        return len(text)

    def writelines(self, texts: "Iterable[str]") -> None:
        """Writes several texts."""
        for text in texts:
            self.write(text)

    def __getattr__(self, name: str) -> "Any":
        return getattr(self._stream, name)

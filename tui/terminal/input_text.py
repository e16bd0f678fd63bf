"""What a terminal sends, as text that Textual's parser takes for what it is: keys, mouse, pastes, replies.

The parser gives what it does not know as keys, letter by letter: the reply to a question of another program,
or bytes of another encoding, would be commands here. So strings of the terminal (OSC, DCS ...), sequences
that nobody asked for, controls of 8 bits and characters that are no text are left out, and a paste has an
end.
"""

from __future__ import annotations

import re
from codecs import getincrementaldecoder
from collections.abc import Iterator
from functools import lru_cache

from textual._ansi_sequences import ANSI_SEQUENCES_KEYS

# More is no text that somebody types into a prompt.
MOST_PASTED = 64 * 1024
PASTE_BEGIN, PASTE_END = "\x1b[200~", "\x1b[201~"
# A sequence that is longer is not one of a key: Textual takes 32 characters.
_MOST_SEQUENCE = 32
# Introducers of strings, which end with BEL or ST: OSC, DCS, APC, PM, SOS.
_STRINGS = "]P_^X"
# Esc ends it as well, as it does in terminals: what follows is a sequence of its own.
_STRING_END = re.compile(r"[\x07\x9c\x18\x1a]|\x1b\\|(?=\x1b[^\\])")
# A parameter of no end ends with what is none.
_CSI_END = re.compile("[^0-?]")
_CSI = re.compile(r"\x1b\[(\[[A-E]|[0-?]*[ -/]*[@-Z\\-~])")
_CSI_BEGUN = re.compile(r"\x1b(\[(\[|[0-?]*[ -/]*))?")
# Of Textual: keys with their modifiers, the mouse, modes, a new size, and where the cursor is.
_KEY_OR_REPORT = re.compile(
    r"\x1b\[(([0-9:]{0,7};?){2,3}[u~ABCDEFHPQRS]|<[0-9]{1,3};[0-9]{1,5};[0-9]{1,5}[Mm]"
    r"|\?[0-9]{1,4};[0-9]\$y|48;[0-9]{1,5};[0-9]{1,5};[0-9]{1,5};[0-9]{1,5}t|[IO]|20[01]~)"
)
_PLAIN = re.compile("[^\x1b\x80-\x9f\ufffd]+")


@lru_cache(maxsize=1024)
def _is_known(sequence: str) -> bool:
    return sequence in ANSI_SEQUENCES_KEYS or _KEY_OR_REPORT.fullmatch(sequence) is not None


class TerminalInput:
    """Decodes what a terminal sends, and leaves out what is neither a key nor an answer."""

    def __init__(self) -> None:
        # A Latin-1 terminal sends é as 0xE9, which begins three bytes of UTF-8.
        self._decode = getincrementaldecoder("utf-8")(errors="replace").decode
        # The beginning of a sequence whose rest has not come.
        self._incomplete = ""
        self._is_pasting = False
        # The end of what is left out, while that has not come.
        self._skips_to: re.Pattern[str] | None = None
        # Whether nothing came for as long as nothing comes between the parts of a string.
        self._is_quiet = False
        # Whether nothing has come since all that had begun was ended.
        self._is_over = True
        self._pasted = 0

    def texts(self, data: bytes) -> Iterator[str]:
        """Yields what bytes mean to Textual's parser, each sequence by itself."""
        text = self._incomplete + self._decode(data)
        self._incomplete = ""
        if self._is_quiet and len(text) == 1 and text not in "\x07\x9c":
            # A key: Esc and P that were read at once have begun a string that nothing ends.
            self._skips_to = None
        self._is_quiet = self._is_over = False
        position = 0
        while position < len(text):
            if self._skips_to is not None:
                end = self._skips_to.search(text, position)
                if end is None:
                    # Its end may be cut in two.
                    self._incomplete = "\x1b" if text.endswith("\x1b") else ""
                    return
                self._skips_to, position = None, end.end()
                continue
            match = _PLAIN.match(text, position)
            if match is not None:
                position = match.end()
                yield from self._plain(match[0])
            elif text[position] != "\x1b":
                position += 1
            else:
                begin, position = position, self._end_of_sequence(text, position)
                if position > len(text):
                    self._incomplete = text[begin:]
                    return
                yield from self._sequence(text[begin:position])

    @property
    def is_waiting(self) -> bool:
        """Whether something has begun whose end has not come."""
        return bool(self._incomplete) or self._is_pasting or self._skips_to is not None

    def rest(self, is_long: bool) -> Iterator[str]:
        """Yields Esc where it came by itself, when nothing has come since.

        is_long: for so long that whatever has begun is over; a paste is closed, here and in Textual's
        parser, which gets no key while it waits for an end.
        """
        self._is_quiet = True
        if self._incomplete == "\x1b" and self._skips_to is None:
            self._incomplete = ""
            if not self._is_pasting:
                yield "\x1b"
        if is_long and not self._is_over:
            self._incomplete, self._skips_to, self._is_pasting, self._is_over = "", None, False, True
            yield PASTE_END

    def _plain(self, text: str) -> Iterator[str]:
        if self._is_pasting:
            text = text[: max(MOST_PASTED - self._pasted, 0)]
            self._pasted += len(text)
        if text:
            yield text

    def _sequence(self, sequence: str) -> Iterator[str]:
        if sequence[1:2] in _STRINGS and len(sequence) == 2:
            self._skips_to = _STRING_END
        elif len(sequence) > _MOST_SEQUENCE:
            self._skips_to = _CSI_END if sequence[-1] in "0123456789:;<=>?" else None
        elif sequence == PASTE_BEGIN:
            self._is_pasting, self._pasted = True, 0
            yield sequence
        elif sequence == PASTE_END:
            # Also of a paste that has begun for Textual's parser alone, with an Esc that came long before.
            self._is_pasting = False
            yield sequence
        elif not self._is_pasting and (sequence[1:2] != "[" or _is_known(sequence)):
            yield sequence

    @staticmethod
    def _end_of_sequence(text: str, begin: int) -> int:
        """Returns where the sequence ends that begins there; behind the text where its end has not come."""
        match = _CSI.match(text, begin)
        if match is not None:
            return match.end()
        opening = _CSI_BEGUN.match(text, begin)
        assert opening is not None
        if opening.end() == len(text) and len(text) - begin <= _MOST_SEQUENCE:
            return len(text) + 1
        following = text[begin + 1 : begin + 2]
        if following == "[":
            # No sequence: what begins as one is left out.
            return opening.end()
        if following == "O" and text[begin + 2 : begin + 3] != "\x1b":
            return begin + 3
        return begin + 1 if following in ("\x1b", "") else begin + 2

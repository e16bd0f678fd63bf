"""Words of a command line as text for a shell: what a terminal would not just show is written as bytes.

`'a b'` where quotes suffice, else `$'a\x1bb'`, which bash, zsh and ksh read; also a byte that is no UTF-8.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable
from functools import lru_cache

from simcore.diagnostics import is_shown

# Compiled when they are used: most runs write commands and read none.
_PART = r"'([^']*)'|\"([^\"]*)\"|\$'((?:[^'\\]|\\.)*)'|\\(.)|([^\s'\"\\$]+|\$)|(\s+)"
_ESCAPE = rb"\\(?:x([0-9a-f]{2})|(.))"


# The commands of a hundred thousand points have a few hundred words.
@lru_cache(1024)
def quote_word(word: str) -> str:
    """Returns a word as a shell takes it."""
    if word.isascii() and word.isprintable():
        return shlex.quote(word)
    if all(map(is_shown, word)):
        return shlex.quote(word)
    return f"$'{''.join(map(_escape, word))}'"


def _escape(char: str) -> str:
    if char in "\\'":
        return f"\\{char}"
    if is_shown(char):
        return char
    # Half a character, which JSON can state, is not in any file's name.
    errors = "surrogateescape" if "\udc80" <= char <= "\udcff" else "surrogatepass"
    return "".join(f"\\x{byte:02x}" for byte in char.encode("utf-8", errors))


def join_words(words: Iterable[str]) -> str:
    """Returns the words as one line for a shell."""
    return " ".join(map(quote_word, words))


def split_words(text: str) -> list[str]:
    """Returns the words of a line that `join_words` made. Raises ValueError where a quote is not closed."""
    words: list[str] = []
    parts: list[str] = []
    is_word = False
    position = 0
    match_part = re.compile(_PART, re.DOTALL).match
    while position < len(text):
        match = match_part(text, position)
        if match is None:
            raise ValueError("no closing quotation")
        position = match.end()
        single, double, encoded, escaped, plain, blank = match.groups()
        if blank is not None:
            if is_word:
                words.append("".join(parts))
            parts, is_word = [], False
            continue
        is_word = True
        if encoded is not None:
            parts.append(_read_bytes(encoded))
        else:
            parts.append(next(part for part in (single, double, escaped, plain) if part is not None))
    return [*words, "".join(parts)] if is_word else words


def _read_bytes(text: str) -> str:
    """Returns the text that `$'...'` stands for."""

    data = text.encode("utf-8", "surrogateescape")
    data = re.sub(_ESCAPE, lambda match: match[2] or bytes((int(match[1], 16),)), data, flags=re.DOTALL)
    return data.decode("utf-8", "surrogateescape")

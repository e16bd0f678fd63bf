"""Running the program in this process, and what must never leave it."""

from __future__ import annotations

import contextlib
import io
import re
from typing import NamedTuple

from tui.cli import main

# Controls other than a newline, breaks of lines, and what turns the direction of the text behind it.
# And letters that are displayed as nothing.
UNSAFE = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f"
    "\ufeff\uffa0\U000e0000-\U000e0fff]"
)


class Done(NamedTuple):
    """status: the exit status. out, err: what was printed."""

    status: int
    out: str
    err: str


def wltui(*words: str) -> Done:
    """`wltui` with these words; a traceback is an exception here. What is printed is looked at."""
    out, err = io.TextIOWrapper(io.BytesIO(), encoding="utf-8"), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = main(list(words))
        out.flush()
    done = Done(status, out.buffer.getvalue().decode(), err.getvalue())  # type: ignore[attr-defined]
    found = {f"U+{ord(char):04X}" for char in UNSAFE.findall(done.out + done.err)}
    assert found == set(), words
    return done

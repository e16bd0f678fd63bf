"""What a terminal can show, as far as its environment tells. Imports nothing of the screen."""

from __future__ import annotations

import os
from collections.abc import Mapping

from simcore.diagnostics import is_unicode

_PLAIN_LOCALES = ("C", "POSIX")
# Terminals that cannot move a cursor: an Emacs shell buffer, a pipe that calls itself a terminal.
_CANNOT_DRAW = ("", "dumb", "unknown")


def can_draw(environ: Mapping[str, str] = os.environ) -> bool:
    """Whether the terminal can show a screen at all, by its TERM."""
    return environ.get("TERM", "").lower() not in _CANNOT_DRAW


def speaks_utf8(encoding: str | None, environ: Mapping[str, str] = os.environ) -> bool:
    """Whether the terminal can be taken to show block glyphs.

    In the C locale Python writes UTF-8 all the same, and sets LC_CTYPE to say so (PEP 538);
    the terminal of somebody who set that locale need not follow.
    """
    if not is_unicode(encoding):
        return False
    if environ.get("LC_ALL"):
        return environ["LC_ALL"] not in _PLAIN_LOCALES
    chosen = environ.get("LC_CTYPE", "")
    if chosen and chosen != "C.UTF-8":
        return chosen not in _PLAIN_LOCALES
    return environ.get("LANG", "") not in _PLAIN_LOCALES

"""Runs the screen on a terminal: what it needs, and the app over a session."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from simcore.diagnostics import UsageError, is_unicode
from simcore.units import is_whole
from tui.screens import SCREENS

if TYPE_CHECKING:
    from tui.app import WltuiApp
    from tui.keys.keymap import UserKeys
    from tui.session import Session
    from tui.state.keeper import SessionFile

# Files open at once at most, besides the standard three: an event loop and its wakers, and a file or two.
FILES_OF_SNAPSHOT, FILES_OF_SCREEN = 4, 8
_PLAIN_LOCALES = ("C", "POSIX")
# Terminals that cannot move a cursor: an Emacs shell buffer, a pipe that calls itself a terminal.
_CANNOT_DRAW = ("", "dumb", "unknown")


def show(
    session: Session,
    first: str | None = None,
    keeper: SessionFile | None = None,
    *,
    ascii_only: bool = False,
    mouse: bool = True,
    begin: Callable[[WltuiApp], None] | None = None,
) -> int:
    """Runs the app until it ends, and returns its exit status. begin: called once the app is there."""
    from tui.app import WltuiApp
    from tui.terminal.driver import MOST_COLUMNS, MOST_ROWS, TerminalDriver, end_on_signals

    if os.environ.get("NO_COLOR") == "":
        # Empty means unset (no-color.org); Textual takes it for set.
        del os.environ["NO_COLOR"]
    for name, most in (("COLUMNS", MOST_COLUMNS), ("LINES", MOST_ROWS)):
        # Textual draws a picture of any size, 10^15 cells too.
        text = os.environ.get(name, "1")
        if not is_whole(text) or not 1 <= int(text) <= most:
            del os.environ[name]
    ascii_only = ascii_only or not _speaks_utf8(sys.stdout.encoding)
    keymap = read_user_keymap()
    if first is None and keeper is not None and keeper.screen in SCREENS:
        first = keeper.screen
    tour = None
    # The tour has no keys of screen 7. Where sibling files were not used, its changes would be of an
    # unintended run: the note comes first.
    untaken = any(diagnostic.code == "files-not-taken" for diagnostic in session.current.diagnostics)
    if keeper is not None and session.current.timed and first != "sweep" and not untaken:
        from tui.tour import first_tour

        tour = first_tour()
    app = WltuiApp(session, ascii_only=ascii_only, keymap=keymap, first=first, keeper=keeper, tour=tour)
    if keymap.lost:
        app.status_text = f"{keymap.lost}; {app.status_text}" if app.status_text else keymap.lost
    if begin is not None:
        begin(app)
    app.driver_class = TerminalDriver
    end_on_signals(app)
    app.run(mouse=mouse)
    complaint = app.keeping.end()
    if complaint:
        print(f"wltui: {complaint}", file=sys.stderr)
    return app.return_code or 0


def _can_draw(environ: Mapping[str, str] = os.environ) -> bool:
    """Returns whether the terminal can show a screen at all, by its TERM."""
    return environ.get("TERM", "").lower() not in _CANNOT_DRAW


def _speaks_utf8(encoding: str | None, environ: Mapping[str, str] = os.environ) -> bool:
    """Returns whether the terminal is expected to show block glyphs.

    In the C locale Python still writes UTF-8, and sets LC_CTYPE to say so (PEP 538); a terminal on which that
    locale was set need not follow.
    """
    if not is_unicode(encoding):
        return False
    if environ.get("LC_ALL"):
        return environ["LC_ALL"] not in _PLAIN_LOCALES
    ctype = environ.get("LC_CTYPE", "")
    if ctype and ctype != "C.UTF-8":
        return ctype not in _PLAIN_LOCALES
    return environ.get("LANG", "") not in _PLAIN_LOCALES


def is_terminal() -> bool:
    """Returns whether there is a terminal for the screen and its keys, and one that can draw."""
    # Python has None for a stream that was closed.
    streams = (sys.stdin, sys.stdout)
    return all(stream is not None and stream.isatty() for stream in streams) and _can_draw()


def check_open_files(what: str, count: int = FILES_OF_SCREEN) -> None:
    """Raises `UsageError` unless `count` more files can be open: without them asyncio fails halfway."""
    descriptors: list[int] = []
    try:
        while len(descriptors) < count:
            descriptors.append(os.open(os.devnull, os.O_RDONLY))
    except OSError as error:
        raise UsageError(
            f"{what} needs {count} more open files, and {len(descriptors)} can be had: "
            f"{error.strerror or error} (ulimit -n)"
        ) from None
    finally:
        for descriptor in descriptors:
            os.close(descriptor)


def read_user_keymap() -> UserKeys:
    """Returns the user's own keys. The screens are loaded only to check an existing file."""
    from tui.keys.keymap import UserKeys, keymap_path, read_keymap

    path = keymap_path()
    if not os.path.exists(path):
        return UserKeys()
    from tui.app import WltuiApp
    from tui.screens import all_bindings

    return read_keymap(path, all_bindings(), WltuiApp.BINDINGS)

"""The rows around every screen: what is open, the screens and the step time; the keys below."""

from __future__ import annotations

import os

from simcore.units import duration, plural
from tui.frame import Line, cells, fitted, spread, text_of, width_of
from tui.screens import SCREENS, screens_of
from tui.session import AnySession, Session

_WIDE = 100


def heading(session: AnySession, screen: str, width: int) -> list[Line]:
    """Two rows: file, ranks, schedule, cluster; then the screens, the step time, the notes."""
    path = session.current.path
    # A directory may be given with a slash behind it.
    name = cells(os.path.basename(path.rstrip(os.sep)) or path, 40)
    notes = len(session.current.diagnostics)
    notes_words = plural(notes, "note")
    wide = width >= _WIDE
    facts = session.facts(wide)
    if wide:
        name = _short(name, max(width - 9 - sum(len(fact) + 3 for fact in facts[:2]), 12))
        first: Line = [(" wltui  ", "accent"), (name, "bright"), *_that_fit(facts, width - len(name) - 9)]
    else:
        room = width - width_of(_step(session)) - len(f"{notes_words}      ")
        name = _short(name, max(room - sum(len(fact) + 3 for fact in facts), 12))
        first = [(" ", ""), (name, "bright"), *_that_fit(facts, room - len(name))]
    note: Line = [("   ", ""), (notes_words + " ", "warn" if notes else "dim")]
    if not wide:
        return [spread(first, [*_step(session), *note], width), fitted(_tabs(session, screen, False), width)]
    run = session.run_words() if isinstance(session, Session) else ""
    # What tells the least goes first when there is no room for all.
    for titles, words in ((True, run), (False, run), (True, ""), (False, "")):
        tabs = _tabs(session, screen, titles)
        step: Line = [*_step(session), *([(f"   {words}", "")] if words else []), *note]
        if width_of(tabs) + width_of(step) < width:
            break
    return [fitted(first, width), spread(tabs, step, width)]


def _tabs(session: AnySession, screen: str, whole: bool) -> Line:
    """The screens with their keys, the open one in brackets; `whole` titles or short ones."""
    tabs: Line = [(" ", "")]
    for name in screens_of(session.measured):
        entry = SCREENS[name]
        title = f"{entry.key} {entry.title if whole else entry.short}"
        tabs.append((f"[{title}]", "accent") if name == screen else (f" {title} ", ""))
    return tabs


def tab_at(session: AnySession, screen: str, column: int, width: int) -> str | None:
    """The screen whose tab is at a column of the second row."""
    text = text_of(heading(session, screen, width)[1:])
    for name in screens_of(session.measured):
        entry = SCREENS[name]
        for title in (entry.title, entry.short):
            place = text.find(f"{entry.key} {title}")
            if 0 <= place - 1 <= column <= place + len(entry.key) + 1 + len(title):
                return name
    return None


def _short(name: str, room: int) -> str:
    return name if len(name) <= room else name[: room - 3] + "..."


def _that_fit(facts: list[str], room: int) -> Line:
    """As many whole facts as there is room for: half a word tells nothing."""
    line: Line = []
    for fact in facts:
        room -= len(fact) + 3
        if room < 0:
            break
        line.append((f"   {fact}", ""))
    return line


def _step(session: AnySession) -> Line:
    """The step time, never off the screen; after a change also what it was and the difference."""
    line: Line = [("step ", ""), (session.step, "bright")]
    if session.current is not session.opened:
        line += [("  ", ""), *difference(session.opened.step_time_ns, session.current.step_time_ns)]
    if session.error:
        line.append(("  change not run", "worse"))
    elif session.running:
        line.append(("  simulating", "warn"))
    return line


def difference(was: int, now: int) -> Line:
    """The difference between two step times, with its sign and as a share of the old one."""
    if was == now:
        return [("no change", "dim")]
    sign = "+" if now > was else "-"
    share = f" ({sign}{100 * abs(now - was) / was:.1f} %)" if was else ""
    return [(f"{sign}{duration(abs(now - was))}{share}", "worse" if now > was else "better")]


def footer(hints: tuple[tuple[str, str], ...], width: int) -> Line:
    """The last row: keys that do something here and now, as many as fit; help and quit always."""
    always: Line = [(" ? ", "key"), ("keys ", "dim"), (" q ", "key"), ("quit ", "dim")]
    room = width - sum(len(text) for text, _ in always)
    line: Line = []
    for keys, words in hints:
        if len(keys) + len(words) + 3 > room:
            break
        room -= len(keys) + len(words) + 3
        line += [(f" {keys} ", "key"), (f"{words} ", "dim")]
    return spread(line, always, width)

"""The rows around every screen: what is open, the screens and the step time; the keys below."""

from __future__ import annotations

import os

from simcore.units import duration, plural
from tui.frame import Line, cells, fitted, spread, width_of
from tui.screens import SCREENS
from tui.session import AnySession

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
    step: Line = [*_step(session), ("   ", ""), (notes_words + " ", "warn" if notes else "dim")]
    tabs: Line = [(" ", "")]
    for key, entry in SCREENS.items():
        title = f"{entry.key} {entry.title if wide else entry.short}"
        tabs.append((f"[{title}]", "accent") if key == screen else (f" {title} ", ""))
    if wide:
        return [fitted(first, width), spread(tabs, step, width)]
    return [spread(first, step, width), fitted(tabs, width)]


def tab_at(column: int, width: int) -> str | None:
    """The screen whose tab is at a column of the second row."""
    left = 1
    for key, entry in SCREENS.items():
        left += len(f" {entry.key} {entry.title if width >= _WIDE else entry.short} ")
        if column < left:
            return key if column >= 1 else None
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

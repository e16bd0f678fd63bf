"""The rows around every screen: what is open, the screens and the step time; the keys below."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

from simcore.trace.figures import SteppedRun, compare_by_work, is_other_work, judge, judge_times, remove_each
from simcore.units import change_percent, plural, signed_duration
from tui.frame import Line, cells, fitted, spread, text_of, width_of
from tui.screens import ScreenEntry, screens_of
from tui.session import Session, notes_of

_WIDE = 100
# The least cells of a file's name, and where the layout has no room otherwise.
_LEAST_NAME, _SHORTEST_NAME = 12, 9
_DEGREE = re.compile(r"\b([a-z]+) (\d+)\b")


def heading(session: Session, screen: str, width: int) -> list[Line]:
    """Returns two rows: file, ranks, schedule, cluster; then the screens, the step time, the notes."""
    path = session.current.path
    # A directory may be given with a slash at its end.
    name = cells(os.path.basename(path.rstrip(os.sep)) or path, 40)
    notes = len(notes_of(session))
    notes_words = plural(notes, "note")
    note: Line = [("   ", ""), (notes_words + " ", "warn" if notes else "dim")]
    second = _find_wide_row(session, screen, note, width) if width >= _WIDE else None
    facts, changed = session.facts(second is not None), len(session.changed_facts(second is not None))
    if second is None and width >= _WIDE:
        # The step stays in its row: what it is of stands in front of what is open.
        second = _find_wide_row(session, screen, note, width, False)
        if second is not None:
            facts, changed = ["other model", *session.facts(True)], 1 + len(session.changed_facts(True))
    if second is not None:
        least = sum(len(remove_each(fact)) + 3 for fact in facts[: changed + 1])
        least += min(len(name), _LEAST_NAME)
        if least > width - 9 and changed == len(session.changed_facts(True)) < len(facts):
            # `1024: tp 8 dp 8 pp 16` is better than nothing of the layout.
            facts[changed : changed + 1] = session.facts(False)[len(session.changed_facts(False)) :][:1]
        run_text = session.run_words()
        if session.current is not session.opened:
            if run_text not in text_of([second]):
                # It names the run: the step is not that of the file as it is.
                facts.insert(max(changed, 1) + 1, run_text)
            other = session.against_words()
            if other and f" vs {other}" not in text_of([second]):
                facts.insert(max(changed, 1), f"compared with {other}")
            if len(name) + sum(len(fact) + 3 for fact in facts[:3]) > width - 9:
                facts = [remove_each(fact) for fact in facts]
        name, fact_line = _name_and_facts(name, facts, width - 9, facts[:2])
        row: Line = [(" wltui  ", "accent"), (name, "bright"), *fact_line]
        return [fitted(row, width), second]
    # One cell on the left, three before the step, three before the notes, one behind them. The changed facts
    # and the layout stay, first without the number of ranks, then with the difference only in per cent, then
    # without blanks (`tp8 dp8 pp16`) and with a shorter name; which run the difference is to is dropped last.
    plain, cuts = (lambda facts: facts, _degrees), _LEAST_NAME
    whole, alone = facts[: changed + 1], facts[:changed]
    forms = [(whole, short, True, form, cuts) for short in (False, True) for form in plain]
    if changed:
        forms.append((whole, True, True, _compact, _SHORTEST_NAME))
        forms += [(alone, short, True, form, cuts) for short in (False, True) for form in plain]
    forms += [(alone, True, False, form, cuts) for form in plain]
    step, room, least = _step_line(session), 0, _LEAST_NAME
    for first, short, against, form, least in forms:
        step = _step_line(session, short, against=against)
        room = width - width_of(step) - len(notes_words) - 8
        first_facts = form(first)
        if room >= min(len(name), least) + sum(len(fact) + 3 for fact in first_facts):
            facts = [*first_facts, *facts[len(first_facts) :]]
            break
    name, fact_line = _name_and_facts(name, facts, room, facts, least)
    row = [(" ", ""), (name, "bright"), *fact_line]
    tabs = _narrow_tabs(screens_of(session.current), screen, width)
    return [spread(row, [*step, *note], width), fitted(tabs, width)]


def _degrees(first: list[str]) -> list[str]:
    """Returns `tp 8 dp 8 pp 16` of `1024: tp 8 dp 8 pp 16`; facts without a number in front stay as
    they are.
    """
    parts = [(fact, *fact.partition(": ")) for fact in first]
    return [words if count.isdecimal() and words else fact for fact, count, _, words in parts]


def _compact(first: list[str]) -> list[str]:
    """Returns `tp8 dp8 pp16` of the layout, the last of the facts; the others stay."""
    *changed, layout = _degrees(first)
    return [*changed, _DEGREE.sub(r"\1\2", layout)]


def _find_wide_row(
    session: Session, screen: str, note: Line, width: int, with_model: bool = True
) -> Line | None:
    """Returns the second row with the step time behind the screens; None where the screens would be truncated
    for it.

    with_model: whether it says that the step is another model's.
    """
    run = session.run_words()
    # The least informative is dropped first when there is no room for all: titles, the number of the run,
    # then the words of the notes, which their screen has too. The difference is shortened before the step
    # time is moved.
    forms = [(True, " ", run, False, True), (False, " ", run, False, True), (True, " ", "", False, True)]
    forms += [(False, gap, "", short, True) for short in (False, True) for gap in (" ", "")]
    forms += [(False, gap, "", True, False) for gap in (" ", "")]
    all_forms = [(*form, True) for form in forms]
    all_forms += [(False, gap, "", True, False, False) for gap in (" ", "")]
    for titles, gap, words, short, with_notes, against in all_forms:
        tabs = _tabs(screens_of(session.current), screen, titles, gap)
        step: Line = [
            *_step_line(session, short, with_model, against),
            *([(f"   {words}", "")] if words else []),
        ]
        step += note if with_notes else [(" ", "")]
        # Without a gap there is a blank behind the last screen.
        if width_of(tabs) + width_of(step) < width + (not gap):
            return spread(tabs, step, width)
    return None


def _tabs(screens: Mapping[str, ScreenEntry], screen: str, whole: bool, gap: str = " ") -> Line:
    """Returns the screens with their keys, the open one in brackets; `whole` titles or short ones. gap:
    between two, besides the cell that a bracket takes.
    """
    tabs: Line = [(" ", "")]
    for name, entry in screens.items():
        title = f"{entry.key} {entry.title if whole else entry.short}".rstrip()
        if name == screen:
            tabs.append((f"[{title}]", "accent"))
            if not gap:
                tabs.append((" ", ""))
        else:
            tabs.append((f"{gap}{title} ", ""))
    return tabs


def _narrow_tabs(screens: Mapping[str, ScreenEntry], screen: str, width: int) -> Line:
    """Returns the screens in a row of their own: where not all titles fit without that of the notes, only
    that of the open one has one.
    """
    # The notes are counted in the row above.
    nameless = {
        name: entry._replace(short="") if name == "notes" != screen else entry
        for name, entry in screens.items()
    }
    forms = [_tabs(some, screen, False, gap) for some, gap in ((screens, " "), (screens, ""), (nameless, ""))]
    keys: Line = [(" ", "")]
    for name, entry in screens.items():
        keys.append((f"[{entry.key} {entry.short}]", "accent") if name == screen else (f" {entry.key} ", ""))
    return next((tabs for tabs in forms if width_of(tabs) <= width), keys)


def tab_at(session: Session, screen: str, column: int, width: int) -> str | None:
    """Returns the screen whose tab is at a column of the second row."""
    text = text_of(heading(session, screen, width)[1:])
    for name, entry in screens_of(session.current).items():
        for words in (f"{entry.key} {entry.title}", f"{entry.key} {entry.short}", f" {entry.key} "):
            begin = text.find(words)
            # The cell of a bracket on both sides of a title.
            margin = int(not words.startswith(" "))
            if 0 <= begin - margin <= column < begin + len(words) + margin:
                return name
    return None


def _shorten(name: str, room: int) -> str:
    return name if len(name) <= room else name[: room - 3] + "..."


def _name_and_facts(
    name: str, facts: list[str], room: int, first: list[str], least: int = _LEAST_NAME
) -> tuple[str, Line]:
    """Returns a file's name and the facts behind it. The facts have their room first, except for the first
    letters of the name; the name gets what they leave. first: those for which the name is truncated. least:
    cells of the name.
    """
    short_name = _shorten(name, max(room - sum(len(fact) + 3 for fact in first), least))
    line = _fitting_facts(facts, room - len(short_name))
    return _shorten(name, max(room - width_of(line), least)), line


def _fitting_facts(facts: list[str], room: int) -> Line:
    """Returns as many complete facts as there is room for: half a word says nothing."""
    line: Line = []
    for fact in facts:
        room -= len(fact) + 3
        if room < 0:
            break
        line.append((f"   {fact}", ""))
    return line


def _step_line(session: Session, short: bool = False, with_model: bool = True, against: bool = True) -> Line:
    """Returns the step time, which is always on the screen; after a change also the difference to the
    previous one.

    short: the difference only as a share. with_model: whether it says that it is another model's. against:
    whether it says to which of several runs the difference is.
    """
    if not session.current.figures.has_step:
        return []
    line: Line = [("step ", ""), (session.step, "bright")]
    if session.current is not session.opened:
        is_other = session.current.shape.other_model != session.opened.shape.other_model
        # Measured runs and execution traces have no rows.
        anew = bool(session.current.model.rescaled) and not session.opened.model.rescaled
        alone = short or is_other or anew
        other_run = session.against_words() if against else ""
        difference_line = run_difference(session.opened.shape, session.current.shape, alone, other_run)
        # With another model it is neither a gain nor a loss: it is the step of something else.
        share = text_of([difference_line])
        other = share if not with_model else "other model" if short else f"{share}, other model"
        line += [("  ", ""), *([(other, "warn")] if is_other else difference_line)]
        if anew:
            line.append((" rescaled", "dim"))
    if session.error:
        line.append(("  change not run", "worse"))
    elif session.running:
        line.append(("  simulating", "warn"))
    return line


def difference(was: int, now: int, short: bool = False) -> Line:
    """Returns the difference between two step times, with its sign and as a share of the old one.

    short: only the share, where there is one.
    """
    if was == now:
        return [("no change", "dim")]
    role = judge_times(was, now)
    share = change_percent(was, now)
    if short and share:
        return [(share, role)]
    return [(signed_duration(now - was) + (f" ({share})" if share else ""), role)]


def run_difference(was: SteppedRun, now: SteppedRun, short: bool = False, against: str = "") -> Line:
    """Returns the difference between the steps of two runs; by their work where that decides which is faster.

    short: as in `difference`. against: which run the first one is, "" where there is only one that it can be.
    """
    behind: Line = [(f" vs {against}", "dim")] if against else []
    by_work = compare_by_work(was, now)
    if by_work is not None:
        share = text_of([difference(by_work.a_ns, by_work.same_work_ns, True)])
        work = "same work" if short else "for the same work"
        return [(f"{share} {'a token' if by_work.is_by_token else work}", judge(was, now)), *behind]
    line = difference(was.step_time_ns, now.step_time_ns, short)
    if is_other_work(was, now):
        # Neither a gain nor a loss.
        work = "other work" if short else "not the same work"
        return [(f"{text_of([[*line, *behind]])}, {work}", "warn")]
    if was.other_model != now.other_model:
        # The screens say so.
        line = [(text_of([line]), "warn")]
    return line if was.step_time_ns == now.step_time_ns else [*line, *behind]


def footer(hints: tuple[tuple[str, str], ...], width: int) -> Line:
    """Returns the last row: keys that do something here and now, as many as fit; help and quit always."""
    always: Line = [(" ? ", "key"), ("keys ", "dim"), (" q ", "key"), ("quit ", "dim")]
    room = width - sum(len(text) for text, _ in always)
    line: Line = []
    for keys, words in hints:
        if len(keys) + len(words) + 3 > room:
            break
        room -= len(keys) + len(words) + 3
        line += [(f" {keys} ", "key"), (f"{words} ", "dim")]
    return spread(line, always, width)

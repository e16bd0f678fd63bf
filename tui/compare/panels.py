"""Below the lanes: the accounts of both runs, and what differs most."""

from __future__ import annotations

from simcore.analysis.compare import Change
from simcore.units import column_unit, duration, signed
from tui.compare.model import MOVERS, CompareModel
from tui.frame import Glyphs, Line, middle_cut, rule, shortened, wrapped
from tui.panel_cursor import beside, box

# A notice may take two lines of a panel with so many rows.
_NOTICE_LINES, _TALL_PANEL = 2, 8
_GAINS = ("forward", "backward", "input grad", "weight grad", "optimizer", "recompute")


def panels(
    model: CompareModel, width: int, height: int, glyphs: Glyphs, found: bool, wide: bool
) -> list[Line]:
    """Both beside each other where they fit, else that with the focus. found: whether what takes long is."""
    if not wide:
        return _one(model, width, height, glyphs, found)
    left = width * 42 // 100
    rows = height - 2
    there, hidden = _accounts(model, left - 2, rows, 1)
    if hidden:
        there.insert(-1, [(f" {hidden} more that change less", "dim")])
    accounts = box(model.compared.accounts_title, "A   B   B - A", there, left, height, glyphs)
    table = _movers(model, width - left - 2, rows, found)
    focused = model.panel == MOVERS
    title = f"What differs most{_place(model, found)}"
    return beside(accounts, box(title, "Enter goes there", table, width - left, height, glyphs, focused))


def _one(model: CompareModel, width: int, height: int, glyphs: Glyphs, found: bool) -> list[Line]:
    if model.panel == MOVERS:
        table = _movers(model, width, height - 1, found)
        title = f"What differs most{_place(model, found)}, Enter goes there, Tab: accounts"
        return [rule(title, width, glyphs), *table]
    accounts, hidden = _accounts(model, width, height - 1, 0)
    more = f" ({hidden} more change less)" if hidden else ""
    return [rule(f"{model.compared.accounts_title}{more}, Tab: what differs", width, glyphs), *accounts]


def _place(model: CompareModel, found: bool) -> str:
    """`, 3 of 20`: which of the rows the cursor is on."""
    count = len(model.compared.rows) if found and model.panel == MOVERS else 0
    return f", {model.mover + 1} of {count}" if count else ""


def _accounts(model: CompareModel, width: int, rows: int, told: int) -> tuple[list[Line], int]:
    """The accounts that are there, those that change most where not all fit, the step below; how many
    are left out. told: rows that are kept free to say so.
    """
    steps = model.compared.steps
    unit_ns, unit = column_unit(max(steps))
    there = list(model.compared.accounts)
    hidden = 0
    if len(there) > rows - 1:
        kept = sorted(there, key=lambda one: -abs(one.ns))[: max(rows - 1 - told, 0)]
        hidden = len(there) - len(kept)
        there = [one for one in there if one in kept]
    most = max([abs(one.ns) for one in there] + [1])
    bar = max(width - 49, 0)
    lines: list[Line] = []
    for one in [*there, Change("step", *steps)]:
        name = f"{one.name}, {unit}" if one.name == "step" else one.name
        figures = f" {name:<17}{one.a_ns / unit_ns:>9.3f}{one.b_ns / unit_ns:>9.3f}"
        diff = f"{one.ns / unit_ns:>+10.3f} " if one.ns else f"{'=':>10} "
        role = "worse" if one.ns > 0 and one.name not in _GAINS else "better" if one.ns < 0 else ""
        length = round(bar * abs(one.ns) / most) if one.name != "step" else 0
        lines.append([(figures, ""), (diff, role), (("+" if one.ns > 0 else "-") * length, role)])
    return lines, hidden


def _movers(model: CompareModel, width: int, rows: int, found: bool) -> list[Line]:
    if not found:
        return [[(" comparing op by op", "dim")]]
    compared = model.compared
    same = wrapped(f"unchanged: {', '.join(compared.unchanged)}", width - 1) if compared.unchanged else []
    told = [line for words in compared.notices for line in _told(words, width - 1, rows)]
    notices = [*((words, "dim") for words in same), *((words, "warn") for words in told)]
    room = max(rows - len(notices), 1)
    first = max(0, min(model.mover - room + 1, len(compared.rows) - room))
    size = max(width - 42, 12)
    lines: list[Line] = []
    for index, one in list(enumerate(compared.rows))[first : first + room]:
        at = model.panel == MOVERS and index == model.mover
        # The micro-batch stands at the end.
        words = one.words if len(one.words) <= size else one.words.replace("micro-batch", "mb")
        words = middle_cut(words, size)
        figures = f"{duration(one.a_ns):>10}{duration(one.b_ns):>10}{signed(one.b_ns - one.a_ns):>11}"
        text = f"{'>' if at else ' '}{words:<{size}} {one.measure:<8}{figures}"
        lines.append([(text, "accent" if at else "")])
    if not compared.rows:
        lines.append([(" nothing differs", "dim")])
    return lines + [shortened([(f" {words}", role)], width) for words, role in notices]


def _told(words: str, width: int, rows: int) -> list[str]:
    """A notice on two lines where these are enough and the panel is tall, else on one that is cut."""
    lines = wrapped(words, width)
    return lines if len(lines) <= _NOTICE_LINES and rows >= _TALL_PANEL else [words]

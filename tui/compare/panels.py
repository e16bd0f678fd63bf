"""Below the lanes: the accounts of both runs, and what differs most."""

from __future__ import annotations

from simcore.analysis.compare import Change
from simcore.units import column_unit, duration
from tui.boxes import beside, box
from tui.compare.model import MOVERS, CompareModel
from tui.frame import Glyphs, Line, cells, rule

_GAINS = ("forward", "backward", "input grad", "weight grad", "optimizer", "recompute")


def panels(
    model: CompareModel, width: int, height: int, glyphs: Glyphs, found: bool, wide: bool
) -> list[Line]:
    """Both beside each other where they fit, else that with the focus. found: whether what takes long is."""
    if not wide:
        return _one(model, width, height, glyphs, found)
    left = width * 42 // 100
    rows = height - 2
    accounts = box(
        model.compared.accounts_title, "A   B   B - A", _accounts(model, left - 2, rows), left, height, glyphs
    )
    table = _movers(model, width - left - 2, rows, found)
    focused = model.panel == MOVERS
    title = "What differs most"
    return beside(accounts, box(title, "Enter goes there", table, width - left, height, glyphs, focused))


def _one(model: CompareModel, width: int, height: int, glyphs: Glyphs, found: bool) -> list[Line]:
    if model.panel == MOVERS:
        table = _movers(model, width, height - 1, found)
        return [rule("What differs most, Enter goes there, Tab: accounts", width, glyphs), *table]
    accounts = _accounts(model, width, height - 1)
    return [rule(f"{model.compared.accounts_title}, Tab: what differs most", width, glyphs), *accounts]


def _accounts(model: CompareModel, width: int, rows: int) -> list[Line]:
    """The accounts that are there, those that change most first where not all fit; the step below."""
    steps = model.compared.steps
    unit_ns, unit = column_unit(max(steps))
    there = list(model.compared.accounts)
    if len(there) > rows - 1:
        kept = sorted(there, key=lambda one: -abs(one.ns))[: max(rows - 1, 0)]
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
    return lines


def _movers(model: CompareModel, width: int, rows: int, found: bool) -> list[Line]:
    if not found:
        return [[(" comparing op by op", "dim")]]
    compared = model.compared
    notices = [
        *([(f"unchanged: {', '.join(compared.unchanged)}", "dim")] if compared.unchanged else []),
        *((words, "warn") for words in compared.notices),
    ]
    room = max(rows - len(notices), 1)
    first = max(0, min(model.mover - room + 1, len(compared.rows) - room))
    size = max(width - 42, 12)
    lines: list[Line] = []
    for index, one in list(enumerate(compared.rows))[first : first + room]:
        at = model.panel == MOVERS and index == model.mover
        words = cells(one.words, size)
        figures = f"{duration(one.a_ns):>10}{duration(one.b_ns):>10}{duration(one.b_ns - one.a_ns):>11}"
        text = f"{'>' if at else ' '}{words:<{size}} {one.measure:<8}{figures}"
        lines.append([(text, "accent" if at else "")])
    if not compared.rows:
        lines.append([(" nothing differs", "dim")])
    return lines + [[(f" {words}"[:width], role)] for words, role in notices]

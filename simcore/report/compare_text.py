"""Two runs beside each other on one screen of text."""

from __future__ import annotations

import textwrap
from itertools import zip_longest

from simcore.analysis.compare import Change, Comparison, Mover
from simcore.analysis.critical_path import NO_LAYER
from simcore.diagnostics import printable
from simcore.parameters import flag_of
from simcore.report.changes import change_figures, difference_of
from simcore.report.table import Column, table
from simcore.units import column_unit, digits, duration, number, plural, signed

_WIDTH = 110
# What a person reads at once; --all has everything.
_LINES = 40
_LAYERS = 3
_PATH = 5
_LEAST_ACCOUNTS = 4
_LEAST_MOVERS, _MOST_MOVERS = 3, 7
_NO_LIMIT = 1 << 30
_NAME_CELLS = 28
# Of what B - A consists of, the parts below the largest over this are not worth their figure.
_SMALL_PART = 1000


def compare_text(comparison: Comparison, everything: bool = False) -> str:
    """The page: step times, why they differ, accounts, critical paths, layers, movers, what is unchanged.

    It has at most 40 lines: accounts that change least give way first. everything: all that there is.
    """
    head, rest = _head(comparison), _rest(comparison)
    paths = _paths(comparison, _NO_LIMIT if everything else _PATH)
    layers = _layers(comparison, _NO_LIMIT if everything else _LAYERS)
    if everything:
        found = [
            head,
            _accounts(comparison, _NO_LIMIT),
            *paths,
            *layers,
            *_movers(comparison, _NO_LIMIT),
            rest,
        ]
        return "\n".join(found)
    # Accounts and ops get what the others leave of a screen: titles, headings and blank lines count too.
    left = _LINES + 1 - sum(part.count("\n") + 1 for part in (head, *paths, *layers, rest))
    least = _LEAST_MOVERS + 3 if comparison.movers else 0
    accounts = _accounts(comparison, max(left - least - 4, _LEAST_ACCOUNTS))
    left -= accounts.count("\n") + 1 + 3
    movers = _movers(comparison, max(_LEAST_MOVERS, min(left, _MOST_MOVERS)))
    return "\n".join([head, accounts, *paths, *layers, *movers, rest])


def side_words(comparison: Comparison, side: int) -> str:
    """What is special about A (0) or B (1): its file where they differ, its changed parameters."""
    results = (comparison.a, comparison.b)[side]
    words = [printable(results.path)] if comparison.other_file else []
    for field, values in comparison.changed.items():
        value = values[side]
        option = flag_of(field).option
        if isinstance(value, bool):
            words.append(option if value else f"no {option}")
        elif isinstance(value, (list, tuple)):
            words += [f"{option} {printable(str(one), 40)}" for one in value] or [f"no {option}"]
        elif value is None:
            words.append(f"no {option}")
        else:
            text = number(value) if isinstance(value, (int, float)) else printable(str(value), 40)
            words.append(f"{option} {text}")
    each = [one.simulation.parameters.no_fold for one in (comparison.a, comparison.b)]
    if each[0] != each[1]:
        words.append("--no-fold" if each[side] else "equal ranks folded")
    return ", ".join(words) or "the same parameters"


def difference_words(comparison: Comparison) -> str:
    """`-4.075 s (-27.6 %)`: the step of B against that of A."""
    return difference_of(comparison.a.step_time_ns, comparison.b.step_time_ns)


def matched_words(comparison: Comparison) -> str:
    """How many ops of the two were matched."""
    matched = comparison.matched
    if matched.whole:
        return f"all {digits(matched.ops)} ops of {digits(matched.ranks)} ranks matched"
    return (
        f"{digits(matched.ops)} ops of {digits(matched.ranks)} ranks matched, "
        f"of {digits(matched.a_ops)} in A and {digits(matched.b_ops)} in B"
    )


def _head(comparison: Comparison) -> str:
    lines = []
    if not comparison.other_file:
        lines.append(f"Compare  {printable(comparison.a.path)}")
    for side, results in enumerate((comparison.a, comparison.b)):
        text = f"{'AB'[side]}  {duration(results.step_time_ns):<11} {side_words(comparison, side)}"
        lines.append(text if len(text) <= _WIDTH else text[: _WIDTH - 3] + "...")
        figures = results.model_figures
        if figures is not None:
            # Imported here: files have none.
            from simcore.report.model_text import memory_words, throughput_facts

            lines.append(f"     {', '.join(throughput_facts(figures))}; {memory_words(figures)}")
    lines.append(f"B - A  {difference_words(comparison)}; {matched_words(comparison)}")
    lines += textwrap.wrap(f"Why: {comparison.why}.", _WIDTH, subsequent_indent="     ")
    lines += textwrap.wrap(_parts(comparison), _WIDTH, subsequent_indent="     ")
    return "\n".join(lines) + "\n"


def _parts(comparison: Comparison) -> str:
    """What B - A consists of where `Why` does not name all of it; small parts only by how many there are."""
    parts, leading = comparison.parts, comparison.leading
    if leading is None or len(parts) == len(leading.said):
        return ""
    shown = [one for one in parts if abs(one.ns) * _SMALL_PART >= abs(parts[0].ns)]
    words = [one.words for one in shown]
    left = len(parts) - len(shown)
    words += [f"{left} below 0.1 % of the largest"] if left else []
    return f"     B - A along the critical paths: {', '.join(words)}."


def _accounts(comparison: Comparison, most: int) -> str:
    """The accounts that there are, those that change most where these are more than `most`, and the step."""
    steps = (comparison.a.step_time_ns, comparison.b.step_time_ns)
    unit_ns, unit = column_unit(max(steps))
    step = Change("step", *steps)
    there = [
        (mean, worst)
        for mean, worst in zip(comparison.accounts, comparison.worst_accounts, strict=True)
        if any((mean.a_ns, mean.b_ns, worst.a_ns, worst.b_ns))
    ]
    by_change = sorted(there, key=lambda pair: -max(abs(one.ns) for one in pair))
    pairs = [pair for pair in there if pair in by_change[:most]]
    left = len(there) - len(pairs)
    columns = [Column(f"account, {unit}", left=True)]
    columns += [Column(name) for name in ("A", "B", "B - A") * 2]
    rows = [
        [mean.name, *change_figures(mean, unit_ns), *change_figures(worst, unit_ns)]
        for mean, worst in [*pairs, (step, step)]
    ]
    where = _where(comparison, comparison.worst.first, comparison.worst.ranks)
    more = f" ({left} that change less: --all)" if left else ""
    head = f"Accounts: the mean of all ranks, then {where}, where most time is lost{more}"
    return "\n".join([head, *table(columns, rows), ""])


def _paths(comparison: Comparison, most: int) -> list[str]:
    """What the two critical paths are made of: by kind and, where that moves more, by stage or by layer."""
    paths = comparison.paths
    if not any(one.ns for changes in paths for one in changes):
        return []

    def moved(changes: list[Change]) -> int:
        return sum(abs(one.ns) for one in changes[:most])

    by_stage = moved(paths.stage) > moved(paths.layer)
    others = [
        one._replace(name=f"stage {one.name}" if by_stage else printable(one.name, _NAME_CELLS) or NO_LAYER)
        for one in (paths.stage if by_stage else paths.layer)
    ]
    unit_ns, unit = column_unit(max(comparison.a.step_time_ns, comparison.b.step_time_ns))
    columns = [Column(f"kind, {unit}", left=True), *map(Column, ("A", "B", "B - A"))]
    columns += [Column("stage" if by_stage else "layer", left=True), *map(Column, ("A", "B", "B - A"))]
    rows = []
    for kind, other in zip_longest(paths.kind[:most], others[:most]):
        halves = [[one.name, *change_figures(one, unit_ns)] if one else [""] * 4 for one in (kind, other)]
        rows.append([*halves[0], *halves[1]])
    more = " (--all has all)" if max(len(paths.kind), len(others)) > len(rows) else ""
    return ["\n".join([f"Critical paths, what changes most{more}", *table(columns, rows), ""])]


def _layers(comparison: Comparison, most: int) -> list[str]:
    moved = [one for one in comparison.layers if one.moved_ns]
    if not moved:
        return []
    shown = moved[:most]
    unit_ns, unit = column_unit(
        max(ns for one in shown for change in (one.compute, one.exposed) for ns in (change.a_ns, change.b_ns))
    )
    columns = [Column(f"layer, {unit}", left=True)]
    columns += [Column(name) for name in ("compute A", "B", "B - A", "exposed A", "B", "B - A")]
    rows = [
        [
            printable(one.name, _NAME_CELLS),
            *change_figures(one.compute, unit_ns),
            *change_figures(one.exposed, unit_ns),
        ]
        for one in shown
    ]
    left = len(moved) - len(shown)
    more = f" ({left} more: --all)" if left else ""
    return ["\n".join([f"Layers that change most{more}", *table(columns, rows), ""])]


def _movers(comparison: Comparison, most: int) -> list[str]:
    """The ops that differ most: chosen from each measure in turn until there are `most`, and listed in the
    order of the comparison.
    """
    by_measure: dict[str, list[Mover]] = {}
    for mover in comparison.movers:
        by_measure.setdefault(mover.measure, []).append(mover)
    shown: list[Mover] = []
    for place in range(max(map(len, by_measure.values()), default=0)):
        shown += [movers[place] for movers in by_measure.values() if len(movers) > place]
    shown = [one for one in comparison.movers if one in shown[:most]]
    if not shown:
        return []
    columns = [Column("op", left=True), Column("what", left=True), Column("A"), Column("B"), Column("B - A")]
    rows = [
        [
            op_words(comparison, one),
            one.measure,
            duration(one.a_ns),
            duration(one.b_ns),
            signed(one.b_ns - one.a_ns),
        ]
        for one in shown
    ]
    return ["\n".join(["Ops that differ most", *table(columns, rows), ""])]


def op_words(comparison: Comparison, mover: Mover) -> str:
    """`stage 15, mlp_row wg, micro-batch 0`, and the collective where it is one."""
    where = _where(comparison, mover.place, mover.ranks)
    what = [f"{printable(mover.name, _NAME_CELLS)} {mover.phase}" if mover.name else mover.phase]
    what += [] if mover.kind == "compute" else [mover.kind]
    what += [f"micro-batch {mover.microbatch}"] if mover.microbatch >= 0 else []
    return ", ".join([where, " ".join(what[:2]), *what[2:]] if mover.kind != "compute" else [where, *what])


def _where(comparison: Comparison, place: tuple[int, int, int], ranks: int) -> str:
    """`stage 3`, or the lowest rank of a pair of classes where that is less than a stage."""
    stage, dp, tp = place
    layout = comparison.a.simulation.layout
    if layout.pp > 1 and ranks == layout.tp * layout.dp:
        return f"stage {stage}"
    more = f" and {ranks - 1} more" if ranks > 1 else ""
    return f"rank {layout.rank(tp, dp, stage)}{more}"


def _rest(comparison: Comparison) -> str:
    unchanged = f"Unchanged: {', '.join(comparison.unchanged) or 'nothing'}"
    lines = textwrap.wrap(unchanged, _WIDTH, subsequent_indent="  ")
    if comparison.cost is not None:
        lines.append(cost_words(comparison))
    return "\n".join(lines) + "\n"


def cost_words(comparison: Comparison) -> str:
    """What a stage keeps in memory at most, and where that differs most; "" where it does nowhere."""
    cost = comparison.cost
    if cost is None:
        return ""
    before = "as in A" if cost.a_peak == cost.b_peak else f"in A {cost.a_peak}"
    peak = f"Cost: at most {plural(cost.b_peak, 'micro-batch')} in memory, {before}"
    if cost.a == cost.b or (cost.a, cost.b) == (cost.a_peak, cost.b_peak):
        return peak
    return f"{peak}; stage {cost.stage} keeps {cost.b}, in A {cost.a}"

"""A change of the what-if table in words, and what it does to the step time."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from simcore.kernel_names import display_name
from simcore.trace.figures import judge_times
from simcore.trace.findings import FOR_OVERLAP, format_dimension_change
from simcore.units import change_percent, duration
from tui.frame import cells

if TYPE_CHECKING:
    from simcore.cluster import Dimension
    from simcore.trace.findings import WhatIf

# The condition of `better10_ns` for rows that are no changes.
LESS_TIME = "10 % less time"


def describe_change(knob: WhatIf, dims: Sequence[Dimension] = (), with_time: bool = False) -> str:
    """Returns a change in words. A schedule is known by its name: the words of the flags would leave no room
    for the figures.

    with_time: for rows that are no changes, also that it takes 10 % less time. dims: of the cluster, which
    are named as on screen 5: `dim 1 (dp, pp) bandwidth 50 -> 55.6 GB/s`.
    """
    dimension = format_dimension_change(knob.name, dims)
    if dimension is not None:
        return f"{dimension[0]} {dimension[1]}"
    # The text behind the flags of a change, `(does not fit)`, is no kernel's arguments.
    name = knob.knob if knob.list == "change" else display_name(knob.knob)
    change = name.replace("--schedule ", "").replace(" --", ", ").removeprefix("--")
    if FOR_OVERLAP in knob.meaning and (flags_match := _BEFORE_FLAGS.fullmatch(change)):
        # Not in front: there the schedule would read as what gains.
        change = f"{flags_match[2]} under {flags_match[1]}{flags_match[3] or ''}"
    if knob.fixes:
        # The first row is no gain: its prefix says that it is something else.
        return f"fix: {change}"
    return f"{change}, {LESS_TIME}" if with_time and knob.free_ns is not None else change


# The number of micro-batches from which on a schedule has its full gain, in fewer letters.
_FULL_GAIN = re.compile(r"full gain from (\d+) micro-batches on, here (\d+)")
# The groups that cross a dimension.
_GROUPS = re.compile(r"^(dim \d+) \([^)]*\)")
# A schedule in front of the flags that require it.
_BEFORE_FLAGS = re.compile(r"([^ ,]+), (.*?)( \(.*)?")
# Twice as many micro-batches: what the row is of comes first, since its gain is not the step's. Its figure is
# for equal work: that comes before it, and the step, which is dropped last. In short forms, `or twice the
# batch` alone would not explain why a larger gain is in the second row.
_TWICE = re.compile(r"microbatches (\d+) \(twice the batch, [^)]*\)")
_TWICE_IN_SHORT = (
    "if the batch may double (microbatches {0}, {1}): same work in",
    "if the batch may double ({0} mb, {1}): same work in",
    "if batch may double ({0} mb, {1}): same work in",
    "or 2x batch ({0} mb, {1}): same work in",
    "or 2x batch ({0} mb): same work in",
    "2x batch: same work in",
)
# The notes on a change, and behind them its flags, in fewer letters where there is no room for them: a flag
# keeps its name as long as possible, and then words of its name.
_SHORT = {
    "embedding on stage 0, loss on the last": "embedding first, loss last",
    "stage-layout": "layout", "virtual-stages": "virtual",
    "without-lines": "without",
    "overlap-param-gather": "param-overlap", "overlap-grad-reduce": "grad-overlap",
}  # fmt: skip


# Beginnings of brackets whose content is not in the meaning.
_KEPT_BRACKETS = ("does not fit", "fits", "full gain", "drops", "gathers")


def change_name(knob: WhatIf, dims: Sequence[Dimension], room: int, with_time: bool = False) -> str:
    """Returns `describe_change` in `room` cells: without what its meaning or the unit says before it is
    truncated.
    """
    change = describe_change(knob, dims, with_time)
    change = _GROUPS.sub(r"\1", change) if len(change) > room else change
    step = duration(knob.better10_ns)
    forms = [_TWICE.sub(form.format(r"\1", step), change) for form in _TWICE_IN_SHORT]
    change = next((form for form in forms if len(form) <= room), forms[-1])
    if len(change) > room:
        # All of it or nothing: two neighbouring rows must not say one thing in two ways.
        short = _FULL_GAIN.sub(r"full gain: \1+ mb, here \2", change)
        change = short if len(short) <= room else _FULL_GAIN.sub(r"full gain: \1+ mb", change)
    # Its memory has a column of its own.
    change = re.sub(r"\(fits: [^)]*\)", "(fits)", change)
    for flag, word in _SHORT.items():
        # Changes differ at their ends.
        change = change.replace(flag, word) if len(change) > room else change
    if len(change) > room and " -> " in change:
        change = change.replace(" bandwidth ", " ").replace(" latency ", " ")
    front, brackets, inside = change.rpartition(" (")
    if len(change) > room and brackets and change.endswith(")") and knob.meaning:
        change = change if knob.fixes or inside.startswith(_KEPT_BRACKETS) else front
    return cells(change, room)


def flags_in(sides: Sequence[str], room: int) -> list[str]:
    """Returns the flags of runs side by side in `room` cells each, all shortened in the same way: a schedule
    is known by its name, and then as in `change_name`. The screen truncates what is still too long.
    """
    forms = [list(sides), [side.replace("--schedule ", "") for side in sides]]
    for flag, word in _SHORT.items():
        forms.append([side.replace(f"--{flag}", word) for side in forms[-1]])
    return next((form for form in forms if max(map(len, form)) <= room), forms[-1])


# Cells of what a rank of the fullest stage needs with a change, with a blank in front; the least cells of a
# row that has it: below, names of changes would be cut.
_MEMORY, _LEAST_WITH_MEMORY = 8, 68


def memory_cells(knobs: Sequence[WhatIf], width: int) -> int:
    """Returns the cells of the column of memory in rows of `width` cells: none where it is known of no
    change.
    """
    has_room = width >= _LEAST_WITH_MEMORY
    return _MEMORY if has_room and any(knob.memory_bytes is not None for knob in knobs) else 0


def memory_text(knob: WhatIf, size: int) -> str:
    """Returns what a rank of the fullest stage needs with a change, about, in `size` cells."""
    if knob.memory_bytes is None or not size:
        return " " * size
    gigabytes = knob.memory_bytes / 1e9
    return f"{gigabytes:.{int(gigabytes < 1000)}f} GB".rjust(size)


# Replaces both figures of a change whose effect cannot be known (`WhatIf.unknown`).
UNKNOWN = "unknown"


# Cells of a share without its unit.
SHARE_CELLS = 9


def name_and_share(
    was: int, knob: WhatIf, dims: Sequence[Dimension], size: int, with_time: bool = False
) -> tuple[str, str, str]:
    """Returns a change in words, in `size` cells and one behind them, some of which its share takes where it
    is in words, too; and its effect on the step time, with its role, as `change_share` returns both; with
    more micro-batches for equal work.
    """
    if not knob.fixes:
        return (f"{change_name(knob, dims, size, with_time):<{size + 1}}", *change_share(was, knob.gain_ns))
    share = "not a gain"
    room = size + SHARE_CELLS - len(share)
    return f"{change_name(knob, dims, room, with_time):<{room + 1}}", share, "warn"


def change_share(was: int, now: int) -> tuple[str, str]:
    """Returns a change of the step time in per cent of it, in 9 cells, and its role."""
    if was == now or not was:
        return f"{'=':>{SHARE_CELLS}}", "dim"
    return f"{change_percent(was, now, '%'):>{SHARE_CELLS}}", judge_times(was, now)

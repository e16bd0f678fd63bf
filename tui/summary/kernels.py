"""The kernels of a profile as bars, by family: each family, below it its kernels that take most."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any

from simcore.kernel_names import distinct_names, without_library
from simcore.records import NamedTuple
from simcore.replay.kernels import KernelFamily, kernel_families
from simcore.replay.operations import Operations
from simcore.trace.findings import TrackInterval
from simcore.units import duration, percent
from tui.frame import Glyphs, Line, common_words, cut_apart, largest, middle_cut, share_bar

if TYPE_CHECKING:
    from simcore.runs.measured import RecordedRun
    from simcore.trace.layers import LayerUse

# Of what a kernel does: the role of its bar, where it is one phase alone.
_ROLES = {"forward": "fwd", "backward": "bwd", "optimizer": "opt"}
_SHARE, _COUNT, _MEAN, _GAP = 7, 7, 10, 1
# The cells of a bar: the least, the most; the least of a name; how many times as many a name has as a bar.
_LEAST_BAR, _MOST_BAR, _LEAST_NAME, _NAMES = 4, 24, 16, 3
# The least cells of what the names of a family begin with.
_LEAST_PREFIX = 8
# A kernel stands two cells to the right of its family.
_INDENT = "  "


class KernelRow(NamedTuple):
    """A family, or a kernel of it; a family of one kernel is that kernel."""

    family: KernelFamily
    kernel: LayerUse | None
    is_inside: bool
    """Whether its family has a row of its own, above it."""

    @property
    def cost_ns(self) -> int:
        """What it takes of the step, ns."""
        return self.family.cost_ns if self.kernel is None else self.kernel.cost_ns

    @property
    def calls(self) -> int:
        """How many calls there are."""
        return self.family.calls if self.kernel is None else self.kernel.runs.count or 0

    @property
    def call_ns(self) -> float:
        """How long a call takes on average, ns."""
        return self.family.call_ns if self.kernel is None else self.kernel.runs.run_ns or 0.0

    @property
    def role(self) -> str:
        """The role of its bar."""
        kernels = self.family.kernels if self.kernel is None else (self.kernel,)
        kinds = {kind for kernel in kernels for kind in kernel.kinds}
        if self.family.kernels[0].runs.work == "communication":
            return "copy" if "copy" in kinds else "comm"
        return _ROLES.get(next(iter(kinds)), "kernel") if len(kinds) == 1 else "kernel"


class Kernels:
    """The kernels of a run, as the panel next to the bars of the ranks."""

    moves = "jk"
    sideways_text = "left and right move in a map of ranks: here each kernel has a row"
    title, unit = "Kernels", "% of step"

    def __init__(self, run: RecordedRun, next_panel: Callable[[], Any]) -> None:
        """Makes the panel. next_panel: returns the one that `i` leads to."""
        self._run = run
        self.next = next_panel
        self.next_label = "waits, replay" if len(run.tracks) > 1 else "replay"
        self._names: dict[int, list[str]] = {}

    is_empty = False
    # Its rows are sorted by what they take.
    outlier: tuple[int, int] | None = None

    def visible_count(self, rows: int) -> int:
        """Returns how many of its rows `lines` shows in this many lines."""
        return min(max(rows - 1, 0), len(self.rows))

    @property
    def size(self) -> tuple[int, int]:
        return len(self.rows), 1

    @cached_property
    def _operations(self) -> Operations:
        return Operations(self._run)

    @cached_property
    def rows(self) -> list[KernelRow]:
        """The families, each with its kernels below it."""
        rows = []
        for family in kernel_families(self._operations):
            if len(family.kernels) > 1:
                rows.append(KernelRow(family, None, False))
            rows += [KernelRow(family, kernel, len(family.kernels) > 1) for kernel in family.kernels]
        return rows

    def find_interval(self, at: tuple[int, int]) -> TrackInterval:
        """Returns the longest call of a kernel, of a family that of the kernel which takes most."""
        row = self.rows[at[0]]
        rank, start, end, lane = self._operations.find_longest_run(row.kernel or row.family.kernels[0])
        return TrackInterval(rank, start, max(end, start + 1), lane)

    def lines(self, width: int, rows: int, at: tuple[int, int], glyphs: Glyphs, focused: bool) -> list[Line]:
        """Returns the families, then the kernels that take most, each below its family; and the cursor's
        row.
        """
        cursor = at[0] if focused else -1
        weights = [
            (int(index == cursor), int(not row.is_inside), row.cost_ns) for index, row in enumerate(self.rows)
        ]
        visible = largest(weights, rows - 1)
        step_ns, most_ns = self._run.step_time_ns, max((row.cost_ns for row in self.rows), default=0)
        room = width - 1 - _SHARE - _COUNT - _MEAN - _GAP
        bar = min(max(room // (_NAMES + 1), _LEAST_BAR), _MOST_BAR, room - _LEAST_NAME)
        bar = bar if bar >= _LEAST_BAR else 0
        size = max(room - bar, _LEAST_NAME)
        names = self._names.get(size) or self._names.setdefault(size, _row_names(self.rows, size))
        several = len(self._run.tracks) > 1
        share, mean = "max %" if several else "%", "mean+wait" if self._run.waiting else "mean"
        head = f" {'by family':<{size}} {'':{bar}}{share:>{_SHARE}}{'count':>{_COUNT}}{mean:>{_MEAN}}"
        lines: list[Line] = [[(head, "dim")]]
        for index in visible:
            row = self.rows[index]
            role = "accent" if index == cursor else "" if row.is_inside else "bright"
            name = f"{'>' if index == cursor else ' '}{names[index]:<{size}} "
            figures = (
                f"{percent(row.cost_ns, step_ns):>{_SHARE}}{row.calls:>{_COUNT}}"
                f"{duration(round(row.call_ns)):>{_MEAN}}"
            )
            filled = share_bar(row.cost_ns, most_ns, bar, glyphs)
            lines.append([(name, role), (f"{filled:<{bar}}", row.role), (figures, role)])
        return lines


def _row_names(rows: list[KernelRow], size: int) -> list[str]:
    """Returns the names of rows in `size` cells: what all kernels of a family begin with stands once, in the
    row of the family.
    """
    display = without_library(distinct_names(row.kernel.name for row in rows if row.kernel is not None))
    alone = {
        row.kernel.name: display[row.kernel.name]
        for row in rows
        if row.kernel is not None and not row.is_inside
    }
    alone, inside, names = cut_apart(alone, size), dict[str, str](), list[str]()
    for row in rows:
        if row.kernel is None:
            own = {kernel.name: display[kernel.name] for kernel in row.family.kernels}
            prefix, room = common_words(list(own.values())), size - len(row.family.name) - 1
            if len(prefix) > room and all(len(text) <= size - len(_INDENT) for text in own.values()):
                prefix = ""
            own = {name: text.removeprefix(prefix) for name, text in own.items()}
            inside = cut_apart(own, size - len(_INDENT))
            names.append(f"{row.family.name} {middle_cut(prefix, room) if room >= _LEAST_PREFIX else ''}")
        elif row.is_inside:
            names.append(f"{_INDENT}{inside[row.kernel.name]}")
        else:
            names.append(alone[row.kernel.name])
    return names

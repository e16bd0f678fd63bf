"""What the form has of a run, by what is open: its fields, and how the effect of a draft is shown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from simcore.cluster import Dimension
from simcore.diagnostics import UsageError
from simcore.parameters import Given
from simcore.setup import Setup
from simcore.trace.track import ranks_of
from simcore.units import duration, plural, signed
from tui.frame import Glyphs, Line, largest
from tui.parameters.basis import Basis, basis_of
from tui.parameters.changes import ChangeTimes
from tui.parameters.effect import change_lines, compact_lines, effect_lines, figure_lines, step_line
from tui.parameters.fields import FormField, Values, dimension_place, fields_for
from tui.session import Run


class FormSource:
    """Of a workload, or of a trace. A basis: what its fields know, the parameters with what they stand on."""

    def basis(self, run: Any) -> Any:
        """Of a run that is there."""
        raise NotImplementedError

    def near(self, setup: Any, basis: Any) -> Any:
        """Of a draft that has not been run; basis: one that is near. Never raises."""
        raise NotImplementedError

    def fields(self, basis: Any) -> list[FormField]:
        """The fields, in the order of the form. Raises `UsageError` where a draft has none."""
        raise NotImplementedError

    def title(self, group: str, basis: Any, width: int) -> str:
        """What stands over the fields of a group: its name, if nothing else is said."""
        return group

    def balanced(self, run: Any, draft: Given) -> Values:
        """What makes all stages compute equally long. Raises `UsageError`."""
        raise NotImplementedError

    def effect(
        self,
        opened: Any,
        now: Any,
        state: list[Line],
        changes: Sequence[ChangeTimes],
        progress: str,
        size: tuple[int, int],
        glyphs: Glyphs,
    ) -> list[Line]:
        """The panel beside the form; see `tui.parameters.effect`. Of traces: the step time, each change
        alone, and when each rank ends.
        """
        width, height = size
        lines = [*figure_lines(opened, now, glyphs, width), *state]
        alone = change_lines(changes, progress, opened, width - 1)
        lines += [[], *alone] if alone else []
        return [*lines, [], *end_lines(opened, now, height - len(lines) - 1)]

    def compact(
        self,
        opened: Any,
        now: Any,
        state: list[Line],
        changes: Sequence[ChangeTimes],
        progress: str,
        size: tuple[int, int],
    ) -> list[Line]:
        """The same in the few rows under the form of a small terminal."""
        width, height = size
        lines = [step_line(opened, now), *state]
        alone = change_lines(changes, progress, opened, width)
        lines += alone[: max(height - len(lines) - 2, 0)]
        return [*lines, *end_lines(opened, now, height - len(lines))]


class WorkloadForm(FormSource):
    """Every parameter of a simulation."""

    basis = staticmethod(lambda run: run.simulation)
    fields = staticmethod(fields_for)
    effect = staticmethod(effect_lines)
    compact = staticmethod(compact_lines)

    def near(self, setup: Setup, basis: Basis) -> Basis:
        return basis_of(setup, basis)

    def title(self, group: str, basis: Any, width: int) -> str:
        """The cluster's says what its dimensions are."""
        return _cluster_title(basis.cluster.dims, width) if group == "cluster" else group

    def balanced(self, run: Run, draft: Given) -> Values:
        """A simulated stage computes what its rows say."""
        raise UsageError("balancing is of measured stages; --stage-layout says which rows a stage runs")


_ENDS: Line = [(f"{'rank':>6}{'end, opened':>13}{'end, now':>11}{'difference':>12}", "dim")]


def end_lines(opened: Run, now: Run, rows: int) -> list[Line]:
    """When each rank ends, in the rows that there are: without room for all of them those whose end moves
    most, of equal ones those that end last.
    """
    ends = list(zip(opened.figures.ends, now.figures.ends, strict=True))
    if rows < 2 or not ends:
        return []
    # The last row says how many there are more.
    rows -= rows - 1 < len(ends) and rows > 2
    shown = largest([(abs(new - old), new) for old, new in ends], rows - 1)
    lines = [_ENDS]
    for number in shown:
        old, new = ends[number]
        words = f"{ranks_of(opened.tracks, number).first:>6}{duration(old):>13}{duration(new):>11}"
        lines.append([(words, ""), (f"{'=' if new == old else signed(new - old):>12}", "")])
    left = len(ends) - len(shown)
    return [*lines, [(f"  and {plural(left, 'more rank')}", "dim")]] if left else lines


def _cluster_title(dims: Sequence[Dimension], width: int) -> str:
    """The title of the cluster's group: what its dimensions are, and their sizes where there is room."""
    places = [f"dim {index} {dimension_place(index, dims)}".rstrip() for index in range(len(dims))]
    shapes = [f"{dim.kind} {dim.size}" for dim in dims]
    sized = ", ".join(f"{dimension}: {shape}" for dimension, shape in zip(places, shapes, strict=True))
    named = ", ".join(dimension for index, dimension in enumerate(places) if dimension != f"dim {index}")
    # A rule has two cells before its title, a space on both sides of it, and a cell behind.
    return next(
        (
            f"cluster: {dimensions}"
            for dimensions in (sized, named)
            if dimensions and len(dimensions) <= width - 14
        ),
        "cluster",
    )

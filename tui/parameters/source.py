"""What the form needs of a run, for each kind of input: its fields, and how the effect of a draft
is shown.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from simcore.cluster import Dimension, name_groups
from simcore.diagnostics import UsageError
from simcore.parameters import RunInput
from simcore.setup import Setup
from simcore.trace.track import ranks_of
from simcore.units import duration, plural, signed_duration
from tui.frame import Glyphs, Line, largest
from tui.parameters.changes import ChangeTimes
from tui.parameters.effect import change_lines, compact_lines, effect_lines, figure_lines, step_line
from tui.parameters.fields import FormField, Values, dimension_role, fields_for
from tui.parameters.form_context import FormContext, make_draft_context
from tui.session import Run


class FormSource(ABC):
    """The form of a kind of input. A context is what its fields need: the parameters with their run
    or draft.
    """

    @abstractmethod
    def make_context(self, run: Any) -> Any:
        """Returns the context of a finished run."""

    @abstractmethod
    def make_draft_context(self, setup: Any, context: Any) -> Any:
        """Returns the context of a draft that has not been run; context: one of the same input.
        Never raises.
        """

    @abstractmethod
    def fields(self, context: Any) -> list[FormField]:
        """Returns the fields, in the order of the form. Raises `UsageError` where a draft has none."""

    def title(self, group: str, context: Any, width: int) -> str:
        """Returns the title of the fields of a group: its name, unless a subclass knows more."""
        return group

    @abstractmethod
    def balance_stages(self, run: Any, draft: RunInput) -> Values:
        """Returns the parameters with which all stages compute equally long. Raises `UsageError`."""

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
        """Returns the panel next to the form; see `tui.parameters.effect`. For traces: the step time, each
        change alone, and when each rank ends.
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
        """Returns the same in the few rows under the form of a small terminal."""
        width, height = size
        lines = [step_line(opened, now), *state]
        alone = change_lines(changes, progress, opened, width)
        lines += alone[: max(height - len(lines) - 2, 0)]
        return [*lines, *end_lines(opened, now, height - len(lines))]


class WorkloadForm(FormSource):
    """Every parameter of a simulation."""

    make_context = staticmethod(lambda run: run.simulation)
    fields = staticmethod(fields_for)
    effect = staticmethod(effect_lines)
    compact = staticmethod(compact_lines)

    def make_draft_context(self, setup: Setup, context: FormContext) -> FormContext:
        return make_draft_context(setup, context)

    def title(self, group: str, context: Any, width: int) -> str:
        """Returns the title of a group; the cluster's says what its dimensions are."""
        if group != "cluster":
            return group
        return _cluster_title(name_groups(context.cluster, context.layout), width)

    def balance_stages(self, run: Run, draft: RunInput) -> Values:
        """Raises `UsageError`: a simulated stage computes what its rows say."""
        raise UsageError("balancing is of measured stages; --stage-layout says which rows a stage runs")


_ENDS: Line = [(f"{'rank':>6}{'end, opened':>13}{'end, now':>11}{'difference':>12}", "dim")]


def end_lines(opened: Run, now: Run, rows: int) -> list[Line]:
    """Returns when each rank ends, in the available rows: without room for all, those whose end changes most,
    of equal ones those that end last.
    """
    ends = list(zip(opened.figures.ends, now.figures.ends, strict=True))
    if rows < 2 or not ends:
        return []
    # The last row says how many more there are.
    rows -= rows - 1 < len(ends) and rows > 2
    displayed = largest([(abs(new - old), new) for old, new in ends], rows - 1)
    lines = [_ENDS]
    for index in displayed:
        old, new = ends[index]
        words = f"{ranks_of(opened.tracks, index).first:>6}{duration(old):>13}{duration(new):>11}"
        lines.append([(words, ""), (f"{'=' if new == old else signed_duration(new - old):>12}", "")])
    remaining_count = len(ends) - len(displayed)
    return [*lines, [(f"  and {plural(remaining_count, 'more rank')}", "dim")]] if remaining_count else lines


def _cluster_title(dims: Sequence[Dimension], width: int) -> str:
    """Returns the title of the cluster's group: what its dimensions are, and where there is room their sizes
    and the groups that cross them.
    """
    indices = range(len(dims))
    names = [dims[index].name(index) for index in indices]
    roles = [dimension_role(index, dims) for index in indices]
    forms = []
    for sizes in ([f": {dim.kind} {dim.size}" for dim in dims], [""] * len(dims)):
        for dimension_names in (names, [f"dim {index}" for index in indices]):
            parts = zip(dimension_names, roles, sizes, strict=True)
            forms.append(", ".join(f"{name} {role}".rstrip() + size for name, role, size in parts))
    if not any(roles):
        # Without a size, an index says nothing.
        forms = forms[:2]
    # A rule has two cells before its title, a space on both sides of it, and a cell behind.
    return next((f"cluster: {form}" for form in forms if form and len(form) <= width - 14), "cluster")

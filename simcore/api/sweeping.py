"""Sweeps: many runs of one input, each with other parameters."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from simcore.api.inputs import Input, load
from simcore.api.run import Run
from simcore.api.table import Table
from simcore.api.values import (
    WrongType,
    check_values,
    errors_in_keywords,
    in_keywords,
    keyword_types,
    whole_number,
    with_keywords,
)
from simcore.diagnostics import UsageError, printable
from simcore.parameters import Parameters
from simcore.sweeping.answers import answer_sentences
from simcore.sweeping.evaluating import build_evaluator
from simcore.sweeping.outcome import Outcome
from simcore.sweeping.pareto_front import Rule
from simcore.sweeping.point import Point
from simcore.sweeping.running import SweepOptions, open_sweep
from simcore.sweeping.space import DP, Space, SweptParameter, parse_conditions

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from simcore.api.keywords import SweepKeywords

# The types of the keywords of a sweep; `model` is what it opens.
_OF_RUNS = {name: type_ for name, type_ in keyword_types(several=True).items() if name != "model"}
KEYWORDS = _OF_RUNS | {DP: "int | Iterable[int]"}


class Sweep:
    """The points of a sweep, in the order of its space: the last keyword changes fastest."""

    def __init__(self, of: Input, points: Sequence[Point], varied: Sequence[str]) -> None:
        self._input, self._points, self._varied = of, list(points), list(varied)

    def __len__(self) -> int:
        """Returns the number of its points."""
        return len(self._points)

    def table(self) -> Table:
        """Returns a row for each point.

        Columns: what varies, step_time_ns, tokens_per_s, memory_peak_bytes, fits, gpus; skipped: why it was
        not run, None where it was.
        """
        columns: dict[str, list[Any]] = {name: [] for name in self._varied}
        for point in self._points:
            for name in self._varied:
                columns[name].append(point.layout.get(name, point.parameters.get(name)))
        figures = ("step_time_ns", "tokens_per_s", "memory_peak_bytes", "fits", "gpus")
        columns |= {name: [getattr(point, name) for point in self._points] for name in figures}
        columns["skipped"] = [point.skipped and in_keywords(point.skipped) for point in self._points]
        return Table(columns)

    def to_pandas(self) -> Any:
        """Returns `table()` as a `pandas.DataFrame`."""
        return self.table().to_pandas()

    def to_dict(self) -> dict[str, list[Any]]:
        """Returns `table()` as lists of plain values."""
        return self.table().to_dict()

    @property
    def sentences(self) -> list[str]:
        """What fits, what the best points have in common, and what other values cost."""
        return [*answer_sentences(self._points, self._varied), *Outcome(Rule(), self._points).sentences()]

    @errors_in_keywords()
    def best(self) -> Run:
        """Returns the run of the fastest point that fits into memory. Raises `UsageError` where none does."""
        ran = [point for point in self._points if point.step_time_ns is not None and point.fits]
        if not ran:
            why = next((point.skipped for point in self._points if point.skipped), "none fits into memory")
            raise UsageError(f"sweep: no point of {len(self)} was run and fits; the first: {why}")
        fastest = min(ran, key=lambda point: (point.step_time_ns or 0) / (point.work or 1))
        return self._input._run(check_values(fastest.parameters))

    def __repr__(self) -> str:
        return f"<Sweep of {self._input.path}: {len(self)} points over {', '.join(self._varied)}>"

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()


@with_keywords(KEYWORDS)
@errors_in_keywords()
def sweep(
    of: Input | str | os.PathLike[str] | None = None,
    *,
    model: str | os.PathLike[str] | None = None,
    where: str | Sequence[str] = (),
    jobs: int = 1,
    **parameters: Unpack[SweepKeywords],
) -> Sweep:
    """Returns a run of each combination of values: `sweep("workload.txt", tp=[1, 2, 4, 8], schedule="1f1b")`.

    of: an input, a path, or model=NAME; a workload or a model, as recordings and execution traces have no
    sweep. parameters: as of `Input.run`, and `dp`; a list varies a parameter that has a single value. where:
    conditions on points, like "tp*pp <= 64", or one. jobs: processes. A combination that cannot be run is a
    point with the reason in `skipped`. Raises `UsageError`, `InputError`.
    """
    if of is not None and not isinstance(of, Input | str | os.PathLike):
        raise WrongType("sweep", of, "an input, as `load(...)`, or a path, or model=NAME")
    where_list = [where] if isinstance(where, str) else where
    if not isinstance(where_list, Sequence) or not all(isinstance(one, str) for one in where_list):
        raise WrongType("where", where, "conditions, like ['tp*pp <= 64']")
    count = whole_number("jobs", jobs, 1)
    opened = of if isinstance(of, Input) else load(of, model=model)
    if not opened.can_be_swept:
        raise UsageError(
            f"sweep: found {opened.kind}, {printable(opened.path, 60)}, expected a workload or a model; of "
            "others ask for each run, as in [of.run(compute_scale=scale) for scale in (0.9, 0.8)]"
        )
    axes, fixed_values = [], {}
    for name, values in parameters.items():
        if isinstance(values, str | Mapping) or not isinstance(values, Iterable) or _is_list(name):
            fixed_values[name] = values
            continue
        several = list(values)
        if not several:
            raise UsageError(
                f"{printable(name, 40)}: found no values, expected several, like tp=[1, 2, 4, 8]"
            )
        axis_values = (
            [whole_number(DP, value, 1) for value in several]
            if name == DP
            else [check_values({name: value})[name] for value in several]
        )
        axes.append(SweptParameter(name, tuple(axis_values)))
    if not axes:
        raise UsageError("sweep: nothing varies; give a parameter several values, like tp=[1, 2, 4, 8]")
    free = {axis.field for axis in axes} | ({"world"} if any(axis.field == DP for axis in axes) else set())
    space = Space(Parameters(**opened._values(fixed_values, free)), tuple(axes), parse_conditions(where_list))
    run = open_sweep(SweepOptions(build_evaluator(opened._opened, opened._words, space), jobs=count))
    try:
        points = list(run.points())
    finally:
        run.close()
    return Sweep(opened, sorted(points, key=lambda point: point.index), space.varied)


def _is_list(name: str) -> bool:
    """Returns whether one value of a parameter is a list already."""
    return isinstance(getattr(Parameters(), name, None), tuple)

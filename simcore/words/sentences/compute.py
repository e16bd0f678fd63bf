"""The sentences on compute: the step goes to it, and to which rows; or it is not modelled."""

from __future__ import annotations

from collections.abc import Iterator

from simcore.analysis.model_use import describe_model_change
from simcore.diagnostics import printable
from simcore.program.ops import COMPUTE
from simcore.records import NamedTuple
from simcore.units import join_with_figures, largest_keys, percent, share_word
from simcore.words.sentences.model import RunSums, Weighed, find_most_rows

_HALF = 0.5
# Below half of the step compute leads by this factor over any other cause; a closer cause binds the step
# instead.
_MARGIN = 1.2


class NoCompute(Weighed, frozen=True):
    """The compute cells of a file are placeholders. sends: whether anything is sent."""

    rule = "no-compute"

    cells: int
    sends: bool

    @property
    def text(self) -> str:
        text = f"All {self.cells} compute cells of the file are 0 or 1 ns"
        if self.sends:
            return f"{text}: the step is communication alone."
        return f"{text}, and no collective has two ranks to run on: the step says nothing of a training step."


def find_no_compute(run: RunSums) -> Iterator[NoCompute]:
    """Yields a sentence on a file with placeholders for compute, before any on its communication."""
    workload = run.simulation.workload
    if not workload.has_compute:
        sends = any(set(stage.ops.stream) - {COMPUTE} for stage in run.simulation.program.stages)
        yield NoCompute(
            step_ns=run.step_ns, ns=run.mean_busy_ns, cause="compute is not modelled", fault=True,
            cells=3 * len(workload), sends=sends,
        )  # fmt: skip


class OneLayer(Weighed, frozen=True):
    """Only one layer of a model runs, once."""

    rule = "one-layer"

    @property
    def text(self) -> str:
        return (
            "The table lists one transformer layer, and nobody said how many there are: with --layers N what "
            "stands beside it takes a smaller share of the step."
        )


def find_one_layer(run: RunSums) -> Iterator[OneLayer]:
    """Yields a sentence on a table of one layer, before a share of the step is blamed on other rows."""
    if any(one.code == "layers-assumed" for one in run.simulation.diagnostics):
        yield OneLayer(step_ns=run.step_ns, ns=run.step_ns, cause="one layer of the model runs", fault=True)


class AnotherModel(Weighed, frozen=True):
    """The degrees are not those of the file."""

    rule = "another-model"

    other: str
    """In what it is another model, as `ModelUse` words it."""
    can_rescale: bool
    """Whether its rows can be made again for these degrees."""

    @property
    def text(self) -> str:
        anew = " With --rescale on they are made anew for these degrees." if self.can_rescale else ""
        return f"{self.other[0].upper()}{self.other[1:]}.{anew}"


def find_other_model(run: RunSums) -> Iterator[AnotherModel]:
    """Yields a sentence on degrees that are not the file's, before the step is judged."""
    other = describe_model_change(run.simulation)
    if not other:
        return
    # Imported here: only a run with other degrees needs it.
    from simcore.recovery.rescale import can_rescale

    yield AnotherModel(
        step_ns=run.step_ns, ns=run.step_ns, cause="not the model of the file", fault=True, other=other,
        can_rescale=can_rescale(run.simulation.workload.as_written),
    )  # fmt: skip


class Computed(NamedTuple):
    """A layer, or a row of the only layer, with its compute."""

    name: str
    ns: int
    """Its compute."""
    both_ns: int
    """Its compute and exposed communication."""


class ComputeBound(Weighed, frozen=True):
    """The compute of the mean rank."""

    rule = "compute-bound"

    most: tuple[Computed, ...]
    """The layers that compute most; () where these would be all rows."""
    whole_ns: int
    """The compute of all layers."""

    @property
    def text(self) -> str:
        return f"Ranks compute {self.figure(self.ns)} of the step{self._rows_text()}."

    def _rows_text(self) -> str:
        """Returns `, most in mlp_norm (29.2 %, compute alone)`."""
        if not self.most:
            return ""
        how = share_word(sum(one.ns for one in self.most), self.whole_ns)
        shares = [percent(one.ns, self.step_ns) for one in self.most]
        printed = [printable(one.name, 32) for one in self.most]
        if len(shares) == 1 and how != "most" and shares[0] == percent(self.ns, self.step_ns):
            return f", {how} in {printed[0]}"
        # The figure of a layer in the summary contains its communication, too.
        with_communication = [percent(one.both_ns, self.step_ns) for one in self.most]
        words, each = "" if with_communication == shares else ", compute alone", len(set(shares)) == 1
        rows_text = join_with_figures(printed, [f"{share} %" for share in shares], words if each else "")
        return f", {how} in {rows_text}{'' if each else words}"


def find_compute_bound(run: RunSums) -> Iterator[ComputeBound]:
    """Yields a sentence where compute takes half of the step, or clearly more than any other cause."""
    if not run.simulation.workload.has_compute:
        return
    busy = run.mean_busy_ns
    others = (run.network_ns, run.bubble_ns, run.unbalanced_ns, run.mean_ns["wait"])
    if run.is_worth_saying(busy, _HALF) or (run.is_worth_saying(busy) and busy >= _MARGIN * max(others)):
        most, whole_ns = _most_computed(run)
        yield ComputeBound(
            step_ns=run.step_ns, ns=busy, cause="compute", lost_ns=busy, bound_by=_bound_by(run), most=most,
            whole_ns=whole_ns,
        )  # fmt: skip


def _bound_by(run: RunSums) -> str:
    """Returns `memory` where the ops of an inference step are bound by it most of their time."""
    if not run.simulation.workload.header.inference:
        return ""
    # Imported here: few runs are of inference.
    from simcore.analysis.model_figures import find_model_rows

    model_rows = find_model_rows(run.simulation)
    ops = [op for row in model_rows.ops for op in row.fwd] if model_rows is not None else []
    memory_s = sum(op.seconds for op in ops if op.bound_by != "compute")
    return "memory" if 2 * memory_s > sum(op.seconds for op in ops) else ""


def _most_computed(run: RunSums) -> tuple[tuple[Computed, ...], int]:
    """Returns the layers that compute most, and the compute of all, ns.

    Where one layer computes all, these are the rows that are most of it.
    """
    by_name, groups = run.layer_compute_ns, run.results.layer_groups
    names, exposed, whole = (
        largest_keys(by_name),
        groups.sum_by_name(groups.exposed_ns),
        sum(by_name.values()),
    )
    if len(names) == 1 and share_word(by_name[names[0]], whole) != "most":
        rows = find_most_rows(run.row_compute_ns)
        if rows and len(rows) < len(run.row_compute_ns):
            # No other figure states the exposed communication of a row.
            by_name, names, exposed = run.row_compute_ns, rows, {}
        elif len(by_name) == 1:
            names = []
    return tuple(Computed(name, by_name[name], by_name[name] + exposed.get(name, 0)) for name in names), whole

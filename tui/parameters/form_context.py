"""The values of a draft that were not given: its ranks, its network, its schedule.

All of them follow from the draft itself and not from the run on the screen, which is that of an earlier draft
while one types: the effect of a key must not depend on whether a run has ended.
"""

from __future__ import annotations

from contextlib import suppress
from functools import cached_property
from typing import Literal, Protocol

from simcore.cluster import Cluster, ClusterParameters, choose_cluster
from simcore.diagnostics import InputError, UsageError
from simcore.layout import MOST_RANKS, Layout
from simcore.parameters import RunInput
from simcore.program.blocks import find_structure
from simcore.program.ops import Program
from simcore.program.plan import schedule_defaults
from simcore.program.schedule_choice import find_schedule
from simcore.records import Struct
from simcore.setup import Setup, WorkloadPlacement
from simcore.trace.contexts import ClusterRun
from simcore.workload import Workload
from simcore.workload.policies import NO_POLICY


class HasSetup(Protocol):
    """What the fields of every form need: the parameters, and the input."""

    @property
    def setup(self) -> RunInput: ...


class FormContext(ClusterRun, Protocol):
    """What the form needs of a run, or of a draft that has not been run; the program is then that of an
    earlier run.
    """

    @property
    def setup(self) -> Setup: ...
    @property
    def program(self) -> Program: ...


class DraftContext(Struct, frozen=True, dict=True):
    """A draft, placed but not run.

    It never raises: of a draft that cannot be run it has what can be computed.
    """

    setup: Setup
    reference: FormContext
    """Another run or draft of the same workload, for what does not depend on the parameters, and for what the
    draft itself does not give.
    """

    @property
    def workload(self) -> Workload:
        return self.reference.workload

    @property
    def program(self) -> Program:
        return self.reference.program

    @cached_property
    def layout(self) -> Layout:
        """Its layout, else that of the reference."""
        return self.reference.layout if self._placement is None else self._placement.layout

    @cached_property
    def cluster(self) -> Cluster:
        """Its network, without dimensions where it cannot be computed."""
        return self._cluster_without_layout() if self._placement is None else self._placement.cluster

    @property
    def has_dimensions(self) -> bool:
        """Whether the network's prices depend on the dimensions of the cluster."""
        return self.setup.rules.network.make_cluster is None

    @cached_property
    def _placement(self) -> WorkloadPlacement | None:
        with suppress(UsageError, InputError):
            return self.setup.placement
        return None

    def _cluster_without_layout(self) -> Cluster:
        """Returns the cluster for ranks that fit neither it nor each other."""
        parameters = self.setup.parameters
        world = parameters.world or self.reference.layout.world
        try:
            return choose_cluster(parameters.part(ClusterParameters)).unchecked(min(world, MOST_RANKS))
        except (UsageError, InputError):
            return Cluster((), ())


def make_draft_context(setup: Setup, reference: FormContext) -> FormContext:
    """Returns the context of a draft; reference: another one of the same workload."""
    return reference if setup.parameters == reference.setup.parameters else DraftContext(setup, reference)


def is_one_loop(context: FormContext) -> bool:
    """Returns whether the run takes all rows as one loop: an op table, and in dialect astra-sim-1
    any file.
    """
    return context.workload.as_written.is_table or _is_queued(context)


def _is_queued(context: FormContext) -> bool:
    """Returns whether the run is one of dialect astra-sim-1."""
    with suppress(UsageError):
        return context.setup.rules.queued
    return context.program.queued


def model_defaults(context: FormContext) -> dict[str, object]:
    """Returns by field the values that a model takes for parameters that were not given; empty for a file."""
    maker = context.workload.maker
    return {} if maker is None else maker.values(context.setup.model)


def default_value(field: str, context: FormContext) -> object:
    """Returns the value that a run takes for a parameter of the schedule that was not given."""
    # Where the rows are not those of the file, the micro-batches follow from these rows.
    workload = context.workload if context.workload.has_other_rows else context.workload.as_written
    structure, queued = context.program.structure, _is_queued(context)
    if field == "microbatches" and context.program.queued and not queued:
        # The program of the other dialect has the whole file as one block.
        structure = find_structure(workload)[0]
    defaults = schedule_defaults(workload, context.layout, structure, queued)
    schedule = context.setup.parameters.schedule or defaults.schedule
    if field in ("virtual_stages", "microbatches"):
        # A schedule may imply its chunks, and one from a file has its micro-batches too.
        with suppress(UsageError, InputError):
            rules, read_order = find_schedule(schedule)
            if read_order is not None:
                placement = read_order.order.placement
                return placement.parts if field == "virtual_stages" else read_order.order.microbatches
            if field == "virtual_stages" and rules.chunks is not None:
                return rules.chunks
    return getattr(defaults, field)


Origin = Literal["stated", "counted", "assumed"]


def origin_of(workload: Workload, field: str, value: object, in_blocks: bool) -> Origin:
    """Returns how a file states that its run takes `value` for a field of `Parameters`.

    workload: as it was read. field: `world`, `tp`, `ep`, `pp`, `microbatches` or `dialect`. in_blocks:
    whether the run takes the blocks of its rows for micro-batches, which are counted. What the file has no
    key for is assumed, and so is a value that replaces the one of its key (an ep that was clamped). The
    dialect follows from what only one of the two programs writes: an op table is neither's, and rows without
    a header state no policy.
    """
    header = workload.header
    if field == "dialect":
        return "assumed" if workload.format == "op-table" or workload.policy == NO_POLICY else "stated"
    keys = {
        "world": header.all_gpus,
        "tp": header.tp,
        "ep": header.ep,
        "pp": header.pp,
        "microbatches": header.ga,
    }
    if keys[field] == value:
        return "stated"
    return "counted" if field == "microbatches" and in_blocks else "assumed"

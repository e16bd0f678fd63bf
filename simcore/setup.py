"""Parameters and what is run, resolved once: all that lies below takes what is in force from here.

Import from here: `Setup`.
"""

from __future__ import annotations

from functools import cached_property
from typing import ClassVar

from simcore.cluster import (
    DEFAULT_PRESET,
    AskedCluster,
    Cluster,
    ClusterChoice,
    changes_of_default,
    choose_cluster,
)
from simcore.compat.simai_network import least_forward_bytes
from simcore.diagnostics import Diagnostic, UsageError, printable
from simcore.layout import Layout, resolve_layout
from simcore.names import Dialect
from simcore.networks import NETWORKS, AskedNetwork, Network, network_model
from simcore.networks.model import NetworkModel
from simcore.parameters import Given, Input
from simcore.program.overrides import AskedOverrides, Overrides, parse_overrides
from simcore.program.policies import chosen_dialect, policy_layout, with_scopes
from simcore.program.schedule_choice import AskedSchedule, with_stages_of_schedule
from simcore.records import NamedTuple, replace
from simcore.workload import Workload
from simcore.workload.model import AskedDegrees, AskedModel


class Rules(NamedTuple):
    """Whose rules a run goes by: how its rows are taken, and what prices its communication."""

    dialect: Dialect
    network: NetworkModel

    @property
    def queued(self) -> bool:
        """Whether collectives go through the queues of ASTRA-sim 1.0."""
        return self.dialect == "astra-sim-1"


class Placed(NamedTuple):
    """Where the rows of a run go. workload: its rows, of a model those that its parameters make, in dialect
    astra-sim-1 with the groups of their policy. found: what was assumed for layout and cluster.
    """

    workload: Workload
    layout: Layout
    cluster: Cluster
    found: tuple[Diagnostic, ...]


class Setup(Given, frozen=True, dict=True):
    """A simulation before it is run: all of it is resolved here, each once, when it is first asked for.

    opened: the workload, or another run's of it. parameters: as they were given, for whoever states or
    changes them. What cannot be raises `UsageError`, a workload that cannot be simulated `InputError`.
    """

    opened: Workload

    of: ClassVar[Input] = "workload"

    @property
    def source(self) -> Workload:
        """The workload with the groups and sizes of its file."""
        return self.opened.as_written

    @cached_property
    def rules(self) -> Rules:
        """Whose rules it goes by."""
        model = network_model(self.parameters.network)
        return Rules(chosen_dialect(self.opened.as_written, self.parameters.dialect), model)

    @cached_property
    def placed(self) -> Placed:
        """Its rows, ranks and network, without a program or times: a thousandth of the run."""
        parameters = self.parameters
        workload = self._made()
        rules = self.rules
        if rules.queued:
            _check_queued(rules.network, parameters.network)
        given = None
        if workload.maker is not None and not parameters.dim and parameters.cluster is None:
            given = workload.maker.network(self.model)
        asked = parameters.part(AskedCluster)
        choice = choose_cluster(asked, given)
        layout, found = self._layout(workload, choice)
        if rules.network.place:
            cluster, of_cluster = rules.network.place(self.network, layout), choice.diagnostics
        else:
            cluster, of_cluster = _cluster(workload, choice, layout, asked)
        if rules.queued:
            cluster = replace(cluster, last_chunk_is_rest=True)
            workload = with_scopes(workload, layout)
        return Placed(workload, layout, cluster, (*found, *of_cluster))

    @property
    def workload(self) -> Workload:
        return self.placed.workload

    @property
    def layout(self) -> Layout:
        return self.placed.layout

    @property
    def cluster(self) -> Cluster:
        return self.placed.cluster

    @property
    def unfolded(self) -> bool:
        """Whether every rank is simulated, not one of each class."""
        return self.parameters.no_fold or self.rules.network.unfolded

    @property
    def least_forward_bytes(self) -> int:
        """What a smaller forward collective counts as, bytes; 0 where each counts as it is."""
        lifts = self.rules.network.lifts_forward and not self.rules.queued
        return least_forward_bytes(self.workload) if lifts else 0

    @cached_property
    def schedule(self) -> AskedSchedule:
        """What is asked of the schedule, which the program chooses by its rows."""
        return self.parameters.part(AskedSchedule)

    @cached_property
    def network(self) -> AskedNetwork:
        """What is asked of the network."""
        return self.parameters.part(AskedNetwork)

    @cached_property
    def model(self) -> AskedModel:
        """What is asked of a model and its training."""
        return self.parameters.part(AskedModel)

    @cached_property
    def overrides(self) -> Overrides:
        """Faults and scales of this run's ranks and dimensions."""
        asked = self.parameters.part(AskedOverrides)
        return parse_overrides(asked, self.layout.world, len(self.cluster.dims))

    def open_network(self, cluster: Cluster | None = None) -> Network:
        """The network of the run; on another cluster its ranks stay where they are."""
        return self.rules.network.open(self.network, self.layout, cluster or self.cluster)

    def _made(self) -> Workload:
        """The workload of a run: of a model the rows that these parameters make, of a file its own."""
        parameters = self.parameters
        # The workload of a run has its groups and sizes; another run begins with those of the file.
        workload = self.opened.as_written
        parameters.refuse_others("workload" if workload.maker is None else "model")
        if workload.maker is None and (parameters.gpu is not None or parameters.memory_limit is not None):
            _check_recovered(workload, parameters.gpu)
        if parameters.without_lines:
            # Imported here, as below: few runs ask for it.
            from simcore.workload.without_lines import without_lines

            workload = without_lines(workload, parameters.without_lines)
        if parameters.rescale == "on":
            return self._rescaled(workload)
        return workload if workload.maker is None else workload.maker.workload(self.model)

    def _rescaled(self, workload: Workload) -> Workload:
        """The rows of a file for the degrees that are asked for, as AICB would write them."""
        if self.rules.queued:
            raise UsageError("--rescale on is of dialect simai: found astra-sim-1; off would fit")
        # Imported here: few runs ask for it.
        from simcore.recovery.rescale import rescaled

        asked = self.parameters.part(AskedDegrees)
        rescaling = rescaled(workload, asked, self.parameters.microbatches)
        return workload if rescaling is None else rescaling.workload

    def _layout(self, workload: Workload, choice: ClusterChoice) -> tuple[Layout, list[Diagnostic]]:
        """The ranks of the run, and what was assumed for them."""
        asked = self.parameters.part(AskedDegrees)
        if self.rules.queued:
            return policy_layout(workload, asked, choice.npus, choice.first_dimension)
        asked, found = with_stages_of_schedule(workload, self.parameters.schedule, asked)
        layout, assumed = resolve_layout(workload, asked, choice.npus)
        return layout, [*found, *assumed]


def _check_recovered(workload: Workload, gpu: str | None) -> None:
    """Raises `UsageError` where a GPU is given to a file whose model is not known."""
    if gpu is None:
        raise UsageError("--memory-limit of a file goes with --gpu: --gpu NAME|FILE would fit")
    # Imported here, as below: few runs ask for it.
    from simcore.recovery.rescale import known

    recovered = known(workload) if workload.dialect == "simai" else None
    if recovered is None or recovered.config is None:
        why = recovered.line() if recovered is not None else f"not AICB's: found {workload.format}"
        raise UsageError(f"--gpu: {printable(workload.path, 60)} is {why}; --model NAME|FILE would fit")


def _check_queued(model: NetworkModel, name: str) -> None:
    """Raises `UsageError` for a network model that the queues of dialect astra-sim-1 cannot have."""
    if not model.queues:
        fitting = " or ".join(name for name, model in NETWORKS.items() if model.queues)
        raise UsageError(
            f"--network {printable(name, 60)}: dialect astra-sim-1 has its own queues, "
            f"{fitting} fits (--dialect simai takes the rows as SimAI does)"
        )


def _cluster(
    workload: Workload, choice: ClusterChoice, layout: Layout, asked: AskedCluster
) -> tuple[Cluster, tuple[Diagnostic, ...]]:
    """The cluster of a run: the one given, else the default one, which is said; also of `--dim` alone what it
    has of the default one: a form that changes one figure gives all of them.
    """
    cluster = choice.cluster(layout.world)
    diagnostics = choice.diagnostics
    if choice.is_default:
        text = " x ".join(f"{dimension.kind} {dimension.size}" for dimension in cluster.dims)
        message = f"no cluster given: assuming {DEFAULT_PRESET} ({text})"
        brief = f"cluster {DEFAULT_PRESET}: none given"
        said = Diagnostic("note", "cluster-default", message, workload.path, brief=brief)
        diagnostics = (*diagnostics, said)
    elif asked.dim and asked.cluster is asked.system is None and workload.maker is None:
        changed = changes_of_default(cluster.dims, layout.world)
        if changed is not None:
            message = f"no --cluster given: the dimensions are those of {DEFAULT_PRESET}, the default"
            message += f", but {', '.join(changed)}" if changed else ""
            brief = f"cluster {DEFAULT_PRESET}{', changed' * bool(changed)}"
            said = Diagnostic("note", "cluster-default", message, workload.path, brief=brief)
            diagnostics = (*diagnostics, said)
    return cluster, diagnostics

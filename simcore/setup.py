"""What is simulated: a workload and its parameters, resolved once; nothing below takes `Parameters`.

Import from here: `Setup`.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from simcore.cluster import (
    DEFAULT_PRESET,
    Cluster,
    ClusterChoice,
    ClusterParameters,
    changes_of_default,
    choose_cluster,
)
from simcore.compat.simai_network import least_forward_bytes
from simcore.diagnostics import Diagnostic, InputError, UsageError, printable
from simcore.layout import Layout, header_diagnostic, resolve_layout
from simcore.names import Dialect
from simcore.networks import (
    NETWORKS,
    Network,
    NetworkParameters,
    check_flags,
    network_model,
    topology_unused,
)
from simcore.networks.model import MOST_BALANCED_RANKS, NetworkModel
from simcore.parameters import DEFAULT_NETWORK, FLOW_FIELDS, Input, Parameters, RunInput
from simcore.program.overrides import OverrideParameters, Overrides, parse_overrides
from simcore.program.policies import policy_layout, resolve_dialect, with_scopes
from simcore.program.schedule_choice import (
    ScheduleParameters,
    with_chunks_of_schedule,
    with_stages_of_schedule,
)
from simcore.program.schedules import SCHEDULES
from simcore.records import NamedTuple, replace
from simcore.workload import Workload
from simcore.workload.model import DegreeParameters, InputNetwork, ModelParameters

if TYPE_CHECKING:
    from simcore.topology import Topology

# Parameters that jobs on one topology share.
_OF_ALL_JOBS = (
    "cluster", "system", "dim", "dialect", "link_rate", *FLOW_FIELDS,
)  # fmt: skip


class Rules(NamedTuple):
    """The dialect and the network model of a run: how its rows are read, and what prices its
    communication.
    """

    dialect: Dialect
    network: NetworkModel

    @property
    def queued(self) -> bool:
        """Whether collectives go through the queues of ASTRA-sim 1.0."""
        return self.dialect == "astra-sim-1"

    @property
    def is_one_stream(self) -> bool:
        """Whether a rank has one collective at a time, as in SimAI's simulator."""
        return self.dialect == "simai-sim"


class NetworkChoice(NamedTuple):
    """A network that a run can have."""

    name: str
    """The name of its model."""
    ecmp: str | None = None
    """As in `Parameters`."""
    reason: str = ""
    """Why it is this one, where a topology alone would have had another."""
    folds: bool = False
    """Whether ranks that are alike are simulated once, however few there are."""

    @property
    def method(self) -> tuple[str, str | None, bool]:
        """What decides on times."""
        return self.name, self.ecmp, self.folds


class WorkloadPlacement(NamedTuple):
    """The rows of a run and the ranks and network that they run on."""

    workload: Workload
    """The rows: of a model those that its parameters make; in dialect astra-sim-1 with the groups of their
    policy.
    """
    layout: Layout
    """The ranks and their groups."""
    cluster: Cluster
    """The dimensions of the network."""
    diagnostics: tuple[Diagnostic, ...]
    """What was assumed for layout and cluster."""


class Setup(RunInput, frozen=True, dict=True):
    """A simulation before it is run: each of its parts is resolved once, on first use.

    parameters: as the user gave them. Raises `UsageError` for parameters that cannot be used, `InputError`
    for a workload that cannot be simulated.
    """

    opened: Workload
    """The workload, or another run's version of it."""
    too_large: tuple[str, ...] = ()
    """What flows would have been, of each choice of the network that is too large to simulate."""
    as_in: NetworkChoice | None = None
    """The choice of the run that this one is compared with, which counts where it is possible."""

    of: ClassVar[Input] = "workload"
    of_parameters: ClassVar[dict[str, Any]] = {"too_large": (), "as_in": None}

    @property
    def source(self) -> Workload:
        """The workload with the groups and sizes of its file."""
        return self.opened.as_written

    @cached_property
    def rules(self) -> Rules:
        """The dialect and the network model of the run."""
        model = network_model(self.network_name)
        return Rules(self._dialect, model)

    @cached_property
    def _dialect(self) -> Dialect:
        return resolve_dialect(self.opened.as_written, self.parameters.dialect)

    @property
    def network_name(self) -> str:
        return self.network_choice.name

    @property
    def network_words(self) -> str:
        """The name of the network model, and whether the topology chose it: `flows for the topology`."""
        choice = self.network_choice
        if self.parameters.network is not None or choice.name != "flows":
            return choice.name
        balanced = ", paths balanced" if choice.ecmp != self.parameters.ecmp else ""
        return f"flows for the topology{balanced}"

    @property
    def method_words(self) -> str:
        """What the size of a run decides of its network: `flows on balanced paths, equal ranks once`."""
        choice = self.network_choice
        if choice.name != "flows":
            return choice.name
        paths = "balanced paths" if choice.ecmp == "balanced" else "paths by a hash"
        return f"flows on {paths}{'' if self.has_all_ranks else ', equal ranks once'}"

    @property
    def network_choice(self) -> NetworkChoice:
        """The network of the run."""
        return self._network_choices[len(self.too_large)]

    @cached_property
    def _network_choices(self) -> tuple[NetworkChoice, ...]:
        """The networks of the run, of which each counts where flows of the ones before are too many."""
        choices = self._own_choices
        for index, choice in enumerate(choices):
            if self.as_in is not None and choice.method == self.as_in.method:
                return (self.as_in, *choices[index + 1 :])
        return choices

    @property
    def _own_choices(self) -> tuple[NetworkChoice, ...]:
        parameters = self.parameters
        name, ecmp, reason = parameters.network, parameters.ecmp, "".join(self.too_large[-1:])
        folded = NetworkChoice("flows", "balanced", reason, folds=True)
        if name is not None:
            first = NetworkChoice(name, ecmp)
            return (first, folded) if name == "flows" and ecmp == "balanced" and self._can_fold else (first,)
        if not self._has_topology:
            return (NetworkChoice(DEFAULT_NETWORK, ecmp),)
        if self._dialect == "simai-sim" or parameters.other_job is not None:
            # They are flows alone.
            return (NetworkChoice("flows", ecmp),)
        refusal = self._refusal_of_flows()
        if refusal:
            return (NetworkChoice(DEFAULT_NETWORK, ecmp, refusal),)
        can_fold = ecmp in (None, "balanced") and self._can_fold
        last = NetworkChoice(DEFAULT_NETWORK, ecmp, reason)
        return (NetworkChoice("flows", ecmp), *((folded,) if can_fold else ()), last)

    @cached_property
    def _has_topology(self) -> bool:
        """Whether the cluster is a topology. Nothing is read where none can be."""
        if self.parameters.cluster is None or self.parameters.dim:
            return False
        try:
            return self._cluster_choice.settings.topology is not None
        except (UsageError, InputError):
            # `placement` raises it.
            return False

    @property
    def _can_fold(self) -> bool:
        """Whether flows of ranks that are alike can be simulated once."""
        parameters = self.parameters
        return not (parameters.no_fold or parameters.job_gpus or parameters.other_job or parameters.algorithm)

    def _refusal_of_flows(self) -> str:
        """Returns why flows cannot carry the run of a topology; "" where they can."""
        # Imported here: most runs have no topology.
        from simcore.networks.flows import check_algorithms, check_parameters

        flows = NETWORKS["flows"]
        parameters = replace(self.parameters.part(NetworkParameters), network="flows")
        try:
            if self._dialect == "astra-sim-1":
                _check_queued(flows, "flows")
            check_flags(flows, parameters, frozenset())
            check_parameters(parameters)
            check_algorithms(self._cluster_choice.unchecked(1))
        except (UsageError, InputError) as refused:
            return str(refused)
        return ""

    @property
    def next_choice(self) -> NetworkChoice | None:
        """The network of the run if its flows are too many; None without another one."""
        following = self._network_choices[len(self.too_large) + 1 :]
        return following[0] if following else None

    def without_flows(self, reason: str) -> Setup:
        """Returns the setup with the next choice of the network. reason: why this one is too large."""
        return Setup(self.opened, self.parameters, (*self.too_large, reason), self.as_in)

    @cached_property
    def _cluster_choice(self) -> ClusterChoice:
        return choose_cluster(self.parameters.part(ClusterParameters), self.input_network)

    @cached_property
    def placement(self) -> WorkloadPlacement:
        """The rows, ranks and network of the run, without a program or times: a thousandth of the
        run's time.
        """
        parameters = self.parameters
        workload = self._make_workload()
        rules = self.rules
        if rules.queued:
            _check_queued(rules.network, self.network_name)
        if rules.is_one_stream:
            _check_one_stream(self.network_name, parameters.ecmp, parameters.schedule, parameters.pp)
        cluster_parameters = parameters.part(ClusterParameters)
        choice = self._cluster_choice
        layout, layout_diagnostics = self._resolve_layout(workload, choice)
        if rules.network.make_cluster:
            cluster, cluster_diagnostics = (
                rules.network.make_cluster(self.network, layout),
                choice.diagnostics,
            )
        else:
            cluster, cluster_diagnostics = _resolve_cluster(workload, choice, layout, cluster_parameters)
            if cluster.topology is not None:
                cluster_diagnostics += self._topology_diagnostics(cluster.topology)
        if workload.header.inference and workload.maker is None and not rules.queued:
            # Imported here: most files are of training.
            from simcore.workload.inference import with_stages

            workload = with_stages(workload, layout.pp)
        if rules.queued:
            cluster = replace(cluster, last_chunk_is_rest=True)
            workload = with_scopes(workload, layout)
        return WorkloadPlacement(workload, layout, cluster, (*layout_diagnostics, *cluster_diagnostics))

    @property
    def workload(self) -> Workload:
        return self.placement.workload

    @property
    def layout(self) -> Layout:
        return self.placement.layout

    @property
    def cluster(self) -> Cluster:
        return self.placement.cluster

    @property
    def unfolded(self) -> bool:
        """Whether every rank is simulated, not one of each class."""
        return self.parameters.no_fold or self.has_all_ranks

    @property
    def has_all_ranks(self) -> bool:
        """Whether the network of the run has every rank on its links. Balanced paths keep equal ranks equal:
        of many ranks one of each class is enough.
        """
        choice = self.network_choice
        is_large = choice.folds or self.layout.world > MOST_BALANCED_RANKS
        return self.rules.network.needs_all_ranks and not (choice.ecmp == "balanced" and is_large)

    @property
    def least_forward_bytes(self) -> int:
        """The size that a smaller forward collective is raised to, bytes; 0 where none is."""
        rules = self.rules
        lifts = rules.is_one_stream or (rules.network.lifts_forward and not rules.queued)
        return least_forward_bytes(self.workload) if lifts else 0

    @cached_property
    def input_network(self) -> InputNetwork | None:
        """The network that comes with a model; None of a file, and where the parameters give one."""
        maker, parameters = self.opened.maker, self.parameters
        if maker is None or parameters.dim or parameters.cluster is not None:
            return None
        return maker.network(self.model)

    @cached_property
    def schedule(self) -> ScheduleParameters:
        """The parameters of the schedule, which the program chooses by its rows."""
        parameters = self.parameters.part(ScheduleParameters)
        return replace(parameters, schedule="layer-loop") if self.rules.is_one_stream else parameters

    @property
    def is_searched(self) -> bool:
        """Whether the order of the schedule depends on what its actions take."""
        rules = SCHEDULES.get(self.schedule.schedule or "")
        if rules is None or not rules.search_limit:
            return False
        return not self.rules.queued and not self.workload.is_table

    @cached_property
    def network(self) -> NetworkParameters:
        """The parameters of the network."""
        choice = self.network_choice
        return replace(self.parameters.part(NetworkParameters), network=choice.name, ecmp=choice.ecmp)

    @cached_property
    def model(self) -> ModelParameters:
        """The parameters of a model and its training, with the stages of a schedule file."""
        return with_chunks_of_schedule(self.opened, self.parameters.part(ModelParameters))

    @cached_property
    def overrides(self) -> Overrides:
        """The injected faults and the speed factors of this run, by rank and by network dimension."""
        parameters = self.parameters.part(OverrideParameters)
        return parse_overrides(parameters, self.layout.world, len(self.cluster.dims))

    @cached_property
    def other_job(self) -> Setup | None:
        """The setup of the job beside this one, on the same topology; None without one. Raises `UsageError`
        where GPUs are of both.
        """
        path, job_gpus = self.parameters.other_job, self.parameters.job_gpus
        if path is None:
            return None
        # Imported here: few runs have another job beside them.
        from simcore.ranks import RankSet, parse_ranks
        from simcore.workload import open_workload

        if self.network_name != "flows":
            raise UsageError(f"--other-job {printable(path, 60)}: jobs share links under --network flows")
        own = (
            parse_ranks("--job-gpus", job_gpus)
            if job_gpus is not None
            else RankSet.of(range(self.layout.world))
        )
        other, other_job_gpus = open_workload(path), self.parameters.other_job_gpus
        shared = {name: getattr(self.parameters, name) for name in _OF_ALL_JOBS} | {"network": "flows"}
        if other_job_gpus is None:
            # The GPUs behind those of this job: all of them, or as many as the file states ranks.
            behind = f"{own.last + 1}-{max(self.cluster.npus - 1, own.last + 1)}"
            world = Setup(other, Parameters(**shared, job_gpus=behind)).layout.world
            other_job_gpus = f"{own.last + 1}-{own.last + world}"
        both = sorted(set(own) & set(parse_ranks("--other-job-gpus", other_job_gpus)))
        if both:
            raise UsageError(
                f"--other-job-gpus {printable(other_job_gpus, 60)}: GPU {both[0]} is of the first job"
            )
        return Setup(other, Parameters(**shared, job_gpus=other_job_gpus))

    def open_network(self, cluster: Cluster | None = None) -> Network:
        """Returns the network of the run, also on another cluster, where its ranks stay in their
        positions.
        """
        return self.rules.network.open(self.network, self.layout, cluster or self.cluster)

    def _topology_diagnostics(self, topology: Topology) -> tuple[Diagnostic, ...]:
        """Returns a warning where the network of the run does not have all of a topology."""
        choice = self.network_choice
        if "link_rate" not in self.rules.network.flags:
            return (topology_unused(choice.name, topology.name, choice.reason),)
        if self.parameters.network is None and choice.reason:
            return (_paths_balanced(topology, choice.reason),)
        return ()

    def _make_workload(self) -> Workload:
        """Returns the workload of a run: of a model the rows that these parameters make, of a file
        its own.
        """
        parameters = self.parameters
        # `opened` may have the groups and sizes of another run; this one begins with those of the file.
        workload = self.opened.as_written
        parameters.refuse_others("workload" if workload.maker is None else "model")
        if parameters.decode is not None and parameters.steps > 1:
            raise UsageError(
                f"--steps {parameters.steps} with --decode: the next token of a sequence waits for the last "
                "stage; without --steps it would fit"
            )
        if workload.maker is None and (parameters.gpu is not None or parameters.memory_limit is not None):
            _check_recovered(workload, parameters.gpu)
        if parameters.without_lines:
            # Imported here, as below: few runs leave lines out.
            from simcore.workload.without_lines import without_lines

            workload = without_lines(workload, parameters.without_lines)
        if parameters.rescale == "on":
            return self._rescale(workload)
        return workload if workload.maker is None else workload.maker.workload(self.model)

    def _rescale(self, workload: Workload) -> Workload:
        """Returns the rows of a file for the requested degrees, as AICB would write them."""
        if self.rules.queued:
            raise UsageError("--rescale on is of dialect simai: found astra-sim-1; off would fit")
        # Imported here: few runs rescale their rows.
        from simcore.recovery.rescale import rescale_rows

        degrees = self.parameters.part(DegreeParameters)
        rescaling = rescale_rows(workload, degrees, self.parameters.microbatches)
        return workload if rescaling is None else rescaling.workload

    def _resolve_layout(self, workload: Workload, choice: ClusterChoice) -> tuple[Layout, list[Diagnostic]]:
        """Returns the layout of the run, and what was assumed for it."""
        degrees = self.parameters.part(DegreeParameters)
        if self.rules.queued:
            return policy_layout(workload, degrees, choice.npus, choice.first_dimension)
        if self.rules.is_one_stream:
            # It has no pipeline: the ranks of all stages are replicas.
            layout, assumed = resolve_layout(workload, replace(degrees, pp=1), choice.npus)
            stages = workload.header.pp or 1
            if stages > 1:
                message = f"pp {stages}: SimAI's simulator has no pipeline, its ranks are replicas"
                assumed.append(header_diagnostic(workload, "warning", "pp-ignored", message, "pp"))
            return layout, assumed
        degrees, diagnostics = with_stages_of_schedule(workload, self.parameters.schedule, degrees)
        npus = choice.npus
        if self.parameters.job_gpus is not None:
            from simcore.ranks import parse_ranks

            npus = len(parse_ranks("--job-gpus", self.parameters.job_gpus))
        layout, assumed = resolve_layout(workload, degrees, npus)
        return layout, [*diagnostics, *assumed]


def _check_recovered(workload: Workload, gpu: str | None) -> None:
    """Raises `UsageError` where a GPU is given for a file whose model is unknown."""
    if gpu is None:
        raise UsageError("--memory-limit of a file goes with --gpu: --gpu NAME|FILE would fit")
    # Imported here: few files come with a GPU.
    from simcore.recovery.rescale import recover_cached

    recovered = recover_cached(workload) if workload.dialect == "simai" else None
    if recovered is None or recovered.config is None:
        why = recovered.line() if recovered is not None else f"not AICB's: found {workload.format}"
        raise UsageError(f"--gpu: {printable(workload.path, 60)} is {why}; --model NAME|FILE would fit")


def _check_queued(model: NetworkModel, name: str) -> None:
    """Raises `UsageError` for a network model that dialect astra-sim-1, with its queues, cannot use."""
    if not model.queues:
        fitting = " or ".join(name for name, model in NETWORKS.items() if model.queues)
        raise UsageError(
            f"--network {printable(name, 60)}: dialect astra-sim-1 has its own queues, "
            f"{fitting} fits (--dialect simai takes the rows as SimAI does)"
        )


def _check_one_stream(network: str, ecmp: str | None, schedule: str | None, stages: int | None) -> None:
    """Raises `UsageError` for what dialect simai-sim, with one collective at a time, cannot use."""
    if network.partition(":")[0] != "flows":
        raise UsageError(
            f"--network {printable(network, 60)}: dialect simai-sim sends flows, flows fits "
            "(--dialect simai runs on every network)"
        )
    if ecmp == "balanced":
        raise UsageError("--ecmp balanced: dialect simai-sim runs every rank; simai would fit")
    if schedule not in (None, "layer-loop"):
        raise UsageError(
            f"--schedule {printable(str(schedule), 60)}: dialect simai-sim runs the rows once "
            "forward and once back, layer-loop fits"
        )
    if (stages or 1) != 1:
        raise UsageError(f"--pp {stages}: dialect simai-sim has no pipeline, 1 would fit")


def _paths_balanced(topology: Topology, reason: str) -> Diagnostic:
    """Returns a warning that flows take all equal paths, where a hash would be too long to simulate."""
    message = (
        f"paths balanced, as --ecmp balanced has them: {reason}; no collision on a path is seen "
        "(--network flows without --ecmp has SimAI's hash)"
    )
    brief = "paths balanced: flows under the hash are too many"
    return Diagnostic("warning", "paths-balanced", message, topology.name, brief=brief)


def _resolve_cluster(
    workload: Workload, choice: ClusterChoice, layout: Layout, parameters: ClusterParameters
) -> tuple[Cluster, tuple[Diagnostic, ...]]:
    """Returns the cluster of a run and the diagnostics on it.

    Without a cluster it is the default one, with a note. Where `--dim` alone is given, a note says what
    differs from the default cluster: a form that changes one figure gives all of them.
    """
    cluster = choice.cluster(layout.world)
    diagnostics = choice.diagnostics
    if choice.is_default:
        text = " x ".join(f"{dimension.kind} {dimension.size}" for dimension in cluster.dims)
        message = f"no cluster given: assuming {DEFAULT_PRESET} ({text})"
        brief = f"cluster {DEFAULT_PRESET}: none given"
        diagnostic = Diagnostic("note", "cluster-default", message, workload.path, brief=brief)
        diagnostics = (*diagnostics, diagnostic)
    elif parameters.dim and parameters.cluster is parameters.system is None and workload.maker is None:
        changed = changes_of_default(cluster.dims, layout.world)
        if changed is not None:
            message = f"no --cluster given: the dimensions are those of {DEFAULT_PRESET}, the default"
            message += f", but {', '.join(changed)}" if changed else ""
            brief = f"cluster {DEFAULT_PRESET}{', changed' * bool(changed)}"
            diagnostic = Diagnostic("note", "cluster-default", message, workload.path, brief=brief)
            diagnostics = (*diagnostics, diagnostic)
    return cluster, diagnostics

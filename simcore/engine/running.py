"""A program as it runs: its ops priced once, and the engine that program and network need."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from simcore.collectives.exact import scaled
from simcore.engine import Engine, Times
from simcore.engine.pricing import Prices
from simcore.folding import Folding
from simcore.networks import Network, Sharing
from simcore.networks.model import KnownPaths
from simcore.program import Program
from simcore.program.overrides import Overrides
from simcore.records import NamedTuple

if TYPE_CHECKING:
    from simcore.cluster import Cluster
    from simcore.engine.jitter import Jitter
    from simcore.engine.shared_queue import SharedNetworkEngine
    from simcore.networks.model import PortTransport


class DurationChange(NamedTuple):
    """A factor on some durations, rounded half to even. masks: per stage, 1 for each op that changes."""

    changed_ops: Sequence[bytes]
    factor: float


def is_fixed(program: Program, network: Network) -> bool:
    """Returns whether durations decide only when things happen: neither shared ports nor queues."""
    return not program.queued and not isinstance(network, Sharing)


def jitter_of(overrides: Overrides) -> Jitter | None:
    """Returns the jitter that the overrides define, None without."""
    if overrides.jitter == 0:
        return None
    from simcore.engine.jitter import Jitter

    return Jitter(overrides.jitter, overrides.seed)


def _sharing_engine(program: Program) -> type[SharedNetworkEngine]:
    """Returns the engine of a network whose transmissions share ports."""
    if program.after_ns:
        from simcore.engine.one_stream import OneStreamEngine

        return OneStreamEngine
    from simcore.engine.shared_queue import SharedNetworkEngine

    return SharedNetworkEngine


class RunPricing:
    """A program with its prices, which runs any number of times, with a change of them or without.

    Raises `UsageError` for more chunks than the queues of dialect astra-sim-1 can have.
    """

    def __init__(
        self,
        cluster: Cluster,
        network: Network,
        program: Program,
        folding: Folding,
        overrides: Overrides,
        jitter: Jitter | None = None,
        changes: Sequence[DurationChange] = (),
        other_job: RunPricing | None = None,
    ) -> None:
        """Prices the ops of a program. jitter: by default that of `overrides`; a run of the same program and
        folding may share it. changes: of durations that the run begins with, one after the other. other_job:
        another job, whose transmissions meet those of this one.
        """
        self._other_job = other_job
        # The times of a run that was one beside another.
        self.other_times: Times | None = None
        self._program = program
        self._folding = folding
        self._active_chunks = cluster.active_chunks
        # The transport of the last run, for a network that has ports or links.
        self.transport: PortTransport | None = None
        self._sharing = network if isinstance(network, Sharing) and not program.queued else None
        jitter = jitter or jitter_of(overrides)
        # What an op puts on ports or into queues: by rank class, with queues by group.
        self._traffic_of: Callable[[int, int], Any]
        self._durations: Sequence[Sequence[int]]
        if program.queued:
            # Imported here and below: most runs take the first engine alone.
            from simcore.compat.astra1_pricing import QueuePrices

            queued = QueuePrices(cluster, overrides, jitter, program, folding)
            queued.check_size()
            self._durations, self._traffic_of = queued.compute(), queued.collective
            self._begin_with(changes)
            return
        prices = Prices(network, overrides.compute_scale, overrides.comm_scale, jitter)
        self._durations = prices.durations(program, folding, self._sharing is not None)
        if self._sharing is not None:
            self._sharing.check_size(program, folding)
            self._traffic_of = prices.transmissions(program, folding, self._sharing)
        self._begin_with(changes)

    def _begin_with(self, changes: Sequence[DurationChange]) -> None:
        for change in changes:
            self._durations = self.durations(change)
            if self._program.queued or self._sharing is not None:
                self._traffic_of = self._changed_traffic(change)

    def durations(self, change: DurationChange | None = None) -> Sequence[Sequence[int]]:
        """Returns per rank class the ns of each op on an idle network; 0 for collectives in queues, and for
        what shares the network.
        """
        if change is None:
            return self._durations
        cache: dict[tuple[int, int], Sequence[int]] = {}
        changed: list[Sequence[int]] = []
        for rank_class, column in zip(self._folding.classes, self._durations, strict=True):
            # Equal classes of a stage share one column.
            key = (rank_class.stage, id(column))
            if key not in cache:
                other = {ns: scaled(ns, change.factor) for ns in set(column)}
                mask = change.changed_ops[rank_class.stage]
                scaled_ns = [other[ns] if changes else ns for ns, changes in zip(column, mask, strict=True)]
                cache[key] = array("q", scaled_ns) if isinstance(column, array) else scaled_ns
            changed.append(cache[key])
        return changed

    def times(self, cancelled: Callable[[], bool], change: DurationChange | None = None) -> Times:
        """Returns start and end of every op, from the engine. Raises `Cancelled`."""
        program, folding, durations = self._program, self._folding, self.durations(change)
        if program.queued:
            from simcore.compat.astra1_queues import DimensionQueues

            chunks = self._changed_traffic(change)
            return DimensionQueues(program, folding, durations, chunks, self._active_chunks).run(cancelled)
        if self._sharing is not None and self._other_job is not None:
            return self._run_together(self._other_job, cancelled, change)
        if self._sharing is not None:
            from simcore.engine.own_links import OwnLinks
            from simcore.engine.shared_queue import Traffic

            engine = _sharing_engine(program)
            transmissions = self._changed_traffic(change)
            while True:
                transport = self.transport = self._sharing.make_transport(folding)
                traffic = Traffic(transmissions, transport)
                if isinstance(transport, KnownPaths):
                    own_links = OwnLinks(program, folding, durations, transmissions, transport)
                    traffic = Traffic(transmissions, transport, own_links.groups)
                    times = engine(program, folding, own_links.durations, traffic, cancelled).run()
                    own_links.carry(times)
                else:
                    times = engine(program, folding, durations, traffic, cancelled).run()
                if not self._sharing.refine(transport):
                    return times
        return Engine(program, folding, durations, cancelled).run()

    def _run_together(
        self, other: RunPricing, cancelled: Callable[[], bool], change: DurationChange | None
    ) -> Times:
        """Returns the times of a run of which all transmissions meet those of another one."""
        from simcore.engine.shared_queue import Traffic, run_together
        from simcore.networks.flows import FlowNetwork

        assert isinstance(self._sharing, FlowNetwork)
        assert isinstance(other._sharing, FlowNetwork)
        while True:
            transports = self._sharing.make_transports(self._folding, other._sharing, other._folding)
            engines = []
            for run, transport, changed in zip((self, other), transports, (change, None), strict=True):
                run.transport = transport
                traffic = Traffic(run._changed_traffic(changed), transport)
                durations = run.durations(changed)
                engine = _sharing_engine(run._program)
                engines.append(engine(run._program, run._folding, durations, traffic, cancelled))
            times, other.other_times = run_together(engines)
            if not self._sharing.refine(transports[0]):
                return times

    def _changed_traffic(self, change: DurationChange | None) -> Callable[[int, int], Any]:
        """Returns the function that gives what an op moves, by rank class, with queues by group."""
        unchanged, folding = self._traffic_of, self._folding
        if change is None:
            return unchanged
        # With queues all ranks run one program.
        queued = self._program.queued
        stages = (
            [0] * len(folding.group_classes)
            if queued
            else [rank_class.stage for rank_class in folding.classes]
        )
        masks = [change.changed_ops[stage] for stage in stages]

        def changed_traffic(index: int, op: int) -> Any:
            built = unchanged(index, op)
            return built.scaled(change.factor) if masks[index][op] else built

        return changed_traffic

"""The ports of a simulated run, with what each flow was sent for."""

from __future__ import annotations

import os
from functools import cache

from simcore.analysis.what_if.links import congestion_changes, flow_changes, link_changes
from simcore.flows.log import Transmission
from simcore.networks.model import GroupCollective
from simcore.program.ops import LANE_OF_STREAM, CollectiveCost, TransferCost
from simcore.ranks import RankSet, parse_ranks
from simcore.simulation import Simulation, simulate
from simcore.trace.contexts import JobFigures, TwoJobs
from simcore.trace.ports import Ports, Purpose, ports_of_flows, ports_of_links
from simcore.units import plural
from simcore.workload.model import base_name


def find_ports(simulation: Simulation) -> Ports:
    """Returns the ports of a run on a network with links; with another job beside it, until both are over."""
    if simulation.flow_report is None:
        return ports_of_links(simulation.links or (), simulation.cluster.dims, simulation.step_time_ns)
    jobs = [simulation] if simulation.other_job is None else [simulation, simulation.other_job]

    @cache
    def starts_of(job: int, rank_class: int, stream: int) -> dict[int, int]:
        """Returns the op of a class on a stream by its start."""
        timeline = jobs[job].timeline
        ops, starts = timeline.stage_program(rank_class).ops, timeline.times.start[rank_class]
        return {starts[op]: op for op, lane in enumerate(ops.stream) if lane == stream}

    def find_purpose(transmission: Transmission) -> Purpose | None:
        class_id, job = transmission.rank_class, transmission.job
        op = starts_of(job, class_id, transmission.stream).get(transmission.start_ns)
        if op is None:
            return None
        timeline, names = jobs[job].timeline, jobs[job].workload.name
        ops, times = timeline.stage_program(class_id).ops, timeline.times
        layer = base_name(names[ops.row[op]]) if 0 <= ops.row[op] < len(names) else ""
        if job:
            layer += f" of {os.path.basename(jobs[job].workload.path)}"
        group, start_ns = LANE_OF_STREAM[transmission.stream], times.start[class_id][op]
        return Purpose(group, layer, class_id, start_ns, times.end[class_id][op], op, job)

    topology = simulation.cluster.topology
    assert topology is not None
    return ports_of_flows(
        simulation.flow_report,
        topology,
        max(job.step_time_ns for job in jobs),
        find_purpose,
        lambda ends: [
            *link_changes(simulation, *ends),
            *flow_changes(simulation),
            *congestion_changes(simulation),
        ],
    )


def find_two_jobs(simulation: Simulation, ports: Ports) -> TwoJobs | None:
    """Returns how two jobs slow each other down; None of a run without another one. Each is run alone."""
    other = simulation.other_job
    if other is None:
        return None
    jobs = []
    for job in (simulation, other):
        # Named, as both jobs are flows of all ranks however many these are.
        alone = {"other_job": None, "other_job_gpus": None, "network": job.setup.network_name}
        setup = job.setup.with_changes(**alone)
        gpus, stated_gpus = RankSet.of(range(job.layout.world)), job.parameters.job_gpus
        gpus = gpus if stated_gpus is None else parse_ranks("--job-gpus", stated_gpus)
        alone_ns = simulate(setup.source, setup.parameters).step_time_ns
        assumed = _job_words(job) if job is other else ""
        jobs.append(JobFigures(job.workload.path, gpus, job.step_time_ns, alone_ns, assumed))
    shared_ports = tuple(index for index in ports.by_heat if len(ports.jobs(index)) > 1)
    return TwoJobs((jobs[0], jobs[1]), shared_ports)


def _job_words(job: Simulation) -> str:
    """Returns the degrees, the schedule and the micro-batches of a run."""
    layout, program = job.layout, job.program
    count = plural(program.microbatches, "micro-batch")
    return f"tp {layout.tp} x dp {layout.dp} x pp {layout.pp}, {program.schedule}, {count}"


def find_alone_ns(simulation: Simulation, class_id: int, op: int) -> int | None:
    """Returns what a collective or transfer takes alone on the idle network; None of any other op."""
    timeline, network = simulation.timeline, simulation.network
    cost = simulation.program.costs[timeline.stage_program(class_id).ops.cost[op]]
    if isinstance(cost, CollectiveCost) and not cost.ns:
        group = timeline.folding.group_classes[timeline.groups_of(class_id)[cost.group]]
        alone_ns = network.collective_ns(GroupCollective.of(group, cost))
        return cost.share_of(alone_ns) if cost.split_count > 1 else alone_ns
    if isinstance(cost, TransferCost):
        link = timeline.classes[class_id].links[cost.step]
        return network.transfer_ns(link.shape, link.ports, cost.bytes)
    return None

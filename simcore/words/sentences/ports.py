"""The sentence on the port of a topology that most holds back flows which share it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from simcore.collectives import NAMES
from simcore.diagnostics import printable
from simcore.program.ops import CollectiveCost
from simcore.units import change_percent, duration, format_number, percent, plural
from simcore.words.sentences.model import RunSums, Weighed

if TYPE_CHECKING:
    from simcore.simulation import Simulation
    from simcore.trace.ports import Ports, Purpose, Send

# Below this excess over the time alone sharing costs nothing worth a figure.
_WORTH = 1.01


class OtherJob(Weighed, frozen=True, kw_only=True):
    """What another job on the same topology costs, `ns`."""

    rule = "other-job"

    other: str
    """The file of the other job."""
    alone_ns: int
    """The step without the other job."""
    other_ns: int
    """The step of the other job."""
    other_alone_ns: int
    other_assumed: str
    """Its degrees and schedule, those of its file."""
    shared_ports: int
    """How many ports carried flows of both."""
    hottest: str
    """The hottest of these, "" where there is none."""

    @property
    def text(self) -> str:
        name = printable(os.path.basename(self.other), 40)
        steps = ((self.step_ns, self.alone_ns), (self.other_ns, self.other_alone_ns))
        changes = [change_percent(alone, together) or "no change" for together, alone in steps]
        own, others = (
            f"{duration(together)}, alone {duration(alone)} ({change})"
            for (together, alone), change in zip(steps, changes, strict=True)
        )
        shared = f"{plural(self.shared_ports, 'port')} carried flows of both"
        shared = f"{shared}, {self.hottest} most" if self.hottest else "no port carried flows of both"
        other_job = f"that job, as its file has it ({self.other_assumed}),"
        return f"Beside {name} the step is {own}; {other_job} takes {others}; {shared}."


def find_other_job(run: RunSums) -> Iterator[OtherJob]:
    """Yields a sentence on a run with another job beside it."""
    two_jobs, ports = run.results.two_jobs, run.results.ports
    if two_jobs is None or ports is None:
        return
    own, other = two_jobs.jobs
    yield OtherJob(
        step_ns=run.step_ns,
        ns=own.together_ns - own.alone_ns,
        other=other.path,
        alone_ns=own.alone_ns,
        other_ns=other.together_ns,
        other_alone_ns=other.alone_ns,
        other_assumed=other.assumed,
        shared_ports=len(two_jobs.shared_ports),
        hottest=ports.all[two_jobs.shared_ports[0]].name if two_jobs.shared_ports else "",
    )


class SharedPort(Weighed, frozen=True, kw_only=True):
    """The port that holds back flows that share it, for `ns` of the step."""

    rule = "shared-port"

    port: str
    is_own: bool
    """Whether a GPU sends on it: the flows are its own."""
    flows: int
    """How many flows of one group and layer share it at its fullest."""
    of_flows: int
    """How many there are then on all ports of its tier."""
    collective: str
    """`all-reduce`, `transfer`."""
    group: str
    layer: str
    took_ns: int | None
    """The end of the slowest of their collectives, ns from its begin; None where it is as fast as alone."""
    alone_ns: int | None
    """What that takes alone on the idle network."""
    oversubscribed: float | None
    """Rate from below over that to above of the switches that it joins; None where that is not above 1."""

    @property
    def text(self) -> str:
        what = f"the {self.group} {self.collective} {printable(self.layer, 40)}".strip()
        count = f"{self.flows} of {plural(self.of_flows, 'flow')}"
        port = f"{self.port}, that GPU's own port" if self.is_own else self.port
        text = f"{count} of {what} share {port}, full {percent(self.ns, self.step_ns)} % of the step"
        if self.took_ns is not None and self.alone_ns is not None:
            change = change_percent(self.alone_ns, self.took_ns)
            took = f"{duration(self.took_ns)}, alone {duration(self.alone_ns)} ({change})"
            text += f": the group that it delays most takes {took}"
        if self.oversubscribed is not None:
            ratio = format_number(round(self.oversubscribed, 2))
            text += f"; its switches are oversubscribed {ratio} to 1"
        return f"{text}."


def find_shared_port(run: RunSums) -> Iterator[SharedPort]:
    """Yields a sentence on a run under flows where a shared port outside servers is full for long."""
    ports = run.results.ports
    index = None if ports is None or not ports.has_purposes else ports.hottest_shared
    if ports is None or index is None or not run.is_worth_saying(ports.all[index].held_ns):
        return
    time_ns = ports.busiest_ns(index)
    sends = ports.sends_at(index, time_ns)
    group, layer = _most_common(sends)
    same = [send for send in sends if send.purpose is not None and send.purpose[:2] == (group, layer)]
    took_ns, alone_ns = _find_slowest(run, same)
    yield SharedPort(
        step_ns=run.step_ns,
        ns=ports.all[index].held_ns,
        port=ports.all[index].name,
        is_own=ports.all[index].is_own,
        flows=len(same),
        of_flows=_count_in_tier(ports, index, time_ns, (group, layer)),
        collective=_collective_name(run, same),
        group=group,
        layer=layer,
        took_ns=took_ns,
        alone_ns=alone_ns,
        oversubscribed=_find_oversubscription(run, ports.all[index].ends),
    )


def _most_common(sends: Sequence[Send]) -> tuple[str, str]:
    """Returns the group and layer of most flows."""
    counts: dict[tuple[str, str], int] = {}
    for send in sends:
        if send.purpose is not None:
            key = send.purpose.group, send.purpose.layer
            counts[key] = counts.get(key, 0) + 1
    return max(counts, key=lambda key: counts[key], default=("", ""))


def _collective_name(run: RunSums, sends: Sequence[Send]) -> str:
    """Returns the name of the collective of some flows, `transfer` of a pipeline."""
    for send in sends:
        if send.purpose is not None:
            simulation = _job_of(run, send.purpose)
            ops = simulation.timeline.stage_program(send.purpose.track_id).ops
            cost = simulation.program.costs[ops.cost[send.purpose.op]]
            if isinstance(cost, CollectiveCost):
                return NAMES[cost.collective]
    return "transfer"


def _job_of(run: RunSums, purpose: Purpose) -> Simulation:
    """Returns the run of the job that a flow is of."""
    other = run.simulation.other_job
    return run.simulation if other is None or not purpose.job else other


def _find_slowest(run: RunSums, sends: Sequence[Send]) -> tuple[int | None, int | None]:
    """Returns the duration of the collective of some flows that exceeds its time alone most, and that time;
    None of both where none exceeds it.
    """
    # Imported here: only a run under flows has such a collective.
    from simcore.analysis.ports import find_alone_ns

    worst: tuple[int | None, int | None] = None, None
    worst_ratio = _WORTH
    for purpose in dict.fromkeys(send.purpose for send in sends):
        if purpose is None:
            continue
        alone_ns = find_alone_ns(_job_of(run, purpose), purpose.track_id, purpose.op)
        took_ns = purpose.end_ns - purpose.start_ns
        if alone_ns and took_ns / alone_ns > worst_ratio:
            worst_ratio, worst = took_ns / alone_ns, (took_ns, alone_ns)
    return worst


def _count_in_tier(ports: Ports, index: int, time_ns: int, what: tuple[str, str]) -> int:
    """Returns how many flows of a group and layer are on the ports of a port's tier at a time."""
    return sum(
        1
        for other in ports.tiers[ports.all[index].tier].ports
        for send in ports.sends_at(other, time_ns)
        if send.purpose is not None and send.purpose[:2] == what
    )


def _find_oversubscription(run: RunSums, ends: tuple[int, int]) -> float | None:
    """Returns the rate from below over that to above of the tier whose switches a port joins to the next."""
    topology = run.simulation.cluster.topology
    if topology is None:
        return None
    tiers = topology.tiers()
    lower, upper = sorted(tiers.get(node, 0) for node in ends)
    rates = topology.oversubscription().get(lower) if lower and upper > lower else None
    return None if rates is None else rates[0] / rates[1]

"""Runs small enough to book by hand: what each rank does, segment by segment."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from simcore.analysis.span_words import OpFacts, find_op_facts
from simcore.parameters import Parameters
from simcore.runs.simulated import SimulatedRun
from simcore.simulation import Simulation, simulate
from simcore.sources.simulated import ACCOUNTS
from tests.strategies import Row, make_workload
from tests.stream_spans import stream_spans

# 1 B takes 1 ns, a hop 5 ns, a message over a switch two hops; no delay, no time for reductions.
PLAIN = {"dim": ("switch:8:1:5",), "endpoint_delay": 0, "local_mem_bw": 1e9}


def pair_ns(size: int) -> int:
    """An all-reduce of `size` bytes between two ranks on PLAIN: half the bytes there, half back."""
    return 2 * (10 + size // 2)


def run(rows: Sequence[Row], degrees: dict[str, Any], **parameters: Any) -> Simulation:
    """One step of `rows` with tp, ep, dp and pp as given, 1 where they are not."""
    tp, ep, dp, pp = (degrees.get(name, 1) for name in ("tp", "ep", "dp", "pp"))
    header = {"pp_comm": 0, **{name: value for name, value in degrees.items() if name != "dp"}}
    workload = make_workload(rows, **header | {"tp": tp, "ep": ep, "pp": pp, "all_gpus": tp * dp * pp})
    return simulate(workload, Parameters(**PLAIN | parameters))


def booked(simulation: Simulation, rank: int) -> list[tuple[int, int, str]]:
    """(begin, end, account) of each segment of a rank."""
    accounts = SimulatedRun(simulation).accounts[simulation.timeline.folding.class_of(rank)]
    names = [ACCOUNTS[account] for account in accounts.account]
    return [(*edges, name) for edges, name in zip(pairwise(accounts.edge), names, strict=True)]


def spans(simulation: Simulation, rank: int, stream: str) -> list[tuple[int, int]]:
    """(start, end) of each span of one stream of a rank."""
    number = simulation.timeline.folding.class_of(rank)
    return [(span.start, span.end) for span in stream_spans(simulation.timeline, number, stream)]


def facts(simulation: Simulation, number: int, op: int) -> OpFacts:
    """What is known of op `op` of a class, which an account names."""
    found = find_op_facts(simulation, number, op)
    assert found is not None
    return found

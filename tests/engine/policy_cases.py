"""Generated texts of ASTRA-sim 1.0's policies, each as wltui and as the reference run it."""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

from hypothesis import strategies as st

from simcore.parameters import Parameters
from simcore.simulation import Simulation, simulate
from tests.engine.reference_policies import Link, Reference, Setting
from tests.workload.texts import read

POLICIES = (
    "DATA", "MODEL", "HYBRID_DATA_MODEL", "HYBRID_MODEL_DATA", "HYBRID_TRANSFORMER",
    "HYBRID_TRANSFORMER_FWD_IN_BCKWD", "HYBRID_DLRM", "HYBRID_DLRM_ENHANCED", "HYBRID_CUSTOMIZED",
    "MICRO", "DISTRIBUTED_INFERENCE",
)  # fmt: skip
ROW_POLICIES = ("DATA", "MODEL", "HYBRID_DATA_MODEL", "HYBRID_MODEL_DATA", "MICRO", "DISTRIBUTED_INFERENCE")
_KINDS = {"Ring": "ring", "FullyConnected": "fully-connected", "Switch": "switch"}
_NAMES = ("NONE", "ALLREDUCE", "ALLGATHER", "REDUCESCATTER", "ALLTOALL")


class PolicyCase(NamedTuple):
    """A text, and the same setting for wltui and for the reference."""

    text: str
    parameters: Parameters
    setting: Setting

    def simulated(self) -> Simulation:
        return simulate(read(self.text, "made.txt"), self.parameters)

    def referred(self) -> Reference:
        return Reference(self.text, self.setting).run()


@st.composite
def _row(draw: st.DrawFn, number: int, policy: str) -> str:
    """Times and sizes of one magnitude: collectives queue behind each other, and ties happen."""
    ns = st.sampled_from([0, 1, 100, 700, 2000]) | st.integers(0, 4000)
    size = st.sampled_from([0, 1, 7, 4096, 30000]) | st.integers(0, 60000)
    cells = [
        f"{draw(ns)} {draw(st.sampled_from(_NAMES[1:] if draw(st.integers(0, 3)) else _NAMES))} {draw(size)}"
        for _ in range(3)
    ]
    own = f" {draw(st.sampled_from(ROW_POLICIES))}" if policy == "HYBRID_CUSTOMIZED" else ""
    # A last cell of 100 in every row would be SimAI's.
    return f"l{number} -1 {' '.join(cells)} {draw(st.sampled_from([0, 1, 5, 50, 1000]))}{own}"


@st.composite
def policy_cases(draw: st.DrawFn, faults: bool = False) -> PolicyCase:
    """A policy on one to three dimensions with ring algorithms, passes and chunks."""
    # In a file of several policies groups of all kinds meet in the queues.
    policy = draw(st.sampled_from((*POLICIES, *["HYBRID_CUSTOMIZED"] * 6 * faults)))
    several = [(2, 2), (2, 3), (4, 2), (3, 2), (2, 2, 2)]
    sizes = draw(st.sampled_from([*several, *[(2,), (4,), (6,), (8,)][: 1 if faults else 4]]))
    world = 1
    for size in sizes:
        world *= size
    # GB/s and the same as a fraction: 7.5 bytes a ns.
    speeds = draw(st.lists(st.sampled_from([1, 3, 15, 80]), min_size=len(sizes), max_size=len(sizes)))
    delays = draw(st.lists(st.sampled_from([0, 3, 400]), min_size=len(sizes), max_size=len(sizes)))
    kinds = draw(st.lists(st.sampled_from(list(_KINDS)), min_size=len(sizes), max_size=len(sizes)))
    links = [
        Link(kind, size, Fraction(speed, 2), delay)
        for kind, size, speed, delay in zip(kinds, sizes, speeds, delays, strict=True)
    ]
    count = draw(st.integers(2 if faults else 1, 4))
    some = st.lists(st.integers(0, count - 1), max_size=2, unique=True)
    header = ""
    if policy.startswith("HYBRID_DLRM"):
        header = f" {draw(st.integers(0, count - 1))}"
    elif policy.startswith("HYBRID_TRANSFORMER"):
        header = f" model_parallel_NPU_group: {draw(st.sampled_from(_groups(sizes)))}"
        if policy.endswith("BCKWD"):
            for key in ("checkpoints", "checkpoint_initiates"):
                rows = draw(some)
                header += f" {key}: {' '.join(map(str, [len(rows), *rows]))}"
    rows = [draw(_row(number, policy)) for number in range(count)]
    text = "\n".join([policy + header, str(count), *rows]) + "\n"
    setting = Setting(
        links,
        endpoint_delay=draw(st.sampled_from([0, 10])),
        memory=draw(st.sampled_from([50, 500_000])),
        splits=draw(st.sampled_from([1, 1, 2, 3, 5])),
        active=draw(st.sampled_from([1, 1, 2])),
        passes=draw(st.integers(1, 3)),
    )
    slow_rank, slow_link = (), ()
    if faults:
        ranks = st.integers(0, world - 1)
        for rank in draw(st.lists(ranks, min_size=1, max_size=2, unique=True)):
            setting.slow_ranks[rank] = draw(st.sampled_from([2, 3, 6]))
        for place in draw(
            st.lists(st.tuples(st.integers(0, len(sizes) - 1), ranks), max_size=2, unique=True)
        ):
            setting.slow_links[place] = draw(st.sampled_from([Fraction(1, 2), Fraction(1, 4)]))
        slow_rank = tuple(f"{rank}={factor}" for rank, factor in setting.slow_ranks.items())
        slow_link = tuple(
            f"{link}:{rank}={float(factor)}" for (link, rank), factor in setting.slow_links.items()
        )
    parameters = Parameters(
        dim=tuple(
            f"{_KINDS[link.kind]}:{link.size}:{float(link.bandwidth)}:{link.latency}" for link in links
        ),
        algorithm=tuple(f"{index}=ring" for index in range(len(sizes))),
        endpoint_delay=setting.endpoint_delay,
        local_mem_bw=float(setting.memory),
        splits=setting.splits,
        active_chunks=setting.active,
        passes=setting.passes,
        slow_rank=slow_rank,
        slow_link=slow_link,
    )
    return PolicyCase(text, parameters, setting)


def _groups(sizes: tuple[int, ...]) -> list[int]:
    """Model groups that take whole dimensions, or cut one that they divide."""
    found, reach = [], 1
    for size in sizes:
        found += [reach * part for part in range(1, size + 1) if size % part == 0]
        reach *= size
    return sorted(set(found))

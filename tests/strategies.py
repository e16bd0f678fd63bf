"""Workloads for tests: a small builder for hand-made ones, and hypothesis strategies.

Generated times are of one magnitude: compute, collectives and transfers take up to a few
microseconds each, so that streams queue, members wait for each other, and ties happen.

Making a strategy takes longer than drawing from it: those that stand inside others are made once.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

from hypothesis import strategies as st

from simcore.cluster import Cluster, ClusterParameters, choose_cluster
from simcore.parameters import Parameters
from simcore.workload import Cells, Header, Workload

COLLECTIVES = ("ALLREDUCE", "ALLGATHER", "REDUCESCATTER", "ALLTOALL")


class Cell(NamedTuple):
    """Compute ns, then a collective of `bytes` over a group of a kind."""

    ns: int = 0
    collective: str | None = None
    group: str | None = None
    bytes: int = 0


class Row(NamedTuple):
    """One row of a workload file."""

    name: str
    fwd: Cell = Cell()
    ig: Cell = Cell()
    wg: Cell = Cell()


def layer(name: str, fwd_ns: int = 0, ig_ns: int = 0, wg_ns: int = 0) -> Row:
    """A row that only computes."""
    return Row(name, Cell(fwd_ns), Cell(ig_ns), Cell(wg_ns))


def make_workload(rows: Sequence[Row], **header: Any) -> Workload:
    """A workload with these rows, from line 3, and a header with these keys."""
    columns = [Cells(), Cells(), Cells()]
    for row in rows:
        for cells, cell in zip(columns, row[1:], strict=True):
            cells.compute_ns.append(cell.ns)
            cells.collective.append(cell.collective)
            cells.group.append(cell.group)  # type: ignore[arg-type]
            cells.bytes.append(cell.bytes)
    return Workload(
        path="made.txt",
        format="simai",
        policy="HYBRID_TRANSFORMER_FWD_IN_BCKWD",
        dialect="simai",
        header=Header(**header),
        name=[row.name for row in rows],
        line=array("q", range(3, 3 + len(rows))),
        fwd=columns[0],
        ig=columns[1],
        wg=columns[2],
        process_ns=array("q", [100] * len(rows)),
        declared_rows=len(rows),
    )


def default_cluster(world: int) -> Cluster:
    """The cluster that a run of `world` ranks has where none is given."""
    return choose_cluster(ClusterParameters()).cluster(world)


class Case(NamedTuple):
    """What one generated run starts from."""

    workload: Workload
    parameters: Parameters


class Degrees(NamedTuple):
    """A generated layout."""

    tp: int
    ep: int
    dp: int
    pp: int

    @property
    def world(self) -> int:
        return self.tp * self.dp * self.pp


def expert_degrees(tp: int, dp: int) -> list[int]:
    """Every ep that fits: it divides dp, or else tp*dp."""
    return [ep for ep in range(1, tp * dp + 1) if dp % ep == 0 or tp * dp % ep == 0]


def every_layout(most_ranks: int, most_stages: int = 4) -> list[Degrees]:
    """All degrees of parallelism with at most `most_ranks` ranks."""
    return [
        Degrees(tp, ep, dp, pp)
        for pp in range(1, most_stages + 1)
        for tp in range(1, 5)
        for dp in range(1, 7)
        for ep in expert_degrees(tp, dp)
        if tp * dp * pp <= most_ranks
    ]


@cache
def degrees(most_ranks: int = 24) -> st.SearchStrategy[Degrees]:
    """Degrees of parallelism, all equally likely: drawn one by one they would mostly be small."""
    return st.sampled_from(every_layout(most_ranks))


_KINDS = st.sampled_from(["switch", "ring", "fully-connected"])
_SPEEDS, _DELAYS = st.sampled_from(["1", "2.5", "7", "40"]), st.sampled_from(["0", "3", "50", "400"])
_SIZES = st.sampled_from([(), (2,), (3,), (4,), (5,), (6,), (2, 3), (3, 2), (5, 2), (4, 2)])
_SPARE = st.integers(0, 2)


@st.composite
def dimensions(draw: st.DrawFn, world: int) -> tuple[str, ...]:
    """`--dim` values with room for `world` ranks; most sizes align with no layout."""
    sizes = list(draw(_SIZES))
    room = 1
    for size in sizes:
        room *= size
    sizes.append(-(-world // room) + draw(_SPARE))
    return tuple(f"{draw(_KINDS)}:{size}:{draw(_SPEEDS)}:{draw(_DELAYS)}" for size in sizes)


@cache
def cells(groups: tuple[str, ...]) -> st.SearchStrategy[Cell]:
    """Cells that compute, communicate, do both, or neither; most do both."""
    ns = st.sampled_from([0, 1, 7, 100, 400, 1500]) | st.integers(0, 3000)
    size = st.sampled_from([0, 1, 100, 3000]) | st.integers(0, 20000)
    busy = st.tuples(ns, st.sampled_from(COLLECTIVES), st.sampled_from(groups), size)
    return ns.map(Cell) | busy.map(Cell._make) | busy.map(Cell._make)


@cache
def rows(
    names: tuple[str, ...], forward_groups: tuple[str, ...], gradient_groups: tuple[str, ...]
) -> st.SearchStrategy[Row]:
    """Rows with one of these names."""
    forward = cells(forward_groups)
    return st.tuples(st.sampled_from(names), forward, forward, cells(gradient_groups)).map(Row._make)


PROLOGUE = (
    "grad_gather",
    "grad_param_comm",
    "grad_param_compute",
    "layernorm",
    "embedding_grads",
    "moe_grad_norm1",
)
LAYERS = ("attention_column", "mlp_row", "moe_layer", "final_column")


@cache
def _counts(least: int, most: int) -> st.SearchStrategy[int]:
    return st.sampled_from(range(least, most + 1))


@st.composite
def workload_rows(draw: st.DrawFn, forward: tuple[str, ...], gradient: tuple[str, ...]) -> list[Row]:
    """Prologue, one to three blocks, loss, tail: any of them but the blocks may be missing."""

    def some(names: tuple[str, ...], least: int, most: int) -> list[Row]:
        row = rows(names, forward, gradient)
        return [draw(row) for _ in range(draw(_counts(least, most)))]

    found = some(PROLOGUE, 0, 4)
    for _ in range(draw(_counts(1, 3))):
        found += [*some(("embedding_layer",), 1, 1), *some(LAYERS, 1, 3)]
    return [*found, *some(("cross_entropy1",), 0, 1), *some(("optimizer1", "final_norm"), 0, 2)]


_SCHEDULES = st.sampled_from(["1f1b", "1f1b", "layer-loop"])
# Few kinds let collectives queue on one stream, many let streams run beside each other.
_GRADIENT_GROUPS = st.sampled_from([("dp",), ("dp", "dp_ep"), ("dp", "dp_ep", "tp", "ep", "all")])
# A forward collective over all stages would wait for a stage that waits for it in turn.
_EVERY = ("tp", "ep", "dp", "dp_ep", "all")
_FORWARD_GROUPS = {
    schedule: st.sampled_from([("tp",), ("tp", "ep"), groups])
    for schedule, groups in (("1f1b", _EVERY[:4]), ("layer-loop", _EVERY))
}
_TRANSFERS = st.none() | st.integers(0, 6000)
_ORDERS = st.sampled_from(["tp-ep-dp-pp", "tp-pp-dp"])
_MICROBATCHES = st.none() | st.integers(1, 5)
_ENDPOINT_DELAYS = st.sampled_from([0, 10])
_SCALES = st.sampled_from([1.0, 1.0, 0.0, 0.5, 1.3])


@cache
def _some_rows(count: int) -> st.SearchStrategy[tuple[int, ...]]:
    return st.lists(st.integers(0, count - 1), max_size=2).map(tuple)


@st.composite
def cases(draw: st.DrawFn, most_ranks: int = 24) -> Case:
    """A workload with a layout, a cluster, a schedule and scales, all of them small."""
    layout = draw(degrees(most_ranks))
    schedule = draw(_SCHEDULES)
    gradient, forward = draw(_GRADIENT_GROUPS), draw(_FORWARD_GROUPS[schedule])
    found = draw(workload_rows(forward, gradient))
    some_rows = _some_rows(len(found))
    workload = make_workload(
        found,
        tp=layout.tp,
        ep=layout.ep,
        pp=layout.pp,
        all_gpus=layout.world,
        pp_comm=draw(_TRANSFERS),
        checkpoints=draw(some_rows),
        checkpoint_initiates=draw(some_rows),
    )
    parameters = Parameters(
        rank_order=draw(_ORDERS),
        schedule=schedule,
        microbatches=draw(_MICROBATCHES) if schedule == "1f1b" else None,
        dim=draw(dimensions(layout.world)),
        endpoint_delay=draw(_ENDPOINT_DELAYS),
        compute_scale=draw(_SCALES),
        comm_scale=draw(_SCALES),
    )
    return Case(workload, parameters)

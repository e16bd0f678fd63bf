"""Steps that are made up: a small simulation of its own writes them as traces, with any durations scaled.

It knows nothing of the replay, so that what it says a step takes with twice the compute is a second
opinion. Ranks in order tp-dp-pp, one forward and backward of each micro-batch in GPipe order.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from simcore.measured import MeasuredRun, open_directory, read_run

from .traces import STAMP, Op, Sub, later, write_set


@dataclass
class Action:
    """What a rank does: `own` and `gap` last ns; `send` and `recv` are by key; `meet` lasts ns for all, and
    `tail` more for this rank; `launch` and `await` are one that runs beside what lies between them, behind
    the collective `queue` of its group. op: the operation that it is (a part of).
    """

    what: str
    ns: int = 0
    op: str = ""
    key: tuple[object, ...] = ()
    tail: int = 0
    batch: int = 0
    group: str | None = None
    sub: str | None = None
    queue: tuple[object, ...] = ()


@dataclass(frozen=True)
class Layout:
    """asynchronous: whether backward steps launch two collectives and compute on."""

    tp: int
    dp: int
    pp: int
    microbatches: int
    asynchronous: bool = False

    @property
    def world(self) -> int:
        return self.tp * self.dp * self.pp


@dataclass
class Factors:
    """On compute (of all or of single ranks), on communication, on gaps."""

    compute: int = 1
    comm: int = 1
    gaps: int = 1
    ranks: dict[int, int] = field(default_factory=dict)


class _Rank:
    """Makes what one rank does."""

    def __init__(
        self, layout: Layout, rank: int, random: Random, lengths: dict[tuple[object, ...], int]
    ) -> None:
        self.layout = layout
        self.rank = rank
        self.random = random
        self.lengths = lengths
        self.tp, self.dp = rank % layout.tp, rank // layout.tp % layout.dp
        self.stage = rank // layout.tp // layout.dp
        self.todo = [Action("gap", self.some(50) if rank else 0)]

    def some(self, most_us: int) -> int:
        """A duration of whole us, ns."""
        return self.random.randint(1, most_us) * 1000

    def gap(self) -> None:
        self.todo.append(Action("gap", self.some(30)))

    def meet(
        self, op: str, key: tuple[object, ...], group: str, batch: int = 0, sub: str | None = None
    ) -> None:
        """A collective, as long for all its members; every third rank leaves later."""
        length = self.lengths.setdefault(key, self.some(40))
        tail = self.some(5) if self.rank % 3 == 2 else 0
        self.todo.append(Action("meet", length, op, key, tail, batch, group, sub))

    def compute(self, op: str, batch: int) -> None:
        """A forward or backward step, with a collective of the tensor-parallel group inside."""
        for part in range(self.random.randint(1, 3)):
            self.todo.append(Action("own", self.some(400), op, batch=batch))
            if self.layout.tp > 1 and part == 0:
                self.meet(op, ("tp", self.stage, self.dp, op, batch), "tp", batch, "linear")
        if self.layout.asynchronous and op == "backward_step":
            self.beside(op, batch)
        self.gap()

    def beside(self, op: str, batch: int) -> None:
        """Two collectives in the queue of their group, with compute before, between and beside them."""
        keys = [("tp", self.stage, self.dp, op, batch, sub) for sub in ("first_async", "second_async")]
        lengths = [self.lengths.setdefault(key, self.some(600)) for key in keys]
        for what in ("launch", "await"):
            for key, length, queue in zip(keys, lengths, ((), keys[0]), strict=True):
                self.todo.append(Action("own", self.some(400), op, batch=batch))
                sub = key[-1] if what == "await" else None
                self.todo.append(Action(what, length, op, key, batch=batch, sub=sub, queue=queue))

    def whole(self) -> list[Action]:
        """The step."""
        layout, stage = self.layout, self.stage
        for name, step in (("forward", 1), ("backward", -1)):
            for batch in range(layout.microbatches):
                lane = (name, batch, self.tp, self.dp)
                if 0 <= stage - step < layout.pp:
                    self.todo.append(
                        Action("recv", self.some(10), f"recv_{name}", (*lane, stage - step), batch=batch)
                    )
                    self.gap()
                self.compute(f"{name}_step", batch)
                if 0 <= stage + step < layout.pp:
                    self.todo.append(
                        Action("send", self.some(60), f"send_{name}", (*lane, stage), batch=batch)
                    )
                    self.gap()
        if layout.dp > 1:
            self.meet("dp_allreduce", ("dp", self.tp, stage), "dp")
        if layout.pp > 1 and stage in (0, layout.pp - 1):
            self.meet("ep_allreduce", ("ep", self.tp, self.dp), "ep")
        self.gap()
        self.todo.append(Action("meet", 0, "optimizer_step", ("mp", self.dp)))
        self.todo.append(Action("own", self.some(300), "optimizer_step"))
        return self.todo


def actions(layout: Layout, random: Random) -> list[list[Action]]:
    """What every rank of a step does, with durations of whole us."""
    lengths: dict[tuple[object, ...], int] = {}
    return [_Rank(layout, rank, random, lengths).whole() for rank in range(layout.world)]


Times = list[list[tuple[int, int]]]


def simulated(steps: list[list[Action]], factors: Factors) -> Times:
    """(start, end) of every action, found by trying all ranks until nothing changes."""
    times: Times = [[] for _ in steps]
    members: dict[tuple[object, ...], int] = {}
    for todo in steps:
        for action in todo:
            if action.what in ("meet", "launch"):
                members[action.key] = members.get(action.key, 0) + 1
    came: dict[tuple[object, ...], dict[int, int]] = {}
    arrived: dict[tuple[object, ...], int] = {}
    done: dict[tuple[object, ...], int] = {}
    moved = True
    while moved:
        moved = False
        for rank, todo in enumerate(steps):
            while len(times[rank]) < len(todo):
                action = todo[len(times[rank])]
                now = times[rank][-1][1] if times[rank] else 0
                over: int | None = now
                if action.what == "own":
                    over = now + action.ns * factors.compute * factors.ranks.get(rank, 1)
                elif action.what == "gap":
                    over = now + action.ns * (factors.gaps if times[rank] else 1)
                elif action.what == "send":
                    over = arrived[action.key] = now + action.ns * factors.comm
                elif action.what == "recv":
                    there = arrived.get(action.key)
                    over = None if there is None else max(now, there) + action.ns * factors.comm
                elif action.what == "launch":
                    came.setdefault(action.key, {})[rank] = now
                elif action.what == "await":
                    here = came[action.key]
                    over = None
                    if len(here) == members[action.key]:
                        begin = max(*here.values(), done.get(action.queue, 0))
                        over = max(now, done.setdefault(action.key, begin + action.ns * factors.comm))
                else:
                    here = came.setdefault(action.key, {})
                    here[rank] = now
                    over = None
                    if len(here) == members[action.key]:
                        over = max(here.values()) + (action.ns + action.tail) * factors.comm
                if over is None:
                    break
                times[rank].append((now, over))
                moved = True
    assert all(len(own) == len(todo) for own, todo in zip(times, steps, strict=True))
    return times


def ms(ns: int) -> str:
    return f"{ns // 10**6}.{ns % 10**6:06d}"


def trace_text(
    layout: Layout, steps: list[list[Action]], times: Times, shifts: dict[int, int] | None = None
) -> str:
    """The trace of a step: an operation is the actions of one name and micro-batch in a row. shifts: what is
    added to the clock of a rank.
    """
    lines = []
    for rank, todo in enumerate(steps):
        shift = 10**9 + (shifts or {}).get(rank, 0)
        groups: list[list[int]] = []
        for index, action in enumerate(todo):
            if action.what == "gap":
                continue
            before = groups[-1] if groups else []
            if before and before[-1] == index - 1 and todo[before[-1]].op == action.op:
                before.append(index)
            else:
                groups.append([index])
        for group in groups:
            first = todo[group[0]]
            start, end = times[rank][group[0]][0], times[rank][group[-1]][1]
            begins = {todo[index].key: times[rank][index][0] for index in reversed(group)}
            subs = tuple(
                Sub(ms(times[rank][index][1] + shift), ms(times[rank][index][1] - begins[todo[index].key]),
                    name=todo[index].sub)
                for index in group if todo[index].sub is not None
            )  # fmt: skip
            kind = "pp" if first.op.startswith(("send", "recv")) else first.group if len(group) == 1 else None
            op = Op(first.op, ms(end + shift), ms(end - start), batch=first.batch,
                    group=kind, stage=rank // layout.tp // layout.dp, subs=subs)  # fmt: skip
            lines.append(op.line(rank))
    return "".join(line + "\n" for line in lines)


def made_run(text: str, layout: Layout) -> MeasuredRun:
    """The run in a text, with the degrees in its name."""
    name = f"wd{layout.world}_tp{layout.tp}_pp{layout.pp}_numl4_bs1_made_rank0_{STAMP}.txt"
    return read_run(name, text.encode())


def texts_by_rank(text: str) -> dict[int, str]:
    """The lines of each rank."""
    lines: dict[int, list[str]] = {}
    for line in text.splitlines(keepends=True):
        lines.setdefault(int(line.split(":", 2)[1]), []).append(line)
    return {rank: "".join(own) for rank, own in lines.items()}


def run_apart(text: str, layout: Layout) -> MeasuredRun:
    """The run in a text as if its ranks had been profiled one after another, a day apart."""
    texts = {rank: later(own, 86_400_000 * rank) for rank, own in texts_by_rank(text).items()}
    with TemporaryDirectory() as folder:
        stamps = {rank: f"202409{10 + rank}205004" for rank in texts}
        write_set(Path(folder), texts, world=layout.world, tp=layout.tp, pp=layout.pp, stamps=stamps)
        run = open_directory(folder)
    assert not run.concurrent or len(texts) == 1
    return run


def write_steps(folder: Path, layout: Layout, seed: int = 0) -> None:
    """A made-up step as a directory of rank traces, a file for each rank."""
    steps = actions(layout, Random(seed))
    texts = texts_by_rank(trace_text(layout, steps, simulated(steps, Factors())))
    write_set(folder, texts, world=layout.world, tp=layout.tp, pp=layout.pp)

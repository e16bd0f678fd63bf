"""Jobs of several steps in the form of ByteDance's straggler study, and a slow replay of them by the facts
that the study's traces state: it shares no code with the program, knows each operation by what it is, and
replays by asking for one end after the other.
"""

from __future__ import annotations

import random
import sys
from dataclasses import dataclass, field
from itertools import product
from statistics import fmean, median
from typing import Any

FORWARD, BACKWARD = "forward-compute", "backward-compute"
COMPUTES = (FORWARD, BACKWARD, "optimizer", "gc")
JOINT = ("params-all-gather", "grads-reduce-scatter", "separate-grads-all-reduce")

# (dp rank, stage, kind, chunk, micro-batch); of what has none chunk or micro-batch is -1.
Task = tuple[int, int, str, int, int]


@dataclass(frozen=True)
class Job:
    """A job: dp ranks x stages, model chunks of a stage, micro-batches, steps."""

    dp: int
    pp: int
    chunks: int
    microbatches: int
    steps: int
    is_separate: bool = False
    """Whether gradients of some layers are reduced apart, so that reductions follow the chunks' backwards."""
    seed: int = 0
    slow: dict[tuple[int, int], float] = field(default_factory=dict)
    """By (dp rank, stage) how many times as long compute takes."""
    slow_stage: int = -1
    """The stage that computes twice as long on all dp ranks."""
    uneven: float = 0.0
    """By how much micro-batches may be longer, each on all stages of a dp rank."""
    has_lone_transfers: bool = False
    """Whether the first stage receives and the last one sends without a partner, too."""
    comm_us: tuple[int, ...] = (2, 5)
    """What a communication takes, one of these for each kind."""
    gc_us: int = 0
    """What garbage collection takes on one rank in each step."""
    ends_together: bool = False
    """Whether what begins together ends together."""

    @property
    def lanes(self) -> list[tuple[int, int]]:
        """(dp rank, stage) of each rank of the file."""
        return list(product(range(self.dp), range(self.pp)))


def compute_order(job: Job) -> dict[int, list[tuple[str, int, int]]]:
    """By stage (kind, chunk, micro-batch) in the order of running: backwards first, all of one length."""
    last = job.chunks * job.pp - 1
    todo = {
        stage: [(kind, chunk, batch) for kind in (BACKWARD, FORWARD)
                for batch in range(job.microbatches) for chunk in range(job.chunks)]
        for stage in range(job.pp)
    }  # fmt: skip
    over: dict[tuple[str, int, int], int] = {}
    order: dict[int, list[tuple[str, int, int]]] = {stage: [] for stage in range(job.pp)}
    tick = 0
    while any(todo.values()):
        for stage in range(job.pp):
            for kind, chunk, batch in todo[stage]:
                at = chunk * job.pp + stage
                if kind == FORWARD:
                    needs = [] if at == 0 else [(FORWARD, at - 1, batch)]
                else:
                    needs = [(FORWARD, at, batch)] + ([] if at == last else [(BACKWARD, at + 1, batch)])
                if all(over.get(need, tick + 1) <= tick for need in needs):
                    order[stage].append((kind, chunk, batch))
                    todo[stage].remove((kind, chunk, batch))
                    over[kind, at, batch] = tick + 1
                    break
        tick += 1
    return order


class Replay:
    """The graph of a step of a job: what each task follows, and which begin together."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.after: dict[Task, list[Task]] = {}
        self.together: dict[Task, list[Task]] = {}
        self.order = compute_order(job)
        for dp, stage in job.lanes:
            self._add_passes(dp, stage)
            self._add_rest(dp, stage)

    def _join(self, *tasks: Task) -> None:
        there = [task for task in tasks if task in self.after]
        for task in there:
            self.together[task] = there

    def _add_passes(self, dp: int, stage: int) -> None:
        job, order = self.job, self.order[stage]
        last = job.chunks * job.pp - 1
        tasks: list[Task] = [(dp, stage, *one) for one in order]
        first_backward = next(index for index, one in enumerate(order) if one[0] == BACKWARD)
        early = tasks[first_backward - 2] if first_backward > 1 else None
        before: Task | None = None
        of_kind: dict[str, list[Task]] = {FORWARD: [], BACKWARD: []}
        streams: dict[str, Task] = {}
        met: set[int] = set()
        for task, (kind, chunk, batch) in zip(tasks, order, strict=True):
            phase, at = kind.removesuffix("-compute"), chunk * job.pp + stage
            needs = [before] if before else []
            if kind == FORWARD and chunk not in met:
                met.add(chunk)
                needs.append((dp, stage, "params-all-gather", chunk, -1))
            receives = job.has_lone_transfers or (at > 0 if kind == FORWARD else at < last)
            sends = job.has_lone_transfers or (at < last if kind == FORWARD else at > 0)
            previous = of_kind[kind][-1] if of_kind[kind] else None
            is_first_backward = kind == BACKWARD and not of_kind[BACKWARD]
            if receives:
                receive: Task = (dp, stage, f"{phase}-recv", chunk, batch)
                extra = early if is_first_backward else None
                self.after[receive] = [
                    one for one in (streams.get(receive[2]), previous, extra) if one is not None
                ]
                streams[receive[2]] = receive
                needs.append(receive)
            self.after[task] = needs
            if sends:
                send: Task = (dp, stage, f"{phase}-send", chunk, batch)
                extra = early if is_first_backward else None
                self.after[send] = [one for one in (streams.get(send[2]), task, extra) if one is not None]
                streams[send[2]] = send
            before = task
            of_kind[kind].append(task)
        for kind, chunk, batch in order:
            phase, at = kind.removesuffix("-compute"), chunk * job.pp + stage
            there = at + 1 if kind == FORWARD else at - 1
            if not 0 <= there <= last:
                continue
            send = (dp, stage, f"{phase}-send", chunk, batch)
            receive = (dp, there % job.pp, f"{phase}-recv", there // job.pp, batch)
            for one, other in ((send, receive), (receive, send)):
                self.together[one] = [one, other]

    def _add_rest(self, dp: int, stage: int) -> None:
        job = self.job
        passes: list[Task] = [(dp, stage, *one) for one in self.order[stage]]
        before: Task = passes[-1]
        stream: Task | None = None
        for chunk in range(job.chunks):
            gather: Task = (dp, stage, "params-all-gather", chunk, -1)
            self.after[gather] = [stream] if stream else []
            stream = gather
        for kind in ("gc", "layernorm-grads-all-reduce", "embedding-grads-all-reduce"):
            if kind == "embedding-grads-all-reduce" and stage not in (0, job.pp - 1):
                continue
            task: Task = (dp, stage, kind, -1, -1)
            self.after[task] = [before]
            before = task
        # The chunk whose last backward ends first is reduced first.
        ends = {
            chunk: max(index for index, one in enumerate(passes) if one[2:4] == (BACKWARD, chunk))
            for chunk in range(job.chunks)
        }
        if job.is_separate:
            apart: Task = (dp, stage, "separate-grads-all-reduce", -1, -1)
            self.after[apart] = [before]
            before = apart
        reduce: Task | None = None
        for chunk in sorted(ends, key=lambda chunk: ends[chunk]):
            reduce = (dp, stage, "grads-reduce-scatter", chunk, -1)
            needs = [passes[ends[chunk]]] if job.is_separate else [before]
            self.after[reduce] = [*needs, *([stream] if stream else [])]
            stream = reduce
            if not job.is_separate:
                before = reduce
        assert reduce is not None
        clip: Task = (dp, stage, "optimizer-clip-main-grad", -1, -1)
        self.after[clip] = [before, reduce]
        self.after[dp, stage, "optimizer", -1, -1] = [clip]

    def finish(self) -> None:
        """Joins what begins together over ranks."""
        job = self.job
        for task in list(self.after):
            dp, stage, kind, chunk, batch = task
            if kind in JOINT:
                self._join(*((other, stage, kind, chunk, batch) for other in range(job.dp)))
            elif kind == "optimizer-clip-main-grad":
                self._join(*((*lane, kind, chunk, batch) for lane in job.lanes))
            elif kind == "embedding-grads-all-reduce":
                self._join(*((dp, other, kind, chunk, batch) for other in {0, job.pp - 1}))

    def times(
        self, ns: dict[Task, int], delay_ns: dict[Task, int] | None = None
    ) -> dict[Task, tuple[int, int]]:
        """Returns (start, end) of each task. delay_ns: what passes before a task is ready to begin."""
        ends: dict[Task, int] = {}
        starts: dict[Task, int] = {}
        asking: set[Task] = set()

        def ready(task: Task) -> int:
            return max((end(before) for before in self.after[task]), default=0) + (delay_ns or {}).get(
                task, 0
            )

        def end(task: Task) -> int:
            if task not in ends:
                if task in asking:
                    raise RecursionError("tasks wait for each other in a circle")
                asking.add(task)
                members = self.together.get(task, [task])
                starts[task] = max(ready(member) for member in members if member in self.after)
                ends[task] = starts[task] + ns[task]
            return ends[task]

        limit = sys.getrecursionlimit()
        sys.setrecursionlimit(20_000)
        try:
            return {task: (end(task) - ns[task], ends[task]) for task in self.after}
        finally:
            sys.setrecursionlimit(limit)

    def step_ns(self, ns: dict[Task, int]) -> int:
        """Returns when the last optimizer ends."""
        times = self.times(ns)
        return max(end for task, (_, end) in times.items() if task[2] == "optimizer")


def make_replay(job: Job) -> Replay:
    """Returns the graph of a job."""
    replay = Replay(job)
    replay.finish()
    return replay


_USUAL_US = {FORWARD: 40, BACKWARD: 80, "optimizer": 9, "gc": 0}


def durations(job: Job, replay: Replay) -> list[dict[Task, int]]:
    """The ns of each task in each step; multiples of 1 us, so that files state them exactly."""
    chance = random.Random(job.seed)
    usual = {kind: chance.choice(job.comm_us) for kind in sorted({task[2] for task in replay.after})}
    usual |= _USUAL_US
    steps = []
    for _ in range(job.steps):
        lengths = {
            (dp, batch): 1 + job.uneven * chance.random()
            for dp in range(job.dp) for batch in range(job.microbatches)
        }  # fmt: skip
        ns = {}
        for task in replay.after:
            dp, stage, kind, _, batch = task
            us = usual[kind] * (1 + 0.2 * chance.random())
            if kind in COMPUTES:
                us *= job.slow.get((dp, stage), 1.0) * (2 if stage == job.slow_stage else 1)
            if kind in (FORWARD, BACKWARD):
                us *= lengths[dp, batch]
            if kind == "gc" and (dp, stage) == (0, 0):
                us = job.gc_us
            ns[task] = 1000 * round(us)
        if job.ends_together:
            ns |= {task: ns[min(members)] for task, members in replay.together.items()}
        steps.append(ns)
    return steps


def events(job: Job) -> list[dict[str, Any]]:
    """The events of the job's file: each communication is cut to the time after its last member came."""
    replay = make_replay(job)
    chance = random.Random(job.seed + 1)
    names: list[dict[str, Any]] = []
    for dp in range(job.dp):
        names.append({"ph": "M", "name": "process_name", "pid": dp, "args": {"name": f"DP rank [{dp}]"}})
        for stage in range(job.pp):
            name = f"PP rank {stage}, TP rank 0, all"
            names.append({"ph": "M", "name": "thread_name", "pid": dp, "tid": stage, "args": {"name": name}})
    found, at = [], 1000
    for step, ns in enumerate(durations(job, replay)):
        delays = {task: 1000 * chance.randrange(3) for task in replay.after if task[2] in (FORWARD, BACKWARD)}
        times = replay.times(ns, delays)
        for (dp, stage, kind, chunk, batch), (start, end) in times.items():
            found.append(
                {"ph": "X", "cat": kind, "name": kind, "pid": dp, "tid": stage, "ts": (at + start) / 1000,
                 "dur": (end - start) / 1000,
                 "args": {"step": step, "mb_id": batch, "model_chunk": max(chunk, 0)}}
            )  # fmt: skip
        at += max(end for _, end in times.values()) + 50_000
    return names + found


@dataclass
class Published:
    """What the study finds in a job."""

    total: float
    by_kind: dict[str, float]
    by_stage: dict[int, float]
    by_dp_rank: dict[int, float]
    by_step: list[float]
    m_w: float
    m_s: float


def publish(job: Job) -> Published:
    """Returns the study's figures of a job, by replaying all steps for each of them."""
    replay = make_replay(job)
    steps = durations(job, replay)
    all_ns: dict[str, list[int]] = {}
    for ns in steps:
        for task, length in ns.items():
            all_ns.setdefault(task[2], []).append(length)
    value = {kind: round((fmean if kind in COMPUTES else median)(some)) for kind, some in all_ns.items()}
    even = {task: value[task[2]] for task in replay.after}
    even_ns = replay.step_ns(even)

    def lengths(keeps: Any) -> list[int]:
        return [
            replay.step_ns({task: ns[task] if keeps(task) else even[task] for task in ns}) for ns in steps
        ]

    def merged(kind: str) -> str:
        return kind.replace("-send", "-pp-comm").replace("-recv", "-pp-comm")

    own = lengths(lambda task: True)
    ratio = {}
    for part, at in (("stage", 1), ("dp", 0)):
        for which in range(job.pp if at else job.dp):
            ratio[part, which] = fmean(lengths(lambda task, at=at, which=which: task[at] == which)) / even_ns
    by_kind = {
        kind: fmean(lengths(lambda task, kind=kind: merged(task[2]) == kind)) / even_ns
        for kind in dict.fromkeys(merged(kind) for kind in value)
    }
    score = {lane: min(ratio["dp", lane[0]], ratio["stage", lane[1]]) for lane in job.lanes}
    ordered = sorted(job.lanes, key=lambda lane: (-score[lane], lane[1], lane[0]))
    worst = ordered[: max(-(-len(ordered) * 3 // 100), 1)]
    excess = fmean(own) - even_ns

    def share(keeps: Any) -> float:
        return (fmean(own) - fmean(lengths(keeps))) / excess if excess else 0.0

    return Published(
        fmean(own) / even_ns, by_kind, {stage: ratio["stage", stage] for stage in range(job.pp)},
        {dp: ratio["dp", dp] for dp in range(job.dp)}, [ns / even_ns for ns in own],
        share(lambda task: task[:2] not in worst), share(lambda task: task[1] != job.pp - 1),
    )  # fmt: skip

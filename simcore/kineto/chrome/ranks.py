"""Which rank each thread of a Chrome trace belongs to, and which stream of it the thread is.

Names of processes and threads state a rank (`rank 3`, `GPU 0`) or positions (`DP rank [1]`, `PP rank 0, TP
rank 1, compute`, `stage 2`), arguments of events too (`pp_rank`); else a process is a rank. Threads of one
process that do the same pass of the same micro-batch are ranks of their own: a rank does it once.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from simcore.kineto.chrome.events import NONE, ChromeSpans
from simcore.kineto.chrome.rules import Meaning
from simcore.kineto.values import whole
from simcore.records import NamedTuple

_AXES = {
    "tp": "tp", "tensor": "tp", "dp": "dp", "data": "dp", "pp": "pp", "pipeline": "pp", "stage": "pp",
}  # fmt: skip
_INDEX = r"[-_ :#=]*[\[(]?(\d{1,7})(?!\d)[\])]?"
_AXIS = re.compile(
    r"(?i)(?<![a-z])(?:(tp|dp|pp|tensor|data|pipeline)(?:[-_ ]*parallel)?(?:[-_ ]*(?:rank|stage))?|(stage))"
    + _INDEX
)
_RANK = re.compile(rf"(?i)(?<![a-z])(?:(?:global|world)[-_ ]*)?(?:rank|worker|gpu|npu|device){_INDEX}")
_EDGES = re.compile(r"^[\s,:/-]+|[\s,:/-]+$")
# Greater numbers of processes are those of an operating system.
_MOST_PROCESS = 4096
_MOST_RANK = 9_999_999

Position = tuple[int, int, int]


class ThreadRank(NamedTuple):
    """Where a thread belongs."""

    rank: int
    stream: str


class RankPositions(NamedTuple):
    """Where all threads belong."""

    threads: Sequence[ThreadRank]
    positions: dict[int, Position]
    """By rank (tp, dp, stage), of ranks whose position is stated, no two at the same."""
    stages: dict[int, int]
    """By rank the stage, of ranks whose stage is stated."""
    is_stated: bool
    """Whether the file says which ranks it has; else processes number them."""


class _Names(NamedTuple):
    """What the names of a thread and its process state."""

    pid: Any
    tid: Any
    by_axis: dict[str, int]
    """By axis (`rank`, `pp`, `dp`, `tp`)."""
    stream: str

    @property
    def coordinate(self) -> Position:
        """(tp, dp, stage), 0 for what is not stated."""
        return self.by_axis.get("tp", 0), self.by_axis.get("dp", 0), self.by_axis.get("pp", 0)

    @property
    def key(self) -> tuple[Any, Position]:
        """Its process and position."""
        return self.pid, self.coordinate


def find_ranks(spans: ChromeSpans, meanings: Sequence[Meaning]) -> RankPositions:
    """Returns where each thread belongs. meanings: by span what it is."""
    names = [_names_of(spans, pid, tid) for pid, tid in spans.threads]
    _add_stated(spans, meanings, names)
    shares_work = _find_shared_work(spans, meanings, names)
    streams = [name.stream for name in names]
    if any("rank" in name.by_axis for name in names):
        ranks = _by_stated_rank(names)
        coordinates = [name.coordinate for name in names]
    elif any(name.by_axis for name in names):
        coordinates = _separate(names, shares_work)
        tp_size, dp_size = (max(one[axis] for one in coordinates) + 1 for axis in (0, 1))
        ranks = [tp + tp_size * (dp + dp_size * stage) for tp, dp, stage in coordinates]
    else:
        ranks = _by_process(names, shares_work)
        thread_ranks = tuple(ThreadRank(rank, stream) for rank, stream in zip(ranks, streams, strict=True))
        # One process, 0, is that of any rank: its file says more.
        return RankPositions(thread_ranks, {}, {}, len({*ranks}) > 1 or ranks[:1] != [0])
    thread_ranks = tuple(ThreadRank(rank, stream) for rank, stream in zip(ranks, streams, strict=True))
    positions = {
        rank: coordinate
        for rank, name, coordinate in zip(ranks, names, coordinates, strict=True)
        if name.by_axis.keys() & {"tp", "dp", "pp"}
    }
    if len({*positions.values()}) == len(positions):
        stages = {rank: stage for rank, (_, _, stage) in positions.items()}
        return RankPositions(thread_ranks, positions, stages, True)
    stated_stages = {
        rank: name.by_axis["pp"] for rank, name in zip(ranks, names, strict=True) if "pp" in name.by_axis
    }
    return RankPositions(thread_ranks, {}, stated_stages, True)


def _names_of(spans: ChromeSpans, pid: Any, tid: Any) -> _Names:
    process = ", ".join(spans.process_names.get(pid, ()))
    thread = spans.thread_names.get((pid, tid), "")
    by_axis: dict[str, int] = {}
    for text in (thread, process):
        for match in _AXIS.finditer(text):
            by_axis.setdefault(_AXES[(match[1] or match[2]).lower()], int(match[3]))
        text = _AXIS.sub("", text)
        for match in _RANK.finditer(text):
            by_axis.setdefault("rank", int(match[1]))
    stream = _EDGES.sub("", _RANK.sub("", _AXIS.sub("", thread)))
    return _Names(pid, tid, by_axis, stream or ("all" if thread or tid is None else str(tid)))


def _add_stated(spans: ChromeSpans, meanings: Sequence[Meaning], names: Sequence[_Names]) -> None:
    """Adds what the arguments and names of all spans of a thread agree on."""
    for axis in ("rank", "pp", "dp", "tp"):
        stated_values: dict[int, set[int]] = {}
        values = spans.values[axis]
        for thread, value in zip(spans.thread, values, strict=True) if max(values) != NONE else ():
            if value != NONE:
                stated_values.setdefault(thread, set()).add(value)
        if axis == "pp":
            for thread, meaning in zip(spans.thread, meanings, strict=True):
                if "stage" in meaning.values:
                    stated_values.setdefault(thread, set()).add(int(meaning.values["stage"]))
        # An argument that differs along a thread is about its spans.
        if all(len(some) == 1 for some in stated_values.values()):
            for thread, (value,) in stated_values.items():
                if value <= _MOST_RANK:
                    names[thread].by_axis.setdefault(axis, value)


def _find_shared_work(spans: ChromeSpans, meanings: Sequence[Meaning], names: Sequence[_Names]) -> set[Any]:
    """Returns the processes and positions at which two threads do the same pass of the same micro-batch."""
    thread_of_work: dict[tuple[Any, ...], int] = {}
    shared: set[Any] = set()
    columns = spans.values
    for thread, meaning, step, microbatch, chunk in zip(
        spans.thread, meanings, columns["step"], columns["microbatch"], columns["chunk"], strict=True
    ):
        if meaning.kind not in ("forward", "backward"):
            continue
        values = meaning.values
        microbatch = int(values.get("microbatch", microbatch))
        if microbatch == NONE:
            continue
        own = names[thread].key
        work = own, meaning.kind, values.get("step", step), microbatch, values.get("chunk", chunk)
        if thread_of_work.setdefault(work, thread) != thread:
            shared.add(own)
    return shared


def _separate(names: Sequence[_Names], shares_work: set[Any]) -> list[Position]:
    """Returns (tp, dp, stage) of each thread; what is at one place in several processes, or in threads that
    do the same work, is a replica each.
    """
    replicas: dict[Position, dict[Any, int]] = {}
    order = sorted(range(len(names)), key=lambda index: (_order(names[index].pid), _order(names[index].tid)))
    for index in order:
        name = names[index]
        seats = replicas.setdefault(name.coordinate, {})
        seats.setdefault((name.pid, name.tid if name.key in shares_work else None), len(seats))
    most = max(map(len, replicas.values()))
    coordinates = []
    for name in names:
        tp, dp, stage = position = name.coordinate
        seat = replicas[position][name.pid, name.tid if name.key in shares_work else None]
        coordinates.append((tp, dp * most + seat, stage))
    return coordinates


def _by_stated_rank(names: Sequence[_Names]) -> list[int]:
    """Returns the stated rank of each thread; of one without, that of its process, else a free one."""
    by_process: dict[Any, int] = {}
    for name in names:
        if "rank" in name.by_axis:
            by_process.setdefault(name.pid, name.by_axis["rank"])
    free = max(by_process.values()) + 1
    for name in names:
        if name.pid not in by_process:
            by_process[name.pid], free = free, free + 1
    return [name.by_axis.get("rank", by_process[name.pid]) for name in names]


def _by_process(names: Sequence[_Names], shares_work: set[Any]) -> list[int]:
    if shares_work:
        rank_of = _number_keys((name.pid, name.tid) for name in names)
        return [rank_of[name.pid, name.tid] for name in names]
    pids = {name.pid for name in names}
    if all(type(pid) is int and 0 <= pid < _MOST_PROCESS for pid in pids):
        return [name.pid for name in names]
    rank_of = _number_keys((name.pid, None) for name in names)
    return [rank_of[name.pid, None] for name in names]


def _number_keys(keys: Iterable[tuple[Any, Any]]) -> dict[tuple[Any, Any], int]:
    order: Callable[[tuple[Any, Any]], Any] = lambda key: (_order(key[0]), _order(key[1]))  # noqa: E731
    return {key: index for index, key in enumerate(sorted({*keys}, key=order))}


def _order(value: Any) -> tuple[int, int, str]:
    integer = whole(value)
    return (0, integer, "") if integer is not None else (1, 0, str(value))

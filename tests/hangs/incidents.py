"""Makes flight recorder dumps of incidents whose cause is known, as PyTorch writes them.

Eight ranks train with tp 2, dp 2 and pp 2. Each rank begins its collectives one after another without waiting
for them, as a host does; one ends when all members have begun it, with one number, kind and size, and what
stood before it on their streams has ended. A fault is done to some ranks' list of collectives.

Usage: python -m tests.hangs.incidents FOLDER writes INCIDENTS, each with what is right in right.json.
"""

from __future__ import annotations

import gzip
import json
import pickle
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

BEGIN_NS = 1_758_610_505_000_000_000
STEP_NS = 1_000_000
WORLD = 8
STEPS = 2

Dumps = dict[int, dict[str, Any]]


@dataclass(frozen=True)
class Op:
    """A collective of a rank, or a send or receive. peer: a place in the group's list."""

    group: str
    name: str
    size: tuple[int, ...] = (4096, 1, 5120)
    peer: int | None = None
    line: int = 0
    dtype: str = "BFloat16"
    blocks: bool = False
    """Whether the host waits for its end."""


GROUPS: dict[str, Callable[[int], list[int]]] = {
    "default_pg": lambda rank: list(range(WORLD)),
    "TENSOR_MODEL_PARALLEL_GROUP": lambda rank: [rank // 2 * 2, rank // 2 * 2 + 1],
    "DATA_PARALLEL_GROUP": lambda rank: [rank // 4 * 4 + rank % 2 + 2 * at for at in range(2)],
    "PIPELINE_MODEL_PARALLEL_GROUP": lambda rank: [rank % 4, rank % 4 + 4],
}
TP, DP, PP = "TENSOR_MODEL_PARALLEL_GROUP", "DATA_PARALLEL_GROUP", "PIPELINE_MODEL_PARALLEL_GROUP"


def program(rank: int) -> list[Op]:
    """What a rank begins in its steps."""
    ops = []
    for _ in range(STEPS):
        if rank >= 4:
            ops.append(Op(PP, "recv", peer=0, line=31))
        ops += [Op(TP, "_all_gather_base", line=40), Op(TP, "_reduce_scatter_base", line=44)]
        if rank < 4:
            ops.append(Op(PP, "send", peer=1, line=33))
        ops += [
            Op(TP, "all_reduce", (16,), line=50, dtype="Float"),
            Op(DP, "all_reduce", (5120, 64), line=61),
        ]
        ops.append(Op("default_pg", "all_reduce", (1,), line=70, dtype="Float"))
    return ops


@dataclass
class Fault:
    """What is done. stops: after how many operations a rank begins nothing more."""

    programs: dict[int, list[Op]] = field(default_factory=dict)
    stops: dict[int, int] = field(default_factory=dict)
    dies: tuple[int, ...] = ()
    """Ranks that leave no dump."""


def dumps_of(fault: Fault, *, version: str = "2.9", ring: int = 2000, clocks: dict[int, int] | None = None,
             unfinished_alone: bool = False) -> Dumps:  # fmt: skip
    """Returns the dumps of the job by rank. clocks: by how much the clock of a rank is ahead, ns."""
    programs = {rank: fault.programs.get(rank, program(rank)) for rank in range(WORLD)}
    begun: dict[int, list[dict[str, Any]]] = {rank: [] for rank in range(WORLD)}
    counts: dict[tuple[int, str, bool], int] = {}
    blocked: dict[int, dict[str, Any]] = {}
    for tick in range(sum(map(len, programs.values())) + 4):
        now = BEGIN_NS + tick * STEP_NS
        for rank in range(WORLD):
            at = len(begun[rank])
            if at >= min(fault.stops.get(rank, at + 1), len(programs[rank])):
                continue
            if rank in blocked and blocked[rank]["state"] != "completed":
                continue
            op = programs[rank][at]
            entry = _entry(rank, op, now + rank * 1000, counts)
            begun[rank].append(entry)
            if op.blocks:
                blocked[rank] = entry
        _end(begun, now + STEP_NS // 2)
    dumps: Dumps = {}
    for rank in range(WORLD):
        if rank in fault.dies:
            continue
        ahead = (clocks or {}).get(rank, 0)
        entries = [_written(entry, ahead) for entry in begun[rank]]
        if unfinished_alone:
            entries = [entry for entry in entries if entry["state"] != "completed"]
        dumps[rank] = _dump(rank, entries[-ring:], begun[rank], version)
    return dumps


def _entry(rank: int, op: Op, now: int, counts: dict[tuple[int, str, bool], int]) -> dict[str, Any]:
    is_message = op.peer is not None
    key = rank, op.group, is_message
    counts[key] = counts.get(key, 0) + 1
    ranks = GROUPS[op.group](rank)
    name = f"nccl:{op.name}"
    if op.peer is not None:
        name += f" {ranks.index(rank)}{'->' if op.name == 'send' else '<-'}{op.peer}"
    number = counts.get((rank, op.group, False), 0)
    groups = list(GROUPS)
    frames = [
        {"name": op.name.strip("_"), "filename": "/opt/torch/distributed/distributed_c10d.py", "line": 2800},
        {"name": "train_step", "filename": "/job/train.py", "line": op.line},
        {"name": "<module>", "filename": "/job/train.py", "line": 99},
    ]  # fmt: skip
    return {
        "record_id": len(counts), "pg_id": groups.index(op.group),
        "process_group": (str(10 * groups.index(op.group) + ranks[0]), op.group),
        "collective_seq_id": number, "p2p_seq_id": counts[key] if is_message else 0, "op_id": counts[key],
        "profiling_name": name, "time_created_ns": now, "time_discovered_started_ns": None,
        "time_discovered_completed_ns": None, "input_sizes": [list(op.size)], "output_sizes": [list(op.size)],
        "input_dtypes": [op.dtype], "output_dtypes": [op.dtype], "state": "scheduled", "timeout_ms": 600000,
        "is_p2p": is_message, "retired": False, "thread_id": "1", "thread_name": "python3", "frames": frames,
        "_ranks": ranks, "_rank": rank,
    }  # fmt: skip


def _end(begun: dict[int, list[dict[str, Any]]], now: int) -> None:
    """Ends what all members have begun, until nothing more ends."""
    changed = True
    while changed:
        changed = False
        for entries in begun.values():
            first_of: set[tuple[str, bool]] = set()
            for entry in entries:
                stream = entry["process_group"][1], entry["is_p2p"]
                if entry["state"] == "completed" or stream in first_of:
                    continue
                first_of.add(stream)
                others = [_partner(begun, entry, rank) for rank in entry["_ranks"] if rank != entry["_rank"]]
                if all(other is not None for other in others):
                    for one in (entry, *others):
                        assert one is not None
                        one.update(state="completed", retired=True, time_discovered_completed_ns=now)
                        one["time_discovered_started_ns"] = now - STEP_NS // 4
                    changed = True


def _partner(
    begun: dict[int, list[dict[str, Any]]], entry: dict[str, Any], rank: int
) -> dict[str, Any] | None:
    """Returns the entry of another rank that ends with this one."""
    for other in begun[rank]:
        if other["state"] == "completed" or other["process_group"][1] != entry["process_group"][1]:
            continue
        if other["is_p2p"] != entry["is_p2p"]:
            continue
        # The first open one of its stream.
        if entry["is_p2p"]:
            return (
                other
                if {"send", "recv"}
                == {one["profiling_name"].split()[0].removeprefix("nccl:") for one in (entry, other)}
                else None
            )
        same = ("collective_seq_id", "profiling_name", "input_sizes", "input_dtypes")
        return other if all(other[key] == entry[key] for key in same) else None
    return None


def _written(entry: dict[str, Any], ahead: int) -> dict[str, Any]:
    written = {key: value for key, value in entry.items() if not key.startswith("_")}
    for key in ("time_created_ns", "time_discovered_started_ns", "time_discovered_completed_ns"):
        if written[key] is not None:
            written[key] += ahead
    return written


def _dump(
    rank: int, entries: list[dict[str, Any]], all_of_them: list[dict[str, Any]], version: str
) -> dict[str, Any]:
    config, statuses = {}, {}
    for index, (description, ranks_of) in enumerate(GROUPS.items()):
        ranks = ranks_of(rank)
        name = str(10 * index + ranks[0])
        config[name] = {"name": name, "desc": description, "ranks": str(ranks)}
        mine = [entry for entry in all_of_them if entry["process_group"][1] == description]
        key = "p2p_seq_id" if description == PP else "collective_seq_id"
        statuses[str(index)] = {
            "last_enqueued_collective": max((one[key] for one in mine), default=0),
            "last_started_collective": -1,
            "last_completed_collective": max(
                (one[key] for one in mine if one["state"] == "completed"), default=0
            ),
        }
    dump: dict[str, Any] = {"version": version, "nccl_version": "2.27.3", "pg_config": config,
                            "pg_status": statuses, "entries": entries}  # fmt: skip
    if version == "2.10":
        dump["comm_lib_version"] = dump.pop("nccl_version")
    return dump


# -- the incidents -----------------------------------------------------------------------


def _without(rank: int, group: str, name: str) -> list[Op]:
    """Returns a rank's list without its last operation of that group and name."""
    ops = program(rank)
    at = max(index for index, op in enumerate(ops) if (op.group, op.name) == (group, name))
    return ops[:at] + ops[at + 1 :]


def _changed(rank: int, group: str, called: str, /, **changes: Any) -> list[Op]:
    """Returns a rank's list with its last operation of that group and name changed."""
    ops = program(rank)
    at = max(index for index, op in enumerate(ops) if (op.group, op.name) == (group, called))
    return [*ops[:at], replace(ops[at], **changes), *ops[at + 1 :]]


def _swapped(rank: int) -> list[Op]:
    """Returns a rank's list with its last all-reduces of tp and of all the other way round."""
    *ops, tp, dp, whole = program(rank)
    return [*ops, replace(whole, blocks=True), tp, dp]


def _blocking(rank: int) -> list[Op]:
    """Returns a rank's list whose host waits for the end of its last all-reduce of tp."""
    *ops, tp, dp, whole = program(rank)
    return [*ops, replace(tp, blocks=True), dp, whole]


@dataclass(frozen=True)
class Incident:
    """An incident and what is right of it. mismatch: the kind of the first one; odd: who differs there."""

    make: Callable[[], Dumps]
    culprits: tuple[int, ...] = ()
    stuck: tuple[int, ...] = ()
    mismatch: str = ""
    odd: tuple[int, ...] = ()


def gloo() -> Dumps:
    """Two ranks of gloo, as its dialect is: rank 1 has not come to the third all-reduce."""
    dumps: Dumps = {}
    for rank, count in ((0, 3), (1, 2)):
        entries = []
        for number in range(1, count + 1):
            entry = _written(
                _entry(rank, Op("default_pg", "all_reduce", (16,)), BEGIN_NS + number * STEP_NS, {}), 0
            )
            entry.update(process_group=("", "gloo:undefined"), profiling_name="gloo:all_reduce", pg_id=0,
                         collective_seq_id=number, retired=number < 3, frames=[])  # fmt: skip
            entries.append(entry)
        status = {"last_enqueued_collective": count, "last_started_collective": -1,
                  "last_completed_collective": count}  # fmt: skip
        config = {"": {"name": "", "desc": "gloo:undefined", "ranks": "[]"}}
        dumps[rank] = {"version": "2.10", "comm_lib_version": "", "entries": entries,
                       "pg_status": {"0": status}, "pg_config": config}  # fmt: skip
    return dumps


INCIDENTS: dict[str, Incident] = {
    # Rank 5 begins nothing after its ninth operation, as if it slept.
    "sleeps": Incident(lambda: dumps_of(Fault(stops={5: 9})), culprits=(5,)),
    "left_out": Incident(
        lambda: dumps_of(Fault({3: _without(3, TP, "all_reduce")}), version="2.10"), culprits=(3,)
    ),
    "other_collective": Incident(
        lambda: dumps_of(Fault({6: _changed(6, TP, "all_reduce", name="_all_gather_base")})),
        mismatch="collective",
        odd=(6,),
    ),
    "other_shape": Incident(
        lambda: dumps_of(Fault({1: _changed(1, DP, "all_reduce", size=(5120, 65))})),
        mismatch="size",
        odd=(1,),
    ),
    "other_order": Incident(
        lambda: dumps_of(Fault({3: _blocking(3), 2: _swapped(2)})), mismatch="order", odd=(2,)
    ),
    "send_alone": Incident(
        lambda: dumps_of(Fault({6: _without(6, PP, "recv")}), version="2.4"),
        culprits=(6,),
        mismatch="send alone",
    ),
    "died": Incident(lambda: dumps_of(Fault(stops={7: 9}, dies=(7,)), unfinished_alone=True), culprits=(7,)),
    # Its second node has a clock that is 30 ms ahead.
    "nothing": Incident(lambda: dumps_of(Fault(), clocks=dict.fromkeys(range(4, 8), 30_000_000))),
}


def write_dumps(folder: Path, dumps: Dumps, name: str = "nccl_trace_rank_{}") -> Path:
    """Writes dumps as PyTorch does; returns the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for rank, dump in dumps.items():
        data = pickle.dumps(dump, 2)
        name_of_rank = name.format(rank)
        is_packed = name.endswith(".gz")
        (folder / name_of_rank).write_bytes(gzip.compress(data, mtime=0) if is_packed else data)
    return folder


# Packed, a dump takes 1.3 KB in place of 14.
_NAME = "nccl_trace_rank_{}.gz"


def main() -> None:
    """Writes the incidents below a folder."""
    for name, incident in INCIDENTS.items():
        folder = write_dumps(Path(sys.argv[1]) / name, incident.make(), _NAME)
        right = {
            "culprits": incident.culprits,
            "stuck": incident.stuck,
            "mismatch": incident.mismatch or None,
            "odd": incident.odd,
        }
        (folder / "right.json").write_text(json.dumps(right) + "\n", encoding="utf-8")
    write_dumps(Path(sys.argv[1]) / "gloo", gloo(), _NAME)


if __name__ == "__main__":
    main()

"""How long the flight recorder dumps of a job take to read, with the verdict, beside plain unpickling.

Whole processes, each with those that it starts, in their own time on the same cores: `pickle.load` of each
file in turn, and wltui's reader with what it finds. Memory is the most of any process, beside the files.
Usage: python benchmarks/dumps.py [RANKS] [--entries N] [--frames N] [--write]; --write puts the table into
benchmarks/README.md. Exit status 1 when a budget is missed.
"""

from __future__ import annotations

import pickle
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.measuring import Table, finished, number_of, succeeded

RANKS, ENTRIES, ROUNDS = 1024, 2000, 3
MOST_TIMES, MOST_MEMORY = 2.0, 3.0
PLAIN = """
import glob, pickle, sys
for name in glob.glob(sys.argv[1] + "/*"):
    with open(name, "rb") as file:
        pickle.load(file)
"""
READ = """
import sys
from simcore.sources.inputs import open_input
from simcore.flight.verdict import find_verdict
print(find_verdict(open_input(sys.argv[1])).culprits)
"""
GROUPS = (
    ("default_pg", 0, "all_reduce"),
    ("TENSOR_MODEL_PARALLEL_GROUP", 8, "_all_gather_base"),
    ("EXPERT_MODEL_PARALLEL_GROUP", 16, "all_to_all"),
    ("DATA_PARALLEL_GROUP", 32, "_reduce_scatter_base"),
)


def dump_of(rank: int, ranks: int, entries: int, frames: int) -> dict[str, Any]:
    """The dump of a rank: a ring that is full, at whose end rank 5 has not come."""
    count = entries - 4 if rank == 5 else entries
    members = [[*range(rank // size * size, rank // size * size + size)] if size else [*range(ranks)]
               for _, size, _ in GROUPS]  # fmt: skip
    made = []
    for at in range(count):
        group = at % len(GROUPS)
        description, size, operation = GROUPS[group]
        begin = 1_758_610_505_000_000_000 + at * 10_000_000 + rank
        is_open = 5 in members[group] and at >= entries - 4
        # Of an all-to-all what all send is what all receive.
        tokens = 4096 + (at * 37 + rank % 16 * 11) % 997 if size == 16 else 4096
        made.append({
            "record_id": at, "pg_id": group, "process_group": (str(group * 10), description),
            "collective_seq_id": 1 + at // 4, "p2p_seq_id": 0, "op_id": 1 + at // 4,
            "profiling_name": f"nccl:{operation}", "time_created_ns": begin,
            "time_discovered_started_ns": None if is_open else begin + 1000,
            "time_discovered_completed_ns": None if is_open else begin + 9000, "duration_ms": 0.008,
            "input_sizes": [[tokens, 1, 5120]], "output_sizes": [[tokens, 1, 5120]],
            "input_dtypes": ["BFloat16"], "output_dtypes": ["BFloat16"],
            "state": "scheduled" if is_open else "completed", "timeout_ms": 600000, "is_p2p": False,
            "retired": not is_open, "thread_id": "140", "thread_name": "python3",
            "frames": [{"name": f"call_{depth}", "filename": f"/job/part_{depth}.py", "line": depth + at % 40}
                       for depth in range(frames)],
        })  # fmt: skip
    config, statuses = {}, {}
    for group, (description, _, _) in enumerate(GROUPS):
        name = str(group * 10)
        config[name] = {"name": name, "desc": description, "ranks": str(members[group])}
        last = (count + 3 - group) // 4
        statuses[str(group)] = {
            "last_enqueued_collective": last, "last_started_collective": -1,
            "last_completed_collective": last if rank == 5 or 5 not in members[group] else last - 1,
        }  # fmt: skip
    return {"version": "2.9", "nccl_version": "2.27.3", "pg_config": config, "pg_status": statuses,
            "entries": made}  # fmt: skip


def option(words: Sequence[str], name: str, default: int) -> int:
    """The number behind an option."""
    return int(words[words.index(name) + 1]) if name in words else default


def main(words: list[str]) -> int:
    """Print or write the table. Exit status 1 when a budget is missed."""
    entries, frames = option(words, "--entries", ENTRIES), option(words, "--frames", 0)
    ranks = int(number_of(words[:1], RANKS))
    table = Table(f"{ranks} ranks x {entries} entries, {frames} frames each, fastest of {ROUNDS}")
    with tempfile.TemporaryDirectory() as folder:
        for rank in range(ranks):
            data = pickle.dumps(dump_of(rank, ranks, entries, frames), 2)
            Path(folder, f"nccl_trace_rank_{rank}").write_bytes(data)
        files_mb = sum(path.stat().st_size for path in Path(folder).iterdir()) / 1e6
        # In pairs, so that both have what the machine does besides.
        runs = [
            [succeeded((sys.executable, "-c", program, folder)) for program in (PLAIN, READ)]
            for _ in range(ROUNDS)
        ]
    assert all(read.said == "(5,)" for _, read in runs), runs
    plain_s, read_s = (min(pair[at].own_seconds for pair in runs) for at in range(2))
    peak_mb = min(read.peak_mb for _, read in runs)
    table.judge("read and judged, times plain unpickling", read_s / plain_s, MOST_TIMES)
    table.judge("memory, times the files", peak_mb / files_mb, MOST_MEMORY)
    table.add(f"files                {files_mb:8.1f} MB")
    table.add(f"plain unpickling     {plain_s:8.2f} s")
    table.add(f"read, with verdict   {read_s:8.2f} s    {read_s / plain_s:.2f} times (budget {MOST_TIMES:g})")
    table.add(
        f"memory, at most      {peak_mb:8.1f} MB   {peak_mb / files_mb:.2f} times (budget {MOST_MEMORY:g})"
    )
    return finished(__file__, table, words)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

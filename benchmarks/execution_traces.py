"""How long execution traces take to read and to run, and how much memory.

A step of 1,024 ranks with tensor, pipeline and data parallelism (seed 002) is exported and reported as whole
processes by both rules. Reading is measured against a bare loop over the same bytes as varints, one file by
itself and all files together, of which those that are alike are read once. Where the stored runs of
ASTRA-sim lie in ../shared, all of them run against the seconds that its binary took. All s are of
processor time, of programs that run on one core: a shared machine is slower by half for seconds at a time.
Usage: python benchmarks/execution_traces.py [--quick] [--write]; --quick leaves ASTRA-sim's rules on the
large step out; --write puts the table into benchmarks/README.md. Exit status 1 when a budget is missed.
"""

from __future__ import annotations

import gzip
import json
import sys
import tarfile
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.measuring import SEED_002, WLTUI, Table, finished, succeeded  # noqa: E402

SECONDS, MEGABYTES = 25.0, 800.0
ASTRA_SECONDS = 120.0
MICROSECONDS = 5.0
STORED = ROOT.parent / "shared" / "golden" / "chakra" / "runs.tar.gz"
RUNS = 5


def varints(data: bytes) -> int:
    """All bytes of a file as varints behind each other: the least that a reader in Python can do."""
    found = value = shift = 0
    for byte in data:
        value |= (byte & 127) << shift
        if byte < 128:
            found += 1
            value = shift = 0
        else:
            shift += 7
    return found


def fastest(run: object, argument: object) -> float:
    """The least s of processor time of some calls."""
    times = []
    for _ in range(RUNS):
        begin = time.process_time()
        run(argument)  # type: ignore[operator]
        times.append(time.process_time() - begin)
    return min(times)


def reading(table: Table, folder: str) -> None:
    """One file by itself, and the set."""
    from simcore.chakra import find_set, open_set
    from simcore.chakra.wire import TextTable as Texts
    from simcore.chakra.wire import read_columns

    data = Path(folder, "wl.0.et").read_bytes()
    count = len(read_columns(data, Texts()))
    bare = fastest(varints, data)
    alone = fastest(lambda one: read_columns(one, Texts()), data)
    found = find_set(folder)
    assert found is not None
    begin = time.process_time()
    nodes = open_set(found).count
    together = time.process_time() - begin
    table.add(f"a bare loop of varints      {bare / count * 1e6:6.2f} us a node")
    table.add(f"read, one file              {alone / count * 1e6:6.2f} us a node   {alone / bare:5.2f} times "
              f"the loop (budget {MICROSECONDS:.0f} us)")  # fmt: skip
    each = together / nodes
    table.add(f"read, {nodes} nodes       {each * 1e6:6.2f} us a node   {each * count / bare:5.2f} times "
              "the loop: alike files once")  # fmt: skip
    table.judge("read, one file, us a node", alone / count * 1e6, MICROSECONDS)


def stored_runs(table: Table) -> None:
    """The stored runs of ASTRA-sim, in this process."""
    if not STORED.exists():
        table.add("stored runs of ASTRA-sim    not here")
        return
    from simcore.chakra import find_set, open_set
    from simcore.diagnostics import InputError, UsageError
    from simcore.executing.execution_result import Execution
    from simcore.runs.executed import run_execution
    from tests.executing.test_astra2_golden import parameters_of

    ours = theirs = 0.0
    runs = 0
    with tempfile.TemporaryDirectory() as name:
        with tarfile.open(STORED) as packed:
            packed.extractall(name, filter="data")
        for entry in sorted(Path(name).rglob("entry.json")):
            folder = entry.parent
            inner = folder / "ets.tar.gz"
            if inner.exists():
                with tarfile.open(inner) as packed:
                    for member in packed:
                        if member.isfile():
                            content = packed.extractfile(member)
                            assert content is not None
                            (folder / Path(member.name).name).write_bytes(content.read())
            path = folder / "result.json"
            text = path.read_bytes() if path.exists() else gzip.decompress(
                (folder / "result.json.gz").read_bytes())  # fmt: skip
            for backend, stored in json.loads(text).items():
                if not isinstance(stored, dict) or "wall_s" not in stored:
                    continue
                begin = time.process_time()
                try:
                    found = find_set(str(folder / "wl"))
                    assert found is not None
                    run_execution(Execution(open_set(found), parameters_of(folder, backend)))
                except (InputError, UsageError):
                    pass
                ours += time.process_time() - begin
                theirs += stored["wall_s"]
                runs += 1
    table.add(f"{runs} stored runs             {ours:6.1f} s, ASTRA-sim's binary {theirs:.1f} s: "
              f"{ours / theirs:.2f} times (budget 1)")  # fmt: skip
    table.judge("stored runs, times ASTRA-sim's binary", ours / theirs, 1.0)


def main(words: list[str]) -> int:
    """Print or write the table. Exit status 1 when a budget is missed."""
    table = Table("seed 002 as execution traces: 1,024 ranks")
    with tempfile.TemporaryDirectory() as name:
        folder = str(Path(name) / "set")
        succeeded([*WLTUI, "export", SEED_002, "--format", "chakra", "-o", folder])
        files = [
            "--cluster", f"{folder}/network.yml", "--system", f"{folder}/system.json",
            "--comm-groups", f"{folder}/comm_group.json",
        ]  # fmt: skip
        reading(table, folder)
        done = succeeded([*WLTUI, "report", folder, *files])
        table.add(f"report, wltui's rules       {done.own_seconds:6.1f} s  {done.peak_mb:5.0f} MB   (budgets "
                  f"{SECONDS:.0f} s, {MEGABYTES:.0f} MB)")  # fmt: skip
        table.judge("report, s", done.own_seconds, SECONDS)
        table.judge("report, MB", done.peak_mb, MEGABYTES)
        if "--quick" not in words:
            done = succeeded([*WLTUI, "report", folder, *files, "--dialect", "astra-sim-2"])
            table.add(f"report, ASTRA-sim's rules   {done.own_seconds:6.1f} s  {done.peak_mb:5.0f} MB   "
                      f"(budget {ASTRA_SECONDS:.0f} s; ASTRA-sim itself 157 s, 3,400 MB)")  # fmt: skip
            table.judge("report by ASTRA-sim's rules, s", done.own_seconds, ASTRA_SECONDS)
    stored_runs(table)
    return finished(__file__, table, words)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

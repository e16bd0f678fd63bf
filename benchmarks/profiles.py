"""What opening profiler traces takes: whole processes, against `json.load` of the same bytes.

Files are made of real ones by repeating their events with later times and other correlations; what the corpus
beside the checkout does not have is left out. Nothing that was kept of an earlier run is taken.
Usage: python benchmarks/profiles.py [SHARE] [--write]; SHARE of the sizes (1); --write puts the table into
benchmarks/README.md. Exit status 1 when a budget is missed.
"""

from __future__ import annotations

import gzip
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.measuring import ROOT, WLTUI, Process, Table, finished, number_of, process

CORPUS = ROOT.parent / "shared" / "corpus" / "kineto"
# Two kinds of file: many kernels and launches, and stacks of Python.
SOURCES = {"kernels": "nccl_data.json.gz", "stacks": "h100_qwen.json.gz"}
MEGABYTES, RANKS, MEGABYTES_OF_RANK = 118, 8, 40
TIMES_JSON, TIMES_SIZE, TIMES_ONE = 0.5, 3.0, 5.0


def repeated(source: Path, target: Path, megabytes: float, rank: int = 0) -> float:
    """Writes a trace of about so many MB of the events of another; gives how many MB it has."""
    data: dict[str, Any] = json.loads(gzip.decompress(source.read_bytes()))
    events: list[dict[str, Any]] = data["traceEvents"]
    size = len(json.dumps(data)) / 1e6
    times = [event["ts"] for event in events if "ts" in event]
    length = max(times) - min(times) + 1e5
    data.setdefault("distributedInfo", {}).update(rank=rank, world_size=RANKS)
    data["traceEvents"] = [
        _later(event, number, length) for number in range(max(1, round(megabytes / size))) for event in events
    ]
    text = json.dumps(data)
    target.write_text(text)
    return len(text) / 1e6


def _later(event: dict[str, Any], number: int, length: float) -> dict[str, Any]:
    changed = dict(event)
    if "ts" in changed:
        changed["ts"] = round(changed["ts"] + number * length, 3)
    args = changed.get("args") or {}
    other = {key: args[key] + number * 10**7 for key in ("correlation", "External id") if key in args}
    if other:
        changed["args"] = args | other
    name = str(changed.get("name"))
    if name.startswith("ProfilerStep#"):
        changed["name"] = f"ProfilerStep#{int(name[13:]) + number * 10}"
    return changed


def fastest(command: tuple[str, ...], runs: int = 3) -> Process:
    """The run of a command that took least processor time."""
    return min((process(command) for _ in range(runs)), key=lambda one: one.own_seconds)


def quickest(command: tuple[str, ...], runs: int = 3) -> float:
    """s of the clock that a command takes at the least."""
    return min(process(command).seconds for _ in range(runs))


def main(words: list[str]) -> int:
    """Print or write the table. Exit status 1 when a budget is missed."""
    share = number_of(words, 1.0)
    table = Table("fastest of 3 runs, s of the processor")
    with tempfile.TemporaryDirectory() as folder:
        for name, file in SOURCES.items():
            if not (CORPUS / file).is_file():
                table.add(f"{name}: not measured, the corpus is not there")
                continue
            path = Path(folder) / f"{name}.json"
            size = repeated(CORPUS / file, path, MEGABYTES * share)
            load = fastest((sys.executable, "-c", f"import json; json.load(open({str(path)!r}))"))
            one = fastest((*WLTUI, "report", "--no-cache", str(path)))
            ratio, memory = one.own_seconds / load.own_seconds, one.peak_mb / size
            table.add(f"{name}, {size:.0f} MB: json.load {load.own_seconds:.2f} s, {load.peak_mb:.0f} MB")
            table.add(
                f"  report {one.own_seconds:.2f} s = {ratio:.2f} times json.load (budget {TIMES_JSON}), "
                f"{one.peak_mb:.0f} MB = {memory:.1f} times the file (budget {TIMES_SIZE:.0f})"
            )
            table.judge(f"{name}: times json.load", ratio, TIMES_JSON)
            table.judge(f"{name}: memory over the file's size", memory, TIMES_SIZE)
        if (CORPUS / SOURCES["kernels"]).is_file():
            job = Path(folder) / "job"
            job.mkdir()
            for rank in range(RANKS):
                size = repeated(
                    CORPUS / SOURCES["kernels"], job / f"rank{rank}.json", MEGABYTES_OF_RANK * share, rank
                )
            one = quickest((*WLTUI, "report", "--no-cache", str(job / "rank0.json")))
            whole = quickest((*WLTUI, "report", "--no-cache", str(job)))
            ratio = whole / one
            table.add(
                f"{RANKS} ranks of {size:.0f} MB: {whole:.2f} s of the clock = {ratio:.1f} times one of them "
                f"(budget {TIMES_ONE:.0f})"
            )
            table.judge(f"{RANKS} ranks: times one of them", ratio, TIMES_ONE)
    return finished(__file__, table, words)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

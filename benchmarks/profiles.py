"""What opening profiler traces takes: whole processes, against `json.load` of the same bytes and against
HolisticTraceAnalysis, where WLTUI_HTA_PYTHON names a Python that has it; memory; pictures.

Files are made of real ones by repeating their events with later times and other correlations; what the corpus
beside the checkout does not have is left out. Nothing that was kept of an earlier run is taken.
Usage: python benchmarks/profiles.py [SHARE] [--write]; SHARE of the sizes (1); --write puts the table into
benchmarks/README.md. Exit status 1 when a budget is missed.
"""

from __future__ import annotations

import gzip
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.measuring import (
    IMPORT_TEXTUAL,
    ROOT,
    WLTUI,
    Process,
    Table,
    environment,
    finished,
    number_of,
    process,
    succeeded,
)
from benchmarks.screen import FRAME_MS, KEY_MS, SLOWEST_MS, measured
from benchmarks.terminal import Terminal

CORPUS = ROOT.parent / "shared" / "corpus" / "kineto"
# Two kinds of file: many kernels and launches, and stacks of Python.
SOURCES = {"kernels": "nccl_data.json.gz", "stacks": "h100_qwen.json.gz"}
MEGABYTES, RANKS, MEGABYTES_OF_RANK = 118, 8, 40
MANY, MEGABYTES_OF_MANY = 64, 60
STREAMS, MILLION = 20, 1_000_000
TIMES_JSON, TIMES_SIZE, TIMES_ONE = 0.5, 3.0, 5.0
# Eight ranks are at their peak while two are read: what 64 hold of their steps comes to a part of that.
TIMES_EIGHT, FIRST_PICTURE, RUNS = 1.25, 2.5, 5
TIMES_HTA, OF_HTA = 7, 0.6
# Of a report the time that it takes without the causes of gaps, with stacks of Python and without.
TIMES_CAUSES = {"kernels": 1.05, "stacks": 1.3}
WITHOUT_CAUSES = (
    sys.executable, "-c",
    "import sys; from simcore.kineto import reading; from tui.cli import main; "
    "reading._LEAST_CALL_US = float('inf'); reading._Reader._add_gaps = lambda *given: None; "
    "sys.exit(main(sys.argv[1:]))",
)  # fmt: skip
HTA = os.environ.get("WLTUI_HTA_PYTHON", "")
BREAKDOWN = ROOT / "tests" / "kineto" / "hta_breakdown.py"
COMPLETE = ("What would help most", "Notes", "quit")


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


def times_between(
    command: tuple[str, ...], single: tuple[str, ...], runs: int = 3
) -> tuple[float, float, float]:
    """(s of the clock that a command takes; how many times another one, run before and behind it, by the
    clock; the same by the processor), each in the middle: what else the machine does lengthens both.
    """
    found = []
    for _ in range(runs):
        before, whole, after = (process(one) for one in (single, command, single))
        own = 2 * whole.own_seconds / (before.own_seconds + after.own_seconds)
        found.append((whole.seconds, 2 * whole.seconds / (before.seconds + after.seconds), own))
    seconds, times, own = map(median, zip(*found, strict=True))
    return seconds, times, own


def tree_peak_mb(command: tuple[str, ...]) -> float:
    """The most memory of a command and the processes it starts together, what they share counted once."""
    running = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL, cwd=ROOT, env=environment()
    )
    peak = 0
    while running.poll() is None:
        peak = max(peak, sum(_own_kb(pid) for pid in _tree(running.pid)))
        time.sleep(0.02)
    return peak * 1024 / 1e6


def _tree(pid: int) -> list[int]:
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return []
    return [pid, *(one for child in children for one in _tree(int(child)))]


def _own_kb(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("Pss:")), 0)


def one_file(table: Table, folder: Path, share: float) -> None:
    """A large file against `json.load`, and against HolisticTraceAnalysis where there is one."""
    for name, file in SOURCES.items():
        path = folder / f"{name}.json"
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
        bare = (*WITHOUT_CAUSES, "report", "--no-cache", str(path))
        times = times_between((*WLTUI, "report", "--no-cache", str(path)), bare, RUNS)[2]
        table.add(
            f"  with the causes of gaps {times:.2f} times as long as without (budget {TIMES_CAUSES[name]})"
        )
        table.judge(f"{name}: times without the causes of gaps", times, TIMES_CAUSES[name])
        if not HTA:
            table.add("  HolisticTraceAnalysis: not measured, WLTUI_HTA_PYTHON names no Python that has it")
            continue
        other = fastest((HTA, str(BREAKDOWN), str(path)), 1)
        times, share_of = other.own_seconds / one.own_seconds, one.peak_mb / other.peak_mb
        table.add(
            f"  HolisticTraceAnalysis 0.5.0 {other.own_seconds:.2f} s = {times:.1f} times report (at least "
            f"{TIMES_HTA}), {other.peak_mb:.0f} MB: report takes {share_of:.2f} of it (budget {OF_HTA})"
        )
        table.judge(f"{name}: of the time of HTA", 1 / times, 1 / TIMES_HTA)
        table.judge(f"{name}: of the memory of HTA", share_of, OF_HTA)


def one_set(table: Table, folder: Path, share: float) -> None:
    """Eight ranks against one, 64 against 8, and the first picture of what was kept."""
    source = CORPUS / SOURCES["kernels"]
    job = folder / "job"
    job.mkdir()
    for rank in range(RANKS):
        size = repeated(source, job / f"rank{rank}.json", MEGABYTES_OF_RANK * share, rank)
    report = (*WLTUI, "report", "--no-cache")
    whole, times_one, own = times_between((*report, str(job)), (*report, str(job / "rank0.json")))
    table.add(
        f"{RANKS} ranks of {size:.0f} MB: {whole:.2f} s of the clock = {times_one:.1f} times one of them "
        f"(budget {TIMES_ONE:.0f}); of all processors {own:.1f} times its"
    )
    table.judge(f"{RANKS} ranks: times one of them", times_one, TIMES_ONE)
    base = folder / "base.json"
    size = repeated(source, base, MEGABYTES_OF_MANY * share)
    data = json.loads(base.read_text())
    # The name of each file says which rank it is.
    del data["distributedInfo"]
    base.write_text(json.dumps(data))
    peaks = {}
    for ranks in (RANKS, MANY):
        many = folder / f"many{ranks}"
        many.mkdir()
        for rank in range(ranks):
            os.link(base, many / f"rank{rank}.json")
        peaks[ranks] = tree_peak_mb((*WLTUI, "report", "--no-cache", str(many)))
    times = peaks[MANY] / peaks[RANKS]
    table.add(
        f"{MANY} ranks of {size:.0f} MB: {peaks[MANY]:.0f} MB with all processes = {times:.2f} times {RANKS} "
        f"of them (budget {TIMES_EIGHT})"
    )
    table.judge(f"{MANY} ranks: memory over that of {RANKS}", times, TIMES_EIGHT)
    state, many = str(folder / "state"), folder / f"many{RANKS}"
    ratios = []
    for run in range(RUNS + 1):
        textual = succeeded(IMPORT_TEXTUAL).seconds
        terminal = Terminal([*WLTUI, str(many)], state)
        terminal.read_first(60.0)
        terminal.kill()
        if run:
            ratios.append(terminal.first_screen(COMPLETE)[0] / textual)
    table.add(
        f"{RANKS} ranks of {size:.0f} MB, kept: first picture {median(ratios):.2f} times import textual.app "
        f"(budget {FIRST_PICTURE})"
    )
    table.judge("first picture of a kept set, times import textual.app", median(ratios), FIRST_PICTURE)


def frames(table: Table, folder: Path, share: float) -> None:
    """Keys on the timeline of eight ranks with 20 streams and a million kernels in one step."""
    job = folder / "million"
    job.mkdir()
    kernels = int(MILLION * share)
    for rank in range(RANKS):
        (job / f"rank{rank}.json").write_text(many_kernels(rank, kernels // RANKS))
    found = measured([str(job), "--screen", "timeline"], 4)
    own = sorted(1000 * spent for spent, _ in found.frames)
    p95 = own[int(len(own) * 0.95)]
    table.add(
        f"{RANKS} ranks x {STREAMS} streams, {kernels} kernels: a frame of a zoom or pan takes {p95:.1f} ms "
        f"of its own at p95 (budget {FRAME_MS:.0f})"
    )
    table.judge("a frame's own ms at p95", p95, FRAME_MS)
    for name in ("zoom", "pan", "unfold"):
        times = sorted(1000 * one.seconds for one in found.answers[name])
        table.add(
            f"  {name}: median {median(times):.1f} ms (budget {KEY_MS:.0f}), slowest {times[-1]:.1f} ms "
            f"(budget {SLOWEST_MS:.0f}), {max(one.sent for one in found.answers[name])} bytes"
        )
        table.judge(f"{name}, median ms", median(times), KEY_MS)
        table.judge(f"{name}, slowest ms", times[-1], SLOWEST_MS)


def many_kernels(rank: int, count: int) -> str:
    """A trace of a rank with so many kernels on all streams, one of a hundred a collective."""
    drawn = random.Random(rank)
    events = []
    for stream in range(STREAMS):
        at = drawn.random() * 50
        for number in range(count // STREAMS):
            name = f"kernel_{drawn.randrange(40)}"
            if stream == 0 and number % 100 == 0:
                name = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL"
            length = drawn.random() * 20
            events.append({
                "ph": "X", "cat": "kernel", "name": name, "pid": rank, "tid": stream, "ts": round(at, 3),
                "dur": round(length, 3), "args": {"stream": stream, "device": rank},
            })  # fmt: skip
            at += length + drawn.random() * 10
    return json.dumps({"distributedInfo": {"rank": rank, "world_size": RANKS}, "traceEvents": events})


def main(words: list[str]) -> int:
    """Print or write the table. Exit status 1 when a budget is missed."""
    share = number_of(words, 1.0)
    table = Table("fastest of 3 runs, s of the processor")
    with tempfile.TemporaryDirectory() as name:
        if all((CORPUS / file).is_file() for file in SOURCES.values()):
            one_file(table, Path(name), share)
            one_set(table, Path(name), share)
        else:
            table.add("files of real events: not measured, the corpus is not there")
        frames(table, Path(name), share)
    return finished(__file__, table, words)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

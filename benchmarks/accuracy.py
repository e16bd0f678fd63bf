"""How far wltui is from what others computed and from what was measured: the tables of docs/accuracy.md.

SimAI's and ASTRA-sim's figures are those that the tests hold, the real traces those of ../shared; where
that is not, their tables are left as they stand, and a line on stderr says so.

Prints the tables, or those that are named; with --write puts them into the page.
Usage: python benchmarks/accuracy.py [--write] [TABLE...]
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks import (
    fit_sustained,
    measured_operations,
    published_fsdp,
    published_memory,
    published_more,
    published_steps,
    published_trust,
)
from benchmarks.measuring import ROOT, put
from simcore.cluster import ClusterParameters, choose_cluster, group_shape
from simcore.collectives import completion_times
from simcore.measured import MeasuredRun
from simcore.parameters import OpeningOptions, Parameters
from simcore.runs.measured import run_recording
from simcore.sources.inputs import open_input
from tests.collectives import test_astra2_golden as astra2
from tests.engine import test_policies as astra1
from tests.measured.naive_replay import naive_ns, read_set
from tests.measured.test_replay_of_real_runs import SETS
from tests.networks import test_simai_golden as simai

SHARED = ROOT.parent / "shared"
TRACES = SHARED / "corpus" / "rank_trace"
PAGE = ROOT / "docs" / "accuracy.md"
PHASES = ("fwd", "ig", "wg")


def simai_table() -> list[list[str]]:
    """By version of SimAI: runs, cells, and how far these and the total are from the printed."""
    found: dict[str, list[tuple[int, int, float, float]]] = {}
    for run in simai.RUNS.values():
        if run["input"] in simai.OF_CORPUS and not SHARED.exists():
            continue
        report = simai.report_of(run)
        layers, estimate = report["layers"], report["estimates"]["simai"]
        cells = [
            (
                layers[golden["index"]][phase]["comm_ns"],
                golden[f"{phase}_comm_ns"],
                golden[f"{phase}_comm_us"],
            )
            for golden in run["distinct_layers"]
            for phase in PHASES
        ]
        printed = max(abs(ours / 1000 - us) for ours, _, us in cells)
        ours_us, simai_us = estimate["total_us"], run["summary_us"]["total"]
        equal = sum(ours == formula for ours, formula, _ in cells)
        found.setdefault(run["version"], []).append((len(cells), equal, printed, abs(ours_us - simai_us)))
    head = ["SimAI", "runs", "cells", "equal to the formulas", "furthest from the printed", "furthest total"]
    rows = []
    for version, ones in found.items():
        counts, equals, cell_us, total_us = zip(*ones, strict=True)
        sums = map(str, (len(ones), sum(counts), sum(equals)))
        rows.append([version, *sums, f"{max(cell_us):.2f} us", f"{max(total_us):.2f} us"])
    return [head, *rows]


def collectives_table() -> list[list[str]]:
    """By algorithm and collective of ASTRA-sim 2.0: how many of its runs are equal to the ns."""
    found: dict[str, dict[str, list[bool]]] = {}
    collectives = sorted({run["collective"] for run in astra2.RUNS})
    for run in astra2.RUNS:
        by_collective = found.setdefault(" x ".join(run["algorithms"]), {})
        equal = done_of(run) == (run["finish_min_ns"], run["finish_max_ns"])
        by_collective.setdefault(run["collective"], []).append(equal)
    rows = [
        [name, *(f"{sum(ones)} of {len(ones)}" if (ones := by.get(one)) else "" for one in collectives)]
        for name, by in sorted(found.items())
    ]
    return [["algorithm of each dimension", *collectives], *rows]


def done_of(run: dict[str, Any]) -> tuple[int, int]:
    """When the first and the last rank are done with a collective, ns."""
    with tempfile.TemporaryDirectory() as folder:
        network, system = Path(folder) / "network.yml", Path(folder) / "system.json"
        network.write_text(astra2.network_yml(run), encoding="utf-8")
        system.write_text(astra2.system_json(run), encoding="utf-8")
        choice = choose_cluster(ClusterParameters(cluster=str(network), system=str(system)))
    assert choice.npus is not None
    cluster = choice.cluster(choice.npus)
    collective = run["collective"].upper()
    size = run["size_bytes"] * (cluster.npus if collective == "ALLGATHER" else 1)
    return completion_times(cluster, group_shape(cluster, range(cluster.npus)), collective, size)


def policies_table() -> list[list[str]]:
    """By policy of ASTRA-sim 1.0: runs, passes, and how many are equal to the ns."""
    found: dict[str, list[tuple[int, bool]]] = {}
    for run in astra1.RUNS:
        with tempfile.TemporaryDirectory() as folder:
            step_ns = astra1.measured(run, astra1.write_inputs(run, Path(folder))).step_time_ns
        policy = run["workload_text"].split()[0]
        found.setdefault(policy, []).append((run["passes"], step_ns == run["finish_ns"]))
    return [["policy", "runs", "passes", "equal to the ns"]] + [
        [policy, str(len(ones)), str(sum(one[0] for one in ones)), str(sum(one[1] for one in ones))]
        for policy, ones in sorted(found.items())
    ]


def replays_table() -> list[list[str]]:
    """A row for each complete set of real traces."""
    rows = [[
        "set", "ranks", "measured", "replayed", "off", "whole operations", "off", "compute x 2",
        "slowest rank / 2",
    ]]  # fmt: skip
    for name, stamp, _ in SETS:
        run = open_input(str(TRACES / name), OpeningOptions(stamp))
        assert isinstance(run, MeasuredRun)
        plain = run_recording(run, Parameters(replay=True))
        double = run_recording(run, Parameters(compute_scale=2.0))
        compute = [sum(one.compute_ns().values()) for one in plain.accounts]
        slow = run.ranks[compute.index(max(compute))].rank
        half = run_recording(run, Parameters(slow_rank=(f"{slow}=0.5",)))
        naive = naive_ns(read_set(TRACES / name, stamp))
        rows.append([
            f"{name} {stamp}", str(len(run.ranks)), ms(run.step_time_ns), ms(plain.step_time_ns),
            off(plain.step_time_ns, run.step_time_ns), ms(naive), off(naive, run.step_time_ns),
            ms(double.step_time_ns), f"{ms(half.step_time_ns)} (rank {slow})",
        ])  # fmt: skip
    return rows


def ms(ns: int) -> str:
    """ns as ms, as the files have them."""
    return f"{ns / 1e6:.2f} ms"


def off(ns: int, measured_ns: int) -> str:
    """How far it is from what was measured."""
    return f"{100 * (ns - measured_ns) / measured_ns:.3f} %"


def written(rows: Iterable[list[str]]) -> str:
    """A table in Markdown, its first row the heading."""
    head, *body = rows
    lines = [head, ["---"] * len(head), *body]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


TABLES = {
    "simai": simai_table,
    "astra-sim-2": collectives_table,
    "astra-sim-1": policies_table,
    "replays": replays_table,
    "products": measured_operations.products_table,
    "attention": measured_operations.attention_table,
    "experts": measured_operations.experts_table,
    "nccl": measured_operations.nccl_table,
    "steps": lambda: published_steps.steps_table(published()),
    "layouts": lambda: published_steps.layouts_table(published()),
    "sweeps": published_steps.sweeps_table,
    "memory": lambda: published_steps.memory_table(published()),
    "published-memory": published_memory.table,
    "does-not-fit": published_memory.misfits_table,
    "fsdp": published_fsdp.table,
    "published-gpus": published_more.gpus_table,
    "published-sources": published_more.sources_table,
    "published-layouts": published_more.layouts_table,
    "trust": lambda: published_trust.table(published()),
    "sustained": fit_sustained.table,
}
# Made of what is in ../shared, and what each needs of it.
OF_STEPS = ("steps", "layouts", "sweeps", "memory")
OF_MORE_STEPS = ("published-gpus", "published-sources", "published-layouts", "trust", "sustained")
OF_OPERATIONS = ("products", "attention", "experts", "nccl")
OF_SHARED = {"replays": TRACES, **dict.fromkeys(OF_OPERATIONS, measured_operations.FOLDER),
             **dict.fromkeys(OF_STEPS, published_steps.STEPS), "published-memory": published_memory.ROWS,
             "does-not-fit": published_memory.ROWS, "fsdp": published_fsdp.ROWS,
             **dict.fromkeys(OF_MORE_STEPS, published_more.ROWS)}  # fmt: skip


@cache
def published() -> list[published_steps.Off]:
    """Every published step beside the simulated one."""
    return published_steps.all_off()


def main(words: list[str]) -> None:
    """Print the tables, or write them."""
    named = [word for word in words if word != "--write"]
    for name, table in TABLES.items():
        if named and name not in named:
            continue
        if name in OF_SHARED and not OF_SHARED[name].exists():
            print(f"../shared is not here: the table of {name} is left as it stands", file=sys.stderr)
            continue
        made = written(table())
        print(f"{name}\n{made}", flush=True)
        if "--write" in words:
            put(PAGE, Path(__file__).stem, made, name)
            if name == "trust":
                # The table as a model's report quotes it.
                published_trust.write(published())


if __name__ == "__main__":
    main(sys.argv[1:])

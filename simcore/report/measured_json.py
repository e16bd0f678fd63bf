"""The report of a measured run as JSON: the keys of schema `wltui.report/1`, and `measured`."""

from __future__ import annotations

from typing import Any

from simcore.measured import MeasuredRun
from simcore.measured.columns import RankTrace
from simcore.measured.summary import OpFigures, RankTime, op_figures, rank_times, sub_figures
from simcore.parameters import Parameters, as_dict
from simcore.ranks import RankSet
from simcore.report.as_json import SCHEMA


def measured_json(run: MeasuredRun) -> dict[str, Any]:
    """All figures of a measured run as plain values, times in ns.

    Nothing is simulated: `classes`, `layers`, `streams`, `dimensions` and `sentences` are empty,
    `cluster` has no dimensions, and `step_time_ns` is the measured one; 0 where the file has no
    times (`measured.timed`).
    """
    degrees = run.degrees
    return {
        "schema": SCHEMA,
        "workload": {
            "format": "rank-trace",
            "policy": "megatron" if run.unit == "rank" else "megatron-plan",
            "rows": run.ops,
            "declared_rows": None,
            "microbatches": run.microbatches,
            "degrees": {"tp": degrees.tp, "ep": degrees.exp, "dp": degrees.dp, "pp": degrees.pp,
                        "world": degrees.world},
        },
        "cluster": {"dims": [], "network": "measured"},
        "schedule": "measured",
        "parameters": as_dict(Parameters()) | {"run": run.stamp},
        "step_time_ns": run.step_time_ns,
        "pass_end_ns": [],
        "spans": run.ops + run.subs,
        "ops_simulated": 0,
        "rank_classes": 0,
        "classes": [],
        "layers": [],
        "measured": {
            "step_time_ns": run.step_time_ns,
            "ranks": len(run.ranks),
            "concurrent": run.concurrent,
            "timed": run.timed,
            "unit": run.unit,
            "run": run.stamp,
            "missing": run.missing.text(),
            "by_rank": [
                _rank(run, rank, time) for rank, time in zip(run.ranks, rank_times(run), strict=True)
            ],
            "operations": [_figures(one) for one in op_figures(run)],
            "sub_operations": [_figures(one) for one in sub_figures(run)],
        },
        "streams": [],
        "dimensions": [],
        "sentences": [],
        "estimates": {"simai": None},
        "diagnostics": [found.values() for found in run.diagnostics],
    }  # fmt: skip


def _rank(run: MeasuredRun, rank: RankTrace, time: RankTime) -> dict[str, Any]:
    """One rank; its ns by category sum to the step time."""
    values: dict[str, Any] = {
        "ranks": RankSet.of([rank.number]).text(),
        "stage": rank.stage,
        "operations": len(rank.ops),
        "sub_operations": len(rank.subs),
    }
    if run.timed:
        values |= {"start_ns": rank.first_ns, "end_ns": rank.last_ns, "ns": time.ns}
    return values


def _figures(one: OpFigures) -> dict[str, Any]:
    return {
        "name": one.name,
        "parent": one.parent,
        "kind": one.category,
        "count": one.count,
        "measured": one.measured,
        "total_ns": one.total_ns,
        "least_ns": one.least_ns,
        "most_ns": one.most_ns,
        "most_rank": one.most_rank if one.measured else None,
        "most_microbatch": one.most_batch if one.measured and one.most_batch >= 0 else None,
    }

"""Two runs beside each other as JSON, schema `wltui.compare/1`: keys are added, never renamed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from simcore.analysis.compare import Change, Comparison
from simcore.analysis.effective import effective_parameters
from simcore.analysis.results import Results
from simcore.report.as_json import figures_of_model
from simcore.report.changes import difference_percent

SCHEMA = "wltui.compare/1"


def compare_json(comparison: Comparison) -> dict[str, Any]:
    """All differences as plain values; times in ns, differences B - A."""
    matched, worst, cost = comparison.matched, comparison.worst, comparison.cost
    return {
        "schema": SCHEMA,
        "a": _side(comparison.a),
        "b": _side(comparison.b),
        "difference_ns": comparison.difference_ns,
        "difference_percent": difference_percent(comparison.a.step_time_ns, comparison.b.step_time_ns),
        "why": comparison.why,
        "parts": [{"account": one.account, "difference_ns": one.ns} for one in comparison.parts],
        "changed": {field: {"a": _plain(a), "b": _plain(b)} for field, (a, b) in comparison.changed.items()},
        "matched": {
            "ops": matched.ops, "a_ops": matched.a_ops, "b_ops": matched.b_ops, "ranks": matched.ranks
        },
        "accounts": _accounts(comparison.accounts, comparison),
        "worst": {
            "a_ranks": _ranks(comparison.a, worst.a),
            "b_ranks": _ranks(comparison.b, worst.b),
            "accounts": _accounts(comparison.worst_accounts, comparison),
        },
        "layers": [
            {"name": one.name, "compute": _change(one.compute), "exposed": _change(one.exposed)}
            for one in comparison.layers
        ],
        "critical_path": {
            "by_kind": [{"kind": one.name, **_change(one)} for one in comparison.paths.kind],
            "by_stage": [{"stage": int(one.name), **_change(one)} for one in comparison.paths.stage],
            "by_layer": [{"layer": one.name or None, **_change(one)} for one in comparison.paths.layer],
        },
        "movers": [
            {
                "measure": one.measure,
                "stage": one.place[0], "dp": one.place[1], "tp": one.place[2], "ranks": one.ranks,
                "name": one.name, "phase": one.phase, "kind": one.kind, "microbatch": one.microbatch,
                "a_ns": one.a_ns, "b_ns": one.b_ns, "difference_ns": one.b_ns - one.a_ns,
            }
            for one in comparison.movers
        ],
        "unchanged": comparison.unchanged,
        "peak_microbatches": None if cost is None else cost._asdict(),
    }  # fmt: skip


def _side(results: Results) -> dict[str, Any]:
    return {
        "file": results.path,
        "step_time_ns": results.step_time_ns,
        "schedule": results.simulation.program.schedule,
        "parameters": effective_parameters(results.simulation),
        **figures_of_model(results),
    }


def _accounts(changes: Iterable[Change], comparison: Comparison) -> list[dict[str, Any]]:
    """Each account; context parallelism is of models alone."""
    of_models = any(one.simulation.workload.maker is not None for one in (comparison.a, comparison.b))
    return [
        {"account": one.name, **_change(one)} for one in changes if of_models or one.name != "exposed cp"
    ]


def _change(change: Change) -> dict[str, int]:
    return {"a_ns": change.a_ns, "b_ns": change.b_ns, "difference_ns": change.ns}


def _ranks(results: Results, number: int) -> str:
    return results.simulation.timeline.classes[number].ranks.text()


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value

"""The report of a measured run as JSON: the keys of schema `wltui.report/1`, and `measured`."""

from __future__ import annotations

from typing import Any

from simcore.measured import MeasuredRun
from simcore.measured.columns import RankTrace
from simcore.measured.summary import OpFigures, RankTime, op_figures, rank_times, sub_figures
from simcore.parameters import as_dict
from simcore.ranks import RankSet
from simcore.records import asdict
from simcore.replay import MeasuredResults
from simcore.replay.accounts import RankAccounts
from simcore.replay.critical_path import REASONS, Segment
from simcore.replay.difference import differences
from simcore.replay.op_use import op_uses
from simcore.replay.rank_use import (
    StreamTime,
    compute_ns,
    exposed_ns,
    overlapped_ns,
    peak_microbatches,
    stream_times,
)
from simcore.replay.worst import piece_name
from simcore.report.as_json import SCHEMA
from simcore.run.findings import WhatIf
from simcore.run.pieces import GAP


def measured_json(results: MeasuredResults, with_what_if: bool = False) -> dict[str, Any]:
    """All figures of a measured run as plain values, times in ns.

    Of the run as it is shown, measured or replayed: each rank is a class of its own, each operation a layer;
    no workload is simulated, so `cluster` has no dimensions. Where the file has no times (`measured.timed`)
    `step_time_ns` is 0 and what takes time is empty. with_what_if: also what the step would take with one
    thing changed.
    """
    run, shown = results.measured, results.run
    degrees = run.degrees
    slack = results.least_slack_ns if run.timed else {}
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
        "schedule": "replayed" if shown.replayed else "measured",
        "parameters": as_dict(results.parameters, "trace") | {"run": run.stamp, "replay": shown.replayed},
        "step_time_ns": shown.step_time_ns,
        "pass_end_ns": [],
        "step_end_ns": [],
        "steady_step_ns": None,
        "spans": run.ops + run.subs,
        "ops_simulated": run.ops + run.subs if shown.replayed else 0,
        "rank_classes": len(run.ranks) if run.timed else 0,
        "classes": _classes(results) if run.timed else [],
        "mean_ns": results.mean_ns if run.timed else {},
        "layers": _layers(results) if run.timed else [],
        "streams": _streams(results) if run.timed else [],
        "dimensions": [],
        "worst_link": None,
        "sentences": [{"rule": "measured", "text": line} for line in results.words],
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
            "operations": [_figures(one) | {"slack_ns": slack.get(one.name)} for one in op_figures(run)],
            "sub_operations": [_figures(one) for one in sub_figures(run)],
            **_waiting(results.as_read),
            "replay": _replay(results),
        },
        "critical_path": [_segment(results, one) for one in results.critical_path] if run.timed else [],
        "what_if": [_knob(knob) for knob in results.what_if()] if with_what_if else None,
        "gradients": [asdict(one) for one in results.gradients] if run.timed else None,
        "what_if_base_ns": results.what_if_base_ns if run.timed else None,
        "estimates": {"simai": None},
        "diagnostics": [found.values() for found in results.diagnostics],
    }  # fmt: skip


def _classes(results: MeasuredResults) -> list[dict[str, Any]]:
    """Each rank, whose six accounts sum to the step time."""
    return [
        {
            "ranks": str(rank.number),
            "count": 1,
            "stage": rank.stage,
            "compute_ns": compute_ns(one),
            "exposed_ns": exposed_ns(one),
            "wait_ns": one.ns("wait"),
            "bubble_ns": one.ns("bubble"),
            "host_ns": one.ns("host"),
            "idle_ns": one.ns("idle"),
            "overlapped_ns": overlapped_ns(rank, one),
            "comm_ns": sum(exposed_ns(one).values()) + (overlapped_ns(rank, one) or 0),
            "peak_microbatches": peak_microbatches(rank),
            "streams": {use.stream: _stream(use) for use in stream_times(rank, one)},
        }
        for rank, one in zip(results.run.ranks, results.accounts, strict=True)
    ]


def _stream(use: StreamTime) -> dict[str, Any]:
    return {"busy_ns": use.busy_ns, "overlapped_ns": use.overlapped_ns, "exposed_ns": use.exposed_ns}


def _streams(results: MeasuredResults) -> list[dict[str, Any]]:
    """Each stream, the mean of all ranks; share: of the step that it is busy."""
    step, ranks = results.step_time_ns, len(results.measured.ranks)
    found: dict[str, list[StreamTime]] = {}
    for rank, accounts in zip(results.run.ranks, results.accounts, strict=True):
        for use in stream_times(rank, accounts):
            found.setdefault(use.stream, []).append(use)
    streams = []
    for name, uses in found.items():
        unknown = any(use.overlapped_ns is None for use in uses)
        beside = sum(use.overlapped_ns or 0 for use in uses)
        busy = round(sum(use.busy_ns for use in uses) / ranks)
        streams.append(
            {
                "stream": name,
                "busy_ns": busy,
                "share": busy / step if step else 0.0,
                "overlapped_ns": None if unknown else round(beside / ranks),
                "exposed_ns": round(sum(use.exposed_ns for use in uses) / ranks),
                "most_busy_ns": max(use.busy_ns for use in uses),
            }
        )
    return streams


def _layers(results: MeasuredResults) -> list[dict[str, Any]]:
    """Each operation and sub-operation by name. A trace has no cells of rows: those are null."""
    return [
        {
            "index": index,
            "name": use.op if use.sub is None else use.sub,
            "operation": use.op,
            **dict.fromkeys(("fwd", "ig", "wg")),
            "compute_ns": use.compute_ns,
            "exposed_ns": use.exposed_ns,
            "critical_ns": use.critical_ns,
            "slack_ns": use.slack_ns,
        }
        for index, use in enumerate(op_uses(results))
    ]


def _waiting(results: MeasuredResults) -> dict[str, Any]:
    """Accounts and who waits for whom, of the times that `results` has; empty of an order alone."""
    if not results.measured.timed:
        return {"accounts": [], "waiting": []}
    return {
        "accounts": [
            _accounts(rank, one) for rank, one in zip(results.measured.ranks, results.accounts, strict=True)
        ],
        "waiting": [
            {"rank": one.early, "for": one.late, "in": one.name, "ns": one.ns} for one in results.waiting
        ],
    }


def _replay(results: MeasuredResults) -> dict[str, Any] | None:
    """What the replay makes of the run, None where nothing is replayed."""
    if results.scales is None:
        return None
    return {
        "step_time_ns": results.step_time_ns,
        "difference_ns": results.step_time_ns - results.measured.step_time_ns,
        "by_rank": [
            {"ranks": str(one.number), "measured_end_ns": one.measured_ns, "end_ns": one.replayed_ns,
             "operations": [{"name": name, "difference_ns": ns} for name, ns in one.ops]}
            for one in differences(results)
        ],
        **_waiting(results),
    }  # fmt: skip


def _accounts(rank: RankTrace, one: RankAccounts) -> dict[str, Any]:
    """One rank's accounts, which sum to `step_time_ns`, with the words of a simulated run's classes."""
    return {
        "ranks": str(rank.number),
        "stage": rank.stage,
        "compute_ns": one.compute_ns(),
        "exposed_ns": one.exposed_ns(),
        "wait_ns": one.ns("wait"),
        "bubble_ns": one.ns("bubble"),
        "host_ns": one.ns("host"),
        "idle_ns": one.ns("idle"),
    }


def _segment(results: MeasuredResults, one: Segment) -> dict[str, Any]:
    rank, pieces = results.measured.ranks[one.rank], results.ties.pieces[one.rank]
    op = pieces.op[one.piece]
    is_gap = pieces.kind[one.piece] == GAP
    batch = rank.ops.batch[op]
    return {
        "start_ns": one.start,
        "end_ns": one.end,
        "rank": rank.number,
        "stream": one.kind.split(" ", 1)[1] if one.kind.startswith("exposed ") else "compute",
        "kind": one.kind,
        "layer": None if is_gap else piece_name(results, one.rank, one.piece),
        "phase": None if is_gap else rank.ops.state[op],
        "microbatch": None if is_gap or batch < 0 else batch,
        "reason": REASONS[one.reason].format(rank=results.measured.ranks[one.of].number),
    }


def _knob(knob: WhatIf) -> dict[str, Any]:
    if knob.unknown:
        return {"knob": knob.name, "free_ns": None, "better10_ns": None, "unknown": knob.unknown}
    values: dict[str, Any] = {"knob": knob.name, "free_ns": knob.free_ns, "better10_ns": knob.better10_ns}
    values |= {"worse10_ns": knob.worse10_ns} if knob.worse10_ns is not None else {}
    return values | ({"moves_work": True} if knob.moves else {})


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

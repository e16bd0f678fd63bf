"""The report as JSON, schema `wltui.report/1`: keys are added, never renamed."""

from __future__ import annotations

from typing import Any

from simcore.analysis import Results
from simcore.analysis.dimensions import DimensionUse
from simcore.analysis.effective import effective_parameters
from simcore.analysis.layers import LayerCell
from simcore.records import asdict

SCHEMA = "wltui.report/1"


def json_report(results: Results, with_what_if: bool = False) -> dict[str, Any]:
    """All figures of a run as plain values; times in ns, sizes in bytes, bandwidths in GB/s.

    with_what_if: also what the step would take with one thing cheaper, which simulates many times.
    """
    simulation = results.simulation
    workload, layout, timeline = simulation.workload, simulation.layout, simulation.timeline
    degrees = {"tp": layout.tp, "ep": layout.ep, "dp": layout.dp, "pp": layout.pp, "world": layout.world}
    return {
        "schema": SCHEMA,
        "workload": {
            "format": workload.format,
            "policy": workload.policy,
            "rows": len(workload),
            "declared_rows": workload.declared_rows,
            "microbatches": timeline.program.microbatches,
            "degrees": degrees,
        },
        "cluster": {
            "dims": [
                {
                    "kind": dimension.kind,
                    "size": dimension.size,
                    "bandwidth_gbps": dimension.bandwidth,
                    "latency_ns": dimension.latency_ns,
                }
                for dimension in (simulation.cluster.dims if simulation.has_dimensions else ())
            ],
            "network": simulation.parameters.network,
        },
        "schedule": timeline.program.schedule,
        "parameters": effective_parameters(simulation),
        "step_time_ns": simulation.step_time_ns,
        "pass_end_ns": results.pass_end_ns,
        "step_end_ns": results.step_end_ns,
        "steady_step_ns": results.steady_step_ns,
        "spans": timeline.spans,
        "ops_simulated": timeline.ops_simulated,
        "rank_classes": len(timeline.classes),
        "classes": [_class(results, number) for number in range(len(timeline.classes))],
        "mean_ns": results.mean_ns,
        "layers": _layers(results),
        "critical_path": _critical_path(results),
        "what_if": _what_if(results) if with_what_if else None,
        "what_if_base_ns": results.what_if_base_ns,
        "gradients": None if results.gradients is None else [asdict(one) for one in results.gradients],
        "streams": _streams(results),
        "dimensions": [_dimension(results, use) for use in results.dimensions],
        "worst_link": _worst_link(results),
        "sentences": sentence_values(results),
        "estimates": {"simai": _estimate(results), **_estimate_lines(results)},
        "diagnostics": [found.values() for found in simulation.diagnostics],
    }


def _class(results: Results, number: int) -> dict[str, Any]:
    timeline = results.simulation.timeline
    rank_class = timeline.classes[number]
    accounts = results.accounts[number]
    comm_ns, overlapped_ns = results.communication[number]
    return {
        "ranks": rank_class.ranks.text(),
        "count": len(rank_class.ranks),
        "stage": rank_class.stage,
        "compute_ns": accounts.compute_ns(),
        "exposed_ns": accounts.exposed_ns(),
        "wait_ns": accounts.wait_ns,
        "bubble_ns": accounts.bubble_ns,
        "idle_ns": accounts.idle_ns,
        "overlapped_ns": overlapped_ns,
        "comm_ns": comm_ns,
        "peak_microbatches": timeline.stage_program(number).peak_microbatches,
        "streams": {
            use.stream: {
                "busy_ns": use.busy_ns, "overlapped_ns": use.overlapped_ns, "exposed_ns": use.exposed_ns
            }
            for use in results.streams[number]
        },
    }  # fmt: skip


def _streams(results: Results) -> list[dict[str, Any]]:
    """Each stream, the mean of all ranks; share: of the step that it is busy."""
    step = results.step_time_ns
    return [
        {
            "stream": use.stream,
            "busy_ns": use.busy_ns,
            "share": use.busy_ns / step if step else 0.0,
            "overlapped_ns": use.overlapped_ns,
            "exposed_ns": use.exposed_ns,
            "most_busy_ns": most,
        }
        for use, most in results.mean_streams
    ]


def _dimension(results: Results, use: DimensionUse) -> dict[str, Any]:
    """What the rank that sends most sends over a dimension, and by which streams."""
    step = results.step_time_ns
    return {
        "bytes": use.bytes,
        "mean_bytes": use.mean_bytes,
        "busy_ns": use.busy_ns,
        "mean_busy_ns": use.mean_busy_ns,
        "share": use.busy_ns / step if step else 0.0,
        "ranks": results.simulation.timeline.classes[use.rank_class].ranks.text(),
        "by_kind": {kind: {"bytes": one.bytes, "busy_ns": one.busy_ns} for kind, one in use.by_kind.items()},
    }


def _worst_link(results: Results) -> dict[str, Any] | None:
    """The port that is busy longest, with the ranks of its class and the factor on its bandwidth."""
    port = results.busiest_port
    if port is None:
        return None
    ranks = results.simulation.timeline.classes[port.rank_class].ranks.text()
    return {"dimension": port.index, "ranks": ranks, "busy_ns": port.busy_ns, "factor": port.factor}


def sentence_values(results: Results) -> list[dict[str, Any]]:
    """The run in words, the main cause first."""
    return [{"rule": one.rule, "text": one.lead + one.text, "ns": one.ns} for one in results.sentences]


def _estimate(results: Results) -> dict[str, Any] | None:
    """SimAI's estimate, us to the ns; None unless the network is one of SimAI's."""
    found = results.simai_estimate
    if found is None:
        return None
    figures = {
        "dp_us": found.dp_us,
        "dp_ep_us": found.dp_ep_us,
        "tp_us": found.tp_us,
        "ep_us": found.ep_us,
        "pp_us": found.pp_us,
        "bubble_us": found.bubble_us,
        "compute_us": found.compute_us,
        "exposed_us": found.exposed_us,
        "total_us": found.total_us,
    }
    return {name: None if us is None else round(us, 3) for name, us in figures.items()}


def _layers(results: Results) -> list[dict[str, Any]]:
    """Each row of the file with its share of the critical path and the least slack of its spans."""
    critical = results.layer_critical_ns
    slack = results.layer_slack_ns or [None] * len(critical)
    return [
        {
            "index": row.index,
            "name": row.name,
            **{phase: _cell(cell) for phase, cell in row.cells.items()},
            "exposed_ns": row.exposed_ns,
            "critical_ns": critical_ns,
            "slack_ns": slack_ns,
        }
        for row, critical_ns, slack_ns in zip(results.layers, critical, slack, strict=True)
    ]


def _critical_path(results: Results) -> list[dict[str, Any]]:
    """The segments of the critical path, in the order of time; null for what a segment has not."""
    names, path = results.simulation.workload.name, results.critical_path
    return [
        {
            "start_ns": segment.start_ns,
            "end_ns": segment.end_ns,
            "rank": segment.rank,
            "stream": segment.stream,
            "kind": segment.kind,
            "layer": names[segment.row] if segment.row >= 0 else None,
            "phase": segment.phase or None,
            "microbatch": segment.microbatch if segment.microbatch >= 0 else None,
            "reason": segment.reason,
        }
        for segment in map(path.segment, range(len(path)))
    ]


def _what_if(results: Results) -> list[dict[str, Any]]:
    """The knobs, the greatest gain first; `anomaly` stands where a cheaper thing is a longer step."""
    return [
        {"knob": one.knob, "free_ns": one.free_ns, "better10_ns": one.better10_ns}
        | ({"anomaly": True} if one.anomaly else {})
        for one in results.what_if()
    ]


def _estimate_lines(results: Results) -> dict[str, Any]:
    """SimAI's estimate line by line beside one rank of the run; nothing where there is none."""
    if results.simai_estimate is None:
        return {}
    from simcore.analysis.simai_beside import beside_estimate

    lines = [
        {
            "line": one.line,
            "simai_us": None if one.simai_us is None else round(one.simai_us, 3),
            "ours_ns": one.ours_ns,
            "text": one.text,
        }
        for one in beside_estimate(results)[1]
    ]
    return {"simai_lines": lines}


def _cell(cell: LayerCell) -> dict[str, Any]:
    return {
        "compute_ns": cell.compute_ns,
        "comm": cell.collective,
        "group": cell.group,
        "bytes": cell.bytes,
        "comm_ns": cell.comm_ns,
        "algbw_gbps": cell.algbw,
        "busbw_gbps": cell.busbw,
    }

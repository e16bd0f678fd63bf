"""The report of execution traces as JSON: the keys of schema `wltui.report/1`, and `ranks`."""

from __future__ import annotations

from typing import Any

from simcore.cluster import parameter_values
from simcore.executing.accounts import ACCOUNTS, FIRST_EXPOSED, WAIT
from simcore.executing.ran import Segment
from simcore.executing.results import TraceResults
from simcore.parameters import as_dict
from simcore.run.accounts import Accounts


def trace_json(results: TraceResults, with_what_if: bool = False) -> dict[str, Any]:
    """All figures of execution traces that have run, as plain values, times in ns.

    Each rank is a class of its own, each name pattern of nodes a layer. with_what_if: also what the step
    would
    take with one thing changed.
    """
    one = results.executed
    cluster = one.cluster
    nodes = one.traces.count
    return {
        "workload": {
            "format": "chakra",
            "policy": one.traces.schema,
            "rows": nodes,
            "declared_rows": None,
            "microbatches": 0,
            "degrees": {"tp": None, "ep": None, "dp": None, "pp": None, "world": len(one.nodes)},
        },
        "cluster": {
            "dims": [
                {"kind": dim.kind, "size": dim.size, "bandwidth_gbps": dim.bandwidth,
                 "latency_ns": dim.latency_ns}
                for dim in cluster.dims
            ],
            "network": one.parameters.network,
        },
        "schedule": one.rules,
        "parameters": as_dict(results.parameters, "execution") | parameter_values(cluster),
        "step_time_ns": results.step_time_ns,
        "pass_end_ns": [],
        "spans": nodes,
        "ops_simulated": sum(len(one.nodes[rank]) for rank in one.units.first),
        "rank_classes": len(one.units.first),
        "ranks": [{"rank": rank, "end_ns": end, "exposed_ns": exposed} for rank, end, exposed in one.ranks],
        "classes": [_class(rank, accounts) for rank, accounts in enumerate(results.accounts)],
        "mean_ns": results.mean_ns,
        "layers": [
            {"index": index, "name": use.name, "operation": use.what, **dict.fromkeys(("fwd", "ig", "wg")),
             "count": use.nodes, "own_ns": use.own_ns, "wait_ns": use.waits_ns,
             "critical_ns": use.critical_ns, "slack_ns": use.slack_ns}
            for index, use in enumerate(results.name_table)
        ],
        "groups": [
            {"group": use.group, "ranks": use.ranks, "collectives": use.collectives, "bytes": use.bytes,
             "own_ns": use.own_ns, "wait_ns": use.waits_ns}
            for use in results.group_table
        ],
        "links": None if one.links is None else [link._asdict() for link in one.links],
        "streams": _streams(results),
        "dimensions": [],
        "worst_link": None,
        "sentences": [{"rule": "execution", "text": line} for line in results.words],
        "critical_path": [_segment(results, part) for part in results.critical_path],
        "what_if": (
            [{"list": knob.list, "knob": knob.name, "free_ns": knob.free_ns, "better10_ns": knob.better10_ns}
             for knob in results.what_if()] if with_what_if else None
        ),
        "what_if_base_ns": results.what_if_base_ns,
        "gradients": None,
        "estimates": {"simai": None},
        "diagnostics": [found.values() for found in results.diagnostics],
    }  # fmt: skip


def _class(rank: int, one: Accounts) -> dict[str, Any]:
    compute = one.total_ns[:FIRST_EXPOSED]
    return {
        "ranks": str(rank),
        "count": 1,
        "stage": None,
        "compute_ns": {
            name.removeprefix("compute "): ns
            for name, ns in zip(ACCOUNTS[:FIRST_EXPOSED], compute, strict=True)
        },
        "exposed_ns": {
            name.removeprefix("exposed "): ns
            for name, ns in zip(ACCOUNTS[FIRST_EXPOSED:WAIT], one.total_ns[FIRST_EXPOSED:WAIT], strict=True)
        },
        "wait_ns": one.ns("wait"),
        "bubble_ns": one.ns("bubble"),
        "host_ns": one.ns("host"),
        "idle_ns": one.ns("idle"),
    }


def _streams(results: TraceResults) -> list[dict[str, Any]]:
    """Each stream, the mean of all ranks; share: of the step that it is busy."""
    count, step = len(results.ranks), results.step_time_ns
    return [
        {"stream": name, "busy_ns": round(ns / count), "share": ns / count / step if step else 0.0}
        for name, ns in sorted(results.stream_ns.items())
    ]


def _segment(results: TraceResults, one: Segment) -> dict[str, Any]:
    return {
        "start_ns": one.start,
        "end_ns": one.end,
        "rank": one.rank,
        "stream": results.stream_of(one.rank, one.place),
        "kind": one.kind,
        "layer": results.name_of(one.rank, one.place),
        "node": results.executed.nodes[one.rank].id[one.place],
        "phase": None,
        "microbatch": None,
        "reason": one.reason,
    }

"""A calibration as JSON, schema `wltui.calibrate/1`: keys are added, never renamed."""

from __future__ import annotations

from typing import Any

from simcore.calibration import Calibration, KindFit
from simcore.parameters import as_dict, as_flags

SCHEMA = "wltui.calibrate/1"


def calibration_json(calibration: Calibration) -> dict[str, Any]:
    """All that was fitted and what is left, as plain values; times in ns, of kinds those of all ranks."""
    run = calibration.measured.measured
    compute = calibration.compute
    return {
        "schema": SCHEMA,
        "workload": calibration.before.workload.path,
        "measured": {
            "file": run.path,
            "step_time_ns": calibration.measured_step_ns,
            "ranks": calibration.ranks,
            "concurrent": run.concurrent,
            "host_ns": calibration.host_ns,
            "gaps_ns": calibration.gaps_ns,
        },
        "before": {"step_time_ns": calibration.before.step_time_ns},
        "after": {
            "step_time_ns": calibration.after.step_time_ns,
            "parameters": as_dict(calibration.parameters),
            "flags": as_flags(calibration.parameters),
        },
        "compute_scale": {
            "before": compute.before,
            "after": compute.after,
            "by": list(compute.by),
            "not_fitted": compute.why or None,
        },
        "dimensions": [
            {
                "index": one.dimension,
                "before_gbps": one.before,
                "after_gbps": one.after,
                "by": list(one.by),
                "together": list(one.together),
                "not_fitted": one.why or None,
            }
            for one in calibration.bandwidths
        ],
        "kinds": [_kind(one) for one in calibration.kinds],
        "ranks_off": [
            {
                "rank": one.rank,
                "measured_rank": one.measured_rank,
                "factor": one.factor,
                "slow_rank": one.slow_rank,
            }
            for one in calibration.off
        ],
        "slowed_step_time_ns": calibration.slowed_step_ns,
        "notes": list(calibration.notes),
        "diagnostics": [
            {"severity": one.severity, "code": one.code, "line": one.line, "message": one.message}
            for one in (*calibration.after.diagnostics, *run.diagnostics)
        ],
    }


def _kind(one: KindFit) -> dict[str, Any]:
    return {
        "kind": one.name,
        "measured_calls": one.measured_calls,
        "simulated_calls": one.simulated_calls,
        "measured_ns": one.measured_ns,
        "before_ns": one.before_ns,
        "after_ns": one.after_ns,
        "fitted": one.fitted,
        "why": one.why or None,
    }

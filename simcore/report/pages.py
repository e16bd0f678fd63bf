"""The page and the JSON of a run: which sections they have, in the order of the page.

A section is a file of this room with `lines` and `values` (see `Section`); a new one is a file and a line
here. JSON is of schema `wltui.report/1`: keys are added, never renamed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from simcore.report import (
    accounts,
    bandwidths,
    critical_path,
    diagnostics,
    estimate,
    head,
    imbalance,
    layers,
    links,
    measured,
    memory,
    nodes,
    operations,
    usage,
    waits,
    what_if,
)
from simcore.report.section import PageAsked, Section, page, values

if TYPE_CHECKING:
    from simcore.analysis.run import Run
    from simcore.cluster.choice import ClusterChoice

SCHEMA = "wltui.report/1"
SECTIONS: tuple[Section[Run], ...] = (
    head,
    memory,
    imbalance,
    accounts,
    measured,
    usage,
    nodes,
    links,
    waits,
    estimate,
    layers,
    critical_path,
    what_if,
    operations,
    bandwidths,
    diagnostics,
)
# The keys that come first, whatever the order of the page.
_FIRST_KEYS = (
    "workload", "cluster", "schedule", "parameters", "step_time_ns", "microbatch_ns", "pass_end_ns",
    "step_end_ns", "steady_step_ns", "spans", "ops_simulated", "rank_classes", "classes", "mean_ns",
    "throughput", "memory", "model", "imbalance", "layers", "critical_path", "what_if",
    "what_if_base_ns", "gradients", "streams", "dimensions", "worst_link", "sentences", "measured",
    "estimates", "diagnostics",
)  # fmt: skip


def run_page(
    run: Run,
    ascii_only: bool = False,
    with_what_if: bool = False,
    every_layer: bool = False,
    cluster: tuple[str, ClusterChoice] | None = None,
) -> str:
    """The page. with_what_if: also what would help. every_layer: all rows, or operations, in their table.
    cluster: see `PageAsked`.
    """
    run.weigh_assumptions()
    return page(SECTIONS, run, PageAsked(ascii_only, with_what_if, every_layer, cluster=cluster))


def run_json(
    run: Run, with_what_if: bool = False, cluster: tuple[str, ClusterChoice] | None = None
) -> dict[str, Any]:
    """All figures as plain values; times in ns, sizes in bytes, bandwidths in GB/s.

    with_what_if: also what would help. cluster: see `PageAsked`.
    """
    asked = PageAsked(what_if=with_what_if, cluster=cluster)
    # A run of 18 ms on seed 002: JSON has 1.6 times importing Textual.
    run.weigh_assumptions(all_of_them=False)
    return {"schema": SCHEMA} | values(SECTIONS, run, asked, _FIRST_KEYS)

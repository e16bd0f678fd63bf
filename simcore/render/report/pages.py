"""The page and the JSON of a run: its head, the sections of this room in their order, and its diagnostics.

A new section is a `Section` in a file of this room and a line here. JSON has schema `wltui.report/1`: keys
are added, never renamed.
"""

from __future__ import annotations

import os
from collections import Counter
from typing import TYPE_CHECKING, Any

from simcore.diagnostics import Diagnostic, printable
from simcore.render.report import hang, layers, memory, nodes, products, snapshot, what_if
from simcore.render.report.accounts import ACCOUNTS, ESTIMATE
from simcore.render.report.critical_path import CRITICAL_PATH, WAITS
from simcore.render.report.measured import BANDWIDTHS, MEASURED, OPERATIONS
from simcore.render.report.section import Field, PageOptions, Section, field_values, keys, page, values, wrap
from simcore.render.report.steps import STEPS
from simcore.render.report.usage import FLOWS, IMBALANCE, LINKS, USAGE
from simcore.trace.figures import Insight, microbatch_ns
from simcore.units import plural

if TYPE_CHECKING:
    from simcore.cluster import Dimension
    from simcore.cluster.choice import ClusterChoice
    from simcore.trace.run import Run

_INSIGHT: list[Field[Insight]] = [*keys("rule", "text"), Field(key="ns", optional=True)]
_DIMENSION: list[Field[Dimension]] = [
    *keys("kind", "size"), Field(key="bandwidth_gbps", value=lambda dimension: dimension.bandwidth),
    *keys("latency_ns"),
]  # fmt: skip
_WORKLOAD = keys("format", "policy", "rows", "declared_rows", "microbatches", "degrees")


def _head_lines(run: Run, options: PageOptions) -> list[str]:
    """Returns the step time, a line for each sentence, the main cause first, and a line for each fact."""
    figures = run.figures
    insight_lines = (
        [line for sentence in figures.insights for line in wrap(sentence.text, "  ", "    ")]
        if run.timed or not figures.has_step
        else []
    )
    facts = [f"  {name:<10} {words}" for name, words in figures.facts]
    # Sentences on other runs say what their shares are of.
    title = "In words, % of step" if run.figures.states_shares else "In words"
    return [*figures.title.split("\n"), "", *([title, *insight_lines, ""] if insight_lines else []), *facts]


def _head_json(run: Run, options: PageOptions) -> dict[str, Any]:
    """Returns the step, the sentences, `workload`, `cluster`, `parameters` and the counts of the run."""
    origin = run.figures.origin
    return {
        "workload": field_values(_WORKLOAD, [origin])[0],
        "cluster": {"dims": field_values(_DIMENSION, run.network.dims), "network": origin.network},
        "schedule": origin.schedule,
        "parameters": origin.parameters,
        "step_time_ns": run.step_time_ns,
        "microbatch_ns": microbatch_ns(run.shape),
        "pass_end_ns": origin.pass_end_ns,
        "step_end_ns": origin.step_end_ns,
        "steady_step_ns": origin.steady_step_ns,
        "spans": origin.spans,
        "ops_simulated": origin.ops_simulated,
        "rank_classes": len(run.trace) if run.timed else 0,
        "sentences": field_values(_INSIGHT, run.figures.insights),
    }


HEAD: Section[Run] = Section("head", _head_lines, _head_json)


def _diagnostic_lines(run: Run, options: PageOptions) -> list[str]:
    """Returns a line for each diagnostic; one of another file than the opened one names it."""
    counts = Counter(diagnostic.severity for diagnostic in run.diagnostics)
    count_texts = [
        plural(counts[severity], severity) for severity in ("error", "warning", "note") if counts[severity]
    ]
    message_lines = [
        line for diagnostic in run.diagnostics for line in _format_diagnostic(diagnostic, run.path)
    ]
    return [f"Diagnostics: {', '.join(count_texts) or 'none'}", *message_lines]


def _format_diagnostic(diagnostic: Diagnostic, path: str) -> list[str]:
    where = f"line {diagnostic.line}" if diagnostic.line is not None else "run"
    if diagnostic.line is not None and diagnostic.column is not None:
        where += f", column {diagnostic.column}"
    first = f"  {diagnostic.severity:<8} {where:<20} "
    of_file = "" if diagnostic.file in ("", path) else f"{printable(os.path.basename(diagnostic.file))}: "
    return wrap(f"{of_file}{diagnostic.message}  [{diagnostic.code}]", first, " " * len(first))


def _diagnostic_json(run: Run, options: PageOptions) -> dict[str, Any]:
    """Returns `diagnostics`."""
    return {"diagnostics": [diagnostic.values() for diagnostic in run.diagnostics]}


DIAGNOSTICS: Section[Run] = Section("diagnostics", _diagnostic_lines, _diagnostic_json)


SCHEMA = "wltui.report/1"
SECTIONS: tuple[Section[Run], ...] = (
    HEAD,
    hang.SECTION,
    snapshot.SECTION,
    STEPS,
    products.SECTION,
    memory.SECTION,
    IMBALANCE,
    ACCOUNTS,
    MEASURED,
    USAGE,
    nodes.SECTION,
    LINKS,
    FLOWS,
    WAITS,
    ESTIMATE,
    layers.SECTION,
    CRITICAL_PATH,
    what_if.SECTION,
    OPERATIONS,
    BANDWIDTHS,
    DIAGNOSTICS,
)
# The keys that come first, whatever the order of the page.
_FIRST_KEYS = (
    "workload", "cluster", "schedule", "parameters", "step_time_ns", "microbatch_ns", "pass_end_ns",
    "step_end_ns", "steady_step_ns", "spans", "ops_simulated", "rank_classes", "classes", "mean_ns",
    "throughput", "trust", "memory", "model", "imbalance", "layers", "critical_path", "what_if",
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
    """Returns the page of a run.

    with_what_if: also what would help. every_layer: all rows, or operations, in their table. cluster: of
    `PageOptions`.
    """
    run.weigh_assumptions()
    return page(SECTIONS, run, PageOptions(ascii_only, with_what_if, every_layer, cluster=cluster))


def run_json(
    run: Run, with_what_if: bool = False, cluster: tuple[str, ClusterChoice] | None = None
) -> dict[str, Any]:
    """Returns all figures as plain values; times in ns, sizes in bytes, bandwidths in GB/s.

    with_what_if: also what would help. cluster: of `PageOptions`.
    """
    options = PageOptions(what_if=with_what_if, cluster=cluster)
    # That takes a run of 18 ms on seed 002, where JSON takes 1.6 times importing Textual. The what-ifs need
    # it anyway, and the sentences come before them.
    run.weigh_assumptions(include_all=with_what_if)
    return {"schema": SCHEMA} | values(SECTIONS, run, options, _FIRST_KEYS)

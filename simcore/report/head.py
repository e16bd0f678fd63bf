"""What the run is: its step time, the run in words, what was read, and with what it was run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from simcore.report.section import Field, PageAsked, field_values, keys, wrapped
from simcore.run.figures import Said, microbatch_ns

if TYPE_CHECKING:
    from simcore.analysis.run import Run
    from simcore.cluster import Dimension

_SAID: list[Field[Said]] = [*keys("rule", "text"), Field(key="ns", optional=True)]
_DIMENSION: list[Field[Dimension]] = [
    *keys("kind", "size"), Field(key="bandwidth_gbps", value=lambda dimension: dimension.bandwidth),
    *keys("latency_ns"),
]  # fmt: skip
_WORKLOAD = keys("format", "policy", "rows", "declared_rows", "microbatches", "degrees")


def lines(run: Run, asked: PageAsked) -> list[str]:
    """The step time, a sentence a line, the main cause first, and a line a fact."""
    figures = run.figures
    said = (
        [line for sentence in figures.said for line in wrapped(sentence.text, "  ", "    ")]
        if run.timed
        else []
    )
    facts = [f"  {name:<10} {words}" for name, words in figures.facts]
    # Those of other runs say what their shares are of.
    title = "In words, % of step" if run.origin == "simulated" else "In words"
    return [*figures.title.split("\n"), "", *([title, *said, ""] if said else []), *facts]


def values(run: Run, asked: PageAsked) -> dict[str, Any]:
    """The step, the sentences, `workload`, `cluster`, `parameters` and how much there is of the run."""
    origin = run.figures.origin
    return {
        "workload": field_values(_WORKLOAD, [origin])[0],
        "cluster": {"dims": field_values(_DIMENSION, run.dims), "network": origin.network},
        "schedule": origin.schedule,
        "parameters": origin.parameters,
        "step_time_ns": run.step_time_ns,
        "microbatch_ns": microbatch_ns(run),
        "pass_end_ns": origin.pass_end_ns,
        "step_end_ns": origin.step_end_ns,
        "steady_step_ns": origin.steady_step_ns,
        "spans": origin.spans,
        "ops_simulated": origin.ops_simulated,
        "rank_classes": _rank_classes(run),
        "sentences": field_values(_SAID, run.figures.said),
    }


def _rank_classes(run: Run) -> int:
    known = run.figures.origin.rank_classes
    return len(run.tracks) * run.timed if known is None else known

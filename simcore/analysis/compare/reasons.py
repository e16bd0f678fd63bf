"""Why two runs differ, in words: the account that explains most of it, and a reason a changed parameter.

A new parameter's reason is one entry in `REASONS`. A reason says what the figures show.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from simcore.diagnostics import printable
from simcore.program.schedules import SCHEDULES
from simcore.units import duration, signed

if TYPE_CHECKING:
    from simcore.analysis.compare import Comparison

Reason = Callable[["Comparison"], str]


def why(comparison: Comparison) -> str:
    """The account that changes most as the step does, on the mean rank, what goes against it, and the reason;
    what is equal where nothing changes.
    """
    if not comparison.leading.most.ns:
        equal = "the step times" if comparison.difference_ns == 0 else "the accounts"
        return f"nothing changes: {equal} are equal"
    changed = comparison.leading.words(lambda change: signed(change.ns))
    said = [REASONS[field](comparison) for field in REASONS if field in comparison.changed]
    if comparison.other_file:
        said.insert(0, "another file")
    reasons = list(dict.fromkeys(said))
    more = f" (and {len(reasons) - 2} more changes)" if len(reasons) > 2 else ""
    return f"{changed}{': ' if reasons else ''}{'; '.join(reasons[:2])}{more}"


def _lost(comparison: Comparison) -> int:
    """How much more the pipeline leaves empty, bubble and idle of the mean rank, ns."""
    return comparison.account_change("bubble") + comparison.account_change("idle")


def _schedule(comparison: Comparison) -> str:
    before, after = comparison.changed["schedule"]
    chunks = comparison.b.simulation.program.virtual_stages
    whole = comparison.a.simulation.program.virtual_stages
    shorter = _lost(comparison) < 0
    if not SCHEDULES[after].pipelined:
        return "without a pipeline no stage waits for another"
    if not SCHEDULES[before].pipelined:
        return "stages of a pipeline wait for each other"
    if after == "interleaved" and shorter:
        return f"chunks of 1/{chunks} of a stage make the empty slots as much shorter"
    if before == "interleaved" and not shorter:
        return f"whole stages in place of chunks make the empty slots {whole} times as long"
    if after == "zb-h1" and shorter:
        return "weight gradients fill the wait for the next backward"
    if before == "zb-h1" and not shorter:
        return "weight gradients no longer fill the wait for the next backward"
    if {before, after} == {"gpipe", "1f1b"}:
        return f"{before} and {after} leave the same slots empty, in another order"
    return f"{after} runs forwards and backwards in another order than {before}"


def _virtual_stages(comparison: Comparison) -> str:
    before, after = comparison.changed["virtual_stages"]
    if "schedule" in comparison.changed:
        return _schedule(comparison)
    return f"{after} chunks a stage in place of {before}: empty slots of 1/{after} of a stage"


def _microbatches(comparison: Comparison) -> str:
    before, after = comparison.changed["microbatches"]
    stages = comparison.b.simulation.layout.pp
    if stages == 1:
        return f"a step has {after} micro-batches in place of {before}"
    return f"{stages - 1} empty slots stand beside {after} micro-batches in place of {before}"


def _communication(comparison: Comparison) -> str:
    before, after = (
        side.mean(comm for comm, _ in side.results.communication)
        for side in (comparison.facts_a, comparison.facts_b)
    )
    if before == after:
        return f"each rank communicates {duration(after)} in both"
    return f"each rank communicates {duration(after)}, before {duration(before)}"


def _compute(comparison: Comparison) -> str:
    before, after = comparison.facts_a.mean_busy_ns, comparison.facts_b.mean_busy_ns
    return f"each rank computes {duration(after)}, before {duration(before)}"


def _slow_rank(comparison: Comparison) -> str:
    before, after = comparison.changed["slow_rank"]
    given = [text for text in after if text not in before]
    if given:
        rank, _, factor = printable(given[0], 40).partition("=")
        more = f" (and {len(given) - 1} more)" if len(given) > 1 else ""
        return f"rank {rank}{more} computes {factor} times as long, and who works with it waits"
    return "no rank that was slow is waited for any more"


def _slow_link(comparison: Comparison) -> str:
    before, after = comparison.changed["slow_link"]
    given = [text for text in after if text not in before]
    if given:
        return f"port {printable(given[0], 40)} slows down what goes through it"
    return "no slow port is waited for any more"


def _grad_reduce(comparison: Comparison) -> str:
    if comparison.changed["overlap_grad_reduce"][1]:
        return "gradients are reduced beside the last backward"
    return "gradients are reduced after the last backward"


def _param_gather(comparison: Comparison) -> str:
    if comparison.changed["overlap_param_gather"][1]:
        return "parameters are gathered beside the first forward"
    return "parameters are gathered at the end of the step"


def _stage_layout(comparison: Comparison) -> str:
    if comparison.changed["stage_layout"][1] == "megatron":
        return "embedding rows run on the first stage alone, final and loss rows on the last"
    return "every stage runs the embedding, final and loss rows too"


def _degrees(comparison: Comparison) -> str:
    a, b = comparison.a.simulation.layout, comparison.b.simulation.layout
    return f"tp {b.tp} x dp {b.dp} x pp {b.pp}, before tp {a.tp} x dp {a.dp} x pp {a.pp}"


def _rank_order(comparison: Comparison) -> str:
    return "ranks, and with them groups, lie elsewhere on the network"


def _jitter(comparison: Comparison) -> str:
    return "durations vary by chance, and the slowest of a group is waited for"


def _work(comparison: Comparison) -> str:
    return "a step does another amount of work"


def _dialect(comparison: Comparison) -> str:
    return "the rows are read by the rules of the other simulator"


def _estimate_only(comparison: Comparison) -> str:
    return "only SimAI's estimate changes"


# By field of `Parameters`, in the order in which reasons are looked for.
REASONS: dict[str, Reason] = {
    "dialect": _dialect,
    "schedule": _schedule,
    "virtual_stages": _virtual_stages,
    "pp": _degrees,
    "tp": _degrees,
    "ep": _degrees,
    "world": _degrees,
    "rank_order": _rank_order,
    "microbatches": _microbatches,
    "passes": _work,
    "layers": _work,
    "stage_layout": _stage_layout,
    "overlap_grad_reduce": _grad_reduce,
    "overlap_param_gather": _param_gather,
    "slow_rank": _slow_rank,
    "slow_link": _slow_link,
    "compute_scale": _compute,
    "layer_scale": _compute,
    "jitter": _jitter,
    "seed": _jitter,
    **dict.fromkeys(
        (
            "comm_scale", "network", "cluster", "system", "dim", "algorithm", "splits", "active_chunks",
            "endpoint_delay", "local_mem_bw", "collective_optimization", "nvlink", "nic", "nics_per_server",
            "gpus_per_server", "gpu_type", "nic_type",
        ),
        _communication,
    ),
    "overlap": _estimate_only,
}  # fmt: skip

"""The run of the files, where times were measured, and how its replay differs from it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from simcore.kernel_names import short_name
from simcore.report.bandwidths import bandwidth_values
from simcore.report.operations import operation_values
from simcore.report.section import Field, PageAsked, field_lines, field_values, more_line
from simcore.report.waits import wait_values
from simcore.units import duration, signed

if TYPE_CHECKING:
    from simcore.analysis.run import Run
    from simcore.measured import MeasuredRun
    from simcore.replay.insights import RankDifference
    from simcore.replay.timed import Timed

_RANKS, _OPS = 64, 3
_NAME_CELLS = 34
_PROFILED = ("kernel", "copy")


def _ops(rank_difference: RankDifference) -> str:
    return ", ".join(
        f"{short_name(name, _NAME_CELLS)} {signed(ns)}" for name, ns in rank_difference.ops[:_OPS]
    )


_FIELDS: list[Field[RankDifference]] = [
    Field("rank", lambda rank: str(rank.number), "ranks", lambda rank: str(rank.number)),
    Field(
        "measured", lambda rank: duration(rank.measured_ns),
        "measured_end_ns", lambda rank: rank.measured_ns,
    ),
    Field("replayed", lambda rank: duration(rank.replayed_ns), "end_ns", lambda rank: rank.replayed_ns),
    Field("difference", lambda rank: signed(rank.replayed_ns - rank.measured_ns)),
    Field(
        "most by", _ops,
        "operations", lambda rank: [{"name": name, "difference_ns": ns} for name, ns in rank.ops], left=True,
    ),
]  # fmt: skip


def _differences(run: Run) -> list[RankDifference]:
    if run.scales is None or run.figures.recorded is None:
        return []
    # Imported here: only what was recorded is replayed.
    from simcore.replay.insights import differences

    return differences(run.figures.recorded)


def lines(run: Run, asked: PageAsked) -> list[str]:
    """A line a rank: when it ends, measured and replayed, and the operations that explain it."""
    rank_differences = _differences(run)
    if not rank_differences:
        return []
    more = more_line(len(rank_differences) - _RANKS, "more ranks", "--json has all")
    return [
        "When each rank ends, measured and replayed",
        *field_lines(_FIELDS, rank_differences[:_RANKS]),
        *more,
    ]


def values(run: Run, asked: PageAsked) -> dict[str, Any]:
    """`measured`: the step and the ranks as they were measured and, of a replay, as they are replayed."""
    recorded = run.figures.recorded
    if recorded is None:
        return {}
    measured, replay = recorded.measured, None
    if run.scales is not None:
        replay = {
            "step_time_ns": run.step_time_ns,
            "difference_ns": run.step_time_ns - measured.step_time_ns,
            "by_rank": field_values(_FIELDS, _differences(run)),
            **_waiting(run),
        }
    keyed = {
        "step_time_ns": measured.step_time_ns,
        "ranks": len(measured.ranks),
        "concurrent": measured.concurrent,
        "timed": measured.timed,
        "unit": measured.unit,
        "run": measured.stamp,
        "missing": measured.missing.text(),
        "by_rank": _ranks(measured),
        **operation_values(recorded),
        **_waiting(run.as_read),
        **_recorded(run, recorded, asked),
        "replay": replay,
    }
    return {"measured": keyed}


def _ranks(run: MeasuredRun) -> list[dict[str, Any]]:
    """Each rank; its ns by category sum to the step time."""
    # Imported here: other runs have none.
    from simcore.measured.summary import rank_times

    ranks = []
    for rank, time in zip(run.ranks, rank_times(run), strict=True):
        times: dict[str, Any] = {}
        if run.timed:
            times = {"start_ns": rank.first_ns, "end_ns": rank.last_ns, "ns": _told(run, time.ns)}
        counts = {"operations": len(rank.ops), "sub_operations": len(rank.subs)}
        ranks.append({"ranks": str(rank.number), "stage": rank.stage, **counts, **times})
    return ranks


def _told(run: MeasuredRun, ns: Mapping[str, int]) -> dict[str, int]:
    """ns by category; what a profiler alone tells is left out where there is none of it."""
    return {
        name: account_ns
        for name, account_ns in ns.items()
        if account_ns or run.of_devices or name not in _PROFILED
    }


def _recorded(shown: Run, results: Timed, asked: PageAsked) -> dict[str, Any]:
    """What is known of profiler traces alone; nothing of others."""
    run, recorded = results.measured, results.measured.recorded
    if recorded is None:
        return {}
    # Imported here: other runs have none.
    from simcore.replay.stragglers import stragglers

    middle, most = recorded.residual_ns
    numbers = [str(rank.number) for rank in run.ranks]
    return {
        "step": recorded.step,
        "steps": [
            {"step": step.number, "longest_ns": step.longest_ns,
             "ns": {str(rank): ns for rank, ns in sorted(step.ns.items())}}
            for step in recorded.steps
        ],
        "clocks": {
            "shift_ns": dict(zip(numbers, recorded.shifts, strict=True)),
            "matched": dict(zip(numbers, recorded.matched, strict=True)),
            "residual_ns": {"median": middle, "most": most},
        },
        "collectives": bandwidth_values(shown, asked),
        "stragglers": [late._asdict() for late in stragglers(results)],
    }  # fmt: skip


def _waiting(run: Run) -> dict[str, Any]:
    """The accounts of each rank, which sum to the step, and who waits for whom."""
    accounts = []
    for track in sorted(run.tracks) if run.timed else ():
        ns = run.account_ns((track,))
        apart = {
            f"{kind}_ns": {
                name.removeprefix(f"{kind} "): ns[name] for name in ns if name.startswith(f"{kind} ")
            }
            for kind in ("compute", "exposed")
        }
        alone = {f"{name}_ns": ns[name] for name in ("wait", "bubble", "host", "idle")}
        accounts.append({"ranks": track.ranks.text(), "stage": track.stage, **apart, **alone})
    return {"accounts": accounts, "waiting": wait_values(run)}

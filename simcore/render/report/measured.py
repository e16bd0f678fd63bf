"""The sections of measured runs alone: the run of the files and its replay, the operations by name, the
bandwidths.

Bandwidths are those of collectives whose bytes a profiler's trace tells.
"""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from simcore.diagnostics import printable
from simcore.kernel_names import short_name
from simcore.render.report.critical_path import wait_values
from simcore.render.report.section import (
    WIDTH,
    Field,
    PageOptions,
    Section,
    field_lines,
    field_values,
    keys,
    remaining_line,
)
from simcore.trace.run import as_read
from simcore.units import byte_size, duration, percent, signed_duration

if TYPE_CHECKING:
    from simcore.cluster.choice import ClusterChoice
    from simcore.measured import MeasuredRun
    from simcore.measured.summary import OpFigures
    from simcore.replay.bandwidths import Bandwidth
    from simcore.replay.differences import RankDifference
    from simcore.replay.replayed_run import ReplayedRun
    from simcore.runs.measured import RecordedRun
    from simcore.trace.run import Run

_MOST_RANKS, _MOST_OPS = 64, 3
_NAME_CELLS = 34
_PROFILED = ("kernel", "copy")


def _format_largest_ops(rank_difference: RankDifference) -> str:
    return ", ".join(
        f"{short_name(name, _NAME_CELLS)} {signed_duration(ns)}"
        for name, ns in rank_difference.ops[:_MOST_OPS]
    )


_END: list[Field[RankDifference]] = [
    Field("rank", lambda rank: str(rank.rank), "ranks", lambda rank: str(rank.rank)),
    Field(
        "measured", lambda rank: duration(rank.measured_ns),
        "measured_end_ns", lambda rank: rank.measured_ns,
    ),
    Field("replayed", lambda rank: duration(rank.replayed_ns), "end_ns", lambda rank: rank.replayed_ns),
    Field("difference", lambda rank: signed_duration(rank.replayed_ns - rank.measured_ns)),
    Field(
        "most by", _format_largest_ops,
        "operations", lambda rank: [{"name": name, "difference_ns": ns} for name, ns in rank.ops], left=True,
    ),
]  # fmt: skip


def recorded_of(run: Run) -> RecordedRun | None:
    """Returns the recording of a run whose times were measured; None for any other."""
    return cast("RecordedRun | None", run.recording)


def _differences(run: Run) -> list[RankDifference]:
    recorded = recorded_of(run)
    if recorded is None or not recorded.is_replayed:
        return []
    # Imported here: only recordings are replayed.
    from simcore.replay.differences import differences

    return differences(recorded)


def _replay_lines(run: Run, options: PageOptions) -> list[str]:
    """Returns a line for each rank: its end, measured and replayed, and the operations that explain the
    difference.
    """
    rank_differences = _differences(run)
    if not rank_differences:
        return []
    more = remaining_line(len(rank_differences) - _MOST_RANKS, "more ranks", "--json has all")
    return [
        "When each rank ends, measured and replayed",
        *field_lines(_END, rank_differences[:_MOST_RANKS]),
        *more,
    ]


def _measured_json(run: Run, options: PageOptions) -> dict[str, Any]:
    """Returns `measured`: the step and the ranks as measured and, for a replay, as replayed."""
    recorded = recorded_of(run)
    if recorded is None:
        return {}
    measured, replay = recorded.measured, None
    if recorded.is_replayed:
        replay = {
            "step_time_ns": run.step_time_ns,
            "difference_ns": run.step_time_ns - measured.step_time_ns,
            "by_rank": field_values(_END, _differences(run)),
            **_wait_accounts(run),
        }
    keyed = {
        "step_time_ns": measured.step_time_ns,
        "ranks": len(measured.ranks),
        "concurrent": measured.concurrent,
        "timed": measured.timed,
        "unit": measured.unit,
        "run": measured.stamp,
        "missing": measured.missing.text(),
        "by_rank": _rank_values(measured),
        **_operation_values(recorded),
        **_wait_accounts(as_read(run)),
        **_profile_values(run, recorded, options),
        "replay": replay,
    }
    return {"measured": keyed}


def _rank_values(run: MeasuredRun) -> list[dict[str, Any]]:
    """Returns each rank; its ns by category sum to the step time."""
    # Imported here: other runs have none.
    from simcore.measured.summary import rank_times

    ranks = []
    for rank, time in zip(run.ranks, rank_times(run), strict=True):
        times: dict[str, Any] = {}
        if run.timed:
            times = {
                "start_ns": rank.first_ns,
                "end_ns": rank.last_ns,
                "ns": _reported_categories(run, time.ns),
            }
        counts = {"operations": len(rank.ops), "sub_operations": len(rank.subs)}
        ranks.append({"ranks": str(rank.rank), "stage": rank.stage, **counts, **times})
    return ranks


def _reported_categories(run: MeasuredRun, ns: Mapping[str, int]) -> dict[str, int]:
    """Returns ns by category; those of profilers alone only where they have time."""
    return {
        name: account_ns
        for name, account_ns in ns.items()
        if account_ns or run.of_devices or name not in _PROFILED
    }


def _profile_values(displayed_run: Run, results: ReplayedRun, options: PageOptions) -> dict[str, Any]:
    """Returns the figures of profiler traces alone; none for other runs."""
    run, recorded = results.measured, results.measured.recorded
    if recorded is None:
        return {}
    # Imported here: other runs have none.
    from simcore.replay.bandwidths import without_bandwidth
    from simcore.replay.idle import gap_values, long_gaps
    from simcore.replay.stragglers import find_stragglers

    middle, most = recorded.residual_ns
    rank_names = [str(rank.rank) for rank in run.ranks]
    return {
        "step": recorded.step,
        "steps": [
            {"step": step.step_number, "longest_ns": step.longest_ns,
             "ns": {str(rank): ns for rank, ns in sorted(step.ns.items())}}
            for step in recorded.steps
        ],
        "clocks": {
            "shift_ns": dict(zip(rank_names, recorded.shifts, strict=True)),
            "matched": dict(zip(rank_names, recorded.match_counts, strict=True)),
            "residual_ns": {"median": middle, "most": most},
        },
        "collectives": _bandwidth_values(displayed_run, options),
        "collectives_without_bandwidth": [
            {"operation": without.operation, "group": without.group, "count": without.times,
             "reason": without.reason}
            for without in without_bandwidth(results)
        ],
        "stragglers": [
            late._asdict() | {"gap": None if late.gap is None else gap_values(late.gap)}
            for late in find_stragglers(results)
        ],
        "gaps": [
            {"ranks": rank_names[rank], **gap_values(gap)}
            for rank, gap in long_gaps(results.gaps, results.step_time_ns)
        ],
    }  # fmt: skip


def _wait_accounts(run: Run) -> dict[str, Any]:
    """Returns the accounts of each rank, which sum to the step, and the waits between ranks."""
    # An order without times has no accounts.
    accounts = [
        {"ranks": track.ranks.text(), "stage": track.stage, "compute_ns": own.compute_ns(),
         "exposed_ns": own.exposed_ns(), "wait_ns": own.wait_ns, "bubble_ns": own.bubble_ns,
         "host_ns": own.ns("host"), "idle_ns": own.idle_ns}
        for track, own in zip(sorted(run.tracks), run.accounts, strict=False)
    ]  # fmt: skip
    return {"accounts": accounts, "waiting": wait_values(run)}


MEASURED: Section[Run] = Section("measured", _replay_lines, _measured_json)


# The most rows of a table; the first are those that take most.
_MOST_ROWS = 60


def _operation_fields(
    run: MeasuredRun, waited: Callable[[OpFigures], int] | None, every_ns: int = 0
) -> list[Field[OpFigures]]:
    """Returns the columns of an operation.

    waited: returns how much of the longest call is waiting for others; None where no waits are known.
    every_ns: the time of all operations together.
    """
    # A kernel takes microseconds.
    unit_ns, decimals = (1e3, 1) if run.of_devices else (1e6, 2)

    def name(figures: OpFigures) -> str:
        if figures.parent is None:
            return short_name(figures.name, _NAME_CELLS)
        return printable(f"{figures.name} in {figures.parent}", _NAME_CELLS)

    def most_is_on(figures: OpFigures) -> str:
        batch = f", micro-batch {figures.most_batch}" if figures.most_batch >= 0 else ""
        return f"{run.unit} {figures.most_rank}{batch}" if figures.measured else "no duration"

    def of_time(ns: Callable[[OpFigures], float] | None) -> Callable[[OpFigures], str] | None:
        """Returns a cell of ms; None, no column, for an order without times."""
        return (
            None
            if ns is None or not run.timed
            else lambda figures: f"{ns(figures) / unit_ns:.{decimals}f}" if figures.measured else "-"
        )

    def share(figures: OpFigures) -> str:
        return percent(figures.total_ns, every_ns) if figures.measured and every_ns else "-"

    def of_most(figure: Callable[[OpFigures], int]) -> Callable[[OpFigures], int | None]:
        return lambda figures: figure(figures) if figures.measured and figure(figures) >= 0 else None

    return [
        Field("operation", name, "name", left=True),
        Field(key="parent"),
        Field("kind", lambda figures: figures.category, "kind", lambda figures: figures.category, left=True),
        Field("count", lambda figures: str(figures.count), "count"),
        Field(key="measured"),
        Field("total", of_time(lambda figures: figures.total_ns) if run.of_devices else None, "total_ns"),
        Field("% of all", share if run.of_devices else None),
        Field("mean", of_time(lambda figures: figures.total_ns / figures.measured)),
        Field("least", of_time(lambda figures: figures.least_ns), "least_ns"),
        Field("most", of_time(lambda figures: figures.most_ns), "most_ns"),
        Field("waits", of_time(waited)),
        Field(
            "most is on", most_is_on if run.timed else None,
            "most_rank", of_most(lambda figures: figures.most_rank), left=True,
        ),
        Field(key="most_microbatch", value=of_most(lambda figures: figures.most_batch)),
    ]  # fmt: skip


def _operation_lines(run: Run, options: PageOptions) -> list[str]:
    """Returns the operations and sub-operations, the longest first; an order without times as it is."""
    recorded = recorded_of(run)
    if recorded is None:
        return []
    # Imported here and below: other runs have no such table.
    from simcore.measured.summary import op_figures, sub_figures
    from simcore.replay.operations import group_operations

    displayed_run = recorded.run
    waited = _longest_waits(recorded) if run.timed and recorded.waiting else None
    unit = "" if not run.timed else ", us" if displayed_run.of_devices else ", ms"
    unit += "; waits: part of the most" if waited is not None else ""

    def rows(figures: list[OpFigures]) -> list[str]:
        ordered = sorted(figures, key=lambda figure: -figure.total_ns)
        displayed_ops = ordered if options.every_layer or options.everything else ordered[:_MOST_ROWS]
        more = remaining_line(len(ordered) - len(displayed_ops), where="--all-layers has all")
        every_ns = sum(op.total_ns for op in ordered)
        return [*field_lines(_operation_fields(displayed_run, waited, every_ns), displayed_ops), *more]

    page = [] if run.timed else [*order_lines(displayed_run, WIDTH), ""]
    page += [f"Operations of all ranks, by name{unit}", *rows(op_figures(displayed_run))]
    if _has_layers(displayed_run):
        of_layers = f"Layers of all ranks, each phase alone, us{'' if waited is None else unit[4:]}"
        page += ["", of_layers, *rows(op_figures(group_operations(displayed_run, "layer")))]
    subs = sub_figures(displayed_run)
    if subs:
        page += ["", f"Sub-operations, inside the operations above{unit}", *rows(subs)]
    return page


def _has_layers(run: MeasuredRun) -> bool:
    from simcore.replay.operations import groupings

    return "layer" in groupings(run)


def _longest_waits(recorded: ReplayedRun) -> Callable[[OpFigures], int]:
    from simcore.replay.waits import waits_by_item

    waits = {rank.rank: waits_by_item(recorded, index) for index, rank in enumerate(recorded.run.ranks)}
    return lambda figures: sum(wait.ns for wait in waits[figures.most_rank].get(figures.most_item, ()))


def order_lines(run: MeasuredRun, width: int) -> list[str]:
    """Returns the operations of each stage or rank in the order of the file, each with its micro-batch."""
    page = ["Order of the operations, with their micro-batches"]
    for rank in run.ranks:
        ops = rank.ops
        names = [
            printable(name, _NAME_CELLS) + (f" {batch}" if batch >= 0 else "")
            for name, batch in zip(ops.name[:_MOST_ROWS], ops.batch, strict=False)
        ]
        remaining_count = len(ops) - len(names)
        text = ", ".join(names) + (f", and {remaining_count} more" if remaining_count > 0 else "")
        head = f"  {run.unit} {rank.rank}  "
        page += textwrap.wrap(text, width, initial_indent=head, subsequent_indent=" " * len(head))
    return page


def _operation_values(recorded: ReplayedRun) -> dict[str, Any]:
    """Returns `operations` with the least slack of each, `sub_operations`, and `layers`, by the times of the
    files.

    `layers` are there where a profiler's trace tells them.
    """
    from simcore.measured.summary import op_figures, sub_figures
    from simcore.replay.operations import group_operations, least_slacks

    run, slack = recorded.measured, least_slacks(recorded) if recorded.timed else {}
    fields = _operation_fields(run, None)
    slacks: Field[OpFigures] = Field(key="slack_ns", value=lambda figures: slack.get(figures.name))
    return {
        "operations": field_values([*fields, slacks], op_figures(run)),
        "sub_operations": field_values(fields, sub_figures(run)),
        **(
            {"layers": field_values(fields, op_figures(group_operations(run, "layer")))}
            if _has_layers(run)
            else {}
        ),
    }


OPERATIONS: Section[Run] = Section("operations", _operation_lines)


_MOST_BANDWIDTHS = 20
# The collectives that `wltui collective` knows, by their word in a trace.
_SIMULATED = {
    "allreduce": "all-reduce", "allgather": "all-gather", "allgatherintotensor": "all-gather",
    "reducescatter": "reduce-scatter", "reducescattertensor": "reduce-scatter", "alltoall": "all-to-all",
    "alltoallv": "all-to-all",
}  # fmt: skip
_GROUP_CELLS = 24
# The most kernels that are named for one reason why they have no bandwidth.
_MOST_WITHOUT = 4


def _format_rate(gbps: float) -> str:
    return f"{gbps:.2f}" if gbps < 100 else f"{gbps:.0f}"


def _rates(of: Any, bandwidth: Bandwidth) -> dict[str, float]:
    return {"best": of(bandwidth.least_ns), "median": of(bandwidth.middle_ns), "worst": of(bandwidth.most_ns)}


_BANDWIDTH: list[Field[Bandwidth]] = [
    Field(
        "collective",
        lambda bandwidth: printable(bandwidth.operation, _GROUP_CELLS) + "*" * bandwidth.waits_included,
        "operation", lambda bandwidth: bandwidth.operation, left=True,
    ),
    Field(
        "group",
        lambda bandwidth: "-" if bandwidth.group is None else printable(bandwidth.group, _GROUP_CELLS),
        "group", lambda bandwidth: bandwidth.group, left=True,
    ),
    Field("ranks", lambda bandwidth: str(bandwidth.ranks), "ranks", lambda bandwidth: bandwidth.ranks),
    Field("bytes", lambda bandwidth: byte_size(bandwidth.bytes), "bytes", lambda bandwidth: bandwidth.bytes),
    Field("count", lambda bandwidth: str(bandwidth.times), "count", lambda bandwidth: bandwidth.times),
    *keys("least_ns"),
    Field(
        "median", lambda bandwidth: duration(bandwidth.middle_ns),
        "median_ns", lambda bandwidth: bandwidth.middle_ns,
    ),
    *keys("most_ns", "waits_included"),
    Field(
        "algbw", lambda bandwidth: _format_rate(bandwidth.algbw(bandwidth.middle_ns)),
        "algbw_gbps", lambda bandwidth: _rates(bandwidth.algbw, bandwidth),
    ),
    Field(
        "busbw", lambda bandwidth: _format_rate(bandwidth.busbw(bandwidth.middle_ns)),
        "busbw_gbps", lambda bandwidth: _rates(bandwidth.busbw, bandwidth),
    ),
    Field("best", lambda bandwidth: _format_rate(bandwidth.busbw(bandwidth.least_ns))),
    Field("worst", lambda bandwidth: _format_rate(bandwidth.busbw(bandwidth.most_ns))),
]  # fmt: skip


def _bandwidths(run: Run) -> list[Bandwidth]:
    recorded = recorded_of(run)
    if recorded is None or not recorded.measured.of_devices:
        return []
    # Imported here: other runs have none.
    from simcore.replay.bandwidths import find_bandwidths

    return find_bandwidths(recorded)


def _missing_bandwidth_lines(run: Run) -> list[str]:
    """Returns why further collectives have no bandwidth, by the reason."""
    recorded = recorded_of(run)
    if recorded is None:
        return []
    # Imported here: other runs have none.
    from simcore.replay.bandwidths import without_bandwidth

    counts: dict[str, Counter[str]] = {}
    for without in without_bandwidth(recorded):
        name = printable(without.operation, _GROUP_CELLS)
        counts.setdefault(without.reason, Counter())[name] += without.times
    return [
        f"  without: {', '.join(f'{count} {name}' for name, count in names.most_common(_MOST_WITHOUT))}"
        + (f" and {len(names) - _MOST_WITHOUT} more" if len(names) > _MOST_WITHOUT else "")
        + f": {reason}"
        for reason, names in counts.items()
    ]


def _bandwidth_lines(run: Run, options: PageOptions) -> list[str]:
    """Returns a line for collectives of one operation, group and size, those that take most first."""
    bandwidths, without = _bandwidths(run), _missing_bandwidth_lines(run)
    if not bandwidths:
        return ["Bandwidths of collectives: none is known", *without] if without else []
    displayed_bandwidths = (
        bandwidths if options.every_layer or options.everything else bandwidths[:_MOST_BANDWIDTHS]
    )
    more = remaining_line(len(bandwidths) - len(displayed_bandwidths), where="--all-layers has all")
    waits = "  *: members are missing, so the time holds the waiting for them"
    return [
        "Bandwidths of collectives, GB/s, as nccl-tests have them; best, worst: busbw",
        *field_lines(_bandwidth_fields(options), displayed_bandwidths), *more,
        *([waits] if any(bandwidth.waits_included for bandwidth in bandwidths) else []), *without,
        *_cluster_note_lines(displayed_bandwidths, options),
    ]  # fmt: skip


def _bandwidth_fields(options: PageOptions) -> list[Field[Bandwidth]]:
    """Returns the columns of bandwidths, with the times on the requested cluster."""
    if options.cluster is None:
        return _BANDWIDTH
    name, choice = options.cluster
    on = printable(name, _GROUP_CELLS)

    def ns(bandwidth: Bandwidth) -> int | None:
        return _priced_ns(choice, bandwidth)

    def busbw(bandwidth: Bandwidth) -> float | None:
        measured_ns = ns(bandwidth)
        return None if measured_ns is None else bandwidth.busbw(measured_ns)

    return [
        *_BANDWIDTH,
        Field(
            f"on {on}", lambda bandwidth: "-" if (value := ns(bandwidth)) is None else duration(value),
            "cluster_ns", ns, optional=True,
        ),
        Field(
            "busbw", lambda bandwidth: "-" if (value := busbw(bandwidth)) is None else _format_rate(value),
            "cluster_busbw_gbps", busbw, optional=True,
        ),
    ]  # fmt: skip


def _priced_ns(choice: ClusterChoice, bandwidth: Bandwidth) -> int | None:
    """Returns the ns of `wltui collective` for it, alone on an idle network; None for unknown collectives.

    Raises UsageError where the cluster has no such ranks.
    """
    word = _SIMULATED.get(bandwidth.operation)
    if word is None:
        return None
    # Imported here: most pages have no cluster.
    from simcore.cluster import group_shape
    from simcore.collectives import NAMES, completion_times

    members = bandwidth.members or tuple(range(bandwidth.ranks))
    cluster = choice.cluster(members[-1] + 1)
    collective = next(name for name, simulated_name in NAMES.items() if simulated_name == word)
    return completion_times(cluster, group_shape(cluster, members), collective, bandwidth.bytes).last_ns


def _cluster_note_lines(bandwidths: Sequence[Bandwidth], options: PageOptions) -> list[str]:
    """Returns what the columns of a cluster are, else the command that prices the first known collective on
    one.

    None where no collective is known.
    """
    if options.cluster is not None and any(bandwidth.operation in _SIMULATED for bandwidth in bandwidths):
        on = printable(options.cluster[0], _GROUP_CELLS)
        is_guessed = any(
            bandwidth.members is None and bandwidth.operation in _SIMULATED for bandwidth in bandwidths
        )
        return [
            f"  on {on}: alone on an idle network, as `wltui collective` says it"
            + (", of the first ranks where the trace does not tell which" if is_guessed else "")
        ]
    for bandwidth in bandwidths:
        name = _SIMULATED.get(bandwidth.operation)
        if name is not None:
            ranks = f"0-{bandwidth.ranks - 1}"
            command = f"wltui collective {name} --size {bandwidth.bytes} --ranks {ranks} --cluster NAME"
            return [f"  {command}: what it takes on a cluster"]
    return []


def _bandwidth_values(run: Run, options: PageOptions) -> list[dict[str, Any]]:
    """Returns each line as JSON."""
    return field_values(_bandwidth_fields(options), _bandwidths(run))


BANDWIDTHS: Section[Run] = Section("bandwidths", _bandwidth_lines)

"""The sections on why the step is not shorter: the critical path with its longest segments, and the waits of
ranks.
"""

from __future__ import annotations

from collections import Counter
from heapq import nlargest
from itertools import compress
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from simcore.kernel_names import short_name
from simcore.records import NamedTuple
from simcore.render.report.section import (
    Field,
    PageOptions,
    Section,
    field_lines,
    field_values,
    format_list,
    keys,
    remaining_line,
    shorten,
)
from simcore.trace.figures import PathSegment, WaitFor
from simcore.trace.run import sum_path
from simcore.units import duration, percent, plural

if TYPE_CHECKING:
    from simcore.trace.run import Run

_MOST_PARTS, _SEGMENTS = 5, 8
_SEGMENT_CELLS = 32
# Segments whose lengths are looked at together.
_PART = 2**16


class _RepeatedSegments(NamedTuple):
    """Equal segments that take equally long."""

    first: PathSegment
    """The first of them."""
    words: tuple[str, str]
    """What they run, in words."""
    times: int
    """How many there are."""


def _format_segment(repeated: _RepeatedSegments) -> str:
    what, name = repeated.words
    return f"{what} {short_name(name, _SEGMENT_CELLS)}".rstrip()


_LONGEST: list[Field[_RepeatedSegments]] = [
    Field("takes", lambda repeated: duration(repeated.first.end_ns - repeated.first.start_ns)),
    Field("times", lambda repeated: f"x{repeated.times}"),
    Field("first at", lambda repeated: duration(repeated.first.start_ns)),
    Field("rank", lambda repeated: str(repeated.first.rank)),
    Field("what", _format_segment, left=True),
    Field("not earlier, because", lambda repeated: repeated.first.reason, left=True),
]
_SEGMENT: list[Field[PathSegment]] = keys(
    "start_ns", "end_ns", "rank", "stream", "kind", "layer", "phase", "microbatch", "reason"
)


def _path_lines(run: Run, options: PageOptions) -> list[str]:
    """Returns the sums of the path by each grouping of the run, and its longest segments, equal ones on one
    line.
    """
    if not run.timed:
        return []
    step = run.step_time_ns
    sums = {by: sum_path(run, by) for by in run.figures.path_groupings}
    segments, ranks = len(run.critical_path), plural(len(sums["rank"]), "rank")
    if not segments:
        return ["Critical path: nothing takes any time"]
    page = [f"Critical path: {plural(segments, 'segment')} on {ranks}, 0 to {duration(step)}; % of that"]
    for by, parts in sums.items():
        if by == "rank" and len(parts) == len(sums.get("stage", ())):
            # With one rank for each stage the line before says the same.
            continue
        displayed_parts = [
            f"{short_name(what, _SEGMENT_CELLS)} {duration(ns)} ({percent(ns, step)} %)"
            for what, ns in parts[:_MOST_PARTS]
        ]
        remaining_count = len(parts) - len(displayed_parts)
        page += format_list(
            f"by {by}", [*displayed_parts, *([f"and {remaining_count} more"] if remaining_count > 0 else [])]
        )
    page.append("  its longest segments, and why the first of each kind did not start earlier")
    longest = _longest_segments(run)
    firsts = run.figures.path_segments(index for index, _ in longest)
    rows = [
        _RepeatedSegments(first, run.figures.path_words(index), times)
        for first, (index, times) in zip(firsts, longest, strict=True)
    ]
    page += field_lines(_LONGEST, rows)
    if run.slacks is None:
        page.append(
            "  no slack: collectives queue by priority here, and what is served first depends on the times"
        )
    return page


def _longest_segments(run: Run) -> list[tuple[int, int]]:
    """Returns (the index of the first, how many there are) of the longest equal segments that take equally
    long, the longest first.
    """
    lengths = run.critical_path.lengths
    most: list[int] = []
    for first in range(0, len(lengths), _PART):
        most = nlargest(_SEGMENTS, {*most, *lengths[first : first + _PART]})
    # Each length has a segment of its own: shorter ones are not among the longest.
    is_long = map(most[-1].__le__, lengths)
    times = Counter(compress(zip(lengths, run.figures.path_kind_keys(), strict=True), is_long))
    longest = sorted(times, key=itemgetter(0), reverse=True)
    # Of equal ones the first: it is looked for where that decides.
    tied_groups = {group for group in longest if group[0] >= longest[:_SEGMENTS][-1][0]}
    first_of: dict[tuple[int, object], int] = {}
    for index, group in enumerate(zip(lengths, run.figures.path_kind_keys(), strict=True)):
        if group in tied_groups:
            tied_groups.remove(group)
            first_of[group] = index
            if not tied_groups:
                break
    longest = sorted(first_of, key=lambda group: (-group[0], first_of[group]))
    return [(first_of[group], times[group]) for group in longest[:_SEGMENTS]]


def _path_json(run: Run, options: PageOptions) -> dict[str, Any]:
    """Returns `critical_path`: its segments in the order of time; null for what a segment does not have."""
    segments = run.figures.path_segments() if run.timed else ()
    fields = _SEGMENT if run.figures.nodes is None else [*_SEGMENT, *keys("node")]
    return {"critical_path": field_values(fields, segments)}


CRITICAL_PATH: Section[Run] = Section("critical-path", _path_lines, _path_json)


_WAITS = 8
_WHERE_CELLS, _RANK_CELLS = 34, 40


def _wait_fields(run: Run) -> list[Field[WaitFor]]:
    return [
        Field(
            "ranks", lambda wait: shorten(wait.early.text(), _RANK_CELLS),
            "rank", lambda wait: wait.early.first, left=True,
        ),
        Field(
            "wait for", lambda wait: shorten(wait.late.text(), _RANK_CELLS),
            "for", lambda wait: wait.late.first, left=True,
        ),
        Field(
            "in", lambda wait: wait.summary or short_name(wait.where, _WHERE_CELLS),
            "in", lambda wait: wait.where, left=True,
        ),
        Field("for", lambda wait: duration(wait.ns), "ns"),
        Field("of step", lambda wait: f"{percent(wait.ns, run.step_time_ns)} %"),
    ]  # fmt: skip


def _wait_lines(run: Run, options: PageOptions) -> list[str]:
    """Returns a line for each of the longest waits; none where no waits are known."""
    waits = run.figures.waits_for
    if not waits:
        return []
    more = remaining_line(len(waits) - _WAITS, "shorter waits")
    title = "Who waits for whom, in all, the longest first"
    return [title, *field_lines(_wait_fields(run), waits[:_WAITS]), *more]


def wait_values(run: Run) -> list[dict[str, Any]]:
    """Returns each wait as JSON."""
    return field_values(_wait_fields(run), run.figures.waits_for)


WAITS: Section[Run] = Section("waits", _wait_lines)

"""The critical path: what it is made of, and its longest segments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from simcore.kernel_names import short_name
from simcore.records import NamedTuple
from simcore.report.section import Field, PageAsked, field_lines, field_values, keys, listed
from simcore.run.figures import PathSegment
from simcore.run.findings import path_sums
from simcore.units import duration, percent, plural

if TYPE_CHECKING:
    from simcore.analysis.run import Run

_MOST_PARTS, _SEGMENTS = 5, 8
_NAME_CELLS = 32


class _Alike(NamedTuple):
    """Segments that run the same for as long: the first of them, in words, and how many."""

    first: PathSegment
    words: tuple[str, str]
    times: int


def _what(alike: _Alike) -> str:
    what, name = alike.words
    return f"{what} {short_name(name, _NAME_CELLS)}".rstrip()


_LONGEST: list[Field[_Alike]] = [
    Field("takes", lambda alike: duration(alike.first.end_ns - alike.first.start_ns)),
    Field("times", lambda alike: f"x{alike.times}"),
    Field("first at", lambda alike: duration(alike.first.start_ns)),
    Field("rank", lambda alike: str(alike.first.rank)),
    Field("what", _what, left=True),
    Field("not earlier, because", lambda alike: alike.first.reason, left=True),
]
_SEGMENT: list[Field[PathSegment]] = keys(
    "start_ns", "end_ns", "rank", "stream", "kind", "layer", "phase", "microbatch", "reason"
)


def lines(run: Run, asked: PageAsked) -> list[str]:
    """Its sums by each grouping that the run has, and the longest segments, alike ones on one line."""
    if not run.timed:
        return []
    step = run.step_time_ns
    sums = {by: path_sums(run, by) for by in run.path_groupings}
    alike = _alike(run)
    if not alike:
        return ["Critical path: nothing takes any time"]
    segments, ranks = sum(map(len, alike)), plural(len(sums["rank"]), "rank")
    page = [f"Critical path: {plural(segments, 'segment')} on {ranks}, 0 to {duration(step)}; % of that"]
    for by, parts in sums.items():
        if by == "rank" and len(parts) == len(sums.get("stage", ())):
            # One rank a stage: the line before says it.
            continue
        shown = [
            f"{short_name(what, _NAME_CELLS)} {duration(ns)} ({percent(ns, step)} %)"
            for what, ns in parts[:_MOST_PARTS]
        ]
        left = len(parts) - len(shown)
        page += listed(f"by {by}", [*shown, *([f"and {left} more"] if left > 0 else [])])
    page.append("  its longest segments, and why the first of each kind did not start earlier")
    longest = alike[:_SEGMENTS]
    firsts = run.figures.path_segments(segments_alike[0] for segments_alike in longest)
    rows = [
        _Alike(first, run.figures.path_words(segments_alike[0]), len(segments_alike))
        for first, segments_alike in zip(firsts, longest, strict=True)
    ]
    page += field_lines(_LONGEST, rows)
    if not run.figures.has_slack:
        page.append(
            "  no slack: collectives queue by priority here, and what is served first depends on the times"
        )
    return page


def _alike(run: Run) -> list[list[int]]:
    """The segments that take as long and run the same together, the longest first."""
    by_key: dict[tuple[int, object], list[int]] = {}
    segments = zip(run.path_parts("kind"), run.figures.path_alike(), strict=True)
    for index, ((_, ns), what) in enumerate(segments):
        by_key.setdefault((-ns, what), []).append(index)
    return [numbers for _, numbers in sorted(by_key.items(), key=lambda item: (item[0][0], item[1][0]))]


def values(run: Run, asked: PageAsked) -> dict[str, Any]:
    """`critical_path`: its segments in the order of time; null for what a segment has not."""
    segments = run.figures.path_segments() if run.timed else ()
    fields = _SEGMENT if run.figures.nodes is None else [*_SEGMENT, *keys("node")]
    return {"critical_path": field_values(fields, segments)}

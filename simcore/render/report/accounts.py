"""The sections on where the step of each rank goes, and where it goes by SimAI's own estimate."""

from __future__ import annotations

import itertools
import textwrap
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from simcore.ranks import RankSet
from simcore.render.report.section import (
    WIDTH,
    Bar,
    Field,
    Legend,
    PageOptions,
    Section,
    field_lines,
    field_values,
    keys,
    remaining_line,
    shorten,
)
from simcore.render.report.usage import OF_A_RANK
from simcore.trace.figures import TrackUse
from simcore.trace.run import account_ns, mean_ns
from simcore.trace.track import RARE_ACCOUNTS
from simcore.units import column_unit, duration, in_unit, percent

if TYPE_CHECKING:
    from simcore.trace.run import Run
    from simcore.trace.track import Track

_TRACKS = 64
_RANK_CELLS = 14
# Cells of a bar, and of a short one where each kind of compute has a column, which needs the room.
_BAR_CELLS, _SHORT_BAR_CELLS = 24, 14
# Part of the legend -> one glyph for each part of a bar, as on the timeline: it says what a colour would.
_GLYPHS = {
    "forward": ("▄", "f"),
    "backward": ("█", "b"),
    "optimizer": ("▇", "o"),
    "kernel": ("▅", "k"),
    "exposed": ("▌", "x"),
    "copy": ("▍", "c"),
    "wait": ("─", "-"),
    "bubble": ("▁", "."),
    "host": ("▎", "h"),
    "idle": (" ", " "),
}
# The part of a bar for an account whose name differs.
_PARTS = {"fwd": "forward", "recompute": "forward", "ig": "backward", "wg": "backward", "opt": "optimizer"}
# Accounts of the parts that not every run has.
_ACCOUNT_OF = {"host": "host", "kernel": "compute kernel", "copy": "exposed copy"}
_HOST_WORDS = (
    "  host: neither compute nor communication; idle: host gaps, before the first operation, after the last"
)

_CLASS: list[Field[TrackUse]] = [
    Field(key="ranks", value=lambda track_use: track_use.track.ranks.text()),
    Field(key="count", value=lambda track_use: len(track_use.track.ranks)),
    Field(key="stage", value=lambda track_use: track_use.track.stage),
    *keys("compute_ns", "exposed_ns", "wait_ns", "bubble_ns"),
    Field(key="host_ns", optional=True),
    *keys("idle_ns", "overlapped_ns", "comm_ns", "peak_microbatches"),
    Field(key="peak_chunks", optional=True),
    Field(key="streams", value=lambda track_use: _streams(track_use)),
]


def _streams(track_use: TrackUse) -> dict[str, dict[str, Any]]:
    names = (use.stream for use in track_use.streams)
    return dict(zip(names, field_values(OF_A_RANK, track_use.streams), strict=True))


class _Line:
    """A track of the table with the ns of one of its ranks, by account in the order of a bar."""

    def __init__(self, run: Run, track: Track) -> None:
        self.track = track
        self.ranks = track.ranks
        self.ns = {name: ns // len(track.ranks) for name, ns in account_ns(run, (track,)).items()}

    @property
    def busy_ns(self) -> int:
        """All compute, ns."""
        return sum(ns for name, ns in self.ns.items() if name.startswith("compute "))

    @property
    def parts(self) -> list[tuple[str, int]]:
        """(part of the legend, ns) of its bar."""
        return [(_legend_part(name), ns) for name, ns in self.ns.items()]


def _merge_equal_lines(lines: Iterable[_Line]) -> list[_Line]:
    """Returns the lines; where stages are not known, consecutive ranks with equal accounts as one."""
    merged = []

    def key(line: _Line) -> object:
        return line.ns if line.track.stage is None else line.track.track_id

    for _, equal_lines in itertools.groupby(lines, key):
        first, *others = equal_lines
        if others:
            first.ranks = RankSet.of(rank for line in (first, *others) for rank in line.track.ranks)
        merged.append(first)
    return merged


def _legend_part(account: str) -> str:
    """Returns the part of the legend for an account."""
    kind, _, name = account.partition(" ")
    if name == "copy":
        return name
    return _PARTS.get(name, name) if kind == "compute" else kind


def format_bar(parts: Iterable[tuple[str, int]], total_ns: int, width: int) -> str:
    """Returns a bar of (glyph, ns) on `width` cells that stand for `total_ns`.

    A part ends at the cell nearest to its end, so that a short one may have none.
    """
    bar, end_ns = "", 0
    for glyph, ns in parts:
        end_ns += ns
        bar += glyph * (round(width * end_ns / total_ns) - len(bar) if total_ns else 0)
    return bar.ljust(width)


def _account_lines(run: Run, options: PageOptions) -> list[str]:
    """Returns a line for each track: compute, exposed communication, waits, bubble and idle, also
    as a bar.
    """
    if not run.timed:
        return []
    step, columns = run.step_time_ns, run.figures.account_columns
    unit_ns, unit = column_unit(step)
    compute = sum(name.startswith("compute ") for _, (name, *_) in columns)
    cells = _BAR_CELLS if compute == 1 else _SHORT_BAR_CELLS
    all_lines = _merge_equal_lines(_Line(run, track) for track in sorted(run.tracks))
    displayed_lines = all_lines if options.everything else all_lines[:_TRACKS]

    def sum_of(accounts: Iterable[str]) -> Callable[[_Line], str]:
        return lambda line: in_unit(
            sum(line.ns[name] for name in accounts), unit_ns, run.figures.resolution_ns
        )

    def bar(line: _Line) -> str:
        text = ((_GLYPHS[part][options.ascii_only], ns) for part, ns in line.parts)
        share_bar = Bar(format_bar(text, step, cells))
        share_bar.parts, share_bar.whole = line.parts, step
        return share_bar

    fields: list[Field[_Line]] = [
        Field("stage", lambda line: "-" if line.track.stage is None else str(line.track.stage)),
        Field("ranks", lambda line: shorten(line.ranks.text(), _RANK_CELLS), left=True),
        Field("", bar, left=True),
        *(Field(heading, sum_of(accounts)) for heading, accounts in columns),
        Field("computing", lambda line: percent(line.busy_ns, step) + " %"),
    ]
    exposed = [name.removeprefix("exposed ") for _, (name, *_) in columns if name.startswith("exposed ")]
    copies = "copy" in exposed
    exposed = [name for name in exposed if name != "copy"]
    title = f"Where the step goes, {unit} on each rank"
    title += f"; {', '.join(exposed)}: exposed communication" if exposed else ""
    title += "; copy: beside neither" if copies else ""
    account_names = displayed_lines[0].ns
    legend = [part for part in _GLYPHS if _ACCOUNT_OF.get(part, "") in ("", *account_names)]
    explained = [f"{_GLYPHS[part][options.ascii_only].replace(' ', '(blank)')} {part}" for part in legend]
    more = remaining_line(len(all_lines) - len(displayed_lines), where="--json has all")
    legend_line = Legend(f"  {'  '.join(explained)}")
    legend_line.parts = legend
    return [title, *field_lines(fields, displayed_lines), *more, legend_line,
            *([_HOST_WORDS] if "host" in account_names else [])]  # fmt: skip


def _account_json(run: Run, options: PageOptions) -> dict[str, Any]:
    """Returns `classes`: the ranks of each track, whose accounts sum to the step; `mean_ns`: of all ranks."""
    classes = field_values(_CLASS, run.figures.track_uses)
    means = mean_ns(run) if run.timed else {}
    if "cp" not in run.figures.origin.degrees:
        # Context parallelism is of models alone.
        means.pop("exposed cp", None)
    for account in RARE_ACCOUNTS:
        if not means.get(account):
            means.pop(account, None)
    return {"classes": classes, "mean_ns": means}


ACCOUNTS: Section[Run] = Section("accounts", _account_lines, _account_json)


_ESTIMATED = (
    "dp_us", "dp_ep_us", "tp_us", "ep_us", "pp_us", "bubble_us", "compute_us", "exposed_us", "total_us"
)  # fmt: skip


def _estimate_lines(run: Run, options: PageOptions) -> list[str]:
    """Returns each line of SimAI's summary with its explanation; none unless the network is one
    of SimAI's.
    """
    estimate = run.network.simai_estimate
    if estimate is None:
        return []
    total, step = round(estimate.total_us * 1000), run.step_time_ns
    ranks, comparison_lines = run.figures.simai_comparison
    several = "s" if "-" in ranks or "," in ranks else ""
    text = [
        f"SimAI's own estimate  {duration(total)}"
        + (f", {total / step:.3f} x the step time" if step else ""),
        "  all rows added up, without a schedule: no slow ranks, no waits, each layer a virtual stage",
        f"  line        SimAI        here, on rank{several} {ranks}",
    ]
    for estimate_line in comparison_lines:
        simai = "-" if estimate_line.simai_us is None else duration(round(estimate_line.simai_us * 1000))
        head = f"  {estimate_line.line:<8}{simai:>12}{duration(estimate_line.ours_ns):>12}   "
        text += textwrap.wrap(
            head + estimate_line.text,
            WIDTH,
            subsequent_indent=" " * len(head),
            break_long_words=False,
            break_on_hyphens=False,
        )
    return text


def _estimate_json(run: Run, options: PageOptions) -> dict[str, Any]:
    """Returns `estimates`, in us to the ns."""
    estimate = run.network.simai_estimate
    if estimate is None:
        return {"estimates": {"simai": None}}
    comparison_values = [
        {
            "line": estimate_line.line,
            "simai_us": _us(estimate_line.simai_us),
            "ours_ns": estimate_line.ours_ns,
            "text": estimate_line.text,
        }
        for estimate_line in run.figures.simai_comparison[1]
    ]
    return {
        "estimates": {
            "simai": {name: _us(getattr(estimate, name)) for name in _ESTIMATED},
            "simai_lines": comparison_values,
        }
    }


ESTIMATE: Section[Run] = Section("estimate", _estimate_lines, _estimate_json)


def _us(us: float | None) -> float | None:
    return None if us is None else round(us, 3)

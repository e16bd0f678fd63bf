"""Where the time goes: a row a stage or a rank, as a bar and in per cent of the step."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Protocol

from simcore.ranks import RankSet
from simcore.records import NamedTuple
from simcore.trace.findings import TrackInterval
from simcore.trace.run import Run, account_ns
from simcore.trace.track import Track
from simcore.units import duration, percent, range_if_far_apart, whole_percent
from tui.frame import Glyphs, Line, fitted, row_of

# The accounts of a bar are summed into these parts, by their first words, in the order of the columns.
_PARTS = ("compute", "exposed", "wait", "bubble", "host", "idle")
# These parts are drawn even if they are 0, where a run knows for certain that they are.
_SHOWN_AT_ZERO = ("compute", "exposed", "bubble", "idle")
# Fill and role of compute by what it is for, in the words of simulated and of measured runs.
_COMPUTE_FILLS = {
    "fwd": "fwd", "ig": "bwd", "wg": "bwd", "opt": "opt", "recompute": "fwd",
    "forward": "fwd", "backward": "bwd", "optimizer": "opt", "kernel": "kernel",
}  # fmt: skip
_ROLES = {"expert": "ep", "expert dp": "dp_ep"}
_LEGEND = {
    "fwd": ("fwd", "forward"), "bwd": ("bwd", "backward"), "opt": ("opt", "optimizer"),
    "kernel": ("kernel", "kernel"),
    "exposed": ("tp", "exposed comm."), "wait": ("wait", "wait"), "bubble": ("bubble", "bubble"),
    "host": ("host", "host"), "idle": ("", "idle"),
}  # fmt: skip
_NAME = 12
# The least cells of a bar where the columns have their full names.
_LEAST_BAR = 14
# From this many cells on figures have a decimal and stages their ranks.
_WIDE = 62
# On narrower screens the legend has only its first words.
_WORDS_WIDE = 100


class BarRow(NamedTuple):
    """Tracks that share a bar."""

    label: str
    """Their stages, or ranks."""
    aside: str
    """Their ranks, or the stage; "" if it is not known."""
    tracks: tuple[Track, ...]


class BarRows(Protocol):
    """What a row of the bars stands for."""

    title: str
    # The title where rows stand for several tracks: the beginning that says that the figures are means.
    mean_title: str

    def rows(self, tracks: Sequence[Track], room: int) -> list[BarRow]:
        """Returns rows for at most `room` lines. tracks: those of the run, by their ids."""
        ...

    def head(self, rows: list[BarRow], wide: bool) -> str:
        """Returns the heading of the labels, in as many cells as these have."""
        ...

    def label(self, row: BarRow, rows: list[BarRow], wide: bool) -> str:
        """Returns a row's name behind the cursor's mark."""
        ...


class StageBars:
    """A row a stage, or several neighbouring stages a row where there is no room for all."""

    title = "Time by stage"
    mean_title = "Time by stages, "

    def rows(self, tracks: Sequence[Track], room: int) -> list[BarRow]:
        members: dict[int | None, list[Track]] = {}
        for track in sorted(tracks, key=lambda track: -1 if track.stage is None else track.stage):
            members.setdefault(track.stage, []).append(track)
        stages = list(members)
        stages_per_row = -(-len(stages) // max(room, 1))
        rows = []
        for first in range(0, len(stages), stages_per_row):
            row_stages = stages[first : first + stages_per_row]
            label = (
                _stage_text(row_stages[0])
                if len(row_stages) == 1
                else f"{_stage_text(row_stages[0])}-{_stage_text(row_stages[-1])}"
            )
            row_tracks = tuple(track for stage in row_stages for track in members[stage])
            lowest, highest = (
                min(track.ranks.first for track in row_tracks),
                max(track.ranks.last for track in row_tracks),
            )
            rows.append(BarRow(label, f"{lowest}-{highest}" if highest > lowest else str(lowest), row_tracks))
        return rows

    def head(self, rows: list[BarRow], wide: bool) -> str:
        return (" stage ranks" if wide else " stage").ljust(8 + (len(rows[-1].aside) + 1 if wide else 0))

    def label(self, row: BarRow, rows: list[BarRow], wide: bool) -> str:
        return f"{row.label:>5} {row.aside if wide else ''}"


class RankRows:
    """A row a rank where there is room, else a row a stage, else several neighbouring ranks a row."""

    title = "Time by rank"
    mean_title = "Time by ranks, "

    def rows(self, tracks: Sequence[Track], room: int) -> list[BarRow]:
        if len(tracks) <= room:
            return [BarRow(str(track.first_rank), _stage_text(track.stage), (track,)) for track in tracks]
        stages: dict[int | None, list[Track]] = {}
        for track in tracks:
            stages.setdefault(track.stage, []).append(track)
        groups = [(_stage_text(stage), members) for stage, members in stages.items()]
        if 1 < room < len(groups):
            # Only complete stages share a row: one across them would be of no stage.
            groups_per_row = -(-len(groups) // room)
            groups = [
                (f"{here[0][0]}-{here[-1][0]}", [member for _, members in here for member in members])
                for here in (
                    groups[first : first + groups_per_row] for first in range(0, len(groups), groups_per_row)
                )
            ]
        if len(groups) > room or len(groups) == 1:
            size = -(-len(tracks) // max(room, 1))
            groups = [("", list(tracks[first : first + size])) for first in range(0, len(tracks), size)]
        return [
            BarRow(RankSet.of(member.first_rank for member in members).text(), stage, tuple(members))
            for stage, members in groups
        ]

    def head(self, rows: list[BarRow], wide: bool) -> str:
        size = self._name_cells(rows)
        # Execution traces and profiles have no stages.
        stage = "stage" if any(row.aside for row in rows) else ""
        return f"  {'rank':>{size}} {stage:>5}".ljust(size + 9)

    def label(self, row: BarRow, rows: list[BarRow], wide: bool) -> str:
        size = self._name_cells(rows)
        return f" {row.label[:size]:>{size}} {row.aside:>5} "

    @staticmethod
    def _name_cells(rows: list[BarRow]) -> int:
        return min(max(len("rank"), *(len(row.label) for row in rows)), _NAME)


class Bars:
    """The rows of a run, and the accounts of each."""

    def __init__(self, run: Run, kind: BarRows, room: int | None = None) -> None:
        """Makes the rows. room: for how many rows; None for all."""
        self._run = run
        self._kind = kind
        self._tracks = sorted(run.tracks, key=lambda track: track.track_id)
        self.room = 0
        self.rows: list[BarRow] = []
        self._sums: list[dict[str, int]] | None = None
        self._ranges: list[dict[str, tuple[int, int]]] | None = None
        self.fit(len(self._tracks) if room is None else room)

    @cached_property
    def _totals(self) -> dict[str, int]:
        """The accounts of all ranks together, ns."""
        return account_ns(self._run, self._tracks)

    @property
    def title(self) -> str:
        """The title of the bars; where rows are of several stages, or ranks, it says that they are means."""
        if len(self.rows) < self.most_rows:
            return self._kind.mean_title + ("range or mean" if any(self.ranges) else "mean")
        return self._kind.title

    @cached_property
    def most_rows(self) -> int:
        """How many rows there are where there is room for all."""
        return len(self._kind.rows(self._tracks, len(self._tracks)))

    def fit(self, room: int) -> None:
        """Makes as many rows as there is room for; rows with ranks that differ widely are the first to be
        split into a row a rank.
        """
        if max(room, 1) == self.room:
            return
        self.room = max(room, 1)
        self.rows = self._kind.rows(self._tracks, self.room)
        for row in [row for row in self.rows if len(self.rows) < self.room and self._range_of(row)]:
            ranks = self._kind.rows(row.tracks, len(row.tracks))
            if len(self.rows) + len(ranks) - 1 <= self.room:
                at = self.rows.index(row)
                self.rows[at : at + 1] = ranks
        self._sums = self._ranges = None

    @cached_property
    def least_rows(self) -> int:
        """The rows needed for a row a stage, and a row a rank where the ranks of a stage differ widely: the
        mean of a slow rank and its peers describes none of them.
        """
        stages = len({track.stage for track in self._tracks})
        rows = self._kind.rows(self._tracks, stages)
        return sum(
            len(self._kind.rows(row.tracks, len(row.tracks))) if self._range_of(row) else 1 for row in rows
        )

    @property
    def ranges(self) -> list[dict[str, tuple[int, int]]]:
        """For each row the parts in which its ranks differ widely: (least, most) in whole per cents."""
        if self._ranges is None:
            self._ranges = [self._range_of(row) for row in self.rows]
        return self._ranges

    def _range_of(self, row: BarRow) -> dict[str, tuple[int, int]]:
        if len(row.tracks) == 1:
            return {}
        step = self._run.step_time_ns
        shares: dict[str, list[int]] = {}
        for track in row.tracks:
            parts = _sum_by_part(account_ns(self._run, [track]))
            for name in _PARTS:
                share = whole_percent(parts.get(name, 0), step * len(track.ranks))
                shares.setdefault(name, []).append(share)
        return {
            name: ends
            for name, of_ranks in shares.items()
            if (ends := range_if_far_apart(of_ranks)) is not None
        }

    def row_of(self, track: Track) -> int:
        """Returns the row that contains a track."""
        return next(index for index, row in enumerate(self.rows) if track in row.tracks)

    def find_interval(self, row: int) -> TrackInterval:
        """Returns the whole step of the first track of a row."""
        tracks = self.rows[row].tracks
        track_id = min(track.track_id for track in tracks if track.stage == tracks[0].stage)
        return TrackInterval(track_id, 0, self._run.step_time_ns)

    def lines(self, width: int, at: int, glyphs: Glyphs, focused: bool, high: int = 1) -> list[Line]:
        """Returns a line a row: its time as a bar, and the parts in per cent of the step. at: the cursor's
        row.

        high: lines of a bar; its figures stand in the last.
        """
        if self._sums is None:
            self._sums = [account_ns(self._run, row.tracks) for row in self.rows]
        rows, step = self.rows, self._run.step_time_ns
        columns, wide = self._columns(), width >= _WIDE
        size, share = (6, percent) if wide else (5, whole_percent)
        head = self._kind.head(rows, wide)
        sizes = [max(len(name) + 2, size) for name in columns]
        has_full_names = width - len(head) - sum(sizes) - 1 >= _LEAST_BAR
        if not has_full_names:
            # On a small screen columns have four letters of their names.
            sizes = [size] * len(columns)
        bar_width = max(width - len(head) - sum(sizes) - 1, 4)
        names = "".join(
            f"{name if has_full_names else name[:4]:>{cells}}"
            for name, cells in zip(columns, sizes, strict=True)
        )
        lines: list[Line] = [[(head + scale(step, bar_width) + names, "dim")]]
        for index, (row, sums, ranges) in enumerate(zip(rows, self._sums, self.ranges, strict=True)):
            role = "accent" if focused and index == at else ""
            label = f"{'>' if role else ' '}{self._kind.label(row, rows, wide)}"
            step_ns = step * sum(len(track.ranks) for track in row.tracks)
            parts = _sum_by_part(sums)
            figures = ""
            for name, cells in zip(columns, sizes, strict=True):
                figure = str(share(parts.get(name, 0), step_ns))
                if name in ranges and len(apart := "-".join(map(str, ranges[name]))) < cells:
                    figure = apart
                figures += f"{figure:>{cells}}"
            line: Line = [(fitted([(label, "")], len(head))[0][0], role)]
            bar_line = _bar(_account_parts(sums), step_ns, bar_width, glyphs)
            upper = [row_of(bar_line, above, high) for above in range(high - 1, 0, -1)]
            lines += [[(" " * len(head), ""), *cells] for cells in upper]
            lines.append([*line, *(row_of(bar_line, 0, high) if high > 1 else bar_line), (figures, role)])
        return lines

    def legend(self, width: int, glyphs: Glyphs) -> Line:
        """Returns the legend of the parts of a bar, each with its fill."""
        has_host = "host" in self._totals
        names = {name: meaning for name, (_, meaning) in _LEGEND.items() if name != "host" or has_host}
        if not self._totals.get("compute kernel"):
            del names["kernel"]
        if self._run.recording is not None:
            # What was not measured has neither a column nor a cell.
            parts = _sum_by_part(self._totals)
            names = {
                name: meaning for name, meaning in names.items() if name not in _PARTS or parts.get(name)
            }
        if has_host:
            names["opt"] = "opt."
        labels = {
            name: meaning.split()[0] if width < _WORDS_WIDE else meaning for name, meaning in names.items()
        }
        for name in ("opt", "fwd", "bwd"):
            # A truncated entry would say nothing.
            if name in labels and sum(len(meaning) + 3 for meaning in labels.values()) > width:
                labels[name] = "opt." if name == "opt" else name
        if sum(len(meaning) + 3 for meaning in labels.values()) > width:
            # Idle time is drawn as a blank.
            del labels["idle"]
        # Two cells between the entries where there is room for them.
        gap = "  " if sum(len(meaning) + 4 for meaning in labels.values()) <= width + 1 else " "
        line: Line = []
        for name, meaning in labels.items():
            line += [(gap if line else " ", ""), (glyphs.fills[name], _LEGEND[name][0]), (f" {meaning}", "")]
        return line

    def _columns(self) -> list[str]:
        """Returns the parts that have a column; a measured run states no part as 0."""
        parts, certain = _sum_by_part(self._totals), self._run.recording is None
        return [
            name
            for name in _PARTS
            if parts.get(name) or (certain and name in _SHOWN_AT_ZERO and name in parts)
        ]


def make_bars(run: Run, room: int | None = None) -> Bars:
    """Returns the bars of a run. Where a map next to them has every rank, a row a stage is enough."""
    return Bars(run, RankRows() if run.shape.rank_map is None else StageBars(), room)


def account_bar(ns_of: dict[str, int], whole: int, width: int, glyphs: Glyphs) -> Line:
    """Returns the accounts of some ranks, ns each, in one bar: `width` cells stand for `whole` ns."""
    return _bar(_account_parts(ns_of), whole, width, glyphs)


def scale(step: int, width: int) -> str:
    """Returns `0 s` on the left of the bars and the step time on their right."""
    right = duration(step)
    return f"0{right:>{width - 1}}" if width > len(right) + 2 else " " * width


def _bar(parts: Iterable[tuple[int, str, str]], whole: int, width: int, glyphs: Glyphs) -> Line:
    """Returns a bar of (ns, fill, role): `width` cells stand for `whole` ns."""
    line: Line = []
    elapsed_ns = filled = 0
    for ns, fill, role in parts:
        elapsed_ns += ns
        end = round(width * elapsed_ns / whole) if whole else 0
        line.append((glyphs.fills[fill] * (end - filled), "" if role == "idle" else role))
        filled = max(end, filled)
    return [*line, (" " * (width - filled), "")]


def _account_parts(sums: Mapping[str, int]) -> Iterator[tuple[int, str, str]]:
    """Yields (ns, fill, role) of accounts."""
    for account, ns in sums.items():
        part, _, of = account.partition(" ")
        if part == "exposed":
            yield ns, part, _ROLES.get(of, of)
        else:
            fill = _COMPUTE_FILLS.get(of, part)
            yield ns, fill, fill


def _sum_by_part(sums: Mapping[str, int]) -> dict[str, int]:
    """Returns ns by the first word of the accounts."""
    parts: dict[str, int] = {}
    for account, ns in sums.items():
        part = account.partition(" ")[0]
        parts[part] = parts.get(part, 0) + ns
    return parts


def _stage_text(stage: int | None) -> str:
    return "" if stage is None else str(stage)

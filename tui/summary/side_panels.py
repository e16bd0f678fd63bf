"""The panel next to the bars: every rank in a map, or who waits for whom and what a replay changes.

Its figures are complete at any width: names are shortened, then columns dropped.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Protocol, cast

from simcore.analysis.rank_map import MEASURES
from simcore.ranks import RankSet
from simcore.trace.findings import TrackInterval
from simcore.trace.run import mean_of_ranks
from simcore.units import duration, percent, signed_duration
from tui.frame import Glyphs, Line, fitted, name_cut, rows_around

if TYPE_CHECKING:
    from simcore.replay.differences import RankDifference
    from simcore.runs.measured import RecordedRun
    from simcore.trace.contexts import MapRow
    from simcore.trace.run import Run

# The cells that a name keeps before columns of figures are added, and the most operations of a rank.
_NAME, _OPS = 13, 3
_UNCHANGED = "as measured"
# One rank alone waits for nobody.
_FEWEST_RANKS = 2
# The lines of a map around its rows: the stages, and below them the legend and what is at the cursor.
_AROUND_MAP = 3


class SidePanel(Protocol):
    """A panel next to the bars.

    `title` and `unit` stand on its frame; `sideways_text` says why left and right do nothing.
    """

    moves: str
    """The keys of its cursor."""
    next_label: str
    """What `i` leads to."""

    @property
    def sideways_text(self) -> str: ...
    @property
    def title(self) -> str: ...
    @property
    def unit(self) -> str: ...
    @property
    def is_empty(self) -> bool:
        """Whether it says nothing that the bars do not say: then it has no panel."""
        ...

    @property
    def size(self) -> tuple[int, int]:
        """(rows, columns) that the cursor moves in."""
        ...

    @property
    def outlier(self) -> tuple[int, int] | None:
        """The row and column of the rank that differs most from its peers; None where no rank has peers that
        differ.
        """
        ...

    def next(self) -> SidePanel:
        """Returns what `i` leads to: itself with other figures, or another panel."""
        ...

    def visible_count(self, rows: int) -> int:
        """Returns how many of its rows `lines` shows in this many lines."""
        ...

    def lines(
        self, width: int, rows: int, cursor: tuple[int, int], glyphs: Glyphs, focused: bool
    ) -> list[Line]:
        """Returns as many lines. at: the cursor."""
        ...

    def find_interval(self, at: tuple[int, int]) -> TrackInterval | None:
        """Returns where Enter leads; None where it leads nowhere."""
        ...


def choose_side_panel(run: Run) -> SidePanel:
    """Returns the map where the ranks have positions in a layout and are simulated in classes; the kernels of
    a profile as it was measured; else what each of the ranks waits for.
    """
    if run.shape.rank_map is not None:
        return RankMap(run)
    if run.recording is None:
        return LateRanks(run)
    if run.recording.run.has_kernels and not run.recording.is_replayed:
        return _kernels(cast("RecordedRun", run.recording))
    return Waits(run)


def _kernels(run: RecordedRun) -> SidePanel:
    """Returns the kernels of a profile. Behind them is who waits for whom, or a replay where nobody can."""
    # Imported here: no other run has any.
    from tui.summary.kernels import Kernels

    def next_panel() -> Waits:
        waits = Waits(run)
        waits.shows_replay = False
        waits.shows_replay = waits.is_empty
        return waits

    return Kernels(run, next_panel)


class RankMap:
    """A measure of every rank: a line for equal ranks, those that differ most from their peers first, and a
    column a stage. `measure` is one of MEASURES.
    """

    moves = "hjkl"
    next_label = "other measure"
    sideways_text = "left and right move in the map of ranks: Tab leads there"

    def __init__(self, run: Run, measure: str = "") -> None:
        """Makes the map. measure: "" for the one in which a rank differs most from its peers, or the first
        where none does.
        """
        self.measure = measure
        self.show(run)

    def show(self, run: Run) -> None:
        self._run = run
        rows, stages = run.shape.rank_map or (), run.shape.pp or 1
        all_measures = [_MeasuredRows(run, name, rows, stages) for name in MEASURES]
        self._measures = {one.name: one for one in all_measures if one.least_ns < one.most_ns}
        if self.measure not in self._measures:
            # Of a slow rank its own time comes before the bubble that it takes up.
            by_outlier = sorted(self._measures.values(), key=lambda one: one.name != "computing")
            most = max(by_outlier, key=lambda one: one.deviation_ns, default=all_measures[0])
            has_outlier = not self.measure and most.outlier is not None
            self.measure = most.name if has_outlier else next(iter(self._measures), all_measures[0].name)
        self._shown_rows = self._measures.get(self.measure, all_measures[0])

    @property
    def title(self) -> str:
        return "Ranks"

    @property
    def unit(self) -> str:
        return f"{self.measure}, % of step"

    @property
    def is_empty(self) -> bool:
        return not self._measures

    @property
    def size(self) -> tuple[int, int]:
        return len(self._shown_rows.rows), self._run.shape.pp or 1

    @property
    def outlier(self) -> tuple[int, int] | None:
        return self._shown_rows.outlier

    def next(self) -> RankMap:
        """Shows another measure; those that are equal for all ranks are passed over."""
        names = list(self._measures) or [self.measure]
        self.measure = names[(names.index(self.measure) + 1) % len(names)]
        self._shown_rows = self._measures.get(self.measure, self._shown_rows)
        return self

    def find_interval(self, at: tuple[int, int]) -> TrackInterval:
        row, column = at
        return TrackInterval(self._shown_rows.rows[row].classes[column], 0, self._run.step_time_ns)

    def visible_count(self, rows: int) -> int:
        return min(max(rows - _AROUND_MAP, 1), len(self._shown_rows.rows))

    def lines(
        self, width: int, rows: int, cursor: tuple[int, int], glyphs: Glyphs, focused: bool
    ) -> list[Line]:
        measured = self._shown_rows
        rank_map = measured.rows
        stages = self._run.shape.pp or 1
        left = min(max(8, *(len(_row_text(row)) + 2 for row in rank_map[:50])), max(width - stages - 1, 8))
        gap = 2 if left + 2 * stages + 1 <= width else 1
        stage_count = min((width - left) // gap, stages)
        at_row, at_column = cursor if focused else (measured.outlier or (0, 0))
        first_column = min(max(at_column - stage_count + 1, 0), max(stages - stage_count, 0))
        head = fitted([(" stages", "")], left)[0][0] + _ruler(first_column, stage_count, gap, width - left)
        lines: list[Line] = [[(head, "dim")]]
        for index in rows_around(at_row, len(rank_map), self.visible_count(rows)):
            row = rank_map[index]
            line: Line = [(fitted([(f" {_row_text(row)}", "")], left)[0][0], "")]
            for stage in range(first_column, first_column + stage_count):
                glyph, role = _shade(measured.ns(row, stage), measured.most_ns, glyphs)
                is_at_cursor = focused and (index, stage) == cursor
                line += [(glyph, f"{role} reversed" if is_at_cursor else role), (" " * (gap - 1), "")]
            lines.append(line)
        lines += [[] for _ in range(rows - 2 - len(lines))]
        return [*lines, *self._legend(cursor, width, glyphs, focused)]

    def _legend(self, cursor: tuple[int, int], width: int, glyphs: Glyphs, focused: bool) -> list[Line]:
        """Returns what the heights mean; over it the cell under the cursor, or the mean of all ranks."""
        run, measured = self._run, self._shown_rows
        step = run.step_time_ns
        legend: Line = [(f" {self.measure}: ", "dim")]
        for ns, ending in ((measured.least_ns, " to "), (measured.most_ns, " % of step")):
            glyph, role = _shade(ns, measured.most_ns, glyphs)
            legend += [(f"{glyph} ".lstrip(), role), (f"{percent(ns, step)}{ending}", "dim")]
        row, stage = cursor
        if not focused:
            mean = mean_of_ranks(run, map(MEASURES[self.measure], run.accounts))
            return [[(f" mean of all ranks {percent(mean, step)} %", "dim")], legend]
        map_row = measured.rows[row]
        ns = measured.ns(map_row, stage)
        position = f"stage {stage}, {_row_text(map_row)}"
        if map_row.pairs == 1:
            track = next(track for track in run.tracks if track.track_id == map_row.classes[stage])
            position = f"rank {track.first_rank}, {position}"
        return [[(f" {position}: {duration(ns)}, {percent(ns, step)} %"[:width], "accent")], legend]


class _MeasuredRows:
    """The rows of a map in one measure, in the order in which it shows them.

    `deviation_ns` is by how much a rank differs most from the median rank of its stage, `outlier` the row and
    column of that rank, None where none differs. `least_ns` and `most_ns` are the range over all ranks.
    """

    def __init__(self, run: Run, name: str, rows: Sequence[MapRow], stages: int) -> None:
        self.name = name
        self._by_track = [MEASURES[name](accounts) for accounts in run.accounts]
        medians = [self._median_ns(rows, stage) for stage in range(stages)]

        def deviations(row: MapRow) -> list[int]:
            return [abs(self.ns(row, stage) - median) for stage, median in enumerate(medians)]

        self.rows = sorted(rows, key=lambda row: -max(deviations(row)))
        values = [self.ns(row, stage) for row in rows for stage in range(stages)]
        self.least_ns, self.most_ns = min(values, default=0), max(values, default=0)
        first = deviations(self.rows[0]) if rows else [0]
        self.deviation_ns = max(first)
        self.outlier = (0, first.index(self.deviation_ns)) if self.deviation_ns else None

    def ns(self, row: MapRow, stage: int) -> int:
        """Returns the measure of a cell of the map, ns."""
        return self._by_track[row.classes[stage]]

    def _median_ns(self, rows: Sequence[MapRow], stage: int) -> int:
        """Returns the median over the ranks of a stage, ns."""
        by_value = sorted((self.ns(row, stage), row.pairs) for row in rows)
        rank_count = sum(pairs for _, pairs in by_value)
        below = accumulate(pairs for _, pairs in by_value)
        return next(ns for (ns, _), count in zip(by_value, below, strict=True) if 2 * count >= rank_count)


def _shade(ns: int, most: int, glyphs: Glyphs) -> tuple[str, str]:
    """Returns how high a cell of the map is, blank for nothing and full for the largest, and its role."""
    height = -(-ns * (len(glyphs.heat) - 1) // most) if most else 0
    return glyphs.heat[height], f"heat {height}" if height else ""


def _ruler(first: int, stage_count: int, gap: int, width: int) -> str:
    """Returns the ids of the stages over the columns of a map: every fifth, as many as `width` has
    room for.
    """
    marks = [" "] * (stage_count * gap + 3)
    for column in range(stage_count):
        stage = first + column
        if stage % 5 == 0 and column * gap + len(str(stage)) <= width:
            for offset, char in enumerate(str(stage)):
                marks[column * gap + offset] = char
        elif gap == 2 and marks[column * gap] == " ":
            marks[column * gap] = "."
    return "".join(marks).rstrip()


def _row_text(row: MapRow) -> str:
    """Returns which ranks a row of the map is of: `dp 0-7 tp 0-7`."""
    if not row.is_grid:
        return f"{row.pairs} ranks each"
    return f"dp {_short_ranks(row.dp)} tp {_short_ranks(row.tp)}"


def _short_ranks(ranks: RankSet) -> str:
    text = ranks.text()
    return text if len(text) <= 6 else f"x{len(ranks)}"


class RankTable(ABC):
    """A table with a line a rank, or a wait of one."""

    moves = "jk"
    # Each of its columns says what it is of.
    unit = ""
    # Its rows are sorted already.
    outlier: tuple[int, int] | None = None

    def __init__(self, run: Run) -> None:
        self.show(run)

    @abstractmethod
    def show(self, run: Run) -> None:
        """Shows another run of the same kind."""

    @property
    @abstractmethod
    def size(self) -> tuple[int, int]: ...

    @abstractmethod
    def _texts(self, width: int) -> tuple[str, list[str]]:
        """Returns (the heading, its lines)."""

    def visible_count(self, rows: int) -> int:
        return min(max(rows - 1, 1), self.size[0])

    def lines(self, width: int, rows: int, at: tuple[int, int], glyphs: Glyphs, focused: bool) -> list[Line]:
        head, texts = self._texts(width)
        if not texts:
            return [[(" no rank waits for another", "dim")]]
        lines: list[Line] = [[(head, "dim")]]
        for index in rows_around(at[0], len(texts), max(rows - 1, 1)):
            is_at_cursor = focused and index == at[0]
            lines.append(
                [(f"{'>' if is_at_cursor else ' '}{texts[index][1:]}", "accent" if is_at_cursor else "")]
            )
        return lines


class Waits(RankTable):
    """Who waits for whom; or each rank's replayed end against the measured one, of a measured run that of its
    own replay. `shows_replay` says whether it is the second.
    """

    next_label = "waits, replay"

    def show(self, run: Run) -> None:
        """Shows a run: of a changed one what changed."""
        self._run = cast("RecordedRun", run.recording)
        self.shows_replay = run.recording is not None and run.recording.is_replayed
        self._differences: list[RankDifference] | None = None

    @property
    def sideways_text(self) -> str:
        here = "here each rank has a row" if self._run.timed else "an order without times has none"
        return f"left and right move in a map of ranks: {here}"

    @property
    def title(self) -> str:
        if not self.shows_replay:
            return "Who waits for whom"
        return f"{'A replay of it' if self._run.scales is None else 'Replayed - measured'}, rank ends"

    @property
    def is_empty(self) -> bool:
        return not self.shows_replay and len(self._run.tracks) < _FEWEST_RANKS and not self._run.waiting

    @property
    def size(self) -> tuple[int, int]:
        return len(self.differences if self.shows_replay else self._run.waiting), 1

    @property
    def differences(self) -> list[RankDifference]:
        """How each rank's replayed end differs from the measured one."""
        if self._differences is None:
            # Imported here: not before the replay is looked at.
            from simcore.replay.differences import differences

            self._differences = differences(self._run.base)
        return self._differences

    def next(self) -> SidePanel:
        """Shows the other of the two tables; behind the replay of a profile stand its kernels."""
        if self.shows_replay and self._run.run.has_kernels:
            return _kernels(self._run)
        self.shows_replay = not self.shows_replay
        return self

    def find_interval(self, at: tuple[int, int]) -> TrackInterval | None:
        row, _ = at
        results = self._run
        if self.shows_replay:
            return TrackInterval(row, 0, results.step_time_ns)
        if not results.waiting:
            return None
        from simcore.replay.waits import longest_wait

        wait = results.waiting[row]
        early = next(track.track_id for track in results.tracks if track.first_rank == wait.early)
        stretch = longest_wait(results, early, wait.name)
        return None if stretch is None else TrackInterval(early, *stretch)

    def _texts(self, width: int) -> tuple[str, list[str]]:
        if self.shows_replay:
            return _difference_texts(self.differences, width)
        waits = self._run.waiting
        table_lines = _align_columns(
            ("rank", "for", "waits"),
            [(str(wait.early), str(wait.late), duration(wait.ns)) for wait in waits],
        )
        return _head(table_lines, "in"), [
            f"{text}  {name_cut(wait.name, min(width - len(text) - 2, 40))}"
            for text, wait in zip(table_lines[1:], waits, strict=True)
        ]


def _difference_texts(rank_differences: Sequence[RankDifference], width: int) -> tuple[str, list[str]]:
    """Returns when each rank ends and how much that differs; in little room only the difference. The
    explanation is as many operations as fit with their amounts, at least one.
    """
    rows = [
        (
            str(rank_difference.rank),
            duration(rank_difference.replayed_ns),
            signed_duration(rank_difference.replayed_ns - rank_difference.measured_ns),
        )
        for rank_difference in rank_differences
    ]
    table_lines = _align_columns(("rank", "ends", "difference"), rows)
    # The least that must stand there: an amount, and the name, complete or long enough to be recognised.
    least = max(
        (
            min(len(name), _NAME) + 1 + len(signed_duration(ns))
            for rank_difference in rank_differences
            for name, ns in rank_difference.ops[:1]
        ),
        default=len(_UNCHANGED),
    )
    gap = "  "
    if width - len(table_lines[0]) - len(gap) < least:
        table_lines = _align_columns(("rank", "differs"), [(rank, change) for rank, _, change in rows])
        gap = " "
    return _head(table_lines, "most by", gap), [
        f"{text}{gap}{_explain_difference(rank_difference, width - len(text) - len(gap))}"
        for text, rank_difference in zip(table_lines[1:], rank_differences, strict=True)
    ]


def _explain_difference(rank_difference: RankDifference, room: int) -> str:
    """Returns the operations that explain a difference, as many as there is room for."""
    words = ""
    for name, ns in rank_difference.ops[:_OPS]:
        amount = signed_duration(ns)
        room_left = room - len(words) - (2 if words else 0)
        name = name_cut(name, min(room_left - len(amount) - 1, 34) if not words else 34)
        if words and len(name) + 1 + len(amount) > room_left:
            break
        words += f"{', ' if words else ''}{name} {amount}"
    return words or _UNCHANGED


def _align_columns(names: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> list[str]:
    """Returns lines of right-aligned columns, the first with their names, each as wide as needed. The first
    cell of the rows, which the cursor's mark has, stands below a part of the first name.
    """
    table = [names, *((f" {first}", *others) for first, *others in rows)]
    sizes = [max(map(len, column)) for column in zip(*table, strict=True)]
    return [" ".join(f"{text:>{size}}" for text, size in zip(row, sizes, strict=True)) for row in table]


def _head(table_lines: list[str], last: str, gap: str = "  ") -> str:
    return f"{table_lines[0]}{gap}{last}" if len(table_lines) > 1 else ""


# What ranks may be ordered by: the heading of its column, and the title.
_ORDERS = {"waits": "waiting", "exposed": "exposed", "computes": "computing"}


class LateRanks(RankTable):
    """How long each rank waits for members of its collectives and for messages, is exposed and computes, the
    longest first by one of these.
    """

    next_label = "other order"
    sideways_text = "left and right move in a map of ranks: here each rank has a row"

    def __init__(self, run: Run) -> None:
        self.order = "waits"
        super().__init__(run)

    def show(self, run: Run) -> None:
        """Shows another run of the same traces."""
        self._run = run
        self._rows: list[tuple[int, int, int, int]] | None = None

    @property
    def title(self) -> str:
        return f"Ranks by {_ORDERS[self.order]}"

    @property
    def is_empty(self) -> bool:
        return len(self._run.tracks) < _FEWEST_RANKS

    @property
    def rows(self) -> list[tuple[int, int, int, int]]:
        """(waiting, exposed, computing, rank) of each rank, ns, in order."""
        if self._rows is None:
            of_ranks = ((self._run.accounts[track.track_id], track.first_rank) for track in self._run.tracks)
            rows = [
                (one.wait_ns + one.bubble_ns, one.all_exposed_ns, one.busy_ns, rank) for one, rank in of_ranks
            ]
            column = list(_ORDERS).index(self.order)
            self._rows = sorted(rows, key=lambda row: (-row[column], row[3]))
        return self._rows

    @property
    def size(self) -> tuple[int, int]:
        return len(self.rows), 1

    def next(self) -> LateRanks:
        """Orders the ranks by the next column."""
        orders = list(_ORDERS)
        self.order, self._rows = orders[(orders.index(self.order) + 1) % len(orders)], None
        return self

    def find_interval(self, at: tuple[int, int]) -> TrackInterval | None:
        return TrackInterval(self.rows[at[0]][3], 0, max(self._run.step_time_ns, 1)) if self.rows else None

    def _texts(self, width: int) -> tuple[str, list[str]]:
        head, *texts = _align_columns(
            ("rank", *_ORDERS),
            [(str(rank), duration(waits), duration(exposed), duration(computing))
             for waits, exposed, computing, rank in self.rows],
        )  # fmt: skip
        return head, texts

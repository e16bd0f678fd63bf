"""Which lanes are in the list, in which order, as rows, and which of them has the cursor.

A row may be opened, pinned, hidden and left out; what a list is remembered by.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import deepcopy

from simcore.records import NamedTuple
from simcore.trace.lane_spans import LaneOrder
from tui.frame import scrolled
from tui.timeline.filtering import matching
from tui.timeline.groups import Group, GroupLane, all_groups, grouped
from tui.timeline.lanes import ALL, OTHERS, LaneKey, LaneSource, SpanLane


class LaneRow(NamedTuple):
    """A lane in the list. depth: under how many others. sign: `+` closed, `-` open, blank if neither."""

    lane: SpanLane
    key: LaneKey
    depth: int
    sign: str
    pinned: bool = False


class KeptArrangement(NamedTuple):
    """An arrangement to come back to. key: the lane with the cursor. top: how far the list is scrolled."""

    state: dict[str, object]
    key: LaneKey
    top: int


def ranks_of(source: LaneSource) -> list[tuple[int, int, tuple[str, ...]]]:
    """What two runs must share for an arrangement of one to mean the same in the other."""
    return [(number, source.count(number), source.of.track(number).headings) for number in source.numbers]


class LaneListing:
    """Which lanes are shown, and how. order: what they are sorted by.

    _open, _unfolded: groups whose lanes, lanes whose streams are shown. _apart: by group of ranks, the
    ranks that have lanes of their own. _together: the first of those whose alike ranks are one lane.
    _pinned, _hidden: in the order in which they became so. _kept: the groups of ranks that the filter
    leaves, None without one.
    """

    source: LaneSource
    order: LaneOrder
    _groups: dict[LaneKey, Group]
    _group_lanes: dict[LaneKey, GroupLane]
    _open: set[LaneKey]
    _unfolded: set[LaneKey]
    _apart: dict[int, dict[int, None]]
    _together: set[int]
    _pinned: dict[LaneKey, None]
    _hidden: dict[LaneKey, None]
    _kept: set[int] | None

    def _number_of(self, key: LaneKey) -> int:
        """The group of ranks that a lane belongs to."""
        number = self.source.of.number_of(key.rank) if key.rank >= 0 else key.number
        return key.number if number is None else number

    def _has_others(self, number: int) -> bool:
        """Whether some ranks of a group have lanes of their own, and some have not."""
        return 0 < len(self._apart.get(number, ())) < self.source.count(number)

    def _alike(self, number: int) -> Sequence[int]:
        """The groups of ranks whose lane stands for a group, the one that is drawn first; itself alone where
        it has its own.
        """
        if self._together:
            alike = self.source.of.alike(number)
            if alike[0] in self._together:
                return alike
        return (number,)

    def _pinned_rows(self, key: LaneKey) -> Iterator[LaneRow]:
        if key.path:
            rows: Iterator[LaneRow] = (
                self._group_rows(self._groups[key], 0) if key in self._groups else iter(())
            )
        elif key.stream is not None:
            lanes = self.source.streams(self._number_of(key), key.rank)
            rows = (LaneRow(lane, lane.key, 0, " ") for lane in lanes if lane.key == key)
        elif key.rank == ALL:
            rows = self._ranks_rows(key.number, 0)
        else:
            rows = self._single_rows(self._number_of(key), key.rank, 0)
        return (row._replace(pinned=True) for row in rows)

    def _below(self, children: Sequence[Group | int], depth: int) -> Iterator[LaneRow]:
        order = self.order
        if order.id:
            children = sorted(children, key=lambda child: self._measure(order, child))
        for child in children:
            key = LaneKey(child.path) if isinstance(child, Group) else LaneKey((), child)
            numbers = child.numbers if isinstance(child, Group) else self._alike(child)
            if not isinstance(child, Group) and numbers[0] != child:
                continue
            if key in self._pinned or key in self._hidden:
                continue
            if self._kept is not None and self._kept.isdisjoint(numbers):
                continue
            if isinstance(child, Group):
                yield from self._group_rows(child, depth)
            else:
                yield from self._ranks_rows(child, depth)

    def _measure(self, order: LaneOrder, item: Group | int) -> int:
        """A group goes where the first of its lanes does."""
        if not order.id:
            return 0
        numbers = item.numbers if isinstance(item, Group) else (item,)
        return min(self.source.measure(order, number) for number in numbers)

    def _group_rows(self, group: Group, depth: int) -> Iterator[LaneRow]:
        key = LaneKey(group.path)
        if key not in self._group_lanes:
            shown = min(group.numbers, key=lambda number: self._measure(self.order, number))
            self._group_lanes[key] = GroupLane(self.source, group, shown)
        opened = key in self._open
        yield LaneRow(self._group_lanes[key], key, depth, "-" if opened else "+")
        if opened:
            yield from self._below(group.below, depth + 1)

    def _ranks_rows(self, number: int, depth: int) -> Iterator[LaneRow]:
        """The lane of equal ranks, its streams, and those of its ranks that are shown apart."""
        alike, apart = self._alike(number), self._apart.get(number, {})
        lane = self.source.lane(number) if len(alike) == 1 else self.source.together(alike)
        unfolded = lane.key in self._unfolded
        yield LaneRow(lane, lane.key, depth, "-" if unfolded or apart else "+")
        if unfolded:
            yield from self._stream_rows(number, ALL, depth)
        if apart:
            for rank in [*sorted(apart), OTHERS]:
                if rank != OTHERS or self._has_others(number):
                    key = self.source.lane(number, rank).key
                    if key not in self._pinned and key not in self._hidden:
                        yield from self._single_rows(number, rank, depth + 1)

    def _single_rows(self, number: int, rank: int, depth: int) -> Iterator[LaneRow]:
        left = self.source.count(number) - len(self._apart.get(number, ())) if rank == OTHERS else 0
        lane = self.source.lane(number, rank, left)
        key = lane.key
        unfolded = key in self._unfolded
        yield LaneRow(lane, key, depth, "-" if unfolded else "+")
        if unfolded:
            yield from self._stream_rows(number, rank, depth)

    def _stream_rows(self, number: int, rank: int, depth: int) -> Iterator[LaneRow]:
        for lane in self.source.streams(number, rank):
            if lane.key not in self._pinned and lane.key not in self._hidden:
                yield LaneRow(lane, lane.key, depth + 1, " ")


# So many lanes are shown with their groups open; more begin with the groups closed.
_OPEN_AT_FIRST = 32
# Single ranks are listed so many at a time: a stage may have a million.
_RANKS_AT_ONCE = 256
# What an arrangement is made from.
_STATE = ("_open", "_unfolded", "_apart", "_together", "_pinned", "_hidden", "only", "_kept")


class Arrangement(LaneListing):
    """The list of lanes. rows: what is in it. focus: index of the row with the cursor.

    height: rows on the screen. top: how far the list is scrolled; pinned rows stay above.
    order: what lanes are sorted by. only: the filter in words, "" for none. After every change
    the focus is on the same lane as before, or on the one that holds it.
    """

    def __init__(self, source: LaneSource, height: int = 20) -> None:
        self.source = source
        self.height = height
        self.order: LaneOrder = source.orders[0]
        self.rows: list[LaneRow] = []
        self.focus = 0
        self.top = 0
        self._begin()

    def _begin(self) -> None:
        """Everything as the run opens."""
        self._tree = grouped(self.source)
        self._groups = {LaneKey(group.path): group for group in all_groups(self._tree)}
        self._group_lanes: dict[LaneKey, GroupLane] = {}
        few = len(self._groups) + self.source.groups <= _OPEN_AT_FIRST
        self._open: set[LaneKey] = set(self._groups) if few else set()
        self._unfolded: set[LaneKey] = set()
        self._apart: dict[int, dict[int, None]] = {}
        self._together: set[int] = set()
        self._pinned: dict[LaneKey, None] = {}
        self._hidden: dict[LaneKey, None] = {}
        self.only = ""
        self._kept: set[int] | None = None
        self._rebuild(None)

    def show(self, source: LaneSource) -> None:
        """The lanes of another run: arranged as these where they are of the same ranks."""
        alike = ranks_of(self.source) == ranks_of(source)
        key, number = self.rows[self.focus].key, self.current.number
        path = key.path or self.source.of.track(number).headings
        self.source = source
        self.order = next((order for order in source.orders if order == self.order), source.orders[0])
        if alike:
            self._group_lanes.clear()
            self._rebuild(key)
            return
        self._begin()
        of_stage = (
            number for number in source.numbers if path and source.of.track(number).headings[:1] == path[:1]
        )
        group = LaneKey(path[:1])
        self._rebuild(group if group in self._groups else LaneKey((), next(of_stage, number)))

    @property
    def current(self) -> SpanLane:
        """The lane with the cursor."""
        return self.rows[self.focus].lane

    @property
    def unfolded(self) -> set[int]:
        """The groups of ranks whose streams are shown."""
        return {key.number for key in self._unfolded}

    @property
    def folds(self) -> bool:
        """Whether some lanes stand for ranks that are alike."""
        return bool(self._together)

    @property
    def held(self) -> set[int]:
        """The groups of ranks that the lane of another one stands for."""
        return {held for first in self._together for held in self._alike(first)[1:]}

    @property
    def pinned_rows(self) -> int:
        """How many of the first rows stay on the screen, at most half of its rows."""
        count = 0
        while count < len(self.rows) and self.rows[count].pinned:
            count += 1
        return min(count, self.height // 2)

    @property
    def hidden(self) -> int:
        """How many lanes are hidden by `hide`."""
        return len(self._hidden)

    @property
    def words(self) -> str:
        """What keeps lanes from the list, so that none is missing unsaid; "" for nothing."""
        said = []
        if self._hidden:
            said.append(f"{len(self._hidden)} hidden (U)")
        if self._kept is not None:
            said.append(f"only {self.only}: {len(self._kept)} of {self.source.groups} lanes (L)")
        return ", ".join(said)

    def visible(self) -> list[tuple[int, LaneRow]]:
        """(index, row) of the rows on the screen: the pinned ones, then the list from `top` on."""
        pinned = self.pinned_rows
        indices = [*range(pinned), *range(pinned + self.top, min(self.top + self.height, len(self.rows)))]
        return [(index, self.rows[index]) for index in indices]

    # -- moving ----------------------------------------------------------------------

    def resize(self, height: int) -> None:
        """Another number of rows on the screen."""
        self.height = max(height, 1)
        self._keep_in_view()

    def move(self, by: int) -> None:
        """The cursor `by` rows down."""
        self.focus_row(self.focus + by)

    def focus_row(self, index: int) -> None:
        """The cursor to a row, or to the first or last one."""
        self.focus = max(0, min(index, len(self.rows) - 1))
        self._keep_in_view()

    def _keep_in_view(self) -> None:
        pinned = self.pinned_rows
        # The pinned rows do not scroll: the list is what is below them.
        count, rows = len(self.rows) - pinned, self.height - pinned
        if self.focus >= pinned:
            self.top = scrolled(self.top, count, rows, self.focus - pinned)
        else:
            self.top = max(0, min(self.top, count - rows))

    # -- folding ---------------------------------------------------------------------

    def fill(self, height: int) -> None:
        """The streams of the first lanes, as many as `height` rows take; a single stream says nothing."""
        room = height - len(self.rows)
        for row in self.rows if self.source.of.facts.timed else ():
            if row.key.path or row.key.stream is not None:
                continue
            streams = len(self.source.streams(row.key.number))
            if streams > 1:
                room -= streams
                if room < 0:
                    break
                self._unfolded.add(row.key)
        self._rebuild(self.rows[self.focus].key)

    def toggle(self) -> None:
        """Open or close the lane under the cursor: a group's lanes, or the streams of ranks."""
        key = self.rows[self.focus].key
        opened = self._open if key.path else self._unfolded
        key = key._replace(stream=None)
        if key in opened:
            opened.remove(key)
        else:
            opened.add(key)
        self._rebuild(key)

    def toggle_ranks(self) -> None:
        """Show the equal ranks of the lane under the cursor one by one, or as one lane again; the same for
        ranks that are alike.
        """
        key = self.rows[self.focus].key
        if key.path:
            return
        number = self._number_of(key)
        alike = self.source.of.alike(number)
        if len(alike) > 1:
            self._together ^= {alike[0]}
            self._rebuild(LaneKey((), number))
            return
        apart = self._apart.setdefault(number, {})
        if key.rank != OTHERS and any(not self._is_pinned(number, rank) for rank in apart):
            self._fold_ranks(number)
            key = LaneKey((), number)
        elif self.source.count(number) > 1:
            more = (rank for rank in self.source.of.track(number).ranks if rank not in apart)
            apart.update(dict.fromkeys(rank for _, rank in zip(range(_RANKS_AT_ONCE), more, strict=False)))
        self._rebuild(key)

    def _is_pinned(self, number: int, rank: int) -> bool:
        return any(key.rank == rank and self._number_of(key) == number for key in self._pinned)

    def _fold_ranks(self, number: int) -> None:
        """Ranks without lanes of their own again, but for the pinned ones."""
        apart = [rank for rank in self._apart.pop(number, ()) if self._is_pinned(number, rank)]
        if apart:
            self._apart[number] = dict.fromkeys(apart)
        gone = [
            key for keys in (self._unfolded, self._hidden) for key in keys
            if key.rank != ALL and key.rank not in apart and not key.path and self._number_of(key) == number
        ]  # fmt: skip
        for key in gone:
            self._unfolded.discard(key)
            self._hidden.pop(key, None)

    def open_level(self) -> None:
        """Open every lane of the kind under the cursor: all groups of its level, or all streams."""
        key = self.rows[self.focus].key
        if key.path:
            self._open |= {group for group in self._groups if len(group.path) == len(key.path)}
        else:
            single = key.rank != ALL
            self._unfolded |= {
                row.key for row in self.rows
                if not row.key.path and row.key.stream is None and (row.key.rank != ALL) == single
            }  # fmt: skip
        self._rebuild(key)

    def close_all(self) -> None:
        """Close every lane, whatever its level."""
        key = self.rows[self.focus].key
        self._open.clear()
        self._unfolded.clear()
        for number in list(self._apart):
            self._fold_ranks(number)
        self._rebuild(key)

    def show_lane(self, key: LaneKey) -> None:
        """The cursor to a lane, wherever it is folded, hidden, or left out; another run's is left alone."""
        number = self._number_of(key)
        if not key.path and number not in self.source.numbers:
            return
        if key.rank >= 0:
            if self.source.of.number_of(key.rank) is None:
                return
            # Another run may have the rank among others.
            key = self.source.lane(number, key.rank).key._replace(stream=key.stream)
        if not key.path:
            if self._kept is not None and number not in self._kept:
                self.only, self._kept = "", None
            if key.rank >= 0 and self.source.count(number) > 1:
                self._apart.setdefault(number, {})[key.rank] = None
            self._together.difference_update(self._alike(number)[:1] if number in self.held else ())
            whole = key._replace(stream=None)
            if key.stream is not None:
                self._unfolded.add(whole)
            headings = [lane_key for lane_key, group in self._groups.items() if number in group.numbers]
            for lane_key in (key, whole, LaneKey((), number), *headings):
                self._hidden.pop(lane_key, None)
            self._open.update(headings)
        self._rebuild(key)

    def memory(self) -> KeptArrangement:
        """How all is arranged now, for `recall`."""
        state = {name: deepcopy(getattr(self, name)) for name in _STATE}
        return KeptArrangement(state, self.rows[self.focus].key, self.top)

    def recall(self, memory: KeptArrangement) -> None:
        """All as it was."""
        for name, value in memory.state.items():
            setattr(self, name, deepcopy(value))
        self._rebuild(memory.key)
        self.top = memory.top
        self._keep_in_view()

    def scroll(self, by: int) -> None:
        """The list `by` rows further, the cursor on one of the rows that are shown then."""
        pinned = self.pinned_rows
        self.top = max(0, min(self.top + by, len(self.rows) - self.height))
        if self.focus >= pinned:
            last = self.top + self.height - 1
            # The last row may be taken by how many lanes are below.
            last -= last + 1 < len(self.rows) and self.height > pinned + 1
            self.focus = max(pinned + self.top, min(self.focus, last))
        self._keep_in_view()

    # -- what is shown, and where ----------------------------------------------------

    def toggle_pin(self) -> None:
        """Keep the lane under the cursor above the others, or give it back its place."""
        key = self.rows[self.focus].key
        if key in self._pinned:
            del self._pinned[key]
        else:
            self._pinned[key] = None
        self._rebuild(key)

    def hide(self) -> bool:
        """Take the lane under the cursor off the list; False for the last one, which stays."""
        row = self.rows[self.focus]
        self._hidden[row.key] = None
        pinned = self._pinned.copy()
        self._pinned.pop(row.key, None)
        # The next row that is not under this one takes over the cursor.
        after = (lane_row.key for lane_row in self.rows[self.focus + 1 :] if lane_row.depth <= row.depth)
        key = next(after, self.rows[self.focus - 1].key)
        if not self._rebuild(key):
            del self._hidden[row.key]
            self._pinned = pinned
            self._rebuild(row.key)
            return False
        return True

    def show_hidden(self) -> None:
        """All hidden lanes again."""
        self._hidden.clear()
        self._rebuild(self.rows[self.focus].key)

    def next_order(self) -> None:
        """Sort the lanes by what comes next in the source's orders."""
        orders = list(self.source.orders)
        self.sort_by(orders[(orders.index(self.order) + 1) % len(orders)].id)

    def sort_by(self, id: str) -> None:
        """Sort the lanes by one of the source's orders; another one leaves them as they are."""
        self.order = next((order for order in self.source.orders if order.id == id), self.order)
        self._group_lanes.clear()
        self._rebuild(self.rows[self.focus].key)

    def show_only(self, asked: str) -> int:
        """Only the lanes of ranks that match; "" for all. How many match: with 0 nothing changes.

        asked: ranks (`37`, `0-7,64`), or a word of a lane's title or headings (`stage 5`). A group stays
        while one of its lanes does.
        """
        asked = asked.strip()
        if not asked:
            self.only, self._kept = "", None
            self._rebuild(self.rows[self.focus].key)
            return self.source.groups
        kept = matching(self.source, asked)
        if kept:
            before = self.only, self._kept
            self.only, self._kept = asked, kept
            if not self._rebuild(self.rows[self.focus].key):
                # All that match are hidden.
                self.only, self._kept = before
                self._rebuild(self.rows[self.focus].key)
                return 0
        return len(kept)

    # -- the rows --------------------------------------------------------------------

    def _rebuild(self, key: LaneKey | None) -> bool:
        """Make the rows, the cursor on `key` or on what holds it; False if there would be none."""
        self._forget_others()
        rows = [row for pinned in self._pinned for row in self._pinned_rows(pinned)]
        rows += self._below(self._tree, 0)
        if not rows:
            return False
        self.rows = rows
        if key is not None:
            self.focus = self._place_of(key)
        self.focus = min(self.focus, len(rows) - 1)
        self._keep_in_view()
        return True

    def _forget_others(self) -> None:
        """The others of a group are no lane where none of its ranks, or all, have lanes of their own; ranks
        are none where they are not alike.
        """
        alike = self.source.of.alike
        self._together = {
            number for number in self._together
            if number in self.source.numbers and alike(number)[0] == number and len(alike(number)) > 1
        }  # fmt: skip
        for keys in (self._pinned, self._hidden, self._unfolded):
            for key in [key for key in keys if key.rank == OTHERS and not self._has_others(key.number)]:
                if isinstance(keys, dict):
                    del keys[key]
                else:
                    keys.remove(key)

    def _place_of(self, key: LaneKey) -> int:
        """The row of a lane, or of the innermost one that holds it and is shown; else where the focus is."""
        places = {row.key: index for index, row in enumerate(self.rows)}
        candidates = [key, key._replace(stream=None)]
        if key.path:
            candidates += [LaneKey(key.path[:length]) for length in range(len(key.path) - 1, 0, -1)]
        else:
            number = self._number_of(key)
            candidates += [LaneKey((), number), LaneKey((), self._alike(number)[0])]
            holding = [lane_key for lane_key, group in self._groups.items() if number in group.numbers]
            candidates += sorted(holding, key=lambda group: -len(group.path))
        return next((places[candidate] for candidate in candidates if candidate in places), self.focus)

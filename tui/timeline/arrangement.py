"""Which lanes are in the list, in which order, as rows, and which of them has the cursor.

A row may be opened, pinned, hidden and left out; an arrangement can be saved and restored.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import deepcopy

from simcore.records import NamedTuple
from simcore.trace.lane_spans import LaneOrder
from tui.frame import scrolled
from tui.timeline.filtering import find_tracks
from tui.timeline.groups import Group, GroupLane, all_groups, group_tracks
from tui.timeline.lanes import ALL, OTHERS, LaneKey, LaneSource, SpanLane


class LaneRow(NamedTuple):
    """A lane in the list."""

    lane: SpanLane
    key: LaneKey
    depth: int
    """How many other lanes it stands under."""
    sign: str
    """`+` closed, `-` open, blank if neither."""
    pinned: bool = False


class SavedArrangement(NamedTuple):
    """An arrangement that can be restored."""

    state: dict[str, object]
    key: LaneKey
    """The lane with the cursor."""
    top: int
    """How far the list is scrolled."""


def track_layout(source: LaneSource) -> list[tuple[int, int, tuple[str, ...]]]:
    """Returns what two runs must share for an arrangement of one to mean the same in the other."""
    return [
        (track_id, source.count_ranks(track_id), source.of.track(track_id).headings)
        for track_id in source.track_ids
    ]


class LaneListing:
    """Which lanes are shown, and in which order."""

    source: LaneSource
    order: LaneOrder
    """What the lanes are sorted by."""
    _groups: dict[LaneKey, Group]
    _group_lanes: dict[LaneKey, GroupLane]
    _open: set[LaneKey]
    """Groups whose lanes are shown."""
    _unfolded: set[LaneKey]
    """Lanes whose streams are shown."""
    _apart: dict[int, dict[int, None]]
    """By group of ranks, the ranks that have lanes of their own."""
    _together: set[int]
    """The first track of each set of similar tracks that are shown as one lane."""
    _pinned: dict[LaneKey, None]
    """In the order in which they were pinned."""
    _hidden: dict[LaneKey, None]
    """In the order in which they were hidden."""
    _filtered_tracks: set[int] | None
    """The groups of ranks that the filter leaves, None without a filter."""

    def _track_of(self, key: LaneKey) -> int:
        """Returns the group of ranks that a lane belongs to."""
        track_id = self.source.of.lane_track_id(key.rank) if key.rank >= 0 else key.track_id
        return key.track_id if track_id is None else track_id

    def _has_others(self, track_id: int) -> bool:
        """Returns whether some ranks of a group have lanes of their own, and some have not."""
        return 0 < len(self._apart.get(track_id, ())) < self.source.count_ranks(track_id)

    def _similar_tracks(self, track_id: int) -> Sequence[int]:
        """Returns the groups of ranks that one lane stands for, the drawn one first; the group alone where it
        has a lane of its own.
        """
        if self._together:
            similar_tracks = self.source.of.similar_tracks(track_id)
            if similar_tracks[0] in self._together:
                return similar_tracks
        return (track_id,)

    def _pinned_rows(self, key: LaneKey) -> Iterator[LaneRow]:
        if key.path:
            rows: Iterator[LaneRow] = (
                self._group_rows(self._groups[key], 0) if key in self._groups else iter(())
            )
        elif key.stream is not None:
            lanes = self.source.streams(self._track_of(key), key.rank)
            rows = (LaneRow(lane, lane.key, 0, " ") for lane in lanes if lane.key == key)
        elif key.rank == ALL:
            rows = self._track_rows(key.track_id, 0)
        else:
            rows = self._single_rows(self._track_of(key), key.rank, 0)
        return (row._replace(pinned=True) for row in rows)

    def _child_rows(self, children: Sequence[Group | int], depth: int) -> Iterator[LaneRow]:
        order = self.order
        if order.id:
            children = sorted(children, key=lambda child: self._sort_value(order, child))
        for child in children:
            key = LaneKey(child.path) if isinstance(child, Group) else LaneKey((), child)
            track_ids = child.track_ids if isinstance(child, Group) else self._similar_tracks(child)
            if not isinstance(child, Group) and track_ids[0] != child:
                continue
            if key in self._pinned or key in self._hidden:
                continue
            if self._filtered_tracks is not None and self._filtered_tracks.isdisjoint(track_ids):
                continue
            if isinstance(child, Group):
                yield from self._group_rows(child, depth)
            else:
                yield from self._track_rows(child, depth)

    def _sort_value(self, order: LaneOrder, item: Group | int) -> int:
        """Returns the sort key; a group goes where the first of its lanes does."""
        if not order.id:
            return 0
        track_ids = item.track_ids if isinstance(item, Group) else (item,)
        return min(self.source.order_value(order, track_id) for track_id in track_ids)

    def _group_rows(self, group: Group, depth: int) -> Iterator[LaneRow]:
        key = LaneKey(group.path)
        if key not in self._group_lanes:
            first_track = min(group.track_ids, key=lambda track_id: self._sort_value(self.order, track_id))
            self._group_lanes[key] = GroupLane(self.source, group, first_track)
        is_open = key in self._open
        yield LaneRow(self._group_lanes[key], key, depth, "-" if is_open else "+")
        if is_open:
            yield from self._child_rows(group.children, depth + 1)

    def _track_rows(self, track_id: int, depth: int) -> Iterator[LaneRow]:
        """Yields the lane of equal ranks, its streams, and those of its ranks that are shown apart."""
        similar_tracks, apart = self._similar_tracks(track_id), self._apart.get(track_id, {})
        lane = (
            self.source.lane(track_id)
            if len(similar_tracks) == 1
            else self.source.merged_lane(similar_tracks)
        )
        is_unfolded = lane.key in self._unfolded
        yield LaneRow(lane, lane.key, depth, "-" if is_unfolded or apart else "+")
        if is_unfolded:
            yield from self._stream_rows(track_id, ALL, depth)
        if apart:
            for rank in [*sorted(apart), OTHERS]:
                if rank != OTHERS or self._has_others(track_id):
                    key = self.source.lane(track_id, rank).key
                    if key not in self._pinned and key not in self._hidden:
                        yield from self._single_rows(track_id, rank, depth + 1)

    def _single_rows(self, track_id: int, rank: int, depth: int) -> Iterator[LaneRow]:
        others_count = (
            self.source.count_ranks(track_id) - len(self._apart.get(track_id, ())) if rank == OTHERS else 0
        )
        lane = self.source.lane(track_id, rank, others_count)
        key = lane.key
        is_unfolded = key in self._unfolded
        yield LaneRow(lane, key, depth, "-" if is_unfolded else "+")
        if is_unfolded:
            yield from self._stream_rows(track_id, rank, depth)

    def _stream_rows(self, track_id: int, rank: int, depth: int) -> Iterator[LaneRow]:
        for lane in self.source.streams(track_id, rank):
            if lane.key not in self._pinned and lane.key not in self._hidden:
                yield LaneRow(lane, lane.key, depth + 1, " ")


# Up to this many lanes a run opens with its groups open; with more they begin closed.
_OPEN_AT_FIRST = 32
# Single ranks are listed this many at a time: a stage may have a million.
_RANKS_AT_ONCE = 256
# What an arrangement is made from.
_STATE = ("_open", "_unfolded", "_apart", "_together", "_pinned", "_hidden", "only", "_filtered_tracks")


class Arrangement(LaneListing):
    """The list of lanes, with its cursor and its scrolling.

    `rows` is what is in the list, `focus` the index of the row with the cursor. `height` is the number of
    rows on the screen, `top` how far the list is scrolled; pinned rows stay above. `order` is what lanes are
    sorted by, `only` the filter in words, "" for none. After every change the focus is on the same lane as
    before, or on the one that holds it.
    """

    def __init__(self, source: LaneSource, height: int = 20) -> None:
        self.source = source
        self.height = height
        self.order: LaneOrder = source.orders[0]
        self.rows: list[LaneRow] = []
        self.focus = 0
        self.top = 0
        self._reset()

    def _reset(self) -> None:
        """Arranges everything as a run opens."""
        self._tree = group_tracks(self.source)
        self._groups = {LaneKey(group.path): group for group in all_groups(self._tree)}
        self._group_lanes: dict[LaneKey, GroupLane] = {}
        are_few = len(self._groups) + self.source.track_count <= _OPEN_AT_FIRST
        self._open: set[LaneKey] = set(self._groups) if are_few else set()
        self._unfolded: set[LaneKey] = set()
        self._apart: dict[int, dict[int, None]] = {}
        self._together: set[int] = set()
        self._pinned: dict[LaneKey, None] = {}
        self._hidden: dict[LaneKey, None] = {}
        self.only = ""
        self._filtered_tracks: set[int] | None = None
        self._rebuild(None)

    def show(self, source: LaneSource) -> None:
        """Shows the lanes of another run, arranged as now where they are of the same ranks."""
        has_same_layout = track_layout(self.source) == track_layout(source)
        key, track_id = self.rows[self.focus].key, self.current.track_id
        path = key.path or self.source.of.track(track_id).headings
        self.source = source
        self.order = next((order for order in source.orders if order == self.order), source.orders[0])
        if has_same_layout:
            self._group_lanes.clear()
            self._rebuild(key)
            return
        self._reset()
        stage_tracks = (
            track_id
            for track_id in source.track_ids
            if path and source.of.track(track_id).headings[:1] == path[:1]
        )
        group = LaneKey(path[:1])
        self._rebuild(group if group in self._groups else LaneKey((), next(stage_tracks, track_id)))

    @property
    def current(self) -> SpanLane:
        """The lane with the cursor."""
        return self.rows[self.focus].lane

    @property
    def unfolded(self) -> set[int]:
        """The groups of ranks whose streams are shown."""
        return {key.track_id for key in self._unfolded}

    @property
    def folds_tracks(self) -> bool:
        """Whether some lanes stand for tracks that are similar."""
        return bool(self._together)

    @property
    def folded_tracks(self) -> set[int]:
        """The groups of ranks that the lane of another group stands for."""
        return {track_id for first in self._together for track_id in self._similar_tracks(first)[1:]}

    @property
    def pinned_count(self) -> int:
        """How many of the first rows stay on the screen, at most half of its rows."""
        count = 0
        while count < len(self.rows) and self.rows[count].pinned:
            count += 1
        return min(count, self.height // 2)

    @property
    def hidden_count(self) -> int:
        """How many lanes are hidden by `hide`."""
        return len(self._hidden)

    @property
    def omission_text(self) -> str:
        """Says which lanes are missing from the list and why; "" for none."""
        parts = []
        if self._hidden:
            parts.append(f"{len(self._hidden)} hidden (U)")
        if self._filtered_tracks is not None:
            parts.append(
                f"only {self.only}: {len(self._filtered_tracks)} of {self.source.track_count} lanes (L)"
            )
        return ", ".join(parts)

    def visible(self) -> list[tuple[int, LaneRow]]:
        """Returns (index, row) of the rows on the screen: the pinned ones, then the list from `top` on."""
        pinned = self.pinned_count
        indices = [*range(pinned), *range(pinned + self.top, min(self.top + self.height, len(self.rows)))]
        return [(index, self.rows[index]) for index in indices]

    # -- moving ----------------------------------------------------------------------

    def resize(self, height: int) -> None:
        """Sets the number of rows on the screen."""
        self.height = max(height, 1)
        self._keep_in_view()

    def move(self, by: int) -> None:
        """Moves the cursor `by` rows down."""
        self.focus_row(self.focus + by)

    def focus_row(self, index: int) -> None:
        """Moves the cursor to a row, or to the first or last one."""
        self.focus = max(0, min(index, len(self.rows) - 1))
        self._keep_in_view()

    def _keep_in_view(self) -> None:
        pinned = self.pinned_count
        # The pinned rows do not scroll: the list is what is below them.
        count, rows = len(self.rows) - pinned, self.height - pinned
        if self.focus >= pinned:
            self.top = scrolled(self.top, count, rows, self.focus - pinned)
        else:
            self.top = max(0, min(self.top, count - rows))

    # -- folding ---------------------------------------------------------------------

    def fill(self, height: int) -> None:
        """Opens the streams of the first lanes, as many as `height` rows take; a single stream says
        nothing.
        """
        room = height - len(self.rows)
        for row in self.rows if self.source.of.facts.timed else ():
            if row.key.path or row.key.stream is not None:
                continue
            streams = len(self.source.streams(row.key.track_id))
            if streams > 1:
                room -= streams
                if room < 0:
                    break
                self._unfolded.add(row.key)
        self._rebuild(self.rows[self.focus].key)

    def toggle(self) -> None:
        """Opens or closes the lane under the cursor: a group's lanes, or the streams of ranks."""
        key = self.rows[self.focus].key
        open_keys = self._open if key.path else self._unfolded
        key = key._replace(stream=None)
        if key in open_keys:
            open_keys.remove(key)
        else:
            open_keys.add(key)
        self._rebuild(key)

    def toggle_ranks(self) -> None:
        """Shows the equal ranks of the lane under the cursor one by one, or as one lane again; the same for
        tracks that are similar.
        """
        key = self.rows[self.focus].key
        if key.path:
            return
        track_id = self._track_of(key)
        similar_tracks = self.source.of.similar_tracks(track_id)
        if len(similar_tracks) > 1:
            self._together ^= {similar_tracks[0]}
            self._rebuild(LaneKey((), track_id))
            return
        apart = self._apart.setdefault(track_id, {})
        if key.rank != OTHERS and any(not self._is_pinned(track_id, rank) for rank in apart):
            self._fold_ranks(track_id)
            key = LaneKey((), track_id)
        elif self.source.count_ranks(track_id) > 1:
            more_ranks = (rank for rank in self.source.of.track(track_id).ranks if rank not in apart)
            apart.update(
                dict.fromkeys(rank for _, rank in zip(range(_RANKS_AT_ONCE), more_ranks, strict=False))
            )
        self._rebuild(key)

    def _is_pinned(self, track_id: int, rank: int) -> bool:
        return any(key.rank == rank and self._track_of(key) == track_id for key in self._pinned)

    def _fold_ranks(self, track_id: int) -> None:
        """Removes the lanes of single ranks again, but for the pinned ones."""
        apart = [rank for rank in self._apart.pop(track_id, ()) if self._is_pinned(track_id, rank)]
        if apart:
            self._apart[track_id] = dict.fromkeys(apart)
        removed_keys = [
            key for keys in (self._unfolded, self._hidden) for key in keys
            if key.rank != ALL and key.rank not in apart and not key.path and self._track_of(key) == track_id
        ]  # fmt: skip
        for key in removed_keys:
            self._unfolded.discard(key)
            self._hidden.pop(key, None)

    def open_level(self) -> None:
        """Opens every lane of the kind under the cursor: all groups of its level, or all streams."""
        key = self.rows[self.focus].key
        if key.path:
            self._open |= {group for group in self._groups if len(group.path) == len(key.path)}
        else:
            is_single = key.rank != ALL
            self._unfolded |= {
                row.key for row in self.rows
                if not row.key.path and row.key.stream is None and (row.key.rank != ALL) == is_single
            }  # fmt: skip
        self._rebuild(key)

    def close_all(self) -> None:
        """Closes every lane, whatever its level."""
        key = self.rows[self.focus].key
        self._open.clear()
        self._unfolded.clear()
        for track_id in list(self._apart):
            self._fold_ranks(track_id)
        self._rebuild(key)

    def show_lane(self, key: LaneKey) -> None:
        """Moves the cursor to a lane, wherever it is folded, hidden, or left out; a lane that the run lacks
        changes nothing.
        """
        track_id = self._track_of(key)
        if not key.path and track_id not in self.source.track_ids:
            return
        if key.rank >= 0:
            if self.source.of.lane_track_id(key.rank) is None:
                return
            # In another run the rank may share its lane with others.
            key = self.source.lane(track_id, key.rank).key._replace(stream=key.stream)
        if not key.path:
            if self._filtered_tracks is not None and track_id not in self._filtered_tracks:
                self.only, self._filtered_tracks = "", None
            if key.rank >= 0 and self.source.count_ranks(track_id) > 1:
                self._apart.setdefault(track_id, {})[key.rank] = None
            self._together.difference_update(
                self._similar_tracks(track_id)[:1] if track_id in self.folded_tracks else ()
            )
            folded_key = key._replace(stream=None)
            if key.stream is not None:
                self._unfolded.add(folded_key)
            headings = [lane_key for lane_key, group in self._groups.items() if track_id in group.track_ids]
            for lane_key in (key, folded_key, LaneKey((), track_id), *headings):
                self._hidden.pop(lane_key, None)
            self._open.update(headings)
        self._rebuild(key)

    def save_state(self) -> SavedArrangement:
        """Returns how all is arranged now, for `restore_state`."""
        state = {name: deepcopy(getattr(self, name)) for name in _STATE}
        return SavedArrangement(state, self.rows[self.focus].key, self.top)

    def restore_state(self, saved: SavedArrangement) -> None:
        """Arranges all as it was when saved."""
        for name, value in saved.state.items():
            setattr(self, name, deepcopy(value))
        self._rebuild(saved.key)
        self.top = saved.top
        self._keep_in_view()

    def scroll(self, by: int) -> None:
        """Scrolls the list `by` rows further, with the cursor on one of the rows that are visible then."""
        pinned = self.pinned_count
        self.top = max(0, min(self.top + by, len(self.rows) - self.height))
        if self.focus >= pinned:
            last = self.top + self.height - 1
            # The last row may hold how many lanes are below.
            last -= last + 1 < len(self.rows) and self.height > pinned + 1
            self.focus = max(pinned + self.top, min(self.focus, last))
        self._keep_in_view()

    # -- what is shown, and where ----------------------------------------------------

    def toggle_pin(self) -> None:
        """Keeps the lane under the cursor above the others, or puts it back in its position."""
        key = self.rows[self.focus].key
        if key in self._pinned:
            del self._pinned[key]
        else:
            self._pinned[key] = None
        self._rebuild(key)

    def hide(self) -> bool:
        """Hides the lane under the cursor; returns False for the last one, which stays."""
        row = self.rows[self.focus]
        self._hidden[row.key] = None
        pinned = self._pinned.copy()
        self._pinned.pop(row.key, None)
        # The next row that is not under this one takes over the cursor.
        next_keys = (lane_row.key for lane_row in self.rows[self.focus + 1 :] if lane_row.depth <= row.depth)
        key = next(next_keys, self.rows[self.focus - 1].key)
        if not self._rebuild(key):
            del self._hidden[row.key]
            self._pinned = pinned
            self._rebuild(row.key)
            return False
        return True

    def show_hidden(self) -> None:
        """Shows all hidden lanes again."""
        self._hidden.clear()
        self._rebuild(self.rows[self.focus].key)

    def next_order(self) -> None:
        """Sorts the lanes by what comes next in the source's orders."""
        orders = list(self.source.orders)
        self.sort_by(orders[(orders.index(self.order) + 1) % len(orders)].id)

    def sort_by(self, id: str) -> None:
        """Sorts the lanes by one of the source's orders; an unknown id changes nothing."""
        self.order = next((order for order in self.source.orders if order.id == id), self.order)
        self._group_lanes.clear()
        self._rebuild(self.rows[self.focus].key)

    def show_only(self, text: str) -> int:
        """Shows only the lanes of ranks that match, "" for all; returns how many match. With 0 nothing
        changes.

        text: ranks (`37`, `0-7,64`), or a word of a lane's title or headings (`stage 5`). A group stays while
        one of its lanes does.
        """
        text = text.strip()
        if not text:
            self.only, self._filtered_tracks = "", None
            self._rebuild(self.rows[self.focus].key)
            return self.source.track_count
        track_ids = find_tracks(self.source, text)
        if track_ids:
            before = self.only, self._filtered_tracks
            self.only, self._filtered_tracks = text, track_ids
            if not self._rebuild(self.rows[self.focus].key):
                # All that match are hidden.
                self.only, self._filtered_tracks = before
                self._rebuild(self.rows[self.focus].key)
                return 0
        return len(track_ids)

    # -- the rows --------------------------------------------------------------------

    def _rebuild(self, key: LaneKey | None) -> bool:
        """Makes the rows, with the cursor on `key` or on what holds it; returns False if there
        would be none.
        """
        self._drop_absent_keys()
        rows = [row for pinned in self._pinned for row in self._pinned_rows(pinned)]
        rows += self._child_rows(self._tree, 0)
        if not rows:
            return False
        self.rows = rows
        if key is not None:
            self.focus = self._row_index(key)
        self.focus = min(self.focus, len(rows) - 1)
        self._keep_in_view()
        return True

    def _drop_absent_keys(self) -> None:
        """Removes the keys of lanes that do not exist: those of the other ranks of a group where none or all
        of them have lanes of their own, and those of tracks that are not similar.
        """
        similar_tracks = self.source.of.similar_tracks
        self._together = {
            track_id
            for track_id in self._together
            if track_id in self.source.track_ids
            and similar_tracks(track_id)[0] == track_id
            and len(similar_tracks(track_id)) > 1
        }
        for keys in (self._pinned, self._hidden, self._unfolded):
            for key in [key for key in keys if key.rank == OTHERS and not self._has_others(key.track_id)]:
                if isinstance(keys, dict):
                    del keys[key]
                else:
                    keys.remove(key)

    def _row_index(self, key: LaneKey) -> int:
        """Returns the row of a lane, or of the innermost visible one that holds it; else where the
        focus is.
        """
        index_by_key = {row.key: index for index, row in enumerate(self.rows)}
        candidates = [key, key._replace(stream=None)]
        if key.path:
            candidates += [LaneKey(key.path[:length]) for length in range(len(key.path) - 1, 0, -1)]
        else:
            track_id = self._track_of(key)
            candidates += [LaneKey((), track_id), LaneKey((), self._similar_tracks(track_id)[0])]
            parents = [lane_key for lane_key, group in self._groups.items() if track_id in group.track_ids]
            candidates += sorted(parents, key=lambda group: -len(group.path))
        return next(
            (index_by_key[candidate] for candidate in candidates if candidate in index_by_key), self.focus
        )

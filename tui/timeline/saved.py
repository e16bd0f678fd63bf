"""The timeline's part of a session file: plain values, checked; a model to them, and back."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from simcore.records import NamedTuple
from tui.state import checking
from tui.state.checking import (
    MOST_RANKS,
    check_items,
    check_optional,
    check_table,
    check_text,
    check_whole,
    invalid_value,
)
from tui.timeline.arrangement import SavedArrangement
from tui.timeline.filtering import describe_missing
from tui.timeline.groups import all_groups, group_tracks
from tui.timeline.lanes import OTHERS, LaneKey, LaneSource
from tui.timeline.model import TimelineModel
from tui.timeline.query import parse_query
from tui.timeline.window import Mark, Window

# (path, track_id, rank, stream) of a LaneKey.
Key = tuple[tuple[str, ...], int, int, "str | None"]
# The most columns and rows that the lane area may have.
_MOST_CELLS = 10_000


class SavedMark(NamedTuple):
    """As `tui.timeline.window.Mark`."""

    letter: str
    time_ns: int
    lane: Key
    title: str


class SavedTimeline(NamedTuple):
    """The saved position in the timeline."""

    step_ns: int
    """The step of which the times are."""
    first_ns: int
    span_ns: int
    cursor_ns: int
    columns: int
    """Columns of the lane area when it was saved."""
    rows: int
    """Rows of the lane area when it was saved."""
    lane: Key
    """The lane with the cursor."""
    top: int
    """How far the list was scrolled."""
    order: str = ""
    """The id of what lanes were sorted by."""
    opened: tuple[Key, ...] = ()
    """Lanes."""
    unfolded: tuple[Key, ...] = ()
    """Lanes."""
    apart: tuple[tuple[int, tuple[int, ...]], ...] = ()
    """(group of ranks, its ranks with lanes of their own)."""
    pinned: tuple[Key, ...] = ()
    """Lanes."""
    hidden: tuple[Key, ...] = ()
    """Lanes."""
    only: str = ""
    """The filter of lanes, in words."""
    kept: tuple[int, ...] | None = None
    """The groups that the filter of lanes left, None without one."""
    filter: str = ""
    """The filter of spans, as typed."""
    anchor_ns: int | None = None
    """Where the range begins."""
    fixed: tuple[int, ...] | None = None
    """Both ends of the range, if they are set."""
    marks: tuple[SavedMark, ...] = ()
    together: tuple[int, ...] = ()
    """The first track of each set of similar tracks that are one lane."""

    def as_json(self) -> dict[str, Any]:
        """Returns the values as JSON takes them."""
        return self._asdict()

    @classmethod
    def read(cls, value: object, where: str) -> SavedTimeline:
        """Returns the checked values, each by itself; `restore` checks whether a run has these lanes."""
        entries = check_table(value, where)

        def get(name: str) -> tuple[object, str]:
            return entries.get(name), f"{where}.{name}"

        step = check_whole(*get("step_ns"), 1)
        span = check_whole(*get("span_ns"), 1, step)
        return cls(
            step_ns=step,
            first_ns=check_whole(*get("first_ns"), 0, step - span),
            span_ns=span,
            cursor_ns=check_whole(*get("cursor_ns"), 0, step),
            columns=check_whole(*get("columns"), 1, _MOST_CELLS),
            rows=check_whole(*get("rows"), 1, _MOST_CELLS),
            lane=_read_key(*get("lane")),
            top=check_whole(*get("top"), 0, MOST_RANKS),
            order=check_text(*get("order"), 40),
            opened=check_items(*get("opened"), _read_key),
            unfolded=check_items(*get("unfolded"), _read_key),
            apart=check_items(*get("apart"), _read_apart),
            pinned=check_items(*get("pinned"), _read_key),
            hidden=check_items(*get("hidden"), _read_key),
            only=check_text(*get("only")),
            kept=check_optional(*get("kept"), lambda item, where: check_items(item, where, _read_number)),
            filter=check_text(*get("filter")),
            anchor_ns=check_optional(
                *get("anchor_ns"), lambda item, where: check_whole(item, where, 0, step)
            ),
            fixed=check_optional(*get("fixed"), lambda stretch, where: _read_stretch(stretch, where, step)),
            marks=check_items(*get("marks"), lambda mark, where: _read_mark(mark, where, step), 26),
            # Older sessions have no such key.
            together=check_items(entries.get("together", []), f"{where}.together", _read_number),
        )


def _read_number(value: object, where: str) -> int:
    return check_whole(value, where, -2, MOST_RANKS)


def _read_word(value: object, where: str) -> str:
    return check_text(value, where)


def _read_list(value: object, where: str, length: int) -> list[object]:
    if not isinstance(value, list) or len(value) != length:
        raise invalid_value(value, where, f"a list of {length}")
    return value


def _read_key(value: object, where: str) -> Key:
    path, track_id, rank, stream = _read_list(value, where, 4)
    return (
        check_items(path, where, _read_word, 20), _read_number(track_id, where), _read_number(rank, where),
        check_optional(stream, where, _read_word),
    )  # fmt: skip


def _read_apart(value: object, where: str) -> tuple[int, tuple[int, ...]]:
    track_id, ranks = _read_list(value, where, 2)
    return _read_number(track_id, where), check_items(ranks, where, _read_number)


def _read_stretch(value: object, where: str, step: int) -> tuple[int, ...]:
    first, last = check_items(
        _read_list(value, where, 2), where, lambda item, where: check_whole(item, where, 0, step)
    )
    if first > last:
        raise invalid_value(value, where, "a range that ends after it begins")
    return first, last


def _read_mark(value: object, where: str, step: int) -> SavedMark:
    letter, time, lane, title = _read_list(value, where, 4)
    if not isinstance(letter, str) or len(letter) != 1 or not "a" <= letter <= "z":
        raise invalid_value(letter, where, "a letter from a to z")
    return SavedMark(
        letter, check_whole(time, where, 0, step), _read_key(lane, where), checking.check_text(title, where)
    )


def save(model: TimelineModel) -> SavedTimeline:
    """Returns the state of the timeline as it is saved."""
    memory = model.arrangement.save_state()
    state, window, selection = memory.state, model.window, model.selection
    apart = state["_apart"]
    track_ids, together = state["_filtered_tracks"], state["_together"]
    assert isinstance(apart, dict)
    assert isinstance(together, set)
    assert track_ids is None or isinstance(track_ids, set)
    return SavedTimeline(
        step_ns=window.step_ns, first_ns=window.first_ns, span_ns=window.span_ns, cursor_ns=model.cursor_ns,
        columns=model.columns, rows=model.rows, lane=memory.key, top=memory.top,
        order=model.arrangement.order.id,
        # Sets have no order of their own; an unchanged session must give the same text.
        opened=_sort_keys(state["_open"]), unfolded=_sort_keys(state["_unfolded"]),
        apart=tuple((track_id, tuple(ranks)) for track_id, ranks in apart.items() if ranks),
        pinned=_list_keys(state["_pinned"]), hidden=_list_keys(state["_hidden"]),
        only=str(state["only"]), kept=None if track_ids is None else tuple(sorted(track_ids)),
        filter=model.filter.query.text, anchor_ns=selection.anchor_ns, fixed=selection.fixed_range,
        marks=tuple(SavedMark(mark.letter, mark.time_ns, mark.lane, mark.title) for mark in model.marks.all),
        together=tuple(sorted(together)),
    )  # fmt: skip


def restore(model: TimelineModel, state: SavedTimeline, keeps_position: bool = True) -> None:
    """Restores what was saved, where this run has such lanes; of a step of another length shares of it.

    keeps_position: whether window, cursor and range come back too, or only lanes and marks.
    """
    step = model.window.step_ns
    model.is_new = False

    def at(time_ns: int) -> int:
        return time_ns * step // state.step_ns

    run_lanes = _Lanes(model.source)
    _arrange(model, state, run_lanes)
    model.marks.all = [
        Mark(mark.letter, at(mark.time_ns), LaneKey(*mark.lane), mark.title)
        for mark in state.marks
        if LaneKey(*mark.lane) in run_lanes
    ]
    query = parse_query(state.filter)
    if state.filter and not query.problem and not describe_missing(model.source, query):
        model.filter.set(query)
    if not keeps_position:
        return
    window = Window.whole(step)
    model.window = window.moved_to(at(state.first_ns), at(state.span_ns), min(state.columns, state.span_ns))
    model.cursor_ns = max(model.window.first_ns, min(at(state.cursor_ns), model.window.last_ns - 1))
    model.selection.clear()
    if state.anchor_ns is not None:
        model.selection.start(at(state.anchor_ns))
    elif state.fixed is not None:
        model.selection.fix(at(state.fixed[0]), at(state.fixed[1]))


def _arrange(model: TimelineModel, state: SavedTimeline, run_lanes: _Lanes) -> None:
    """Arranges the list of lanes as it was, without those that this run lacks."""
    arrangement, source = model.arrangement, model.source
    model.resize(state.columns, state.rows)
    arrangement.sort_by(state.order)
    before, rows = arrangement.save_state(), arrangement.rows
    track_ids = set(source.track_ids)
    apart = {
        track_id: dict.fromkeys(rank for rank in ranks if source.of.lane_track_id(rank) == track_id)
        for track_id, ranks in state.apart
        if track_id in track_ids
    }
    filtered_tracks = None if state.kept is None else track_ids.intersection(state.kept)
    arrangement.restore_state(
        SavedArrangement(
            {
                "_open": set(run_lanes.of(state.opened)),
                "_unfolded": set(run_lanes.of(state.unfolded)),
                "_apart": {track_id: ranks for track_id, ranks in apart.items() if ranks},
                "_together": track_ids.intersection(state.together),
                "_pinned": dict.fromkeys(run_lanes.of(state.pinned)),
                "_hidden": dict.fromkeys(run_lanes.of(state.hidden)),
                "only": state.only if filtered_tracks else "",
                "_filtered_tracks": filtered_tracks or None,
            },
            LaneKey(*state.lane),
            state.top,
        )
    )
    if arrangement.rows is rows:
        # Otherwise every lane would be hidden.
        arrangement.restore_state(before)


class _Lanes:
    """The lanes that a run has."""

    def __init__(self, source: LaneSource) -> None:
        self._source = source
        self._track_ids = set(source.track_ids)
        self._paths = {group.path for group in all_groups(group_tracks(source))}

    def __contains__(self, key: LaneKey) -> bool:
        if key.path:
            return key.path in self._paths
        if key.rank >= 0:
            return self._source.of.lane_track_id(key.rank) is not None
        return key.track_id in self._track_ids and (
            key.rank != OTHERS or self._source.count_ranks(key.track_id) > 1
        )

    def of(self, keys: Iterable[Key]) -> list[LaneKey]:
        """Returns the lanes of these that the run has."""
        return [key for key in (LaneKey(*parts) for parts in keys) if key in self]


def _sort_keys(keys: object) -> tuple[Key, ...]:
    assert isinstance(keys, set)
    return tuple(sorted(keys, key=lambda key: (key[0], key[1], key[2], key[3] or "")))


def _list_keys(keys: object) -> tuple[Key, ...]:
    assert isinstance(keys, dict)
    return tuple(keys)

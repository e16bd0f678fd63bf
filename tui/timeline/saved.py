"""The timeline's part of a session file: plain values, checked; a model as them, and back."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from simcore.records import NamedTuple
from tui.state import checking
from tui.state.checking import MOST_RANKS, items, optional, table, text, whole, wrong
from tui.timeline.arrangement import KeptArrangement
from tui.timeline.filtering import missing
from tui.timeline.groups import all_groups, grouped
from tui.timeline.lanes import OTHERS, LaneKey, LaneSource
from tui.timeline.model import TimelineModel
from tui.timeline.query import parse_query
from tui.timeline.window import Mark, Window

# (path, number, rank, stream) of a LaneKey.
Key = tuple[tuple[str, ...], int, int, "str | None"]
# What the lane area may be, in columns and rows.
_MOST_CELLS = 10_000


class SavedMark(NamedTuple):
    """As `tui.timeline.window.Mark`."""

    letter: str
    time_ns: int
    lane: Key
    title: str


class SavedTimeline(NamedTuple):
    """Where one was: times are of a step of step_ns. columns, rows: of the lane area then.

    lane: with the cursor; top: how far the list was scrolled. order: id of what lanes were sorted by.
    opened, unfolded, pinned, hidden: lanes. apart: (group of ranks, its ranks with lanes of their own).
    together: the first of those whose alike ranks are one lane.
    only, kept: the filter of lanes in words, and the groups that it left, None without one. filter: of
    spans, as typed. anchor_ns, fixed: the range.
    """

    step_ns: int
    first_ns: int
    span_ns: int
    cursor_ns: int
    columns: int
    rows: int
    lane: Key
    top: int
    order: str = ""
    opened: tuple[Key, ...] = ()
    unfolded: tuple[Key, ...] = ()
    apart: tuple[tuple[int, tuple[int, ...]], ...] = ()
    pinned: tuple[Key, ...] = ()
    hidden: tuple[Key, ...] = ()
    only: str = ""
    kept: tuple[int, ...] | None = None
    filter: str = ""
    anchor_ns: int | None = None
    fixed: tuple[int, ...] | None = None
    marks: tuple[SavedMark, ...] = ()
    together: tuple[int, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """As JSON takes it."""
        return self._asdict()

    @classmethod
    def read(cls, value: object, where: str) -> SavedTimeline:
        """Checked, each value in itself; whether a run has these lanes is seen when it is restored."""
        entries = table(value, where)

        def get(name: str) -> tuple[object, str]:
            return entries.get(name), f"{where}.{name}"

        step = whole(*get("step_ns"), 1)
        span = whole(*get("span_ns"), 1, step)
        return cls(
            step_ns=step,
            first_ns=whole(*get("first_ns"), 0, step - span),
            span_ns=span,
            cursor_ns=whole(*get("cursor_ns"), 0, step),
            columns=whole(*get("columns"), 1, _MOST_CELLS),
            rows=whole(*get("rows"), 1, _MOST_CELLS),
            lane=_key(*get("lane")),
            top=whole(*get("top"), 0, MOST_RANKS),
            order=text(*get("order"), 40),
            opened=items(*get("opened"), _key),
            unfolded=items(*get("unfolded"), _key),
            apart=items(*get("apart"), _apart),
            pinned=items(*get("pinned"), _key),
            hidden=items(*get("hidden"), _key),
            only=text(*get("only")),
            kept=optional(*get("kept"), lambda number, where: items(number, where, _number)),
            filter=text(*get("filter")),
            anchor_ns=optional(*get("anchor_ns"), lambda number, where: whole(number, where, 0, step)),
            fixed=optional(*get("fixed"), lambda stretch, where: _stretch(stretch, where, step)),
            marks=items(*get("marks"), lambda mark, where: _mark(mark, where, step), 26),
            # What was saved before there were any has none.
            together=items(entries.get("together", []), f"{where}.together", _number),
        )


def _number(value: object, where: str) -> int:
    return whole(value, where, -2, MOST_RANKS)


def _word(value: object, where: str) -> str:
    return text(value, where)


def _list(value: object, where: str, length: int) -> list[object]:
    if not isinstance(value, list) or len(value) != length:
        raise wrong(value, where, f"a list of {length}")
    return value


def _key(value: object, where: str) -> Key:
    path, number, rank, stream = _list(value, where, 4)
    return (
        items(path, where, _word, 20), _number(number, where), _number(rank, where),
        optional(stream, where, _word),
    )  # fmt: skip


def _apart(value: object, where: str) -> tuple[int, tuple[int, ...]]:
    number, ranks = _list(value, where, 2)
    return _number(number, where), items(ranks, where, _number)


def _stretch(value: object, where: str, step: int) -> tuple[int, ...]:
    first, last = items(_list(value, where, 2), where, lambda number, where: whole(number, where, 0, step))
    if first > last:
        raise wrong(value, where, "a range that ends after it begins")
    return first, last


def _mark(value: object, where: str, step: int) -> SavedMark:
    letter, time, lane, title = _list(value, where, 4)
    if not isinstance(letter, str) or len(letter) != 1 or not "a" <= letter <= "z":
        raise wrong(letter, where, "a letter from a to z")
    return SavedMark(letter, whole(time, where, 0, step), _key(lane, where), checking.text(title, where))


def saved(model: TimelineModel) -> SavedTimeline:
    """Where one is in the timeline."""
    memory = model.arrangement.memory()
    state, window, selection = memory.state, model.window, model.selection
    apart = state["_apart"]
    kept, together = state["_kept"], state["_together"]
    assert isinstance(apart, dict)
    assert isinstance(together, set)
    assert kept is None or isinstance(kept, set)
    return SavedTimeline(
        step_ns=window.step_ns, first_ns=window.first_ns, span_ns=window.span_ns, cursor_ns=model.cursor_ns,
        columns=model.columns, rows=model.rows, lane=memory.key, top=memory.top,
        order=model.arrangement.order.id,
        # Sets have no order of their own; a session that has not changed is to be the same text.
        opened=_sorted(state["_open"]), unfolded=_sorted(state["_unfolded"]),
        apart=tuple((number, tuple(ranks)) for number, ranks in apart.items() if ranks),
        pinned=_listed(state["_pinned"]), hidden=_listed(state["_hidden"]),
        only=str(state["only"]), kept=None if kept is None else tuple(sorted(kept)),
        filter=model.filter.query.text, anchor_ns=selection.anchor_ns, fixed=selection.fixed,
        marks=tuple(SavedMark(mark.letter, mark.time_ns, mark.lane, mark.title) for mark in model.marks.all),
        together=tuple(sorted(together)),
    )  # fmt: skip


def restore(model: TimelineModel, state: SavedTimeline, place: bool = True) -> None:
    """All as it was kept, where this run has such lanes; of a step of another length shares of it.

    place: whether window, cursor and range come back too, or only lanes and marks.
    """
    step = model.window.step_ns
    model.is_new = False

    def at(time_ns: int) -> int:
        return time_ns * step // state.step_ns

    has = _Lanes(model.source)
    _arrange(model, state, has)
    model.marks.all = [
        Mark(mark.letter, at(mark.time_ns), LaneKey(*mark.lane), mark.title)
        for mark in state.marks
        if LaneKey(*mark.lane) in has
    ]
    query = parse_query(state.filter)
    if state.filter and not query.problem and not missing(model.source, query):
        model.filter.set(query)
    if not place:
        return
    window = Window.whole(step)
    model.window = window.moved(at(state.first_ns), at(state.span_ns), min(state.columns, state.span_ns))
    model.cursor_ns = max(model.window.first_ns, min(at(state.cursor_ns), model.window.last_ns - 1))
    model.selection.clear()
    if state.anchor_ns is not None:
        model.selection.start(at(state.anchor_ns))
    elif state.fixed is not None:
        model.selection.fix(at(state.fixed[0]), at(state.fixed[1]))


def _arrange(model: TimelineModel, state: SavedTimeline, has: _Lanes) -> None:
    """The list of lanes as it was, without those that this run has not."""
    arrangement, source = model.arrangement, model.source
    model.resize(state.columns, state.rows)
    arrangement.sort_by(state.order)
    before, rows = arrangement.memory(), arrangement.rows
    numbers = set(source.numbers)
    apart = {
        number: dict.fromkeys(rank for rank in ranks if source.of.number_of(rank) == number)
        for number, ranks in state.apart
        if number in numbers
    }
    kept = None if state.kept is None else numbers.intersection(state.kept)
    arrangement.recall(
        KeptArrangement(
            {
                "_open": set(has.of(state.opened)),
                "_unfolded": set(has.of(state.unfolded)),
                "_apart": {number: ranks for number, ranks in apart.items() if ranks},
                "_together": numbers.intersection(state.together),
                "_pinned": dict.fromkeys(has.of(state.pinned)),
                "_hidden": dict.fromkeys(has.of(state.hidden)),
                "only": state.only if kept else "",
                "_kept": kept or None,
            },
            LaneKey(*state.lane),
            state.top,
        )
    )
    if arrangement.rows is rows:
        # Every lane would be hidden.
        arrangement.recall(before)


class _Lanes:
    """Which lanes a run has."""

    def __init__(self, source: LaneSource) -> None:
        self._source = source
        self._numbers = set(source.numbers)
        self._paths = {group.path for group in all_groups(grouped(source))}

    def __contains__(self, key: LaneKey) -> bool:
        if key.path:
            return key.path in self._paths
        if key.rank >= 0:
            return self._source.of.number_of(key.rank) is not None
        return key.number in self._numbers and (key.rank != OTHERS or self._source.count(key.number) > 1)

    def of(self, keys: Iterable[Key]) -> list[LaneKey]:
        """Those that are there."""
        return [key for key in (LaneKey(*parts) for parts in keys) if key in self]


def _sorted(keys: object) -> tuple[Key, ...]:
    assert isinstance(keys, set)
    return tuple(sorted(keys, key=lambda key: (key[0], key[1], key[2], key[3] or "")))


def _listed(keys: object) -> tuple[Key, ...]:
    assert isinstance(keys, dict)
    return tuple(keys)

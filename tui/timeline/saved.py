"""The timeline's part of a session file: plain values, checked, without lanes or runs."""

from __future__ import annotations

from typing import Any, NamedTuple

from tui.state import checking
from tui.state.checking import MOST_RANKS, items, optional, table, text, whole, wrong

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
        found = table(value, where)

        def get(name: str) -> tuple[object, str]:
            return found.get(name), f"{where}.{name}"

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
            kept=optional(*get("kept"), lambda one, place: items(one, place, _number)),
            filter=text(*get("filter")),
            anchor_ns=optional(*get("anchor_ns"), lambda one, place: whole(one, place, 0, step)),
            fixed=optional(*get("fixed"), lambda one, place: _stretch(one, place, step)),
            marks=items(*get("marks"), lambda one, place: _mark(one, place, step), 26),
            # What was saved before there were any has none.
            together=items(found.get("together", []), f"{where}.together", _number),
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
    first, last = items(_list(value, where, 2), where, lambda one, place: whole(one, place, 0, step))
    if first > last:
        raise wrong(value, where, "a range that ends after it begins")
    return first, last


def _mark(value: object, where: str, step: int) -> SavedMark:
    letter, time, lane, title = _list(value, where, 4)
    if not isinstance(letter, str) or len(letter) != 1 or not "a" <= letter <= "z":
        raise wrong(letter, where, "a letter from a to z")
    return SavedMark(letter, whole(time, where, 0, step), _key(lane, where), checking.text(title, where))

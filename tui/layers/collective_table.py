"""The collectives of flight recorder dumps as a table: by group and number, who has them in which state."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

from simcore.trace.figures import CollectiveStates, HangTables
from simcore.units import plural
from tui.frame import cells, end_cut
from tui.layers.row_table import RowTable
from tui.layers.table import TableSelection
from tui.listing import ListColumn

_OPEN_ALONE, _ALL = "all of the rings", "open ones alone"
_SORTED_BY: Mapping[str, tuple[str, bool]] = {
    "group": ("group", False), "ranks": ("ranks", False), "no.": ("sequence", True),
    "collective": ("operation", False), "since, UTC": ("since_ns", False), "not come": ("not come", True),
}  # fmt: skip


class CollectiveTable(RowTable[CollectiveStates]):
    """The table of dumps: see `Table`."""

    cannot_split = "a collective has one line"

    def __init__(self, tables: HangTables, each: bool = False) -> None:
        self._tables, self.each = tables, each
        collectives = tables.find_collectives(each)
        if not collectives and not each:
            # Nothing is open: the rings are all that there is.
            self.each, collectives = True, tables.find_collectives(True)
        self.hint = _ALL if self.each else _OPEN_ALONE
        super().__init__(tables, collectives, _SORTED_BY)

    def apart(self, each: bool) -> CollectiveTable:
        return CollectiveTable(self._tables, each)

    def words_of(self, row: CollectiveStates) -> str:
        return " ".join(
            (row.group.group, row.group.short, str(row.sequence), row.operation, row.size, row.problem,
             row.call_site, *row.states)
        )  # fmt: skip

    def value_of(self, row: CollectiveStates, key: str) -> tuple[int, str]:
        if key == "not come":
            return row.late_count, ""
        if key in ("group", "ranks"):
            return 0, row.group.group if key == "group" else row.group.ranks
        return super().value_of(row, key)

    def cannot_sort(self, heading: str) -> str:
        return "" if heading in _SORTED_BY else "states do not sort"

    def columns_for(self, width: int) -> list[ListColumn]:
        names, wide = (28, 14) if width >= 120 else (18, 12), width >= 100
        columns = [
            ListColumn("group", names[0] if wide else 8, True, ends=True),
            ListColumn("ranks", 12, True),
            ListColumn("no.", 8, False),
            ListColumn("collective", 22 if wide else 16, True, ends=True),
            *([ListColumn("since, UTC", 15, True)] if wide else []),
        ]
        used = sum(column.size + 1 for column in columns) + 2
        states = ListColumn("ranks by state", max(width - used - (17 if wide else 9), 12), True)
        return [*columns, ListColumn("not come", 16 if wide else 8, True), states]

    def texts(self, line: int) -> dict[str, str]:
        one = self.of_line(line)
        others = [f"{state} {ranks}" for state, ranks in one.states.items() if state != "not come"]
        problem = [one.problem_text] if one.problem else []
        return {
            "group": f"{one.group.short} {one.group.group}", "ranks": one.group.ranks,
            "no.": str(one.sequence), "collective": one.operation, "since, UTC": one.since,
            "not come": one.states.get("not come", ""), "ranks by state": "; ".join([*problem, *others]),
        }  # fmt: skip

    def count_text(self) -> str:
        if self.each:
            return f"{self._count(self.rows)} of the rings"
        count = self._count([one for one in self.rows if one.is_open])
        problems = sum(bool(one.problem) for one in self.rows)
        differ = f", {problems} {'does' if problems == 1 else 'do'} not match" if problems else ""
        return f"{count} not ended{differ}"

    @staticmethod
    def _count(entries: Sequence[CollectiveStates]) -> str:
        messages = sum(one.is_message for one in entries)
        counts = {"collective": len(entries) - messages, "message": messages}
        words = ", ".join(plural(count, noun) for noun, count in counts.items() if count)
        return words or "0 collectives"

    def left(self) -> str:
        return f"{len(self.lines)} of {self._count(self.rows)}"

    def order(self) -> tuple[str, str]:
        return "those that somebody has not come to first", "not come first"

    def legend(self, columns: Sequence[ListColumn], short: bool) -> str:
        is_matched = not any(one.problem for one in self.rows)
        if short:
            return "kinds, sizes, types match" if is_matched else ""
        return f"{'kinds, sizes and types match; ' if is_matched else ''}numbers count in each group"

    def no_match(self, typed: str) -> str:
        return "no collective has these words" if typed.strip() else "the dumps have no collective"

    def mark(self, line: int) -> Hashable:
        one = self.of_line(line)
        return one.group.stream, one.sequence, one.operation

    def find_selection(self, line: int) -> TableSelection | None:
        one = self.of_line(line)
        return TableSelection(one.track_id, one.since_ns, one.end_ns, one.group.stream)

    def origin(self, line: int, width: int) -> tuple[str, list[tuple[str, str]]]:
        one = self.of_line(line)
        lines = [f"{state}: ranks {ranks}" for state, ranks in one.states.items()]
        lines.insert(0, f"{one.operation} {one.size}, since {one.since} UTC")
        if one.call_site:
            lines.append(f"called at {one.call_site}")
        title = f"no. {one.sequence} of {cells(one.group.group, 50)} (ranks {one.group.ranks})"
        return title, [(end_cut(text, width), "") for text in lines]

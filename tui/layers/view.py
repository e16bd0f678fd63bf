"""Screen 3, the rows of a file or the operations of a trace as a table: only the lines in view are made."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, cast

from textual.binding import BindingType

from tui.frame import Line, rule
from tui.frame_view import binding
from tui.layers.table import Table
from tui.session import Run, Session
from tui.table_view import TableView, table_bindings

if TYPE_CHECKING:
    from simcore.runs.executed import ExecutedRun
    from simcore.runs.measured import RecordedRun
    from simcore.runs.simulated import SimulatedRun


def table_of(run: Run) -> Table:
    """Returns the rows of the file that was simulated, or the operations of a trace: equal ones together."""
    # A trace has no prices of a simulation.
    if run.shape.simulated is not None:
        from tui.layers.workload_table import WorkloadTable

        return WorkloadTable(cast("SimulatedRun", run), each=False)
    if run.figures.hang is not None:
        from tui.layers.collective_table import CollectiveTable

        return CollectiveTable(run.figures.hang)
    if run.figures.snapshot is not None:
        from tui.layers.held_table import HeldTable

        return HeldTable(run.figures.snapshot)
    if run.recording is None:
        from tui.layers.trace_table import TraceTable

        return TraceTable(cast("ExecutedRun", run))
    from simcore.replay.operations import Operations
    from tui.layers.op_table import OpTable

    return OpTable(Operations(cast("RecordedRun", run.recording)), each=False)


class LayersView(TableView):
    """What rows of the file, or operations of a trace, take of the step, and the origin of a figure."""

    table: Table

    BINDINGS: ClassVar[list[BindingType]] = [
        *table_bindings("layers", "find a name, a collective, a group", "show only what has these words"),
        binding("space,I", "each_row", "each row or rank alone, or equal ones together", "layers.unfold"),
        binding("i", "group", "by kernel, launching operation or layer", "layers.group"),
        binding("enter", "go", "the timeline at its longest span", "layers.go"),
        binding("escape", "leave", "remove the filter; again: back to the timeline", "layers.leave"),
    ]

    def __init__(self, session: Session, *, ascii_only: bool, id: str | None = None) -> None:
        super().__init__(session, ascii_only=ascii_only, id=id)
        self.table = table_of(session.current)
        self.hints = self._hints()

    def _hints(self) -> tuple[tuple[str, str], ...]:
        """Returns only the keys that do something here and now."""
        hints = [("jk", "row"), ("hl", "column"), ("o", "sort")]
        hints.append(("Esc", "no filter") if self.table.typed else ("\\", "filter"))
        hints.append(("n N", "match") if self._sought else ("/", "find"))
        hints.append(("Enter", "timeline"))
        if self.table.can_regroup:
            hints.append(("i", "group by"))
        return (*hints, ("Space", self.table.hint)) if self.table.hint else tuple(hints)

    def show(self, results: Run) -> None:
        new = table_of(results)
        self._replace_table(new.apart(True) if self.table.each else new)
        self.action_move(0)

    def _replace_table(self, new: Table) -> None:
        """Shows the table of another run or of other units, in the order and with the filter of this one."""
        old, self.table = self.table, new
        new.filter(old.typed)
        heading = next((name for name, (key, _) in new.sorted_by.items() if key == old.key), None)
        if heading is not None and not new.cannot_sort(heading):
            new.sort(old.key, old.descending)

    def _look_for_path(self) -> None:
        """Computes in a worker what the critical path has of each row, when the screen is first drawn."""
        table = self.table
        if not self.is_mounted:
            return
        if self._app.layer_paths.request(table.subject, lambda _, cancelled: table.find_path(cancelled)):
            table.learn_path()

    def frame(self, width: int, height: int) -> list[Line]:
        table = self.table
        columns = table.columns_for(width)
        # Another screen may have computed it, for one that is too narrow for its columns too.
        is_path_known = table.learn_path()
        if not is_path_known and any(
            table.sorted_by.get(column.heading, ("",))[0] in table.of_path for column in columns
        ):
            self._look_for_path()
        origin = self._origin(width)
        # Rows that no line of the table needs.
        spare = height - 3 - len(origin) - len(table.lines)
        if table.lines and spare > 1:
            more = table.extra_lines(self.line, width - 4)
            origin += [[], *([(f"  {text}", role)] for text, role in more)][: spare if more else 0]
        lines = self._table_lines(width, max(height - 3 - len(origin), 1))
        return lines + origin

    def _origin(self, width: int) -> list[Line]:
        """Returns the origin of the figures under the cursor."""
        table = self.table
        if not table.lines:
            return [rule(table.no_match(table.typed), width, self.glyphs)]
        title, lines = table.origin(self.line, width - 4)
        head = rule(f"Where it comes from: {title}", width, self.glyphs)
        return [head, *([(f"  {text}", role)] for text, role in lines)]

    def action_each_row(self) -> None:
        if not self.table.hint:
            self._app.say(self.table.cannot_split)
            return
        here = self._current_mark()
        self._replace_table(self.table.apart(not self.table.each))
        self._go_back(here)
        self.redraw()

    def action_group(self) -> None:
        new = self.table.regrouped()
        if new is None:
            self._app.say("what launched these, and in which layer, is not in the file")
            return
        new.filter(self.table.typed)
        self.table, self.line = new, 0
        self.changed()

    async def action_go(self) -> None:
        """Opens the timeline at the longest span of the line."""
        if not self.table.lines:
            return
        selection = self.table.find_selection(self.line)
        if selection is None:
            self._app.say("these rows take no time in the step")
        else:
            await self._app.go_to(*selection)

    async def action_leave(self) -> None:
        """Clears the filter, else goes back to the timeline."""
        if self.table.typed:
            here = self._current_mark()
            self.table.filter("")
            self._go_back(here)
            self.changed()
        else:
            await self._app.action_open("timeline")

"""The layer table on the screen: only the lines in view are made."""

from __future__ import annotations

from typing import ClassVar

from textual.binding import BindingType

from simcore.analysis import Results
from simcore.collectives import NAMES
from simcore.simulation import explain_alone
from simcore.units import duration
from tui.frame import Line, cells, rule, wrapped
from tui.layers.table import TableLine, columns_for, is_modelled, row_texts, table_lines
from tui.screen_view import ScreenView, binding
from tui.session import Run, Session


class LayersView(ScreenView):
    """Rows of the file with their times, collectives and bandwidths."""

    hints = (
        ("jk", "row"),
        ("PageDown PageUp", "page"),
        ("Space", "each row / equal rows together"),
        ("2", "timeline"),
    )
    BINDINGS: ClassVar[list[BindingType]] = [
        binding("j,down", "move(1)", "next line", "layers.down"),
        binding("k,up", "move(-1)", "line above", "layers.up"),
        binding("pagedown", "move(20)", "page down", "layers.page-down"),
        binding("pageup", "move(-20)", "page up", "layers.page-up"),
        binding("g,home", "move(-10000000)", "first line", "layers.first"),
        binding("G,end", "move(10000000)", "last line", "layers.last"),
        binding("space,enter", "each_row", "each row of the file, or equal rows together", "layers.unfold"),
        binding("escape", "app.open('timeline')", "back to the timeline", "layers.leave"),
    ]

    session: Session

    def __init__(self, session: Session, *, ascii_only: bool, id: str | None = None) -> None:
        super().__init__(session, ascii_only=ascii_only, id=id)
        self.every_row = False
        self.line = 0
        self.top = 0
        self._table = table_lines(session.current, self.every_row)

    def show(self, results: Run) -> None:
        assert isinstance(results, Results)
        self._table = table_lines(results, self.every_row)
        self.action_move(0)

    def draw(self, width: int, height: int) -> list[Line]:
        columns = columns_for(width)
        origin = self._origin(width)
        rows = max(height - 3 - len(origin), 1)
        self.top = max(0, min(self.top, len(self._table) - rows))
        self.top = min(max(self.top, self.line - rows + 1), self.line)
        order = "in file order" if self.every_row else "equal ones together, the most expensive first"
        workload = self.session.workload
        lines: list[Line] = [
            [
                (
                    f" {len(workload)} rows, {order}; all, exposed: a rank's step",
                    "dim",
                )
            ],
            [(" ", ""), *((self._aligned(heading, size, left), "bright") for heading, size, left in columns)],
            rule("", width, self.glyphs),
        ]
        for index, line in enumerate(self._table[self.top : self.top + rows], self.top):
            lines.append(self._row(line, columns, index == self.line, width))
        lines += [[] for _ in range(3 + rows - len(lines))]
        return lines + origin

    def _row(self, line: TableLine, columns: list[tuple[str, int, bool]], focused: bool, width: int) -> Line:
        texts = row_texts(line, self.session.current.simulation.step_time_ns)
        words = "".join(self._aligned(texts[heading], size, left) for heading, size, left in columns)
        mark = ">" if focused else " "
        return [(f"{mark}{words}".ljust(width), "accent" if focused else "")]

    @staticmethod
    def _aligned(text: str, size: int, left: bool) -> str:
        return f"{text:<{size}} " if left else f"{text:>{size}} "

    def _origin(self, width: int) -> list[Line]:
        """Where the price under the cursor comes from."""
        if not self._table:
            return [rule("no rows", width, self.glyphs)]
        line = self._table[self.line]
        cell = line.cell
        rows = line.group.rows
        where = f"line {rows[0].line}" + (f" and {len(rows) - 1} more" if len(rows) > 1 else "")
        title = f"Where it comes from: {cells(line.group.name, 40)}, {line.phase}, {where}"
        lines: list[Line] = [rule(title, width, self.glyphs)]
        simulation = self.session.current.simulation
        if cell.collective and cell.group and cell.bytes:
            words = explain_alone(
                simulation, cell.collective, cell.group, simulation.priced_bytes(line.phase, cell.bytes)
            )
        else:
            words = "no collective in this phase"
            if cell.collective and cell.bytes:
                words = f"{NAMES[cell.collective]}: the policy lets nobody take part in it"
        lines += [[("  " + text, "")] for text in wrapped(words, width - 4)]
        scale = simulation.parameters.compute_scale
        factor = "" if scale == 1.0 else f", already times compute scale {scale:g}"
        compute = f"compute {duration(cell.compute_ns)} a run, from the file{factor}"
        if not is_modelled(cell):
            compute = f"compute not modelled in the file ({duration(cell.compute_ns)})"
        lines.append([("  " + compute, "dim")])
        return lines

    def action_move(self, by: int) -> None:
        self.line = max(0, min(self.line + by, len(self._table) - 1))
        self.redraw()

    def action_each_row(self) -> None:
        current = self._table[self.line].group.rows[0].index if self._table else 0
        self.every_row = not self.every_row
        self._table = table_lines(self.session.current, self.every_row)
        self.line = self._table.line_of(current)
        self.redraw()

"""Who waits for whom."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from simcore.kernel_names import short_name
from simcore.report.section import Field, PageAsked, field_lines, field_values, more_line
from simcore.run.figures import WaitFor
from simcore.units import duration, percent

if TYPE_CHECKING:
    from simcore.analysis.run import Run

_WAITS = 8
_NAME_CELLS, _RANK_CELLS = 34, 40


def _fields(run: Run) -> list[Field[WaitFor]]:
    return [
        Field(
            "ranks", lambda wait: short(wait.early.text(), _RANK_CELLS),
            "rank", lambda wait: wait.early.first, left=True,
        ),
        Field(
            "wait for", lambda wait: short(wait.late.text(), _RANK_CELLS),
            "for", lambda wait: wait.late.first, left=True,
        ),
        Field(
            "in", lambda wait: wait.said or short_name(wait.where, _NAME_CELLS),
            "in", lambda wait: wait.where, left=True,
        ),
        Field("for", lambda wait: duration(wait.ns), "ns"),
        Field("of step", lambda wait: f"{percent(wait.ns, run.step_time_ns)} %"),
    ]  # fmt: skip


def short(text: str, cells: int) -> str:
    """A text that ends with dots where it is longer."""
    return text if len(text) <= cells else text[: cells - 3] + "..."


def lines(run: Run, asked: PageAsked) -> list[str]:
    """A line a wait, the longest ones; nothing where nobody is known to wait."""
    waits = run.figures.waits_for
    if not waits:
        return []
    more = more_line(len(waits) - _WAITS, "shorter waits")
    title = "Who waits for whom, in all, the longest first"
    return [title, *field_lines(_fields(run), waits[:_WAITS]), *more]


def wait_values(run: Run) -> list[dict[str, Any]]:
    """Each wait as JSON."""
    return field_values(_fields(run), run.figures.waits_for)


def values(run: Run, asked: PageAsked) -> dict[str, Any]:
    """Of measured runs `measured` has them."""
    return {}

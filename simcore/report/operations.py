"""The operations of a measured run by name, and the order of those that have no times."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from simcore.diagnostics import printable
from simcore.kernel_names import short_name
from simcore.report.section import WIDTH, Field, PageAsked, field_lines, field_values, more_line
from simcore.units import percent

if TYPE_CHECKING:
    from simcore.analysis.run import Run
    from simcore.measured import MeasuredRun
    from simcore.measured.summary import OpFigures
    from simcore.replay.timed import Timed

_NAME_CELLS = 34
# Nobody reads more rows than these; the first are the ones that take most.
_MOST_ROWS = 60


def _fields(
    run: MeasuredRun, waited: Callable[[OpFigures], int] | None, every_ns: int = 0
) -> list[Field[OpFigures]]:
    """waited: how much of the longest is waiting for others; None where nobody is known to wait. every_ns: of
    all operations together.
    """
    # A kernel takes microseconds.
    unit_ns, decimals = (1e3, 1) if run.of_devices else (1e6, 2)

    def name(figures: OpFigures) -> str:
        if figures.parent is None:
            return short_name(figures.name, _NAME_CELLS)
        return printable(f"{figures.name} in {figures.parent}", _NAME_CELLS)

    def most_is_on(figures: OpFigures) -> str:
        batch = f", micro-batch {figures.most_batch}" if figures.most_batch >= 0 else ""
        return f"{run.unit} {figures.most_rank}{batch}" if figures.measured else "no duration"

    def of_time(ns: Callable[[OpFigures], float] | None) -> Callable[[OpFigures], str] | None:
        """A cell of ms; no column in an order without times."""
        return (
            None
            if ns is None or not run.timed
            else lambda figures: f"{ns(figures) / unit_ns:.{decimals}f}" if figures.measured else "-"
        )

    def share(figures: OpFigures) -> str:
        return percent(figures.total_ns, every_ns) if figures.measured and every_ns else "-"

    def of_most(figure: Callable[[OpFigures], int]) -> Callable[[OpFigures], int | None]:
        return lambda figures: figure(figures) if figures.measured and figure(figures) >= 0 else None

    return [
        Field("operation", name, "name", left=True),
        Field(key="parent"),
        Field("kind", lambda figures: figures.category, "kind", lambda figures: figures.category, left=True),
        Field("count", lambda figures: str(figures.count), "count"),
        Field(key="measured"),
        Field("total", of_time(lambda figures: figures.total_ns) if run.of_devices else None, "total_ns"),
        Field("% of all", share if run.of_devices else None),
        Field("mean", of_time(lambda figures: figures.total_ns / figures.measured)),
        Field("least", of_time(lambda figures: figures.least_ns), "least_ns"),
        Field("most", of_time(lambda figures: figures.most_ns), "most_ns"),
        Field("waits", of_time(waited)),
        Field(
            "most is on", most_is_on if run.timed else None,
            "most_rank", of_most(lambda figures: figures.most_rank), left=True,
        ),
        Field(key="most_microbatch", value=of_most(lambda figures: figures.most_batch)),
    ]  # fmt: skip


def lines(run: Run, asked: PageAsked) -> list[str]:
    """The operations and sub-operations, the ones that take most first; an order without times as it is."""
    recorded = run.figures.recorded
    if recorded is None:
        return []
    # Imported here and below: other runs have no such table.
    from simcore.measured.summary import op_figures, sub_figures
    from simcore.replay.operations import grouped

    shown = recorded.run
    waited = _waited(recorded) if run.timed and recorded.waiting else None
    unit = "" if not run.timed else ", us" if shown.of_devices else ", ms"
    unit += "; waits: part of the most" if waited is not None else ""

    def rows(figures: list[OpFigures]) -> list[str]:
        ordered = sorted(figures, key=lambda figure: -figure.total_ns)
        kept = ordered if asked.every_layer or asked.everything else ordered[:_MOST_ROWS]
        more = more_line(len(ordered) - len(kept), where="--all-layers has all")
        every_ns = sum(op.total_ns for op in ordered)
        return [*field_lines(_fields(shown, waited, every_ns), kept), *more]

    page = [] if run.timed else [*order_lines(shown, WIDTH), ""]
    page += [f"Operations of all ranks, by name{unit}", *rows(op_figures(shown))]
    if _has_layers(shown):
        of_layers = f"Layers of all ranks, each phase alone, us{'' if waited is None else unit[4:]}"
        page += ["", of_layers, *rows(op_figures(grouped(shown, "layer")))]
    subs = sub_figures(shown)
    if subs:
        page += ["", f"Sub-operations, inside the operations above{unit}", *rows(subs)]
    return page


def _has_layers(run: MeasuredRun) -> bool:
    from simcore.replay.operations import groupings

    return "layer" in groupings(run)


def _waited(recorded: Timed) -> Callable[[OpFigures], int]:
    from simcore.replay.waits import waits_by_item

    waits = {rank.number: waits_by_item(recorded, index) for index, rank in enumerate(recorded.run.ranks)}
    return lambda figures: sum(wait.ns for wait in waits[figures.most_rank].get(figures.most_item, ()))


def order_lines(run: MeasuredRun, width: int) -> list[str]:
    """The operations of each stage or rank in the order of the file, each with its micro-batch."""
    page = ["Order of the operations, with their micro-batches"]
    for rank in run.ranks:
        ops = rank.ops
        names = [
            printable(name, _NAME_CELLS) + (f" {batch}" if batch >= 0 else "")
            for name, batch in zip(ops.name[:_MOST_ROWS], ops.batch, strict=False)
        ]
        left = len(ops) - len(names)
        text = ", ".join(names) + (f", and {left} more" if left > 0 else "")
        head = f"  {run.unit} {rank.number}  "
        page += textwrap.wrap(text, width, initial_indent=head, subsequent_indent=" " * len(head))
    return page


def operation_values(recorded: Timed) -> dict[str, Any]:
    """`operations`, with the least slack of each, `sub_operations`, and `layers` where a profiler's trace
    tells them, of the times of the files.
    """
    from simcore.measured.summary import op_figures, sub_figures
    from simcore.replay.operations import grouped

    run, slack = recorded.measured, recorded.least_slack_ns if recorded.timed else {}
    fields = _fields(run, None)
    slacks: Field[OpFigures] = Field(key="slack_ns", value=lambda figures: slack.get(figures.name))
    return {
        "operations": field_values([*fields, slacks], op_figures(run)),
        "sub_operations": field_values(fields, sub_figures(run)),
        **({"layers": field_values(fields, op_figures(grouped(run, "layer")))} if _has_layers(run) else {}),
    }


def values(run: Run, asked: PageAsked) -> dict[str, Any]:
    """`measured` has them."""
    return {}

"""What the summary has of a simulated run."""

from __future__ import annotations

from simcore.analysis.sentences import told
from tui.frame import Glyphs
from tui.summary import panels
from tui.summary.frame import Parts
from tui.summary.model import SummaryModel

_LEGEND = (
    ("fwd", "fwd", "forward"), ("bwd", "bwd", "backward"), ("opt", "opt", "optimizer"),
    ("exposed", "tp", "exposed comm."), ("wait", "wait", "wait"), ("bubble", "bubble", "bubble"),
    ("idle", "", "idle"),
)  # fmt: skip


def parts_of(model: SummaryModel, glyphs: Glyphs) -> Parts:
    """Stages, and a measure of every rank beside them."""
    return Parts(
        step_title="Step time",
        step=lambda _, rows: panels.step_lines(model, glyphs, rows),
        words=told(model.results.sentences),
        bars_title="Where each stage's time goes",
        bars=lambda width, rows, focused: panels.stage_lines(model, width, rows, glyphs, focused),
        legend=_LEGEND,
        table_title="Ranks",
        table_aside=f"{model.measure}, o other",
        table_heading=f"Ranks: {model.measure}, % of step",
        table=lambda width, rows, focused: panels.map_lines(model, width, rows, glyphs, focused),
    )

"""The page and the JSON of a run, whatever it came from."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from simcore.analysis.run import Run


def as_page(run: Run, ascii_only: bool = False, with_what_if: bool = False, every_layer: bool = False) -> str:
    """The page. with_what_if: also what would help. every_layer: all rows, or operations, in their table."""
    writer = _writer(run, "as_text:text_report", "measured_text:measured_text")
    page: str = writer(run, ascii_only, with_what_if, every_layer)
    return page


def as_json(run: Run, with_what_if: bool = False) -> dict[str, Any]:
    """All figures as plain values. with_what_if: also what would help."""
    values: dict[str, Any] = _writer(run, "as_json:json_report", "measured_json:measured_json")(
        run, with_what_if
    )
    return values


def _writer(run: Run, simulated: str, measured: str) -> Callable[..., Any]:
    """The function that writes a kind of run, loaded here: a report is of one kind, in one form."""
    module, _, name = (simulated if run.origin == "simulated" else measured).partition(":")
    found: Callable[..., Any] = getattr(import_module(f"simcore.report.{module}"), name)
    return found

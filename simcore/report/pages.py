"""The page and the JSON of a run, and of two beside each other, whatever they came from."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from simcore.analysis.beside import Beside
    from simcore.analysis.compare import Comparison
    from simcore.analysis.run import Run

# Writers (module:function) by the origin of a run; measured and replayed ones have those of traces.
_PAGES = {"simulated": "as_text:text_report", "executed": "trace_text:trace_text"}
_JSON = {"simulated": "as_json:json_report", "executed": "trace_json:trace_json"}


def run_page(
    run: Run, ascii_only: bool = False, with_what_if: bool = False, every_layer: bool = False
) -> str:
    """The page. with_what_if: also what would help. every_layer: all rows, or operations, in their table."""
    name = _PAGES.get(run.origin, "measured_text:measured_text")
    page: str = _written(name, run, ascii_only, with_what_if, every_layer)
    return page


def run_json(run: Run, with_what_if: bool = False) -> dict[str, Any]:
    """All figures as plain values. with_what_if: also what would help."""
    name = _JSON.get(run.origin, "measured_json:measured_json")
    values: dict[str, Any] = _written(name, run, with_what_if)
    return values


def comparison_page(found: Comparison | Beside, everything: bool) -> str:
    """The page of a comparison. everything: as long as it is."""
    name = "compare_text:compare_text" if found.op_by_op else "beside_text:beside_text"
    page: str = _written(name, found, everything)
    return page


def comparison_json(found: Comparison | Beside) -> dict[str, Any]:
    """A comparison as plain values."""
    name = "compare_json:compare_json" if found.op_by_op else "beside_json:beside_json"
    values: dict[str, Any] = _written(name, found)
    return values


def _written(name: str, *arguments: object) -> Any:
    """What a writer (module:function) gives. Loaded here: a report is of one kind, in one form."""
    module, _, function = name.partition(":")
    return getattr(import_module(f"simcore.report.{module}"), function)(*arguments)

"""The page and the JSON of two runs beside each other, whichever comparison they have."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from simcore.analysis.beside import Beside
    from simcore.analysis.compare import Comparison


def as_page(found: Comparison | Beside, everything: bool) -> str:
    """The page of a comparison. everything: as long as it is."""
    return _writers(found)[0](found, everything)


def as_json(found: Comparison | Beside) -> dict[str, Any]:
    """A comparison as plain values."""
    return _writers(found)[1](found)


def _writers(
    found: Comparison | Beside,
) -> tuple[Callable[[Any, bool], str], Callable[[Any], dict[str, Any]]]:
    if found.op_by_op:
        from simcore.report.compare_json import compare_json
        from simcore.report.compare_text import compare_text

        return compare_text, compare_json
    from simcore.report.beside_json import beside_json
    from simcore.report.beside_text import beside_text

    return beside_text, beside_json

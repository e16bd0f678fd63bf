"""The sentences on executed traces whose step takes no time, and why."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from simcore.executing.execution_result import NO_PRICES
from simcore.words.rules import Sentence

if TYPE_CHECKING:
    from simcore.executing.execution_analysis import ExecutionAnalysis


class NoTime(Sentence, frozen=True, kw_only=True):
    """No node takes time."""

    rule = "no-time"

    @property
    def text(self) -> str:
        return "No node takes time: the step is 0 ns long."


class NoPrice(Sentence, frozen=True, kw_only=True):
    """Nodes that have no price, in the words of their note."""

    rule = "no-price"

    note: str

    @property
    def text(self) -> str:
        return f"{self.note[0].upper()}{self.note[1:]}."


def find_no_time(results: ExecutionAnalysis) -> Iterator[Sentence]:
    """Yields a sentence on a step of 0 ns, and those on its known causes."""
    yield NoTime()
    for note in results.executed.diagnostics:
        if note.code in NO_PRICES:
            yield NoPrice(note=note.message)

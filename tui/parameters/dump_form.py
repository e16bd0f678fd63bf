"""The form of flight recorder dumps and memory snapshots, which have no parameters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from simcore.diagnostics import UsageError
from simcore.parameters import RunInput
from simcore.records import NamedTuple
from tui.frame import Glyphs, Line
from tui.parameters.changes import ChangeTimes
from tui.parameters.fields import FormField, Values
from tui.parameters.source import FormSource
from tui.session import Run


class DumpContext(NamedTuple):
    """What the form needs: the setup alone."""

    setup: RunInput


class DumpForm(FormSource):
    """A form without a field."""

    def make_context(self, run: Run) -> DumpContext:
        return DumpContext(run.setup)

    def make_draft_context(self, setup: RunInput, context: DumpContext) -> DumpContext:
        return DumpContext(setup)

    def fields(self, context: DumpContext) -> list[FormField]:
        return []

    def balance_stages(self, run: Any, draft: RunInput) -> Values:
        raise UsageError("there are no stages")

    def effect(
        self, opened: Any, now: Any, state: list[Line], changes: Sequence[ChangeTimes], progress: str,
        size: tuple[int, int], glyphs: Glyphs,
    ) -> list[Line]:  # fmt: skip
        return state

    def compact(
        self, opened: Any, now: Any, state: list[Line], changes: Sequence[ChangeTimes], progress: str,
        size: tuple[int, int],
    ) -> list[Line]:  # fmt: skip
        return state

"""What the screens ask of the runs of a session, simulated or measured."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from simcore.run.findings import WhatIf


class RunSource(Protocol):
    """Finds another run and shows it, keeps the one that is shown, and knows what a change would bring."""

    @property
    def has_other(self) -> bool:
        """Whether there is another run to go back and forth to."""

    def resume(self, kept: Any, then: Callable[[], None]) -> None:
        """Go on with the run of an earlier session: its parameters, or replay; `then` when it is there."""

    def run_draft(self) -> None:
        """Find the run of the session's draft in a worker; the old picture stays until it is done."""

    def try_change(self, knob: WhatIf | None) -> None:
        """Run a change of the what-if table; None where none is chosen."""

    def what_if(self, results: Any) -> Sequence[WhatIf] | None:
        """The what-if table of a run, the best first; None while it is looked for."""

    def keep(self) -> None:
        """Keep the run on the screen, to come back to and to compare with."""

    def show_other(self) -> None:
        """Show the run that was shown before, and the next time this one again."""

    def open_history(self) -> None:
        """The panel of the runs that were kept."""

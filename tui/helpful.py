"""What is looked for in the background as soon as a run is shown: what would help, and each span's slack."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from tui.background import IsCancelled, Progress

if TYPE_CHECKING:
    from simcore.analysis import Results
    from simcore.analysis.what_if import WhatIf


def changes_and_slack(results: Results) -> Callable[[Progress, IsCancelled], list[WhatIf]]:
    """Finds the what-if table of a run; the slack of its spans is then known, too."""

    def find(progress: Progress, is_cancelled: IsCancelled) -> list[WhatIf]:
        found = results.what_if(progress, is_cancelled)
        _ = results.slacks
        return found

    return find

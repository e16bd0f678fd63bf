"""Starting processes where a screen has taken what is printed."""

from __future__ import annotations

import sys
from contextlib import redirect_stderr


def start_tracker() -> None:
    """Starts multiprocessing's resource tracker, which is given the descriptor of `sys.stderr`: that of a
    screen has none, and no process could be started.
    """
    # Imported here: few runs start processes.
    from multiprocessing import resource_tracker

    with redirect_stderr(sys.__stderr__):
        resource_tracker.ensure_running()

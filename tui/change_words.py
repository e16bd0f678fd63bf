"""A change of the what-if table in words, and what it does to the step time."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from simcore.analysis.what_if import WhatIf
    from simcore.measured.replay.what_if import Knob


def change_words(knob: WhatIf | Knob) -> str:
    """A schedule is known by its name: the words of the flags would leave no room for the figures."""
    return knob.knob.removeprefix("--schedule ").replace(" --", ", ")


def change_share(was: int, now: int) -> tuple[str, str]:
    """A change of the step time in per cent of it, in 9 cells, and its role."""
    if was == now or not was:
        return f"{'=':>9}", "dim"
    share = 100 * (now - was) / was
    return f"{share:+8.1f}%", "worse" if now > was else "better"

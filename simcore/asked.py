"""What a user asks of measured runs beside their path: which of them, and how much of it."""

from __future__ import annotations

from simcore.records import Struct


class Asked(Struct, frozen=True):
    """Which part of what was recorded is opened.

    run: one of a directory's runs, by its stamp; None for the newest complete one. The rest is of profiler
    traces alone. step: its number or `all`; None for the last that every rank has whole. ranks: those to
    open, `0-7,12`; None for all. comm_names: a regular expression of further kernels that communicate. cache:
    whether what was read may be kept. host: whether what the host did beside a device is read, too: the
    timeline shows it, no figure needs it.
    """

    run: str | None = None
    step: str | None = None
    ranks: str | None = None
    comm_names: str | None = None
    cache: bool = True
    host: bool = True

    @property
    def of_profiles(self) -> str:
        """The first option given that profiler traces alone have; "" for none."""
        given = {"--step": self.step, "--ranks": self.ranks, "--comm-names": self.comm_names}
        return next((option for option, value in given.items() if value is not None), "")

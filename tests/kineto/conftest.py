"""For all tests of profiles: their files are read in this process."""

from __future__ import annotations

import pytest

from simcore.kineto import loading


@pytest.fixture(autouse=True)
def one_core(monkeypatch: pytest.MonkeyPatch) -> None:
    """Starting a process takes longer than reading a file of a test: a set of eight took 0.5 s for 0.2 s.

    test_sets.py reads files side by side, too.
    """
    monkeypatch.setattr(loading, "_cores", lambda: 1)

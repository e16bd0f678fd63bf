"""What a measured rank does in any stretch of the step: exact sums, by account or as `rank_times` counts."""

from __future__ import annotations

from functools import cache

from simcore.analysis.ranges import Ranges
from simcore.measured import MeasuredRun
from simcore.measured.lanes import rank_segments
from simcore.measured.vocabulary import CATEGORIES
from simcore.replay import MeasuredResults
from simcore.replay.accounts import ACCOUNTS


def account_ranges(results: MeasuredResults) -> Ranges:
    """Of a timed run, by account: what of an operation is waiting counts as that."""
    accounts = results.accounts
    return Ranges(
        lambda rank: (accounts[rank].edge, accounts[rank].account), [1] * len(accounts), len(ACCOUNTS)
    )


def category_ranges(run: MeasuredRun) -> Ranges:
    """By index into CATEGORIES."""
    segments = cache(lambda rank: rank_segments(run, run.ranks[rank]))
    return Ranges(segments, [1] * len(run.ranks), len(CATEGORIES))

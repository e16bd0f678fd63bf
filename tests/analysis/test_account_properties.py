"""Accounts of generated runs: they cover the step, and they are what the rule says.

Planted in a copy of simcore, one at a time: wait booked instead of exposed behind an own collective,
and bubble booked up to the arrival of a transfer.
`test_accounts_are_those_booked_instant_by_instant` failed on both. Later, of stretches booked at once: taken
for a stretch with a gap in it, or with an op that takes no time; lengths of the first op for all; what was
issued behind an op counted before it. The first test failed on each.
"""

from itertools import pairwise

from hypothesis import given, settings

from simcore.runs.simulated import SimulatedRun
from simcore.simulation import simulate
from simcore.sources.simulated import ACCOUNTS
from simcore.trace.accounts import Accounts
from tests.analysis.naive_accounts import merged, naive_accounts, total_ns
from tests.strategies import Case, cases


def segments(accounts: Accounts) -> list[tuple[int, int, str]]:
    """(begin, end, account) of each segment as it was booked."""
    names = [ACCOUNTS[account] for account in accounts.account]
    return [(*edges, name) for edges, name in zip(pairwise(accounts.edge), names, strict=True)]


@settings(max_examples=80)
@given(cases())
def test_every_nanosecond_of_every_rank_is_in_exactly_one_account(case: Case) -> None:
    simulation = simulate(*case)
    step = simulation.step_time_ns
    for accounts in SimulatedRun(simulation).accounts:
        assert accounts.edge[0] == 0
        assert accounts.edge[-1] == step
        assert len(accounts.edge) == len(accounts.account) + 1 == len(accounts.op) + 1
        assert sum(accounts.total_ns) == step
        assert min(accounts.total_ns) >= 0
        if step:
            empty = [piece for piece in segments(accounts) if piece[0] >= piece[1]]
            assert not empty, f"empty segments {empty}"


@settings(max_examples=80)
@given(cases())
def test_accounts_are_those_booked_instant_by_instant(case: Case) -> None:
    simulation = simulate(*case)
    for number, accounts in enumerate(SimulatedRun(simulation).accounts):
        naive = naive_accounts(simulation.timeline, number)
        assert merged(segments(accounts)) == naive
        assert dict(zip(ACCOUNTS, accounts.total_ns, strict=True)) == total_ns(naive)


@settings(max_examples=40)
@given(cases())
def test_totals_are_the_sums_of_the_segments(case: Case) -> None:
    for accounts in SimulatedRun(simulate(*case)).accounts:
        totals = dict.fromkeys(ACCOUNTS, 0)
        for begin, over, account in segments(accounts):
            totals[account] += over - begin
        assert list(totals.values()) == accounts.total_ns
        assert sum(accounts.compute_ns().values()) == accounts.busy_ns
        assert sum(accounts.exposed_ns().values()) == accounts.all_exposed_ns
        rest = accounts.wait_ns + accounts.bubble_ns + accounts.idle_ns
        assert accounts.busy_ns + accounts.all_exposed_ns + rest == sum(accounts.total_ns)


@settings(max_examples=40)
@given(cases())
def test_communication_is_overlapped_or_seen_by_an_account_that_waits(case: Case) -> None:
    """Time in which a rank communicates lies beside its compute, or is exposed, or it waits."""
    simulation = simulate(*case)
    results = SimulatedRun(simulation)
    for accounts, (_, comm, overlapped) in zip(results.accounts, results.figures.streams, strict=True):
        assert 0 <= overlapped <= min(comm, accounts.busy_ns)
        assert comm <= simulation.step_time_ns
        assert accounts.all_exposed_ns <= comm - overlapped
        standing = accounts.wait_ns + accounts.bubble_ns + accounts.idle_ns
        assert comm - overlapped <= accounts.all_exposed_ns + standing


@settings(max_examples=40)
@given(cases())
def test_a_moment_lies_in_the_segment_that_at_names(case: Case) -> None:
    for accounts in SimulatedRun(simulate(*case)).accounts:
        for index, (begin, over, _) in enumerate(segments(accounts)):
            if begin < over:
                assert accounts.at(begin) == index
                assert accounts.at(over - 1) == index
        assert accounts.at(accounts.edge[-1]) == len(accounts.account) - 1

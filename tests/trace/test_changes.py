"""Changes that are tried: the same rules for every kind of run.

Seen to fail on these bugs, planted one at a time: a change run each time that it is asked for; a gain held
against the run alone; a gain of less than a ns; the longer step of a larger batch held against the run.
"""

from __future__ import annotations

import pytest

from simcore.diagnostics import Cancelled, UsageError
from simcore.trace.changes import Change, ChangeOutcome, Trials
from simcore.trace.knobs import Search

FEWER, MORE, MOST = (Change({"splits": count}) for count in (2, 4, 8))


def trials_of(
    base_ns: int,
    made: dict[str, ChangeOutcome | None],
    ran: list[str] | None = None,
    found: dict[str, ChangeOutcome | None] | None = None,
    stops: bool = False,
) -> Trials:
    def run(change: Change) -> ChangeOutcome | None:
        if ran is not None:
            ran.append(change.flags)
        if change.flags not in made:
            raise UsageError("no such run")
        return made[change.flags]

    return Trials(base_ns, run, Search(0, lambda done, total: None, lambda: stops), found)


def test_a_change_is_run_once_and_what_cannot_be_run_is_none() -> None:
    ran: list[str] = []
    trials = trials_of(1000, {"--splits 2": ChangeOutcome(900), "--splits 4": None}, ran)
    assert trials.keep_possible([FEWER, MORE, MOST, FEWER]) == [FEWER, FEWER]
    assert ran == ["--splits 2", "--splits 4", "--splits 8"]
    assert [trials.step_ns(change) for change in (FEWER, MORE, MOST)] == [900, 1000, 1000]
    assert not trials.is_worthwhile(MOST)


def test_a_search_goes_on_where_another_one_was_stopped() -> None:
    ran: list[str] = []
    found: dict[str, ChangeOutcome | None] = {"--splits 2": ChangeOutcome(900), "--splits 4": None}
    trials = trials_of(1000, {"--splits 8": ChangeOutcome(800)}, ran, found)
    assert trials.keep_possible([FEWER, MORE, MOST]) == [FEWER, MOST]
    assert ran == ["--splits 8"]
    assert found["--splits 8"] == ChangeOutcome(800)
    with pytest.raises(Cancelled):
        trials_of(1000, {}, stops=True).outcome_of(FEWER)


@pytest.mark.parametrize(
    ("base_ns", "ns", "gains"),
    [(10**6, 999_000, True), (10**6, 999_001, False), (10, 9, True), (10, 10, False), (0, 0, False)],
)
def test_what_gains_is_0_1_percent_shorter_and_a_nanosecond(base_ns: int, ns: int, gains: bool) -> None:
    trials = trials_of(base_ns, {"--splits 2": ChangeOutcome(ns)})
    trials.outcome_of(FEWER)
    assert trials.is_worthwhile(FEWER) == gains


def test_several_changes_are_to_gain_over_each_of_them() -> None:
    both = FEWER.combine(Change({"active_chunks": 4}))
    made: dict[str, ChangeOutcome | None] = {
        "--splits 2": ChangeOutcome(900_000),
        "--splits 4": ChangeOutcome(1_200_000),
    }
    for ns, gains in ((898_900, True), (899_100, False)):
        trials = trials_of(10**6, made | {both.flags: ChangeOutcome(ns)})
        assert trials.keep_possible([FEWER, MORE, both]) == [FEWER, MORE, both]
        assert trials.is_worthwhile(both)
        assert trials.is_worthwhile(both, FEWER, MORE) == gains
        assert trials.is_worthwhile(both, MORE), "what is worse than the run is nothing to gain over"


def test_of_more_work_as_much_as_that_of_the_run_is_held_against_it() -> None:
    trials = trials_of(1000, {"--splits 2": ChangeOutcome(1800, memory_bytes=7, same_work_ns=900)})
    trials.outcome_of(FEWER)
    assert (trials.step_ns(FEWER), trials.is_worthwhile(FEWER)) == (900, True)
    row = trials.make_row(FEWER)
    assert (row.name, row.flags, row.better10_ns, row.gain_ns) == ("--splits 2", "--splits 2", 1800, 900)
    assert row.memory_bytes == 7


def test_a_change_has_its_words_and_in_brackets_what_has_to_be_known() -> None:
    trials = trials_of(1000, {"--splits 4": ChangeOutcome(900)})
    change = Change({"splits": 4}, "more chunks", "uses memory", moves="work moved", meaning="assumed")
    trials.outcome_of(change)
    row = trials.make_row(change)
    assert (row.knob, row.meaning) == ("more chunks (uses memory) (work moved)", "assumed")

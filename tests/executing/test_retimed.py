"""A factor on a part of execution traces: each row of the what-if table is such a run."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simcore.chakra import find_set, open_set
from simcore.diagnostics import InputError, UsageError
from simcore.executing.execution_result import Execution
from simcore.executing.retimed import TraceParts, run_at_scales
from simcore.names import ASTRA_SIM_2
from simcore.parameters import Parameters
from simcore.records import replace
from simcore.runs.executed import ExecutedRun, run_execution
from tests.executing.test_folded import grid_set

# Each row of a table is a run of its own.
MOST_RANKS = 8
RULES = ("wltui", "links", "unfolded", ASTRA_SIM_2)
# A set that ends.
_SOME = 1


@contextmanager
def ran(seed: int, rules: str) -> Iterator[ExecutedRun | None]:
    """A random set that has run by some rules, its files in place; None where it waits for ever."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        asked = grid_set(seed, folder, MOST_RANKS)
        if rules == ASTRA_SIM_2:
            groups = str(folder / "groups.json")
            asked = replace(asked, slow_rank=(), dialect=ASTRA_SIM_2, comm_groups=groups)
        elif rules == "links":
            asked = replace(asked, network="links", comm_scale=1.0)
        elif rules == "unfolded":
            asked = replace(asked, no_fold=True)
        found = find_set(str(folder))
        assert found is not None
        try:
            yield run_execution(Execution(open_set(found), asked))
        except InputError:
            yield None


def assert_rows_are_runs(before: ExecutedRun, rows: int) -> None:
    for row in before.what_if()[:rows]:
        assert row.parameters is not None
        after = before.with_parameters(row.parameters)
        assert after.step_time_ns == row.better10_ns, row.name
        if len(row.parameters.time_scale) == len(before.parameters.time_scale):
            # A change, or a dimension of the network: the set runs again.
            assert row.flags or row.name.startswith("dimension ")
            continue
        part = row.parameters.time_scale[-1].rpartition("=")[0]
        nothing = row.parameters.with_value("time_scale", (*before.parameters.time_scale, f"{part}=0"))
        assert before.with_parameters(nothing).step_time_ns == row.free_ns, row.name
        assert sum(ns for _, _, ns in after.critical_path) == after.step_time_ns
        assert all(sum(one.total_ns) == after.step_time_ns for one in after.accounts)
        assert all(slack >= 0 for one in after.slacks for slack in one)


@given(st.integers(0, 1 << 32), st.sampled_from(RULES))
@settings(deadline=None)
def test_what_is_scaled_by_nothing_is_the_run_itself(seed: int, rules: str) -> None:
    with ran(seed, rules) as before:
        words = None if before is None else next(iter(TraceParts(before).by_words), None)
        if before is None or words is None:
            return
        after = run_at_scales(before, before.setup.with_changes(time_scale=(f"{words}=1",)))
        for column in ("start", "begin", "end", "ranks", "order"):
            assert getattr(after, column) == getattr(before.executed, column), column


@pytest.mark.slow
@given(st.integers(0, 1 << 32), st.sampled_from(RULES))
@settings(deadline=None)
def test_each_row_of_the_what_if_table_is_the_run_that_its_parameters_ask_for(seed: int, rules: str) -> None:
    with ran(seed, rules) as before:
        if before is None:
            return
        assert_rows_are_runs(before, 100)
        for row in before.what_if()[:1]:
            assert row.parameters is not None
            # Beside a factor that the run has already, too.
            assert_rows_are_runs(before.with_parameters(row.parameters), 2)


@pytest.mark.parametrize("rules", RULES)
def test_random_sets_run_by_all_rules(rules: str) -> None:
    timed = 0
    for seed in range(12):
        with ran(seed, rules) as one:
            timed += one is not None and one.step_time_ns > 0
    assert timed > 1


def test_a_part_that_is_not_there_is_refused_with_those_that_are() -> None:
    with ran(_SOME, "wltui") as before:
        assert before is not None
        for words, there in (("stream none", "stream "), ("nodes none", "nodes n#"), ("layer x", "all ")):
            asked = before.parameters.with_value("time_scale", (f"{words}=0.9",))
            with pytest.raises(UsageError, match=f"no {words} in this run, only {there}"):
                before.with_parameters(asked)


def test_the_flags_of_a_row_are_of_the_command_line() -> None:
    with ran(_SOME, "wltui") as before:
        assert before is not None
        flags = {word for row in before.what_if() for word in (row.parameters or Parameters()).as_flags()}
        assert {"--time-scale", "nodes n#=0.9", "all compute=0.9"} <= flags

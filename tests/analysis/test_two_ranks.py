"""Two ranks side by side, of any kind of run: accounts, names, and why a name takes longer.

Planted: the share of more calls rounded down; the last segment of a name for all of them; no calls of what
runs beside other work alone; a pair of ranks left out of the sums. Each was found.
"""

from __future__ import annotations

import json
from collections import Counter
from itertools import pairwise
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simcore.comparison import AccountChange, Comparison
from simcore.comparison.name_changes import NameChange, merge_compute
from simcore.diagnostics import UsageError
from simcore.measured import MeasuredRun
from simcore.parameters import Parameters
from simcore.render.report.comparison import comparison_json, comparison_page
from simcore.replay.parameters import Scales
from simcore.runs.measured import RecordedRun
from simcore.runs.simulated import SimulatedRun
from simcore.simulation import simulate
from simcore.sources.inputs import open_input
from simcore.trace.run import Run, common_ns
from simcore.trace.track import COMMON_ACCOUNTS
from tests.analysis.test_beside import made_simulation, made_trace
from tests.executing.test_changes import collective, compute, opened
from tests.kineto.corpus import GLOO, HTA, NSYS, needs_corpus
from tests.kineto.test_bad_input import event
from tests.measured.made_steps import Layout
from tests.says import said as says
from tests.strategies import Case, cases

# (name, stream, start, length) of a kernel, us.
Kernel = tuple[str, int, int, int]
_REDUCE = "ncclDevKernel_AllReduce_Sum_f32"


def job(ranks: list[list[Kernel]], folder: str | Path | None = None) -> RecordedRun:
    """A job of a profiler, a step of these kernels; what is of NCCL is of all ranks."""
    if folder is None:
        with TemporaryDirectory() as made:
            return job(ranks, made)
    for rank, kernels in enumerate(ranks):
        events = [
            event(name=name, tid=stream, ts=ts, dur=dur, args={"stream": stream, "device": 0})
            for name, stream, ts, dur in kernels
        ]
        top = {"distributedInfo": {"rank": rank, "world_size": len(ranks)}, "traceEvents": events}
        (Path(folder) / f"rank{rank}.json").write_text(json.dumps(top))
    run = open_input(str(folder))
    assert isinstance(run, MeasuredRun)
    return RecordedRun(run)


def random_job(seed: int) -> list[list[Kernel]]:
    """Two to four ranks with kernels on up to three streams, and some collectives that all of them have."""
    drawn = Random(seed)
    collectives = drawn.randrange(4)
    ranks = []
    for _ in range(drawn.randint(2, 4)):
        kernels = [("gemm", 7, 0, 5)]
        for number in range(1, drawn.randint(2, 12)):
            name, stream = drawn.choice(("gemm", "relu", "Memcpy HtoD", "add")), drawn.choice((7, 8, 9))
            kernels.append((name, stream, 40 * number + drawn.randrange(30), drawn.randint(1, 60)))
        kernels += [
            (_REDUCE, 20, 100 * number + drawn.randrange(60), 40 + drawn.randrange(50))
            for number in range(collectives)
        ]
        ranks.append(kernels)
    return ranks


def two(run: Run, a: int = 0, b: int = 1, other: Run | None = None) -> Comparison:
    return Comparison(run, other or run, (a, b))


def named(ranks: Comparison, account: str, name: str) -> NameChange:
    (found,) = [one for one in ranks.name_changes if (one.account, one.name) == (account, name)]
    return found


def assert_names_sum_to_accounts(accounts: list[AccountChange], names: list[NameChange]) -> None:
    """Of every account, of A, of B and of their difference; nothing is of another account."""
    for account in merge_compute(accounts):
        of_it = [one for one in names if one.account == account.name]
        assert sum(one.a.ns for one in of_it) == account.a_ns, account
        assert sum(one.b.ns for one in of_it) == account.b_ns, account
        assert sum(one.ns for one in of_it) == account.ns
    assert {one.account for one in names} <= {one.name for one in merge_compute(accounts)}
    assert len({(one.account, one.name) for one in names}) == len(names)
    for one in names:
        assert one.calls_ns + one.each_ns == one.ns
        assert one.extra_calls or not one.calls_ns


def assert_swapped(there: list[NameChange], back: list[NameChange]) -> None:
    """All differences have the other sign, in the same order."""
    assert [(one.account, one.name) for one in there] == [(one.account, one.name) for one in back]
    for one, other in zip(there, back, strict=True):
        assert (one.a, one.b) == (other.b, other.a)
        assert (one.ns, one.calls_ns, one.each_ns) == (-other.ns, -other.calls_ns, -other.each_ns)


def assert_holds(ranks: Comparison) -> None:
    """What holds of any two ranks."""
    accounts = ranks.all_stages.accounts
    assert_names_sum_to_accounts(accounts, ranks.name_changes)
    steps = ranks.a.step_time_ns, ranks.b.step_time_ns
    assert (sum(one.a_ns for one in accounts), sum(one.b_ns for one in accounts)) == steps
    assert ranks.ranks is not None
    back = Comparison(ranks.b, ranks.a, ranks.ranks[::-1])
    assert_swapped(ranks.name_changes, back.name_changes)
    assert [one.ns for one in ranks.all_stages.accounts] == [-one.ns for one in back.all_stages.accounts]
    assert 1 <= len(ranks.name_sentences) <= 2
    assert comparison_page(ranks).count("\n") <= 40
    values = comparison_json(ranks)
    assert sum(one["difference_ns"] for one in values["by_name"]) == steps[1] - steps[0]
    for row in values["by_name"]:
        assert all(isinstance(value, int) for key, value in row.items() if key.endswith(("_ns", "_calls")))


# -- by hand -----------------------------------------------------------------------------

# Rank 1 has three gemms that are 3 ms longer each, and three copies more of 1 ms.
SLOW = [
    [*(("gemm", 7, 10_000 * number, 2_000) for number in range(3)), ("Memcpy", 8, 40_000, 1_000),
     ("add", 7, 50_000, 100), (_REDUCE, 20, 60_000, 5_000)],
    [*(("gemm", 7, 10_000 * number, 5_000) for number in range(3)),
     *(("Memcpy", 8, 40_000 + 1_500 * number, 1_000) for number in range(4)), ("add", 7, 50_000, 100),
     (_REDUCE, 20, 63_000, 2_000)],
]  # fmt: skip


def test_longer_calls_are_told_from_more_calls() -> None:
    ranks = two(job(SLOW))
    gemm, copy = named(ranks, "compute", "gemm"), named(ranks, "compute", "Memcpy")
    assert (gemm.ns, gemm.calls_ns, gemm.each_ns) == (9_000_000, 0, 9_000_000)
    assert (copy.ns, copy.calls_ns, copy.each_ns) == (3_000_000, 3_000_000, 0)
    assert says([gemm.cause_words], "as many calls", "longer")
    assert copy.cause_words == "3 more calls"
    assert named(ranks, "compute", "add").cause_words == ""
    wait = named(ranks, "wait", _REDUCE)
    assert (wait.ns, wait.cause_words) == (-3_000_000, "as many calls")
    first, second = ranks.name_sentences
    whole = ("Rank 1", "12.000 ms more compute", "rank 0", "19.100 ms", "7.100 ms")
    assert says(
        [first], *whole, "9.000 ms more", f"gemm ({gemm.cause_words})", "3.000 ms more", "Memcpy (3 more"
    )
    assert says([second], "9.000 ms less idle")
    back = two(job(SLOW), 1, 0)
    assert says([named(back, "compute", "gemm").cause_words], "as many calls", "shorter")
    assert named(back, "compute", "Memcpy").cause_words == "3 fewer calls"


def test_both_have_their_figures_where_both_count() -> None:
    fewer = [("gemm", 7, 0, 100), ("gemm", 7, 200, 100)]
    more = [("gemm", 7, 200 * number, 150) for number in range(3)]
    gemm = named(two(job([fewer, more])), "compute", "gemm")
    assert (gemm.ns, gemm.calls_ns, gemm.each_ns) == (250_000, 125_000, 125_000)
    assert gemm.cause_words == "1 more call: +125.0 us, each longer: +125.0 us"


def test_what_one_of_them_runs_alone_says_so() -> None:
    ranks = two(job([[("gemm", 7, 0, 100)], [("relu", 7, 0, 100), ("relu", 7, 200, 50)]]))
    assert named(ranks, "compute", "gemm").cause_words == "1 call in A alone"
    assert named(ranks, "compute", "relu").cause_words == "2 calls in B alone"


def test_as_long_a_call_with_less_of_it_beside_other_work_is_not_called_longer() -> None:
    beside = [("gemm", 7, 0, 100), ("add", 8, 10, 80), ("end", 7, 300, 10)]
    alone = [("gemm", 7, 0, 100), ("add", 8, 110, 80), ("end", 7, 300, 10)]
    add = named(two(job([beside, alone])), "compute", "add")
    assert (add.a.ns, add.b.ns, add.a.total_ns, add.b.total_ns) == (0, 80_000, 80_000, 80_000)
    assert says([add.cause_words], "as many calls", "less of it", "beside")
    assert says([named(two(job([alone, beside])), "compute", "add").cause_words], "more of it", "beside")


def test_a_rank_that_never_waits_has_the_calls_of_what_the_other_waits_in() -> None:
    wait = named(two(job(SLOW)), "wait", _REDUCE)
    assert (wait.a.calls, wait.b.calls, wait.b.ns) == (1, 1, 0)


def test_of_ranks_that_do_alike_it_says_that_nothing_differs() -> None:
    ranks = two(job([SLOW[0], SLOW[0]]))
    assert not any(one.ns for one in (*ranks.name_changes, *ranks.all_stages.accounts))
    assert says(ranks.name_sentences, "No account", "rank 1", "rank 0")
    assert len(ranks.name_sentences) == 1
    assert "By name" not in comparison_page(ranks)


def test_names_that_are_little_of_it_are_only_counted() -> None:
    small = [("end", 7, 9_000, 10), *((f"k{number}", 7, 50 * number, 10) for number in range(30))]
    large = [("end", 7, 9_000, 10), *((f"k{number}", 7, 50 * number, 12) for number in range(30))]
    (first, _) = two(job([small, large])).name_sentences
    whole = ("Rank 1", "60.000 us more compute", "rank 0", "370.0 us", "310.0 us")
    assert says([first], *whole, "60.000 us more", "30 names")


def test_names_of_a_file_reach_no_page_raw() -> None:
    hostile = "\x1b[31mred\n[bold]"
    ranks = two(job([[("gemm", 7, 0, 100)], [("gemm", 7, 0, 100), (hostile, 7, 200, 50)]]))
    page = comparison_page(ranks)
    assert "\x1b" not in page
    assert "\\x1b[31mred\\x0a[bold]" in page
    assert named(ranks, "compute", hostile).ns == 50_000
    assert comparison_json(ranks)["by_name"][0]["name"] in (hostile, "")


# -- what holds of all kinds of run -------------------------------------------------------


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**9))
def test_names_of_a_profilers_ranks_sum_to_accounts_and_have_all_calls(seed: int) -> None:
    kernels = random_job(seed)
    run = job(kernels)
    for b in range(1, len(kernels)):
        ranks = two(run, 0, b)
        assert_holds(ranks)
        for side, rank in (("a", 0), ("b", b)):
            counted = {one.name: getattr(one, side).calls for one in ranks.name_changes if one.name}
            assert {name: calls for name, calls in counted.items() if calls} == Counter(
                name for name, *_ in kernels[rank]
            )
    replay = run.with_scales(Scales(compute=1.5))
    assert isinstance(replay, RecordedRun)
    assert_holds(two(replay))
    assert_holds(two(run, 0, 0, replay))


@settings(max_examples=40, deadline=None)
@given(cases())
def test_names_of_simulated_ranks_sum_to_accounts(case: Case) -> None:
    run = SimulatedRun(simulate(case.workload, case.parameters))
    firsts = [track.first_rank for track in run.tracks]
    for a, b in pairwise(firsts):
        assert_holds(two(run, a, b))


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10**6), st.integers(0, 10**6))
def test_names_of_rank_traces_sum_to_accounts_and_so_do_those_of_two_runs(one: int, other: int) -> None:
    layout = Layout(2, 1, 2, 2)
    a, b = made_trace(layout, one), made_trace(layout, other)
    assert_holds(two(a, 0, layout.world - 1))
    there, back = Comparison(a, b), Comparison(b, a)
    sums = [
        AccountChange(
            name, *(sum(common_ns(side, track)[number] for track in side.tracks) for side in (a, b))
        )
        for number, name in enumerate(COMMON_ACCOUNTS)
    ]
    assert_names_sum_to_accounts(sums, there.name_changes)
    assert_swapped(there.name_changes, back.name_changes)
    assert comparison_page(there).count("\n") <= 40
    rows = comparison_json(there)["by_name"]
    steps = layout.world * (b.step_time_ns - a.step_time_ns)
    assert sum(row["difference_ns"] for row in rows) == steps


def test_names_of_execution_traces_sum_to_accounts(tmp_path: Path) -> None:
    slow = [compute(1, 50), compute(2, 90), collective(3, 0)]
    short, shorter = [compute(1, 50), collective(2, 0)], [compute(1, 20), collective(2, 0)]
    run = opened(tmp_path, [short, slow, [*slow], shorter])
    for a, b in ((0, 1), (1, 3)):
        assert_holds(two(run, a, b))
    nodes = named(two(run, 0, 1), "compute", "fwd.#")
    assert (nodes.a.calls, nodes.b.calls, nodes.ns) == (1, 2, 90_000)


@needs_corpus
@pytest.mark.parametrize("path", [GLOO, HTA, NSYS], ids=lambda path: path.stem)
def test_names_of_recorded_ranks_sum_to_accounts(path: Path) -> None:
    run = open_input(str(path))
    assert isinstance(run, MeasuredRun)
    assert_holds(two(RecordedRun(run)))


# -- what is refused ----------------------------------------------------------------------


def test_ranks_that_cannot_be_compared_are_refused() -> None:
    run = made_simulation(Layout(2, 1, 2, 1))
    for ranks, message in (
        ((0, 4), "rank 4: found no such rank in made.txt, expected one of 0-3"),
        ((2, 2), "rank 2: found the same rank twice, expected two ranks of the run"),
        ((0, 1), "ranks 0 and 1 are equal: both are of ranks 0-1"),
    ):
        with pytest.raises(UsageError) as refused:
            two(run, *ranks)
        assert str(refused.value).startswith(message)
    other = run.with_parameters(Parameters(microbatches=1, schedule="gpipe"))
    assert_holds(two(run, 0, 0, other))


def test_two_runs_whose_names_are_not_alike_have_none() -> None:
    layout = Layout(2, 1, 2, 1)
    assert not Comparison(made_simulation(layout), made_trace(layout, 1)).name_changes
    assert "by_name" not in comparison_json(Comparison(made_simulation(layout), made_trace(layout, 1)))

"""Each change alone: the step time with it alone and with all others, found behind the picture."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from textual.pilot import Pilot

from simcore.diagnostics import Cancelled, InputError, UsageError
from simcore.parameters import Parameters
from simcore.simulation import simulate
from simcore.trace.contexts import StepWork
from simcore.trace.figures import KnownStep
from simcore.units import change_percent, duration
from tests.says import said
from tests.tui.conftest import MakeApp
from tests.tui.made_runs import run, seed, small, two_stages
from tests.tui.screen_reading import press, run_over, screen_rows, screen_text
from tests.tui.test_parameter_form import open_field, type_value
from tui.frame import text_of
from tui.parameters.changes import ChangeTimes, StepTimeCache, list_changes
from tui.parameters.effect import change_lines, compact_lines
from tui.parameters.fields import fields_for

DIMS = ("switch:2:4:50", "switch:4:2:300")
VALUES: dict[str, tuple[object, ...]] = {
    "schedule": ("gpipe", "zb-h1"),
    "microbatches": (1, 4),
    "compute_scale": (0.5, 2.0),
    "comm_scale": (0.0, 3.0),
    "splits": (2,),
    "algorithm": (("0=ring",), ("1=direct",), ("0=direct", "1=ring")),
    "dim": (("switch:2:8:50", DIMS[1]), (DIMS[0], "switch:4:4:300"), ("switch:2:4:5", "switch:4:9:300")),
    "slow_rank": (("1=1.5",),),
}
SOME = st.fixed_dictionaries({}, optional={name: st.sampled_from(values) for name, values in VALUES.items()})


def ns_of(change: ChangeTimes) -> int | None:
    """The step time with a change alone."""
    return None if change.alone is None else change.alone.step_time_ns


@settings(max_examples=60, deadline=None)
@given(SOME)
def test_one_change_alone_is_the_run_and_of_two_each_is_the_run_without_the_other(
    values: dict[str, object],
) -> None:
    opened = small().simulation
    try:
        of_now = run(small().setup.source, **{"dim": DIMS, **values})
    except (UsageError, InputError):
        assume(False)
        raise
    now = of_now.simulation
    changes = list_changes(fields_for(now), opened, now)
    times = StepTimeCache().find_times(changes, of_now, lambda done, total: None, lambda: False)
    if len(changes) == 1:
        assert [(ns_of(one), one.without_ns) for one in times] == [(now.step_time_ns, opened.step_time_ns)]
    if len(changes) == 2:
        assert ns_of(times[0]) == times[1].without_ns
        assert ns_of(times[1]) == times[0].without_ns
    # A change that is made over the opened run is one change.
    for change in changes:
        if change.alone is not None:
            alone = simulate(two_stages(), change.alone.parameters)
            assert [one.words for one in list_changes(fields_for(now), opened, alone)] == [change.words]


def test_a_change_that_is_not_possible_alone_says_so_instead_of_a_time() -> None:
    opened = seed().simulation
    of_now = seed(schedule="interleaved", virtual_stages=2)
    now = of_now.simulation
    found = StepTimeCache().find_times(
        list_changes(fields_for(now), opened, now), of_now, lambda done, total: None, lambda: False
    )
    assert [(one.words, one.alone is None) for one in found] == [
        ("schedule interleaved", True),
        ("virtual stages 2 chunks", False),
    ]


def test_known_step_times_are_not_simulated_again_and_others_can_be_stopped() -> None:
    of_now = run(small().setup.source, dim=DIMS, compute_scale=2.0, comm_scale=3.0)
    now = of_now.simulation
    changes = list_changes(fields_for(now), small().simulation, now)
    times = StepTimeCache()
    counted: list[tuple[int, int]] = []
    times.find_times(changes, of_now, lambda done, total: counted.append((done, total)), lambda: False)
    assert counted == [(0, 2), (1, 2)]
    times.find_times(changes, of_now, lambda done, total: counted.append((done, total)), lambda: True)
    assert counted == [(0, 2), (1, 2)]
    of_large = seed(compute_scale=2.0, comm_scale=3.0)
    large = of_large.simulation
    with pytest.raises(Cancelled):
        StepTimeCache().find_times(
            list_changes(fields_for(large), seed().simulation, large),
            of_large,
            lambda done, total: None,
            lambda: True,
        )


async def change_two(pilot: Pilot[None]) -> None:
    """Another schedule and twice the bandwidth between servers."""
    await open_field(pilot, "schedule")
    await type_value(pilot, "zb-h1")
    await open_field(pilot, "dim 1  bandwidth")
    await press(pilot, "greater_than_sign")
    await run_over(pilot)


@pytest.mark.parametrize("size", [(120, 36), (80, 24)])
async def test_two_changes_stand_beside_the_form_each_alone(make_app: MakeApp, size: tuple[int, int]) -> None:
    app = make_app()
    async with app.run_test(size=size) as pilot:
        await change_two(pilot)
        text = " ".join(screen_text(app).split())
        assert "each change alone" in text
        assert "schedule zb-h1 10.695 s -27.6 % 14.597 s" in text
        assert "dim 1 at 100 GB/s 14.597 s -1.2 % 10.695 s" in text
        await press(pilot, "u")
        await run_over(pilot)
        assert "each change" not in screen_text(app)


async def test_after_a_refused_value_the_changes_of_the_run_that_is_shown_are_found_again(
    make_app: MakeApp,
) -> None:
    app = make_app()
    async with app.run_test(size=(120, 36)) as pilot:
        await change_two(pilot)
        await open_field(pilot, "tp")
        await type_value(pilot, "3")
        assert app.session.error
        assert "14.597 s -1.2 % 10.695 s" in " ".join(screen_text(app).split())
        assert Parameters(tp=3).tp == app.session.draft.tp


def opened_run(step: int, work: StepWork | None = None) -> Any:
    return SimpleNamespace(step_time_ns=step, shape=KnownStep(step, work))


def test_a_change_of_how_much_work_there_is_is_judged_by_the_time_of_the_same_work() -> None:
    """16 micro-batches more were red by a step that has twice the work."""
    one, two, odd = StepWork((1,)), StepWork((2,)), StepWork((1, 2))
    for work, ns, words, role in (
        (one, 50, "-50.0 %", "better"), (one, 200, "+100.0 %", "worse"), (None, 200, "+100.0 %", "worse"),
        (two, 150, "-25.0 % same work", "better"), (two, 250, "+25.0 % same work", "worse"),
        (odd, 50, "-50.0 %, other work", "warn"), (one, 100, "no change", "dim"),
    ):  # fmt: skip
        changes = [ChangeTimes("microbatches 2", KnownStep(ns, work), 100)]
        line = change_lines(changes, "", opened_run(100, one), 80)[1]
        assert line[2] == (words, role)


TIMES = st.one_of(st.none(), st.integers(1, 10**16))
STEPS = st.builds(KnownStep, st.integers(1, 10**16))


@given(
    st.lists(
        st.builds(ChangeTimes, st.sampled_from(["tp 2", "schedule " + "a" * 60]), st.none() | STEPS, TIMES),
        min_size=1,
        max_size=5,
    ),
    st.integers(1, 10**12),
    st.integers(60, 130),
)
def test_figures_of_changes_stand_apart_and_whole(changes: list[ChangeTimes], step: int, width: int) -> None:
    lines = text_of(change_lines(changes, "", opened_run(step), width)).split("\n")
    assert all(len(line) <= width for line in lines)
    assert len({len(line) for line in lines}) == 1
    for line, one in zip(lines[1:], changes, strict=True):
        ns = ns_of(one)
        figures = [["not possible"] if ns is None else [
            duration(ns), "no change" if ns == step else change_percent(step, ns)
        ], ["not possible" if one.without_ns is None else duration(one.without_ns)]]  # fmt: skip
        words = " ".join(text for texts in figures for text in texts)
        assert " ".join(line.split()).endswith(f" {words}"), line


async def test_of_what_has_no_room_that_which_changes_most_is_shown_and_how_many_more(
    make_app: MakeApp,
) -> None:
    app = make_app()
    async with app.run_test(size=(80, 24)) as pilot:
        await press(pilot, "5", *"jjjl")
        await run_over(pilot)
        warning, *accounts = [row.rstrip() for row in screen_rows(app)[-6:-1]]
        said([warning], "!", "pp 16", "32")
        # More bubble is the cause: it stands last of six accounts.
        assert accounts == [
            " stage 0, +3 rows   opened       now       diff",
            "   compute         7.213 s   7.213 s          =",
            "   exposed dp     340.4 ms  290.9 ms -49.445 ms",
            "   bubble          6.987 s  14.435 s   +7.449 s",
        ]


async def test_each_change_is_listed_under_its_heading_and_the_accounts_under_theirs(
    make_app: MakeApp,
) -> None:
    app = make_app(small())
    async with app.run_test(size=(80, 24)) as pilot:
        await press(pilot, "5")
        twice = "greater_than_sign"
        for label, key in (("microbatches", "l"), ("compute scale", twice), ("comm scale", twice)):
            await open_field(pilot, label)
            await press(pilot, key)
            await run_over(pilot)
        await run_over(pilot)
        rows = [row.rstrip() for row in screen_rows(app)]
        place = next(place for place, row in enumerate(rows) if row.startswith(" each change "))
        assert [row.split("  ")[1] for row in rows[place + 1 : place + 4]] == [
            "microbatches 3", "compute scale 2 x", "comm scale 2 x",
        ]  # fmt: skip
        assert re.match(r" stage 0, \+\d rows? +opened +now +diff$", rows[place + 4])


@pytest.mark.parametrize("rows", range(12))
def test_the_effect_has_no_more_lines_than_there_is_room_for(rows: int) -> None:
    opened, now = seed(), seed(pp=32)
    changes = [
        ChangeTimes("one", None, 5),
        ChangeTimes("two", KnownStep(opened.step_time_ns + 6), 7),
        ChangeTimes("three", KnownStep(10**12), 7),
    ]
    lines = text_of(compact_lines(opened, now, [[("state", "")]], changes, "", (80, rows))).split("\n")
    assert len(lines) <= max(rows, 2)
    assert ("each change, +1 row" in "\n".join(lines)) == (rows == 5)
    if rows == 5:
        assert [line.split()[0] for line in lines[3:]] == ["one", "three"]

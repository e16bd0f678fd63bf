"""Properties of ranks together, on sets made from a program whose waits are known: no code is shared."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any, NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st

from simcore.replay.parameters import Scales
from tests.kineto.made_ranks import Kernel, called, gemm, in_group, members, opened, waits_us, write

_MOST = settings(max_examples=100, deadline=None)


class Made(NamedTuple):
    """Kernels by rank, and what each rank waits, us."""

    kernels: dict[int, list[Kernel]]
    waits: dict[int, float]


class _Program:
    """Ranks that compute, meet and send, one after the other; a rank does nothing beside a communication."""

    def __init__(self, ranks: tuple[int, ...]) -> None:
        self.now = dict.fromkeys(ranks, 10.0)
        self.kernels: dict[int, list[Kernel]] = {rank: [gemm(0, 10)] for rank in ranks}
        self.waits = dict.fromkeys(ranks, 0.0)

    def compute(self, rank: int, takes: int) -> None:
        self.kernels[rank].append(gemm(self.now[rank], takes))
        self.now[rank] += takes

    def meet(self, ranks: tuple[int, ...], takes: int, **how: Any) -> None:
        last = max(self.now[rank] for rank in ranks)
        for rank in ranks:
            self._call(rank, "allreduce", last, last + takes, len(ranks), how)

    def send(
        self,
        ends: tuple[int, int],
        takes: int,
        is_eager: bool,
        size: int,
        told: dict[str, dict[str, Any]],
        how: dict[str, Any],
    ) -> None:
        sender, receiver = ends
        sent, came = self.now[sender], self.now[receiver]
        begins = sent if is_eager else max(sent, came)
        received = max(sent, came)
        self._call(sender, "send", begins, begins + takes, size, how | told["send"])
        self._call(receiver, "recv", received, received + takes, size, how | told["recv"])

    def _call(self, rank: int, what: str, begins: float, over: float, size: int, how: dict[str, Any]) -> None:
        self.kernels[rank].append(called(what, self.now[rank], over, size, **how))
        self.waits[rank] += begins - self.now[rank]
        self.now[rank] = over

    def made(self) -> Made:
        return Made(self.kernels, self.waits)


@st.composite
def sets(draw: st.DrawFn, ties_all: bool = False) -> Made:
    """Ranks of a group that meet and send in any order, named in the world, in the group, or not at all."""
    ranks = draw(st.sampled_from([(0, 1), (4, 5), (0, 4), (0, 1, 2), (1, 2, 3), (0, 2, 3, 5), (0, 1, 2, 3)]))
    program = _Program(ranks)
    is_local = draw(st.booleans())
    is_pairwise = draw(st.booleans())
    for _ in range(draw(st.integers(1, 12))):
        for rank in ranks:
            if draw(st.booleans()):
                program.compute(rank, draw(st.integers(1, 40)) * 100)
        takes = draw(st.integers(2, 10)) * 10
        if draw(st.integers(0, 3)) == 0:
            program.meet(ranks, takes, **in_group("all", ranks))
            continue
        sender, receiver = draw(st.permutations(ranks))[:2]
        group = tuple(sorted((sender, receiver))) if is_pairwise else ranks
        numbers = {rank: group.index(rank) if is_local else rank for rank in group}
        ends: dict[str, dict[str, Any]] = {
            "send": {"Dst_Rank": numbers[receiver], "Src_Rank": numbers[sender]},
            "recv": {"Src_Rank": numbers[sender]},
        }
        if len(group) == 2 and draw(st.booleans()):
            ends = {"send": {}, "recv": {}}
        how = in_group("pp" if not is_pairwise else f"pp{group}", group) | {"stream": 30}
        is_eager = draw(st.booleans())
        elements = {"elements": 64 if is_eager else 1 << 20}
        program.send((sender, receiver), takes, is_eager, len(group), ends, how | elements)
    if ties_all:
        program.meet(ranks, 30, **in_group("all", ranks))
        program.meet(ranks, 30, **in_group("all", ranks))
    return program.made()


@_MOST
@given(sets())
def test_each_rank_waits_what_the_program_made_it_wait(made: Made) -> None:
    with tempfile.TemporaryDirectory() as folder:
        results = opened(write(Path(folder), made.kernels, world=6))
    assert waits_us(results) == made.waits
    assert [sum(account.total_ns) for account in results.accounts] == [results.step_time_ns] * len(
        made.kernels
    )
    assert all(ns >= 0 for account in results.accounts for ns in account.total_ns)
    assert not results.rendezvous.matches.unmatched


@_MOST
@given(sets(), st.data())
def test_an_unchanged_replay_is_the_measured_step_also_with_ranks_missing(
    made: Made, data: st.DataObject
) -> None:
    ranks = sorted(made.kernels)
    kept = data.draw(st.lists(st.sampled_from(ranks), min_size=1, unique=True))
    for rank in ranks:
        # Compute beside communication too, which may hide a part of what was waited.
        for start, takes in data.draw(
            st.lists(st.tuples(st.integers(0, 9000), st.integers(1, 900)), max_size=4)
        ):
            made.kernels[rank].append(gemm(start, takes, "beside"))
    with tempfile.TemporaryDirectory() as folder:
        results = opened(write(Path(folder), {rank: made.kernels[rank] for rank in kept}, world=6))
    assert results.with_scales(Scales()).step_time_ns == results.step_time_ns
    assert results.with_scales(Scales(compute=0.5)).step_time_ns <= results.step_time_ns
    # Who waits for a rank that is there waits no longer than it did.
    assert all(waited <= made.waits[rank] for rank, waited in waits_us(results).items())


@_MOST
@given(sets(ties_all=True), st.data())
def test_a_shift_of_each_clock_changes_no_account_where_collectives_tie_all(
    made: Made, data: st.DataObject
) -> None:
    late = {rank: float(data.draw(st.integers(-3_600_000_000, 3_600_000_000))) for rank in made.kernels}
    found = []
    for shifts in ({}, late):
        with tempfile.TemporaryDirectory() as folder:
            found.append(opened(write(Path(folder), made.kernels, world=6, late_us=shifts)))
    before, after = ([account.total_ns for account in results.accounts] for results in found)
    assert before == after
    assert found[0].step_time_ns == found[1].step_time_ns


@_MOST
@given(sets(), st.data())
def test_clocks_that_sends_alone_tie_move_only_where_a_receive_ends_before_its_send(
    made: Made, data: st.DataObject
) -> None:
    kernels = {
        rank: [one for one in some if one.said.get("Collective name") != "allreduce"]
        for rank, some in made.kernels.items()
    }
    late = {rank: float(data.draw(st.integers(-2_000, 2_000))) for rank in kernels}
    with tempfile.TemporaryDirectory() as folder:
        exact = opened(write(Path(folder), kernels, world=6))
    with tempfile.TemporaryDirectory() as folder:
        moved = opened(write(Path(folder), kernels, world=6, late_us=late))
    assert exact.measured.recorded is not None
    assert set(exact.measured.recorded.shifts) == {0}
    if moved.measured.concurrent:
        assert not moved.rendezvous.matches.unmatched
    assert moved.with_scales(Scales()).step_time_ns == moved.step_time_ns


@st.composite
def unnamed(draw: st.DrawFn) -> tuple[Made, int, list[tuple[int, ...]], bool]:
    """Four or six ranks in groups of two or three that tell their size alone, and the groups. Last: whether
    all groups end at once, so that ends do not tell them apart.
    """
    count, size = draw(st.sampled_from([(4, 2), (6, 2), (6, 3)]))
    order = draw(st.permutations(range(count)))
    groups = sorted(tuple(sorted(order[at : at + size])) for at in range(0, count, size))
    program = _Program(tuple(range(count)))
    name = draw(st.sampled_from([{}, in_group("tp")]))
    at_once = draw(st.booleans())
    for number in range(draw(st.integers(2, 8))):
        for group in groups:
            for rank in group:
                program.compute(rank, draw(st.integers(1, 40)) * 100)
        last = max(program.now.values())
        for group in groups:
            if at_once:
                program.compute(group[0], int(last - program.now[group[0]]))
            program.meet(group, 50, elements=1024 * (number + 1), **name)
    return program.made(), size, groups, at_once


@_MOST
@given(unnamed(), st.booleans(), st.data())
def test_no_more_members_than_a_group_has_and_no_wait_that_was_not(
    given_: tuple[Made, int, list[tuple[int, ...]], bool], is_whole: bool, data: st.DataObject
) -> None:
    made, size, groups, at_once = given_
    ranks = sorted(made.kernels)
    kept = ranks if is_whole else data.draw(st.lists(st.sampled_from(ranks), min_size=1, unique=True))
    with tempfile.TemporaryDirectory() as folder:
        results = opened(write(Path(folder), {rank: made.kernels[rank] for rank in kept}, world=len(ranks)))
    found = {some for some in members(results) if len(some) > 1}
    assert all(len(some) <= size for some in found)
    if is_whole and found:
        assert at_once or sorted(found) == groups
        assert waits_us(results) == made.waits
    if is_whole and not found:
        assert "group-unknown" in {one.code for one in results.measured.diagnostics}
        assert not any(waits_us(results).values())

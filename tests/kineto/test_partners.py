"""Sends, receives and groups of profiler traces: who is whose partner, what clocks and waits follow."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from simcore.replay.parameters import Scales
from simcore.sources.rendezvous import NONE
from tests.export.reading import exported
from tests.export.test_chakra_measured import accounts_of, read_again
from tests.export.test_chakra_measured import exported as written
from tests.kineto.made_ranks import (
    COMM,
    Kernel,
    called,
    gemm,
    in_group,
    members,
    opened,
    said,
    waits_us,
    write,
)

CASES = Path(__file__).parent / "cases"
_HOUR_US = 3_600e6


def _shifts(path: Path) -> tuple[int, ...]:
    recorded = opened(path).measured.recorded
    assert recorded is not None
    return recorded.shifts


def _pair(
    first: list[Kernel], second: list[Kernel], ranks: tuple[int, int] = (0, 1)
) -> dict[int, list[Kernel]]:
    """Two ranks, each with some compute before."""
    return {rank: [gemm(0, 5), *some] for rank, some in zip(ranks, (first, second), strict=True)}


# -- the handed cases -------------------------------------------------------------------


def test_an_eager_send_moves_no_clock_and_waits_for_nobody() -> None:
    results = opened(CASES / "eager_send")
    assert results.step_time_ns == 9_285_000
    assert results.with_scales(Scales()).step_time_ns == 9_285_000
    assert _shifts(CASES / "eager_send") == (0, 0)
    assert waits_us(results) == {0: 0, 1: 1005}
    assert "bound-clock" in said(results)
    assert "clock-offset" not in said(results)
    assert not results.rendezvous.matches.unmatched


def test_a_receive_follows_its_send_where_that_is_sooner_in_a_replay() -> None:
    results = opened(CASES / "eager_send")
    faster = results.with_scales(Scales(ops={"gemm_kernel_f1": 0.25}))
    # The last send begins 4.185 ms into the step; 40 us of message, a gap of 5 us, a kernel of 0.5 ms.
    assert max(faster.run.ranks[1].ops.end) == 4_185_000 + 40_000 + 5_000 + 500_000
    assert faster.accounts[1].ns("wait") > results.accounts[1].ns("wait")
    # A slow receiver holds no eager send.
    slow = results.with_scales(Scales(ops={"gemm_kernel_f1": 3.0}))
    assert slow.accounts[0].ns("wait") == 0


def test_a_group_of_two_has_one_partner_also_where_no_end_is_named() -> None:
    results = opened(CASES / "send_without_ends")
    assert waits_us(results) == {0: 3000 + 2005, 1: 1005}
    assert {account.ns("exposed pp") for account in results.accounts} == {160_000}
    assert results.with_scales(Scales()).step_time_ns == results.step_time_ns == 9_335_000


def test_groups_without_names_are_those_that_end_together() -> None:
    results = opened(CASES / "two_groups_unnamed")
    assert results.step_time_ns == 4_360_000
    assert waits_us(results) == {0: 1600, 1: 1600, 2: 1600, 3: 0}
    assert {(0, 1), (2, 3), (0, 2), (1, 3)} == set(members(results))
    assert "group-by-ends" in said(results)
    assert set(_shifts(CASES / "two_groups_unnamed")) == {0}


# -- partners -----------------------------------------------------------------------------


def _sent(group: dict[str, Any], size: int, ends: dict[str, Any]) -> Kernel:
    return called("send", 100, 140, size, **group, **ends)


def _received(group: dict[str, Any], size: int, ends: dict[str, Any]) -> Kernel:
    return called("recv", 50, 140, size, **group, **ends)


@pytest.mark.parametrize("ranks", [(0, 1), (4, 5), (0, 4), (1, 2)])
@pytest.mark.parametrize("ends", ["global", "local", "own as well", "none"])
def test_the_ends_of_a_send_are_ranks_of_the_world_or_places_in_the_group(
    ranks: tuple[int, int], ends: str, tmp_path: Path
) -> None:
    numbers = (0, 1) if ends == "local" else ranks
    told: list[dict[str, Any]] = [{"Dst_Rank": numbers[1]}, {"Src_Rank": numbers[0]}]
    if ends == "own as well":
        told = [{"Src_Rank": numbers[0], "Dst_Rank": numbers[1]}] * 2
    if ends == "none":
        told = [{}, {}]
    group = in_group("pp", ranks)
    made = _pair([_sent(group, 2, told[0])], [_received(group, 2, told[1])], ranks)
    results = opened(write(tmp_path, made, world=8))
    assert waits_us(results) == {ranks[0]: 0, ranks[1]: 50}


@pytest.mark.parametrize("is_local", [False, True])
def test_of_ends_that_fit_both_ways_those_count_that_pair_with_the_other_side(
    is_local: bool, tmp_path: Path
) -> None:
    """In (1, 2, 3) place 2 is rank 3, and rank 2 is one as well."""
    group = in_group("pp", (1, 2, 3))
    receiver = 3 if is_local else 2
    made = {rank: [gemm(0, 5)] for rank in (1, 2, 3)}
    made[1].append(_sent(group, 3, {"Dst_Rank": 2}))
    made[receiver].append(_received(group, 3, {"Src_Rank": 0 if is_local else 1}))
    results = opened(write(tmp_path, made, world=4))
    assert waits_us(results) == {1: 0, 2: 0, 3: 0} | {receiver: 50}


def test_sends_of_groups_without_ranks_pair_by_name_where_two_ranks_have_it(tmp_path: Path) -> None:
    made = {rank: [gemm(0, 5)] for rank in range(4)}
    for first in (0, 2):
        group = in_group(f"pp_{first}_{first + 1}")
        made[first].append(_sent(group, 2, {}))
        made[first + 1].append(_received(group, 2, {}))
    assert waits_us(opened(write(tmp_path, made))) == {0: 0, 1: 50, 2: 0, 3: 50}


def test_two_ranks_of_two_groups_of_one_name_are_no_partners(tmp_path: Path) -> None:
    """Rank 1 and rank 3, the other ends, are missing."""
    group = in_group("pp")
    made = _pair([_sent(group, 2, {"Dst_Rank": 1})], [_received(group, 2, {"Src_Rank": 3})], (0, 2))
    results = opened(write(tmp_path, made, world=4))
    assert waits_us(results) == {0: 0, 2: 0}
    assert len(results.rendezvous.matches.unmatched) == 2


def test_sends_of_several_ranks_without_ends_are_no_collective(tmp_path: Path) -> None:
    group = in_group("pp", range(4))
    made = {rank: [gemm(0, 5), called("send", 100 + 10 * rank, 200, 4, **group)] for rank in range(4)}
    results = opened(write(tmp_path, made))
    assert len(results.rendezvous.matches.unmatched) == 4
    assert not any(waits_us(results).values())


@pytest.mark.parametrize("words", [("coalesced", "coalesced"), ("batch_isend_irecv",) * 2, ("send", "send"),
                                   ("sendrecv", "sendrecv"), ("coalesced", "send")])  # fmt: skip
def test_sends_and_receives_launched_as_one_wait_for_each_other(
    words: tuple[str, str], tmp_path: Path
) -> None:
    group = in_group("pp", (0, 1))
    made = _pair(
        [called(words[0], 100, 240, 2, **group), called(words[0], 300, 340, 2, **group)],
        [called(words[1], 200, 240, 2, **group), called(words[1], 250, 340, 2, **group)],
    )
    results = opened(write(tmp_path, made))
    assert waits_us(results) == {0: 100, 1: 50}
    assert results.with_scales(Scales()).step_time_ns == results.step_time_ns


def test_several_launched_as_one_among_more_than_two_have_no_known_partner(tmp_path: Path) -> None:
    group = in_group("pp", range(4))
    made = {rank: [gemm(0, 5), called("coalesced", 100 + 30 * rank, 240, 4, **group)] for rank in range(4)}
    results = opened(write(tmp_path, made))
    assert len(results.rendezvous.matches.unmatched) == 4
    assert not any(waits_us(results).values())


def _one_f_one_b(stages: int, batches: int, takes: int) -> dict[int, list[Kernel]]:
    """A pipeline that sends ahead of its receives both ways, us; each stage computes as long."""
    group = in_group("pp", range(stages))
    order = [[("f", batch) for batch in range(min(stages - 1 - stage, batches))] for stage in range(stages)]
    for stage, steps in enumerate(order):
        warm = len(steps)
        for batch in range(batches):
            steps += [("f", batch + warm)] * (batch + warm < batches) + [("b", batch)]
        assert len(steps) == 2 * batches, stage
    made: dict[int, list[Kernel]] = {stage: [] for stage in range(stages)}
    now, at, sent = [10] * stages, [0] * stages, dict[tuple[int, str, int], int]()
    while any(at[stage] < 2 * batches for stage in range(stages)):
        for stage in range(stages):
            if at[stage] == 2 * batches:
                continue
            way, batch = order[stage][at[stage]]
            source = stage - 1 if way == "f" else stage + 1
            if 0 <= source < stages:
                if (source, way, batch) not in sent:
                    continue
                begins = sent[source, way, batch]
                over = max(now[stage], begins) + 10
                made[stage].append(called("recv", now[stage], over, stages, Src_Rank=source, **group))
                now[stage] = over
            made[stage].append(gemm(now[stage], takes, way))
            now[stage] += takes
            target = stage + 1 if way == "f" else stage - 1
            if 0 <= target < stages:
                sent[stage, way, batch] = now[stage]
                made[stage].append(
                    called("send", now[stage], now[stage] + 10, stages, Dst_Rank=target, **group)
                )
                now[stage] += 10
            at[stage] += 1
    return made


def test_a_pipeline_that_sends_both_ways_is_matched_whole(tmp_path: Path) -> None:
    made = _one_f_one_b(4, 6, 500)
    results = opened(write(tmp_path, made))
    assert not results.rendezvous.matches.unmatched
    assert set(_shifts(tmp_path)) == {0}
    assert results.with_scales(Scales()).step_time_ns == results.step_time_ns
    for rank, kernels in made.items():
        received = [one for one in kernels if one.said.get("Collective name") == "recv"]
        assert waits_us(results)[rank] == sum(one.dur - 10 for one in received)
    # Twice as fast the pipeline takes half of its compute less; no stage waits for a receiver.
    fast = results.with_scales(Scales(compute=0.5))
    assert results.step_time_ns - fast.step_time_ns == (6 * 2 + 3 * 2) * 250_000
    # Not the stages are compared with each other.
    assert not any("computes longer" in line or "is slow" in line for line in results.figures.words)


# -- clocks -------------------------------------------------------------------------------


@pytest.mark.parametrize(("late_us", "moved_us"), [(0, 0), (2_000, 0), (-100, 10), (-5_000, 4_910)])
def test_a_clock_moves_only_as_far_as_a_receive_ends_before_its_send(
    late_us: int, moved_us: int, tmp_path: Path
) -> None:
    """The receive ends 90 us behind the begin of its send."""
    made = _pair(
        [called("send", 100 + 1000 * place, 140 + 1000 * place, 2) for place in range(3)],
        [called("recv", 60 + 1000 * place, 190 + 1000 * place, 2) for place in range(3)],
    )
    write(tmp_path, made, late_us={1: late_us})
    assert _shifts(tmp_path) == (0, moved_us * 1000)


@pytest.mark.parametrize("hours", [-1, 1])
def test_sends_both_ways_bring_hosts_together_that_are_hours_apart(hours: int, tmp_path: Path) -> None:
    made = _one_f_one_b(3, 3, 500)
    write(tmp_path, made, late_us={1: hours * _HOUR_US})
    results = opened(tmp_path)
    assert results.measured.concurrent
    assert not results.rendezvous.matches.unmatched
    (_, moved, _) = _shifts(tmp_path)
    # The messages leave open what the shortest of them take.
    assert abs(moved / 1000 + hours * _HOUR_US) <= 500
    assert results.with_scales(Scales()).step_time_ns == results.step_time_ns


def test_ranks_of_hosts_that_a_send_does_not_bind_did_not_run_together(tmp_path: Path) -> None:
    made = _pair([called("send", 100, 140, 2)], [called("recv", 60, 190, 2)])
    results = opened(write(tmp_path, made, late_us={1: _HOUR_US}))
    assert not results.measured.concurrent
    assert "not-concurrent" in said(results)
    assert not any(waits_us(results).values())


def test_sends_that_contradict_each_other_move_no_clock_and_are_no_match(tmp_path: Path) -> None:
    """Each rank has received before the other begins to send: no clocks make that possible."""
    group = in_group("pp", (0, 1))
    made = _pair(
        [called("recv", 50, 90, 2, **group), called("send", 5_000, 5_040, 2, **group)],
        [called("recv", 60, 90, 2, **group), called("send", 5_000, 5_040, 2, **group)],
    )
    results = opened(write(tmp_path, made))
    assert _shifts(tmp_path) == (0, 0)
    assert len(results.rendezvous.matches.unmatched) == 4
    assert all(ns >= 0 for account in results.accounts for ns in account.total_ns)


def test_collectives_set_the_clocks_whatever_sends_say(tmp_path: Path) -> None:
    made = _one_f_one_b(2, 4, 500)
    over = max(kernel.start + kernel.dur for some in made.values() for kernel in some) + 100
    for rank, some in made.items():
        for begins in (over, over + 200):
            some.append(called("allreduce", begins - 50 * rank, begins + 50, 2, **in_group("all", (0, 1))))
    exact = opened(write(tmp_path / "exact", made))
    late = opened(write(tmp_path / "late", made, late_us={1: -40_000.0}))
    assert waits_us(exact) == waits_us(late)
    assert _shifts(tmp_path / "late") == (0, 40_000_000)
    assert "clock-offset" in said(late)
    assert "bound-clock" not in said(late)


# -- groups -------------------------------------------------------------------------------


def _at_once(waits: dict[int, list[int]], **name: Any) -> dict[int, list[Kernel]]:
    """Collectives that end for all ranks at once, in groups of two. waits: how long each rank is in each."""
    return {
        rank: [
            gemm(0, 5),
            *(
                called("allreduce", 1000 * (at + 1) - took, 1000 * (at + 1), 2, **name)
                for at, took in enumerate(some)
            ),
        ]
        for rank, some in waits.items()
    }


@pytest.mark.parametrize("name", [{}, in_group("tp")], ids=["no name", "one name"])
def test_groups_that_ends_do_not_tell_apart_are_warned_of_and_nobody_waits(
    name: dict[str, Any], tmp_path: Path
) -> None:
    """(0, 2), (1, 3) fits as well as (0, 3), (1, 2): rank 3 waits otherwise in one than in the other."""
    made = _at_once({0: [100] * 3, 1: [200] * 3, 2: [300] * 3, 3: [400] * 3}, **name)
    results = opened(write(tmp_path, made))
    assert "group-unknown" in said(results)
    assert not any(waits_us(results).values())
    assert all(len(some) == 1 for some in members(results))


def test_groups_of_one_name_are_those_that_end_together(tmp_path: Path) -> None:
    made = {rank: [gemm(0, 5)] for rank in range(4)}
    for number in range(4):
        for group, length in (((0, 3), 300), ((1, 2), 450)):
            for late, rank in enumerate(group):
                begins = 500 * number + 60 * late + 10
                made[rank].append(called("allreduce", begins, 500 * number + length, 2, **in_group("tp")))
    results = opened(write(tmp_path, made))
    assert set(members(results)) == {(0, 3), (1, 2)}
    assert waits_us(results) == {0: 240, 1: 240, 2: 0, 3: 0}


def _varied(folder: Path, told: dict[str, Any], late_us: int, is_one_stream: bool) -> Path:
    """The handed set of two groups. told: of each of its calls; late_us: how far clocks lie apart."""
    folder.mkdir(exist_ok=True)
    for rank, path in enumerate(sorted((CASES / "two_groups_unnamed").iterdir())):
        data = json.loads(path.read_text())
        for event in data["traceEvents"]:
            if "ts" in event:
                event["ts"] += late_us * rank
            if "nccl" in event["name"]:
                event["args"] |= told | ({"stream": 20} if is_one_stream else {})
        (folder / path.name).write_text(json.dumps(data))
    return folder


@pytest.mark.parametrize("late_us", [0, -700, 3_000, 3_600_000_000])
@pytest.mark.parametrize(
    "told",
    [
        {},
        {"Process Group Name": "tp", "Process Group Description": "tp"},
        {"Process Group Name": "tp", "Process Group Ranks": "[0, 1, 2, 3]"},
        {"Seq": 7},
    ],
    ids=["no name", "one name", "more ranks than members", "a number"],
)
@pytest.mark.parametrize("is_one_stream", [False, True])
def test_groups_without_ranks_on_any_clocks_have_the_waits_that_they_had(
    late_us: int, told: dict[str, Any], is_one_stream: bool, tmp_path: Path
) -> None:
    results = opened(_varied(tmp_path / "job", told, late_us, is_one_stream))
    assert results.step_time_ns == 4_360_000
    assert waits_us(results) == {0: 1600, 1: 1600, 2: 1600, 3: 0}
    assert all(len(some) <= 2 for some in members(results))


def test_two_kinds_of_groups_on_one_stream_are_told_apart_by_their_calls(tmp_path: Path) -> None:
    made: dict[int, list[Kernel]] = {rank: [gemm(0, 5)] for rank in range(4)}
    late = {0: 0, 1: 100, 2: 50, 3: 300}
    for number in range(5):
        base = 1000 * number + 10
        for group in ((0, 1), (2, 3)):
            over = base + max(late[rank] for rank in group) + 40
            for rank in group:
                made[rank].append(called("allreduce", base + late[rank], over, 2, elements=64))
    for number in range(3):
        base = 6000 + 1000 * number
        for group in ((0, 2), (1, 3)):
            over = base + max(late[rank] for rank in group) + 80
            for rank in group:
                made[rank].append(called("allreduce", base + late[rank], over, 2, elements=1 << 20))
    results = opened(write(tmp_path, made))
    assert set(members(results)) == {(0, 1), (2, 3), (0, 2), (1, 3)}
    assert waits_us(results) == {0: 5 * 100 + 3 * 50, 1: 3 * 200, 2: 5 * 250, 3: 0}


def test_a_listed_group_of_another_size_is_not_taken(tmp_path: Path) -> None:
    """The file lists the group of all four, the calls are of groups of two."""
    made = _at_once({0: [100] * 3, 1: [50] * 3, 2: [400] * 3, 3: [50] * 3})
    write(tmp_path, made)
    for path in tmp_path.iterdir():
        data = json.loads(path.read_text())
        listed = {"pg_name": "0", "pg_desc": "default_pg", "pg_size": 4, "ranks": [0, 1, 2, 3]}
        data["distributedInfo"]["pg_config"] = [listed]
        path.write_text(json.dumps(data))
    assert all(len(some) <= 2 for some in members(opened(tmp_path)))


def test_a_number_of_several_communicators_tells_nothing(tmp_path: Path) -> None:
    made = {rank: [gemm(0, 5)] for rank in range(4)}
    for number in range(3):
        for group in ((0, 1), (2, 3)):
            for rank in group:
                begins = 1000 * number + 10 + 100 * rank
                over = 1000 * number + 10 + 100 * max(group) + 40
                made[rank].append(
                    called("allreduce", begins, over, 2, Seq=number, Comms_Id="7", **in_group("tp", group))
                )
    results = opened(write(tmp_path, made))
    assert set(members(results)) == {(0, 1), (2, 3)}
    assert waits_us(results) == {0: 300, 1: 0, 2: 300, 3: 0}


def test_fewer_ranks_than_the_group_has_are_matched_and_the_others_missing(tmp_path: Path) -> None:
    made = {rank: [gemm(0, 5), called("allreduce", 50 + 10 * rank, 200, 8)] for rank in range(3)}
    results = opened(write(tmp_path, made, world=8))
    assert (0, 1, 2) in members(results)
    assert "missing-members" in said(results)


def test_groups_of_more_members_than_the_world_has_are_warned_of_and_nobody_waits(tmp_path: Path) -> None:
    made = {rank: [gemm(0, 5), called("allreduce", 50 + 10 * rank, 200, 8)] for rank in range(4)}
    results = opened(write(tmp_path, made, world=4))
    assert all(len(some) == 1 for some in members(results))
    assert set(waits_us(results).values()) == {0}
    assert "group-unknown" in said(results)


@pytest.mark.parametrize("apart_us", [0, 5_000, 3_600_000_000])
def test_groups_of_hosts_that_nothing_ties_keep_their_waits(apart_us: int, tmp_path: Path) -> None:
    """Two groups of two, each on a host of its own, whose clocks lie hours apart or not at all."""
    made = {
        rank: [
            gemm(0, 5),
            called(
                "allreduce", 50 + 100 * (rank % 2), 250, 2, **in_group("tp", (0, 1) if rank < 2 else (2, 3))
            ),
        ]
        for rank in range(4)
    }
    late = {rank: float(apart_us) for rank in (2, 3)}
    results = opened(write(tmp_path, made, world=4, late_us=late))
    assert set(members(results)) == {(0, 1), (2, 3)}
    assert waits_us(results) == {0: 100, 1: 0, 2: 100, 3: 0}
    assert results.step_time_ns == 250_000
    assert "loose-clock" in said(results)


# -- what other programs get ----------------------------------------------------------------


def test_an_arrow_leads_from_an_eager_send_to_its_receive() -> None:
    run = opened(CASES / "eager_send").measured
    events = json.loads(b"".join(exported("chrome", run).chunks))["traceEvents"]
    starts = {one["id"]: one["pid"] for one in events if one["ph"] == "s"}
    assert [starts[one["id"]] for one in events if one["ph"] == "f"] == [0] * 4
    assert {one["pid"] for one in events if one["ph"] == "f"} == {1}


def test_every_meeting_has_its_node_and_streams_are_kept() -> None:
    results = opened(CASES / "eager_send")
    assert all(node != NONE for node in results.graph.meetings)
    assert {kernel.stream for kernel in _one_f_one_b(2, 1, 10)[0]} <= {7, COMM}


@pytest.mark.parametrize(("world", "size"), [(10**9, 2), (10**9, 3), (10**9, 10**9), (4, 3)])
def test_any_world_and_size_are_answered_at_once(world: int, size: int, tmp_path: Path) -> None:
    made = {
        rank: [
            gemm(0, 5),
            *(called("allreduce", 100 * at, 100 * at + 50 + rank, size, elements=at) for at in range(1, 90)),
        ]
        for rank in range(4)
    }
    results = opened(write(tmp_path, made, world=world))
    assert all(len(some) <= size for some in members(results))
    assert len([one for one in results.measured.diagnostics if one.code == "group-unknown"]) <= 1


@pytest.mark.parametrize("case", ["eager_send", "send_without_ends"])
def test_sends_come_back_from_execution_traces(case: str, tmp_path: Path) -> None:
    results = opened(CASES / case)
    written(results.measured, tmp_path / "et")
    again = read_again(tmp_path / "et")
    assert again.step_time_ns == results.step_time_ns
    # A receive waits for a message there: that is `bubble` in execution traces.
    waits = [account["wait"] + account["bubble"] for account in accounts_of(again)]
    assert waits == [account.ns("wait") for account in results.accounts]

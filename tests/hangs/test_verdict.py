"""Who is to blame: incidents whose cause is known, and rules one by one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simcore.flight import FlightRecord
from simcore.flight.clocks import clock_offsets
from simcore.flight.findings import find_hang
from simcore.flight.progress import collective_of, progress_of
from simcore.flight.verdict import Verdict, Wait, find_verdict
from simcore.parameters import Parameters, RunInput
from simcore.records import replace
from simcore.runs import open_run
from simcore.runs.hung import run_dumps
from simcore.sources.inputs import open_input
from simcore.words.hung_sentences import WaitedFor, find_sentences
from tests.hangs.incidents import INCIDENTS, WORLD, Dumps, Fault, dumps_of, write_dumps

FIXTURES = Path(__file__).parents[2] / "fixtures" / "hangs"
SHARED = Path(__file__).parents[3] / "shared" / "corpus" / "flight_recorder"


def opened(path: Path) -> FlightRecord:
    record = open_input(str(path))
    assert isinstance(record, FlightRecord)
    return record


def verdict_of(folder: Path, dumps: Dumps) -> Verdict:
    return find_verdict(opened(write_dumps(folder, dumps)))


def hang_of(path: Path) -> dict[str, Any]:
    """`hang` of the JSON."""
    tables = open_run(RunInput(open_input(str(path)), Parameters())).figures.hang
    assert tables is not None
    return dict(json.loads(json.dumps(tables.values)))


@pytest.mark.parametrize("name", INCIDENTS)
def test_incident_names_what_was_done(name: str) -> None:
    right = json.loads((FIXTURES / name / "right.json").read_text())
    verdict = find_verdict(opened(FIXTURES / name))
    assert list(verdict.culprits) == right["culprits"]
    assert list(verdict.stuck) == right["stuck"]
    assert [mismatch.kind for mismatch in verdict.mismatches[:1]] == [right["mismatch"]] * bool(
        right["mismatch"]
    )
    assert [list(mismatch.odd) for mismatch in verdict.mismatches[:1]] == [right["odd"]] * bool(
        right["mismatch"]
    )
    assert bool(find_hang(verdict.record)) == (name != "nothing")


@pytest.mark.parametrize(
    ("name", "culprits", "stuck", "direct"),
    [("gpu_error_1st", [12], [12, 14], {13, 14, 15}), ("lock_gil_1st", [9, 14], [], {8, 10, 11, 12, 13, 15})],
)
def test_published_incident_names_the_ranks_that_were_broken(
    name: str, culprits: list[int], stuck: list[int], direct: set[int]
) -> None:
    if not SHARED.exists():
        pytest.skip("../shared/corpus/flight_recorder is not here")
    hang = hang_of(SHARED / name)
    assert (hang["culprits"], hang["stuck"], hang["mismatches"]) == (culprits, stuck, [])
    assert {wait["rank"] for wait in hang["waits"]} == direct
    assert {wait["for"] for wait in hang["waits"]} == set(culprits)
    pairs = [(wait["rank"], wait["for"]) for wait in hang["waits"]]
    assert len(set(pairs)) == len(pairs)
    assert [wait["since_ns"] for wait in hang["waits"]] == sorted(wait["since_ns"] for wait in hang["waits"])


def test_wait_is_that_of_the_oldest_collective_of_two_ranks(tmp_path: Path) -> None:
    verdict = verdict_of(tmp_path, dumps_of(Fault(stops={5: 9})))
    by_pair = {(wait.rank, wait.for_rank): wait for wait in verdict.waits}
    wait = by_pair[4, 5]
    assert wait.sequence == 6
    assert wait.since_ns == verdict.record.by_rank[4].entries.created[wait.row]
    assert all(one.for_rank == 5 for one in verdict.waits)
    assert {one.rank for one in verdict.waits} == {*range(WORLD)} - {5}


def test_status_tells_of_a_rank_without_entries_in_a_group_that_also_has_messages(tmp_path: Path) -> None:
    dumps = dumps_of(Fault(stops={5: 9}))
    message = {"is_p2p": True, "profiling_name": "nccl:recv 0<-1", "p2p_seq_id": 1, "state": "scheduled"}
    dumps[0]["entries"].insert(0, dumps[0]["entries"][-1] | message | {"collective_seq_id": 0})
    dumps[5]["entries"] = [
        entry for entry in dumps[5]["entries"] if entry["process_group"][1] != "default_pg"
    ]
    verdict = verdict_of(tmp_path, dumps)
    assert (0, 5) in {(wait.rank, wait.for_rank) for wait in verdict.waits}
    assert verdict.culprits == (5,)


def test_rank_without_any_entry_is_waited_for(tmp_path: Path) -> None:
    verdict = verdict_of(tmp_path, dumps_of(Fault(stops={5: 9}), unfinished_alone=True))
    assert not len(verdict.record.by_rank[5].entries)
    assert verdict.culprits == (5,)


@pytest.mark.parametrize("left", [{4, 5}, {0, 4, 5, 7}, {4, 5, 6, 7}])
def test_partial_set_blames_no_rank_that_only_lacks_a_dump(left: set[int], tmp_path: Path) -> None:
    dumps = dumps_of(Fault(stops={5: 9}))
    verdict = verdict_of(tmp_path, {rank: dumps[rank] for rank in left})
    assert verdict.culprits == (5,)
    assert len(verdict.record.missing) == WORLD - len(left)


def test_single_dump_blames_nobody(tmp_path: Path) -> None:
    dumps = dumps_of(Fault(stops={5: 9}))
    verdict = verdict_of(tmp_path, {4: dumps[4]})
    assert (verdict.culprits, verdict.open_ranks, len(verdict.record.missing)) == ((), (4,), 7)


def test_ring_that_begins_behind_a_number_tells_nothing_of_it(tmp_path: Path) -> None:
    dumps = dumps_of(Fault(stops={5: 9}))
    # Rank 4 has passed the number, and its ring no longer has it.
    for entry in dumps[4]["entries"][:]:
        if entry["process_group"][1].startswith("TENSOR"):
            dumps[4]["entries"].remove(entry)
            if entry["state"] != "completed":
                late = entry | {"collective_seq_id": entry["collective_seq_id"] + 3, "state": "scheduled"}
    dumps[4]["entries"].append(late)
    dumps[4]["pg_status"]["1"] |= {"last_enqueued_collective": 9, "last_completed_collective": -1}
    dumps[5]["entries"].append(late | {"collective_seq_id": 6})
    dumps[5]["pg_status"]["1"]["last_enqueued_collective"] = 6
    verdict = verdict_of(tmp_path, dumps)
    assert [(one.sequence, one.ranks) for one in verdict.unknown if 4 in one.ranks] == [(6, (4,))]


def test_stuck_rank_has_not_ended_what_a_peer_has(tmp_path: Path) -> None:
    dumps = dumps_of(Fault(stops={5: 9}))
    for entry in dumps[6]["entries"]:
        if entry["process_group"][1].startswith("TENSOR") and entry["collective_seq_id"] >= 3:
            entry.update(state="started", retired=False, time_discovered_completed_ns=None)
    dumps[6]["pg_status"]["1"]["last_completed_collective"] = 2
    assert verdict_of(tmp_path, dumps).stuck == (6,)


def test_peer_that_has_begun_a_number_is_not_waited_for_though_its_ring_lacks_it(tmp_path: Path) -> None:
    dumps = dumps_of(Fault())
    for rank, dump in dumps.items():
        # What has ended is not in these dumps: of rank 6 its last collective of tp has not.
        last = [entry for entry in dump["entries"] if entry["process_group"][1].startswith("TENSOR")][-1]
        last.update(state="started", retired=False, time_discovered_completed_ns=None)
        dump["entries"] = [last] if rank == 6 else []
    dumps[6]["pg_status"]["1"]["last_completed_collective"] = 5
    verdict = verdict_of(tmp_path, dumps)
    assert (verdict.waits, verdict.open_ranks) == ((), (6,))


def test_other_dtype_and_other_state_are_found(tmp_path: Path) -> None:
    dumps = dumps_of(Fault())
    dumps[3]["entries"][1]["input_dtypes"] = ["Float"]
    dumps[0]["entries"][-1].update(state="started", retired=False)
    kinds = {mismatch.kind for mismatch in verdict_of(tmp_path, dumps).mismatches}
    assert kinds == {"dtype", "state"}


def test_parts_of_an_all_to_all_need_not_be_equal_but_their_sums(tmp_path: Path) -> None:
    dumps = dumps_of(Fault())
    for rank in (0, 1):
        entry = dumps[rank]["entries"][0]
        entry.update(profiling_name="nccl:all_to_all", input_sizes=[[3 + rank]], output_sizes=[[4 - rank]])
    assert not verdict_of(tmp_path / "a", dumps).mismatches
    dumps[0]["entries"][0]["output_sizes"] = [[9]]
    assert [one.kind for one in verdict_of(tmp_path / "b", dumps).mismatches] == ["size"]


def test_clocks_of_a_node_are_brought_to_one(tmp_path: Path) -> None:
    ahead = dict.fromkeys(range(4, 8), 30_000_000)
    record = opened(write_dumps(tmp_path, dumps_of(Fault(), clocks=ahead)))
    offsets = clock_offsets(progress_of(record))
    assert {rank: offset.ns for rank, offset in offsets.items()} == dict.fromkeys(range(4), 0) | ahead


def test_names_of_groups_may_differ_between_ranks(tmp_path: Path) -> None:
    verdict = find_verdict(opened(FIXTURES / "sleeps"))
    dumps = dumps_of(Fault(stops={5: 9}))
    for rank, dump in dumps.items():
        dump["pg_config"] = {f"{int(name) + 100 * rank}": one for name, one in dump["pg_config"].items()}
        for entry in dump["entries"]:
            name, description = entry["process_group"]
            entry["process_group"] = (f"{int(name) + 100 * rank}", description)
    other = verdict_of(tmp_path, dumps)
    assert other.record.groups == verdict.record.groups
    assert [wait[:4] for wait in other.waits] == [wait[:4] for wait in verdict.waits]


def test_gloo_states_stay_scheduled_and_retired_ones_have_ended() -> None:
    verdict = find_verdict(opened(FIXTURES / "gloo"))
    assert verdict.culprits == (1,)
    rules = [insight.rule for insight in open_run(RunInput(verdict.record, Parameters())).figures.insights]
    assert rules == ["hang-culprits", "hang-match", "hang-gloo"]


# -- who waits behind whom -------------------------------------------------------------------


@given(pairs=st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7)), max_size=14, unique=True))
def test_sentence_of_a_culprit_has_its_own_waiters_and_those_behind(pairs: list[tuple[int, int]]) -> None:
    run = run_dumps(RunInput(opened(FIXTURES / "sleeps"), Parameters()))
    pairs = [pair for pair in pairs if pair[0] != pair[1]]
    made = tuple(Wait(rank, other, 0, 1, 0, at) for at, (rank, other) in enumerate(pairs))
    run.verdict = replace(run.verdict, waits=made, messages=())
    sentences = [one for one in find_sentences(run) if isinstance(one, WaitedFor)]
    culprits = [rank for one in sentences for rank in one.culprits]
    assert len(culprits) == len(set(culprits))
    assert set(culprits) <= set(run.verdict.culprits)
    assert len(sentences) == 4 or set(culprits) == set(run.verdict.culprits)
    for sentence in sentences:
        for culprit in sentence.culprits:
            direct = {rank for rank, other in pairs if other == culprit}
            reached = {culprit}
            for _ in pairs:
                reached |= {rank for rank, other in pairs if other in reached}
            assert set(sentence.waiting) == direct
            assert set(sentence.behind) == reached - direct - {culprit}


@pytest.mark.parametrize(
    ("operation", "collective"),
    [
        ("nccl:_all_gather_base", "all_gather"),
        ("nccl:all_gather_into_tensor_coalesced", "all_gather"),
        ("nccl:reduce_scatter_tensor_coalesced", "reduce_scatter"),
        ("nccl:_reduce_oop", "reduce"),
        ("nccl:alltoall_base", "all_to_all"),
        ("gloo:allreduce", "all_reduce"),
    ],
)
def test_each_call_of_pytorch_is_the_collective_that_it_makes(operation: str, collective: str) -> None:
    assert collective_of(operation) == collective

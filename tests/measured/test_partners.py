"""Communication without a partner: that it is said, what it is counted as, and who is missing for it."""

from __future__ import annotations

import re

import pytest

from simcore.measured import MeasuredRun, read_run
from simcore.measured.matching import Call
from simcore.render.report.pages import run_json, run_page
from simcore.replay.parameters import Scales
from simcore.runs.measured import RecordedRun
from tests.findings import named

from .test_replay_by_hand import MS, SLOW_RANK, op, run_of
from .traces import STAMP


def first_stage(rank: int) -> str:
    """Waits from 102 to 410 for the gradient, which then takes 2 ms."""
    return (
        op(rank, "forward_step", 1, 101)
        + op(rank, "send_forward", 101, 102, "pp")
        + op(rank, "recv_backward", 102, 412, "pp")
        + op(rank, "backward_step", 412, 612)
        + op(rank, "dp_allreduce", 612, 622, "dp")
        + op(rank, "ep_allreduce", 622, 624, "ep")
    )


def last_stage(rank: int) -> str:
    return (
        op(rank, "recv_forward", 1, 102, "pp", stage=1)
        + op(rank, "forward_step", 102, 202, stage=1)
        + op(rank, "backward_step", 202, 410, stage=1)
        + op(rank, "send_backward", 410, 412, "pp", stage=1)
        + op(rank, "dp_allreduce", 412, 422, "dp", stage=1)
        + op(rank, "ep_allreduce", 422, 624, "ep", stage=1)
    )


# tp 1, dp 2, pp 2: ranks 0 and 1 are the first stage.
LINES = {0: first_stage(0), 1: first_stage(1), 2: last_stage(2), 3: last_stage(3)}


def without(*missing: int, world: int = 4, tp: int = 1) -> RecordedRun:
    text = "".join(lines for rank, lines in LINES.items() if rank not in missing)
    return RecordedRun(run_of(text, world, tp, pp=2))


# Who is asked for, the rank that it is, and what is the matter with it.
_WHO = re.compile(r"sender|receiver|group|\d+(?:[,-]\d+)*|missing|not known|wait|in time")


def words_of(results: RecordedRun) -> dict[tuple[int, str], str]:
    """(rank, operation) -> what is said of its partner, in key words: `receiver 2 missing`."""
    return {
        (rank.rank, rank.ops.name[index]): " ".join(_WHO.findall(words))
        for number, rank in enumerate(results.measured.ranks)
        for index in range(len(rank.ops))
        if (words := results.partners.words(Call(number, index)))
    }


def said(results: RecordedRun) -> list[str]:
    return [one.message for one in results.diagnostics if one.code == "no-partner"]


def test_what_waits_for_a_missing_rank_is_said_to_be_counted_as_communication() -> None:
    results = without(2)
    waits = [(one.ns("bubble") // MS, one.ns("exposed pp") // MS) for one in results.accounts]
    # Rank 1 does the same as rank 0 and its sender is there: 308 ms of bubble are told from 3 of pp.
    assert waits[:2] == [(0, 311), (308, 3)]
    assert list(map(named, said(results))) == [
        ["4", "send_forward", "recv_backward", "ep_allreduce", "dp_allreduce"]
    ]
    for page in (run_page(results), str(run_json(results)["diagnostics"])):
        assert "no-partner" in page
    # A replay has its own words for it, and these alone.
    codes = [one.code for one in results.with_scales(Scales()).diagnostics]
    assert (codes.count("replay-unmatched"), codes.count("no-partner")) == (1, 0)
    assert results.with_scales(Scales()).run.diagnostics == results.with_scales(Scales()).diagnostics


def test_a_whole_set_says_nothing_of_it() -> None:
    assert said(without()) == []
    assert words_of(without()) == {}
    assert said(RecordedRun(run_of(SLOW_RANK, 2))) == []


def test_who_is_missing_for_each_communication() -> None:
    assert words_of(without(2)) == {
        (0, "send_forward"): "receiver 2 missing",
        (0, "recv_backward"): "sender 2 missing",
        (0, "ep_allreduce"): "group 2 missing",
        (3, "dp_allreduce"): "group 2 missing",
    }
    assert words_of(without(0, 1)) == {
        (2, "recv_forward"): "sender 0 missing",
        (2, "send_backward"): "receiver 0 missing",
        (2, "ep_allreduce"): "group 0 missing",
        (3, "recv_forward"): "sender 1 missing",
        (3, "send_backward"): "receiver 1 missing",
        (3, "ep_allreduce"): "group 1 missing",
    }
    eight = words_of(without(2, world=8))
    # dp 4: rank 2 is of the first stage there, as the name has it, and stands in no place by its stage_id.
    assert eight[0, "recv_backward"] == "sender 4 missing"
    assert eight[0, "dp_allreduce"] == "group 2 missing"
    assert eight[3, "dp_allreduce"] == "group not known 2,4-7 missing"


def test_a_partner_that_is_there_and_was_not_waited_for() -> None:
    """Rank 1 has its second receive behind it when rank 0 sends; no offset of the clocks explains it."""
    text = op(0, "send_forward", 0, 1, "pp") + op(0, "forward_step", 1, 50)
    text += op(0, "send_forward", 50, 52, "pp") + op(0, "recv_backward", 55, 62, "pp")
    text += op(1, "recv_forward", 0, 1, "pp", stage=1) + op(1, "recv_forward", 5, 10, "pp", stage=1)
    text += op(1, "forward_step", 10, 60, stage=1) + op(1, "send_backward", 60, 61, "pp", stage=1)
    results = RecordedRun(run_of(text, 2, pp=2))
    assert words_of(results) == {
        (0, "send_forward"): "receiver 1 wait",
        (1, "recv_forward"): "sender 0 in time",
    }
    # The root of a broadcast goes on before the others have come.
    text = op(0, "tp_load_batch_broadcast", 0, 1, "tp") + op(0, "forward_step", 1, 9)
    text += op(1, "tp_load_batch_broadcast", 5, 6, "tp") + op(1, "forward_step", 6, 9)
    assert words_of(RecordedRun(run_of(text, 2, tp=2))) == {
        (rank, "tp_load_batch_broadcast"): "group wait" for rank in (0, 1)
    }


@pytest.mark.parametrize("world", [4, 400_000_000])
def test_a_world_of_any_size_is_answered_at_once(world: int) -> None:
    found = words_of(without(2, world=world))
    assert found[0, "recv_backward"] == f"sender {world // 2} missing"


def nameless() -> MeasuredRun:
    return read_run("trace.txt", (op(0, "recv_forward", 0, 10, "pp", stage=1)).encode())


def test_where_the_layout_is_not_known_neither_is_the_partner() -> None:
    assert words_of(RecordedRun(nameless())) == {(0, "recv_forward"): "sender not known"}
    holes = read_run(f"trace_{STAMP}.txt", (LINES[0] + LINES[1] + LINES[3]).encode())
    assert words_of(RecordedRun(holes))[0, "recv_backward"] == "sender not known 2 missing"

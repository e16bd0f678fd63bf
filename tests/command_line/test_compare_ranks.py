"""`wltui compare --rank --rank2 --step2`: two ranks, two steps, side by side."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.command_line.running import SEED_001, SEED_002, wltui_here
from tests.kineto.test_bad_input import event
from tests.says import said

_RANKS, _STEPS = 3, (5, 6)
# us of a step, of a gemm of rank 0, and what one takes longer in the second step, and a rank.
_STEP, _GEMM, _LATER, _EACH = 1000, 50, 30, 20


@pytest.fixture
def job(tmp_path: Path) -> str:
    """Three ranks with two steps of two gemms."""
    for rank in range(_RANKS):
        events = []
        for number, step in enumerate(_STEPS):
            start = number * _STEP
            name = f"ProfilerStep#{step}"
            events.append(event(cat="user_annotation", name=name, pid=9, tid=1, ts=start, dur=_STEP, args={}))
            length = _GEMM + number * _LATER + rank * _EACH
            events += [event(ts=start + at, dur=length) for at in (100, 400)]
        top = {"distributedInfo": {"rank": rank, "world_size": _RANKS}, "traceEvents": events}
        (tmp_path / f"rank{rank}.json").write_text(json.dumps(top))
    return str(tmp_path)


def values(*words: str) -> dict[str, object]:
    """The JSON of a comparison that succeeds."""
    done = wltui_here("compare", *words, "--json")
    assert done.returncode == 0
    found: dict[str, object] = json.loads(done.stdout)
    return found


def gemm(found: dict[str, object]) -> dict[str, int]:
    rows = found["by_name"]
    assert isinstance(rows, list)
    (row,) = [row for row in rows if row["name"] == "gemm"]
    assert isinstance(row, dict)
    return row


def test_two_ranks_of_one_step_as_json_and_as_a_page(job: str) -> None:
    found = values(job, "--step", "5", "--rank", "0", "--rank2", "2")
    assert list(found) == ["schema", "a", "b", "sentences", "accounts", "by_name"]
    assert found["schema"] == "wltui.ranks/1"
    a, b = found["a"], found["b"]
    assert isinstance(a, dict)
    assert isinstance(b, dict)
    assert list(a) == ["file", "run", "kind", "step_time_ns", "rank", "ranks", "stage"]
    assert (a["rank"], b["rank"], a["run"], a["ranks"]) == (0, 2, b["run"], "0")
    assert list(gemm(found)) == [
        "account", "name", "a_calls", "b_calls", "a_ns", "b_ns", "difference_ns", "calls_ns", "each_ns",
        "a_total_ns", "b_total_ns",
    ]  # fmt: skip
    longer = 2 * 2 * _EACH * 1000
    assert (gemm(found)["difference_ns"], gemm(found)["each_ns"]) == (longer, longer)
    page = wltui_here("compare", job, "--step", "5", "--rank", "0", "--rank2", "2").stdout
    assert page.startswith("A  rank 0: step 1.000 ms of run ")
    said(page.splitlines(), "Rank 2", "80.000 us more compute", "rank 0", "180.0 us", "100.0 us")


def test_two_steps_beside_each_other_by_name_all_ranks_or_one(job: str) -> None:
    found = values(job, "--step", "5", "--step2", "6")
    assert found["schema"] == "wltui.beside/1"
    row = gemm(found)
    assert (row["a_calls"], row["b_calls"], row["difference_ns"]) == (6, 6, 6 * _LATER * 1000)
    alone = values(job, "--step", "5", "--step2", "6", "--rank", "1")
    assert (gemm(alone)["a_calls"], gemm(alone)["difference_ns"]) == (2, 2 * _LATER * 1000)
    crossed = values(job, "--step", "5", "--step2", "6", "--rank", "2", "--rank2", "0")
    assert gemm(crossed)["difference_ns"] == 2 * (_LATER - 2 * _EACH) * 1000
    page = wltui_here("compare", job, "--step", "5", "--step2", "6").stdout
    said(page.splitlines(), "By name", "all 3 ranks")
    said(page.splitlines(), "B has", "180.0 us more compute", "A", "all 3 ranks")


def test_a_rank_of_two_simulated_runs_and_their_steps_may_fail_the_command() -> None:
    words = ["compare", SEED_001, "--with", "--compute-scale 1.1", "--rank", "0", "--fail-if-slower", "2%"]
    done = wltui_here(*words)
    assert done.returncode == 1
    assert done.stderr.startswith("wltui: B is ")
    side = done.stdout.partition("\nB  ")[2].partition("\nRank")[0]
    assert "--compute-scale 1.1" in " ".join(side.split())
    assert "Rank 0 of B has " in done.stdout


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["--rank", "0"],
         'compare FILE needs --with "PARAMETERS", a second FILE, --run2, --step2, or --rank and --rank2'),
        (["--rank2", "7"], "--rank2 7: --rank, the rank of A, is expected too"),
        (["--rank", "0", "--rank2", "x"], "--rank2 x: one rank is expected, for example 7"),
        (["--rank", "0-3", "--rank2", "7"], "--rank 0-3: one rank is expected, for example 7"),
        (["--rank", "0", "--rank2", "1024"],
         f"rank 1024: found no such rank in {SEED_002}, expected one of 0-1023"),
        (["--rank", "3", "--rank2", "3"], "rank 3: found the same rank twice, expected two ranks of the run"),
        (["--rank", "0", "--rank2", "7"],
         "ranks 0 and 7 are equal: both are of ranks 0-63, which are simulated once; nothing "
         "differs"),
        (["--rank", "0", "--rank2", "64", "--fail-if-slower", "2%"],
         "--fail-if-slower: found two ranks of one run, expected two runs"),
    ],
)  # fmt: skip
def test_what_cannot_be_compared_says_what_is_expected(words: list[str], error: str) -> None:
    done = wltui_here("compare", SEED_002, *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"wltui: {error}\n"


def test_a_step_that_is_not_there_is_refused(job: str) -> None:
    done = wltui_here("compare", job, "--step", "5", "--step2", "9")
    assert done.returncode == 2
    assert "--step 9: no such step" in done.stderr

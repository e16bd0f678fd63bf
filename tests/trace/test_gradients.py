"""Runs of chains and waits that others imply leave the step as it is, whatever takes how long."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest

from simcore.trace.gradients import _drop_implied, _ends, _join_runs
from tests.hostile.names import HEADER
from tests.hostile.running import wltui


@pytest.mark.parametrize("seed", range(40))
def test_runs_of_chains_end_as_the_chains_do(seed: int) -> None:
    choose = random.Random(seed)
    count = choose.randrange(2, 60)
    near = choose.choice((2, 3, 60))
    first = [choose.randrange(max(chain - near, 0), chain) for chain in range(1, count + 1)]
    second = [
        choose.choice((0, choose.randrange(max(chain - near, 0), chain))) for chain in range(1, count + 1)
    ]
    last = {choose.randrange(1, count + 1) for _ in range(3)} | {count}
    fewer_first, fewer_second = [*first], [*second]
    _drop_implied(fewer_first, fewer_second)
    runs = _join_runs(fewer_first, fewer_second, last)
    assert all(run < index for index, run in enumerate(runs.first, 1))
    for _ in range(5):
        total = [choose.choice((0, 1, 5, 70)) for _ in range(count)]
        ends = _ends(first, second, total)
        assert _ends(fewer_first, fewer_second, total) == ends
        of_runs = [0] * len(runs.first)
        for chain, ns in enumerate(total, 1):
            of_runs[runs.of[chain] - 1] += ns
        run_ends = _ends(runs.first, runs.second, of_runs)
        assert [run_ends[runs.of[chain]] for chain in last] == [ends[chain] for chain in last]


def test_a_line_of_chains_is_one_run() -> None:
    # Each waits for the one before it and, what that implies, for the one before that.
    first, second = [*range(50)], [max(chain - 1, 0) for chain in range(50)]
    _drop_implied(first, second)
    assert len(_join_runs(first, second, [50]).first) == 1


@pytest.mark.slow
def test_distinct_names_take_at_most_twice_the_time_of_equal_ones(tmp_path: Path) -> None:
    """10,000 layers of distinct names, told apart by letters, on four stages: 26 ms a name was 270 s."""
    letters = "abcdefghij"
    names = [a + b + c + d for a in letters for b in letters for c in letters for d in letters[:3]]
    seconds = []
    for kind in (["layer"] * len(names), names):
        rows = [f"{name}\t-1\t{5000 + row % 7}\tALLREDUCE\t100000\t6000\tNONE\t0\t7000\tALLREDUCE\t50000\t100"
                for row, name in enumerate(kind)]  # fmt: skip
        header = (
            HEADER.replace("pp: 2", "pp: 4")
            .replace("all_gpus: 2", "all_gpus: 16")
            .replace("Group: 1", "Group: 2")
        )
        path = tmp_path / f"{len(seconds)}.txt"
        path.write_text("\n".join([header, str(len(rows)), *rows]) + "\n")
        begin = time.process_time()
        assert wltui("report", str(path), "--json").status == 0
        seconds.append(time.process_time() - begin)
    assert seconds[1] < 2 * seconds[0] + 0.5

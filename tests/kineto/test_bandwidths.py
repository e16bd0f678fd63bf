"""Bandwidths of collectives whose bytes a trace says: by hand, as nccl-tests define them."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from simcore.inputs import open_input
from simcore.measured import MeasuredRun
from simcore.parameters import Parameters
from simcore.replay import measured_results
from simcore.report.pages import run_json, run_page
from tests.command_line.running import wltui
from tests.kineto.test_bad_input import event

# Elements of 2 bytes, and us from the last member's coming to the end.
_ELEMENTS, _FAST, _SLOW = 1_000_000, 100, 400
_RANKS = 4


def collective(name: str, ts: int, end: int, elements_in: int, elements_out: int) -> dict[str, Any]:
    """A kernel of NCCL that says what it does, as torch 2.4 and later write it."""
    return {
        "ph": "X", "cat": "kernel", "name": "ncclDevKernel_Generic", "pid": 0, "tid": 20, "ts": ts,
        "dur": end - ts,
        "args": {
            "stream": 20, "device": 0, "Collective name": name, "In msg nelems": elements_in,
            "Out msg nelems": elements_out, "dtype": "BFloat16", "Group size": _RANKS,
            "Process Group Name": "1", "Process Group Description": "dp",
            "Process Group Ranks": "[0, 1, 2, 3]",
        },
    }  # fmt: skip


def written(folder: Path, name: str, elements: tuple[int, int], ranks: int = _RANKS) -> Path:
    """Two collectives, one fast and one slow; each rank comes 10 us after the one before it."""
    for rank in range(ranks):
        late = 10 * (_RANKS - 1)
        events = [
            event(ts=0, dur=5),
            collective(name, 1000 + 10 * rank, 1000 + late + _FAST, *elements),
            collective(name, 3000 + 10 * rank, 3000 + late + _SLOW, *elements),
        ]  # fmt: skip
        top = {"distributedInfo": {"rank": rank, "world_size": _RANKS}, "traceEvents": events}
        (folder / f"rank{rank}.json").write_text(json.dumps(top))
    return folder


def read(folder: Path) -> tuple[list[dict[str, Any]], str]:
    """(the rows of the JSON, the page)."""
    run = open_input(str(folder))
    assert isinstance(run, MeasuredRun)
    results = measured_results(run, Parameters())
    return run_json(results)["measured"]["collectives"], run_page(results)


@pytest.mark.parametrize(
    ("name", "elements", "factor"),
    [
        ("allreduce", (_ELEMENTS, _ELEMENTS), 2 * 3 / 4),
        ("_allgather_base", (_ELEMENTS // 4, _ELEMENTS), 3 / 4),
        ("_reduce_scatter_base", (_ELEMENTS, _ELEMENTS // 4), 3 / 4),
        ("all_to_all", (_ELEMENTS, _ELEMENTS), 3 / 4),
        ("broadcast", (_ELEMENTS, _ELEMENTS), 1.0),
    ],
)
def test_bytes_over_the_time_from_the_last_coming(
    tmp_path: Path, name: str, elements: tuple[int, int], factor: float
) -> None:
    (row,), page = read(written(tmp_path, name, elements))
    size = 2 * _ELEMENTS
    assert (row["bytes"], row["ranks"], row["group"], row["count"]) == (size, _RANKS, "dp", 2)
    assert not row["waits_included"]
    assert row["algbw_gbps"] == pytest.approx({
        "best": size / (_FAST * 1000), "median": size / (_FAST * 1000), "worst": size / (_SLOW * 1000)
    })  # fmt: skip
    assert row["busbw_gbps"]["worst"] == pytest.approx(factor * size / (_SLOW * 1000))
    assert "members are missing" not in page


def test_where_members_are_missing_the_time_holds_the_waiting_and_is_marked(tmp_path: Path) -> None:
    (row,), page = read(written(tmp_path, "allreduce", (_ELEMENTS, _ELEMENTS), ranks=2))
    assert row["waits_included"]
    assert "allreduce*" in page
    assert "members are missing" in page


def test_the_page_has_the_command_that_says_the_same_of_a_cluster(tmp_path: Path) -> None:
    _, page = read(written(tmp_path, "_allgather_base", (_ELEMENTS // 4, _ELEMENTS)))
    command = next(line for line in page.splitlines() if "wltui collective" in line).split(":")[0].strip()
    words = shlex.split(command.replace("NAME", "h100-8"))[1:]
    assert words[:4] == ["collective", "all-gather", "--size", str(2 * _ELEMENTS)]
    done = wltui(*words)
    assert done.returncode == 0, done.stderr
    assert "busbw" in done.stdout


def test_of_what_no_cluster_is_asked_there_is_no_command(tmp_path: Path) -> None:
    _, page = read(written(tmp_path, "broadcast", (_ELEMENTS, _ELEMENTS)))
    assert "Bandwidths of collectives" in page
    assert "wltui collective" not in page

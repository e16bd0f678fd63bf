"""Bandwidths of collectives whose bytes a trace says: by hand, as nccl-tests define them."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from simcore.measured import MeasuredRun
from simcore.parameters import Parameters
from simcore.render.report.pages import run_json, run_page
from simcore.runs.measured import run_recording
from simcore.sources.inputs import open_input
from tests.command_line.running import wltui_here
from tests.kineto.test_bad_input import event
from tests.says import said

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
    results = run_recording(run, Parameters())
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
    done = wltui_here(*words)
    assert done.returncode == 0, done.stderr
    assert "busbw" in done.stdout


def test_of_what_no_cluster_is_asked_there_is_no_command(tmp_path: Path) -> None:
    _, page = read(written(tmp_path, "broadcast", (_ELEMENTS, _ELEMENTS)))
    assert "Bandwidths of collectives" in page
    assert "wltui collective" not in page


@pytest.mark.parametrize(
    ("name", "elements", "word"),
    [
        ("allreduce", (_ELEMENTS, _ELEMENTS), "all-reduce"),
        ("_allgather_base", (_ELEMENTS // 4, _ELEMENTS), "all-gather"),
    ],
)
def test_beside_it_stands_what_wltui_collective_says_of_a_cluster(
    tmp_path: Path, name: str, elements: tuple[int, int], word: str
) -> None:
    folder = str(written(tmp_path, name, elements))
    alone = wltui_here(
        "collective", word, "--size", str(2 * _ELEMENTS), "--ranks", "0-3", "--cluster", "h100-8", "--json"
    )
    done = wltui_here("report", folder, "--cluster", "h100-8", "--json")
    assert (done.returncode, alone.returncode) == (0, 0), done.stderr + alone.stderr
    (row,), one = json.loads(done.stdout)["measured"]["collectives"], json.loads(alone.stdout)
    assert row["cluster_ns"] == one["time_ns"]
    assert row["cluster_busbw_gbps"] == pytest.approx(one["busbw_gbps"])
    page = wltui_here("report", folder, "--cluster", "h100-8").stdout
    said(page.splitlines(), "on h100-8", "`wltui collective`")
    line = next(line for line in page.splitlines() if line.lstrip().startswith(row["operation"]))
    assert f"{one['busbw_gbps']:.0f}" in line.split()


def test_of_what_no_cluster_can_be_asked_the_columns_are_empty(tmp_path: Path) -> None:
    folder = str(written(tmp_path, "broadcast", (_ELEMENTS, _ELEMENTS)))
    done = wltui_here("report", folder, "--cluster", "h100-8", "--json")
    (row,) = json.loads(done.stdout)["measured"]["collectives"]
    assert "cluster_ns" not in row
    assert "idle network" not in wltui_here("report", folder, "--cluster", "h100-8").stdout


def test_a_cluster_without_these_ranks_and_one_that_is_not_there_are_refused(tmp_path: Path) -> None:
    folder = str(written(tmp_path, "allreduce", (_ELEMENTS, _ELEMENTS)))
    small = tmp_path / "small.toml"
    small.write_text('dim = ["ring:2:100:500"]\n')
    for cluster, words in ((str(small), "2"), ("nowhere", "nowhere")):
        done = wltui_here("report", folder, "--cluster", cluster)
        assert done.returncode in (1, 2)
        assert done.stdout == ""
        assert words in done.stderr

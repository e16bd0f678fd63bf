"""What comes of the Chrome traces of tools that people use: small files in the form of each, by hand.

Of each tool a public file, or the code that writes it, was looked at; the numbers are made up.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from simcore.diagnostics import InputError
from simcore.render.report.pages import run_page
from tests.kineto.test_span_csv import opened, results, written

FOLDER = Path(__file__).parent / "chrome_traces"
# Tool -> by rank how many spans of each category, and the steps.
OPENED: dict[str, tuple[dict[int, dict[str, int]], list[int]]] = {
    # ByteDance's ndtimeline (veScale): a process a dp rank, a thread a rank and stream.
    "ndtimeline": (
        {rank: {"dp": 2, "forward": 1, "backward": 1, "optimizer": 1} for rank in (0, 1)},
        [3],
    ),
    # `_dump_chrometrace` of torch.distributed.pipelining: 0F0, 1SEND_B0.
    "pytorch_pipelining": (
        {0: {"forward": 1, "backward": 1, "pp": 2}, 1: {"forward": 1, "backward": 2, "pp": 2}},
        [0],
    ),
    # NCCL's example profiler plugin: events by id, words without quotes.
    "nccl_profiler_plugin": ({0: {"comm": 1}, 1: {"comm": 1}}, [0]),
    "simumax": ({0: {"forward": 1, "pp": 1}, 1: {"forward": 1, "backward": 1, "pp": 1, "dp": 1}}, [0]),
    # Kernels of several devices from an Nsight Systems database, by nsys2json.
    "nsys2json": ({rank: {"kernel": 1, "comm": 1} for rank in (0, 1)}, [0]),
    # What has no work of training is busy time without a phase.
    "chromium": ({0: {"kernel": 1}, 1: {"kernel": 1}}, [0]),
    "viztracer": ({0: {"kernel": 3}}, [0]),
    "onnxruntime": ({93: {"kernel": 4}}, [0]),
    "llvm_time_trace": ({900: {"kernel": 4}}, [0]),
    "bpftrace": ({0: {"kernel": 1, "host": 1}}, [0]),
}
# Tool -> what its file is called, and a word of what fits.
REFUSED = {
    "horovod": ("Horovod", "torch.profiler"),
    "ray": ("Ray", "torch.profiler"),
    "jax": ("JAX or TensorFlow", "nsys"),
    "tensorflow_timeline": ("JAX or TensorFlow", "nsys"),
}


def test_every_file_is_in_a_table() -> None:
    assert sorted(path.stem for path in FOLDER.glob("*.json")) == sorted([*OPENED, *REFUSED])
    assert len(OPENED) >= 10


@pytest.mark.parametrize("tool", OPENED)
def test_the_trace_of_a_tool_opens_with_its_ranks_and_work(tool: str) -> None:
    ranks, steps = OPENED[tool]
    path = str(FOLDER / f"{tool}.json")
    run = opened(path, step="all")
    found = {
        rank.rank: dict(Counter(rank.ops.category(op) for op in range(len(rank.ops)))) for rank in run.ranks
    }
    assert found == ranks
    assert run.recorded is not None
    assert [step.step_number for step in run.recorded.steps] == steps
    assert run_page(results(path, step="all"))


@pytest.mark.parametrize("tool", REFUSED)
def test_the_trace_of_another_tool_is_refused_by_its_name_with_what_fits(tool: str) -> None:
    name, fitting = REFUSED[tool]
    with pytest.raises(InputError) as caught:
        opened(str(FOLDER / f"{tool}.json"))
    [diagnostic] = caught.value.diagnostics
    assert diagnostic.code == "unsupported-format"
    assert name in diagnostic.message
    assert fitting in diagnostic.message.partition(name)[2]


@pytest.mark.parametrize("index", range(9))
@pytest.mark.parametrize("key", ["pid", "tid", "cat", "dur", "name"])
def test_a_pipeline_in_which_an_event_lacks_a_key_opens(tmp_path: Path, index: int, key: str) -> None:
    """A transfer whose rank is not stated has no second one."""
    events = json.loads((FOLDER / "pytorch_pipelining.json").read_text())["traceEvents"]
    del events[index][key]
    assert opened(written(tmp_path, json.dumps(events), "trace.json")).ranks


def test_words_without_quotes_are_texts_and_known_words_are_not() -> None:
    run = opened(str(FOLDER / "nccl_profiler_plugin.json"))
    [warning] = [one for one in run.diagnostics if one.code == "damaged-file"]
    assert "3 words without quotes" in warning.message


def test_a_collective_of_nccls_plugin_is_of_its_communicator() -> None:
    run = opened(str(FOLDER / "nccl_profiler_plugin.json"))
    calls = [list(rank.device.collectives.values()) for rank in run.ranks]  # type: ignore[union-attr]
    assert [[call.group for call in own] for own in calls] == [["673864846479792718"]] * 2

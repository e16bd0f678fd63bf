"""Open pipes as files: what a shell gives for `<(command)` is read, also where it is read twice."""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from simcore.cluster import ClusterParameters, choose_cluster
from simcore.diagnostics import InputError
from simcore.model.imbalance import expert_loads
from simcore.pipes import read_open_pipe
from simcore.program.order_files import open_order
from simcore.sources.inputs import open_input
from simcore.workload import Workload, open_workload
from simcore.workload.model import ModelParameters


@contextmanager
def piped(data: bytes) -> Iterator[str]:
    """The path of a pipe from which `data` can be read."""
    reading, writing = os.pipe()

    def write() -> None:
        with open(writing, "wb") as file:
            file.write(data)

    thread = threading.Thread(target=write)
    thread.start()
    try:
        # A descriptor may have been another pipe in an earlier test.
        from simcore import pipes

        pipes._contents.clear()
        yield f"/dev/fd/{reading}"
    finally:
        thread.join()
        os.close(reading)


def test_a_workload_is_read_from_a_pipe_as_from_its_file() -> None:
    name = "fixtures/002_gpt_1024npu.txt"
    with piped(Path(name).read_bytes()) as path:
        opened = open_input(path)
    assert isinstance(opened, Workload)
    assert (opened.name, opened.fwd, opened.wg) == (
        (file := open_workload(name)).name,
        file.fwd,
        file.wg,
    )


def test_loads_of_experts_clusters_and_schedules_are_read_from_a_pipe_twice() -> None:
    with piped(b"1 2 3 4") as path:
        given = ModelParameters(expert_imbalance=path)
        first, second = (expert_loads(given, 4, 4, 10) for _ in range(2))
    assert first is not None
    assert first == second
    assert first.of_rank == (4, 8, 12, 16)
    with piped(Path("fixtures/inputs/net4.yml").read_bytes()) as path:
        assert choose_cluster(ClusterParameters(cluster=path)).cluster(4).dims[0].size == 4
    with piped(b"0F0,0B0") as path:
        assert open_order(path).order.microbatches == 1


def test_a_named_pipe_is_not_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "fd"
    os.mkfifo(path)
    assert read_open_pipe(str(path), stat.S_IFIFO, 8) is None
    with pytest.raises(InputError):
        open_workload(str(path))

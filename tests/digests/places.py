"""Where a case runs: in the checkout, or in a folder of execution traces that is there for so long.

Such a set is made of a fixture by the program itself, or one of the stored runs of ASTRA-sim. No output names
the folder: a case is run from inside of it.
"""

from __future__ import annotations

import io
import os
import shlex
import signal
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.executing.stored_runs import RUNS, unpack
from tests.workload.texts import REPOSITORY
from tui.cli import SUCCESS, main

# Name of a set -> what is exported.
MADE = {
    "chakra/000": "fixtures/000_gpt13b_tp4_old_header.txt --world 8 --pp 2 --microbatches 2",
    "chakra/000_slow": (
        "fixtures/000_gpt13b_tp4_old_header.txt --world 8 --pp 2 --microbatches 2 --overlap-grad-reduce "
        "--slow-rank 5=1.5"
    ),
    "chakra/001": "fixtures/001_moe_128npu_with_mistakes.txt --world 8 --tp 2 --microbatches 2",
    "chakra/004": "fixtures/004_megatron_rank7_trace.txt",
}
# What the names of stored runs begin with.
STORED = f"../{RUNS.parent.relative_to(REPOSITORY.parent)}/"


@contextmanager
def place_of(folder: str) -> Iterator[Path]:
    """The folder that paths of a case are named from: the checkout, or (of a set) a new one with its files.

    folder: of the case.
    """
    if not folder:
        yield REPOSITORY
        return
    with TemporaryDirectory() as made:
        name = folder.removeprefix(STORED)
        if name != folder:
            unpack(Path(made), lambda one: one == name)
            yield Path(made) / name
        else:
            _export(MADE[folder], Path(made) / "set")
            yield Path(made) / "set"


def _export(words: str, place: Path) -> None:
    """Write a run as execution traces. words: file and parameters."""
    command = ["export", *shlex.split(words), "--format", "chakra", "-o", str(place)]
    with inside(REPOSITORY), redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()) as said:
        status = main(command)
    assert status == SUCCESS, said.getvalue()


@contextmanager
def inside(place: Path) -> Iterator[None]:
    """Paths are named from there, so that no output knows where that is."""
    before = os.getcwd()
    # `export` puts its own in their place.
    ending = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    handlers = {number: signal.getsignal(number) for number in ending}
    os.chdir(place)
    try:
        yield
    finally:
        os.chdir(before)
        for number, handler in handlers.items():
            signal.signal(number, handler)

"""Examples of what is said of flight recorder dumps."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from simcore.diagnostics import Diagnostic
from simcore.sources.checking import check_file_of
from simcore.sources.inputs import open_input
from tests.diagnostic_examples_measured import Example, relative
from tests.hangs.incidents import DP, Fault, Op, dumps_of, program, write_dumps


def dumps(fault: Fault, change: Callable[[dict[str, Any]], Any] = lambda dump: None) -> Example:
    """What a check says of the dumps of a job, of which that of rank 0 is changed."""

    def example(folder: Path) -> list[Diagnostic]:
        made = dumps_of(fault)
        change(made[0])
        write_dumps(folder / "run", made)
        return relative(check_file_of(lambda: open_input(str(folder / "run"))).diagnostics, folder)

    return example


def damaged(folder: Path) -> list[Diagnostic]:
    (folder / "dump_0").write_bytes(pickle.dumps(dumps_of(Fault())[0], 2)[:4000])
    return relative(check_file_of(lambda: open_input(str(folder / "dump_0"))).diagnostics, folder)


def unnamed(folder: Path, **changes: Any) -> list[Diagnostic]:
    (folder / "dump").write_bytes(pickle.dumps(dumps_of(Fault())[3] | changes, 2))
    return relative(check_file_of(lambda: open_input(str(folder / "dump"))).diagnostics, folder)


def stuck(folder: Path) -> list[Diagnostic]:
    made = dumps_of(Fault(stops={5: 9}))
    for entry in made[6]["entries"]:
        if entry["process_group"][1].startswith("TENSOR") and entry["collective_seq_id"] >= 3:
            entry.update(state="started", retired=False)
    made[6]["pg_status"]["1"]["last_completed_collective"] = 2
    write_dumps(folder / "run", made)
    return relative(check_file_of(lambda: open_input(str(folder / "run"))).diagnostics, folder)


def _with_size(rank: int) -> list[Op]:
    *ops, dp, whole = program(rank)
    return [*ops, Op(DP, dp.name, (7,), line=dp.line), whole]


HANGS: dict[str, Example] = {
    "bad-dump": damaged,
    "hung": dumps(Fault(stops={5: 9})),
    "stuck-ranks": stuck,
    "collective-mismatch": dumps(Fault({1: _with_size(1)})),
    "rank-unknown": partial(unnamed, pg_config={}),
    "rank-assumed": unnamed,
    "missing-key": dumps(Fault(), lambda dump: dump.pop("pg_status")),
    "bad-value": dumps(Fault(), lambda dump: dump["entries"][0].update(time_created_ns="noon")),
    "unknown-version": dumps(Fault(), lambda dump: dump.update(version="3.1")),
}

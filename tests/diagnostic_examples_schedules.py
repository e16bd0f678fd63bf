"""Examples of what is said of schedule files, and of runs that take one."""

from __future__ import annotations

import os
from pathlib import Path

from simcore.diagnostics import Diagnostic
from simcore.parameters import Parameters
from simcore.simulation import simulate
from simcore.sources.checking import check_schedule
from tests.diagnostic_examples_measured import Example, relative
from tests.workload.texts import read, row, text_of


def said_of(text: str) -> Example:
    """What `wltui check` says of a schedule file with this text."""

    def example(folder: Path) -> list[Diagnostic]:
        path = folder / "mine.csv"
        path.write_text(text, encoding="utf-8")
        return relative(check_schedule(str(path)).diagnostics, folder)

    return example


def _run(folder: Path) -> list[Diagnostic]:
    (folder / "mine.csv").write_text("0F0,0B0\n1F0,1B0\n", encoding="utf-8")
    before = os.getcwd()
    os.chdir(folder)
    try:
        found = simulate(read(text_of(row())), Parameters(schedule="mine.csv", world=4)).diagnostics
    finally:
        os.chdir(before)
    return relative(found, folder)


SCHEDULES: dict[str, Example] = {
    "schedule-text": said_of("0F0,0X0,0B0\n"),
    "schedule-missing": said_of("0F0,0F1,0B0\n"),
    "schedule-twice": said_of("0F0,0F0,0B0\n"),
    "schedule-beyond": said_of("0F0,0B0\n1F0,1B0,1F1\n"),
    "schedule-order": said_of("0B0,0F0\n"),
    "schedule-place": said_of("0F0,2F0,2B0,0B0\n1F0,1B0\n"),
    "schedule-deadlock": said_of("0F0,2F0,0F1,2F1,2B0,0B0,2B1,0B1\n1F1,1F0,3F0,3F1,3B0,1B0,3B1,1B1\n"),
    "schedule-left-out": said_of("0UNSHARD,0F0,0B0,0REDUCE_GRAD\n"),
    "schedule-stages": _run,
}

"""The steps of a run as Python has them."""

from __future__ import annotations

from pathlib import Path

import simcore
from tests.kineto.made_jobs import Job, events
from tests.kineto.test_chrome import trace


def test_steps_are_a_table_of_steps_and_ranks(tmp_path: Path) -> None:
    run = simcore.load(trace(tmp_path, *events(Job(3, 1, 1, 2, 4, slow={(1, 0): 2.0})))).run()
    steps = run.steps()
    assert len(steps) == 12
    late = [
        (step, rank)
        for step, rank, ns in zip(steps["step"], steps["rank"], steps["late_ns"], strict=True)
        if ns > 10_000
    ]
    assert late == [(step, 1) for step in range(4)]


def test_a_run_of_one_step_has_none() -> None:
    assert len(simcore.load("fixtures/000_gpt13b_tp4_old_header.txt").run().steps()) == 0

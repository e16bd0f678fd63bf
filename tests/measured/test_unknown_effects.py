"""What nobody can know of a rank alone: what less communication would bring."""

from pathlib import Path

from simcore.measured import MeasuredRun, open_directory
from simcore.render.report.pages import run_json, run_page
from simcore.replay.parameters import Scales
from simcore.runs.measured import RecordedRun
from simcore.sources.inputs import open_input
from simcore.trace.findings import WhatIf
from tests.measured.test_partners import LINES
from tests.measured.test_replay_by_hand import SLOW_RANK, run_of
from tests.measured.traces import write_set
from tui.frame import text_of
from tui.summary.panels import change_line
from tui.why.frame import what_if_line

ALONE = "fixtures/004_megatron_rank7_trace.txt"


def knobs_of(results: RecordedRun) -> dict[str, WhatIf]:
    return {knob.name: knob for knob in results.what_if()}


def alone() -> RecordedRun:
    run = open_input(ALONE)
    assert isinstance(run, MeasuredRun)
    return RecordedRun(run)


def test_less_communication_of_a_rank_alone_brings_nobody_knows_what() -> None:
    """Its replay keeps what was measured, so the step is as long: no reason to say that it would be."""
    results = alone()
    assert results.with_scales(Scales(comm=0.0)).step_time_ns == results.step_time_ns
    knobs = knobs_of(results)
    kinds = ("all", "tp", "dp", "pp", "embedding")
    assert {name for name, knob in knobs.items() if knob.unknown} == {
        f"{kind} communication" for kind in kinds
    }
    assert not knobs["all compute"].unknown


def test_what_is_unknown_has_no_figure_on_the_page_in_the_json_and_on_the_screens() -> None:
    results = alone()
    knobs = list(results.what_if())
    page = run_page(results, with_what_if=True)
    (line,) = [line for line in page.splitlines() if line.startswith("  all communication")]
    assert line.split() == ["all", "communication", "unknown", "unknown"]
    knob = next(one for one in knobs if one.name == "all communication")
    assert f"  unknown: {knob.unknown}" in page
    values = {one["knob"]: one for one in run_json(results, with_what_if=True)["what_if"]}
    found = values["all communication"]
    assert (found["free_ns"], found["better10_ns"]) == (None, None)
    assert found["unknown"] == knob.unknown
    assert "unknown" not in values["all compute"]
    for draw in (change_line, what_if_line):
        words = text_of([draw(knob, (), results.step_time_ns, 40, False)])
        assert "unknown" in words
        assert "=" not in words


def test_where_all_ranks_are_there_every_effect_is_known(tmp_path: Path) -> None:
    write_set(tmp_path, LINES)
    results = RecordedRun(open_directory(str(tmp_path), None))
    assert not results.partners.kinds
    assert not any(knob.unknown for knob in results.what_if())


def test_compute_of_a_rank_alone_is_asked_once() -> None:
    """Planted: `all compute` and `compute of rank 7`, the same thing twice."""
    names = {*knobs_of(alone())}
    assert "all compute" in names
    assert not any(name.startswith("compute of rank") for name in names)
    two = {*knobs_of(RecordedRun(run_of(SLOW_RANK, 2)))}
    assert {"all compute", "compute of rank 0", "compute of rank 1"} <= two

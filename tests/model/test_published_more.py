"""92 more published steps: within the bounds that users can rely on; what a report says of all of them."""

from __future__ import annotations

import json
import statistics
from pathlib import Path
from typing import Any

import pytest

from benchmarks import published_more, published_steps, published_trust
from simcore.model import trust
from simcore.model.gpu import find_gpu
from simcore.model.training import resolve_training
from simcore.render.report.pages import run_json, run_page
from simcore.runs.simulated import SimulatedRun
from simcore.workload.model import ModelParameters
from tests.findings import facts
from tests.model.test_megatron import SMALL, run
from tui.frame import BLOCKS, text_of
from tui.summary.panels import step_lines

needs_rows = pytest.mark.skipif(
    not published_more.ROWS.exists(), reason="../shared/validation/published_2.json is not here"
)
needs_steps = pytest.mark.skipif(
    not published_steps.STEPS.exists(), reason="../shared/validation/steps.json is not here"
)


@pytest.mark.slow
@needs_rows
def test_bounds() -> None:
    """Median, nine of ten, the worst and the bias of all; each source with three steps and more."""
    made = published_more.all_made()
    assert len(made) == 92
    median, most, worst = published_steps.spread(one.error for one in made)
    assert (median <= 0.055, most <= 0.18, worst < 0.60) == (True, True, True)
    assert abs(statistics.median(one.error for one in made)) <= 0.03
    of_source = published_more.grouped(made, lambda one: one.row["source"])
    medians = {
        source: statistics.median(abs(one.error) for one in ones)
        for source, ones in of_source.items()
        if len(ones) >= 3
    }
    assert {source: median for source, median in medians.items() if median > 0.125} == {}


@pytest.mark.slow
@needs_rows
def test_one_mfu_is_the_median_of_the_other_half() -> None:
    """Planted: its own half. Row 0 is even, so its MFU is that of odd rows of H100 in BF16."""
    made = {one.row["id"]: one for one in published_more.all_made()}
    others = [one.mfu for number, one in made.items() if number % 2 and one.kind[:2] == ("h100", "bf16")]
    expected = made[0].mfu / statistics.median(others) - 1
    errors = published_more.constant_errors()
    assert errors[0] == pytest.approx(expected)
    assert set(errors) == set(made)


@pytest.mark.slow
@needs_rows
def test_each_row_is_of_the_kind_that_it_states() -> None:
    """Planted: mxfp8 as a precision of its own."""
    names = {"a100": "a100-80", "h100gt": "h100"}
    for one in published_more.all_made():
        assert one.kind.gpu == names.get(one.row["gpu"], one.row["gpu"])
        assert one.kind.precision == one.row["precision"]
        assert one.training.world == one.row["world"]
        compiles = "--compile on" in one.row["engine"]
        assert (one.kind.engine in one.row["engine"].split(), one.kind.compiled) == (True, compiles)


@pytest.mark.slow
@needs_rows
@needs_steps
def test_the_file_that_reports_quote_is_what_is_computed() -> None:
    """`python benchmarks/accuracy.py --write trust` makes it anew."""
    steps = published_steps.all_off()
    assert trust.FILE.read_text("utf-8") == published_trust.csv(steps)
    errors = published_trust.errors_by_kind(steps)
    # steps.json, published_2.json and fsdp.json.
    assert sum(map(len, errors.values())) == 540 + 92 + 56
    # By hand: SimuMax's 22 are all that B200 has in BF16.
    simumax = [one.made / one.row["seconds"] - 1 for one in steps if one.row["source"] == "B200"]
    assert errors[trust.Kind("b200", "bf16", "megatron", False)] == simumax


def _said(**given: Any) -> tuple[str, dict[str, Any]]:
    """(the line below the step, the JSON) of a report."""
    results = SimulatedRun(run(SMALL, world=8, global_batch=8, **given))
    lines = [line.strip() for line in run_page(results).split("\n\n")[0].splitlines()]
    # Behind the step, what a micro-batch takes and tokens a second.
    return lines[3], json.loads(json.dumps(run_json(results)))["trust"]


def test_what_a_report_says_of_published_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Known and unknown kinds, many steps, few and one, and a file. Planted: `of_file` by the file's name."""
    table = tmp_path / "published.csv"
    lines = (
        "h100,fp8,megatron,off,31,0.06,0.17",
        "b200,fp8,megatron,off,40,0.06,0.17",
        "h100,bf16,fsdp,on,3,0.101,0.122",
        "h100,bf16,fsdp,off,1,0.023,0.023",
    )
    table.write_text("\n".join((trust.HEAD, *lines)) + "\n", "utf-8")
    monkeypatch.setattr(trust, "FILE", table)
    trust._published.cache_clear()
    try:
        words = "H100, FP8, Megatron: 31 published steps, median 6.0 % off, 9 of 10 within 17.0 %"
        known = {"gpu": "h100", "precision": "fp8", "engine": "megatron", "compiled": False, "steps": 31,
                 "median": 0.06, "p90": 0.17}  # fmt: skip
        assert _said(gpu="h100", precision="fp8") == (words, known)
        blackwell = (words.replace("H100", "B200").replace("31", "40"), known | {"gpu": "b200", "steps": 40})
        assert _said(gpu="b200", precision="fp8") == blackwell
        assert _said(gpu="b200", precision="mxfp8") == blackwell
        none = {"gpu": "b200", "precision": "nvfp4", "steps": 0, "median": None, "p90": None}
        said, values = _said(gpu="b200", precision="nvfp4")
        assert said.startswith("no published step")
        assert (facts(said), "Megatron" in said) == ("B200, NVFP4", True)
        assert values == known | none
        said = _said(gpu="h100", zero="3", compile="on")[0]
        assert said == "H100, BF16, FSDP compiled: 3 published steps, median 10.1 % off, all within 12.2 %"
        assert _said(gpu="h100", zero="3")[0] == "H100, BF16, FSDP: 1 published step, 2.3 % off"
        own = tmp_path / "h100"
        own.write_text('[gpu]\nbase = "h100"\nnetwork = 30\n', "utf-8")
        assert _said(gpu=str(own), precision="fp8") == (f"constants of a file; of {words}", known)
        said = _said(gpu=str(own))[0]
        assert "; no published step" in said
        assert (facts(said), "Megatron" in said) == ("H100, BF16", True)
    finally:
        trust._published.cache_clear()


def test_a_file_that_takes_nothing_from_a_gpu_has_no_published_step(tmp_path: Path) -> None:
    given = find_gpu("h100")
    path = tmp_path / "own.toml"
    numbers = (name for name in given.__struct_fields__ if name not in ("name", "source", "bases"))
    path.write_text("[gpu]\n" + "".join(f"{name} = {getattr(given, name)}\n" for name in numbers), "utf-8")
    said = trust.published_error(resolve_training(SMALL, ModelParameters(gpu=str(path))), find_gpu(str(path)))
    assert said.words.startswith("constants of a")
    assert "no published step" in said.words
    assert (said.kind.gpu, said.steps) == ("", 0)


def test_a_screen_says_it_where_a_row_is_left() -> None:
    """Planted: the longest form in any width."""
    results = SimulatedRun(run(SMALL, gpu="h100", world=8, global_batch=8))
    figures = results.model.model_figures
    assert figures is not None
    assert figures.trust is not None
    long, short = figures.trust.short_words
    for width, words in ((64, long), (38, short)):
        tight, roomy = (text_of(step_lines(results, BLOCKS, width, rows)).splitlines() for rows in (6, 9))
        assert not any("published" in line for line in tight)
        assert [line.strip() for line in roomy if "published" in line] == [words]


def test_every_line_of_the_file_is_of_a_known_kind() -> None:
    from simcore.model.engines import ENGINES
    from simcore.names import GPU_NAMES

    for kind, (steps, median, p90) in trust._published().items():
        assert (kind.gpu in GPU_NAMES, kind.engine in ENGINES) == (True, True)
        assert kind.precision in ("bf16", "fp8", "nvfp4")
        assert steps > 0
        assert 0 <= median <= p90 < 1

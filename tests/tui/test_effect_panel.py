"""The panel beside the form: its legend has what its bars draw, whatever the run."""

from __future__ import annotations

import pytest

from simcore.runs.simulated import SimulatedRun
from simcore.workload import open_workload
from tests.tui.made_runs import lonely, run, seed, small, some_runs, two_stages
from tests.tui.pseudo_terminal import ROOT
from tui.frame import ASCII, BLOCKS, Glyphs, width_of
from tui.parameters.effect import effect_lines

WORDS = {
    "fwd": "forward", "bwd": "backward", "opt": "optimizer", "exposed": "exposed", "wait": "wait",
    "bubble": "bubble", "idle": "idle",
}  # fmt: skip
SHORT = {**WORDS, "fwd": "fwd", "bwd": "bwd", "opt": "opt"}


def panel(opened: SimulatedRun, now: SimulatedRun, width: int, glyphs: Glyphs) -> tuple[list[str], str]:
    """(the bars without their labels, the legend)."""
    lines = effect_lines(opened, now, [], [], "", (width, 40), glyphs)
    texts = ["".join(text for text, _ in line) for line in lines]
    at = next(index for index, text in enumerate(texts) if text.startswith("where it goes"))
    assert all(width_of(line) <= width for line in lines)
    return [text[17 if now is not opened else 15 :] for text in texts[at + 1 : -1]], texts[-1]


@pytest.mark.parametrize("glyphs", [BLOCKS, ASCII], ids=["blocks", "ascii"])
@pytest.mark.parametrize("width", [50, 130])
@pytest.mark.parametrize("changed", [False, True])
def test_the_legend_has_what_the_bars_draw_and_nothing_else(
    glyphs: Glyphs, width: int, changed: bool
) -> None:
    slower = run(two_stages(), dim=("switch:2:4:50", "switch:4:2:300"), compute_scale=3.0)
    pairs = [(one, one) for one in some_runs()] if not changed else [(small(), slower), (slower, small())]
    for opened, now in pairs:
        bars, legend = panel(opened, now, width, glyphs)
        drawn = set("".join(bars)) - {" "}
        named = {glyphs.fills[name]: name for name in WORDS if name != "idle"}
        assert drawn <= set(named)
        for glyph, name in named.items():
            said = any(f"{glyph} {words[name]} " in f"{legend} " for words in (WORDS, SHORT))
            assert said == (glyph in drawn), (glyph, legend)


def test_blank_cells_are_named_where_a_rank_is_idle_and_not_where_a_run_is_over() -> None:
    _, legend = panel(seed(), seed(), 50, BLOCKS)
    assert legend == "▄ forward █ backward ▌ exposed ▁ bubble   idle"
    _, legend = panel(lonely(5000), lonely(1000), 50, BLOCKS)
    assert legend == "▄ forward"


def test_a_legend_that_is_too_long_has_short_words() -> None:
    one = run(open_workload(str(ROOT / "fixtures" / "001_moe_128npu_with_mistakes.txt")))
    legends = [panel(one, one, width, BLOCKS)[1] for width in (130, 49)]
    assert legends == [
        "▄ forward █ backward ▇ optimizer ▌ exposed ▁ bubble   idle",
        "▄ fwd █ bwd ▇ opt ▌ exposed ▁ bubble   idle",
    ]

"""Whole screens of a model on a layout as text. After a wanted change: `--snapshot-update`."""

from __future__ import annotations

from functools import cache

import pytest
from syrupy.assertion import SnapshotAssertion

from simcore.model.known_models import MODELS
from simcore.model.maker import ModelMaker
from simcore.parameters import Parameters
from simcore.runs.simulated import SimulatedRun
from simcore.simulation import simulate
from tests.tui.conftest import MakeApp
from tests.tui.screen_reading import frames_after, press, resize, run_over, screen_rows
from tests.tui.test_text_frames import frame_after
from tui.summary.panels import step_facts
from tui.sweep.asking import prepare_sweep, suggest_words

SIZES = [(80, 24), (200, 50)]
# It fits, and with smaller memory it does not.
FRAMES = {
    "summary": ("80GB", ()),
    "summary, does not fit": ("40GB", ()),
    "summary, what fits tried": ("40GB", ("t",)),
    "timeline, memory": ("80GB", ("2", "j")),
    "timeline, too full": ("40GB", ("2", "j", *"www")),
    "layers, a row as its ops": ("80GB", ("3", "j")),
    "why": ("40GB", ("4",)),
    "parameters": ("80GB", ("5",)),
    "parameters, changed": ("40GB", ("5", *"jjj", "L")),
    "parameters, refused": ("80GB", ("5", "j", "enter", "backspace", "3", "enter")),
    "runs": ("40GB", ("t", "R")),
    "compare": ("40GB", ("t", "6")),
    "notes": ("80GB", ("exclamation_mark",)),
}


@cache
def llama(limit: str) -> SimulatedRun:
    opened = ModelMaker("llama-3-8b", MODELS["llama-3-8b"]).empty_workload()
    return SimulatedRun(simulate(opened, Parameters(gpu="h100", world=16, tp=2, pp=2, global_batch=64,
                                               memory_limit=limit)))  # fmt: skip


@pytest.mark.sampled(6)
@pytest.mark.parametrize("name", FRAMES)
async def test_the_screen_of_a_model_is_drawn_as_before(
    make_app: MakeApp, snapshot: SnapshotAssertion, name: str
) -> None:
    limit, keys = FRAMES[name]
    # How far lanes are scrolled hangs on the size before.
    apart = name.startswith("timeline") or name == "compare"
    for sizes in [[size] for size in SIZES] if apart else [SIZES]:
        app = make_app(llama(limit), first="summary")
        # `t` tries what has been found.
        for size, text in (await frames_after(app, sizes, keys, before=True)).items():
            assert text == snapshot(name=size)


@pytest.mark.parametrize(
    "name", ["summary, does not fit", "timeline, too full", "parameters, refused", "layers, a row as its ops"]
)
async def test_the_screen_of_a_model_in_ascii_is_drawn_as_before(
    make_app: MakeApp, snapshot: SnapshotAssertion, name: str
) -> None:
    limit, keys = FRAMES[name]
    text = await frame_after(make_app(llama(limit), first="summary", ascii_only=True), (80, 24), keys)
    assert text.isascii()
    assert text == snapshot


async def test_the_first_row_has_a_models_layout_and_what_was_changed_of_it(make_app: MakeApp) -> None:
    app = make_app(llama("36GB"), first="summary")
    widths = (80, 100, 120, 200)
    async with app.run_test(size=(80, 24)) as pilot:
        await run_over(pilot)
        for width in widths:
            await resize(pilot, width, 24)
            before = screen_rows(app)[0]
            assert "62.6 of 36" in before
            # On 80 columns `does not fit` has its place.
            assert ("16 ranks = tp 2 x dp 4 x pp 2" if width > 80 else "does not fit") in before
        await press(pilot, "t")
        await run_over(pilot)
        for width in widths:
            await resize(pilot, width, 24)
            after = screen_rows(app)[0]
            # Memory and throughput differ with every change; what was changed stands before them.
            assert "zb-v" in after
            assert after.index("tp 4") < after.index("zb-v")
            assert "FU" not in after[: after.index("zb-v")]


def test_an_inference_step_has_its_tokens_in_place_of_micro_batches() -> None:
    opened = ModelMaker("m", MODELS["llama-3-8b"]).empty_workload()
    found = SimulatedRun(simulate(opened, Parameters(decode=8, context=1000, gpu="h100")))
    facts = ["".join(text for text, _ in line) for line in step_facts(found, 64)]
    assert any("a token" in fact and "tokens/s" in fact for fact in facts)
    assert not any("micro-batch" in fact for fact in facts)
    for wide in (False, True):
        assert any("tokens/s" in fact for fact in found.figures.headline(wide))


def test_an_inference_step_is_swept_over_its_own_parameters() -> None:
    opened = ModelMaker("llama-3-8b", MODELS["llama-3-8b"]).empty_workload()
    found = SimulatedRun(simulate(opened, Parameters(decode=8, context=1000, gpu="h100")))
    space = prepare_sweep(found, suggest_words(found)).evaluator.definition.space
    assert not space.layouts
    assert {"tp", "kv_dtype"} <= {*space.varied}

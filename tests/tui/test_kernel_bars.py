"""The kernels of a profile on screen 1: each figure is that of the trace's own kernel table."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

from simcore.kernel_families import COMMUNICATION, COPY, OTHER, family_of
from simcore.parameters import OpeningOptions, Parameters
from simcore.replay.operations import Operations
from simcore.runs.measured import RecordedRun, run_recording
from simcore.sources.inputs import open_input
from simcore.units import duration, percent
from tests.kineto.corpus import CORPUS, GLOO, needs_corpus
from tests.kineto.test_bad_input import event
from tests.kineto.test_layers import run_of
from tests.tui.made_runs import line_text
from tui.frame import ASCII, BLOCKS, Glyphs, text_of
from tui.summary.frame import draw
from tui.summary.kernels import Kernels
from tui.summary.model import MAP, SummaryModel
from tui.summary.side_panels import Waits

_MANY = 10_000
_FIGURES = re.compile(r" (\d+\.\d) +(\d+) +(\d[\d.]* \w?s)$")


@cache
def profile(path: str) -> RecordedRun:
    run = open_input(str(CORPUS / path), OpeningOptions(cache=False))
    return run_recording(run, Parameters())  # type: ignore[arg-type]


def kernels_of(run: RecordedRun) -> Kernels:
    """The panel of a run."""
    return Kernels(run, lambda: None)


def small_profile(tmp_path: Path) -> RecordedRun:
    """Two GEMM kernels, 10 and 20 us, a collective of 40 us, and a copy of 5 us, one after another."""
    names = (
        ("gemm_nn", "kernel", 10),
        ("gemm_nt", "kernel", 20),
        ("ncclDevKernel_SendRecv(x)", "kernel", 40),
        ("Memcpy HtoD (Pinned -> Device)", "gpu_memcpy", 5),
    )
    events, at = [], 100
    for name, category, us in names:
        events.append(event(name=name, cat=category, ts=at, dur=us))
        at += us
    return run_recording(run_of(tmp_path, events), Parameters())


def panel_texts(panel: Kernels, width: int, rows: int = _MANY, glyphs: Glyphs = BLOCKS) -> list[str]:
    """The rows of the panel, as drawn, without its heading."""
    return [line_text(line) for line in panel.lines(width, rows, (0, 0), glyphs, False)][1:]


def figures_of(text: str) -> tuple[str, str, str]:
    """(share, count, mean) of a row."""
    found = _FIGURES.search(text)
    assert found is not None, text
    return found[1], found[2], found[3]


def test_a_small_profile_has_its_families_and_their_kernels(tmp_path: Path) -> None:
    texts = panel_texts(kernels_of(small_profile(tmp_path)), 80)
    assert [(re.split(" {2,}", text.strip())[0], *figures_of(text)) for text in texts] == [
        # NCCL's prefix is cut; a family of one kernel is that kernel.
        ("SendRecv", "53.3", "1", "40.000 us"),
        ("GEMM gemm_", "40.0", "2", "15.000 us"),
        # What both begin with stands above them.
        ("nt", "26.7", "1", "20.000 us"),
        ("nn", "13.3", "1", "10.000 us"),
        ("Memcpy HtoD (Pinned -> Device)", "6.7", "1", "5.000 us"),
    ]


@needs_corpus
@pytest.mark.parametrize("width", [44, 66, 100])
@pytest.mark.parametrize("path", ["nccl_data.json.gz", "dlrm_8", "h100_qwen.json.gz"])
def test_figures_are_those_of_the_table_of_kernels(path: str, width: int) -> None:
    run = profile(path)
    panel, table = kernels_of(run), Operations(run)
    texts = panel_texts(panel, width)
    expected = {
        kernel.name: (
            percent(kernel.cost_ns, run.step_time_ns),
            str(kernel.runs.count),
            duration(round(kernel.runs.run_ns or 0)),
        )
        for kernel in table.together
    }
    seen = {}
    for row, text in zip(panel.rows, texts, strict=True):
        if row.kernel is not None:
            assert row.kernel.name not in seen
            seen[row.kernel.name] = figures_of(text)
    assert seen == expected


@needs_corpus
@pytest.mark.parametrize("path", ["nccl_data.json.gz", "dlrm_8"])
def test_a_family_is_the_sum_of_its_kernels_and_all_families_are_the_run(path: str) -> None:
    run = profile(path)
    ranks = run.run.ranks
    count: dict[str, int] = {}
    total_ns: dict[str, int] = {}
    for rank in ranks:
        ops = rank.ops
        for at, name in enumerate(ops.name):
            kind = ops.category(at)
            family = COPY if kind == "copy" else family_of(name)
            if kind not in ("copy", "forward", "backward", "optimizer", "kernel"):
                family = COMMUNICATION
            count[family] = count.get(family, 0) + 1
            total_ns[family] = total_ns.get(family, 0) + ops.end[at] - ops.start[at]
    panel = kernels_of(run)
    families = {row.family.name: row for row in panel.rows if not row.is_inside}
    assert {name: row.calls for name, row in families.items()} == count
    for name, row in families.items():
        assert round(row.call_ns) == round(total_ns[name] / count[name])
    # Of one rank nothing is counted twice or left out: its accounts are those of the families.
    if len(ranks) == 1:
        busy = run.accounts[0].busy_ns + run.accounts[0].all_exposed_ns
        assert sum(row.cost_ns for row in families.values()) == busy
    else:
        assert all(
            max(kernel.cost_ns for kernel in row.family.kernels)
            <= row.cost_ns
            <= sum(kernel.cost_ns for kernel in row.family.kernels)
            for row in families.values()
        )


@needs_corpus
@pytest.mark.parametrize("path", ["nccl_data.json.gz", "dlrm_8", "h100_qwen.json.gz"])
def test_in_few_rows_are_the_families_and_then_the_kernels_that_take_most(path: str) -> None:
    panel = kernels_of(profile(path))
    everything = panel_texts(panel, 80)
    families = [text for row, text in zip(panel.rows, everything, strict=True) if not row.is_inside]
    for rows in range(2, 30):
        texts = panel_texts(panel, 80, rows)
        assert len(texts) == min(rows - 1, len(everything))
        assert [text for text in everything if text in texts] == texts
        shown = [text for text in families if text in texts]
        assert shown == families[: len(shown)]
        assert len(shown) == min(rows - 1, len(families))
    # The row at the cursor is there, whatever it takes.
    for at in range(len(everything)):
        (line,) = [
            text for text in map(line_text, panel.lines(80, 4, (at, 0), BLOCKS, True)) if ">" in text[0]
        ]
        assert line[1:] == everything[at][1:]


@needs_corpus
@pytest.mark.parametrize("glyphs", [BLOCKS, ASCII], ids=["blocks", "ascii"])
@pytest.mark.parametrize("width", [20, 40, 66, 84, 130])
def test_no_row_is_wider_than_the_panel_and_bars_are_in_proportion(width: int, glyphs: Glyphs) -> None:
    panel = kernels_of(profile("dlrm_8"))
    lines = panel.lines(width, _MANY, (0, 0), glyphs, False)
    assert max(len(line_text(line)) for line in lines) <= max(width, 42)
    if glyphs is ASCII:
        assert text_of(lines).isascii()
    most = max(row.cost_ns for row in panel.rows)
    for row, line in zip(panel.rows, lines[1:], strict=True):
        bar = line[1][0]
        parts = len(glyphs.bar) - 1
        filled = sum(glyphs.bar.index(cell) for cell in bar)
        assert abs(filled - parts * len(bar) * row.cost_ns / most) <= 1


@needs_corpus
def test_i_leads_from_kernels_to_waits_to_a_replay_and_back() -> None:
    model = SummaryModel(profile("dlrm_8"))
    seen = []
    for _ in range(4):
        seen.append(type(model.side_panel).__name__ + str(getattr(model.side_panel, "shows_replay", "")))
        model.next_side_panel()
    assert seen == ["Kernels", "WaitsFalse", "WaitsTrue", "Kernels"]
    # One rank waits for nobody.
    model = SummaryModel(profile("nccl_data.json.gz"))
    model.next_side_panel()
    assert isinstance(model.side_panel, Waits)
    assert model.side_panel.shows_replay


@needs_corpus
@pytest.mark.parametrize(("width", "height"), [(80, 21), (100, 27), (120, 33), (200, 47)])
def test_one_rank_has_its_kernels_on_every_screen(width: int, height: int) -> None:
    run = profile("nccl_data.json.gz")
    model = SummaryModel(run)
    frame = text_of(draw(model, width, height, BLOCKS, ""))
    assert re.search("─ (> )?Kernels,? .*─ % of step ─", frame)
    most = kernels_of(run).rows[0]
    share, count, mean = percent(most.cost_ns, run.step_time_ns), most.calls, duration(round(most.call_ns))
    assert re.search(rf"{most.family.name} .* {share} +{count} +{mean}", frame)


@needs_corpus
def test_enter_leads_to_the_longest_call_of_the_kernel() -> None:
    run = profile("nccl_data.json.gz")
    model, table = SummaryModel(run), Operations(run)
    model.panel = MAP
    for at, row in enumerate(model.side_panel.rows):  # type: ignore[attr-defined]
        model.set_cursor(MAP, at)
        target = model.target()
        assert target is not None
        longest = table.find_longest_run(row.kernel or row.family.kernels[0])
        assert (target.track_id, target.start_ns, target.end_ns) == longest[:3]


@needs_corpus
def test_a_replay_shows_what_it_changes_and_a_trace_of_hosts_has_no_kernels() -> None:
    run = profile("dlrm_8")
    model = SummaryModel(run)
    model.show(run_recording(run.measured, Parameters(replay=True)))
    assert isinstance(model.side_panel, Waits)
    model.show(run)
    assert isinstance(model.side_panel, Kernels)
    assert isinstance(SummaryModel(profile(GLOO.name)).side_panel, Waits)


@pytest.mark.parametrize(
    ("name", "family"),
    [
        ("volta_sgemm_128x32_nn", "GEMM"),
        ("nvjet_hsh_128x256_64x4_2x1_v_bz_coopA_NTN", "GEMM"),
        ("void pytorch_flash::flash_fwd_kernel<pytorch_flash::Flash_fwd_kernel_traits<64>>(x)", "attention"),
        ("sm80_xmma_fprop_implicit_gemm_tf32f32", "convolution"),
        ("void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::MeanOps<float>, 4> >(int)",
         "reduction"),
        ("void cublasLt::splitKreduce_kernel<32, 16, int>(int)", "GEMM"),
        ("void at::native::(anonymous namespace)::softmax_warp_forward<float>(int)", "softmax, loss"),
        ("void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<int>>(x)", "elementwise"),
        # What a kernel's arguments are named after is not what it computes.
        ("void fbgemm_gpu::permute_2D_data_kernel<false>(int)", "elementwise"),
        ("split_embedding_codegen_forward_kernel<float>(fbgemm_gpu::State)", "embedding"),
        ("my_own_kernel", OTHER),
    ],
)  # fmt: skip
def test_a_family_is_known_by_the_name(name: str, family: str) -> None:
    assert family_of(name) == family

"""`--rescale on`: rows for another layout are AICB's own, there and back is the file, and it is said."""

import json
import shlex
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, assume, given, settings
from hypothesis import strategies as st

from simcore.diagnostics import UsageError
from simcore.model.aicb import aicb_rows
from simcore.model.aicb_arguments import AicbArguments
from simcore.parameters import Parameters
from simcore.records import replace
from simcore.recovery import recover
from simcore.recovery.rescale import can_rescale, recover_cached, rescale_rows
from simcore.simulation import simulate
from simcore.workload import Workload
from simcore.workload.formats.simai_text import read
from simcore.workload.model import DegreeParameters
from simcore.workload.opening import open_workload
from tests.command_line.running import ROOT, SEED_002
from tests.model.test_aicb import HERE, SHARED, arguments, command_of, index, text_of
from tests.says import said
from tui.cli import main

# An example is a whole file: what a smaller one would be takes minutes to find.
NO_SHRINKING = (Phase.explicit, Phase.reuse, Phase.generate)
# Where the rows alone count: a third of what seed 002 takes in a report, a fifth on a screen.
DEEPSEEK = str(HERE / index(HERE)[2]["file"])
SEED_000 = str(ROOT / "fixtures" / "000_gpt13b_tp4_old_header.txt")


def sent(text: str) -> list[tuple[str, ...]]:
    """Names, types and bytes of the rows of a file."""
    rows = [line.split() for line in text.rstrip("\n").split("\n")[2:]]
    return [(row[0], *row[3:5], *row[6:8], *row[9:11]) for row in rows]


def made(text: str, microbatches: int | None = None, **degrees: int) -> str:
    return made_of(read("made.txt", text.encode()), text, microbatches, **degrees)


def made_of(workload: Workload, text: str, microbatches: int | None = None, **degrees: int) -> str:
    found = rescale_rows(workload, DegreeParameters(**degrees), microbatches)  # type: ignore[arg-type]
    return text if found is None else found.text


@pytest.mark.slow
@given(arguments(), st.sampled_from([1, 2, 4, 8]), st.sampled_from([1, 2, 3]), st.sampled_from([1, 2, 4]))
@settings(max_examples=80, deadline=None, phases=NO_SHRINKING)
def test_rescaled_rows_are_aicbs_own_and_come_back(o: dict[str, Any], tp: int, pp: int, ep: int) -> None:
    o |= {
        "num_layers": 12,
        "pp": 1,
        "heads": 16,
        "global_batch": 64,
        "micro_batch": 1,
        "world_size": o["tp"] * 8,
    }
    world = o["world_size"]
    o["ep"] = o["ep"] if o["moe"] else 1
    if o["moe"] and 1 in (o["ep"], ep):
        # No row says how many experts there are: with latent attention it takes seconds to find them.
        o["deepseek"] = False
    try:
        text = text_of(command_of(o))
    except UsageError:
        assume(False)
    workload = read("made.txt", text.encode())
    # What was recovered is kept.
    found = recover_cached(workload)
    assume(found.exact and found.config is not None)
    assert found.config is not None
    degrees = {"tp": tp, "pp": pp, "ep": ep if o["moe"] else 1}
    assume(world % (tp * pp) == 0 and 64 // (world // (tp * pp)) > 0)
    try:
        there = made_of(workload, text, **degrees)
    except UsageError:
        return
    # AICB's own for the other layout, of the config that was recovered.
    other = replace(found.config, **degrees)
    assert sent(there) == sent("\n\n" + "\n".join(row.text() for row in aicb_rows(other, found.times)))
    back = {name: o[name] for name in ("tp", "pp", "ep")}
    assert made(there, **back) == text


@pytest.mark.sampled(20)
@pytest.mark.parametrize("run", index(SHARED) if SHARED.exists() else [], ids=lambda run: run["file"][:3])
@pytest.mark.parametrize("degrees", [{"tp": 2, "pp": 2}, {"tp": 8}, {"pp": 4, "tp": 4}], ids=str)
def test_aicbs_files_rescaled_are_what_it_is_given_for_that_layout(
    run: dict[str, Any], degrees: dict[str, int]
) -> None:
    text = (SHARED / run["file"]).read_text("utf-8")
    meant = AicbArguments(run["command"]).config
    try:
        there = made(text, **degrees)
    except UsageError as error:
        refused = str(error)
        there = ""
    if not there:
        assert "would fit" in refused
        return
    other = replace(meant, **degrees)
    if meant.microbatches * meant.microbatch_size * meant.dp == meant.global_batch:
        times = recover(read("x", text.encode())).times
        assert sent(there) == sent("\n\n" + "\n".join(row.text() for row in aicb_rows(other, times)))
    assert made(there, tp=meant.tp, pp=meant.pp) == text


@pytest.mark.parametrize(
    "degrees", ["--tp 4", "--tp 16 --pp 8", "--pp 4", "--world 512", "--pp 5 --world 960"]
)
def test_a_file_written_there_and_back_is_the_file_again(degrees: str, tmp_path: Path) -> None:
    there, back = tmp_path / "there.txt", tmp_path / "back.txt"
    words = ["--rescale", "on", "--format", "simai", "-o"]
    assert main(["export", SEED_002, *degrees.split(), *words, str(there)]) == 0
    assert main(["export", str(there), "--tp", "8", "--pp", "16", "--world", "1024", *words, str(back)]) == 0
    assert back.read_text("utf-8").rstrip("\n") == Path(SEED_002).read_text("utf-8").rstrip("\n")


def test_cells_are_the_files_times_the_ratio_of_what_they_cost() -> None:
    workload = open_workload(SEED_002)
    found = rescale_rows(workload, DegreeParameters(tp=16), None)
    assert found is not None
    (note,) = (one for one in found.workload.diagnostics if one.code == "rescaled")
    assert "from tp 8 to tp 16: a global batch of 128, 32 micro-batches of 1" in note.message
    before, after = workload.fwd.compute_ns[7], found.workload.fwd.compute_ns[7]
    assert 0.45 < after / before < 0.55
    assert f"attention {after / before:.3g}" in note.message


def test_a_run_takes_the_rows_and_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", DEEPSEEK, "--tp", "1", "--rescale", "on"]) == 0
    page = capsys.readouterr().out
    assert "rescaled   from tp 2 to tp 1" in page
    assert "not rescaled" not in page
    assert main(["compare", DEEPSEEK, "--with", "--tp 1 --rescale on"]) == 0
    page = capsys.readouterr().out
    said(page.splitlines(), "B:", "rescaled", "tp 2 to tp 1")
    assert "--rescale on, --tp 1" in page


def test_it_is_offered_where_a_degree_is_changed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", DEEPSEEK, "--tp", "1"]) == 0
    page = " ".join(capsys.readouterr().out.split())
    said([page], "not rescaled: tp 1", "tp 2", "--rescale on")
    # Its gather was edited: what of it would be made anew?
    assert main(["report", SEED_000, "--tp", "2"]) == 0
    assert "--rescale" not in capsys.readouterr().out


def test_micro_batches_follow_unless_they_are_given() -> None:
    workload = open_workload(SEED_002)
    assert simulate(workload, Parameters(rescale="on", tp=4)).program.microbatches == 8
    assert simulate(workload, Parameters(rescale="on", tp=4, microbatches=16)).program.microbatches == 16
    assert simulate(workload, Parameters(tp=4)).program.microbatches == 16


def test_without_another_degree_it_is_the_file() -> None:
    workload = open_workload(SEED_002)
    plain, on = simulate(workload, Parameters()), simulate(workload, Parameters(rescale="on"))
    assert on.step_time_ns == plain.step_time_ns
    assert not on.workload.rescaled


@pytest.mark.parametrize(
    ("path", "words", "says"),
    [
        (SEED_000, "--tp 2", "AICB's but for row 0 (line 3), grad_gather"),
        (SEED_002, "--tp 3 --world 768", "does not divide the hidden size 16384"),
        (SEED_002, "--pp 5", "is not a multiple of tp 8 x pp 5"),
        (SEED_002, "--pp 128 --world 1024 --tp 8 --ep 2", "does not divide the 1 experts"),
        (SEED_002, "--dialect astra-sim-1", "is of dialect simai"),
    ],
)
def test_what_cannot_be_rescaled_says_why(
    path: str, words: str, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", path, "--rescale", "on", *shlex.split(words)]) == 2
    assert says in capsys.readouterr().err


def test_json_names_it_only_where_it_is_on(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", DEEPSEEK, "--json"]) == 0
    assert "rescale" not in json.loads(capsys.readouterr().out)["parameters"]
    assert main(["report", DEEPSEEK, "--tp", "1", "--rescale", "on", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["parameters"]["rescale"] == "on"


def test_what_can_be_rescaled_is_asked_once() -> None:
    assert can_rescale(open_workload(str(HERE / index(HERE)[0]["file"])))
    assert not can_rescale(open_workload(SEED_000))


@pytest.mark.slow
def test_the_header_and_screen_6_say_rescaled(capsys: pytest.CaptureFixture[str]) -> None:
    """Where there is least room for it."""
    keys = "5 j Enter Backspace 1 Enter j j j j l 6"
    assert main([DEEPSEEK, "--no-session", "--size", "80x24", "--snapshot", keys]) == 0
    lines = capsys.readouterr().out.split("\n")
    assert "+32.6 % rescaled" in "".join(lines[:2])
    assert any("--rescale on, --tp 1" in line for line in lines)


@pytest.mark.slow
def test_the_form_asks_once_a_degree_is_another_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([DEEPSEEK, "--no-session", "--size", "120x40", "--snapshot", "5"]) == 0
    assert "rescale" not in capsys.readouterr().out
    assert main([DEEPSEEK, "--no-session", "--size", "120x40", "--tp", "1", "--snapshot", "5"]) == 0
    assert "   rescale               off" in capsys.readouterr().out


@pytest.mark.slow
def test_screen_1_names_the_model(capsys: pytest.CaptureFixture[str]) -> None:
    for size in ("80x24", "120x36"):
        assert main([DEEPSEEK, "--no-session", "--size", size, "--snapshot", ""]) == 0
        assert "AICB: DeepSeek 236B, 60 layers" in capsys.readouterr().out

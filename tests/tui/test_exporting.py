"""`E` writes the run that is shown, as `wltui export` does, or the screen; `e` leads to the field."""

from __future__ import annotations

import errno
import gzip
import json
import os
import re
from pathlib import Path

import pytest
from msgspec.structs import replace

from simcore.parameters import Parameters, RunInput
from simcore.render.export import FORMATS, Request
from simcore.runs.measured import RecordedRun, run_recording
from simcore.runs.simulated import SimulatedRun
from simcore.runs.snapshot import run_snapshots
from simcore.simulation import simulate
from simcore.sources.inputs import open_input
from tests.page.opened import data_of, page_of
from tests.snapshots.made import random_run, snapshot, write
from tests.tui.conftest import MakeApp
from tests.tui.made_runs import four_stages, seed_workload, small
from tests.tui.screen_reading import PATIENCE, press, run_over, screen_text, wait_until
from tests.tui.test_arrangement import measured
from tui.app import WltuiApp
from tui.session import Session

# Those of `four_stages`.
FOUR = Parameters(pp=4, microbatches=4)


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


async def exported(app: WltuiApp, name: str, *more: str, before: tuple[str, ...] = ()) -> str:
    """What is said after `E` and a name, and more answers."""
    async with app.run_test(size=(120, 36)) as pilot:
        await run_over(pilot)
        await press(pilot, *before)
        await run_over(pilot)
        await press(pilot, "E", "ctrl+u", *name, "enter")
        for answer in more:
            await press(pilot, "ctrl+u", *answer, "enter")
        # A page of two runs has the changes of both, some 70 runs: 10 s on an idle machine.
        await run_over(pilot, 4 * PATIENCE)
        await wait_until(pilot, lambda: app.status_text and not app.status_text.startswith("exporting"))
        return app.status_text


def by_command(name: str, parameters: Parameters) -> bytes:
    chosen = next(one for one in FORMATS if one.name == name)
    return b"".join(chosen.build_export(Request(seed_workload(), parameters)).chunks)


async def test_the_run_on_the_screen_goes_to_perfetto_and_to_csv(make_app: MakeApp, tmp_path: Path) -> None:
    said = await exported(make_app(four_stages()), "a.json.gz")
    assert said.startswith("a.json.gz: 4 of 1024 ranks, 2604 spans, ")
    trace = gzip.decompress((tmp_path / "a.json.gz").read_bytes())
    assert json.loads(trace)["traceEvents"]
    assert trace == by_command("chrome", FOUR)
    await exported(make_app(four_stages()), "a.csv")
    assert (tmp_path / "a.csv").read_bytes() == by_command("csv", FOUR)


async def test_a_changed_run_is_exported_as_it_is_shown(make_app: MakeApp, tmp_path: Path) -> None:
    await exported(make_app(four_stages()), "b.csv", before=("5", "greater_than_sign", "2"))
    assert (tmp_path / "b.csv").read_bytes() == by_command("csv", replace(FOUR, world=2048))


async def test_the_screen_becomes_a_picture_without_the_prompt(make_app: MakeApp, tmp_path: Path) -> None:
    assert await exported(make_app(small()), "a.svg") == "saved: a.svg"
    picture = (tmp_path / "a.svg").read_text(encoding="utf-8")
    assert "stage" in picture
    assert "export" not in picture
    assert "font-face" not in picture


async def test_a_file_is_written_over_after_a_yes_alone(make_app: MakeApp, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("mine")
    assert (await exported(make_app(small()), "a.csv", "no")).startswith("not saved: a.csv ")
    assert (tmp_path / "a.csv").read_text() == "mine"
    assert (await exported(make_app(small()), "a.csv", "yes")).startswith("a.csv: 8 of 8 ranks")


async def test_what_cannot_be_written_is_said(make_app: MakeApp, tmp_path: Path) -> None:
    said = await exported(make_app(small()), "a.txt")
    assert re.findall(r"\.[a-z.]+", said) == [".html", ".json", ".json.gz", ".csv", ".csv.gz", ".svg", ".txt"]
    (tmp_path / "d.csv").mkdir()
    assert (await exported(make_app(small()), "d.csv")).startswith("d.csv is a directory")
    said = await exported(make_app(small()), "no/a.svg")
    assert said.startswith("no/a.svg: error unwritable-file ")
    assert said.endswith(os.strerror(errno.ENOENT))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["d.csv"]


async def test_a_measured_run_is_exported_too(tmp_path: Path) -> None:
    app = WltuiApp(Session(RecordedRun(measured())), first="timeline")
    assert (await exported(app, "m.json")).startswith("m.json: ")
    assert json.loads((tmp_path / "m.json").read_bytes())["traceEvents"]


@pytest.mark.parametrize(("file", "part"), [("s.json", b'"ph":"C"'), ("s.csv", b"rank,device,address,bytes")])
async def test_memory_snapshots_are_exported_too(tmp_path: Path, file: str, part: bytes) -> None:
    record = open_input(str(write(tmp_path / "snapshot.pickle", snapshot(random_run(4)))))
    app = WltuiApp(Session(run_snapshots(RunInput(record, Parameters()))), first="timeline")
    assert (await exported(app, file)).startswith(f"{file}: 1 device, ")
    assert part in (tmp_path / file).read_bytes()


@pytest.mark.parametrize("name", ["chrome", "csv"])
async def test_a_replay_on_the_screen_is_the_one_of_the_command(tmp_path: Path, name: str) -> None:
    run, parameters = measured(), Parameters(compute_scale=0.5)
    app = WltuiApp(Session(run_recording(run, parameters)), first="timeline")
    file = "r.json" if name == "chrome" else "r.csv"
    assert " replayed, " in await exported(app, file)
    chosen = next(one for one in FORMATS if one.name == name)
    of_command = b"".join(chosen.build_export(Request(run, parameters)).chunks)
    assert (tmp_path / file).read_bytes() == of_command
    assert of_command != b"".join(chosen.build_export(Request(run, Parameters())).chunks)


async def test_a_page_to_hand_on_is_that_of_the_command(make_app: MakeApp, tmp_path: Path) -> None:
    run = SimulatedRun(simulate(seed_workload(), FOUR))
    said = await exported(make_app(run), "a.html")
    assert said.startswith("a.html: page of a run, ")
    page = (tmp_path / "a.html").read_text(encoding="utf-8")
    assert page == page_of(SimulatedRun(simulate(seed_workload(), FOUR)))


async def test_the_page_of_the_screen_that_compares_has_both_runs(make_app: MakeApp, tmp_path: Path) -> None:
    run = SimulatedRun(simulate(seed_workload(), FOUR))
    said = await exported(make_app(run), "b.html", before=("5", "greater_than_sign", "6"))
    assert said.startswith("b.html: ")
    assert "two runs" in said
    runs = data_of((tmp_path / "b.html").read_text(encoding="utf-8"))["runs"]
    assert [one["name"].split()[0] for one in runs] == ["--world", "--world"]
    assert runs[0]["length"] == run.step_time_ns


async def test_e_leads_to_the_parameter_of_the_marked_change(make_app: MakeApp) -> None:
    app = make_app(four_stages(), first="why")
    async with app.run_test(size=(120, 36)) as pilot:
        await run_over(pilot)
        await press(pilot, "tab", "e")
        await run_over(pilot)
        assert app.screen_name == "parameters"
        assert "│>  schedule            < 1f1b >" in screen_text(app)

"""`wltui schedule`: what it draws, what it counts, what it refuses."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from docs.pictures import with_schedules
from simcore.diagnostics import InputError, UsageError
from simcore.program.schedules import SCHEDULES
from simcore.render.report.schedule import pictures_text
from simcore.render.report.schedule_picture import PictureOptions, UnitTimes, picture_of
from tests.command_line.running import ROOT
from tui.commands import schedule

PIPELINES = [name for name, one in SCHEDULES.items() if one.pipelined]


def printed(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert schedule.main(list(words)) == 0
    return capsys.readouterr().out


def test_a_schedule_is_drawn_with_a_letter_a_unit(capsys: pytest.CaptureFixture[str]) -> None:
    text = printed(capsys, "zb-h1", "--stages", "3", "--microbatches", "4", "--width", "40")
    assert text.startswith("zb-h1: 3 stages, 4 micro-batches\n")
    lanes = [line.split("|")[1].rstrip() for line in text.splitlines() if re.match(r"\d\|", line)]
    assert lanes == [
        "F0F1F2....I0W0F3I1W1I2W2I3W3",
        "..F0F1..I0F2I1W0F3I2W1I3W2W3",
        "....F0I0F1I1F2I2W0F3I3W1W2W3",
    ]


@pytest.mark.parametrize("name", PIPELINES)
@pytest.mark.parametrize(("width", "stages"), [(80, 4), (200, 8)])
def test_every_schedule_fits_the_width_and_has_every_action(name: str, width: int, stages: int) -> None:
    picture = picture_of(PictureOptions(name, stages, 2 * stages))
    lines = pictures_text([picture], width, colour=False).splitlines()
    assert max(map(len, lines)) <= width
    lanes = [line.split("|") for line in lines if re.match(r"\d\|", line)]
    assert len(lanes) == stages
    for stage, lane in zip(picture.lanes, lanes, strict=True):
        drawn = "".join(box.kind if box.chunk == 0 else box.kind.lower() for box in stage.boxes)
        # An action of several columns has one letter.
        assert re.sub(r"[^a-zA-Z]", "", lane[1]) == drawn
    # Where there are more actions than columns it fits too.
    crowded = picture_of(PictureOptions(name, 4, width))
    assert len(crowded.lanes[0].boxes) > width
    lines = pictures_text([crowded], width, colour=False).splitlines()
    assert max(map(len, lines)) <= width


def test_colour_adds_no_column_and_says_nothing_alone() -> None:
    picture = picture_of(PictureOptions("zb-v", 4, 8))
    plain, coloured = (pictures_text([picture], 80, colour) for colour in (False, True))
    assert "\x1b[30;44m" in coloured
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == plain


def test_several_are_on_one_axis() -> None:
    pictures = [picture_of(PictureOptions(name, 4, 8)) for name in ("1f1b", "zb-v")]
    text = pictures_text(pictures, 100, colour=False)
    rulers = [line for line in text.splitlines() if re.match(r"\s+0 ", line)]
    assert len(rulers) == 2
    assert len(set(rulers)) == 1


def test_bubble_and_holdings_are_those_of_the_closed_forms(capsys: pytest.CaptureFixture[str]) -> None:
    found = json.loads(
        printed(capsys, "zb-v", "--compare", "1f1b,v-half", "--stages", "8", "--microbatches", "16", "--json")
    )
    assert found["schema"] == "wltui.schedule/1"
    figures = [(one["schedule"], one["length"], one["held"]) for one in found["schedules"]]
    assert figures == [("zb-v", 48 + 3.5, 8.0), ("1f1b", 48 + 21, 8.0), ("v-half", 48 + 10.5, 5.0)]
    stage = found["schedules"][1]["lanes"][7]
    assert (stage["held"], stage["busy"], stage["bubble"]) == (1.0, 48.0, 21.0)
    assert stage["actions"][0] == {
        "kind": "F", "microbatch": 0, "chunk": 0, "step": 0, "first": 7.0, "last": 8.0
    }  # fmt: skip


def test_times_are_units_of_a_whole_stage() -> None:
    picture = picture_of(PictureOptions("interleaved", 2, 2, 2, UnitTimes(2, 1, 0.5)))
    assert picture.lanes[0].boxes[0][4:] == (0.0, 1.0)
    assert {round(box.last - box.first, 6) for box in picture.lanes[0].boxes} == {1.0, 0.75}


def test_what_takes_no_time_is_not_drawn() -> None:
    picture = picture_of(PictureOptions("zb-h1", 2, 4, times=UnitTimes(1, 1, 0)))
    assert {box.kind for lane in picture.lanes for box in lane.boxes} == {"F", "I"}


def test_a_further_step_without_a_barrier_is_shorter_where_nothing_is_waited_for() -> None:
    lengths = {
        name: (
            picture_of(PictureOptions(name, 4, 8)).length,
            picture_of(PictureOptions(name, 4, 8, steps=3)).steady,
        )
        for name in ("1f1b", "zb-h1", "zb-h2", "zb-v")
    }
    assert lengths == {"1f1b": (33, 33), "zb-h1": (27, 27), "zb-h2": (27, 24), "zb-v": (25.5, 24)}


def test_at_equal_memory_each_takes_the_largest_micro_batches_that_fit(
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = ("v-half", "--compare", "1f1b,v-min", "--stages", "8", "--microbatches", "16")
    found = json.loads(printed(capsys, *words, "--equal-memory", "--json"))["schedules"]
    counts = {one["schedule"]: one["microbatches"] for one in found}
    assert counts == {"v-half": 16, "1f1b": 26, "v-min": 13}
    for one in found:
        assert one["microbatches"] * one["microbatch_size"] == pytest.approx(16)
        assert one["held"] <= 5
        # The whole batch takes each stage as long.
        assert one["lanes"][0]["busy"] == pytest.approx(48)


def test_what_holds_the_whole_batch_has_no_place_at_equal_memory() -> None:
    with pytest.raises(UsageError, match="gpipe holds more than the 4 micro-batches of 1f1b"):
        schedule.main(["1f1b", "--compare", "gpipe", "--equal-memory"])


def test_a_file_is_drawn_as_it_stands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "mine.txt"
    path.write_text("0: F0 F1 B0 B1\n1: F0 B0 F1 B1\n", encoding="utf-8")
    text = printed(capsys, str(path), "--width", "60")
    assert "2 stages, 2 micro-batches" in text
    with pytest.raises(UsageError, match=r"--stages 4: .* has 2"):
        schedule.main([str(path), "--stages", "4"])
    path.write_text("0: F0 B1\n", encoding="utf-8")
    with pytest.raises(InputError, match="schedule-missing"):
        schedule.main([str(path)])


def test_an_image_is_well_formed_and_has_a_box_for_each_action(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out.svg"
    assert schedule.main(["zb-v", "--compare", "dualpipe", "--steps", "2", "--svg", str(out)]) == 0
    image = ElementTree.fromstring(out.read_text(encoding="utf-8"))
    titles = image.findall(".//{http://www.w3.org/2000/svg}rect/{http://www.w3.org/2000/svg}title")
    pictures = [picture_of(PictureOptions(name, steps=2)) for name in ("zb-v", "dualpipe")]
    boxes = sum(len(lane.boxes) for one in pictures for lane in one.lanes)
    # And those of the legend: F, B, I, W.
    assert len(titles) == boxes + 4
    with pytest.raises(UsageError, match="is there already"):
        schedule.main(["zb-v", "--svg", str(out)])
    capsys.readouterr()


REFUSED = {
    (): "NAME|FILE: one of gpipe, 1f1b",
    ("nope",): "--schedule nope: one of",
    ("layer-loop",): "layer-loop has no order of micro-batches",
    ("1f1b", "--stages", "0"): "--stages 0: a whole number from 1 to 256 is expected",
    ("1f1b", "--microbatches", "x"): "--microbatches x: a whole number",
    ("interleaved", "--microbatches", "6"): "6 micro-batches are not a multiple of 4 stages: 4 or 8",
    ("dualpipe", "--stages", "3"): "dualpipe: 3 stages are an odd number: 2 or 4 would fit",
    ("dualpipe", "--microbatches", "7"): "7 micro-batches are not a multiple of 2: 6 or 8 would fit",
    ("1f1b", "--times", "1,2"): "--times 1,2: three numbers are expected",
    ("1f1b", "--times", "0,0,0"): "--times 0,0,0: three numbers are expected",
    ("1f1b", "--times", "1,nan,2"): "--times 1,nan,2: three numbers are expected",
    ("1f1b", "--width", "7"): "--width 7: a whole number from 40 to 2000 is expected",
    ("1f1b", "--json", "--svg", "x"): "--json and --svg",
    ("gpipe", "--stages", "256", "--microbatches", "9999"): "at most 400000 are drawn",
}  # fmt: skip


def test_what_cannot_be_drawn_is_said() -> None:
    for words, message in REFUSED.items():
        with pytest.raises(UsageError) as refused:
            schedule.main(list(words))
        assert message in str(refused.value)


def test_the_pictures_of_the_page_are_what_the_program_draws() -> None:
    page = (ROOT / "docs" / "schedules.md").read_text(encoding="utf-8")
    assert with_schedules(page) == page, "make pictures"
    drawn = set(re.findall(r"^    \$ wltui schedule ([\w-]+)", page, flags=re.MULTILINE))
    assert drawn == set(PIPELINES)


def test_the_page_has_a_section_for_each_schedule() -> None:
    page = (ROOT / "docs" / "schedules.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^## ([\w-]+)$", page, flags=re.MULTILINE)) >= set(PIPELINES)

"""Each program of benchmarks/ is run by `make bench`, or is a search or a fit; each table has its command."""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import accuracy, bench, measuring, shared_network
from benchmarks.measuring import PAGE, Process, Table, finished, marks, number_of, put
from benchmarks.reading import is_no_answer

FOLDER = PAGE.parent
FENCE = re.compile(r"^```text\n(.*?)^```\n", re.M | re.S)
KEPT = re.compile(r"<!-- kept: python benchmarks/(\w+)\.py [^\n]*-->\n$")
# Those whose tables are not figures of speed stand on the page that they are about.
OF_OTHER_PAGES = {
    "shared_network": [(shared_network.PAGE, "")],
    "accuracy": [(accuracy.PAGE, name) for name in accuracy.TABLES],
}


def programs() -> set[str]:
    """The files of benchmarks/ that can be run."""
    return {path.stem for path in FOLDER.glob("*.py") if '__name__ == "__main__"' in path.read_text("utf-8")}


def test_each_program_is_run_by_make_bench_or_is_a_search_or_a_fit() -> None:
    assert set(bench.PROGRAMS) | set(bench.SEARCHES) | set(bench.FITS) | {"bench"} == programs()
    assert not set(bench.PROGRAMS) & set(bench.SEARCHES)
    recipe = ["make", "-n", "bench"]
    done = subprocess.run(recipe, cwd=FOLDER.parent, capture_output=True, text=True, check=True)
    assert "benchmarks/bench.py" in done.stdout


@pytest.mark.parametrize("program", sorted(programs()))
def test_each_program_can_be_loaded(program: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if program in bench.FITS:
        pytest.importorskip("scipy")
    # As a script has it: its own folder first.
    monkeypatch.syspath_prepend(str(FOLDER))
    assert callable(runpy.run_path(str(FOLDER / f"{program}.py"), run_name="loaded")["main"])


@pytest.mark.parametrize("program", bench.PROGRAMS)
def test_each_program_that_measures_has_a_place_for_each_of_its_tables(program: str) -> None:
    for page, name in OF_OTHER_PAGES.get(program, [(PAGE, "")]):
        text = page.read_text(encoding="utf-8")
        begin, end = marks(program, name)
        assert text.count(begin) == 1
        assert end in text.partition(begin)[2]
        assert "--write" in (FOLDER / f"{program}.py").read_text(encoding="utf-8").split('"""')[1]


def test_each_table_of_the_page_has_the_command_that_makes_it() -> None:
    text = PAGE.read_text(encoding="utf-8")
    made = {marks(program)[0] for program in bench.PROGRAMS}
    before = [text[: match.start()].splitlines(keepends=True)[-1] for match in FENCE.finditer(text)]
    kept = [KEPT.match(line) for line in before]
    assert len(before) == text.count("```") // 2
    for line, match in zip(before, kept, strict=True):
        assert line in made or (match is not None and match[1] in bench.SEARCHES)
    assert sorted(match[1] for match in kept if match) == sorted(bench.SEARCHES)


def test_the_page_says_which_commands_are_no_part_of_make_bench() -> None:
    searches = PAGE.read_text(encoding="utf-8").partition("## Searches")[2]
    assert all(f"`python benchmarks/{name}.py`" in searches for name in (*bench.SEARCHES, *bench.FITS))


def test_a_table_ends_with_the_missed_budgets_and_status_1(capsys: pytest.CaptureFixture[str]) -> None:
    table = Table("3 runs")
    table.judge("report, s", 6.0, 6.0)
    assert finished(__file__, table, []) == 0
    assert capsys.readouterr().out.endswith("3 runs\nover budget: nothing\n")
    table.judge("report, MB", 251.0, 250.0)
    assert finished(__file__, table, []) == 1
    assert capsys.readouterr().out.endswith("\nover budget: report, MB: 251, budget 250\n")


def test_under_write_a_table_takes_its_own_place_in_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "README.md"
    monkeypatch.setattr(measuring, "PAGE", page)
    places = {program: "".join(marks(program)) for program in ("start", "engine")}
    page.write_text(f"one\n{places['start']}two\n{places['engine']}three\n", encoding="utf-8")
    table = Table("3 runs")
    for program in ("start", "engine", "start"):
        finished(f"benchmarks/{program}.py", table, ["3", "--write"])
    (start, end), (engine, _) = marks("start"), marks("engine")
    shown = f"```text\n{table.text}```\n"
    assert page.read_text(encoding="utf-8") == f"one\n{start}{shown}{end}two\n{engine}{shown}{end}three\n"


@pytest.mark.parametrize("text", ["", marks("start")[0], marks("start")[1]])
def test_a_page_without_a_place_for_a_table_is_left_as_it_is(tmp_path: Path, text: str) -> None:
    page = tmp_path / "README.md"
    page.write_text(text, encoding="utf-8")
    with pytest.raises(SystemExit, match="has no place for a table: <!-- table: python benchmarks/start"):
        put(page, "start", "made\n")
    assert page.read_text(encoding="utf-8") == text


def test_the_number_of_the_command_line_is_the_first_one() -> None:
    assert number_of(["--write", "0.01", "7"], 15) == 0.01
    assert number_of(["--write"], 15) == 15


def test_a_traceback_is_no_answer_and_a_refusal_is_one() -> None:
    refused = Process(1, 0.1, 0.1, 20.0, "file:1:1: error no-rows there is no row")
    assert not is_no_answer(refused)
    assert is_no_answer(refused._replace(said="MemoryError: "))
    assert is_no_answer(refused._replace(status=-9))


def test_the_memory_of_a_process_is_its_own_and_not_that_of_who_starts_it() -> None:
    ballast = bytearray(60_000_000)
    small = measuring.process([sys.executable, "-ISc", "print('done')"])
    large = measuring.process([sys.executable, "-ISc", "bytearray(80_000_000); print('done')"])
    assert (small.status, small.said) == (large.status, large.said) == (0, "done")
    assert small.peak_mb < len(ballast) / 1e6 < 80 < large.peak_mb
    assert small.own_seconds > 0


def test_bench_runs_every_program_and_lists_all_that_was_missed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    said = {
        "one": "import sys; print(sys.argv[1:]); print('over budget: report, s: 7, budget 6'); sys.exit(1)",
        "two": "print('over budget: nothing')",
        "three": "raise ValueError",
        "four": "import sys; print('over budget: a\\nover budget: b'); sys.exit(1)",
    }
    for name, text in said.items():
        (tmp_path / f"{name}.py").write_text(text, encoding="utf-8")
    monkeypatch.setattr(bench, "FOLDER", tmp_path)
    monkeypatch.setattr(bench, "PROGRAMS", tuple(said))
    assert bench.main([]) == 1
    *above, last = capsys.readouterr().out.split(" budgets missed\n")
    assert "['--write']" in above[0]
    assert above[0].endswith("; 4")
    assert last.splitlines() == [
        "one: report, s: 7, budget 6", "three: ended with status 1", "four: a", "four: b",
    ]  # fmt: skip
    assert bench.main(["two"]) == 0
    assert capsys.readouterr().out.endswith("; no budgets missed\n")
    with pytest.raises(SystemExit, match="no such program: five; there are one, two"):
        bench.main(["five"])

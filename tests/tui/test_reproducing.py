"""`y`: the command line of what is on the screen opens both runs again, or says what it leaves out."""

from __future__ import annotations

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simcore.parameters import RunInput
from simcore.replay.parameters import Scales
from simcore.runs.measured import RecordedRun
from tests.analysis.test_beside import made_simulation
from tests.command_line.running import ROOT
from tests.measured.made_steps import Layout
from tests.tui.conftest import MakeApp
from tests.tui.made_runs import seed
from tests.tui.screen_reading import press, screen_rows
from tests.tui.test_measured_screens import four_ranks
from tui.commands.arguments import parse_parameters
from tui.commands.view import _open_with_second, build_parser
from tui.reproducing import LEFT_OUT, TITLE, CommandLine, build_command_line, shell_lines
from tui.session import Session

WORKLOAD = str(ROOT / "fixtures/002_gpt_1024npu.txt")
TRACE = str(ROOT / "fixtures/004_megatron_rank7_trace.txt")


def opened(*words: str) -> Session:
    """What the screen opens with these words."""
    arguments = build_parser().parse_args(list(words))
    return _open_with_second(RunInput(arguments.file, parse_parameters(arguments)), arguments)


def steps(session: Session) -> tuple[int, int | None]:
    against = session.against
    return session.current.step_time_ns, None if against is None else against.step_time_ns


@pytest.mark.parametrize(
    "words",
    [
        (WORKLOAD, "--tp", "4"),
        (WORKLOAD, "--against", WORKLOAD, "--comm-scale", "2"),
        (TRACE, "--compute-scale", "2"),
        (TRACE, "--gap-scale", "0", "--host-scale", "0.5", "--kind-scale", "dp=0.5"),
        (TRACE, "--stage-scale", "3=0.9"),
        (TRACE, "--replay"),
        (TRACE, "--against", TRACE),
        (TRACE, "--replay", "--against", TRACE),
        (TRACE, "--slow-rank", "7=2", "--against", TRACE),
        (TRACE, "--against", WORKLOAD, "--tp", "4"),
        (WORKLOAD, "--against", TRACE, "--tp", "4"),
    ],
    ids=lambda words: " ".join(word.rpartition("/")[2] for word in words),
)
def test_the_command_opens_the_same_runs_again(words: tuple[str, ...]) -> None:
    first = opened(*words)
    found = build_command_line(first)
    assert found.left_out == ""
    command, *again = shlex.split(found.command)
    assert command == "wltui"
    assert ("--against" in again) == ("--against" in words)
    assert steps(opened(*again)) == steps(first)


def test_where_a_has_other_parameters_it_is_left_out_and_said() -> None:
    left_out = "--against is left out, A and B have different parameters"
    traces = opened(TRACE, "--against", TRACE)
    shown = traces.opened
    assert isinstance(shown, RecordedRun)
    traces.current = shown.with_scales(Scales(compute=2.0, stages={3: 0.5}))
    assert build_command_line(traces) == CommandLine(
        f"wltui {TRACE} --compute-scale 2.0 --stage-scale 3=0.5", left_out
    )
    workloads = Session(seed(), against=seed())
    workloads.show(seed(tp=4))
    assert build_command_line(workloads) == CommandLine("wltui 002_gpt_1024npu.txt --tp 4", left_out)


async def test_the_key_copies_the_command_and_says_it(make_app: MakeApp) -> None:
    app = make_app(against=made_simulation(Layout(1, 1, 2, 1)))
    async with app.run_test(size=(120, 36)) as pilot:
        await pilot.press("y")
        command = "wltui 002_gpt_1024npu.txt"
        assert app.status_text == f"{LEFT_OUT}: {command}"
        assert app.clipboard == command
    app = make_app(against=RecordedRun(four_ranks()))
    async with app.run_test(size=(120, 36)) as pilot:
        await pilot.press("y")
        assert app.status_text == app.clipboard == "wltui 002_gpt_1024npu.txt --against trace.txt"


def as_a_shell_reads(lines: list[str]) -> list[str]:
    """The words; a line that ends in a backslash goes on in the next one."""
    return shlex.split("\n".join(lines).replace("\\\n", ""))


@pytest.mark.slow
async def test_a_command_that_is_too_long_for_the_last_row_stands_in_a_panel(make_app: MakeApp) -> None:
    app = make_app(
        seed(slow_rank=("37=1.3",), microbatches=2, comm_scale=1.25, compute_scale=1.125, schedule="gpipe")
    )
    async with app.run_test(size=(80, 24)) as pilot:
        await press(pilot, "y")
        rows = [row.rstrip() for row in screen_rows(app)]
        assert rows[0].startswith(f"── {TITLE} ──")
        end = next(place for place, row in enumerate(rows) if row.startswith("── Esc closes this ──"))
        assert end == 3
        assert as_a_shell_reads(rows[1:end]) == shlex.split(app.clipboard)
        await press(pilot, "escape", "y", "enter")
        assert screen_rows(app)[-1].endswith(" q quit ")


@given(
    st.lists(st.text("ab -='\"\\\\$/.é", min_size=1, max_size=60), min_size=1, max_size=8),
    st.integers(20, 80),
)
def test_lines_of_a_command_are_one_command_for_a_shell(words: list[str], width: int) -> None:
    lines = shell_lines(shlex.join(words), width)
    assert all(len(line) <= width for line in lines)
    assert as_a_shell_reads(lines) == words

"""`y`: the command line of what is on the screen opens both runs again, or says what it leaves out."""

from __future__ import annotations

import shlex

import pytest

from simcore.analysis import Results
from simcore.measured.replay import MeasuredResults
from simcore.measured.replay.scales import Scales
from tests.analysis.test_beside import made_simulation
from tests.command_line.running import ROOT
from tests.measured.made_steps import Layout
from tests.tui.conftest import MakeApp
from tests.tui.made_runs import seed, seed_workload
from tests.tui.test_measured_screens import four_ranks
from tui.commands.arguments import parameters_from
from tui.commands.view import _opened, build_parser
from tui.reproducing import Reproduced, reproduced
from tui.session import AnySession, Session

WORKLOAD = str(ROOT / "fixtures/002_gpt_1024npu.txt")
TRACE = str(ROOT / "fixtures/004_megatron_rank7_trace.txt")


def opened(*words: str) -> tuple[AnySession, Results | MeasuredResults | None]:
    """What the screen opens with these words."""
    arguments = build_parser().parse_args(list(words))
    return _opened(arguments.file, arguments, parameters_from(arguments))


def steps(found: tuple[AnySession, Results | MeasuredResults | None]) -> tuple[int, int | None]:
    session, against = found
    return session.current.step_time_ns, None if against is None else against.step_time_ns


@pytest.mark.parametrize(
    "words",
    [
        (WORKLOAD, "--tp", "4"),
        (WORKLOAD, "--against", WORKLOAD, "--comm-scale", "2"),
        (TRACE, "--compute-scale", "2"),
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
    found = reproduced(*first)
    assert found is not None
    assert found.left_out == ""
    command, *again = shlex.split(found.command)
    assert command == "wltui"
    assert ("--against" in again) == ("--against" in words)
    assert steps(opened(*again)) == steps(first)


def test_where_a_has_other_parameters_it_is_left_out_and_said() -> None:
    left_out = "--against is left out, A has other parameters"
    traces, measured = opened(TRACE, "--against", TRACE)
    shown = traces.opened
    assert isinstance(shown, MeasuredResults)
    traces.current = shown.with_scales(Scales(compute=2.0))  # type: ignore[misc]
    assert reproduced(traces, measured) == Reproduced(f"wltui {TRACE} --compute-scale 2", left_out)
    workloads = Session(seed_workload(), seed())
    workloads.show(seed(tp=4))
    assert reproduced(workloads, seed()) == Reproduced("wltui 002_gpt_1024npu.txt --tp 4", left_out)
    traces.current = shown.with_scales(Scales(gaps=0.0))  # type: ignore[misc]
    assert reproduced(traces, measured) is None


async def test_the_key_copies_the_command_and_says_it(make_app: MakeApp) -> None:
    app = make_app(against=made_simulation(Layout(1, 1, 2, 1)))
    async with app.run_test(size=(120, 36)) as pilot:
        await pilot.press("y")
        command = "wltui 002_gpt_1024npu.txt"
        assert app.said == f"--against is left out, A has other parameters: {command}"
        assert app.clipboard == command
    app = make_app(against=MeasuredResults(four_ranks()))
    async with app.run_test(size=(120, 36)) as pilot:
        await pilot.press("y")
        assert app.said == app.clipboard == "wltui 002_gpt_1024npu.txt --against trace.txt"

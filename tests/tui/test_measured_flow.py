"""From opening a measured run to a replay of it: in a real terminal, and the form of its scales."""

from __future__ import annotations

from pathlib import Path

import pytest

from simcore.diagnostics import UsageError
from simcore.parameters import Parameters
from simcore.replay.parameters import Scales
from simcore.runs.measured import RecordedRun
from tests.measured.test_replay_by_hand import SLOW_RANK, run_of
from tests.measured.traces import STAMP
from tests.tui.pseudo_terminal import wltui
from tui.parameters.trace_form import FactorField, TraceContext, TraceForm
from tui.session import Session


def test_from_the_summary_into_the_timeline_to_the_cause_and_to_a_what_if(tmp_path: Path) -> None:
    for rank in (0, 1):
        lines = [line for line in SLOW_RANK.splitlines(True) if line.startswith(f"rank:{rank}:")]
        name = f"wd2_tp1_pp1_numl4_bs1_x_rank{rank}_{STAMP}.txt"
        (tmp_path / name).write_text("".join(lines))
    with wltui(str(tmp_path), screen=None) as terminal:
        terminal.wait_for("Measured step")
        terminal.wait_for("40.000 ms")
        terminal.wait_for("10 % less time")
        # The place of the longest wait, and who is waited for.
        terminal.press_each(("\t\t", "> Worst"), ("j", ">wait"), ("\r", "dp_allreduce (dp)"))
        terminal.press_each(("[", "waited for forward_step, rank 1"), ("4", "Critical path by kind"))
        terminal.press_each(("\t", "> What if"), ("t", "run 2 of 2: "), ("1", "Replayed step"))
        terminal.press_each(("x", "Measured step"), ("q", ""))
        assert terminal.wait_for_end() == 0


def basis_of(parameters: Parameters) -> TraceContext:
    results = RecordedRun(run_of(SLOW_RANK, 2))
    return TraceContext(results.setup.with_parameters(parameters), results)


def changed_of(basis: TraceContext, values: dict[str, object]) -> TraceContext:
    return basis._replace(setup=basis.setup.with_changes(**values))


def factors() -> list[FactorField]:
    return [field for field in TraceForm().fields(basis_of(Parameters())) if isinstance(field, FactorField)]


def test_every_field_of_the_form_changes_its_own_factor_and_comes_back() -> None:
    opened = basis_of(Parameters())
    fields = factors()
    for field in fields:
        now = changed_of(opened, field.parse_text(opened, "0.5"))
        assert field.text(now) == "0.5"
        assert [one.label for one in fields if one.differs(opened, now)] == [field.label]
        assert field.parse_text(now, "1") == field.reset(now, opened)
        assert changed_of(now, field.reset(now, opened)).setup.parameters == Parameters()
        assert field.text(changed_of(opened, field.scrubbed(opened, -1, False))) == "0.9"
        # What the form makes is a replay of this run, whose flags say the same.
        assert opened.results.with_parameters(now.setup.parameters).scales != Scales()


@pytest.mark.parametrize("text", ["x", "-1", "nan", "1e7", ""])
def test_a_factor_that_is_none_is_refused(text: str) -> None:
    field = factors()[0]
    with pytest.raises(UsageError) as raised:
        field.parse_text(basis_of(Parameters()), text)
    assert str(raised.value) == f"--compute-scale: found {text or 'nothing'}, expected a factor from 0 to 1e6"


def test_a_rank_is_never_scrubbed_to_no_time_which_its_flag_refuses() -> None:
    field = next(one for one in factors() if one.label == "rank 1")
    basis = basis_of(Parameters())
    for _ in range(30):
        basis = changed_of(basis, field.scrubbed(basis, -1, False))
    assert basis.setup.parameters == Parameters(slow_rank=("1=0.1",))
    with pytest.raises(UsageError) as raised:
        field.parse_text(basis, "0")
    assert str(raised.value) == "--slow-rank: found 0, expected a factor above 0 and up to 1e6"


def test_every_replay_has_a_command() -> None:
    session = Session(RecordedRun(run_of(SLOW_RANK, 2)))
    opened = session.opened
    assert isinstance(opened, RecordedRun)
    scales = Scales(compute=0.5, gaps=0.0, ranks={1: 2.0}, ops={"forward_step": 0.9}, stages={0: 1.5})
    session.show(opened.with_scales(scales))
    assert session.command().endswith(
        "--compute-scale 0.5 --layer-scale forward_step=0.9 --slow-rank 1=2 --gap-scale 0.0 "
        "--stage-scale 0=1.5"
    )
    session.show(opened.with_scales(Scales()))
    assert session.command().endswith(".txt --replay")

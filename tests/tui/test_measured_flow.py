"""From opening a measured run to a replay of it: in a real terminal, and the scales' form."""

from __future__ import annotations

from pathlib import Path

import pytest

from simcore.diagnostics import UsageError
from simcore.replay import MeasuredResults
from simcore.replay.scales import Scales
from tests.measured.test_replay_by_hand import SLOW_RANK, run_of
from tests.measured.traces import STAMP
from tests.tui.pseudo_terminal import wltui
from tui.measured.scale_fields import fields_of
from tui.measured.session import MeasuredSession


def test_from_the_summary_into_the_timeline_to_the_cause_and_to_a_what_if(tmp_path: Path) -> None:
    for rank in (0, 1):
        lines = [line for line in SLOW_RANK.splitlines(True) if line.startswith(f"rank:{rank}:")]
        name = f"wd2_tp1_pp1_numl4_bs1_x_rank{rank}_{STAMP}.txt"
        (tmp_path / name).write_text("".join(lines))
    with wltui(str(tmp_path), screen=None) as terminal:
        terminal.wait_for("Measured step")
        terminal.wait_for("40.000 ms")
        terminal.wait_for("10 % better")
        # The place of the longest wait, and who is waited for.
        terminal.press_each(("\t\t", "> Worst"), ("j", ">wait"), ("\r", "dp_allreduce (dp)"))
        terminal.press_each(("[", "waited for forward_step, rank 1"), ("4", "Critical path by kind"))
        terminal.press_each(("\t", "> What if"), ("t", "replayed: "), ("1", "Replayed step"))
        terminal.press_each(("x", "Measured step"), ("q", ""))
        assert terminal.wait_for_end() == 0


def test_every_field_of_the_form_changes_its_own_factor_and_comes_back() -> None:
    results = MeasuredResults(run_of(SLOW_RANK, 2))
    for field in fields_of(results):
        changed = field.typed(Scales(), "0.5")
        assert field.take(changed) == 0.5
        assert [one.label for one in fields_of(results) if one.take(changed) != 1.0] == [field.label]
        assert field.typed(changed, "1") == Scales()
        assert field.take(field.scrubbed(Scales(), -1, False)) == 0.9


@pytest.mark.parametrize("text", ["x", "-1", "nan", "1e7", ""])
def test_a_factor_that_is_none_is_refused(text: str) -> None:
    field = fields_of(MeasuredResults(run_of(SLOW_RANK, 2)))[0]
    with pytest.raises(UsageError) as raised:
        field.typed(Scales(), text)
    assert str(raised.value) == f"compute: found {text or 'nothing'}, expected a factor from 0 to 1e6"


def test_the_command_has_the_flags_or_there_is_none() -> None:
    session = MeasuredSession(MeasuredResults(run_of(SLOW_RANK, 2)))
    opened = session.opened
    session.show(opened.with_scales(Scales(compute=0.5, ranks={1: 2.0}, ops={"forward_step": 0.9})))
    command = session.command()
    assert command is not None
    assert command.endswith("--compute-scale 0.5 --layer-scale forward_step=0.9 --slow-rank 1=2")
    session.show(opened.with_scales(Scales(gaps=0.0)))
    assert session.command() is None

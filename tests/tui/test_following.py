"""What a session is after its file was read again while it is followed.

Planted, one at a time: the replay on the screen is lost; runs of the history keep the figures of the file as
it was; a step that became the shown one stands twice. Each of them failed here.
"""

from __future__ import annotations

from pathlib import Path

from simcore.parameters import OpeningOptions, Parameters, RunInput
from simcore.runs import open_run
from simcore.sources.inputs import open_input
from tests.kineto.test_following import append, lines
from tui.following import describe_news
from tui.session import Run, Session


def opened_run(path: Path, **asked: object) -> Run:
    found = open_input(str(path), OpeningOptions(**asked))  # type: ignore[arg-type]
    return open_run(RunInput(found, Parameters()))


def test_a_session_takes_what_its_file_is_now(tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    path.write_text(lines(1, 2, 3))
    session = Session(opened_run(path), lambda label: opened_run(path, run=label))
    labels = [run.label for run in session.history]
    assert len(labels) == 3
    session.history[1].set_results(opened_run(path, run=labels[1]))
    replay = session.opened.with_parameters(Parameters(replay=True, compute_scale=2.0))
    session.edit(replay.setup)
    session.show(replay)
    # Steps of the file have no number.
    assert session.keep() == 2
    append(path, lines(4, 5))
    before, opened = session.opened, opened_run(path)
    current = opened.with_parameters(replay.parameters)
    session.reload(opened, current)
    assert (session.opened, session.current, session.other) == (opened, current, opened)
    assert session.draft == replay.parameters
    assert session.step == "206.0 ms"
    assert describe_news(before, opened) == "2 new steps, 5 now"
    # The opened one and its replay are known; each other step stands once, to be read when it is shown.
    known = [(run.label, run.step_ns) for run in session.history if run.results is not None]
    assert known == [(opened.setup.label, 103_000_000), (opened.setup.label, 206_000_000)]
    others = [run.label for run in session.history if run.results is None]
    assert len(others) == len({*others}) == 4
    assert opened.setup.label not in others
    assert session.root(others[0]).step_time_ns in (101_000_000, 102_000_000)


def test_news_are_steps_then_ranks_then_that_it_was_read_again(tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    path.write_text(lines(1, 2))
    before = opened_run(path)
    append(path, lines(3))
    longer = opened_run(path)
    path.write_text(lines(8))
    assert describe_news(before, longer) == "1 new step, 3 now"
    assert describe_news(longer, opened_run(path)) == "read anew, 1 step"

"""Any changes in the form: the flags shown give the same run, and nothing but a complaint goes wrong."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from msgspec import structs

from simcore.diagnostics import InputError, UsageError
from simcore.parameters import Parameters
from simcore.records import asdict, replace
from simcore.runs.simulated import SimulatedRun
from simcore.simulation import simulate
from tests.tui.made_runs import run, seed, two_stages
from tests.tui.test_parameter_fields import drafted
from tui.commands.arguments import Parser, add_parameters, parse_parameters
from tui.frame import text_of
from tui.parameters.fields import fields_for
from tui.parameters.form_context import make_draft_context
from tui.parameters.view import ParametersView
from tui.session import Session


def parsed(words: list[str]) -> Parameters:
    """What the command line makes of flags."""
    parser = Parser(prog="wltui")
    add_parameters(parser)
    return parse_parameters(parser.parse_args(words))


TEXTS = st.sampled_from(
    ["", "0", "1", "2", "3", "16", "1e3", "0.1", "nan", "-1", "on", "off", "ring", "default"]
)
MOVES = st.tuples(st.integers(0, 30), st.sampled_from(["-", "+", "--", "++"]) | TEXTS)


def apply(session: Session, number: int, move: str) -> Parameters:
    """One change of one field. Raises `UsageError`."""
    simulation = session.current.simulation
    basis = make_draft_context(simulation.setup.with_parameters(session.draft), simulation)
    fields = fields_for(simulation)
    field = fields[number % len(fields)]
    if move in ("-", "+", "--", "++"):
        return replace(session.draft, **field.scrubbed(basis, 1 if "+" in move else -1, len(move) == 2))
    return replace(session.draft, **field.parse_text(basis, move))


@settings(max_examples=60)
@given(st.lists(MOVES, max_size=15))
def test_any_changes_give_a_run_or_a_complaint_and_flags_that_give_it_again(
    moves: list[tuple[int, str]],
) -> None:
    workload = two_stages()
    session = Session(run(workload))
    view = ParametersView(session, ascii_only=False)
    for number, move in moves:
        try:
            draft = apply(session, number, move)
        except UsageError:
            continue
        assume((draft.world or 0) <= 64 and (draft.microbatches or 0) <= 64)
        if draft != session.draft:
            session.edit(session.opened.setup.with_parameters(draft))
        assert parsed(draft.as_flags()) == draft
        try:
            session.current = SimulatedRun(simulate(workload, draft))
            view.show(session.current)
        except (UsageError, InputError) as refused:
            session.error = str(refused)
        for width, height in ((120, 33), (80, 21), (30, 6)):
            text = text_of(view.frame(width, height))
            assert view.form.fields[view.form.cursor].label in text


@pytest.mark.parametrize("direction", [1, -1])
def test_a_value_scrubbed_for_long_is_still_one_that_the_command_line_takes(direction: int) -> None:
    simulation = seed().simulation
    refused = set()
    for field in fields_for(simulation):
        basis = drafted(simulation)
        try:
            for _ in range(60):
                scrubbed = field.scrubbed(basis, direction, large=True)
                basis = drafted(simulation, **asdict(basis.setup.with_changes(**scrubbed).parameters))
        except UsageError:
            pass
        parameters = basis.setup.parameters
        try:
            assert parsed(parameters.as_flags()) == parameters
        except UsageError:
            refused.add(field.label)
    assert refused == set()


@given(
    st.builds(
        Parameters,
        world=st.none() | st.integers(1, 2**40),
        tp=st.none() | st.integers(1, 64),
        schedule=st.none() | st.sampled_from(["1f1b", "layer-loop"]),
        dim=st.lists(st.sampled_from(["switch:8:450:500", "ring:4:0.1:1e3"]), max_size=3).map(tuple),
        algorithm=st.lists(st.sampled_from(["0=ring", "1=direct"]), max_size=2).map(tuple),
        endpoint_delay=st.integers(0, 2**40),
        local_mem_bw=st.floats(1e-300, 1e12),
        compute_scale=st.floats(0, 1e12),
        comm_scale=st.floats(0, 1e12),
        no_fold=st.booleans(),
    )
)
def test_flags_are_parameters_and_back(parameters: Parameters) -> None:
    assert parsed(parameters.as_flags()) == parameters


def test_the_flags_of_a_run_as_opened_are_none() -> None:
    assert seed().simulation.parameters.as_flags() == []
    assert set(structs.asdict(Parameters())) == set(Parameters.__struct_fields__)


def view_of_seed() -> ParametersView:
    """The form on seed 002."""
    return ParametersView(Session(seed()), ascii_only=False)


@pytest.mark.parametrize(("width", "height"), [(120, 33), (80, 21), (100, 12), (99, 9), (60, 5)])
def test_the_field_of_the_cursor_is_on_the_screen(width: int, height: int) -> None:
    view = view_of_seed()
    count = len(view.form.fields)
    for by in itertools.chain([0], [1] * (count + 2), [-1] * (count + 2)):
        view.form.cursor = max(0, min(view.form.cursor + by, count - 1))
        rows = text_of(view.frame(width, height)).split("\n")
        focused = [row for row in rows if row.lstrip("│").startswith(">")]
        assert len(focused) == 1
        assert f"  {view.form.fields[view.form.cursor].label} " in focused[0]


def test_a_changed_value_is_marked_with_what_it_was() -> None:
    view = view_of_seed()
    view.session.edit(
        view.session.opened.setup.with_parameters(
            Parameters(tp=4, dim=("switch:8:900:500", "switch:128:50:1000"))
        )
    )
    rows = text_of(view.frame(120, 33)).split("\n")
    changed = [row[1:67].rstrip() for row in rows if row[2:3] == "*"]
    assert changed == [
        " * tp                    4                ranks    was 8",
        " * dim 0  bandwidth      900              GB/s     was 450",
    ]
    assert " --tp 4 --dim switch:8:900:500 --dim switch:128:50:1000" in rows[-2]


def test_the_effect_shows_accounts_as_opened_now_and_their_difference() -> None:
    view = view_of_seed()
    now = seed(compute_scale=2.0)
    view.session.current = now
    view.session.edit(now.setup)
    text = text_of(view.frame(120, 33))
    assert "was 14.774 s" in text
    assert "+13.973 s (+94.6 %)" in text
    words = [row[69:-1].split() for row in text.split("\n")]
    assert ["compute", "7.213", "s", "14.426", "s", "+7.213", "s"] in words
    assert ["exposed", "pp", "5.401", "ms", "5.401", "ms", "="] in words


@pytest.mark.parametrize(
    ("label", "opened", "draft"),
    [
        ("rank order", {"rank_order": "tp-ep-dp-pp"}, {"rank_order": "tp-pp-dp"}),
        ("schedule", {"schedule": "layer-loop"}, {"schedule": "1f1b"}),
        ("dim 0  algorithm", {"algorithm": ("0=halving-doubling",)}, {}),
        ("local mem bw", {"local_mem_bw": 1234.5678}, {}),
    ],
)
def test_what_a_value_was_is_shown_whole(
    label: str, opened: dict[str, object], draft: dict[str, object]
) -> None:
    results = run(two_stages(), **opened)
    view = ParametersView(Session(results), ascii_only=False)
    view.session.edit(view.session.opened.setup.with_parameters(Parameters(**draft)))  # type: ignore[arg-type]
    field = next(one for one in view.form.fields if one.label == label)
    was = field.text(results.simulation)
    row = next(row for row in text_of(view.frame(120, 36)).split("\n") if f"* {label} " in row)
    assert f"was {was} " in row
    assert row[66:69] == " ││"

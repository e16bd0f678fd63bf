"""The fields that are lists: what they show, how they are typed, and that no key does nothing in silence."""

from __future__ import annotations

import pytest
from textual.widgets import Label

from simcore.diagnostics import UsageError
from simcore.parameter_values.values import FORMS, check_item
from simcore.parameters import FLAGS, Parameters, flag_of
from tests.says import said
from tests.tui.conftest import MakeApp
from tests.tui.made_runs import run, small, two_stages
from tests.tui.screen_reading import press, run_over, screen_rows, screen_text
from tests.tui.test_parameter_fields import DIMS, drafted, field_named, scrubbed, simulation_of, typed
from tests.tui.test_parameter_form import open_field, type_value
from tui.frame import text_of
from tui.parameters.changes import list_changes
from tui.parameters.fields import fields_for
from tui.parameters.view import ParametersView, hints_of
from tui.session import Session

SIZE = (120, 40)
LISTS = ("dimensions", "layer scale", "slow rank", "slow link")


def test_every_flag_that_is_a_list_has_a_form() -> None:
    assert set(FORMS) == {flag.field for flag in FLAGS if flag.kind == "words"}
    for field, form in FORMS.items():
        check_item(field, form.example, world=64, dimensions=2)
        with pytest.raises(UsageError, match=f"^{flag_of(field).option} "):
            check_item(field, "?")


@pytest.mark.parametrize(
    ("text", "dims"),
    [
        # Another kind, another size, another number of dimensions.
        ("ring:2:4:50 ring:4:2:300", ("ring:2:4:50", DIMS[1])),
        ("switch:4:4:50 ring:4:2:300", ("switch:4:4:50", DIMS[1])),
        ("switch:2:4:50 fully-connected:2:01:1e3 ring:2:2:9",
         (DIMS[0], "fully-connected:2:1:1000", "ring:2:2:9")),
        ("switch:8:4:50", ("switch:8:4:50",)),
        ("none", ()),
        ("", ()),
    ],
)  # fmt: skip
def test_kind_size_and_number_of_the_dimensions_are_typed(text: str, dims: tuple[str, ...]) -> None:
    assert typed("dimensions", text) == {"dim": dims}


@pytest.mark.parametrize(
    ("label", "text", "complaint"),
    [
        ("dimensions", "ring:8", "--dim ring:8: KIND:SIZE:GBPS:NS is expected, for example switch:8:450:500"),
        (
            "dimensions", "switch:8:1:1 torus:8:1:1",
            "--dim torus:8:1:1: KIND `torus` is not ring, fully-connected or switch",
        ),
        ("layer scale", "mlp=2", "--layer-scale mlp=2: NAME:PHASE=X, for example mlp_row:fwd=0.9 is "
                                 "expected, PHASE one of fwd, ig, wg"),
        ("slow rank", "xyz", "--slow-rank xyz: R=X, for example 37=1.3 is expected, X above 0 and up to 1e6"),
        ("slow rank", "3=2 8=2", "--slow-rank 8=2: no rank 8 in this run, only 0 to 7"),
        ("slow link", "1=2", "--slow-link 1=2: DIM:R=X, for example 1:37=0.5 is expected"),
        ("slow link", "2:0=2", "--slow-link 2:0=2: no dimension 2 in this run, only 0 to 1"),
    ],
)  # fmt: skip
def test_an_item_that_cannot_be_is_refused_as_the_command_line_does(
    label: str, text: str, complaint: str
) -> None:
    with pytest.raises(UsageError) as refused:
        typed(label, text)
    assert str(refused.value) == complaint


def test_a_list_is_not_scrubbed_and_its_items_are_kept_as_typed() -> None:
    for label in LISTS:
        assert scrubbed(label, 1) == {}
    assert typed("slow rank", "3=1.5  4=2") == {"slow_rank": ("3=1.5", "4=2")}
    assert typed("slow link", "1:3=0.5") == {"slow_link": ("1:3=0.5",)}
    # Of a draft with more ranks, though they do not fit the run on the screen.
    simulation = simulation_of()
    found = field_named("slow rank", simulation).parse_text(drafted(simulation, world=64), "63=2")
    assert found == {"slow_rank": ("63=2",)}


@pytest.mark.parametrize("label", LISTS)
async def test_keys_that_change_a_value_say_that_a_list_is_typed(make_app: MakeApp, label: str) -> None:
    app = make_app(small())
    async with app.run_test(size=SIZE) as pilot:
        view = await open_field(pilot, label)
        form = view.form.current_field.form
        await press(pilot, "k", "j")
        assert [hint[0] for hint in hints_of(running=False, is_list=True)][:2] == ["Enter", "u"]
        said(screen_rows(app)[-1:], "Enter", "list", "u undo")
        row = next(row for row in screen_rows(app) if row[1:2] == ">")
        assert form.partition(",")[0] in row
        for key in ("h", "l", "less_than_sign", "greater_than_sign"):
            await press(pilot, key)
            words = screen_rows(app)[-1].strip()
            assert words == f"Enter types it: {form}; several with spaces"
            assert len(words) < 79
            await press(pilot, "j", "k")
        assert app.session.draft == small().simulation.parameters


async def test_the_prompt_of_a_list_complains_as_one_types(make_app: MakeApp) -> None:
    app = make_app(small())
    async with app.run_test(size=SIZE) as pilot:
        await open_field(pilot, "slow rank")
        await press(pilot, "enter", *"xyz")
        said = app.screen.query_one("#said", Label)
        assert str(said.content).startswith("R=X, for example 37=1.3 is expected")
        await press(pilot, *("backspace",) * 3, *"3=1.5")
        assert str(said.content) == ""
        await press(pilot, "enter")
        await run_over(pilot)
        assert app.session.current.simulation.parameters.slow_rank == ("3=1.5",)
        assert "was none" in screen_text(app)


async def test_another_kind_and_number_of_dimensions_are_run(make_app: MakeApp) -> None:
    app = make_app(small())
    async with app.run_test(size=SIZE) as pilot:
        view = await open_field(pilot, "dimensions")
        await type_value(pilot, "ring:2:4:50 ring:2:2:300 switch:2:2:300")
        assert app.session.error == ""
        dims = app.session.current.simulation.cluster.dims
        assert [one.flag() for one in dims] == ["ring:2:4:50", "ring:2:2:300", "switch:2:2:300"]
        assert "dim 2  bandwidth" in [field.label for field in view.form.fields]
        assert view.form.current_field.label == "dimensions"
        rows = [row[1:67].rstrip() for row in screen_rows(app)]
        assert ">* dimensions          < ring 2, ring 2, ... > was switch 2, sw..." in rows
        await press(pilot, "delete")
        await run_over(pilot)
        assert app.session.draft == small().simulation.parameters


def test_one_changed_bandwidth_is_no_change_of_the_dimensions() -> None:
    opened = simulation_of()
    faster = simulation_of(dim=("switch:2:8:50", DIMS[1]))
    reshaped = simulation_of(dim=("switch:4:8:50", "ring:2:2:300"))
    assert [one.words for one in list_changes(fields_for(opened), opened, faster)] == ["dim 0 at 8 GB/s"]
    found = list_changes(fields_for(opened), opened, reshaped)
    assert [one.words for one in found] == ["dimensions switch:4:8:50 ring:2:2:300"]
    moved = found[0].alone, found[0].without
    assert [None if one is None else one.parameters for one in moved] == [
        reshaped.parameters,
        opened.parameters,
    ]


@pytest.mark.parametrize(("width", "height"), [(120, 33), (80, 21), (60, 12)])
def test_a_long_list_is_cut_and_what_it_was_is_in_sight(width: int, height: int) -> None:
    many = tuple(f"{rank}=1.5" for rank in range(8))
    view = ParametersView(Session(run(two_stages(), slow_rank=many)), ascii_only=False)
    view.session.edit(
        view.session.opened.setup.with_parameters(Parameters(slow_rank=many[:7], dim=("ring:2:1:1",) * 5))
    )
    for label in ("slow rank", "dimensions"):
        view.form.follow()
        view.form.cursor = [field.label for field in view.form.fields].index(label)
        rows = text_of(view.frame(width, height)).split("\n")
        row = next(row for row in rows if row.strip("│").startswith(">"))
        assert "... > was " in row
        assert len(row.rstrip()) <= width


def test_a_seed_comes_back_to_0() -> None:
    assert scrubbed("seed", -1) == {}
    assert scrubbed("seed", -1, seed=1) == {"seed": 0}
    assert scrubbed("seed", -1, large=True, seed=1) == {"seed": 0}

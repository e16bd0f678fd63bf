"""The points of a sweep: values of --vary, what cannot be given, and the order of points."""

from __future__ import annotations

import pytest

from simcore.diagnostics import UsageError
from simcore.parameters import Parameters
from simcore.sources.inputs import open_model
from simcore.sweeping.layouts import list_layouts
from simcore.sweeping.space import Candidate, Space, axis_of_list, parse_axis
from simcore.workload.model import ModelParameters


@pytest.mark.parametrize(
    ("text", "field", "values"),
    [
        ("tp=1,2,4,8", "tp", (1, 2, 4, 8)),
        ("--microbatch-size=1,2", "microbatch_size", (1, 2)),
        ("microbatches=8..64*2", "microbatches", (8, 16, 32, 64)),
        ("pp=2..5", "pp", (2, 3, 4, 5)),
        ("world=8..30+8", "world", (8, 16, 24)),
        ("compute-scale=0.8..1.1+0.1", "compute_scale", (0.8, 0.9, 1.0, 1.1)),
        ("virtual-stages=none,2,4", "virtual_stages", (None, 2, 4)),
        ("recompute=none,full", "recompute", ("none", "full")),
        ("overlap-grad-reduce=on,off", "overlap_grad_reduce", (True, False)),
        ("stage-layers=7,8*14,6;8*16", "stage_layers", ("7,8*14,6", "8*16")),
        (
            "dim=switch:8:450:500 switch:64:50:1000;none",
            "dim",
            (("switch:8:450:500", "switch:64:50:1000"), ()),
        ),
        ("dp=1,2", "dp", (1, 2)),
        ("network=analytical,shared", "network", ("analytical", "shared")),
    ],
)
def test_values_of_an_axis(text: str, field: str, values: tuple[object, ...]) -> None:
    axis = parse_axis(text)
    assert (axis.field, axis.values) == (field, values)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("tp", "NAME=VALUES is expected"),
        ("tp=", "NAME=VALUES is expected"),
        ("schedul=1f1b", "no parameter schedul; did you mean schedule?"),
        ("tp=1,,2", "a value is missing"),
        ("tp=1,1", "1 is there twice"),
        ("tp=0", "a whole number from 1"),
        ("tp=8..1", "never comes from 8 to 1"),
        ("tp=1..8*1", "never comes from 1 to 8 by times 1"),
        ("tp=1..8+0", "never comes"),
        ("tp=0..8", "0 is below 1"),
        ("tp=1..x", "FIRST..LAST, FIRST..LAST+STEP or FIRST..LAST*FACTOR is expected"),
        ("tp=1..1000000", "more than 10000 values"),
        ("compute-scale=1..2", "FIRST..LAST+STEP or FIRST..LAST*FACTOR is expected"),
        ("recompute=half", "one of none, selective, full is expected"),
        ("schedule=1f1c", "did you mean 1f1b?"),
        ("overlap-grad-reduce=1", "neither on nor off"),
        ("dim=switch:8", "switch:8"),
        ("tp=1e3", "a whole number"),
        ("tp=NaN..3", "is expected"),
    ],
)
def test_what_is_no_axis_is_refused(text: str, said: str) -> None:
    with pytest.raises(UsageError) as error:
        parse_axis(text)
    assert said in str(error.value)
    assert str(error.value).startswith("--vary ")


def test_the_last_axis_is_the_fastest_and_dp_makes_the_world() -> None:
    space = Space(
        Parameters(pp=2),
        (
            parse_axis("tp=1,2"),
            parse_axis("dp=1,4"),
        ),
    )
    assert [(one.parameters.tp, one.parameters.world) for one in space.combinations()] == [
        (1, 2),
        (1, 8),
        (2, 4),
        (2, 16),
    ]
    assert len(space) == 4


def test_points_that_differ_in_prices_alone_are_behind_one_another_with_their_numbers() -> None:
    space = Space(
        Parameters(),
        (
            parse_axis("recompute=none,full"),
            parse_axis("tp=1,2"),
            parse_axis("zero=0,1"),
        ),
    )
    grouped = list(space.grouped())
    assert sorted(grouped, key=lambda one: one.index) == list(space.combinations())
    assert [one.index for one in space.combinations()] == [*range(8)]
    assert [one.parameters.tp for one in grouped] == [1, 1, 1, 1, 2, 2, 2, 2]


@pytest.mark.parametrize(
    ("fixed", "axes", "said"),
    [
        (Parameters(tp=2), ["tp=1,2"], "--tp has a value of its own"),
        (Parameters(), ["tp=1", "tp=2"], "given twice"),
        (Parameters(world=8), ["dp=1,2"], "world = tp x cp x pp x dp"),
        (Parameters(), ["tp=1..1500", "pp=1..1500"], "at most 2000000"),
    ],
)
def test_a_space_that_cannot_be(fixed: Parameters, axes: list[str], said: str) -> None:
    with pytest.raises(UsageError, match=said.replace("--", "")):
        Space(fixed, tuple(parse_axis(text) for text in axes))


def test_several_worlds_and_gpus_are_an_axis_and_one_is_none() -> None:
    axis = axis_of_list("256,512", "world")
    assert axis is not None
    assert axis.values == (256, 512)
    assert axis_of_list("256", "world") is None
    assert axis_of_list(None, "gpu") is None


def test_layouts_are_those_that_fit_each_once() -> None:
    """Each layout resolves, none is there twice, and one that is known to be good is there."""
    from simcore.model.resolving import resolve_training

    model = open_model("llama-3-8b")
    space = Space(Parameters(world=16, global_batch=32, seq=2048), layouts=True)
    candidates = list(list_layouts(model, space))
    refusals = {one.refusal for one in candidates}
    assert any("zb-v" in why for why in refusals)
    assert any("ZeRO 2 in a pipeline" in why for why in refusals)
    found = [one.parameters for one in candidates if not one.refusal]
    assert len(found) == len(set(found)) > 300
    assert {one.schedule for one in found} == {None, "1f1b", "interleaved"}
    assert {one.zero for one in found} == {"0", "1"}
    assert {one.engine_preset for one in found} == {"megatron"}
    assert any((one.tp, one.pp, one.schedule, one.zero) == (2, 2, "interleaved", "1") for one in found)
    for one in found:
        training = resolve_training(model.maker.model, one.part(ModelParameters))  # type: ignore[union-attr]
        assert training.world == 16
    given = Space(
        Parameters(world=16, global_batch=32, tp=2, recompute="full"), (parse_axis("pp=1,2"),), layouts=True
    )
    found = [one.parameters for one in list_layouts(model, given)]
    assert {(one.tp, one.recompute) for one in found} == {(2, "full")}
    assert {one.pp for one in found} == {1, 2}


def test_overlaps_of_layouts_are_those_of_the_recipes() -> None:
    """Megatron's are on wherever they can be; torchtitan leaves that of tp to the user. What is requested is
    run whatever the trainer.
    """
    model = open_model("llama-3-8b")

    def layouts(*axes: str, **fixed: object) -> list[Candidate]:
        space = Space(
            Parameters(world=16, global_batch=32, **fixed), tuple(map(parse_axis, axes)), layouts=True
        )
        return [one for one in list_layouts(model, space) if not one.refusal]

    for one in layouts():
        parameters, replicas = one.parameters, 16 // (one.parameters.tp * one.parameters.pp)  # type: ignore[operator]
        assert parameters.overlap_grad_reduce == (replicas > 1)
        assert parameters.overlap_param_gather == (replicas > 1 and parameters.zero == "1")
        assert parameters.overlap_tp == (parameters.sequence_parallel == "on")
    titan = [one.parameters for one in layouts(engine_preset="torchtitan")]
    assert {one.zero for one in titan} == {"0", "3"}
    assert {one.overlap_tp for one in titan if one.sequence_parallel == "on"} == {True, False}
    assert {one.zero for one in titan if one.tp * one.pp < 16} == {"3"}  # type: ignore[operator]
    of_fsdp = [one.parameters for one in layouts(engine_preset="fsdp")]
    assert {(one.tp, one.pp, one.cp, one.zero) for one in of_fsdp} == {(1, 1, 1, "2"), (1, 1, 1, "3")}
    asked = layouts("schedule=zb-h1", zero="2")
    assert {(one.parameters.schedule, one.parameters.zero) for one in asked} == {("zb-h1", "2")}
    off = layouts("overlap-tp=off")
    assert not any(one.parameters.overlap_tp for one in off)


def test_layouts_want_a_model_its_ranks_and_its_batch() -> None:
    model = open_model("llama-3-8b")
    with pytest.raises(UsageError, match="--world says"):
        list(list_layouts(model, Space(Parameters(), layouts=True)))
    with pytest.raises(UsageError, match="--global-batch says"):
        list(list_layouts(model, Space(Parameters(world=8), layouts=True)))

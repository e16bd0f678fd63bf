"""The fields of the form: what each shows, and what scrubbing and typing make of the parameters."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from simcore.cluster import ALGORITHM_NAMES
from simcore.cluster.parsing import parse_dimension
from simcore.diagnostics import UsageError
from simcore.model.known_models import MODELS
from simcore.model.maker import ModelMaker
from simcore.parameter_values.choices import choices
from simcore.parameters import Parameters
from simcore.records import asdict
from simcore.simulation import Simulation, simulate
from simcore.workload import open_workload
from tests.tui.made_runs import run, seed, two_stages
from tests.tui.pseudo_terminal import ROOT
from tui.parameters.fields import FormField, fields_for, scrubbed_figure
from tui.parameters.form_context import FormContext, make_draft_context

BUSBW = f"busbw:{Path(__file__).parents[1] / 'networks' / 'simai' / 'busbw_fixed.yaml'}"
DIMS = ("switch:2:4:50", "ring:4:2:300")


def simulation_of(**parameters: object) -> Simulation:
    """Two stages of four ranks."""
    return run(two_stages(), **{"dim": DIMS, **parameters}).simulation


def field_named(label: str, simulation: Simulation) -> FormField:
    """The field with this label."""
    return next(field for field in fields_for(simulation) if field.label == label)


def drafted(near: FormContext, **values: Any) -> FormContext:
    """A draft with other values than those of the run near it."""
    return make_draft_context(near.setup.with_changes(**values), near)


def changed(basis: FormContext, values: dict[str, Any]) -> dict[str, object]:
    """What these values differ in from those that are there."""
    there = basis.setup.parameters
    return {name: value for name, value in values.items() if value != getattr(there, name)}


def scrubbed(label: str, direction: int, large: bool = False, **parameters: object) -> dict[str, object]:
    """What one key makes of a field."""
    simulation = simulation_of(**parameters)
    return changed(simulation, field_named(label, simulation).scrubbed(simulation, direction, large))


def typed(label: str, text: str, **parameters: object) -> dict[str, object]:
    """What typing makes of a field."""
    simulation = simulation_of(**parameters)
    return changed(simulation, field_named(label, simulation).parse_text(simulation, text))


def test_the_form_has_every_parameter_of_the_command_line_with_a_choice() -> None:
    fields = fields_for(seed().simulation)
    assert [field.label for field in fields] == [
        "world", "tp", "ep", "pp", "rank order",
        "schedule", "microbatches", "virtual stages", "passes", "steps", "stage layout", "overlap f+b",
        "overlap reduce", "overlap gather",
        "dialect",
        "cluster", "system",
        "dim 0  bandwidth", "dim 0  latency", "dim 0  algorithm",
        "dim 1  bandwidth", "dim 1  latency", "dim 1  algorithm",
        "dimensions",
        "splits", "active chunks", "endpoint delay", "local mem bw", "optimization",
        "network",
        "compute scale", "comm scale", "layer scale",
        "time scale", "slow rank", "slow link", "jitter", "seed", "no fold",
    ]  # fmt: skip
    assert [field.group for field in fields] == sorted(
        [field.group for field in fields],
        key=["layout", "schedule", "cluster", "network", "scale", "faults", "engine"].index,
    )
    assert all(field.help.startswith("--") for field in fields)


def test_an_op_table_has_a_field_for_its_layers() -> None:
    simulation = run(open_workload(str(ROOT / "fixtures" / "003_gpt2_large_op_table.txt"))).simulation
    (field,) = [field for field in fields_for(simulation) if field.label == "layers"]
    plain = drafted(simulation, **asdict(Parameters()))
    assert field.text(plain) == "1"
    assert field.scrubbed(simulation, 1, True) == {"layers": 2}


@pytest.mark.parametrize("label", ["compute scale", "comm scale", "jitter", "local mem bw"])
def test_a_value_from_a_calculation_is_shown_in_six_figures(label: str) -> None:
    field = field_named(label, simulation_of())
    context = drafted(simulation_of(), **{field.flag.field: 0.9 * 0.9 * 0.9})  # type: ignore[attr-defined]
    assert field.displayed_value(context) == "0.729"
    # It is edited, and run, as it is.
    assert float(field.text(context)) == 0.9 * 0.9 * 0.9


def test_the_latency_of_a_dimension_made_cheaper_has_no_binary_digits() -> None:
    dimension = parse_dimension("switch:8:450:500")
    for _ in range(3):
        dimension = dimension.cheaper("latency", 0.9, 1e9)
    assert dimension.flag() == "switch:8:450:364.5"


def test_values_that_are_not_given_are_those_of_the_run() -> None:
    simulation = seed().simulation
    plain = drafted(simulation, **asdict(Parameters()))
    shown = {field.label: field.text(plain) for field in fields_for(simulation)}
    assert shown == {
        "world": "1024", "tp": "8", "ep": "1", "pp": "16", "rank order": "tp-ep-dp-pp",
        "schedule": "1f1b", "microbatches": "16", "dialect": "simai",
        "dim 0  bandwidth": "450", "dim 0  latency": "500", "dim 0  algorithm": "default",
        "dim 1  bandwidth": "50", "dim 1  latency": "1000", "dim 1  algorithm": "default",
        "dimensions": "switch:8:450:500 switch:128:50:1000",
        "cluster": "none", "system": "none", "splits": "1", "active chunks": "1",
        "endpoint delay": "10", "local mem bw": "3350", "optimization": "localBWAware",
        "network": "analytical", "compute scale": "1", "comm scale": "1", "no fold": "off",
        "virtual stages": "1", "passes": "1", "steps": "1", "stage layout": "uniform",
        "overlap f+b": "off", "overlap reduce": "off", "overlap gather": "off",
        "layer scale": "none", "time scale": "none", "slow rank": "none", "slow link": "none",
        "jitter": "0", "seed": "0",
    }  # fmt: skip


OF_THE_FILE = ("world", "tp", "ep", "pp", "microbatches", "dialect")


@pytest.mark.parametrize(
    ("name", "parameters", "origins"),
    [
        ("000_gpt13b_tp4_old_header.txt", {},
         ["assumed", "in the file", "assumed", "assumed", "counted", "in the file"]),
        ("002_gpt_1024npu.txt", {}, ["in the file"] * 6),
        ("002_gpt_1024npu.txt", {"tp": 4, "microbatches": 8},
         ["in the file", "given", "in the file", "in the file", "given", "in the file"]),
        ("001_moe_128npu_with_mistakes.txt", {"world": 8, "pp": 4, "tp": 1},
         ["given", "given", "assumed", "given", "counted", "in the file"]),
        ("003_gpt2_large_op_table.txt", {}, ["assumed"] * 6),
    ],
)  # fmt: skip
def test_the_form_says_in_the_file_of_what_the_file_has_alone(
    name: str, parameters: dict[str, int], origins: list[str]
) -> None:
    simulation = run(open_workload(str(ROOT / "fixtures" / name)), **parameters).simulation
    fields = [field for field in fields_for(simulation) if field.label in OF_THE_FILE]
    assert [field.label for field in fields] == list(OF_THE_FILE)
    assert [field.origin(simulation) for field in fields] == origins


def test_the_form_shows_what_the_network_of_the_run_uses() -> None:
    labels = [field.label for field in fields_for(simulation_of())]
    auto = simulation_of(network="simai-auto", dim=(), nic=20.0)
    shown = {field.label: field.text(auto) for field in fields_for(auto)}
    cluster = [label for label in labels if label.startswith("dim ")]
    cluster += [
        "cluster",
        "system",
        "dimensions",
        "splits",
        "active chunks",
        "endpoint delay",
        "local mem bw",
        "optimization",
    ]
    assert set(labels) - set(shown) == set(cluster)
    assert {label: value for label, value in shown.items() if label not in labels} == {
        "nvlink": "370.8",
        "nic": "20",
        "nics per server": "8",
        "gpus per server": "8",
        "gpu type": "H100",
        "nic type": "cx7",
        "overlap": "none",
    }
    busbw = simulation_of(network=BUSBW, dim=())
    assert {field.label for field in fields_for(busbw)} - set(labels) == {"gpus per server", "overlap"}


def test_networks_are_scrubbed_and_one_with_a_file_is_typed() -> None:
    assert scrubbed("network", 1) == {"network": "shared"}
    assert scrubbed("network", -1) == {"network": "flows"}
    assert scrubbed("network", 1, network=BUSBW, dim=()) == {"network": "shared"}
    assert typed("network", "busbw:b.yaml") == {"network": "busbw:b.yaml"}
    with pytest.raises(
        UsageError, match=r"^--network busbw: one of analytical, shared, busbw:FILE, simai-auto"
    ):
        typed("network", "busbw")
    assert scrubbed("nvlink", 1, network="simai-auto", dim=()) == {"nvlink": 408.0}
    assert scrubbed("gpu type", 1, network="simai-auto", dim=()) == {"gpu_type": "H20"}
    assert typed("overlap", "dp=0.5,tp=0.3", network="simai-auto", dim=()) == {"overlap": ("dp=0.5,tp=0.3",)}


@pytest.mark.parametrize(
    ("label", "direction", "large", "expected"),
    [
        ("world", 1, False, {"world": 16}),
        ("world", -1, True, {"world": 4}),
        ("tp", 1, False, {"tp": 4}),
        ("tp", -1, False, {"tp": 1}),
        ("ep", 1, False, {"ep": 2}),
        ("ep", -1, False, {"ep": 1}),
        ("pp", -1, True, {"pp": 1}),
        ("rank order", 1, False, {"rank_order": "tp-pp-dp"}),
        ("rank order", -1, True, {"rank_order": "tp-pp-dp"}),
        ("microbatches", 1, False, {"microbatches": 3}),
        ("microbatches", -1, False, {"microbatches": 1}),
        ("microbatches", 1, True, {"microbatches": 4}),
        ("dim 0  bandwidth", 1, False, {"dim": ("switch:2:4.4:50", DIMS[1])}),
        ("dim 0  bandwidth", -1, True, {"dim": ("switch:2:2:50", DIMS[1])}),
        ("dim 1  bandwidth", 1, True, {"dim": (DIMS[0], "ring:4:4:300")}),
        ("dim 1  latency", -1, False, {"dim": (DIMS[0], "ring:4:2:273")}),
        ("dim 0  algorithm", 1, False, {"algorithm": (f"0={ALGORITHM_NAMES[0]}",)}),
        ("dim 1  algorithm", -1, False, {"algorithm": (f"1={ALGORITHM_NAMES[-1]}",)}),
        ("endpoint delay", 1, False, {"endpoint_delay": 20}),
        ("endpoint delay", -1, False, {"endpoint_delay": 0}),
        ("local mem bw", 1, False, {"local_mem_bw": 3690.0}),
        ("local mem bw", 1, True, {"local_mem_bw": 6700.0}),
        ("compute scale", 1, False, {"compute_scale": 1.1}),
        ("compute scale", -1, False, {"compute_scale": 0.9}),
        ("comm scale", -1, True, {"comm_scale": 0.5}),
        ("no fold", 1, False, {"no_fold": True}),
        ("no fold", -1, True, {"no_fold": True}),
    ],
)
def test_scrubbing_changes_one_parameter_by_one_step(
    label: str, direction: int, large: bool, expected: dict[str, object]
) -> None:
    found = scrubbed(label, direction, large)
    # A value that was not given may become given; it is then what the run had.
    assert found == expected


@pytest.mark.parametrize(
    ("label", "field", "parameters"),
    [
        ("tp", "tp", {"tp": 1}),
        ("pp", "pp", {"pp": 1}),
        ("microbatches", "microbatches", {"microbatches": 1}),
        ("endpoint delay", "endpoint_delay", {"endpoint_delay": 0}),
        ("compute scale", "compute_scale", {"compute_scale": 0.0}),
        ("comm scale", "comm_scale", {"comm_scale": 0.0}),
    ],
)
@pytest.mark.parametrize("large", [False, True])
def test_scrubbing_stops_at_the_least_value(
    label: str, field: str, parameters: dict[str, object], large: bool
) -> None:
    assert scrubbed(label, -1, large, **parameters) in ({}, {field: parameters[field]})


def test_a_choice_goes_round() -> None:
    simulation = simulation_of()
    field = field_named("dim 0  algorithm", simulation)
    basis, seen = drafted(simulation), []
    for _ in range(len(ALGORITHM_NAMES) + 1):
        basis = drafted(basis, **field.scrubbed(basis, 1, large=False))
        seen.append(field.text(basis))
    assert seen == [*ALGORITHM_NAMES, "default"]
    assert basis.setup.parameters.algorithm == ()


def test_algorithms_of_two_dimensions_stand_beside_each_other() -> None:
    simulation = simulation_of()
    basis = drafted(simulation)
    for label in ("dim 1  algorithm", "dim 0  algorithm"):
        basis = drafted(basis, **field_named(label, simulation).parse_text(basis, "ring"))
    assert basis.setup.parameters.algorithm == ("0=ring", "1=ring")
    basis = drafted(basis, **field_named("dim 0  algorithm", simulation).parse_text(basis, "default"))
    assert basis.setup.parameters.algorithm == ("1=ring",)


def test_a_figure_is_scrubbed_by_a_tenth_to_three_figures_and_always_moves() -> None:
    assert scrubbed_figure(450.0, 1, large=False) == 495.0
    assert scrubbed_figure(450.0, -1, large=False) == 409.0
    assert scrubbed_figure(450.0, 1, large=True) == 900.0
    for value in (0.001, 0.5, 1.0, 3.0, 7.0, 123456.0):
        up, down = (scrubbed_figure(value, direction, large=False) for direction in (1, -1))
        assert down < value < up


def test_a_latency_of_0_can_be_raised_and_is_not_lowered() -> None:
    dims = ("switch:8:4:0",)
    assert scrubbed("dim 0  latency", 1, dim=dims) == {"dim": ("switch:8:4:1",)}
    with pytest.raises(UsageError, match="NS `-1` is not a number from 0 to 1e9"):
        scrubbed("dim 0  latency", -1, dim=dims)


@pytest.mark.parametrize(
    ("label", "text", "expected"),
    [
        ("world", "32", {"world": 32}),
        ("tp", "4", {"tp": 4}),
        ("rank order", "tp-pp-dp", {"rank_order": "tp-pp-dp"}),
        ("schedule", "layer-loop", {"schedule": "layer-loop"}),
        ("microbatches", "7", {"microbatches": 7}),
        ("dim 0  bandwidth", "12.5", {"dim": ("switch:2:12.5:50", DIMS[1])}),
        ("dim 1  latency", "0", {"dim": (DIMS[0], "ring:4:2:0")}),
        ("dim 0  algorithm", "ring", {"algorithm": ("0=ring",)}),
        ("dim 0  algorithm", "direct4", {"algorithm": ("0=direct4",)}),
        ("endpoint delay", "0", {"endpoint_delay": 0}),
        ("local mem bw", "4800", {"local_mem_bw": 4800.0}),
        ("compute scale", "1e-3", {"compute_scale": 0.001}),
        ("comm scale", "0", {"comm_scale": 0.0}),
        ("no fold", "on", {"no_fold": True}),
        ("no fold", "off", {}),
    ],
)
def test_typing_sets_one_parameter(label: str, text: str, expected: dict[str, object]) -> None:
    assert typed(label, text) == expected


EXAMPLE = ", for example switch:8:450:500"
BANDWIDTH = "GBPS `{}` is not a number from 1e-6 to 1e9 (GB/s)"


@pytest.mark.parametrize(
    ("label", "text", "complaint"),
    [
        ("world", "many", "--world many: a whole number from 1 to 2^40 is expected"),
        ("tp", "0", "--tp 0: a whole number from 1 to 2^40 is expected"),
        ("pp", "-1", "--pp -1: a whole number from 1 to 2^40 is expected"),
        ("ep", "", "--ep : a whole number from 1 to 2^40 is expected"),
        ("microbatches", "2.5", "--microbatches 2.5: a whole number from 1 to 2^40 is expected"),
        ("endpoint delay", "-1", "--endpoint-delay -1: a whole number from 0 to 2^40 is expected"),
        ("rank order", "x", f"--rank-order: one of {', '.join(choices('rank_order'))} is expected"),
        ("schedule", "2f2b", f"--schedule: one of {', '.join(choices('schedule'))} is expected"),
        ("dim 0  bandwidth", "fast", "--dim switch:2:fast:50: " + BANDWIDTH.format("fast")),
        ("dim 0  bandwidth", "0", "--dim switch:2:0:50: " + BANDWIDTH.format("0")),
        ("dim 0  bandwidth", "4:5", "--dim switch:2:4:5:50: KIND:SIZE:GBPS:NS is expected" + EXAMPLE),
        ("dim 0  bandwidth", "nan", "--dim switch:2:nan:50: " + BANDWIDTH.format("nan")),
        ("dim 0  latency", "", "--dim switch:2:4:: NS `` is not a number from 0 to 1e9 (ns a hop)"),
        ("dim 1  latency", "-5", "--dim ring:4:2:-5: NS `-5` is not a number from 0 to 1e9 (ns a hop)"),
        (
            "dim 0  algorithm", "fast",
            "--algorithm 0=fast: NAME `fast` is not default, ring, direct, direct<W>, halving-doubling, "
            "double-binary-tree, one-ring, one-direct or one-halving-doubling",
        ),
        ("local mem bw", "0", "--local-mem-bw 0: a number above 0 (up to 1e12) is expected"),
        ("compute scale", "-1", "--compute-scale -1: a number of 0 or more (up to 1e12) is expected"),
        ("comm scale", "inf", "--comm-scale inf: a number of 0 or more (up to 1e12) is expected"),
        ("no fold", "maybe", "--no-fold: on or off is expected"),
        ("world", "\x1b[2J", "--world \\x1b[2J: a whole number from 1 to 2^40 is expected"),
    ],
)  # fmt: skip
def test_a_value_that_cannot_be_is_refused_with_what_would_fit(label: str, text: str, complaint: str) -> None:
    with pytest.raises(UsageError) as refused:
        typed(label, text)
    assert str(refused.value) == complaint


@pytest.mark.parametrize("text", ["1_0", "١٢", "0x10"], ids=["underscore", "arabic digits", "hexadecimal"])
@pytest.mark.parametrize("label", ["dim 0  bandwidth", "dim 0  latency", "compute scale", "tp"])
def test_only_plain_decimal_numbers_are_taken(label: str, text: str) -> None:
    with pytest.raises(UsageError):
        typed(label, text)


def test_the_form_of_flows_shows_the_defaults_of_their_model() -> None:
    simulation = simulation_of(network="flows", cluster="spectrum-x:8", dim=())
    shown = {field.label: field.text(simulation) for field in fields_for(simulation)}
    assert (shown["send latency"], shown["ecmp"], shown["link rate"]) == ("3000", "simai", "none")
    assert (shown["other job"], shown["job gpus"]) == ("none", "none")
    plain = simulation_of(network="flows", cluster="spectrum-x:8", dim=(), flow_model="plain")
    shown = {field.label: field.text(plain) for field in fields_for(plain)}
    assert (shown["send latency"], shown["ecmp"]) == ("0", "seeded")


@pytest.mark.parametrize(
    ("step", "gone"), [({"prefill": 64}, "--zero"), ({"decode": 8, "context": 64}, "--global-batch")]
)
def test_the_form_of_an_inference_step_has_what_the_step_takes(step: dict[str, int], gone: str) -> None:
    opened = ModelMaker("m", MODELS["llama-3-8b"]).empty_workload()
    options = [
        {field.option for field in fields_for(simulate(opened, Parameters(gpu="h100", **given)))}
        for given in ({}, step)
    ]
    assert options[1] < options[0]
    assert {"--prefill", "--decode", "--context", "--kv-dtype", "--tp", "--precision"} <= options[1]
    assert not {gone, "--schedule", "--seq", "--recompute", "--engine-preset"} & options[1]

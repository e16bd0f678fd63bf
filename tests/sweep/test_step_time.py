"""The step time alone is that of the whole run, to the ns: models, files, schedules, networks.

Seen to fail on these bugs, planted one at a time: collectives joined on streams where others are
asynchronous, or where weight gradients are; groups with members of several classes taken as one; the
first and not the last of a stream's ops waited for; channels that are always free;
another run's transfers in a shared order; a ring that always takes longer than attention; a part that leaves
its stream free; a part whose stream was always free before it; a wait of one action taken for another's;
one step's messages for those of the next; a split that begins when its product ends, whatever came before;
the first product of a split cell left out; gathers that are each awaited as if they were the first; a row
that does not wait for its gather; gathers that begin before compute has come to them; classes that meet and
do not wait for each other; all cases of a part taken for its first; what is sent arriving at all classes at
once; uneven loads priced as those of the first rank; loads of another run in a shared folding.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simcore.diagnostics import InputError, UsageError
from simcore.model.maker import ModelMaker
from simcore.model.mixers import Mamba
from simcore.model.sizes import Mla, Model, Moe
from simcore.parameters import Parameters
from simcore.records import replace
from simcore.setup import Setup
from simcore.simulation import simulate
from simcore.sources.inputs import open_input, open_model
from simcore.sweeping import step_time
from simcore.sweeping.layouts import list_layouts
from simcore.sweeping.space import Space
from simcore.sweeping.step_time import StepTimes
from simcore.workload import Workload
from tests.command_line.running import ROOT
from tests.engine.test_folding_with_overrides import overridden
from tests.strategies import Case, Cell, Row, make_workload

_DENSE = Model("dense", 8, 256, 8, 4, 32, 512, True, 1000, 128)
_OLD = Model(
    "old", 8, 256, 8, 8, 32, 1024, False, 1000, 128, dropout=True, bias="all", norm_bias=True, positions=128
)
_EXPERTS = Model("experts", 8, 256, 8, 4, 32, 512, True, 1000, 128, moe=Moe(8, 2, 128, 1, 1))
# Layers of several kinds: of a recurrence alone, of experts alone, of a window and a dense part, of both.
_BASE = Model("base", 8, 256, 8, 4, 32, 512, True, 1000, 128, moe=Moe(8, 2, 128, 1))
_MIXED = replace(
    _BASE, name="mixed", pattern=(0, 1, 2, 3, 0, 0, 1, 3),
    kinds=(
        replace(_BASE, name="mamba", moe=None, ffn=0, norms=1, mamba=Mamba(8, 32, 4, 16)),
        replace(_BASE, name="experts", attends=False, norms=1),
        replace(_BASE, name="window", moe=None, window=16),
        replace(_BASE, name="both"),
    ),
)  # fmt: skip
_MODELS = {one.name: ModelMaker(one.name, one).empty_workload() for one in (_DENSE, _OLD, _EXPERTS, _MIXED)}
# What was asked before is kept, as in a sweep.
_TIMES = {name: StepTimes() for name in _MODELS}
_SCHEDULES = (
    None, "1f1b", "gpipe", "interleaved", "zb-h1", "zb-h2", "zb-v", "v-half", "v-min", "dualpipe",
    "dualpipev", "looped-bfs", "breadth-first", "zb-1p", "zb-2p",
)  # fmt: skip


def _either(*values: Any) -> st.SearchStrategy[Any]:
    return st.sampled_from(values)


_OF_MODELS = st.fixed_dictionaries(
    {
        "dp": _either(1, 2, 4, 3),
        "tp": _either(2, 4, 1),
        "pp": _either(4, 2, 1),
        "cp": _either(1, 1, 2, 4),
        "schedule": st.sampled_from(_SCHEDULES),
        "virtual_stages": _either(None, None, 2),
        "stage_layers": _either(*[None] * 6, "3,5", "1+2,3+2"),
        "pipeline_layout": _either(*[None] * 6, "Ett|ttt||tttL", "Et*4|t*3|t|mL"),
        "microbatch_size": _either(1, 2),
        "microbatches": _either(8, 4, 3),
        "recompute": _either("none", "selective", "full"),
        "recompute_layers": _either(*[None] * 5, "1", "1/2"),
        "zero": _either("0", "1", "2", "3"),
        "sequence_parallel": _either("on", "off"),
        "flash": _either("on", "off"),
        "pp_scatter": _either("on", "off"),
        "prefetch": _either(None, None, "0", "2"),
        "reshard_after_forward": _either(None, None, "off"),
        "shard_size": _either(None, None, 2),
        "ep": _either(1, 1, 2),
        "etp": _either(None, None, 2),
        "dispatch": _either(None, None, "hierarchical"),
        "pad_to_capacity": _either(False, False, True),
        "cp_comm_type": _either("p2p", "all-gather", "a2a", "a2a+p2p"),
        "cp_inner": _either(None, 2),
        "steps": _either(1, 1, 1, 2),
        "overlap_grad_reduce": _either(False, False, True),
        "overlap_param_gather": _either(False, False, True),
        "overlap_tp": _either(False, False, True),
        "offload": _either(None, None, None, 20.0),
        "offload_layers": _either(*[None] * 5, 1),
        "recompute_rows": _either(None, None, None, "mlp_act"),
        "rank_order": _either("tp-ep-dp-pp", "tp-ep-dp-pp", "tp-pp-dp"),
        "compute_scale": _either(1.0, 1.0, 0.37),
        "comm_scale": _either(1.0, 1.0, 0.0, 7.3),
        "network": _either(*["analytical"] * 7, "simai-auto", "shared"),
        "cluster": _either(*[None] * 3, "gb200-nvl72"),
        "expert_imbalance": _either(None, None, "lognormal:0.8"),
        "slow_rank": _either(*[()] * 5, ("0=1.7",), ("1=1.05",)),
        "slow_link": _either(*[()] * 7, ("0:0=0.2",)),
        "bucket_size": _either(None, None, 200_000),
    }
)


def layout_of(name: str, given: dict[str, Any]) -> dict[str, Any]:
    """Parameters of a layout whose world and batch fit it."""
    given = dict(given)
    dp = given.pop("dp")
    given["world"] = given["tp"] * given["pp"] * given["cp"] * dp
    given["global_batch"] = given.pop("microbatches") * given["microbatch_size"] * dp
    if name not in ("experts", "mixed"):
        given |= {"ep": 1, "expert_imbalance": None, "pad_to_capacity": False}
    # Where what is asked for cannot be, nothing is compared: most examples are of what can be.
    if given["zero"] not in ("0", "1"):
        given |= {"overlap_grad_reduce": False, "overlap_param_gather": False}
    if given["zero"] == "0":
        given["overlap_param_gather"] = False
    if not (given["overlap_grad_reduce"] or given["overlap_param_gather"]):
        given["bucket_size"] = None
    if given["tp"] == 1 or given["sequence_parallel"] == "off":
        given["overlap_tp"] = False
    if given["world"] < 2:
        given["slow_rank"] = ()
    if given["ep"] == 1:
        given["dispatch"] = None
    given["expert_capacity"] = 1.25 if given["pad_to_capacity"] else None
    if given["cp_comm_type"] != "a2a+p2p":
        given["cp_inner"] = None
    if given.get("zero") != "3":
        given |= {"prefetch": None, "reshard_after_forward": None}
    if given.get("zero") not in ("1", "2", "3"):
        given["shard_size"] = None
    return given


def _found(times: StepTimes, workload: Workload, given: dict[str, Any]) -> None:
    """Both say the same: the step and what beside it a sweep keeps, or why it cannot be."""
    _found_of(times, workload, Parameters(**given))


def _found_of(times: StepTimes, workload: Workload, parameters: Parameters) -> None:
    try:
        whole = simulate(workload, parameters)
    except (UsageError, InputError) as error:
        with pytest.raises(type(error), match=re.escape(str(error))):
            times.find_step_time(Setup(workload, parameters))
        return
    found = times.find_step_time(Setup(workload, parameters))
    assert found.step_time_ns == whole.step_time_ns
    program = whole.program
    assert found.layout == whole.layout
    assert (found.schedule, found.virtual_stages) == (program.schedule, program.virtual_stages)
    assert found.microbatches == program.microbatches * program.steps
    assert found.order is None or found.order.stages == program.order.stages


@settings(deadline=None)
@given(_either(*_MODELS), _OF_MODELS)
def test_of_models(name: str, given: dict[str, Any]) -> None:
    _found(_TIMES[name], _MODELS[name], layout_of(name, given))


@pytest.mark.parametrize("schedule", ["1f1b", "interleaved", "zb-h1"])
@pytest.mark.parametrize("zero", ["0", "1"])
@pytest.mark.parametrize("etp", [1, 2])
def test_of_hops_over_nodes(tmp_path: Path, schedule: str, zero: str, etp: int) -> None:
    """Servers of two, so that expert groups are on several nodes."""
    gpu = tmp_path / "of-2.toml"
    gpu.write_text('[gpu]\nbase = "h100"\nserver = 2\n', "utf-8")
    _found(
        StepTimes(),
        _MODELS["experts"],
        {
            "world": 16, "tp": etp, "pp": 2, "ep": 4, "etp": etp, "schedule": schedule, "zero": zero,
            "virtual_stages": 2 if schedule == "interleaved" else None, "gpu": str(gpu), "microbatches": 8,
            "dispatch": "hierarchical", "node_limit": 1, "recompute": "full", "overlap_grad_reduce": True,
        },
    )  # fmt: skip


@pytest.mark.parametrize("schedule", ["1f1b", "interleaved", "zb-h1"])
@pytest.mark.parametrize("kind", ["p2p", "a2a+p2p"])
def test_of_latent_attention_made_again(schedule: str, kind: str) -> None:
    mla = Mla(48, 32, 16, 8, 16)
    model = Model("latent", 8, 256, 8, 8, 32, 512, True, 1000, 128, False, mla=mla)
    _found(
        StepTimes(),
        ModelMaker("latent", model).empty_workload(),
        {
            "world": 16, "pp": 2, "cp": 4, "schedule": schedule, "microbatches": 8, "gpu": "h100",
            "virtual_stages": 2 if schedule == "interleaved" else None, "cp_comm_type": kind,
            "cp_inner": 2 if kind == "a2a+p2p" else None, "recompute_rows": "attention,mla_up_proj",
        },
    )  # fmt: skip


@cache
def layouts_by_name(name: str, world: int) -> list[Parameters]:
    """All layouts of a model by its name, on so many GPUs, also those that no recipe has."""
    space = Space(Parameters(world=world, global_batch=world), layouts=True)
    candidates = list_layouts(_workload(name), space)
    # No trainer of these runs ZeRO 3 in a pipeline.
    return [one.parameters for one in candidates if one.parameters.zero != "3" or one.parameters.pp == 1]


@cache
def _workload(name: str) -> Workload:
    return open_model(name)


# Where collectives take nothing, about as long as compute, and longer.
OF_NAMES = st.tuples(
    _either("llama-3-8b", "mixtral-8x7b"), _either(8, 16, 32), st.integers(0, 1 << 30),
    _either(0.0, 0.3, 1.0, 4.0, 30.0), _either("p2p", "all-gather"), _either("1", "0"),
)  # fmt: skip


def of_name(given: tuple[str, int, int, float, str, str]) -> tuple[str, Parameters]:
    """A model and one of its layouts. given: of `OF_NAMES`."""
    name, world, place, scale, exchange, prefetch = given
    found = layouts_by_name(name, world)
    parameters = replace(found[place % len(found)], comm_scale=scale)
    if (parameters.cp or 1) > 1:
        parameters = replace(parameters, cp_comm_type=exchange)
    if parameters.zero == "3":
        parameters = replace(parameters, prefetch=prefetch)
    return name, parameters


_NAMED_TIMES: dict[str, StepTimes] = {}


@settings(deadline=None)
@given(OF_NAMES)
def test_of_layouts_of_models_by_name(given: tuple[str, int, int, float, str, str]) -> None:
    """Rings, and what ZeRO sends, beside compute that takes about as long."""
    name, parameters = of_name(given)
    times = _NAMED_TIMES.setdefault(name, StepTimes())
    _found_of(times, _workload(name), parameters)


@pytest.mark.parametrize(
    "given",
    [
        {"jitter": 0.01},
        {"jitter": 0.3, "seed": 5, "overlap_grad_reduce": True, "zero": "1", "overlap_param_gather": True},
        {"jitter": 0.02, "expert_imbalance": "lognormal:0.8", "ep": 2, "tp": 1},
        {"jitter": 0.02, "tp": 1, "pp": 16, "slow_rank": ("3=1.2",)},
        {"jitter": 0.02, "time_scale": ("stream tp=0.5",)},
        {"jitter": 0.02, "network": "links"},
        {"overlap_fwd_bwd": True, "schedule": "dualpipe"},
        {"slow_rank": ("0=1.7", "9=2.5")},
        {"schedule": "gpipe", "comm_scale": 1000.0, "tp": 1, "global_batch": 32},
        {"slow_link": ("0:3=0.2",)},
        {"time_scale": ("stream tp=0.5",)},
        {"no_fold": True},
        {"expert_imbalance": "lognormal:0.8", "ep": 2, "tp": 1},
        {"seq_imbalance": "lognormal:0.8", "ep": 2, "tp": 1},
        {"network": "links"},
    ],
)
def test_of_faults_and_what_no_op_is_joined_under(given: dict[str, Any]) -> None:
    given = {"world": 16, "tp": 2, "pp": 4, "microbatch_size": 1, "global_batch": 16} | given
    name = "experts" if "ep" in given else "old"
    _found(_TIMES[name], _MODELS[name], given)


@pytest.mark.parametrize("beside", [False, True], ids=["weight gradients", "a forward"])
def test_a_collective_that_is_queued_is_not_joined(beside: bool) -> None:
    """On one stream: what compute waits for stands behind what it does not wait for."""
    whole = Cell(1000, "ALLREDUCE", "tp", 50_000_000)
    found = [
        Row("attention_column", Cell(1000), Cell(1000), Cell(1000) if beside else whole),
        Row("attention_row", whole, whole, Cell(1000)),
        Row("mlp_row", whole, whole, Cell(1000)),
    ]
    workload = make_workload(found, tp=4, pp=2, all_gpus=8, pp_comm=1000)
    if beside:
        workload.fwd.asynchronous.add(1)
    _found(StepTimes(), workload, {"microbatches": 3})


@pytest.mark.parametrize("imbalance", [None, "lognormal:0.8"])
def test_seeds_of_a_run_share_what_has_no_seed(imbalance: str | None) -> None:
    """Planted: loads of experts that are drawn were those of the first seed."""
    times = StepTimes()
    given: dict[str, Any] = {
        "world": 4,
        "pp": 2,
        "ep": 2,
        "microbatch_size": 1,
        "global_batch": 8,
        "gpu": "h100",
    }
    given |= {"jitter": 0.05, "expert_imbalance": imbalance}
    for seed in (1, 2, 1):
        _found(times, _MODELS["experts"], given | {"seed": seed})
    assert len(times._jittered_runs) == (2 if imbalance else 1)


@pytest.mark.parametrize(
    "given",
    [
        {"overlap_tp": True, "sequence_parallel": "on"},
        {"overlap_grad_reduce": True, "overlap_param_gather": True, "zero": "1"},
        {"overlap_grad_reduce": True, "overlap_param_gather": True, "zero": "1", "bucket_size": 200_000},
        {"schedule": "interleaved", "virtual_stages": 2, "overlap_tp": True, "sequence_parallel": "on"},
        {"tp": 1, "pp": 2, "cp": 2, "zero": "1", "overlap_param_gather": True, "steps": 2},
        {"pp": 1, "zero": "3", "prefetch": "2"},
        {"expert_imbalance": "lognormal:0.8", "ep": 4, "tp": 1, "pp": 2, "zero": "1"},
        {"expert_imbalance": "lognormal:0.8", "ep": 4, "overlap_tp": True, "sequence_parallel": "on"},
        {"offload": 20.0, "offload_layers": 1, "schedule": "interleaved", "pp": 2, "virtual_stages": 2},
        {"jitter": 0.02, "overlap_tp": True, "sequence_parallel": "on"},
        {"jitter": 0.02, "schedule": "zb-h1", "steps": 2, "slow_rank": ("9=2.5",)},
        {"slow_rank": ("0=1.7", "9=2.5"), "overlap_tp": True, "sequence_parallel": "on"},
    ],
)  # fmt: skip
def test_no_whole_run_is_made(given: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """What goes through the fast step: a run that it falls back to would be right, and slow."""
    given = {"world": 16, "tp": 2, "pp": 4, "microbatch_size": 1, "global_batch": 16} | given
    name = "experts" if "ep" in given else "dense"
    whole = simulate(_MODELS[name], Parameters(**given)).step_time_ns
    monkeypatch.setattr(step_time, "_simulated", None)
    for times in (StepTimes(), _TIMES[name]):
        assert times.find_step_time(Setup(_MODELS[name], Parameters(**given))).step_time_ns == whole


@settings(deadline=None)
@given(overridden(), st.booleans())
def test_of_made_files(case: Case, paired: bool) -> None:
    given = {} if paired else {"overlap_fwd_bwd": False}
    _found_of(StepTimes(), case.workload, replace(case.parameters, **given))


def _files() -> dict[str, Workload]:
    paths = sorted((ROOT / "fixtures").glob("0*.txt"))
    found = {}
    for path in paths:
        try:
            workload = open_input(str(path))
        except (UsageError, InputError):
            continue
        if isinstance(workload, Workload):
            found[path.name] = workload
    return found


_FILES = _files()
_FILE_TIMES = {name: StepTimes() for name in _FILES}
_OF_FILES = st.fixed_dictionaries(
    {
        "world": _either(None, 128, 256),
        "tp": _either(None, None, 4),
        "rescale": _either("off", "on"),
        "schedule": st.sampled_from((*_SCHEDULES, "layer-loop")),
        "virtual_stages": _either(None, 2),
        "microbatches": _either(None, 4, 8),
        "stage_layout": _either("uniform", "megatron"),
        "steps": _either(1, 1, 2),
        "overlap_grad_reduce": _either(False, False, True),
        "overlap_param_gather": _either(False, False, True),
        "network": _either("analytical", "analytical", "simai-auto"),
        "layer_scale": _either((), ("mlp_row:fwd=0.5",)),
    }
)


@pytest.mark.slow
@settings(deadline=None, max_examples=25)
@given(st.sampled_from(sorted(_FILES)), _OF_FILES)
def test_of_files(name: str, given: dict[str, Any]) -> None:
    _found(_FILE_TIMES[name], _FILES[name], given)


def test_models_by_name_share_an_order() -> None:
    """Of two layouts with the same pipeline the second has no stages built, and its own time."""
    workload = open_model("gpt-3-175b")
    times = StepTimes()
    for tp, recompute in ((8, "none"), (8, "full"), (4, "selective"), (2, "none")):
        parameters = Parameters(
            world=tp * 8 * 4,
            tp=tp,
            pp=8,
            global_batch=64,
            recompute=recompute,
            zero="1",
            sequence_parallel="on",
        )
        assert (
            times.find_step_time(Setup(workload, parameters)).step_time_ns
            == simulate(workload, parameters).step_time_ns
        )
    assert len(times._orders) == 1

"""Launch arguments of Megatron-LM, torchtitan and DeepSpeed: read as a model with a layout, written back."""

from __future__ import annotations

import contextlib
import json
import re
from pathlib import Path
from typing import Any

import pytest

import simcore as wl
from simcore.diagnostics import Diagnostic, InputError, UsageError
from simcore.model.known_models import MODELS
from simcore.model.launch import Launch, LaunchParameters, module_of, read_launch, write_launch
from simcore.model.launch.fields import differences
from simcore.model.launch.shell import calculate, find_words
from simcore.model.resolving import resolve_training
from simcore.model.training import Training
from simcore.parameters import Parameters
from simcore.sources.inputs import open_model
from simcore.sweeping.layouts import list_layouts
from simcore.sweeping.space import Candidate, Space
from simcore.workload.model import ModelParameters

FOLDER = Path(__file__).parents[2] / "fixtures" / "launch"
COMMANDS = sorted(FOLDER.glob("*.txt"))
FILES = {
    "megatron": COMMANDS,
    "torchtitan": sorted(FOLDER.glob("*.toml")),
    "deepspeed": sorted(FOLDER.glob("*.json")),
}
# What a public script states in another way than it is written back: an older name, a word for what is taken
# anyway, or what is priced otherwise and warned of.
SAME = {
    "--nproc_per_node": "--nproc-per-node", "--pad-vocab-size-to": "--padded-vocab-size",
    "--qk-nope-head-dim": "--qk-head-dim", "--qk-rope-head-dim": "--qk-pos-emb-head-dim",
}  # fmt: skip
IMPLIED = {
    "--use-rotary-position-embeddings": "--position-embedding-type rope",
    "--no-position-embedding": "--position-embedding-type rope",
    "--checkpoint-activations": "--recompute-granularity full",
    "--deepspeed-activation-checkpointing": "--recompute-granularity full",
    "--activations-checkpoint-method uniform": "--recompute-method uniform",
    "--recompute-activations": "--recompute-granularity selective",
    "--position-embedding-type alibi": "--position-embedding-type rope",
    "--pp-partition-method type:transformer|embedding": "--account-for-embedding-in-pipeline-split",
    "--decoder-first-pipeline-num-layers 1": "--pipeline-model-parallel-layout Et|t*4",
    "--fp8-recipe blockwise": "--fp8-format hybrid",
    "--moe-token-dispatcher-type flex": "--moe-token-dispatcher-type alltoall",
    "--recompute-modules mlp moe mla_up_proj layernorm": "--recompute-modules layernorm",
}
# Priced otherwise, which is a warning: what it asked for is not written.
WARNED = ("--recompute-modules mla_up_proj mlp moe", "--mtp-num-layers 1")


def training_of(launch: Launch, model: str = "llama-3-8b", **explicit: Any) -> Training:
    parameters = Parameters(**launch.under(explicit))
    return resolve_training(launch.model or MODELS[model], parameters.part(ModelParameters))


def severities(launch: Launch) -> dict[str, list[Diagnostic]]:
    by_severity: dict[str, list[Diagnostic]] = {"note": [], "warning": []}
    for one in launch.diagnostics:
        by_severity[one.severity].append(one)
    return by_severity


@pytest.mark.parametrize("path", COMMANDS, ids=lambda path: path.stem)
def test_what_public_scripts_state_is_written_back_alike(path: Path) -> None:
    launch = read_launch(str(path))
    assert launch.model is not None
    text, unstated = write_launch("megatron", launch.model, LaunchParameters(**launch.under({})), launch.rest)
    assert unstated == []
    again = read_launch(text.replace("\\\n", " "))
    assert differences(training_of(launch), training_of(again)) == []
    words = " ".join(re.sub(r"['\"()\\]", "", text.replace("torchrun ", "")).split())
    lost = []
    for line in path.read_text().splitlines():
        plain = re.sub(r"['\"()]", "", line)
        name, _, value = plain.partition(" ")
        plain = f"{SAME.get(name, name)} {value}".strip()
        plain = IMPLIED.get(plain, plain)
        if name.startswith("#") or re.search(rf"(^| ){re.escape(plain)}( |$)", words) or plain in WARNED:
            continue
        lost.append(plain)
    # What is left says the default of Megatron, or what another argument says.
    for plain in lost:
        without = "\n".join(
            one for one in path.read_text().splitlines() if re.sub(r"['\"()]", "", one) != plain
        )
        assert differences(training_of(launch), training_of(read_launch(without))) == [], plain


def test_there_are_ten_public_scripts_or_more_of_four_projects() -> None:
    heads = [path.read_text().splitlines()[0] for path in COMMANDS]
    assert len(heads) >= 10
    assert {head.split()[1].partition("/")[0] for head in heads} == {
        "NVIDIA",
        "alibaba",
        "bigscience-workshop",
    }


@pytest.mark.parametrize("path", [*FILES["torchtitan"], *FILES["deepspeed"]], ids=lambda path: path.stem)
def test_torchtitan_and_deepspeed_are_written_back_alike(path: Path) -> None:
    launch = read_launch(str(path))
    model = launch.model or MODELS["llama-3-8b"]
    text, unstated = write_launch(launch.project, model, LaunchParameters(**launch.under({})), launch.rest)
    assert unstated == []
    copy = path.parent / f"no file{path.suffix}"
    from simcore.model.launch import read_launch_file

    again = read_launch_file(str(copy), text.encode())
    assert differences(training_of(launch), training_of(again)) == []
    assert {*launch.rest} == {*again.rest}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("llama3_8b_fp8", {"world": 8, "zero": 1, "precision": "fp8", "grad_bytes": 2}),
        ("mixtral_8x7b_interleaved", {"tp": 2, "pp": 4, "chunks": 8, "ep": 8, "etp": 1, "world": 64}),
        ("deepseek_v3_proxy", {"position_layers": (2, 2, 2, 2, 2, 2, 1, 1), "predictions": 1, "ep": 16}),
        ("deepseek_v3_fsdp", {"zero": 3, "dp": 512, "recompute_rows": frozenset({"mla_up_proj", "norm"})}),
        ("pai_qwen3_a22b", {"stage_layers": (10, 12, 12, 12, 12, 12, 12, 12), "etp": 1, "recompute": "full"}),
        ("pai_deepseek_v3", {"position_layers": (1, *(4,) * 15), "predictions": 1, "ep": 32}),
        ("sc21_145b", {"chunks": 2, "recompute": "full", "world": 1536, "microbatches": 48}),
        ("bloom_176b", {"engine": "deepspeed", "zero": 1, "stage_layers": (5, *(6,) * 10, 5)}),
        ("pai_llama31_8b", {"tp": 4, "pp": 2, "dp": 1, "overlap_tp": True, "sequence_parallel": True}),
        ("gpt3_15b", {"tp": 8, "dp": 8, "microbatch_size": 4}),
    ],
)  # fmt: skip
def test_the_layout_of_a_public_script(name: str, expected: dict[str, Any]) -> None:
    training = training_of(read_launch(str(FOLDER / f"{name}.txt")))
    assert {field: getattr(training, field) for field in expected} == expected


@pytest.mark.parametrize("name", [*MODELS])
def test_a_known_model_is_written_and_known_again(name: str) -> None:
    text, unstated = write_launch("megatron", MODELS[name], LaunchParameters(global_batch=8))
    again = read_launch(text.replace("\\\n", " "))
    assert unstated == []
    assert again.model is not None
    assert again.model.name == name


@pytest.mark.parametrize(
    ("model", "project"),
    [("llama-3-8b", "megatron"), ("mixtral-8x7b", "megatron"), ("llama-3-8b", "torchtitan")],
)
def test_every_layout_is_written_and_read_back_or_says_what_is_lost(model: str, project: str) -> None:
    """Of Megatron what is lost is the schedule or ZeRO 2 and 3, which its pipelines do not have."""
    fixed = Parameters(world=16, global_batch=32, overlap_grad_reduce=True)
    if project == "torchtitan":
        fixed = Parameters(world=16, global_batch=32, engine_preset="torchtitan", zero="3")
    space = Space(fixed, layouts=True)
    whole = 0
    candidates: list[Candidate] = list(list_layouts(open_model(model), space))[::37]
    for candidate in candidates:
        parameters = candidate.parameters
        try:
            training = resolve_training(MODELS[model], parameters.part(ModelParameters))
        except UsageError:
            continue
        text, unstated = write_launch(project, MODELS[model], parameters.part(LaunchParameters))
        if unstated:
            if project == "megatron":
                assert {*unstated} <= {"schedule", "placement", "chunks", "position_layers", "zero"}, (
                    unstated,
                    text,
                )
            continue
        whole += 1
        from simcore.model.launch import read_launch_file

        again = read_launch_file("no file", text.encode())
        own = {"engine"} if project == "megatron" else set()
        assert {*differences(training, training_of(again))} <= own
    assert whole > 20


@pytest.mark.parametrize(
    ("arguments", "name", "says"),
    [
        ("--num-layers 3x", "--num-layers", "3x"),
        ("--num-layers", "--num-layers", "no value"),
        ("--bf16 --fp16", "--fp16", "--bf16"),
        ("--swiglu 1", "--swiglu", "1"),
        ("--overlap-param-gather", "--overlap-param-gather", "--use-distributed-optimizer"),
        ("--fp8-format hybrid --fp4-format e2m1", "--fp4-format", "--fp8-format"),
        ("--cp-comm-type ring", "--cp-comm-type", "p2p"),
        ("--num-layers-per-virtual-pipeline-stage 5 --pipeline-model-parallel-size 2",
         "--num-layers-per-virtual-pipeline-stage", "16"),
        ("--num-layers-per-virtual-pipeline-stage 2 --num-virtual-stages-per-pipeline-rank 2",
         "--num-virtual-stages-per-pipeline-rank", "--num-layers-per-virtual-pipeline-stage"),
        ("--recompute-granularity full", "--recompute-granularity", "--recompute-method"),
        ("--num-experts 8 --moe-layer-freq [1]*3+[0]*29", "--moe-layer-freq", "32"),
        ("--num-experts 8 --expert-tensor-parallel-size 2 --tensor-model-parallel-size 4",
         "--expert-tensor-parallel-size", "4"),
        ("--pipeline-model-parallel-layout Et*32mL", "--pipeline-model-parallel-layout", "m"),
        ("--grad-reduce-in-bf16 --accumulate-allreduce-grads-in-fp32",
         "--accumulate-allreduce-grads-in-fp32", "--grad-reduce-in-bf16"),
        ("--decoder-first-pipeline-num-layers 5 --pipeline-model-parallel-size 3",
         "--decoder-first-pipeline-num-layers", "27"),
    ],
)  # fmt: skip
def test_what_is_broken_or_contradictory_is_an_error_with_its_position(
    arguments: str, name: str, says: str, tmp_path: Path
) -> None:
    script = tmp_path / "run.sh"
    sizes = "--num-layers 32 --hidden-size 4096 --num-attention-heads 32 --seq-length 4096 --bf16"
    broken = re.split(r"\s(?=--)", arguments)
    if arguments.partition(" ")[0] == "--num-layers":
        sizes = sizes.replace("--num-layers 32 ", "")
    script.write_text(
        "python pretrain_gpt.py \\\n  "
        + " \\\n  ".join([*re.split(r"\s(?=--)", sizes.strip()), *broken])
        + "\n"
    )
    with pytest.raises(InputError) as caught:
        read_launch(str(script))
    (one,) = caught.value.diagnostics
    line = next(
        index
        for index, text in enumerate(script.read_text().splitlines(), 1)
        if text.strip().split()[0] == name
    )
    assert (one.code, one.line, one.column) == ("launch-argument", line, 3)
    assert says in one.message


def test_arguments_without_meaning_are_listed_and_written_back() -> None:
    launch = read_launch(str(FOLDER / "pai_llama31_8b.txt"))
    (unused,) = [one for one in launch.diagnostics if one.code == "launch-argument-unused"]
    assert {"--lr", "--train-iters", "--clip-grad"} <= {*re.findall(r"--[\w-]+", unused.message)}
    assert "--num-layers" not in unused.message
    assert launch.model is not None
    text, _ = write_launch("megatron", launch.model, LaunchParameters(**launch.under({})), launch.rest)
    assert "--lr 1e-5" in text


def test_what_changes_the_step_and_cannot_be_stated_is_a_warning_with_its_position() -> None:
    launch = read_launch(str(FOLDER / "llama3_8b_fp8.txt"))
    lines = (FOLDER / "llama3_8b_fp8.txt").read_text().splitlines()
    warned = {lines[(one.line or 1) - 1].split()[0] for one in severities(launch)["warning"]}
    assert warned == {"--fp8-param-gather", "--cross-entropy-loss-fusion"}


# -- scripts -----------------------------------------------------------------------------

SCRIPT = """\
#!/bin/bash
#SBATCH --nodes=4
GPUS=8
SIZE=${1:-small}
EXTRA=${EXTRA:-}
if [ "$SIZE" = small ]; then
    LAYERS=12
elif [[ $SIZE == large && -z $NOTHING ]]; then
    LAYERS=24
fi
case $SIZE in
    s*) HIDDEN=$((GPUS * 96)) ;;
    *) HIDDEN=1024 ;;
esac
OPTIONS=(
    --num-layers $LAYERS  # comment
    --hidden-size ${HIDDEN}
)
[ $LAYERS -gt 12 ] && OPTIONS+=("--recompute-activations")
MORE=" \\
    --num-attention-heads 16 \\
    --seq-length 2048 --vocab-size 50257 \\
"
cat <<EOF > config
--num-layers 99 --hidden-size 7 --num-attention-heads 1 --seq-length 1 --bf16 --swiglu
EOF
for i in 1 2; do echo --num-layers $i; done
ranks="--nproc_per_node $GPUS --nnodes $SLURM_NNODES"
launch="torchrun $ranks pretrain_gpt.py ${MORE} ${OPTIONS[@]} $EXTRA --bf16"
echo $launch
eval $launch
"""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "run.sh"
    path.write_text(SCRIPT)
    return path


def test_a_script_is_followed_to_its_command(script: Path) -> None:
    small, large = read_launch(str(script)), read_launch(f"bash {script} large")
    assert small.model is not None
    assert large.model is not None
    assert (small.model.layers, small.model.hidden, small.values["world"]) == (12, 768, 32)
    assert (large.model.layers, large.model.hidden, large.values["recompute"]) == (24, 1024, "selective")


def test_the_environment_and_further_arguments_of_a_script(script: Path) -> None:
    launch = read_launch(f"EXTRA=--swiglu {script} large --micro-batch-size 4 --num-layers 36")
    assert launch.model is not None
    assert (launch.model.gated, launch.model.layers, launch.values["microbatch_size"]) == (True, 36, 4)


def test_a_value_that_only_the_caller_knows_names_its_variable(tmp_path: Path) -> None:
    path = tmp_path / "run.sh"
    path.write_text("torchrun pretrain_gpt.py --num-layers $LAYERS --hidden-size $2\n")
    for call, variable in ((str(path), "LAYERS"), (f"LAYERS=4 {path}", "$2")):
        with pytest.raises(InputError) as caught:
            read_launch(call)
        assert variable in str(caught.value)


def test_nothing_of_a_script_is_run(tmp_path: Path) -> None:
    path = tmp_path / "run.sh"
    path.write_text(f"X=$(touch {tmp_path}/made)\n`touch {tmp_path}/made`\ntouch {tmp_path}/made\n"
                    "python pretrain_gpt.py --num-layers $X\n")  # fmt: skip
    with pytest.raises(InputError):
        read_launch(str(path))
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize(
    "text",
    ["if [ a = a", "$(((((", "${${${", "case x in", "A=(", "'", '"$(', "while true; do", "f() {", "<<E",
     "A=$A$A;" * 60, "A=x;" + "A=$A$A$A$A;" * 40, "if " * 200, "A=(" * 2000, '"$(' * 2000, "$((" * 500,
     "A=x;B=" + "$A" * 9999, "${A:-" * 300],
)  # fmt: skip
def test_scripts_that_end_in_the_middle_are_refused_and_nothing_else(text: str) -> None:
    with contextlib.suppress(UsageError):
        find_words(text, frozenset(("num-layers",)))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2 * (3 + 4)", 14),
        ("7 / 2", 3),
        ("(4 > 1) ? 1 : 0", 1),
        ("1 && 0", 0),
        ("9**9", None),
        ("__import__", None),
    ],
)
def test_arithmetic_of_a_shell(text: str, value: int | None) -> None:
    assert calculate(text) == value


# -- torchtitan and DeepSpeed ------------------------------------------------------------


def test_torchtitan_shards_over_all_ranks_and_keeps_its_precision() -> None:
    training = training_of(read_launch(str(FOLDER / "llama3_405b.toml")), world=128)
    expected = {"tp": 8, "dp": 16, "zero": 3, "precision": "fp8", "compiled": True, "overlap_tp": True,
                "recompute": "full", "microbatch_size": 2, "global_batch": 32}  # fmt: skip
    assert {field: getattr(training, field) for field in expected} == expected
    assert training.model == MODELS["llama-3-405b"]


def test_a_key_of_torchtitan_that_does_not_fit_is_an_error_with_its_position(tmp_path: Path) -> None:
    path = tmp_path / "run.toml"
    path.write_text('[model]\nname = "llama3"\nflavor = "9B"\n\n[training]\nseq_len = 8192\n')
    with pytest.raises(InputError) as caught:
        read_launch(str(path))
    (one,) = caught.value.diagnostics
    assert (one.code, one.line, one.column) == ("launch-argument", 3, 1)


def test_deepspeed_states_a_batch_and_no_model() -> None:
    launch = read_launch(str(FOLDER / "ds_zero2.json"))
    assert launch.model is None
    training = training_of(launch)
    assert (training.world, training.zero, training.grad_bytes, training.engine) == (16, 2, 2, "deepspeed")
    assert training_of(launch, world=4).microbatch_size == 4
    with pytest.raises(UsageError):
        wl.load(from_args=str(FOLDER / "ds_zero2.json"))
    assert wl.load(from_args=str(FOLDER / "ds_zero2.json"), model="llama-3-8b").run().step_time_ns > 0


def test_deepspeed_says_what_is_offloaded() -> None:
    warned = [one.message for one in severities(read_launch(str(FOLDER / "ds_auto.json")))["warning"]]
    assert [message.partition(" ")[0] for message in warned] == ["zero_optimization.offload_optimizer.device"]


# -- as an input -------------------------------------------------------------------------


def test_python_runs_the_layout_and_what_it_is_given_itself() -> None:
    of = wl.load(from_args=str(FOLDER / "llama3_8b_fp8.txt"))
    flags: dict[str, Any] = {
        "world": 8, "microbatch_size": 1, "global_batch": 128, "zero": 1, "precision": "fp8",
        "grad_dtype": "bf16", "overlap_grad_reduce": True, "overlap_param_gather": True,
        "sequence_parallel": True,
    }  # fmt: skip
    plain = wl.load(model="llama-3-8b")
    assert of.run().step_time_ns == plain.run(**flags).step_time_ns
    assert of.run(tp=2).step_time_ns == plain.run(**flags, tp=2).step_time_ns
    swept = wl.sweep(of, tp=[1, 2, 4])
    assert len(swept) == 3
    fitting = [
        step
        for step, fits in zip(*(swept.to_dict()[key] for key in ("step_time_ns", "fits")), strict=True)
        if fits
    ]
    assert swept.best().step_time_ns == min(fitting)


@pytest.mark.parametrize(
    ("name", "explicit", "expected"),
    [
        ("mixtral_8x7b_interleaved", {"pp": 1}, {"pp": 1, "chunks": 1, "dp": 32}),
        ("deepseek_v3_proxy", {"pp": 2}, {"pp": 2, "chunks": 1, "predictions": 0}),
        ("llama3_8b_fp8", {"zero": "3", "engine_preset": "fsdp"}, {"zero": 3, "overlaps_gradients": False}),
        ("sc21_145b", {"world": 3072}, {"dp": 48, "microbatches": 24, "chunks": 2}),
        ("pai_qwen3_a22b", {"recompute": "none"}, {"recompute": "none"}),
        ("llama3_8b_fp8", {"global_batch": 64}, {"microbatches": 8}),
    ],
)
def test_a_flag_wins_over_launch_arguments_and_what_depends_on_it_goes(
    name: str, explicit: dict[str, Any], expected: dict[str, Any]
) -> None:
    training = training_of(read_launch(str(FOLDER / f"{name}.txt")), **explicit)
    assert {field: getattr(training, field) for field in expected} == expected


def test_windows_sinks_and_shared_experts_of_their_own_size_are_read_and_written() -> None:
    sizes = (
        "--num-layers 4 --hidden-size 512 --num-attention-heads 8 --seq-length 512 --vocab-size 999 --bf16"
    )
    experts = "--num-experts 8 --moe-ffn-hidden-size 96 --moe-shared-expert-intermediate-size 200"
    launch = read_launch(f"{sizes} {experts} --window-size 127,0 --softmax-type learnable --moe-grouped-gemm")
    model = launch.model
    assert model is not None
    assert model.moe is not None
    assert (model.window, model.sinks, model.moe.shared_inner) == (128, True, 200)
    text, unstated = write_launch("megatron", model, LaunchParameters(**launch.under({})))
    assert unstated == []
    assert differences(training_of(launch), training_of(read_launch(text.replace("\\\n", " ")))) == []


def test_inner_groups_padding_and_recomputed_projections_are_read_and_written() -> None:
    """Planted: the outer size taken for the inner one."""
    sizes = (
        "--num-layers 4 --hidden-size 512 --num-attention-heads 16 --seq-length 2048 --vocab-size 999 --bf16 "
        "--multi-latent-attention --disable-bias-linear --swiglu --micro-batch-size 1 --global-batch-size 8 "
        "--nproc-per-node 8"
    )
    groups = "--context-parallel-size 8 --cp-comm-type a2a+p2p --hierarchical-context-parallel-sizes 2 4"
    experts = (
        "--num-experts 8 --expert-model-parallel-size 4 --moe-grouped-gemm "
        "--moe-token-dispatcher-type alltoall --moe-expert-capacity-factor 1.5 "
        "--moe-pad-expert-input-to-capacity"
    )
    again = "--recompute-granularity selective --recompute-modules core_attn mla_up_proj"
    launch = read_launch(f"torchrun --nproc-per-node 8 pretrain_gpt.py {sizes} {groups} {experts} {again}")
    training = training_of(launch)
    assert (training.cp, training.cp_comm_type, training.cp_heads, training.capacity) == (
        8,
        "a2a+p2p",
        2,
        1.5,
    )
    assert "mla_up_proj" in training.recompute_rows
    assert launch.model is not None
    text, unstated = write_launch("megatron", launch.model, LaunchParameters(**launch.under({})))
    assert unstated == []
    assert "--hierarchical-context-parallel-sizes 2 4" in " ".join(text.split())
    assert differences(training, training_of(read_launch(text.replace("\\\n", " ")))) == []
    with pytest.raises(InputError, match="product"):
        read_launch(f"torchrun --nproc-per-node 8 pretrain_gpt.py {sizes} {groups.replace('2 4', '2 2')}")


def test_ranks_that_divide_experts_go_on_to_do_so() -> None:
    sizes = "--num-layers 4 --hidden-size 512 --num-attention-heads 8 --seq-length 512 --vocab-size 999"
    launch = read_launch(f"{sizes} --bf16 --num-experts 8 --tensor-model-parallel-size 4 --moe-grouped-gemm")
    assert training_of(launch).etp == 4
    assert training_of(launch, tp=2, world=8).etp == 2
    assert training_of(launch, etp=1).etp == 1


def test_the_words_of_a_model_open_it_again() -> None:
    sizes = "--num-layers 6 --hidden-size 768 --num-attention-heads 12 --seq-length 1024 --vocab-size 999"
    launch = read_launch(f"{sizes} --bf16 --swiglu --micro-batch-size 4")
    assert wl.load(launch.path)._opened.maker.model == launch.model


def test_tables_name_each_argument_once() -> None:
    for project in ("megatron", "torchtitan", "deepspeed"):
        module = module_of(project)
        names = [name for row in module.TABLE for name in row.names]
        assert len(names) == len({*names})
        assert not {*names} & {*module.UNPRICED}


def test_json_that_is_none_of_deepspeeds_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text(json.dumps({"a": 1}))
    with pytest.raises(InputError):
        read_launch(str(path))

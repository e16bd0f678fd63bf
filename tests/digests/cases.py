"""What is run: files and parameter lines, and which facts of each are kept.

Of each kind of run some cases are golden: their facts are read in a difference. The others are digests, by
family.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass

from tests.workload.texts import SHARED

from .places import MADE, STORED

# What a case is asked for beside its report: `run`, `lanes` and `dialogs` are what no command prints, an
# export is kept as its digest. A comparison has `compare` alone.
RUN, WORK, LANES = ("run",), ("run", "work"), ("run", "work", "lanes")
COMPARE = "compare"
# Exports that are a folder, with what asks for them.
FOLDERS = {"chakra": ("--format", "chakra"), "hta": ("--format", "chrome", "--per-rank")}
EXPORTS = ("text", "chrome", "csv", "simai", *FOLDERS)
_ALL = (*LANES, "dialogs", *EXPORTS[:4])

_000 = "fixtures/000_gpt13b_tp4_old_header.txt"
_001 = "fixtures/001_moe_128npu_with_mistakes.txt"
_002 = "fixtures/002_gpt_1024npu.txt"
_003 = "fixtures/003_gpt2_large_op_table.txt"
_004 = "fixtures/004_megatron_rank7_trace.txt"
_CORPUS = f"../{SHARED.name}/corpus/"
_OVERLAPPED = "--overlap-grad-reduce --overlap-param-gather"
_SCHEDULES = ("1f1b", "gpipe", "zb-h1", "interleaved --virtual-stages 2")
_BUSBW = "busbw:tests/networks/simai/busbw.yaml"
# What the seeds leave open where a schedule needs it: 000 has no pipeline, 001 one block twice.
_PIPELINES = {_000: "--pp 4 --microbatches 8", _001: "--microbatches 8", _002: "--pp 4 --microbatches 8"}
# As small as every rank may be simulated for itself, with all kinds of groups left.
_SMALL = {_000: "--world 32 --pp 2 --microbatches 4", _001: "--world 64 --tp 4 --microbatches 4"}
_TINY = "--world 8 --pp 2 --microbatches 2"
_FAULTY_LAYOUT = "--stage-layout megatron --schedule zb-h1 --slow-rank 5=1.5"
# Of 001 with tp 4 the ring has its experts.
_DIMS = "--dim fully-connected:4:100:500 --dim ring:4:50:700 --dim switch:8:25:1000"
_DECODE = "changle1021-tech__SimAI__DeepSeek-V2-Lite-Chat-world_size4-tp2-pp1-ep2-bs1-seq2048-decode.txt"
_TWO_RUNS = "--run 20250320144110 --run2 20250321125500"
# Execution traces: the name of a set, and what it is run with.
_SET = "wl"
_NETWORK = "--cluster network.yml"
_GROUPS = "--comm-groups comm_group.json"
_ASTRA = f"--dialect astra-sim-2 --system system.json {_NETWORK} --remote-memory memory.json"
# Stored sets with groups in a file, and without: pipelines, a torus, experts, graphs of STAGE, random ones.
_GROUPED = (
    "l04_tp2_pp4_dp2_16_1f1b", "l05_tp2_pp4_dp2_16_gpipe", "l06_tp2_pp4_dp2_16_jitter",
    "l09_tp4_pp4_dp4_64_torus", "l13_ring8_tp2_pp2_dp2", "l14_switch16_1d",
    "l19_moe_ep8_16_ring", "s_stage_llama8_ring", "z0003_random", "z0028_random", "z0033_random",
)  # fmt: skip
_UNGROUPED = (
    "a09_full_cycle", "e43_crossed_order_same_kind", "f33_pipeline_gpipe", "g05_mem_and_coll",
    "h05_roofline_stats", "l20_zero3_16", "l35_random_dag", "p_custom_collective_8", "p_custom_sample_8",
    "p_hgx_all_reduce_8", "z0001_random", "z0007_random", "z0020_random",
)  # fmt: skip
# Of one dimension, as a network of links has.
_ON_LINKS = ("f33_pipeline_gpipe", "g05_mem_and_coll", "l19_moe_ep8_16_ring", "z0003_random", "z0007_random")
# What ASTRA-sim was given besides.
_MORE = {
    "z0001_random": "--num-queues-per-dim 2 --rendezvous-protocol true",
    "z0003_random": "--rendezvous-protocol true",
    "z0007_random": "--num-queues-per-dim 4 --rendezvous-protocol true",
    "z0020_random": "--num-queues-per-dim 4",
}


@dataclass(frozen=True)
class Case:
    """An input and the words of a command line behind it.

    source: a path relative to the checkout, or to `folder`. views: what is kept beside the report. folder:
    the set of execution traces whose files are named (`places.py`), "" of all else.
    """

    source: str
    words: str
    views: tuple[str, ...] = RUN
    folder: str = ""

    @property
    def name(self) -> str:
        """What `wltui report` (or `compare`) would be given, of a set inside of its folder."""
        folder = f"{self.folder}/" if self.folder else ""
        return f"{folder}{self.source} {self.words}".rstrip()

    @property
    def arguments(self) -> list[str]:
        """The words of `name`, as a shell splits them; the path may have anything in it."""
        return [self.source, *shlex.split(self.words)]

    @property
    def is_there(self) -> bool:
        """Whether its files are: those of ../shared may not be."""
        return SHARED.exists() or not any("../" in word for word in (self.source, self.words, self.folder))


def _set(folder: str, words: str, views: tuple[str, ...] = RUN) -> Case:
    return Case(_SET, words, views, folder)


def _of(name: str, words: str, views: tuple[str, ...] = RUN) -> Case:
    return Case(_CORPUS + name, words, views)


def _with(path: str, change: str, before: str = "") -> Case:
    return Case(path, f'{before} --with "{change}"'.strip(), (COMPARE,))


# Name of a golden file -> its case.
GOLDEN = {
    # Schedules, overlap, layouts; slow ranks and links.
    "schedule-1f1b": Case(_000, "--pp 4 --microbatches 8 --schedule 1f1b"),
    "schedule-gpipe": Case(_001, "--microbatches 8 --schedule gpipe"),
    "schedule-zb-h1": Case(_002, "--pp 4 --microbatches 8 --schedule zb-h1"),
    "schedule-interleaved": Case(_000, f"--pp 4 --microbatches 8 --schedule {_SCHEDULES[3]} {_OVERLAPPED}"),
    "overlap": Case(_001, f"--microbatches 8 {_OVERLAPPED}", ()),
    "layout-megatron": Case(_002, f"{_PIPELINES[_002]} {_FAULTY_LAYOUT}", ()),
    "rank-order": Case(_000, "--world 32 --pp 4 --microbatches 4 --rank-order tp-pp-dp", ()),
    "slow-rank": Case(_001, f"{_SMALL[_001]} --slow-rank 5=1.5", ()),
    "slow-link": Case(_000, f"{_SMALL[_000]} --slow-link 1:5=0.25", ()),
    # Every rank for itself, and shared ports.
    "lanes": Case(_000, _TINY, LANES),
    "unfolded": Case(_000, f"{_SMALL[_000]} --no-fold --slow-rank 5=1.5"),
    "jitter": Case(_000, f"{_TINY} --jitter 0.1 --seed 3", ()),
    "shared": Case(_001, f"{_SMALL[_001]} --network shared --overlap-grad-reduce", ()),
    "shared-slow-link": Case(_001, f"{_SMALL[_001]} --network shared --slow-link 1:5=0.5", ()),
    # Prices.
    "simai-auto": Case(_001, "--network simai-auto --nvlink 200 --overlap dp=0.5,tp=0.3", ()),
    "busbw": Case(_000, f"--network {_BUSBW}"),
    "tpu": Case(_000, "--cluster tpu-v4", ()),
    "dims": Case(_001, f"--tp 4 {_DIMS}", ()),
    # No pipeline: layer-loop, queues, an op table, a file without a backward pass.
    "layer-loop": Case(_000, "--passes 2"),
    "queues": Case(_000, "--dialect astra-sim-1 --splits 4 --active-chunks 2 --passes 2"),
    "queues-of-a-file": _of("astra1/astra-sim__astra-sim__Transformer_HybridParallel.txt", ""),
    "op-table": Case(_003, "--layers 36"),
    "decode": _of(f"simai/{_DECODE}", ""),
    # What would help; what differs.
    "what-if": Case(_000, f"{_TINY} --slow-rank 5=1.5 --what-if", ()),
    "compare-schedules": _with(_000, "--schedule gpipe", _SMALL[_000]),
    "compare-files": Case(_000, _001, (COMPARE,)),
    "compare-with-a-trace": Case(_002, _004, (COMPARE,)),
    # Measured.
    "trace": Case(_004, "--replay --what-if", LANES),
    "trace-scaled": Case(_004, "--slow-rank 7=2", ()),
    "rank-traces": _of("rank_trace/wd4_tp2_pp2", "--run 20250320144110"),
    "rank-traces-replayed": _of("rank_trace/wd8_tp2_pp4", "--replay"),
    "rank-traces-compared": _of("rank_trace/wd4_tp2_pp2", _TWO_RUNS, (COMPARE,)),
    "kineto": _of("kineto/dlrm_8", ""),
    "kineto-of-gloo": _of("kineto/gloo_4", "", ()),
    "nsys": _of("nsys/h100_2gpu_1s.sqlite", ""),
    # Executed: sets that are made of a seed, and stored ones.
    "executed": _set("chakra/000", "", LANES),
    "executed-astra": _set("chakra/001", f"{_ASTRA} {_GROUPS}"),
    "executed-slow": _set("chakra/000_slow", "--slow-rank 1=1.5 --time-scale 'all communication=2'"),
    "stored": _set(f"{STORED}z0033_random", f"{_NETWORK} {_GROUPS}"),
    "stored-astra": _set(f"{STORED}f33_pipeline_gpipe", _ASTRA),
    "stored-links": _set(f"{STORED}l13_ring8_tp2_pp2_dp2", f"{_ASTRA} {_GROUPS} --network links"),
    "stored-what-if": _set(f"{STORED}f33_pipeline_gpipe", f"{_ASTRA} --what-if", ()),
    # Refused.
    "refused-schedule": Case(_000, "--schedule none", ()),
    "refused-world": Case(_002, "--world 12", ()),
    "refused-replay": Case(_004, "--schedule 1f1b", ()),
}
# Of `make prove` and `make digests-check` alone: 0.3 s to 0.9 s of processor time each.
SLOW = ("slow-rank", "layout-megatron", "unfolded", "shared-slow-link", "nsys")


def families() -> dict[str, list[Case]]:
    """Family -> its digests, each case once, those without its files too."""
    golden = {case.name for case in GOLDEN.values()}
    made = {
        "simulated": [*_of_schedules(), *_of_prices(), *_of_small_worlds(), *_of_one_program()],
        "workloads": _of_corpus_files(),
        "measured": _of_measured(),
        "executed": _of_executed(),
        "compared": _of_comparisons(),
    }
    return {
        family: sorted({case.name: case for case in cases if case.name not in golden}.values(), key=_name)
        for family, cases in made.items()
    }


def _name(case: Case) -> str:
    return case.name


def _of_schedules() -> Iterator[Case]:
    """Pipelines: each schedule alone and overlapped, a slow or fast rank, a slow link, layouts."""
    # 001 has too few blocks to be interleaved.
    for path, schedules in ((_001, _SCHEDULES[:3]), (_002, _SCHEDULES)):
        for schedule in schedules:
            yield Case(path, f"{_PIPELINES[path]} --schedule {schedule}")
            yield Case(path, f"{_PIPELINES[path]} --schedule {schedule} {_OVERLAPPED}")
    more = (
        "--overlap-grad-reduce", "--overlap-param-gather", "--stage-layout megatron", "--slow-rank 5=0.5",
        "--slow-link 0:5=0.5",
    )  # fmt: skip
    for words in more:
        yield Case(_000, f"{_PIPELINES[_000]} {words}")
        yield Case(_001, f"{_PIPELINES[_001]} {words}")
    for path, pipeline in _PIPELINES.items():
        yield Case(path, f"{pipeline} {_FAULTY_LAYOUT}", _ALL)


def _of_prices() -> Iterator[Case]:
    """SimAI's bandwidths and its estimate, presets, chunks, another topology."""
    for path in (_000, _001):
        for network in ("simai-auto", "simai-auto --nvlink 200 --overlap dp=0.5,tp=0.3", _BUSBW):
            yield Case(path, f"--network {network}")
    for path in (_000, _001):
        for cluster in ("--cluster tpu-v4", "--cluster gb200-nvl72", "--splits 4 --active-chunks 2", _DIMS):
            yield Case(path, cluster)


def _of_small_worlds() -> Iterator[Case]:
    """What is long in a large world: unfolded runs, jitter, shared ports; and what would help."""
    lines = (
        "--network shared", "--network shared --overlap-grad-reduce", "--no-fold",
        "--network shared --slow-rank 5=1.5", "--network shared --slow-link 1:5=0.5",
        f"--network shared --schedule zb-h1 {_OVERLAPPED} --slow-rank 5=1.5", "--jitter 0.1 --schedule zb-h1",
        "--what-if", "--slow-rank 5=1.5 --what-if",
    )  # fmt: skip
    for path, small in _SMALL.items():
        yield Case(path, small, (*_ALL, *FOLDERS))
        for line in lines:
            yield Case(path, f"{small} {line}")
    for line in (
        "--network shared --schedule interleaved --virtual-stages 2",
        "--layer-scale mlp_norm:fwd=2",
    ):
        yield Case(_000, f"{_SMALL[_000]} {line}")
    # Each change is simulated again: 6 s with 32 ranks.
    yield Case(_000, f"{_TINY} --network shared --slow-rank 5=1.5 --what-if", ())


def _of_one_program() -> Iterator[Case]:
    """Runs of layer-loop: no pipeline, several passes, the queues of dialect astra-sim-1, an op table."""
    queues = "--dialect astra-sim-1"
    for more in ("", "--passes 2", "--world 32 --slow-rank 5=1.5", "--what-if"):
        yield Case(_000, f"{queues} {more}".rstrip(), LANES)
    for path in (_000, _001, _002, _003):
        yield Case(path, "", _ALL)
    for more in ("--slow-rank 5=1.5", "--network shared"):
        yield Case(_000, more)
    for more in ("--passes 2", "--slow-rank 5=1.5", "--jitter 0.1", "--schedule 1f1b", "--what-if"):
        yield Case(_003, more)


def _of_corpus_files() -> Iterator[Case]:
    """Each workload of ../shared/corpus, and of some formats a line of parameters."""
    for folder in ("simai", "astra1", "optable"):
        for path in sorted((SHARED / "corpus" / folder).glob("*")):
            yield _of(f"{folder}/{path.name}", "")
    yield _of("simai/aliyun__SimAI__workload_ep_test.txt", "--microbatches 4 --schedule gpipe")
    yield _of("astra1/astra-sim__libra__GPT_3.txt", "--splits 4 --active-chunks 2 --passes 2")
    yield _of("astra1/astra-sim__astra-sim__Resnet50_DataParallel.txt", "--what-if")
    yield _of("optable/NVIDIA_A100-SXM4-40GB__gpt3_xl-train-2048-4-dp4.txt", "--layers 4")


def _of_measured() -> Iterator[Case]:
    """The trace of one rank, sets of ranks, profiles."""
    yield Case(_004, "", _ALL)
    yield Case(_004, "--replay", (*_ALL, *FOLDERS))
    yield Case(_004, "--compute-scale 0.5", LANES)
    runs = ("wd4_tp2_pp2 --run 20250321125500", "schedule_plan", "wd4_tp1_pp2", "wd8_tp2_pp4")
    for run in runs:
        name, _, words = run.partition(" ")
        yield _of(f"rank_trace/{name}", words, (*LANES, "dialogs", "text", "chrome", "csv"))
        for more in ("--replay", "--slow-rank 0=1.5"):
            yield _of(f"rank_trace/{name}", f"{words} {more}".strip())
    yield _of("rank_trace/wd8_tp2_pp4", "--what-if", ("text",))
    profiles = (
        "kineto/dlrm_8", "kineto/hta_sampled", "kineto/nccl_data.json.gz", "kineto/h100_qwen.json.gz",
        "nsys/h100_2gpu_1s.sqlite",
    )  # fmt: skip
    for name in profiles:
        yield _of(name, "--compute-scale 0.5", (*LANES, "dialogs", "text", "chrome", "csv"))
    yield _of("kineto/gloo_4", "--step all", LANES)
    yield _of("kineto/hta_sampled", "--step all --what-if")


def _of_executed() -> Iterator[Case]:
    """Sets of execution traces, made of seeds and stored: by wltui's rules, by ASTRA-sim's and on links."""
    for folder in MADE:
        yield _set(folder, f"{_NETWORK} {_GROUPS}", (*LANES, "dialogs", "text"))
        yield _set(folder, f"{_ASTRA} {_GROUPS}")
    yield _set("chakra/000", "--no-fold")
    yield _set("chakra/004", f"{_NETWORK} --what-if", ("text",))
    for name in (*_GROUPED, *_UNGROUPED):
        groups = f" {_GROUPS}" if name in _GROUPED else ""
        astra = " ".join([f"{_ASTRA}{groups}", *_MORE.get(name, "").split()])
        yield _set(STORED + name, astra, LANES)
        if name in _ON_LINKS:
            yield _set(STORED + name, f"{astra} --network links")
    for name in ("l13_ring8_tp2_pp2_dp2", "z0028_random", "l04_tp2_pp4_dp2_16_1f1b"):
        yield _set(STORED + name, f"{_NETWORK} {_GROUPS}", (*LANES, "dialogs"))
    yield _set(STORED + "p_custom_collective_8", _NETWORK)
    scales = "--time-scale 'stream group 1=3' --time-scale 'nodes COMP_#=0.5'"
    yield _set(STORED + _GROUPED[0], f"{_NETWORK} {_GROUPS} {scales}")
    yield _set(STORED + _GROUPED[0], f"{_ASTRA} {_GROUPS} --time-scale 'all compute=0.5'")
    yield _set(STORED + "l13_ring8_tp2_pp2_dp2", f"{_NETWORK} {_GROUPS} --what-if")


def _of_comparisons() -> Iterator[Case]:
    changes = {
        _000: ("--compute-scale 1.2", "--network shared", "--slow-rank 5=1.5", "--pp 4 --microbatches 8"),
        _001: ("--overlap-grad-reduce", "--slow-rank 5=1.5", "--slow-link 1:5=0.5", "--microbatches 8"),
        _002: ("--schedule interleaved --virtual-stages 2", "--stage-layout megatron", "--pp 8"),
        _003: ("--layers 36",),
        _004: ("--compute-scale 0.5", "--slow-rank 7=2"),
    }  # fmt: skip
    for path, several in changes.items():
        yield from (_with(path, change) for change in several)
    for path, other in ((_000, _003), (_004, _003)):
        yield Case(path, other, (COMPARE,))
    for name in ("rank_trace/wd8_tp2_pp4", "kineto/dlrm_8", "simai/aliyun__SimAI__a.csv"):
        yield _with(_CORPUS + name, "--compute-scale 0.5")
    yield Case(_002, f"{_CORPUS}rank_trace/wd8_tp2_pp4", (COMPARE,))
    yield Case(_SET, f'{_ASTRA} {_GROUPS} --with "--splits 4"', (COMPARE,), STORED + _GROUPED[0])

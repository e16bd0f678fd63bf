"""What is run: files and parameter lines, and which outputs of each are kept."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.executing.stored_runs import RUNS
from tests.workload.texts import REPOSITORY, SHARED

from .places import MADE, STORED

# What a case may be asked for; `run` and `lanes` are what no command prints (`runs.py`).
ALL_VIEWS = ("text", "json", "run", "lanes", "chrome", "csv", "simai")
FIGURES = ("json", "run")
# Exports that are a folder, with what asks for them.
FOLDERS = {"chakra": ("--format", "chakra"), "hta": ("--format", "chrome", "--per-rank")}
CHOICES = ("json",)
COMPARED = ("compare",)

_000 = "fixtures/000_gpt13b_tp4_old_header.txt"
_001 = "fixtures/001_moe_128npu_with_mistakes.txt"
_002 = "fixtures/002_gpt_1024npu.txt"
_003 = "fixtures/003_gpt2_large_op_table.txt"
_004 = "fixtures/004_megatron_rank7_trace.txt"
_OVERLAPPED = "--overlap-grad-reduce --overlap-param-gather"
_SCHEDULES = ("1f1b", "gpipe", "zb-h1", "interleaved --virtual-stages 2")
_BUSBW = "busbw:tests/networks/simai/busbw.yaml"
# What the seeds leave open where a schedule needs it: 000 has no pipeline, 001 one block twice.
_PIPELINES = {_000: "--pp 4 --microbatches 8", _001: "--microbatches 8", _002: "--pp 4 --microbatches 8"}
# As small as every rank may be simulated for itself, with all kinds of groups left.
_SMALL = {
    _000: "--world 32 --pp 2 --microbatches 4",
    _001: "--world 64 --tp 4 --microbatches 4",
    _002: "--world 64 --pp 4 --microbatches 4",
}
# Folders of ../shared/corpus with files that wltui opens, those that are one run as a folder, and others.
_LARGE_FILE = 100_000  # bytes
_FILES_OF_CORPUS = ("simai", "astra1", "optable")
_SETS_OF_CORPUS = "rank_trace"
_PROFILES_OF_CORPUS = (
    "kineto/dlrm_8", "kineto/gloo_4", "kineto/hta_sampled", "kineto/nccl_data.json.gz",
    "kineto/h100_qwen.json.gz", "nsys/h100_2gpu_1s.sqlite",
)  # fmt: skip


@dataclass(frozen=True)
class Case:
    """An input and the words of a command line behind it.

    source: a path relative to the checkout, or to `folder`. views: which outputs are kept. everyday: whether
    the test suite checks it; otherwise `make digests-check` alone. folder: the set of execution traces whose
    files are named (`places.py`), "" of all else.
    """

    source: str
    words: str
    views: tuple[str, ...]
    everyday: bool = True
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


def fixture_cases() -> list[Case]:
    """The cases of `fixtures/`, which are the five seeds byte for byte; they need nothing else."""
    return _each_once(
        [
            *(Case(path, "", ALL_VIEWS) for path in (_000, _001, _002, _003, _004)),
            *_of_schedules(),
            *_of_clusters(),
            *_of_small_worlds(),
            *_of_one_program(),
            *_of_the_trace(),
            *_of_comparisons(),
            *_of_made_sets(),
        ]
    )


def corpus_cases() -> list[Case]:
    """The cases of ../shared/corpus; none where it is not there."""
    cases: list[Case] = []
    for folder in _FILES_OF_CORPUS:
        for path in sorted((SHARED / "corpus" / folder).glob("*")):
            cases += _of_corpus_file(_relative(path), folder)
    for path in sorted((SHARED / "corpus" / _SETS_OF_CORPUS).glob("*")):
        cases += _of_corpus_set(path)
    for name in _PROFILES_OF_CORPUS:
        path = SHARED / "corpus" / name
        if path.exists():
            cases += _of_profile(_relative(path))
    if RUNS.exists():
        cases += _of_stored_sets()
    return _each_once(cases)


def _relative(path: Path) -> str:
    """A path as it is named from the checkout, wherever that is."""
    return f"../{path.relative_to(REPOSITORY.parent)}"


def _each_once(cases: Iterable[Case]) -> list[Case]:
    """Sorted by name; the same words twice would be one line in the files."""
    by_name = {case.name: case for case in cases}
    return [by_name[name] for name in sorted(by_name)]


def _of_schedules() -> Iterator[Case]:
    """Pipelines: each schedule alone and overlapped, a slow or fast rank, a slow link, layouts."""
    overlaps = ("--overlap-grad-reduce", "--overlap-param-gather", _OVERLAPPED)
    faults = ("--slow-rank 5=1.5", "--slow-rank 5=0.5", "--slow-link 0:5=0.5", "--slow-link 1:5=0.25")
    for path, pipeline in _PIPELINES.items():
        for schedule in _SCHEDULES:
            yield Case(path, f"{pipeline} --schedule {schedule}", FIGURES)
            yield Case(path, f"{pipeline} --schedule {schedule} {_OVERLAPPED}", FIGURES)
        for more in (*overlaps, "--stage-layout megatron", "--rank-order tp-pp-dp"):
            yield Case(path, f"{pipeline} {more}", FIGURES)
        # More classes are simulated then: of one seed in the suite, of all in the whole check.
        for more in faults:
            yield Case(path, f"{pipeline} {more}", FIGURES, everyday=path == _001)
        faulty = f"{pipeline} --stage-layout megatron --schedule zb-h1 --slow-rank 5=1.5"
        yield Case(path, faulty, ALL_VIEWS, everyday=path == _002)
    for schedule in _SCHEDULES[1:]:
        yield Case(_002, f"--schedule {schedule}", FIGURES)
    yield Case(_002, "--slow-rank 5=1.5", FIGURES, everyday=False)


def _of_clusters() -> Iterator[Case]:
    """Prices: SimAI's bandwidths and its estimate, presets, chunks, another topology."""
    of_bandwidths = ("simai-auto", "simai-auto --nvlink 200 --overlap dp=0.5,tp=0.3", _BUSBW)
    clusters = (
        "--cluster tpu-v4", "--cluster gb200-nvl72", "--splits 4 --active-chunks 2",
        "--dim ring:4:100:500 --dim fully-connected:4:50:700 --dim switch:8:25:1000",
    )  # fmt: skip
    for path in (_000, _001, _002, _003):
        for network in of_bandwidths:
            yield Case(path, f"--network {network}", FIGURES, everyday=path != _002)
    for path in (_000, _001):
        for cluster in clusters:
            yield Case(path, cluster, FIGURES)
        yield Case(path, f"--network {_BUSBW}", ("text", *FIGURES))


def _of_small_worlds() -> Iterator[Case]:
    """What is long in a large world: unfolded runs, jitter, shared ports; and what would help."""
    lines = (
        "", "--compute-scale 1.2", "--comm-scale 0", "--layer-scale ROW:fwd=2",
        "--network shared", "--network shared --schedule gpipe", "--network shared --overlap-grad-reduce",
    )  # fmt: skip
    long = (
        "--no-fold", "--no-fold --slow-rank 5=1.5", "--jitter 0.1 --seed 3",
        "--network shared --slow-rank 5=1.5",
    )  # fmt: skip
    longer = (
        "--jitter 0.1 --schedule zb-h1", "--network shared --slow-link 1:5=0.5",
        "--network shared --schedule interleaved --virtual-stages 2",
        f"--network shared --schedule zb-h1 {_OVERLAPPED} --slow-rank 5=1.5",
    )  # fmt: skip
    for path, small in _SMALL.items():
        # 000 is written by another generator, with other names of rows.
        row = "mlp_norm" if path == _000 else "attention_row"
        for line in lines:
            views = FIGURES if line else (*FIGURES, "lanes", *FOLDERS)
            yield Case(path, f"{small} {line.replace('ROW', row)}".rstrip(), views)
        for line in long:
            yield Case(path, f"{small} {line}", (*FIGURES, "lanes"), everyday=path == _000)
        for line in longer:
            yield Case(path, f"{small} {line}", FIGURES, everyday=False)
        yield Case(path, f"{small} --what-if", ("text", "json"))
        yield Case(path, f"{small} --slow-rank 5=1.5 --what-if", CHOICES)
    for more in ("", "--slow-rank 5=1.5"):
        # Each change is simulated again: 6 s with 32 ranks.
        line = f"--world 8 --pp 2 --microbatches 2 --network shared {more} --what-if"
        yield Case(_000, line.replace("  ", " "), CHOICES)


def _of_one_program() -> Iterator[Case]:
    """Runs of layer-loop: no pipeline, several passes, the queues of dialect astra-sim-1, an op table."""
    queues = "--dialect astra-sim-1"
    for more in ("", "--passes 2", "--splits 4 --active-chunks 2 --passes 2", "--world 32 --slow-rank 5=1.5"):
        yield Case(_000, f"{queues} {more}".rstrip(), ("text", *FIGURES, "lanes", "chrome"))
    yield Case(_000, f"{queues} --what-if", CHOICES)
    plain = ("--passes 2", "--slow-rank 5=1.5", "--slow-link 1:5=0.5", "--network shared")
    for path in (_000, _003):
        for more in plain:
            yield Case(path, more, FIGURES)
        yield Case(path, "--what-if", FIGURES)
    yield Case(_003, "--layers 36", ALL_VIEWS)
    yield Case(_003, "--jitter 0.1", FIGURES)
    yield Case(_003, "--schedule 1f1b", FIGURES)
    yield Case(_001, "--what-if", ("text", "json"))


def _of_the_trace() -> Iterator[Case]:
    yield Case(_004, "--replay", (*ALL_VIEWS, *FOLDERS))
    for more in ("--slow-rank 7=2", "--compute-scale 0.5", "--comm-scale 0"):
        yield Case(_004, more, ("text", "json", "run", "lanes"))
    for more in ("--what-if", "--replay --what-if"):
        yield Case(_004, more, ("text", "json"))


def _of_comparisons() -> Iterator[Case]:
    changes = {
        _000: ("--compute-scale 1.2", "--network shared", "--slow-rank 5=1.5", "--pp 4 --microbatches 8"),
        _001: ("--overlap-grad-reduce", "--slow-rank 5=1.5", "--slow-link 1:5=0.5", "--microbatches 8"),
        _002: ("--schedule interleaved --virtual-stages 2", "--schedule gpipe", "--schedule zb-h1",
               "--stage-layout megatron", "--slow-rank 5=1.5", "--pp 8"),
        _003: ("--layers 36", "--slow-rank 5=1.5"),
        _004: ("--compute-scale 0.5", "--slow-rank 7=2"),
    }  # fmt: skip
    for path, several in changes.items():
        for change in several:
            # Two runs of 1,024 ranks each.
            everyday = path != _002 or change.startswith("--schedule i")
            yield Case(path, f'--with "{change}"', COMPARED, everyday)
    for path, small in _SMALL.items():
        for change in ("--slow-rank 5=1.5", "--network shared", "--schedule gpipe"):
            yield Case(path, f'{small} --with "{change}"', COMPARED)
    for path, other in ((_000, _001), (_001, _002), (_000, _003), (_002, _004), (_004, _003)):
        yield Case(path, other, COMPARED)


def _of_corpus_file(path: str, folder: str) -> Iterator[Case]:
    # The suite checks the figures of each small file; other outputs and lines are for the whole check.
    everyday = (REPOSITORY / path).stat().st_size < _LARGE_FILE
    yield Case(path, "", FIGURES, everyday)
    asked = ("--slow-rank 1=1.5", "--what-if")
    lines = {
        "simai": ("--microbatches 4 --schedule gpipe", "--network simai-auto", *asked),
        "astra1": ("--passes 2", "--splits 4 --active-chunks 2 --passes 2", *asked),
        "optable": ("--layers 4", "--network shared", *asked),
    }[folder]
    for line in lines:
        views = FIGURES if everyday and line != "--what-if" else CHOICES
        yield Case(path, line, views, everyday=False)
    # One line more that says nothing new: the other outputs of the run as it is.
    others = ("text", "run", "lanes", "chrome", "csv", "simai")
    yield Case(path, "--compute-scale 1", others, everyday=False)
    yield Case(path, '--with "--slow-rank 1=1.5"', COMPARED, everyday=False)


def _of_corpus_set(path: Path) -> Iterator[Case]:
    name = _relative(path)
    stamps = sorted({found.stem.rsplit("_", 1)[-1] for found in path.glob("*.txt")})
    stamps = [stamp for stamp in stamps if stamp.isdigit()]
    # The newest is taken where none is named: so with one only, none is.
    runs = [f"--run {stamp}" for stamp in stamps] if len(stamps) > 1 else [""]
    for run in runs:
        yield Case(name, f"{run} --replay".strip(), FIGURES)
        yield Case(name, run, ("text", "json", "run", "lanes", "chrome", "csv"))
        # Rank 0 is in all of them; a rank of nearly no time makes a run only shorter.
        for more in ("--slow-rank 0=1.5", "--slow-rank 0=0.001", "--compute-scale 0.5"):
            yield Case(name, f"{run} {more}".strip(), ("text", "json", "run", "lanes"), everyday=False)
        yield Case(name, f"{run} --what-if".strip(), ("text", "json"), everyday=False)
        yield Case(name, f"{run} --comm-scale 0".strip(), ("chrome", "csv"), everyday=False)
        yield Case(name, f'{run} --with "--compute-scale 0.5"'.strip(), COMPARED)
    if len(runs) > 1:
        yield Case(name, f"--run {stamps[0]} --run2 {stamps[1]}", COMPARED)
    yield Case(_002, name, COMPARED, everyday=False)


def _of_profile(path: str) -> Iterator[Case]:
    everyday = "dlrm" in path
    yield Case(path, "", ("text", "json", "run", "lanes", "chrome", "csv"), everyday)
    yield Case(path, "--step all", CHOICES if everyday else FIGURES, everyday)
    yield Case(path, "--compute-scale 0.5", (*FIGURES, "lanes"), everyday=False)
    yield Case(path, "--what-if", ("json",), everyday=False)
    yield Case(path, '--with "--compute-scale 0.5"', COMPARED, everyday)


_SET = "wl"
_NETWORK = "--cluster network.yml"
_GROUPS = "--comm-groups comm_group.json"
_ASTRA = f"--dialect astra-sim-2 --system system.json {_NETWORK} --remote-memory memory.json"
_OF_SETS = ("text", "json", "run", "lanes")
# Stored sets with groups in a file, and without. Pipelines, a torus, experts, graphs of STAGE, random ones.
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
_ON_LINKS = (
    "f33_pipeline_gpipe", "g05_mem_and_coll", "l13_ring8_tp2_pp2_dp2", "l19_moe_ep8_16_ring",
    "p_custom_sample_8", "z0003_random", "z0007_random", "z0028_random",
)  # fmt: skip
# What ASTRA-sim was given besides.
_MORE = {
    "z0001_random": "--num-queues-per-dim 2 --rendezvous-protocol true",
    "z0003_random": "--rendezvous-protocol true",
    "z0007_random": "--num-queues-per-dim 4 --rendezvous-protocol true",
    "z0020_random": "--num-queues-per-dim 4",
}
_EVERYDAY_SETS = ("f33_pipeline_gpipe", "l13_ring8_tp2_pp2_dp2", "p_custom_sample_8", "z0028_random")


def _of_made_sets() -> Iterator[Case]:
    for folder in MADE:
        yield Case(_SET, "", _OF_SETS, folder=folder)
        yield Case(_SET, f"{_NETWORK} {_GROUPS}", FIGURES, folder=folder)
        yield Case(_SET, f"{_ASTRA} {_GROUPS}", FIGURES, folder=folder)
        yield Case(_SET, "--compute-scale 0.5", FIGURES, folder=folder)
    folder = next(iter(MADE))
    for more in ("--no-fold", "--time-scale 'all communication=2'", "--slow-rank 1=1.5"):
        yield Case(_SET, more, FIGURES, folder=folder)
    yield Case(_SET, '--with "--compute-scale 0.5"', COMPARED, folder=folder)
    # Timelines of execution traces are not exported: what is said then.
    yield Case(_SET, "--compute-scale 1", ("chrome", "csv"), folder=folder)
    yield Case(_SET, f"{_NETWORK} --what-if", ("text",), folder="chakra/004")


def _of_stored_sets() -> Iterator[Case]:
    for name in sorted((*_GROUPED, *_UNGROUPED)):
        folder, everyday = STORED + name, name in _EVERYDAY_SETS
        groups = f" {_GROUPS}" if name in _GROUPED else ""
        astra = " ".join([f"{_ASTRA}{groups}", *_MORE.get(name, "").split()])
        yield Case(_SET, f"{_NETWORK}{groups}", _OF_SETS, everyday, folder)
        yield Case(_SET, astra, (*FIGURES, "lanes"), everyday, folder)
        if name in _ON_LINKS:
            yield Case(_SET, f"{_NETWORK}{groups} --network links", FIGURES, False, folder)
            yield Case(_SET, f"{astra} --network links", FIGURES, everyday, folder)
    yield from _of_a_stored_pipeline(STORED + _GROUPED[0])


def _of_a_stored_pipeline(folder: str) -> Iterator[Case]:
    """What parameters do to one set."""
    several = (
        "--no-fold", "--compute-scale 0.5", "--comm-scale 2", "--slow-rank 5=1.5",
        "--time-scale 'all communication=2'",
        "--time-scale 'stream group 1=3' --time-scale 'nodes COMP_#=0.5'",
    )  # fmt: skip
    for more in several:
        yield Case(_SET, f"{_NETWORK} {_GROUPS} {more}", FIGURES, False, folder)
    scaled = f"{_ASTRA} {_GROUPS} --time-scale 'all compute=0.5'"
    yield Case(_SET, scaled, FIGURES, False, folder)
    for line in (f"{_NETWORK} {_GROUPS}", f"{_ASTRA} {_GROUPS}"):
        yield Case(_SET, f'{line} --with "--splits 4"', COMPARED, False, folder)
    yield Case(_SET, f"{_NETWORK} {_GROUPS} --what-if", CHOICES, False, STORED + "l13_ring8_tp2_pp2_dp2")
    yield Case(_SET, f"{_ASTRA} --what-if", ("text", *CHOICES), False, STORED + "f33_pipeline_gpipe")

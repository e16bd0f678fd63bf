"""How near simulated steps come to published ones, by GPU, precision and trainer.

`python benchmarks/accuracy.py --write` makes published.csv beside this file, as it makes the tables of
docs/accuracy.md.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from simcore.model.gpu import Gpu
from simcore.model.training import Training
from simcore.names import GPU_NAMES
from simcore.records import NamedTuple, Struct

FILE = Path(__file__).with_name("published.csv")
HEAD = "gpu,precision,engine,compiled,steps,median,p90"
_ENGINE_WORDS = {"megatron": "Megatron", "deepspeed": "DeepSpeed", "fsdp": "FSDP"}
# Of so few steps 9 of 10 are all.
_FEW_STEPS = 10


class Kind(NamedTuple):
    """What published steps are told apart by. gpu: of gpus.toml, "" for a file that takes values from none.

    precision: bf16, nvfp4, or fp8 for all of 8 bits. engine, compiled: as `Training` has them.
    """

    gpu: str
    precision: str
    engine: str
    compiled: bool

    @property
    def words(self) -> str:
        """`H100, FP8, torchtitan compiled`."""
        engine = _ENGINE_WORDS.get(self.engine, self.engine)
        return f"{self.gpu.upper()}, {self.precision.upper()}, {engine}{' compiled' * self.compiled}"


class PublishedError(Struct, frozen=True):
    """How near published steps of a kind are. of_file: whether a file has the constants, and the GPU of
    `kind` is the one that it takes values from.

    steps: how many there are. median, p90: how far the simulated ones are off, as a share of the published,
    whatever the sign; None without any.
    """

    kind: Kind
    of_file: bool
    steps: int = 0
    median: float | None = None
    p90: float | None = None

    @property
    def words(self) -> str:
        """All of it in a sentence."""
        if not self.kind.gpu:
            return "constants of a file that takes none from a GPU: no published step was compared"
        front = "constants of a file; " if self.of_file else ""
        if not self.steps:
            return f"{front}no published step of {self.kind.words} was compared"
        return f"{front}{'of ' * self.of_file}{self.kind.words}: {self._spread_words}"

    @property
    def short_words(self) -> tuple[str, ...]:
        """Without what was trained on, the longest form first."""
        if self.median is None:
            return ("no published step was compared",)
        steps = "step" if self.steps == 1 else "steps"
        return self._spread_words, f"{self.steps} published {steps}, {100 * self.median:.1f} % off"

    @property
    def _spread_words(self) -> str:
        assert self.median is not None
        assert self.p90 is not None
        if self.steps == 1:
            return f"1 published step, {100 * self.median:.1f} % off"
        most = "all" if self.steps <= _FEW_STEPS else "9 of 10"
        spread = f"median {100 * self.median:.1f} % off, {most} within {100 * self.p90:.1f} %"
        return f"{self.steps} published steps, {spread}"


def kind_of(training: Training, gpu: Gpu) -> Kind:
    """Returns the kind that published steps of such a training are."""
    precision = "fp8" if training.precision == "mxfp8" else training.precision
    return Kind(gpu.bases[0] if gpu.bases else "", precision, training.engine, training.compiled)


def published_error(training: Training, gpu: Gpu) -> PublishedError:
    """Returns how near the published steps of a training's kind are."""
    kind = kind_of(training, gpu)
    return PublishedError(kind, training.gpu not in GPU_NAMES, *_published().get(kind, ()))


@cache
def _published() -> dict[Kind, tuple[int, float, float]]:
    """(steps, median, p90) of each kind that the file has, read when the first is asked for."""
    by_kind = {}
    for line in FILE.read_text("utf-8").splitlines()[1:]:
        gpu, precision, engine, compiled, steps, median, p90 = line.split(",")
        by_kind[Kind(gpu, precision, engine, compiled == "on")] = int(steps), float(median), float(p90)
    return by_kind

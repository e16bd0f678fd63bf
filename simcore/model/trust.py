"""The error of simulated steps against published ones, by GPU, precision and trainer.

`python benchmarks/accuracy.py --write` makes published.csv in this directory, as it makes the tables of
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
# Of fewer steps no tenth can be left out: 9 of 10 are all.
_FEW_STEPS = 10


class Kind(NamedTuple):
    """What distinguishes published steps."""

    gpu: str
    """A GPU of gpus.toml; "" for a file that takes values from none."""
    precision: str
    """bf16, nvfp4, or fp8 for all of 8 bits."""
    engine: str
    """As `Training` has it."""
    compiled: bool
    """As `Training` has it."""

    @property
    def words(self) -> str:
        """The kind in words: `H100, FP8, torchtitan compiled`."""
        engine = _ENGINE_WORDS.get(self.engine, self.engine)
        return f"{self.gpu.upper()}, {self.precision.upper()}, {engine}{' compiled' * self.compiled}"


class PublishedError(Struct, frozen=True):
    """The error of simulated steps against published steps of a kind."""

    kind: Kind
    """The kind of steps."""
    of_file: bool
    """Whether a file has the constants, so that the GPU of `kind` is the one that it takes values from."""
    steps: int = 0
    """How many published steps there are."""
    median: float | None = None
    """The median error as a share of the published step, without its sign; None without steps."""
    p90: float | None = None
    """The error that 9 of 10 steps do not exceed; None without steps."""

    @property
    def words(self) -> str:
        """The whole statement, in a sentence."""
        if not self.kind.gpu:
            return "constants of a file that takes none from a GPU: no published step was compared"
        front = "constants of a file; " if self.of_file else ""
        if not self.steps:
            return f"{front}no published step of {self.kind.words} was compared"
        return f"{front}{'of ' * self.of_file}{self.kind.words}: {self._spread_words}"

    @property
    def short_words(self) -> tuple[str, ...]:
        """The sentence without its training, in several forms, the longest first."""
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
    """Returns the kind of published steps of such a training."""
    precision = "fp8" if training.precision == "mxfp8" else training.precision
    return Kind(gpu.bases[0] if gpu.bases else "", precision, training.engine, training.compiled)


def published_error(training: Training, gpu: Gpu) -> PublishedError:
    """Returns the error against the published steps of a training's kind."""
    kind = kind_of(training, gpu)
    return PublishedError(kind, training.gpu not in GPU_NAMES, *_published().get(kind, ()))


@cache
def _published() -> dict[Kind, tuple[int, float, float]]:
    """Returns {kind: (steps, median, p90)} of the file, read on first use."""
    by_kind = {}
    for line in FILE.read_text("utf-8").splitlines()[1:]:
        gpu, precision, engine, compiled, steps, median, p90 = line.split(",")
        by_kind[Kind(gpu, precision, engine, compiled == "on")] = int(steps), float(median), float(p90)
    return by_kind

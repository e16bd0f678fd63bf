"""The figures of a point: its layout and memory, and its step time, which is that of `wltui report` to the
ns.
"""

from __future__ import annotations

import hashlib
import json
import os
from typing import TYPE_CHECKING, Any

from simcore import __version__
from simcore.analysis.fitting import find_training_schedule
from simcore.diagnostics import InputError, UsageError
from simcore.model.gpu import find_gpu
from simcore.model.maker import ModelMaker
from simcore.model.memory import memory_limit
from simcore.model.resolving import resolve_training
from simcore.model.training import Training
from simcore.parameters import FLAGS, Parameters, flag_of
from simcore.program.schedule_choice import with_chunks_of_schedule
from simcore.records import Struct, replace
from simcore.setup import Setup
from simcore.sources.inputs import require_workload
from simcore.sweeping.bound import Bounds
from simcore.sweeping.peaks import PeakMemory
from simcore.sweeping.point import CANNOT_BE, FAILED, NO_MEMORY, SCHEMA, Point, bound_words
from simcore.sweeping.point_lines import checked_values
from simcore.sweeping.space import OVERLAPS, Candidate, Space
from simcore.sweeping.step_time import StepTime, StepTimes
from simcore.workload import Workload
from simcore.workload.model import ModelParameters
from simcore.workload.opening import read_file

if TYPE_CHECKING:
    from simcore.sources.inputs import Opened

# $ are per GPU and hour.
_GPU_HOURS_NS = 3_600_000_000_000


class Definition(Struct, frozen=True):
    """What all points of a sweep have in common."""

    opened: tuple[str, ...]
    """The words of a command line that open the input."""
    space: Space
    """The points."""
    price: float | None = None
    """$ of a GPU for an hour; None where it was not stated."""
    rule: str = ""
    """The rule by which points are left out (`Rule.text`); "" where none is."""
    input: str = ""
    """The hash of the input, and of files that parameters name."""

    @property
    def sweep(self) -> str:
        """The hash by which a file of results identifies its sweep."""
        space = self.space
        plain = {
            "version": __version__,
            "input": self.input,
            "fixed": space.base_parameters.explicit_values(),
            "axes": [[axis.field, [_as_plain(value) for value in axis.values]] for axis in space.axes],
            "where": [condition.text for condition in space.where],
            "layouts": space.layouts,
            "price": self.price,
            "rule": self.rule,
        }
        return hashlib.sha256(json.dumps(plain).encode()).hexdigest()[:16]


def build_evaluator(
    source: Opened,
    opened: tuple[str, ...],
    space: Space,
    price: float | None = None,
    rule: str = "",
) -> Evaluator:
    """Returns the evaluator of a sweep over what was opened. opened, price, rule: of `Definition`.

    Raises `UsageError` where the source is no workload.
    """
    workload = require_workload(source, "sweep:")
    name = opened[-1] if opened else None
    # The bytes that are hashed: those of a file, or the sizes of a named model.
    data = repr(getattr(workload.maker, "model", None)).encode()
    if name is not None and os.path.lexists(name):
        data = read_file(name)
    return Evaluator(workload, Definition(opened, space, price, rule, input_hash(data, space)))


def input_hash(data: bytes, space: Space) -> str:
    """Returns the hash of the bytes of an input, and of each file that a parameter of the space names."""
    digest = hashlib.sha256(data)
    texts = [flag.field for flag in FLAGS if flag.kind in ("text", "word")]
    values = {str(value) for axis in space.axes if axis.field in texts for value in axis.values}
    values |= {str(getattr(space.base_parameters, name)) for name in texts}
    for value in sorted(values):
        path = value.partition(":")[2] or value
        if os.path.isfile(path):
            with open(path, "rb") as file:
                digest.update(b"\0" + value.encode(errors="replace") + b"\0" + file.read())
    return digest.hexdigest()[:16]


class CandidateCheck(Struct, frozen=True):
    """A candidate that was checked before it is run."""

    candidate: Candidate
    layout: dict[str, Any]
    """The values that --where and --by use."""
    gpus: int | None = None
    """How many GPUs it needs; None where only a run tells."""
    memory: int | None = None
    """Bytes of the fullest stage, a lower bound where they do not fit and it is not run; None where only a
    run tells.
    """
    limit: int | None = None
    """Bytes of a GPU; None where only a run tells."""
    work: int | None = None
    """Tokens of a step; of a workload file None: only a run tells its micro-batches."""
    at_least_ns: int | None = None
    """A lower bound of the step time; None where it was not computed."""
    why: str = ""
    """Why it is impossible; "" where it is possible."""

    @property
    def fits(self) -> bool:
        """Whether its fullest stage fits into a GPU, or may where that is not known."""
        return self.memory is None or self.limit is None or self.memory <= self.limit


class Evaluator:
    """Checks candidates and runs them. Workers get it, and it caches what points share."""

    def __init__(self, workload: Workload, definition: Definition) -> None:
        self.workload = workload
        self.definition = definition
        self._sweep = definition.sweep
        self._reset()

    def _reset(self) -> None:
        self._times = StepTimes()
        self._memory = PeakMemory()
        self._limits: dict[tuple[str | None, str], int] = {}
        # The last candidate, and its training.
        self._last_training: tuple[Candidate | None, Training | str | None] = (None, None)
        self._last_times: tuple[Candidate | None, StepTime | None] = (None, None)
        space = self.definition.space
        # The parameters that are set or vary and that no layout resolves.
        names = dict.fromkeys(
            [*(flag.field for flag in space.base_parameters.explicit_flags()), *space.varied]
        )
        self._other_fields = [
            name
            for name in names
            if name not in _OF_LAYOUT and name in _DEFAULTS and flag_of(name).kind != "words"
        ]
        maker = self.workload.maker
        if isinstance(maker, ModelMaker):
            self._bounds = Bounds(self.workload)

    def __getstate__(self) -> tuple[Workload, Definition]:
        return self.workload, self.definition

    def __setstate__(self, state: tuple[Workload, Definition]) -> None:
        self.workload, self.definition = state
        self._sweep = self.definition.sweep
        self._reset()

    # -- before a run ----------------------------------------------------------------

    def check(self, candidate: Candidate) -> CandidateCheck:
        """Returns a candidate with its layout and memory; for a workload file only with the stated layout."""
        parameters = candidate.parameters
        training = candidate.refusal or self._training(candidate)
        others = {name: _as_plain(getattr(parameters, name)) for name in self._other_fields}
        if training is None:
            return CandidateCheck(candidate, _stated_layout(candidate) | others)
        if isinstance(training, str):
            return CandidateCheck(candidate, _stated_layout(candidate) | others, why=training)
        layout = _training_layout(training, parameters.schedule) | others
        work = training.global_batch * training.seq * parameters.steps
        try:
            limit = self._limit_of(parameters.memory_limit, training.gpu)
            memory = self._memory.max_stage_bytes(
                training, parameters.schedule, parameters.overlap_fwd_bwd,
                limit if self.definition.rule else None, lambda: self._step_time(candidate).order,
            )  # fmt: skip
        except (UsageError, InputError) as error:
            return CandidateCheck(candidate, layout, training.world, work=work, why=_one_line(error))
        return CandidateCheck(candidate, layout, training.world, memory, limit, work)

    def _limit_of(self, stated_limit: str | None, gpu: str) -> int:
        """Returns the bytes of a GPU."""
        if (stated_limit, gpu) not in self._limits:
            self._limits[stated_limit, gpu] = memory_limit(stated_limit, find_gpu(gpu).memory)
        return self._limits[stated_limit, gpu]

    def _training(self, candidate: Candidate) -> Training | str | None:
        """Returns how a model is trained, or why it cannot be; None for a workload file."""
        last_candidate, resolved = self._last_training
        if last_candidate is candidate:
            # The memory and the bound of a candidate both need it.
            return resolved
        maker = self.workload.maker
        parameters = candidate.parameters
        if not isinstance(maker, ModelMaker) or maker.model is None or parameters.as_aicb is not None:
            return None
        try:
            resolved = resolve_training(
                maker.model, with_chunks_of_schedule(self.workload, parameters.part(ModelParameters))
            )
        except (UsageError, InputError) as error:
            resolved = _one_line(error)
        self._last_training = candidate, resolved
        return resolved

    def training_of(self, candidate: Candidate) -> Training | None:
        """Returns how a model is trained; None for a workload file, and where it cannot be."""
        training = self._training(candidate)
        return training if isinstance(training, Training) else None

    def matches_conditions(self, check: CandidateCheck) -> bool:
        """Returns whether every `--where` holds."""
        where = self.definition.space.where
        if not where:
            return True
        values = _DEFAULTS | check.layout
        return all(condition.holds(values) for condition in where)

    # -- points ----------------------------------------------------------------------

    def evaluate(self, check: CandidateCheck) -> Point:
        """Returns the point of a candidate, simulated, or skipped with the reason why it is impossible."""
        if check.why:
            return self._skipped_point(check, f"{CANNOT_BE}: {check.why}")
        try:
            times = self._step_time(check.candidate)
        except (UsageError, InputError) as error:
            return self._skipped_point(check, f"{CANNOT_BE}: {_one_line(error)}")
        gpus = times.layout.world
        layout = check.layout
        work, tokens = check.work, None
        if work is None:
            layout = layout | _run_layout(times.layout, times.schedule, times.virtual_stages)
            layout["microbatches"] = times.microbatches
            work = times.microbatches * times.layout.replicas or 1
        else:
            tokens = work * 1e9 / max(times.step_time_ns, 1)
        return self._build_point(
            check, layout=layout, step_time_ns=times.step_time_ns, tokens_per_s=tokens, gpus=gpus, work=work,
            cost=self._cost(gpus, times.step_time_ns),
        )  # fmt: skip

    def _step_time(self, candidate: Candidate) -> StepTime:
        """Returns the step time of a candidate. Raises as a run does."""
        last_candidate, times = self._last_times
        if last_candidate is not candidate or times is None:
            times = self._times.find_step_time(Setup(self.workload, candidate.parameters))
            # A schedule that is searched needs its order for the memory, too.
            self._last_times = candidate, times
        return times

    def oversized_point(self, check: CandidateCheck) -> Point:
        """Returns a point that was left out because it does not fit."""
        assert check.memory is not None
        assert check.limit is not None
        words = f"needs {check.memory / 1e9:.1f} GB or more of {check.limit / 1e9:.1f} GB"
        return self._skipped_point(check, f"{NO_MEMORY}: {words}")

    def with_bound(self, check: CandidateCheck) -> CandidateCheck:
        """Returns the same check with the lower bound of its step time; 0 for a workload file."""
        training = self._training(check.candidate)
        if not isinstance(training, Training):
            return replace(check, at_least_ns=0)
        return replace(check, at_least_ns=self._bounds.find_bound_ns(check.candidate, training))

    def left_out_point(self, check: CandidateCheck) -> Point:
        """Returns a point that was left out because no run of it is among the best."""
        assert check.at_least_ns is not None
        return self._skipped_point(check, bound_words(check.at_least_ns))

    def failed_point(self, check: CandidateCheck, why: str) -> Point:
        """Returns a point whose process ended again and again."""
        return self._skipped_point(check, f"{FAILED}: {why}")

    def _cost(self, gpus: int, step_time_ns: int) -> float | None:
        price = self.definition.price
        return None if price is None else price * gpus * step_time_ns / _GPU_HOURS_NS

    def _skipped_point(self, check: CandidateCheck, why: str) -> Point:
        return self._build_point(check, skipped=why)

    def _build_point(self, check: CandidateCheck, **figures: Any) -> Point:
        definition, candidate = self.definition, check.candidate
        values: dict[str, Any] = {
            "layout": check.layout, "step_time_ns": None, "tokens_per_s": None, "gpus": check.gpus,
            "work": check.work, "cost": None, "at_least_ns": check.at_least_ns, "skipped": None,
        } | figures  # fmt: skip
        return Point(
            schema=SCHEMA, sweep=self._sweep, version=__version__, input=definition.input,
            rule=definition.rule, point=candidate.index, parameters=candidate.parameters.explicit_values(),
            command=candidate.command(definition.opened),
            memory_peak_bytes=check.memory, memory_limit_bytes=check.limit, **values,
        )  # fmt: skip


def candidate_of(point: Point) -> Candidate:
    """Returns the candidate of a point that was read. Raises `UsageError` for unknown parameters."""
    try:
        return Candidate(point.index, Parameters(**checked_values(point.parameters)))
    except UsageError as error:
        raise UsageError(f"point {point.index}: {error}") from None


# The values of parameters that are not set.
_DEFAULTS: dict[str, Any] = {flag.field: flag.default for flag in FLAGS}


def _as_plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())


def _stated_layout(candidate: Candidate) -> dict[str, Any]:
    """Returns the stated layout, and the degrees that are 1 by default."""
    parameters = candidate.parameters
    layout: dict[str, Any] = {name: getattr(parameters, name) for name in ("tp", "pp", "ep", "cp", "world")}
    ranks = (parameters.tp or 1) * (parameters.pp or 1) * (parameters.cp or 1)
    layout["gpus"] = parameters.world
    layout["dp"] = None if parameters.world is None else parameters.world // ranks
    for name in ("schedule", "virtual_stages", "microbatches"):
        layout[name] = getattr(parameters, name)
    return layout


def _training_layout(training: Training, schedule: str | None) -> dict[str, Any]:
    """Returns the layout of a model's run, stated or not. schedule: the requested one."""
    return {
        "tp": training.tp,
        "pp": training.pp,
        "ep": training.ep,
        "cp": training.cp,
        "dp": training.dp,
        "world": training.world,
        "gpus": training.world,
        "schedule": find_training_schedule(training, schedule),
        "virtual_stages": training.chunks,
        "microbatches": training.microbatches,
        "microbatch_size": training.microbatch_size,
        "global_batch": training.global_batch,
        "recompute": training.recompute,
        "zero": training.zero,
        "gpu": training.gpu,
        "sequence_parallel": training.sequence_parallel,
        "overlap_grad_reduce": training.overlaps_gradients,
        "overlap_param_gather": training.overlaps_weights,
        "overlap_tp": training.overlap_tp,
    }


def _run_layout(layout: Any, schedule: str, virtual_stages: int) -> dict[str, Any]:
    return {
        "tp": layout.tp, "pp": layout.pp, "ep": layout.ep, "cp": layout.cp, "dp": layout.replicas,
        "world": layout.world, "gpus": layout.world, "schedule": schedule, "virtual_stages": virtual_stages,
    }  # fmt: skip


_OF_LAYOUT = {
    "tp", "pp", "ep", "cp", "world", "schedule", "virtual_stages", "microbatches", "microbatch_size",
    "global_batch", "recompute", "zero", "gpu", "sequence_parallel", *OVERLAPS,
}  # fmt: skip

"""The engines that run points on other machines: the workers of a Dask scheduler, or of Slurm through Dask.

`dask://HOST:PORT` is a scheduler that runs; `slurm:FILE.toml` states which jobs to request of Slurm
(dask-jobqueue writes their scripts and starts a scheduler here). Both come with the extra `wltui[dask]`. A
task on a worker that ends runs again on another one: points depend on their parameters alone.
"""

from __future__ import annotations

import contextlib
import logging
import re
import threading
from collections.abc import Iterable, Iterator
from importlib import import_module
from itertools import islice
from typing import Any

from simcore import __version__
from simcore.diagnostics import UsageError, did_you_mean, printable
from simcore.sweeping.engines import SweepEngine, be_nice, split_into_chunks
from simcore.sweeping.evaluating import CandidateCheck, Evaluator
from simcore.sweeping.point import Point
from simcore.units import is_whole

# Points of a task: a task costs the scheduler about 1 ms.
_POINTS_PER_TASK = 8
# The most tasks that the scheduler has at a time.
_MAX_TASKS = 512
# How many workers may end with a task before it counts as failed.
_ATTEMPTS = 3
_CONNECT_TIMEOUT_S = 10
# The keys of a file for Slurm: the argument of dask-jobqueue, and its type.
_SLURM: dict[str, tuple[str, type]] = {
    "account": ("account", str), "queue": ("queue", str), "walltime": ("walltime", str),
    "cores": ("cores", int), "memory": ("memory", str), "processes": ("processes", int),
    "interface": ("interface", str), "python": ("python", str), "log_directory": ("log_directory", str),
    "prologue": ("job_script_prologue", list), "directives": ("job_extra_directives", list),
}  # fmt: skip
# What `sbatch` takes: another value could be a second option in the script that is submitted.
_NAME = r"[A-Za-z0-9_.,:@/+-]+"
_SBATCH = {
    "account": _NAME, "queue": _NAME, "interface": _NAME, "walltime": r"[0-9:-]+",
    "memory": r"[0-9.]+ ?[KMGTkmgt]?(i?[Bb])?",
}  # fmt: skip
_REQUIRED = ("cores", "memory", "jobs")


def cluster_engine(text: str) -> SweepEngine:
    """Returns the engine of `--engine`. Raises `UsageError` that says what was found and what would fit."""
    if text.startswith(("dask://", "tls://")):
        return DaskEngine(_scheduler_address(text))
    if text.startswith("slurm:"):
        return SlurmEngine(text.removeprefix("slurm:"))
    raise UsageError(
        f"--engine {printable(text, 60)}: dask://HOST:PORT or slurm:FILE.toml is expected; without it points "
        "are run here, in --jobs processes"
    )


def _import_distributed() -> Any:
    try:
        distributed = import_module("distributed")
    except ImportError:
        raise UsageError(
            "--engine: Dask is not installed; the extra wltui[dask] brings it, and --jobs does without"
        ) from None
    for name in ("distributed.client", "distributed.comm", "distributed.scheduler", "distributed.core"):
        # A worker that ends is handled here: the user need not read of it.
        logging.getLogger(name).setLevel(logging.CRITICAL)
    return distributed


def _scheduler_address(text: str) -> str:
    # Certificates are those of Dask's own configuration (distributed.comm.tls).
    protocol = "tls" if text.startswith("tls://") else "tcp"
    host, colon, port = text.partition("://")[2].rpartition(":")
    if not colon or not host or not is_whole(port, 5) or not 0 < int(port) < 65536:
        raise UsageError(
            f"--engine {printable(text, 60)}: dask://HOST:PORT is expected, like dask://head:8786"
        )
    return f"{protocol}://{host}:{port}"


class DaskEngine:
    """Runs points on the workers of a scheduler."""

    def __init__(self, address: Any, label: str = "") -> None:
        """address: of a scheduler, or a cluster of Dask's.

        Raises `UsageError` where none answers, or where workers have another version of wltui.
        """
        distributed = _import_distributed()
        self._label = label = label or printable(str(address), 60)
        try:
            self._client = distributed.Client(address, timeout=_CONNECT_TIMEOUT_S, set_as_default=False)
        except (OSError, TimeoutError) as error:
            why = " ".join(str(error).split())
            raise UsageError(
                f"--engine: no Dask scheduler answers at {label} ({printable(why, 120)})"
            ) from None
        versions = set(self._client.run(_version).values())
        others = versions - {__version__}
        if not versions and isinstance(address, str):
            self._client.close()
            raise UsageError(
                f"--engine: the scheduler at {label} has no workers: `dask worker {label}` starts one"
            )
        if others:
            self._client.close()
            names = ", ".join(sorted(map(str, others)))
            raise UsageError(f"--engine: workers of {label} have wltui {names}, this is {__version__}")

    def points(self, evaluator: Evaluator, checks: Iterable[CandidateCheck]) -> Iterator[Point]:
        """Yields the points as they finish. Raises `UsageError` where the scheduler ends before."""
        distributed = _import_distributed()
        waiting = split_into_chunks(checks, _POINTS_PER_TASK)
        # A task, not scattered data: Dask makes it again where a worker that had it ends.
        with self._alive():
            shared = self._client.submit(_build_evaluator, evaluator.__getstate__(), pure=False)
        chunk_of: dict[Any, list[CandidateCheck]] = {}

        def submit(count: int) -> list[Any]:
            futures = []
            for chunk in islice(waiting, count):
                with self._alive():
                    future = self._client.submit(_run_chunk, shared, chunk, pure=False, retries=_ATTEMPTS)
                chunk_of[future.key] = chunk
                futures.append(future)
            return futures

        first = submit(_MAX_TASKS)
        if not first:
            return
        completed = distributed.as_completed(first, loop=self._client.loop)
        for future in completed:
            chunk = chunk_of.pop(future.key)
            # Where a worker ended with its result, this waits until another one has found it.
            if future.status in ("cancelled", "lost"):
                raise self._ended()
            with self._alive():
                error = None if future.status == "finished" else future.exception()
                points = future.result() if error is None else []
            yield from points
            if error is not None:
                why = f"{_ATTEMPTS} workers ended with it"
                if not isinstance(error, distributed.KilledWorker):
                    why = " ".join(str(error).split())
                for point in chunk:
                    yield evaluator.failed_point(point, printable(why))
            for more in submit(1):
                completed.add(more)

    @contextlib.contextmanager
    def _alive(self) -> Iterator[None]:
        """Raises `UsageError` for what goes wrong because the scheduler has ended."""
        from asyncio import CancelledError
        from concurrent import futures

        try:
            yield
        except (OSError, TimeoutError, CancelledError, futures.CancelledError):
            raise self._ended() from None
        except Exception:
            if self._client.status == "running":
                raise
            raise self._ended() from None

    def _ended(self) -> UsageError:
        return UsageError(
            f"--engine: the Dask scheduler at {self._label} has ended: what -o FILE has stays, and --resume "
            "goes on with it"
        )

    def close(self) -> None:
        """Leaves the scheduler; what still runs there is given up."""
        with contextlib.suppress(OSError, TimeoutError):
            self._client.close()


class SlurmEngine(DaskEngine):
    """Runs points on workers in jobs of Slurm."""

    def __init__(self, path: str) -> None:
        """path: a TOML file that states which jobs to request. Raises `UsageError` for what it cannot
        contain.
        """
        import shutil

        arguments, jobs = slurm_arguments(path)
        _import_distributed()
        if shutil.which("sbatch") is None:
            raise UsageError(
                f"--engine slurm:{printable(path, 60)}: there is no sbatch here; on a machine that submits "
                "to Slurm it would fit"
            )
        self._jobs = slurm_cluster(arguments)
        try:
            self._jobs.scale(jobs=jobs)
            super().__init__(self._jobs, f"slurm:{path}")
        except BaseException:
            self._jobs.close()
            raise

    def close(self) -> None:
        """Leaves the scheduler and ends the jobs."""
        super().close()
        self._jobs.close()


def slurm_cluster(arguments: dict[str, Any]) -> Any:
    """Returns dask-jobqueue's cluster with these arguments: its `job_script()` is what is submitted."""
    try:
        jobqueue = import_module("dask_jobqueue")
    except ImportError:
        raise UsageError(
            "--engine slurm: dask-jobqueue is not installed; the extra wltui[dask] brings it"
        ) from None
    return jobqueue.SLURMCluster(**arguments)


def slurm_arguments(path: str) -> tuple[dict[str, Any], int]:
    """Returns (the arguments of dask-jobqueue, how many jobs) of a TOML file.

    Raises `UsageError`, and `InputError` for a file that cannot be read.
    """
    from simcore.model.toml_text import TomlProblem, parse_toml, read_text

    prefix = f"--engine slurm:{printable(path, 60)}"
    try:
        keys = parse_toml(read_text(path, "a file of jobs"), 'keys like queue = "gpu"')
    except FileNotFoundError:
        raise UsageError(f"{prefix}: there is no such file") from None
    except TomlProblem as problem:
        where = ":".join(map(str, problem.location or ()))
        raise UsageError(f"{prefix}{':' if where else ''}{where}: {problem.message}") from None
    arguments: dict[str, Any] = {}
    jobs = None
    for key, value in keys.items():
        kind = int if key == "jobs" else _SLURM.get(key, ("", object))[1]
        if key != "jobs" and key not in _SLURM:
            expected_keys = ", ".join(sorted((*_SLURM, "jobs")))
            raise UsageError(
                f"{prefix}: found {printable(key, 40)}, expected some of "
                f"{expected_keys}{did_you_mean(key, _SLURM)}"
            )
        fits = isinstance(value, kind) and not isinstance(value, bool)
        if kind is list:
            fits = fits and all(isinstance(item, str) and item.isprintable() for item in value)
        if kind is int:
            fits = fits and 0 < value < 10**6
        if kind is str:
            fits = fits and re.fullmatch(_SBATCH.get(key, r".+"), value) is not None and value.isprintable()
        if not fits:
            fitting = {int: "a whole number above 0", str: "a text of one line", list: "a list of lines"}
            raise UsageError(f"{prefix}: {key}: found {printable(repr(value), 40)}, expected {fitting[kind]}")
        if key == "jobs":
            jobs = value
        else:
            arguments[_SLURM[key][0]] = value
    missing = [key for key in _REQUIRED if key not in keys]
    if missing:
        raise UsageError(f"{prefix}: {', '.join(missing)} missing; a job needs {', '.join(_REQUIRED)}")
    assert jobs is not None
    return arguments, jobs


# -- on a worker -------------------------------------------------------------------------

# A worker may have threads, and an evaluator caches what points share.
_one_at_a_time = threading.Lock()


def _version() -> str:
    return __version__


def _build_evaluator(state: Any) -> Evaluator:
    be_nice()
    evaluator = Evaluator.__new__(Evaluator)
    evaluator.__setstate__(state)
    return evaluator


def _run_chunk(evaluator: Evaluator, chunk: list[CandidateCheck]) -> list[Point]:
    with _one_at_a_time:
        return [evaluator.evaluate(check) for check in chunk]

"""The engines that run points: in this process, or in processes of this machine.

An engine is given checked points and yields them as they finish, in any order; the content of a point never
depends on the engine. Another one (`simcore.sweeping.clusters`) runs them on other machines.
"""

from __future__ import annotations

import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from itertools import chain
from multiprocessing import get_context, parent_process
from typing import Protocol

from simcore.diagnostics import Cancelled
from simcore.sweeping.evaluating import CandidateCheck, Evaluator
from simcore.sweeping.point import Point

# Work of users at the machine comes first.
_NICE = 10
# Points of a task: consecutive ones share an order, which each worker that has one of them builds for itself
# (50 ms; a point of a cached order takes 3).
_TOGETHER = 12
# How many processes may end with a point before it counts as failed.
_ATTEMPTS = 3
# The interval, s, at which the engine checks whether to stop while no point arrives.
_POLL_S = 0.1


class SweepEngine(Protocol):
    """Runs points somewhere."""

    def points(self, evaluator: Evaluator, checks: Iterable[CandidateCheck]) -> Iterator[Point]:
        """Yields the points as they finish. Closing it stops what runs."""
        ...

    def close(self) -> None:
        """Ends what was started."""
        ...


class HereEngine:
    """Runs one point after another in this process."""

    def points(self, evaluator: Evaluator, checks: Iterable[CandidateCheck]) -> Iterator[Point]:
        """Yields each point when it has finished."""
        return map(evaluator.evaluate, checks)

    def close(self) -> None:
        """Does nothing: nothing was started."""


class ProcessEngine:
    """Runs points in `jobs` processes of this machine. A process that ends is replaced, and its points run
    again.

    is_stopped: called while points are waited for; `points` raises `Cancelled` when it is true.
    """

    def __init__(self, jobs: int, is_stopped: Callable[[], bool] = lambda: False) -> None:
        self.jobs = jobs
        self._is_stopped = is_stopped
        self._pool: ProcessPoolExecutor | None = None

    def points(self, evaluator: Evaluator, checks: Iterable[CandidateCheck]) -> Iterator[Point]:
        """Yields the points as they finish."""
        # Taken as they are needed: checking all of a large space takes longer than running its first points.
        chunks = split_into_chunks(checks, _TOGETHER)
        waiting: deque[list[CandidateCheck]] = deque()
        tries: dict[int, int] = {}
        running: dict[Future[list[Point]], list[CandidateCheck]] = {}
        while True:
            while len(waiting) + len(running) < 2 * self.jobs and (chunk := next(chunks, None)) is not None:
                waiting.append(chunk)
            if not waiting and not running:
                return
            pool = self._start_pool(evaluator)
            has_died = False
            try:
                while waiting and len(running) < 2 * self.jobs:
                    running[pool.submit(_run_chunk, waiting[0])] = waiting[0]
                    waiting.popleft()
            except BrokenProcessPool:
                has_died = True
            if self._is_stopped():
                raise Cancelled
            finished, _ = wait(running, _POLL_S, FIRST_COMPLETED) if running else (set(), set())
            for future in finished:
                chunk = running.pop(future)
                try:
                    yield from future.result()
                except BrokenProcessPool:
                    has_died = True
                    waiting.append(chunk)
            if not has_died:
                continue
            # It is not known which point ended the process: each runs alone from here on, and counts its
            # attempts.
            lost = [*running.values(), *waiting]
            running.clear()
            waiting.clear()
            self.close()
            for point in chain.from_iterable(lost):
                index = point.candidate.index
                tries[index] = tries.get(index, 0) + 1
                if tries[index] > _ATTEMPTS + len(lost):
                    yield evaluator.failed_point(point, f"its process ended {_ATTEMPTS} times")
                else:
                    waiting.append([point])

    def _start_pool(self, evaluator: Evaluator) -> ProcessPoolExecutor:
        if self._pool is None:
            # Not forked: threads of a screen may hold locks, and a file lock would have two owners.
            self._pool = ProcessPoolExecutor(
                self.jobs,
                mp_context=get_context("spawn"),
                initializer=_initialize_worker,
                initargs=(evaluator,),
            )
        return self._pool

    def close(self) -> None:
        """Ends the processes, also those that run a point."""
        if self._pool is None:
            return
        pool, self._pool = self._pool, None
        processes = list((pool._processes or {}).values())
        pool.shutdown(wait=False, cancel_futures=True)
        for process in processes:
            process.terminate()
        for process in processes:
            process.join()


def engine_of(jobs: int, is_stopped: Callable[[], bool] = lambda: False) -> SweepEngine:
    """Returns the engine with so many processes; one job runs in this process. is_stopped: as of
    `ProcessEngine`.
    """
    return HereEngine() if jobs == 1 else ProcessEngine(jobs, is_stopped)


def default_jobs() -> int:
    """Returns half of the cores that this process may use, at least one."""
    try:
        cores = len(os.sched_getaffinity(0))
    except AttributeError:
        cores = os.cpu_count() or 1
    return max(1, cores // 2)


def be_nice() -> None:
    """Lowers the priority of this process below that of all other work."""
    with suppress(OSError):
        os.nice(_NICE - os.nice(0))


def split_into_chunks(checks: Iterable[CandidateCheck], count: int) -> Iterator[list[CandidateCheck]]:
    """Yields the checks in lists of `count`."""
    chunk: list[CandidateCheck] = []
    for point in checks:
        chunk.append(point)
        if len(chunk) == count:
            yield chunk
            chunk = []
    if chunk:
        yield chunk


# The evaluator of a worker process.
_evaluator: Evaluator | None = None


def _initialize_worker(evaluator: Evaluator) -> None:
    global _evaluator
    # Ctrl-C reaches all processes of a terminal: the first one ends the others.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    be_nice()
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _evaluator = evaluator


def _end_with_parent() -> None:
    """Ends this process when the one that started it has ended: a killed one can tell nobody."""
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _run_chunk(chunk: list[CandidateCheck]) -> list[Point]:
    assert _evaluator is not None
    return [_evaluator.evaluate(check) for check in chunk]

"""Where the figures of an operation of a trace come from, in words: runs, ranks, bytes, the step."""

from __future__ import annotations

from collections.abc import Iterator

from simcore.measured.vocabulary import POINT_TO_POINT
from simcore.ranks import RankSet
from simcore.replay.operations import Operation, Operations
from simcore.units import byte_size, duration, percent, plural
from tui.frame import cells, wrapped


def origin_words(operations: Operations, operation: Operation, width: int) -> list[tuple[str, str]]:
    """Lines of (text, role) of at most `width` cells."""
    lines = []
    for words, role in _sentences(operations, operation):
        lines += [(line, role) for line in wrapped(words, width)]
    return lines


def _sentences(operations: Operations, operation: Operation) -> Iterator[tuple[str, str]]:
    yield _runs(operations, operation), ""
    if not operations.timed:
        return
    if operation.measured:
        yield _lengths(operations, operation), ""
    sent = _sent(operations, operation)
    if sent:
        yield sent, ""
    yield _step(operations, operation), "dim"


def _runs(operations: Operations, operation: Operation) -> str:
    """How often it runs, and where."""
    run = operations.results.run
    whose = _ranks_words(operations, operation)
    words = f"{plural(operation.count, 'run')} {whose}"
    without = operation.count - operation.measured
    if run.timed and without:
        words += f", {without} of them without a duration in the file"
    return words if run.timed else f"{words}; the file has no times"


def _ranks_words(operations: Operations, operation: Operation) -> str:
    run = operations.results.run
    numbers = [run.ranks[rank].number for rank in operation.ranks]
    on = "on" if run.unit == "rank" else "of"
    if len(numbers) == 1:
        return f"{on} {run.unit} {numbers[0]}"
    text = RankSet.of(numbers).text()
    return f"{on} {plural(len(numbers), run.unit)} ({text if len(text) <= 40 else cells(text, 40)})"


def _lengths(operations: Operations, operation: Operation) -> str:
    """How long its runs are, and how much of the longest is waiting."""
    mean = duration(round(operation.total_ns / operation.measured))
    if operation.measured == 1:
        return f"it takes {mean}{_waiting(operations, operation)}"
    least = f"the fastest {duration(operation.least_ns)}"
    most = f"the slowest {duration(operation.most_ns)}"
    if len(operation.ranks) > 1:
        least += f" ({_rank(operations, operation.least_rank)})"
        most += f" ({_rank(operations, operation.most_rank)}{_batch(operation)})"
    elif operation.most_batch >= 0:
        most += f" ({_batch(operation)[2:]})"
    return f"a run takes {mean} on average, {least}, {most}{_waiting(operations, operation)}"


def _waiting(operations: Operations, operation: Operation) -> str:
    """What the longest run waits, for whom it waits most."""
    waits = operations.waits_of_longest(operation)
    if not waits:
        return ""
    ns = sum(wait.ns for wait in waits)
    late: dict[int, int] = {}
    for wait in waits:
        late[wait.late] = late.get(wait.late, 0) + wait.ns
    most = max(late, key=lambda rank: late[rank])
    others = " and others" if len(late) > 1 else ""
    return f", of which it waits {duration(ns)} for {_rank(operations, most)}{others}"


def _sent(operations: Operations, operation: Operation) -> str:
    """Its bytes, and how fast they went where that is known."""
    sizes = operations.sizes(operation)
    if sizes is None:
        return ""
    words = f"a buffer of {byte_size(sizes[1])} a run"
    if sizes[0] != sizes[1]:
        words = f"buffers of {byte_size(sizes[0])} to {byte_size(sizes[1])}"
    moved = operations.moved(operation)
    if moved.ns:
        mean = duration(round(moved.ns / moved.times))
        when = f"through {mean} after the last rank comes"
        if operation.op in POINT_TO_POINT:
            when = f"there {mean} after the send begins"
        of = f", mean of {moved.times}" if moved.times > 1 else ""
        words += f"; {when}{of}: algbw {moved.algbw:.1f} GB/s"
    alone = operations.without_partner(operation)
    if alone:
        runs = "it has" if operation.count == 1 else f"{alone} of {plural(operation.count, 'run')} have"
        unknown = "so waiting counts as communication"
        if operations.is_beside_compute(operation):
            unknown = "so what compute waited for is not known"
        words += f"; {runs} no partner that waited, {unknown}"
    return words


def _step(operations: Operations, operation: Operation) -> str:
    """What it takes of the step on the rank with most of it, and what the critical path has of it."""
    results = operations.results
    parts = {"compute": operation.use.compute_ns, "exposed": operation.use.exposed_ns}
    own = [f"{word} {duration(ns)}" for word, ns in parts.items() if ns]
    if not own and operation.own_ns:
        own = [f"host {duration(operation.own_ns)}"]
    if not own:
        words = (
            "of the step: nothing but waiting" if operation.waits_ns else "of the step: nothing of its own"
        )
        words += ", it runs beside compute" if operations.is_beside_compute(operation) else ""
    else:
        words = f"of the step: {', '.join(own)} ({percent(operation.own_ns, results.step_time_ns)} %)"
        if operation.rank is None and len(operation.ranks) > 1:
            words += f" on {_rank(operations, operation.own_rank)}, the most of a rank"
        if operation.times_mean is not None and len(results.run.ranks) > 1:
            words += f", {operation.times_mean:.2f} times the mean of all that run it"
    if operations.path_known:
        critical = operations.critical_ns(operation)
        several = " of all ranks" if critical and len(results.run.ranks) > 1 else ""
        words += f"; {duration(critical) if critical else 'not'} on the critical path{several}"
        slack = operations.slack_ns(operation)
        words += "" if slack is None else f", slack {duration(slack)}" if slack else ", no slack"
    return words


def _rank(operations: Operations, rank: int) -> str:
    return f"{operations.results.run.unit} {operations.results.run.ranks[rank].number}"


def _batch(operation: Operation) -> str:
    return f", micro-batch {operation.most_batch}" if operation.most_batch >= 0 else ""

"""Examples of what is said of measured runs: traces and folders as the tracers write them, one fault each."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from msgspec.structs import replace

from simcore.diagnostics import Diagnostic, InputError
from simcore.measured import open_directory, reading
from simcore.measured.reading import LONGEST_LINE
from simcore.parameters import Parameters
from simcore.runs.measured import run_recording
from simcore.sources.inputs import open_input
from tests.measured.traces import Op, Sub, step, write_set

Example = Callable[[Path], list[Diagnostic]]


def relative(found: tuple[Diagnostic, ...], folder: Path) -> list[Diagnostic]:
    """The diagnostics as they are for someone who runs wltui in `folder`."""
    inside = [Path(one.file).is_relative_to(folder) for one in found]
    found = tuple(replace(one, message=one.message.replace(f"{folder}/", "")) for one in found)
    return [
        replace(one, file=str(Path(one.file).relative_to(folder))) if is_inside else one
        for one, is_inside in zip(found, inside, strict=True)
    ]


def _said_of(path: Path, folder: Path) -> list[Diagnostic]:
    try:
        opened = open_input(str(path))
    except InputError as error:
        return relative(error.diagnostics, folder)
    return relative(opened.diagnostics, folder)


def trace(*lines: str) -> Example:
    """What opening a file of these lines says."""

    def example(folder: Path) -> list[Diagnostic]:
        (folder / "trace.txt").write_text("\n".join(lines))
        return _said_of(folder / "trace.txt", folder)

    return example


def directory(ranks: dict[int, str], world: int = 2, **beside: str) -> Example:
    """What opening a directory with these ranks' files, and with others beside them, says."""

    def example(folder: Path) -> list[Diagnostic]:
        (folder / "run").mkdir()
        write_set(folder / "run", ranks, world=world)
        for name, content in beside.items():
            (folder / "run" / f"{name}.txt").write_text(content)
        return _said_of(folder / "run", folder)

    return example


def two_runs(folder: Path) -> list[Diagnostic]:
    (folder / "run").mkdir()
    for stamp in ("20240923205004", "20240924110000"):
        write_set(folder / "run", {0: step(0), 1: step(1)}, world=2, stamp=stamp)
    return _said_of(folder / "run", folder)


def two_halves(folder: Path) -> list[Diagnostic]:
    (folder / "run").mkdir()
    for rank, stamp in enumerate(("20240923205004", "20240924110000")):
        write_set(folder / "run", {rank: step(rank)}, world=2, stamp=stamp)
    return _said_of(folder / "run", folder)


def measured_alone(folder: Path) -> list[Diagnostic]:
    directory({0: step(0)})(folder)
    results = run_recording(open_directory(str(folder / "run")), Parameters())
    return relative(results.diagnostics, folder)


def replayed_alone(folder: Path) -> list[Diagnostic]:
    directory({0: step(0)})(folder)
    replayed = run_recording(open_directory(str(folder / "run")), Parameters(replay=True))
    return relative(replayed.run.diagnostics, folder)


def circle(folder: Path) -> list[Diagnostic]:
    """Rank 0 waits in an all-reduce for rank 1, which waits before it for what rank 0 sends behind it."""
    ranks = {
        0: [Op("ep_allreduce", "1002.0", group="ep"), Op("send_forward", "1004.0", group="pp")],
        1: [Op("recv_forward", "2.0", group="pp", stage=1), Op("ep_allreduce", "4.0", group="ep", stage=1)],
    }
    texts = {rank: "".join(op.line(rank) + "\n" for op in ops) for rank, ops in ranks.items()}
    (folder / "run").mkdir()
    write_set(folder / "run", texts, world=2, stamps={1: "20240924110000"})
    replayed = run_recording(open_directory(str(folder / "run")), Parameters(replay=True))
    return relative(replayed.diagnostics, folder)


def many_operations(folder: Path) -> list[Diagnostic]:
    most, reading.MOST_OPERATIONS = reading.MOST_OPERATIONS, 2
    try:
        return trace(FORWARD, FORWARD, FORWARD)(folder)
    finally:
        reading.MOST_OPERATIONS = most


FORWARD = Op().line()
BOTH = {0: step(0), 1: step(1)}
MEASURED: dict[str, Example] = {
    "no-rank-traces": directory({}, notes="Dear reader,\n"),
    "trace-line": trace(FORWARD, "iteration 2"),
    "trace-line-end": trace(FORWARD, FORWARD[:-1]),
    "trace-line-length": trace(FORWARD, FORWARD.replace("steady", "x" * LONGEST_LINE)),
    "too-many-operations": many_operations,
    "trace-key": trace(FORWARD.replace("(", "(fast,", 1)),
    "trace-list": trace(FORWARD.replace("[]", "[linear_fwd]")),
    "not-concurrent": directory({0: step(0, 1000), 1: step(1, 9000)}),
    "clock-offset": directory(
        {
            0: Op("send_forward", "1002.0").line() + "\n" + Op("recv_backward", "1012.0", "8.0").line(),
            1: Op("recv_forward", "501002.0", stage=1).line(1)
            + "\n"
            + Op("send_backward", "501012.0", stage=1).line(1),
        }
    ),
    "layout-assumed": directory(BOTH),
    "step-assumed": directory(BOTH),
    "dp-of-one": directory(
        {
            rank: text + Op("dp_allreduce", "1025.0", "8.0", group="dp").line(rank)
            for rank, text in BOTH.items()
        }
    ),
    "clocks-disagree": directory(
        {
            0: Op("send_forward", "1011.0").line() + "\n" + Op("recv_backward", "1020.0", "8.0").line(),
            1: Op("recv_forward", "1005.0", stage=1).line(1)
            + "\n"
            + Op("send_backward", "1028.0", stage=1).line(1),
        }
    ),
    "no-partner": measured_alone,
    "replay-unmatched": replayed_alone,
    "circular-waits": circle,
    "ranks-missing": directory(BOTH, world=4),
    "rank-outside": directory(BOTH | {2: step(2)}),
    "repeated-rank": directory({0: step(0), 1: step(1) + step(0)}),
    "stage-changes": trace(FORWARD, Op("send_forward", "102.0", "0.5", group="pp", stage=1).line()),
    "operations-overlap": trace(FORWARD, Op("send_forward", "101.2", "0.5", group="pp").line()),
    "sub-operation-outside": trace(Op(subs=(Sub("99.5"),)).line()),
    "untimed-schedule": trace("stage:0:forward_step(batch_id=0)", "stage:1:recv_forward(batch_id=0)"),
    "no-step-time": trace(Op(duration="0").line()),
    "untimed-rank": trace(FORWARD, Op(timestamp=None, duration=None).line(1)),
    "other-runs": two_runs,
    "several-stamps": two_halves,
    "other-files": directory(BOTH, notes="Dear reader,\n"),
    "several-steps": trace(step(0), step(0, 2000)),
    "untimed-operation": trace(FORWARD, Op("loss_func", None, None).line()),
    "no-duration": trace(
        FORWARD, Op("dp_allreduce", "102.0", "Async operation, duration not measured").line()
    ),
    "unknown-operation": trace(FORWARD, Op("save_checkpoint", "103.0").line()),
    "unknown-group": trace(FORWARD, Op("tp_allreduce", "103.0", group="cp").line()),
}

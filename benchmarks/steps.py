"""What screen 8 takes of a job of many steps that was read before: whole processes, s and MB.

The job is made: a Chrome trace a rank, each step a forward, a backward, a reduction of all ranks and the
optimizer; rank 7 is slow in two of three steps.
Usage: python benchmarks/steps.py [SHARE] [--write]; SHARE of the steps (1); --write puts the table into
benchmarks/README.md. Exit status 1 when a budget is missed.
"""

from __future__ import annotations

import os
import random
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.measuring import IMPORT_TEXTUAL, WLTUI, Table, finished, number_of, succeeded

STEPS, RANKS = 10_000, 64
SECONDS, MEGABYTES = 3.0, 500
_SLOW = 7


def make_job(folder: Path, steps: int, ranks: int) -> None:
    """Writes the files of a job."""
    chance = random.Random(1)
    forward = [
        [(1000 + chance.randrange(60)) * (2 if rank == _SLOW and step % 3 else 1) for step in range(steps)]
        for rank in range(ranks)
    ]
    starts = [0]
    for lengths in zip(*forward, strict=True):
        starts.append(starts[-1] + 3 * max(lengths) + 500)
    for rank, lengths in enumerate(forward):
        lines = ",\n".join(_spans(rank, lengths, starts, ranks))
        (folder / f"trace_rank{rank}.json").write_text(f"[{lines}]")


def _spans(rank: int, forward: list[int], starts: list[int], ranks: int) -> Iterator[str]:
    yield f'{{"ph": "M", "name": "process_name", "pid": {rank}, "args": {{"name": "rank {rank}"}}}}'
    members = [*range(ranks)]
    for step, us in enumerate(forward):
        start, over = starts[step], starts[step + 1] - 200
        for name, begin, end in (
            ("forward", start, start + us), ("backward", start + us, start + 3 * us),
            ("dp_allreduce", start + 3 * us, over), ("optimizer", over, over + 200),
        ):  # fmt: skip
            group = f', "ranks": {members}' if name == "dp_allreduce" else ""
            yield (
                f'{{"ph": "X", "name": "{name}", "pid": {rank}, "tid": 0, "ts": {begin}, '
                f'"dur": {end - begin}, '
                f'"args": {{"step": {step}{group}}}}}'
            )


def main(words: list[str]) -> int:
    """Prints the table. Gives the exit status."""
    steps = max(int(STEPS * number_of(words, 1.0)), 2)
    textual = succeeded(IMPORT_TEXTUAL)
    table = Table(f"{steps} steps of {RANKS} ranks, import textual.app {1000 * textual.seconds:.0f} ms")
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_STATE_HOME"] = f"{folder}/state"
        job = Path(folder, "job")
        job.mkdir()
        make_job(job, steps, RANKS)
        first = succeeded((*WLTUI, "report", str(job)))
        table.add(f"first report      {first.seconds:.1f} s, {first.own_seconds:.1f} s of its own")
        screen = succeeded((*WLTUI, str(job), "--screen", "steps", "--snapshot", ""))
        table.add(
            f"screen 8, kept    {screen.seconds:.2f} s, {screen.own_seconds:.2f} s of its own "
            f"(budget {SECONDS:g}); {screen.peak_mb:.0f} MB (budget {MEGABYTES})"
        )
        table.judge("screen 8 of a kept set, s", screen.own_seconds, SECONDS)
        table.judge("screen 8 of a kept set, MB", screen.peak_mb, MEGABYTES)
    return finished(__file__, table, words)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

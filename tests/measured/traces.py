"""Writes rank traces as the tracers do, and reads them back: texts, files, sets of files."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

import pytest

from simcore.diagnostics import Diagnostic, InputError
from simcore.measured import MeasuredRun, read_run
from tests.findings import named

STAMP = "20240923205004"


@dataclass(frozen=True)
class Sub:
    """A sub-operation; times in ms as text, None for `None`."""

    timestamp: str | None = "100.5"
    duration: str | None = "0.5"
    name: str | None = "linear_fwd"
    source: str | None = "allreduce"
    group: str | None = "tp"
    collective: str | None = "allreduce"
    shape: str | None = "[4096, 5120]"
    dtype: str | None = "torch.float32"

    def text(self) -> str:
        keys = [
            ("trace_src_func", self.source), ("duration", self.duration), ("timestamp", self.timestamp),
            ("input__shape", self.shape), ("input__dtype", self.dtype),
        ]  # fmt: skip
        # 418 of 8403 real ones have no name; the key is left out then.
        keys += [("func_name", self.name)] if self.name is not None else []
        keys += [("group", self.group), ("comm_func", self.collective)]
        return ",".join(f"{key}={value}" for key, value in keys)


@dataclass(frozen=True)
class Op:
    """An operation; times in ms as text, None for `None`."""

    name: str = "forward_step"
    timestamp: str | None = "101.0"
    duration: str | None = "1.0"
    batch: int | None = 0
    state: str | None = "steady"
    group: str | None = None
    stage: int | None = 0
    description: str | None = None
    shape: str | None = None
    dtype: str | None = None
    subs: tuple[Sub, ...] = ()

    def line(self, rank: int = 0) -> str:
        """As the first two versions of the tracer write it."""
        keys = [
            ("stage_id", self.stage), ("batch_id", self.batch), ("mg_state", self.state),
            ("duration", self.duration), ("description", self.description), ("group_kind", self.group),
            ("input__shape", self.shape), ("input__dtype", self.dtype), ("timestamp", self.timestamp),
            ("sub_operations", [sub.text() for sub in self.subs]),
        ]  # fmt: skip
        return f"rank:{rank}:{self.name}({','.join(f'{key}={value}' for key, value in keys)})"

    def other_line(self, rank: int = 0) -> str:
        """As the other writer does: `stage` for the state, another order of the keys."""
        keys = [
            ("batch_id", self.batch), ("stage", self.state), ("timestamp", self.timestamp),
            ("duration", self.duration), ("stage_id", self.stage), ("group_kind", self.group),
            ("input__dtype", self.dtype), ("input__shape", self.shape), ("description", self.description),
            ("sub_operations", [sub.text() for sub in self.subs]),
        ]  # fmt: skip
        return f"rank:{rank}:{self.name}({','.join(f'{key}={value}' for key, value in keys)})"


def step(rank: int, first_ms: float = 1000.0, stage: int = 0) -> str:
    """A rank's step: forward, send, backward, optimizer, 10 ms in all, with gaps of 0.5 ms."""
    ops = [
        Op("forward_step", f"{first_ms + 2:.2f}", "2.00", state="warmup", stage=stage,
           subs=(Sub(f"{first_ms + 1.5:.2f}", "0.50"),)),
        Op("send_forward", f"{first_ms + 3:.2f}", "0.50", state="warmup", group="pp", stage=stage),
        Op("backward_step", f"{first_ms + 7.5:.2f}", "4.00", state="cooldown", stage=stage),
        Op("optimizer_step", f"{first_ms + 10:.2f}", "2.00", state="finalize", stage=stage),
    ]  # fmt: skip
    return "".join(op.line(rank) + "\n" for op in ops)


def later(text: str, ms: float) -> str:
    """The same on a clock that is `ms` ahead."""
    return re.sub(
        r"timestamp=([0-9.]+)", lambda found: f"timestamp={Decimal(found[1]) + Decimal(str(ms))}", text
    )


def read(text: str | bytes, path: str = "trace.txt") -> MeasuredRun:
    return read_run(path, text if isinstance(text, bytes) else text.encode())


# What is said of every set of rank traces.
_OF_ALL = ("layout-assumed", "dp-of-one", "step-assumed")


def _without_words(notes: Iterable[Diagnostic]) -> Iterator[tuple[str, str]]:
    """The place of each diagnostic, without those of every set, and its weight, code, figures and names."""
    for note in notes:
        if note.code not in _OF_ALL:
            yield note.location_text(), f"{note.severity} {note.code}: {', '.join(named(note.message))}"


def told(text: str | bytes) -> list[str]:
    """The diagnostics of a text with their places, without what is said of every one and without words."""
    return [f"{place}: {rest}" for place, rest in _without_words(read(text).diagnostics)]


def noted(run: MeasuredRun) -> list[str]:
    """The codes of what is said of a run beside where its degrees come from."""
    return [note.code for note in run.diagnostics if note.code not in _OF_ALL]


def said(run: MeasuredRun) -> list[str]:
    """The diagnostics of a run, without their places, without what is said of every one and without words."""
    return [rest for _, rest in _without_words(run.diagnostics)]


def refused(text: str | bytes) -> InputError:
    """The error that reading ends with."""
    with pytest.raises(InputError) as caught:
        read(text)
    return caught.value


def write_set(
    folder: Path,
    ranks: dict[int, str],
    *,
    world: int = 4,
    tp: int = 1,
    pp: int = 2,
    stamp: str = STAMP,
    stamps: dict[int, str] | None = None,
) -> None:
    """A file for each rank, named as Megatron's tracer names them."""
    for rank, text in ranks.items():
        own = (stamps or {}).get(rank, stamp)
        name = f"wd{world}_tp{tp}_pp{pp}_numl4_bs1_GPT2BPETokenizer_rank{rank}_{own}.txt"
        (folder / name).write_text(text)

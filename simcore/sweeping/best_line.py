"""The last line of a file of results whose sweep has ended: how far its best points stay the best."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from simcore.diagnostics import UsageError, printable
from simcore.records import NamedTuple
from simcore.sweeping.outcome import Robustness, Spread

if TYPE_CHECKING:
    from simcore.sweeping.outcome import Outcome

SCHEMA = "wltui.sweep-best/1"
_HEAD = f'{{"schema":"{SCHEMA}"'.encode()
# More is no run of a sweep's best points, and no median of published steps.
_MOST_RUNS, _MOST_STEPS, _MOST_OFF, _MOST_WORDS = 1000, 1_000_000, 100.0, 300


class _Line(msgspec.Struct):
    schema: str
    sweep: str
    best_in: dict[int, int] | None
    runs: int
    conditions: str
    off: float | None
    steps: int


class BestLine(NamedTuple):
    """What the line states."""

    sweep: str
    """The hash of the sweep."""
    robustness: Robustness | None
    spread: Spread | None


_DECODER = msgspec.json.Decoder(_Line)


def is_best_line(line: bytes) -> bool:
    """Returns whether a line of results is no point, but this one."""
    return line.startswith(_HEAD)


def encode_best(sweep: str, outcome: Outcome) -> bytes:
    """Returns the line of an outcome, with its end; empty where nothing is known."""
    robustness, spread = outcome.robustness, outcome.spread
    if robustness is None and spread is None:
        return b""
    wins, runs, words = robustness or (None, 0, "")
    share, steps = spread or (None, 0)
    return msgspec.json.encode(_Line(SCHEMA, sweep, wins, runs, words, share, steps)) + b"\n"


def decode_best(line: bytes) -> BestLine:
    """Returns what a line states. Raises `UsageError` for what no sweep writes."""
    try:
        table = _DECODER.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UsageError(f"expected {SCHEMA}: {printable(str(error), 120)}") from None
    robustness = spread = None
    if table.best_in is not None:
        wins = table.best_in.values()
        if not 1 <= table.runs <= _MOST_RUNS or min(wins, default=0) < 0 or sum(wins) > table.runs:
            raise UsageError(f"best_in: expected how often each point is the best of 1 to {_MOST_RUNS} runs")
        robustness = Robustness(table.best_in, table.runs, printable(table.conditions, _MOST_WORDS))
    if table.off is not None:
        if not 0 <= table.off <= _MOST_OFF or not 1 <= table.steps <= _MOST_STEPS:
            raise UsageError("off: expected the median error of published steps, and their number")
        spread = Spread(table.off, table.steps)
    return BestLine(table.sweep, robustness, spread)

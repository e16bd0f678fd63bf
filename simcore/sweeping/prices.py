"""Prices of GPUs for an hour, by their names: a TOML file like

h100 = 2.5
b200 = 4.9
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from simcore.diagnostics import UsageError, printable
from simcore.model.toml_text import TomlProblem, locate_key, parse_toml, read_text
from simcore.records import replace
from simcore.sweeping.point import Point

# $ are per GPU and hour.
_HOUR_NS = 3_600_000_000_000
_MOST = 1e9


def read_prices(path: str, gpus: Iterable[str]) -> dict[str, float]:
    """Returns the prices of a file. gpus: those that need one.

    Raises `UsageError` with the position of what is no price, and for a GPU without one.
    """
    prefix = f"--prices {printable(path, 60)}"
    try:
        text = read_text(path, "prices of GPUs, like h100 = 2.5")
        table = parse_toml(text, "prices of GPUs, like h100 = 2.5")
    except FileNotFoundError:
        raise UsageError(f"{prefix}: there is no such file") from None
    except TomlProblem as problem:
        raise UsageError(f"{prefix}{_position_text(problem.location)}: {problem.message}") from None
    for name, price in table.items():
        if isinstance(price, bool) or not isinstance(price, int | float) or not 0 < price <= _MOST:
            raise UsageError(
                f"{prefix}{_position_text(locate_key(text, name))}: {printable(name, 40)}: found "
                f"{printable(str(price), 40)}, expected $ of a GPU for an hour, like 2.5"
            )
    missing = [gpu for gpu in gpus if gpu not in table]
    if missing:
        names = ", ".join(printable(gpu, 40) for gpu in missing)
        raise UsageError(f"{prefix}: found no price of {names}, expected one, like {missing[0]} = 2.5")
    return {name: float(price) for name, price in table.items() if name in {*gpus}}


def with_cost(point: Point, prices: Mapping[str, float]) -> Point:
    """Returns a point with the $ of its step, where its GPU has a price."""
    price = prices.get(str(point.layout.get("gpu")))
    if price is None or point.step_time_ns is None or point.gpus is None:
        return point
    return replace(point, cost=price * point.gpus * point.step_time_ns / _HOUR_NS)


def _position_text(location: tuple[int, int] | None) -> str:
    return f":{location[0]}:{location[1]}" if location else ""

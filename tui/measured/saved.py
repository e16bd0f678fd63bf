"""A replay in a session file: its scales, each factor checked when it is read."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Set
from typing import Any, TypeVar

from simcore.measured import MeasuredRun
from simcore.overrides import MOST_FACTOR
from simcore.replay.scales import Scales
from tui.state.checking import MOST_RANKS, Damaged, items, optional, table, text, whole, wrong

_PARTS = ("compute", "comm", "gaps", "host")
_Key = TypeVar("_Key", bound=Hashable)


def as_json(scales: Scales) -> dict[str, Any]:
    """Parts by name, the others as pairs: a rank is a number, which no name of JSON is."""
    found: dict[str, Any] = {name: getattr(scales, name) for name in _PARTS}
    for name in ("ops", "kinds", "ranks", "stages"):
        found[name] = [[key, factor] for key, factor in getattr(scales, name).items()]
    return found


def read(value: object, where: str) -> Scales:
    """The scales. Raises `Damaged`."""
    found = table(value, where)
    parts = {name: _factor(found.get(name), f"{where}.{name}") for name in _PARTS}
    return Scales(
        **parts,
        ops=_factors(found.get("ops"), f"{where}.ops", text),
        kinds=_factors(found.get("kinds"), f"{where}.kinds", text),
        ranks=_factors(found.get("ranks"), f"{where}.ranks", _number),
        stages=_factors(
            found.get("stages"), f"{where}.stages", lambda one, place: optional(one, place, _number)
        ),
    )


def check(scales: Scales, run: MeasuredRun, where: str) -> None:
    """Raises `Damaged` for a rank, a stage or an operation that the run has not."""
    _check(scales.ops, run.op_names, f"{where}.ops")
    _check(scales.ranks, {rank.number for rank in run.ranks}, f"{where}.ranks")
    _check(scales.stages, {rank.stage for rank in run.ranks}, f"{where}.stages")


def _check(keys: Mapping[Any, float], there: Set[Any], where: str) -> None:
    for place, key in enumerate(keys):
        if key not in there:
            raise wrong(key, f"{where}[{place}]", "what this run has")


def _factors(value: object, where: str, key: Callable[[object, str], _Key]) -> dict[_Key, float]:
    def pair(one: object, place: str) -> tuple[_Key, float]:
        if not isinstance(one, list) or len(one) != 2:
            raise wrong(one, place, "a pair")
        return key(one[0], place), _factor(one[1], place)

    return dict(items(value, where, pair))


def _factor(value: object, where: str) -> float:
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        raise wrong(value, where, "a factor")
    factor = float(value)
    if not 0 <= factor <= MOST_FACTOR:
        raise Damaged(f"{where}: found {factor:g}, expected a factor from 0 to 1e6")
    return factor


def _number(value: object, where: str) -> int:
    return whole(value, where, 0, MOST_RANKS)

"""Replays as session files had them up to wltui 0.1: scales by name, which are parameters since."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TypeVar

from simcore.overrides import MOST_FACTOR
from simcore.parameters import Parameters
from tui.state.checking import MOST_RANKS, Damaged, items, optional, table, text, whole, wrong

_PARTS = ("compute", "comm", "gaps", "host")
_Key = TypeVar("_Key", bound=Hashable)


def read_replay(value: object, where: str) -> tuple[bool, Parameters, str]:
    """(whether it was on the screen, its parameters, what of it is lost in words). Raises `Damaged`."""
    from simcore.replay.parameters import Scales, parameters_of

    found = table(value, where)
    shown = found.get("shown")
    if not isinstance(shown, bool):
        raise wrong(shown, f"{where}.shown", "true or false")
    where = f"{where}.scales"
    found = table(found.get("scales"), where)
    parts = {name: _factor(found.get(name), f"{where}.{name}") for name in _PARTS}
    ranks = _factors(found.get("ranks"), f"{where}.ranks", _number)
    # A rank without any compute could be asked for then; its flag takes what is above 0.
    free = [rank for rank, factor in ranks.items() if factor == 0]
    lost = f"not kept of the replay: rank {free[0]} x0" if free else ""
    lost += f" and {len(free) - 1} more" if len(free) > 1 else ""
    scales = Scales(
        parts["compute"],
        parts["comm"],
        parts["gaps"],
        parts["host"],
        ops=_factors(found.get("ops"), f"{where}.ops", text),
        kinds=_factors(found.get("kinds"), f"{where}.kinds", text),
        ranks={rank: factor for rank, factor in ranks.items() if factor > 0},
        stages=_factors(
            found.get("stages"), f"{where}.stages", lambda one, place: optional(one, place, _number)
        ),
    )
    return shown, parameters_of(scales), lost


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

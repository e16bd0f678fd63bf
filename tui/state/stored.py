"""What a session file holds: JSON of the format `wltui.session/1`, checked value by value when it is read."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

from simcore.asked.values import Unfit, plain_value
from simcore.parameters import FLAGS, Flag, Parameters
from simcore.program.overrides import MOST_FACTOR
from simcore.records import NamedTuple
from simcore.trace.contexts import Work
from tui.screens import SCREENS
from tui.state.checking import (
    MOST_RANKS,
    Damaged,
    items,
    optional,
    parsed,
    table,
    text,
    whole,
    wrong,
)
from tui.state.files import Identity
from tui.sweep.saved import SavedSweep
from tui.timeline.saved import SavedTimeline

if TYPE_CHECKING:
    from tui.frame_view import ScreenState

FORMAT = "wltui.session/1"
# Of the runs that were kept, the newest so many are kept in the file.
MOST_RUNS = 200
MOST_NAME = 60
_MOST_VALUES = 1000


# The screens that have a part, with its reader. Raises `Damaged`.
READERS: dict[str, Callable[[object, str], ScreenState]] = {
    "timeline": SavedTimeline.read,
    "sweep": SavedSweep.read,
}


class StoredRun(NamedTuple):
    """A run that was kept. name: the user's, "" for none. step_ns: its step time, None if it was not run.
    label: which run of its directory, None for the one that the session is of. work: how much a replica does
    in the step, None where that is not known.
    """

    parameters: Parameters
    name: str = ""
    step_ns: int | None = None
    label: str | None = None
    work: Work | None = None


class Stored(NamedTuple):
    """A session. version: of the program that wrote it. screen: the open one. parameters: of the run on
    the screen, None of the one as opened. screens: the parts of those that have one. label: which run of its
    directory was on the screen, None for the one that the session is of. lost: what of a file of an earlier
    version is not there any more, in words; no part of the file.
    """

    input: Identity
    version: str
    screen: str
    parameters: Parameters | None = None
    runs: tuple[StoredRun, ...] = ()
    screens: Mapping[str, ScreenState] = MappingProxyType({})
    label: str | None = None
    lost: str = ""


def as_text(stored: Stored) -> str:
    """The file's text."""
    import json

    values: dict[str, Any] = {
        "format": FORMAT,
        "version": stored.version,
        "input": stored.input.as_json(),
        "screen": stored.screen,
        "parameters": None if stored.parameters is None else stored.parameters.stated_values(),
        "runs": [
            {"name": run.name, "parameters": run.parameters.stated_values(), "step_ns": run.step_ns}
            | ({} if run.label is None else {"label": run.label})
            | ({} if run.work is None else {"work": [run.work.replicas, *run.work.counts]})
            for run in stored.runs
        ],
        "screens": {name: state.as_json() for name, state in stored.screens.items()},
    }
    if stored.label is not None:
        values["label"] = stored.label
    return json.dumps(values, separators=(",", ":")) + "\n"


def from_text(given: str) -> Stored:
    """The session of a file. Raises `Damaged` that says where, what was found and what was expected."""
    entries = table(parsed(given), "the file")
    if entries.get("format") != FORMAT:
        raise wrong(entries.get("format"), "format", f'"{FORMAT}"')
    screen = text(entries.get("screen"), "screen")
    if screen not in SCREENS:
        raise wrong(screen, "screen", f"one of {', '.join(SCREENS)}")
    screens = table(entries.get("screens"), "screens")
    values = optional(entries.get("parameters"), "parameters", _values)
    parameters = None if values is None else Parameters(**values)
    runs = items(entries.get("runs"), "runs", _run, MOST_RUNS)
    lost = ""
    if entries.get("replay") is not None:
        shown, replay, lost = read_replay(entries["replay"], "replay")
        parameters, runs = (replay.parameters, runs) if shown else (parameters, (*runs, replay))
    return Stored(
        Identity.read(entries.get("input"), "input"),
        text(entries.get("version"), "version", 60),
        screen,
        parameters,
        runs,
        {
            name: read(screens[name], f"screens.{name}")
            for name, read in READERS.items()
            if screens.get(name) is not None
        },
        optional(entries.get("label"), "label", text),
        lost,
    )


def _run(value: object, where: str) -> StoredRun:
    entries = table(value, where)
    return StoredRun(
        Parameters(**_values(entries.get("parameters"), f"{where}.parameters")),
        text(entries.get("name"), f"{where}.name", MOST_NAME),
        optional(entries.get("step_ns"), f"{where}.step_ns", whole),
        optional(entries.get("label"), f"{where}.label", text),
        optional(entries.get("work"), f"{where}.work", _work),
    )


def _work(value: object, where: str) -> Work:
    numbers = items(value, where, whole)
    if len(numbers) < 2:
        raise wrong(value, where, "replicas, then how often each has its micro-batches")
    return Work(numbers[1:], numbers[0])


def _values(value: object, where: str) -> dict[str, Any]:
    """By field, the parameters that are stated."""
    entries = table(value, where)
    known = {flag.field: flag for flag in FLAGS}
    values = {}
    for name, entry in entries.items():
        if name not in known:
            raise wrong(name, where, "the name of a parameter")
        values[name] = _value(known[name], entry, f"{where}.{name}")
    return values


def _value(flag: Flag, value: object, where: str) -> Any:
    """A value of a parameter, as the command line would take it."""
    if flag.kind == "words":
        value = items(value, where, text, _MOST_VALUES)
    elif flag.kind in ("word", "text"):
        value = text(value, where)
    try:
        return plain_value(flag, value)
    except Unfit as unfit:
        item_where = where if unfit.item is None else f"{where}[{unfit.item}]"
        if unfit.said:
            raise Damaged(f"{item_where}: {unfit.said}") from None
        raise wrong(unfit.found, item_where, unfit.expected) from None


_PARTS = ("compute", "comm", "gaps", "host")
_Key = TypeVar("_Key", bound=Hashable)


def read_replay(value: object, where: str) -> tuple[bool, StoredRun, str]:
    """(whether it was on the screen, the run, what of it is lost in words). Raises `Damaged`."""
    from simcore.replay.parameters import Scales, parameters_of

    entries = table(value, where)
    shown = entries.get("shown")
    if not isinstance(shown, bool):
        raise wrong(shown, f"{where}.shown", "true or false")
    where = f"{where}.scales"
    entries = table(entries.get("scales"), where)
    parts = {name: _factor(entries.get(name), f"{where}.{name}") for name in _PARTS}
    ranks = _factors(entries.get("ranks"), f"{where}.ranks", _number)
    # A rank without any compute could be asked for then; its flag takes what is above 0.
    free = [rank for rank, factor in ranks.items() if factor == 0]
    lost = f"not kept of the replay: rank {free[0]} x0" if free else ""
    lost += f" and {len(free) - 1} more" if len(free) > 1 else ""
    scales = Scales(
        parts["compute"],
        parts["comm"],
        parts["gaps"],
        parts["host"],
        ops=_factors(entries.get("ops"), f"{where}.ops", text),
        kinds=_factors(entries.get("kinds"), f"{where}.kinds", text),
        ranks={rank: factor for rank, factor in ranks.items() if factor > 0},
        stages=_factors(
            entries.get("stages"), f"{where}.stages", lambda stage, place: optional(stage, place, _number)
        ),
    )
    return shown, StoredRun(parameters_of(scales)), lost


def _factors(value: object, where: str, key: Callable[[object, str], _Key]) -> dict[_Key, float]:
    def pair(item: object, item_where: str) -> tuple[_Key, float]:
        if not isinstance(item, list) or len(item) != 2:
            raise wrong(item, item_where, "a pair")
        return key(item[0], item_where), _factor(item[1], item_where)

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

"""What a session file holds: JSON of the format `wltui.session/1`, checked value by value when it is read."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

from simcore.parameter_values.values import InvalidValue, plain_value
from simcore.parameters import FLAGS, Flag, Parameters
from simcore.program.overrides import MOST_FACTOR
from simcore.records import NamedTuple
from simcore.trace.contexts import StepWork
from tui.screens import SCREENS
from tui.state.checking import (
    MOST_RANKS,
    InvalidSession,
    check_items,
    check_optional,
    check_table,
    check_text,
    check_whole,
    invalid_value,
    parse_json,
)
from tui.state.files import Identity
from tui.steps.saved import SavedSteps
from tui.sweep.saved import SavedSweep
from tui.timeline.saved import SavedTimeline

if TYPE_CHECKING:
    from tui.frame_view import ScreenState

FORMAT = "wltui.session/1"
# The file keeps this many of the runs that were kept, the newest.
MOST_RUNS = 200
MOST_NAME = 60
_MOST_VALUES = 1000


# The screens that have a part, with its reader. Raises `InvalidSession`.
READERS: dict[str, Callable[[object, str], ScreenState]] = {
    "timeline": SavedTimeline.read,
    "sweep": SavedSweep.read,
    "steps": SavedSteps.read,
}


class StoredRun(NamedTuple):
    """A run that was kept."""

    parameters: Parameters
    name: str = ""
    """The user's name for it, "" for none."""
    step_ns: int | None = None
    """Its step time, None if it was not run."""
    label: str | None = None
    """Which run of its directory, None for the one that the session is of."""
    work: StepWork | None = None
    """How much a replica does in the step, None where that is not known."""


class Stored(NamedTuple):
    """A session."""

    input: Identity
    version: str
    """The version of the program that wrote it."""
    screen: str
    """The open screen."""
    parameters: Parameters | None = None
    """Those of the run on the screen, None of the one as opened."""
    runs: tuple[StoredRun, ...] = ()
    screens: Mapping[str, ScreenState] = MappingProxyType({})
    """The parts of the screens that have one."""
    label: str | None = None
    """Which run of its directory was on the screen, None for the one that the session is of."""
    lost: str = ""
    """What of a file of an earlier version could not be read, in words; no part of the file."""


def format_session(stored: Stored) -> str:
    """Returns the file's text."""
    import json

    values: dict[str, Any] = {
        "format": FORMAT,
        "version": stored.version,
        "input": stored.input.as_json(),
        "screen": stored.screen,
        "parameters": None if stored.parameters is None else stored.parameters.explicit_values(),
        "runs": [
            {"name": run.name, "parameters": run.parameters.explicit_values(), "step_ns": run.step_ns}
            | ({} if run.label is None else {"label": run.label})
            | ({} if run.work is None else {"work": [run.work.replicas, *run.work.counts]})
            | ({"tokens": run.work.tokens} if run.work is not None and run.work.tokens else {})
            for run in stored.runs
        ],
        "screens": {name: state.as_json() for name, state in stored.screens.items()},
    }
    if stored.label is not None:
        values["label"] = stored.label
    return json.dumps(values, separators=(",", ":")) + "\n"


def parse_session(session_text: str) -> Stored:
    """Returns the session of a file. Raises `InvalidSession` that says where, what was found and what was
    expected.
    """
    entries = check_table(parse_json(session_text), "the file")
    if entries.get("format") != FORMAT:
        raise invalid_value(entries.get("format"), "format", f'"{FORMAT}"')
    screen = check_text(entries.get("screen"), "screen")
    if screen not in SCREENS:
        raise invalid_value(screen, "screen", f"one of {', '.join(SCREENS)}")
    screens = check_table(entries.get("screens"), "screens")
    values = check_optional(entries.get("parameters"), "parameters", _check_parameters)
    parameters = None if values is None else Parameters(**values)
    runs = check_items(entries.get("runs"), "runs", _check_run, MOST_RUNS)
    lost = ""
    if entries.get("replay") is not None:
        was_displayed, replay, lost = read_replay(entries["replay"], "replay")
        parameters, runs = (replay.parameters, runs) if was_displayed else (parameters, (*runs, replay))
    return Stored(
        Identity.read(entries.get("input"), "input"),
        check_text(entries.get("version"), "version", 60),
        screen,
        parameters,
        runs,
        {
            name: read(screens[name], f"screens.{name}")
            for name, read in READERS.items()
            if screens.get(name) is not None
        },
        check_optional(entries.get("label"), "label", check_text),
        lost,
    )


def _check_run(value: object, where: str) -> StoredRun:
    entries = check_table(value, where)
    return StoredRun(
        Parameters(**_check_parameters(entries.get("parameters"), f"{where}.parameters")),
        check_text(entries.get("name"), f"{where}.name", MOST_NAME),
        check_optional(entries.get("step_ns"), f"{where}.step_ns", check_whole),
        check_optional(entries.get("label"), f"{where}.label", check_text),
        _check_work(entries, where),
    )


def _check_work(entries: Mapping[str, Any], where: str) -> StepWork | None:
    value, where_counts = entries.get("work"), f"{where}.work"
    if value is None:
        return None
    counts = check_items(value, where_counts, check_whole)
    if len(counts) < 2:
        raise invalid_value(value, where_counts, "replicas, then how often each has its micro-batches")
    tokens = check_optional(entries.get("tokens"), f"{where}.tokens", check_whole)
    return StepWork(counts[1:], counts[0], tokens or 0)


def _check_parameters(value: object, where: str) -> dict[str, Any]:
    """Returns the parameters that are stated, by field."""
    entries = check_table(value, where)
    flag_by_field = {flag.field: flag for flag in FLAGS}
    values = {}
    for name, entry in entries.items():
        if name not in flag_by_field:
            raise invalid_value(name, where, "the name of a parameter")
        values[name] = _check_parameter(flag_by_field[name], entry, f"{where}.{name}")
    return values


def _check_parameter(flag: Flag, value: object, where: str) -> Any:
    """Returns a value of a parameter, as the command line would take it."""
    if flag.kind == "words":
        value = check_items(value, where, check_text, _MOST_VALUES)
    elif flag.kind in ("word", "text"):
        value = check_text(value, where)
    try:
        return plain_value(flag, value)
    except InvalidValue as unfit:
        item_where = where if unfit.item is None else f"{where}[{unfit.item}]"
        if unfit.message:
            raise InvalidSession(f"{item_where}: {unfit.message}") from None
        raise invalid_value(unfit.value, item_where, unfit.expected) from None


_PARTS = ("compute", "comm", "gaps", "host")
_Key = TypeVar("_Key", bound=Hashable)


def read_replay(value: object, where: str) -> tuple[bool, StoredRun, str]:
    """Returns (whether it was on the screen, the run, what of it is lost in words). Raises
    `InvalidSession`.
    """
    from simcore.replay.parameters import Scales, parameters_of

    entries = check_table(value, where)
    was_displayed = entries.get("shown")
    if not isinstance(was_displayed, bool):
        raise invalid_value(was_displayed, f"{where}.shown", "true or false")
    where = f"{where}.scales"
    entries = check_table(entries.get("scales"), where)
    parts = {name: _check_factor(entries.get(name), f"{where}.{name}") for name in _PARTS}
    ranks = _check_factors(entries.get("ranks"), f"{where}.ranks", _check_rank)
    # Earlier versions took a rank without any compute; the flag takes only what is above 0.
    free = [rank for rank, factor in ranks.items() if factor == 0]
    lost = f"not kept of the replay: rank {free[0]} x0" if free else ""
    lost += f" and {len(free) - 1} more" if len(free) > 1 else ""
    scales = Scales(
        parts["compute"],
        parts["comm"],
        parts["gaps"],
        parts["host"],
        ops=_check_factors(entries.get("ops"), f"{where}.ops", check_text),
        kinds=_check_factors(entries.get("kinds"), f"{where}.kinds", check_text),
        ranks={rank: factor for rank, factor in ranks.items() if factor > 0},
        stages=_check_factors(
            entries.get("stages"),
            f"{where}.stages",
            lambda stage, location: check_optional(stage, location, _check_rank),
        ),
    )
    return was_displayed, StoredRun(parameters_of(scales)), lost


def _check_factors(value: object, where: str, key: Callable[[object, str], _Key]) -> dict[_Key, float]:
    def pair(item: object, item_where: str) -> tuple[_Key, float]:
        if not isinstance(item, list) or len(item) != 2:
            raise invalid_value(item, item_where, "a pair")
        return key(item[0], item_where), _check_factor(item[1], item_where)

    return dict(check_items(value, where, pair))


def _check_factor(value: object, where: str) -> float:
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        raise invalid_value(value, where, "a factor")
    factor = float(value)
    if not 0 <= factor <= MOST_FACTOR:
        raise InvalidSession(f"{where}: found {factor:g}, expected a factor from 0 to 1e6")
    return factor


def _check_rank(value: object, where: str) -> int:
    return check_whole(value, where, 0, MOST_RANKS)

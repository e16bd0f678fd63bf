"""The points of a sweep: fixed parameters, parameters that vary with their values, and conditions.

`--vary tp=1,2,4,8`, `--vary microbatches=8..64*2` (times 2 up to 64), `compute-scale=0.8..1.2+0.1`, `8..12`
(each whole number), `virtual-stages=none,2,4`; values that contain commas are separated by `;`.
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Iterator, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any

from simcore.diagnostics import UsageError, did_you_mean, printable
from simcore.parameter_values.choices import choices, is_one_of, may_be_file
from simcore.parameter_values.values import check_item
from simcore.parameters import FLAGS, Flag, Parameters, flag_of, least_count, parse_value
from simcore.records import Struct, replace
from simcore.shell_words import join_words
from simcore.sweeping.where import Condition

# The number of replicas: no parameter, as world = tp x cp x pp x dp.
DP = "dp"
_FIELDS = {flag.field: flag for flag in FLAGS}
# More is a typing error: their lines would be gigabytes.
MOST_POINTS = 2_000_000
_MOST_VALUES = 10_000
# The parameters that decide the ops of a run and their order; the others decide their durations.
_ORDERING = {
    "tp", "pp", "cp", "ep", "world", "dp", "microbatch_size", "microbatches", "global_batch", "schedule",
    "virtual_stages", "stage_layers", "pipeline_layout", "account_for_embedding", "account_for_loss",
    "steps", "layers", "sequence_parallel",
}  # fmt: skip
# The overlaps, and what runs beside compute with each.
OVERLAPS = {"overlap_grad_reduce": "grads", "overlap_param_gather": "weights", "overlap_tp": "tp"}
# The word for a parameter that is not set.
_NONE = "none"
# What --where and --by know besides the parameters (`simcore.sweeping.evaluating` gives the values).
DERIVED = (DP, "gpus")
VALUE_NAMES = (*_FIELDS, *DERIVED)


class SweptParameter(Struct, frozen=True):
    """A parameter that varies. field: of `Parameters`, or `dp`."""

    field: str
    values: tuple[Any, ...]


class Candidate(Struct, frozen=True):
    """A point before it is checked. index: its index in the space."""

    index: int
    parameters: Parameters
    refusal: str = ""
    """Why the trainer does not run it; "" where it does, or where that is not asked."""

    def command(self, opened: Sequence[str]) -> str:
        """Returns the command line that runs it. opened: the words that open its input."""
        return join_words(["wltui", "report", *opened, *self.parameters.as_flags()])


class Space(Struct, frozen=True):
    """All points: every combination of the axes' values, the last axis fastest.

    Raises `UsageError` for what is set twice, and for too many points.
    """

    base_parameters: Parameters
    """The fixed parameters."""
    axes: tuple[SweptParameter, ...] = ()
    """The parameters that vary."""
    where: tuple[Condition, ...] = ()
    """Conditions on the points."""
    layouts: bool = False
    """Whether each combination stands for all layouts of its model (`simcore.sweeping.layouts`)."""

    def __post_init__(self) -> None:
        varied_fields: set[str] = set()
        for axis in self.axes:
            if axis.field in varied_fields:
                raise UsageError(f"--vary {axis.field}: given twice, name all its values in one")
            varied_fields.add(axis.field)
            if axis.field != DP and getattr(self.base_parameters, axis.field) != flag_of(axis.field).default:
                option = flag_of(axis.field).option
                raise UsageError(f"--vary {axis.field}: {option} has a value of its own, give one of the two")
        if DP in varied_fields and ("world" in varied_fields or self.base_parameters.world is not None):
            raise UsageError("--vary dp: world = tp x cp x pp x dp, so --world beside it cannot be; give one")
        if len(self) > MOST_POINTS:
            raise UsageError(f"--vary: {len(self)} points, at most {MOST_POINTS} are taken")

    def __len__(self) -> int:
        """Returns the number of combinations of the axes, the layouts of each not counted."""
        return math.prod(len(axis.values) for axis in self.axes)

    @property
    def varied(self) -> tuple[str, ...]:
        """The names of the parameters that vary."""
        return tuple(axis.field for axis in self.axes)

    def combinations(self) -> Iterator[Candidate]:
        """Yields each combination of the axes, in the order of their indices."""
        for index, values in enumerate(itertools.product(*(axis.values for axis in self.axes))):
            yield self._build_candidate(index, dict(zip(self.varied, values, strict=True)))

    def grouped(self) -> Iterator[Candidate]:
        """Yields the same, those consecutive that differ in prices alone.

        What these share is built once (`simcore.sweeping.step_time`).
        """
        axes = sorted(enumerate(self.axes), key=lambda numbered_axis: numbered_axis[1].field not in _ORDERING)
        strides = [
            math.prod(len(axis.values) for axis in self.axes[axis_index + 1 :]) for axis_index, _ in axes
        ]
        for value_indices in itertools.product(*(range(len(axis.values)) for _, axis in axes)):
            axis_values = {
                axis.field: axis.values[index] for (_, axis), index in zip(axes, value_indices, strict=True)
            }
            index = sum(map(operator.mul, strides, value_indices))
            yield self._build_candidate(index, axis_values)

    def _build_candidate(self, index: int, axis_values: dict[str, Any]) -> Candidate:
        dp = axis_values.pop(DP, None)
        parameters = replace(self.base_parameters, **axis_values)
        if dp is not None:
            ranks = (parameters.tp or 1) * (parameters.pp or 1) * (parameters.cp or 1)
            parameters = replace(parameters, world=ranks * dp)
        return Candidate(index, parameters)


def parse_conditions(texts: Sequence[str]) -> tuple[Condition, ...]:
    """Returns the conditions of `--where`. Raises `UsageError`."""
    return tuple(Condition(text, VALUE_NAMES) for text in texts)


def parse_axis(text: str) -> SweptParameter:
    """Returns the axis of a `--vary NAME=VALUES`. Raises `UsageError` that says what was found and what would
    fit.
    """
    name, equals, values_text = text.partition("=")
    field = name.strip().removeprefix("--").replace("-", "_")
    if not equals or not values_text.strip():
        raise UsageError(
            f"--vary {printable(text, 60)}: NAME=VALUES is expected, like tp=1,2,4 or microbatches=8..64*2"
        )
    if field != DP and field not in _FIELDS:
        raise UsageError(
            f"--vary {printable(text, 60)}: no parameter "
            f"{printable(field, 40)}{did_you_mean(field, VALUE_NAMES)}"
        )
    values: list[Any] = []
    for word in values_text.split(";" if ";" in values_text else ","):
        if not word.strip():
            if ";" in values_text:
                continue
            raise UsageError(f"--vary {printable(text, 60)}: a value is missing beside a comma")
        for value in _parse_values(field, word.strip(), text):
            if value in values:
                raise UsageError(f"--vary {printable(text, 60)}: {printable(str(value), 40)} is there twice")
            values.append(value)
            if len(values) > _MOST_VALUES:
                raise UsageError(f"--vary {printable(text, 60)}: more than {_MOST_VALUES} values")
    return SweptParameter(field, tuple(values))


def _parse_values(field: str, word: str, text: str) -> Iterator[Any]:
    """Yields the values of one word of an axis: itself, or those of a range."""
    # dp is a count like any other degree.
    flag = _FIELDS["tp"] if field == DP else _FIELDS[field]
    if flag.kind in ("count", "positive", "scale") and ".." in word:
        for figure in _expand_range(flag, word, text):
            yield _parse_value(flag, field, figure, text)
        return
    yield _parse_value(flag, field, word, text)


def _parse_value(flag: Flag, field: str, word: str, text: str) -> Any:
    prefix = f"--vary {printable(text, 60)}"
    if word == _NONE and field != DP and flag.default in (None, ()) and _NONE not in choices(field):
        return flag.default
    if flag.kind == "switch":
        if word not in ("on", "off"):
            raise UsageError(f"{prefix}: {printable(word, 40)} is neither on nor off")
        return word == "on"
    if flag.kind == "word":
        choice_names = choices(field)
        if not is_one_of(word, choice_names) and not may_be_file(field, word):
            fit = f"one of {', '.join(choice_names)} is expected"
            raise UsageError(f"{prefix}: {printable(word, 40)}: {fit}{did_you_mean(word, choice_names)}")
    try:
        value = parse_value(flag, word)
        for item in value if flag.kind == "words" else ():
            check_item(field, item)
    except UsageError as error:
        raise UsageError(f"{prefix}: {str(error).removeprefix(flag.option + ' ')}") from None
    return value


def _expand_range(flag: Flag, word: str, text: str) -> Iterator[str]:
    """Yields the figures of `A..B`, `A..B*K` and `A..B+K`, exact."""
    prefix = f"--vary {printable(text, 60)}"
    first_text, _, rest = word.partition("..")
    sign = next((character for character in "*+" if character in rest), "")
    last_text, _, step_text = rest.partition(sign) if sign else (rest, "", "1")
    try:
        first, last, step = Decimal(first_text), Decimal(last_text), Decimal(step_text)
        fits = all(figure.is_finite() for figure in (first, last, step))
    except InvalidOperation:
        fits = False
    if not fits or (not sign and flag.kind != "count"):
        fit = "FIRST..LAST, FIRST..LAST+STEP or FIRST..LAST*FACTOR" if flag.kind == "count" else (
            "FIRST..LAST+STEP or FIRST..LAST*FACTOR"
        )  # fmt: skip
        raise UsageError(f"{prefix}: {printable(word, 40)}: {fit} is expected, like 8..64*2")
    if first < 0 or last < first or step <= (1 if sign == "*" else 0) or (sign == "*" and first == 0):
        raise UsageError(
            f"{prefix}: {printable(word, 40)} never comes from {first} to {last} by "
            f"{'times ' if sign == '*' else '+'}{step}"
        )
    least = least_count(flag) if flag.kind == "count" else 0
    if first < least:
        raise UsageError(f"{prefix}: {first} is below {least}")
    count = 0
    while first <= last:
        yield format(first.normalize(), "f")
        first = first * step if sign == "*" else first + step
        count += 1
        if count > _MOST_VALUES:
            raise UsageError(f"{prefix}: more than {_MOST_VALUES} values")


def axis_of_list(fixed_text: str | None, field: str) -> SweptParameter | None:
    """Returns the axis of `--world 256,512`, `--gpu` or `--cluster` with several values; else None."""
    import os

    if fixed_text is None or "," not in fixed_text or os.path.lexists(fixed_text):
        return None
    return parse_axis(f"{field}={fixed_text}")

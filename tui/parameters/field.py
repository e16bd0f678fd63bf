"""What every field of the form is, and the steps that scrubbing takes."""

from __future__ import annotations

from dataclasses import dataclass

from simcore.cluster import PRESETS
from simcore.parameters import Parameters
from tui.parameters.basis import Basis


@dataclass(frozen=True, slots=True)
class Field:
    """A parameter in the form. label, unit, help: what is shown of it. option: its flag."""

    group: str
    label: str
    unit: str
    help: str
    option: str

    def words(self, text: str) -> str:
        """The parameter with a value, in a few words."""
        return " ".join(f"{self.label} {text} {self.unit}".split())

    @property
    def form(self) -> str:
        """How the value of a list is written, for a field that is typed alone; empty for the others."""
        return ""

    def shown(self, parameters: Parameters, basis: Basis) -> str:
        """The value as the form has it, where that is shorter than what is typed."""
        return self.text(parameters, basis)

    def is_named_by(self, words: str) -> bool:
        """Whether a refusal begins with the flag of the field."""
        return words.startswith((f"{self.option} ", f"{self.option}:"))

    def text(self, parameters: Parameters, basis: Basis) -> str:
        """The value now. basis: of the parameters, or of others that are near. Never raises."""
        raise NotImplementedError

    def scrubbed(self, parameters: Parameters, basis: Basis, direction: int, large: bool) -> Parameters:
        """The parameters with the value one step (or a factor of 2, `large`) up or down."""
        raise NotImplementedError

    def typed(self, parameters: Parameters, basis: Basis, text: str) -> Parameters:
        """The parameters with the value that was typed. Raises `UsageError`."""
        raise NotImplementedError

    def reset(self, parameters: Parameters, opened: Basis) -> Parameters:
        """The parameters with this value as it was when the file was opened."""
        raise NotImplementedError

    def origin(self, parameters: Parameters, basis: Basis) -> str:
        """Where the value comes from, in a word or three."""
        raise NotImplementedError

    def differs(self, one: Basis, other: Basis) -> bool:
        """Whether the two runs were given different values."""
        raise NotImplementedError

    def moved(self, source: Basis, target: Basis) -> Parameters:
        """The target's parameters with this value of the source's. Raises `UsageError`."""
        raise NotImplementedError


def of_cluster(parameters: Parameters) -> str:
    """Where the values of the cluster come from."""
    if parameters.cluster is None:
        return "default" if parameters.system is None else "the files"
    return "preset" if parameters.cluster in PRESETS else "the file"


def next_name(names: tuple[str, ...], name: str, direction: int) -> str:
    """The name before or after `name`; they go round."""
    # `direct4` is typed, not one of the choices: from it one goes on from the first.
    return names[((names.index(name) if name in names else 0) + direction) % len(names)]


def scrubbed_count(value: int, direction: int, large: bool, step: int, least: int) -> int:
    """A count `step` up or down, or twice or half of it, and no less than `least`."""
    if large:
        return max(value * 2 if direction > 0 else value // 2, least)
    return max(value + direction * step, least)


def scrubbed_figure(value: float, direction: int, large: bool) -> float:
    """A bandwidth or latency 10 % up or down, to three figures; `large`: twice or half."""
    if large:
        return value * 2.0**direction
    changed = float(f"{value * 1.1**direction:.3g}")
    return changed if changed != value else value + direction

"""What is asked of a training, what is assumed, and the words for what would fit."""

from __future__ import annotations

import math

from simcore.diagnostics import Diagnostic, UsageError, printable
from simcore.model.sizes import Model
from simcore.parameters import flag_of
from simcore.workload.model import ModelParameters

# Defaults, which are Megatron-LM's.
DEFAULTS = {
    "sequence_parallel": "off", "flash": "on", "recompute": "none", "zero": "0", "grad_dtype": "fp32",
    "precision": "bf16", "compile": "off", "pp_scatter": "off", "cp_comm_type": "p2p",
    "prefetch": "1", "reshard_after_forward": "on",
}  # fmt: skip
# Reasons for defaults that are no flags of Megatron's: Transformer Engine and PyTorch choose fused attention.
_WHY = {
    "flash": "as Transformer Engine and PyTorch choose it",
    "compile": "as PyTorch runs a model that is not compiled",
}
_FSDP_FIELDS = ("prefetch", "reshard_after_forward")


class TrainingRequest:
    """A model and the parameters of its training. diagnostics: what is assumed where none is stated."""

    def __init__(self, model: Model, parameters: ModelParameters) -> None:
        self.model, self.parameters = model, parameters
        self.diagnostics: list[Diagnostic] = []

    def assume(self, field: str, value: object, why: str) -> None:
        """Notes the value that is taken for a parameter, and why."""
        message = f"{field}: {value} assumed, {why} ({flag_of(field).option})"
        brief = f"{field} {value}: {why}"
        self.diagnostics.append(Diagnostic("note", "model-assumed", message, self.model.name, brief=brief))

    def choose(self, field: str) -> str:
        """Returns the word of a parameter, else its default. Raises `UsageError` for one that it does not
        have.
        """
        value = getattr(self.parameters, field)
        if value is not None:
            choices = flag_of(field).choices
            if value not in choices:
                raise UsageError(
                    f"{flag_of(field).option} {printable(str(value), 40)}: one of {', '.join(choices)} "
                    "is expected"
                )
            return str(value)
        has_context_ranks = (self.parameters.cp or 1) > 1
        if field != "pp_scatter" and (field != "cp_comm_type" or has_context_ranks):
            who = "PyTorch's FSDP" if field in _FSDP_FIELDS else "Megatron without its flag"
            self.assume(field, DEFAULTS[field], _WHY.get(field, f"as {who}"))
        return DEFAULTS[field]


def common_divisors(first: int, other: int) -> list[int]:
    """Returns the numbers that divide both, ascending."""
    both = math.gcd(first, other)
    return [divisor for divisor in range(1, both + 1) if both % divisor == 0]


def nearest_words(fitting: list[int], value: int) -> str:
    """Returns the numbers next to the requested one, in words."""
    near = sorted(sorted(fitting, key=lambda fit: abs(fit - value))[:4])
    return " or ".join([", ".join(map(str, near[:-1])), str(near[-1])]) if len(near) > 1 else str(near[0])


def near_multiples(value: int, step: int) -> str:
    """Returns the multiples of a step next to a number, in words."""
    below = value - value % step
    return f"{below} or {below + step}" if below else str(step)

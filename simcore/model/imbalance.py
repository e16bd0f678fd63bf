"""Loads of experts: drawn or read, placed on the ranks of an expert group, limited by capacity.

All layers and micro-batches, and all expert groups, have the same loads (docs/experts.md).
"""

from __future__ import annotations

import math

from simcore.diagnostics import Diagnostic, InputError, UsageError, printable
from simcore.records import Struct
from simcore.units import plain_number, plural, split_by_weight
from simcore.workload.model import ModelParameters

LOGNORMAL = "lognormal:"
# Above this one expert of 128 has nearly all tokens.
_MOST_SIGMA = 5.0
_MOST_LOAD = 1e15


class ExpertLoads(Struct, frozen=True):
    """Tokens of each expert in a micro-batch."""

    tokens: tuple[tuple[int, ...], ...]
    """Tokens of the experts of each rank of an expert group."""
    routed: int
    """Tokens that a rank sends."""
    dropped: int = 0
    """Tokens of the group that are above the capacity."""

    @property
    def of_rank(self) -> tuple[int, ...]:
        """Tokens of all experts of each rank."""
        return tuple(map(sum, self.tokens))

    @property
    def sent_tokens(self) -> int:
        """Tokens that a rank sends, and gets back, without dropped ones; the same for all ranks."""
        return self.routed - self.dropped // len(self.tokens)

    @property
    def hot(self) -> int:
        """The rank of an expert group that gets most tokens."""
        loads = self.of_rank
        return loads.index(max(loads))

    @property
    def max_over_mean(self) -> float:
        """The tokens of that rank, over the mean of all ranks."""
        loads = self.of_rank
        return max(loads) * len(loads) / max(sum(loads), 1)

    @property
    def port_tokens(self) -> tuple[int, ...]:
        """Tokens through each rank's port in the fuller direction: those that it sends, or that it gets."""
        return tuple(max(self.sent_tokens, tokens) for tokens in self.of_rank)


def expert_loads(parameters: ModelParameters, experts: int, ranks: int, routed: int) -> ExpertLoads | None:
    """Returns the loads of `--expert-imbalance`; None where all experts get the same.

    experts: of a layer. ranks: of an expert group. routed: tokens that each of them sends, counted once for
    each expert. Raises `UsageError` and `InputError` with what was found and what would fit.
    """
    text = parameters.expert_imbalance
    if text is None:
        return None
    weights = _draw_weights(text, experts, parameters.seed) if text.startswith(LOGNORMAL) else _read_weights(
        text, experts, ranks
    )  # fmt: skip
    if len(set(weights)) == 1:
        return None
    total = routed * ranks
    tokens = split_by_weight(weights, total)
    capped = tokens
    if parameters.expert_capacity is not None:
        most = math.ceil(parameters.expert_capacity * total / experts)
        capped = [min(token, most) for token in tokens]
    here = experts // ranks
    by_rank = [capped[first : first + here] for first in range(0, experts, here)]
    if parameters.expert_placement == "balanced":
        by_rank = _balance(capped, ranks)
    return ExpertLoads(tuple(map(tuple, by_rank)), routed, total - sum(capped))


def _draw_weights(text: str, experts: int, seed: int) -> list[int]:
    """Returns weights of a log-normal distribution, each hashed from seed and expert, the same on every
    machine.
    """
    # Imported here: most runs draw nothing.
    from simcore.model.hashed import OF_EXPERT, hashed_lognormal

    sigma = read_sigma("--expert-imbalance", text, _MOST_SIGMA)
    return [hashed_lognormal(sigma, 10**9, seed, OF_EXPERT, expert, 0) for expert in range(experts)]


def read_sigma(option: str, text: str, most: float) -> float:
    """Returns the deviation in `lognormal:SIGMA`, from 0 to `most`. Raises `UsageError` for another one."""
    sigma = plain_number(text[len(LOGNORMAL) :])
    if sigma is None or not 0 <= sigma <= most:
        raise UsageError(
            f"{option} {printable(text, 60)}: a deviation from 0 to {most:g} is expected, for example "
            "lognormal:0.5"
        )
    return float(sigma)


def _read_weights(path: str, experts: int, ranks: int) -> list[int]:
    """Returns the weights in a file of numbers, one for each expert or each rank of an expert group."""
    # Imported here: most runs read no weights.
    from simcore.workload.opening import read_file

    def refusal(message: str, line: int | None = None) -> InputError:
        return InputError(
            Diagnostic("error", "expert-loads", message, path, line, None if line is None else 1)
        )

    expected = f"{plural(experts, 'number')} of tokens, one an expert"
    if ranks not in (1, experts):
        expected += f", or {ranks}, one a rank of an expert group"
    loads: list[float] = []
    for line_number, line in enumerate(read_file(path).decode("utf-8-sig", "replace").splitlines(), 1):
        for word in line.partition("#")[0].replace(",", " ").split():
            value = plain_number(word)
            if value is None or not 0 <= value <= _MOST_LOAD:
                raise refusal(f"found {printable(word, 40)}, expected {expected}", line_number)
            loads.append(float(value))
            if len(loads) > experts:
                raise refusal(
                    f"found more than {plural(experts, 'number')}, expected {expected}", line_number
                )
    if len(loads) not in (experts, ranks):
        raise refusal(f"found {plural(len(loads), 'number')}, expected {expected}")
    if not any(loads):
        raise refusal(f"found only zeros, expected {expected}")
    if len(loads) < experts:
        loads = [tokens for tokens in loads for _ in range(experts // ranks)]
    # The denominators are powers of two.
    whole = max(tokens.as_integer_ratio()[1] for tokens in loads)
    return [load * (whole // part) for load, part in map(float.as_integer_ratio, loads)]


def _balance(tokens: list[int], ranks: int) -> list[list[int]]:
    """Returns as many experts on each rank, the fullest first, each on the emptiest rank that has room."""
    by_rank: list[list[int]] = [[] for _ in range(ranks)]
    room = len(tokens) // ranks
    for token in sorted(tokens, reverse=True):
        rank = min(
            (rank for rank in range(ranks) if len(by_rank[rank]) < room), key=lambda rank: sum(by_rank[rank])
        )
        by_rank[rank].append(token)
    return by_rank

"""Loads of experts: drawn or read, placed on the ranks of an expert group, limited by capacity.

All micro-batches and expert groups have the same loads, and all layers, unless a file has a line for each
(docs/experts.md).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

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
    return _loads_of(parameters, weights, ranks, routed)


def layer_loads(
    parameters: ModelParameters, experts: int, ranks: int, routed: int, has_experts: Sequence[bool]
) -> tuple[ExpertLoads | None, ...]:
    """Returns the loads of each layer of a file that has them; () of any other `--expert-imbalance`.

    has_experts: of each layer. The others, and errors, as of `expert_loads`.
    """
    text = parameters.expert_imbalance
    if text is None or text.startswith(LOGNORMAL):
        return ()
    table = _read_table(text, experts, has_experts)
    if table is None:
        return ()
    return tuple(
        _loads_of(parameters, _whole_weights(table[layer]), ranks, routed) if has else None
        for layer, has in enumerate(has_experts)
    )


def mean_loads(each: Sequence[ExpertLoads | None]) -> ExpertLoads | None:
    """Returns the mean of the layers whose loads are uneven, each expert by its place; None without any."""
    uneven = [loads for loads in each if loads is not None]
    if not uneven:
        return None
    tokens = tuple(
        tuple(sum(at) // len(uneven) for at in zip(*of_rank, strict=True))
        for of_rank in zip(*(loads.tokens for loads in uneven), strict=True)
    )
    return ExpertLoads(tokens, uneven[0].routed, sum(loads.dropped for loads in uneven) // len(uneven))


def _loads_of(parameters: ModelParameters, weights: list[int], ranks: int, routed: int) -> ExpertLoads | None:
    """Returns the loads of experts with these weights; None where all get the same."""
    if len(set(weights)) == 1:
        return None
    experts = len(weights)
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
    expected = f"{plural(experts, 'number')} of tokens, one an expert"
    if ranks not in (1, experts):
        expected += f", or {ranks}, one a rank of an expert group"
    loads: list[float] = []
    for line_number, words in _read_lines(path):
        for word in words:
            loads.append(_read_load(path, word, line_number, expected))
            if len(loads) > experts:
                raise _refusal(
                    path, f"found more than {plural(experts, 'number')}, expected {expected}", line_number
                )
    if len(loads) not in (experts, ranks):
        raise _refusal(path, f"found {plural(len(loads), 'number')}, expected {expected}")
    if not any(loads):
        raise _refusal(path, f"found only zeros, expected {expected}")
    if len(loads) < experts:
        loads = [tokens for tokens in loads for _ in range(experts // ranks)]
    return _whole_weights(loads)


def _read_table(path: str, experts: int, has_experts: Sequence[bool]) -> dict[int, list[float]] | None:
    """Returns by layer the loads of its experts; None of a file that has no line for each layer.

    A line has a number an expert, behind that of its layer where the first line is a heading that begins
    with `layer` or each line has one number more, ascending; a heading of `layer`, `expert` and a third word
    has a line an expert of a layer. Layers and experts count from 0, or from 1 where the last one says so.
    """
    lines = _read_lines(path)
    heading = lines[0][1] if lines and plain_number(lines[0][1][0]) is None else []
    rows = lines[1:] if heading else lines
    is_indexed = heading[0].lower().startswith("layer") if heading else _begin_with_layers(rows, experts + 1)
    is_long = is_indexed and len(heading) == 3 and heading[1].lower().startswith("expert")
    width = 3 if is_long else experts + is_indexed
    is_table = is_indexed or (len(rows) > 1 and all(len(words) == width for _, words in rows))
    if not is_table or (heading and not is_indexed and len(heading) != experts):
        return None
    there = [layer for layer, has in enumerate(has_experts) if has]
    expected = f"{plural(width, 'number')} a line" + (", the first that of a layer" if is_indexed else "")
    line_loads: list[tuple[int, list[float]]] = []
    for line_number, words in rows:
        if len(words) != width:
            raise _refusal(path, f"found {plural(len(words), 'number')}, expected {expected}", line_number)
        line_loads.append((line_number, [_read_load(path, word, line_number, expected) for word in words]))
    table: dict[int, list[float]] = {}
    if not is_indexed:
        counts = {len(there): "one a layer with experts", len(has_experts): "one a layer"}
        if len(line_loads) not in counts:
            expected = ", or ".join(f"{count}, {words}" for count, words in counts.items())
            raise _refusal(path, f"found {plural(len(line_loads), 'line')} of loads, expected {expected}")
        layers = there if len(line_loads) == len(there) else range(len(has_experts))
        table = {layer: loads for layer, (_, loads) in zip(layers, line_loads, strict=True)}
    first_layer, first_expert = (
        int(is_indexed and max((values[at] for _, values in line_loads), default=0) == count)
        for at, count in ((0, len(has_experts)), (1, experts))
    )
    for line_number, values in line_loads if is_indexed else ():
        layer = _read_index(path, values[0], first_layer, "layer", len(has_experts), line_number)
        if is_long:
            expert = _read_index(path, values[1], first_expert, "expert", experts, line_number)
            table.setdefault(layer, [0.0] * experts)[expert] = values[2]
        elif layer in table:
            raise _refusal(path, f"layer {layer} comes a second time", line_number)
        else:
            table[layer] = values[1:]
    for layer in there:
        if not any(table.get(layer, ())):
            raise _refusal(path, f"layer {layer}: found no tokens, expected those of {experts} experts")
    return table


def _begin_with_layers(rows: Sequence[tuple[int, list[str]]], width: int) -> bool:
    """Returns whether lines without a heading have so many numbers, the first one whole and ascending."""
    firsts = [words[0] for _, words in rows if len(words) == width]
    if len(firsts) < len(rows) or len(firsts) < 2 or not all(text.isdecimal() for text in firsts):
        return False
    return all(int(before) < int(text) for before, text in pairwise(firsts))


def _read_index(path: str, value: float, first: int, name: str, count: int, line: int) -> int:
    """Returns the index of a layer or an expert, from 0. first: what the file counts from."""
    if value != int(value) or not first <= value < first + count:
        raise _refusal(path, f"found {name} {value:g}, expected {first} to {first + count - 1}", line)
    return int(value) - first


def _read_lines(path: str) -> list[tuple[int, list[str]]]:
    """Returns (line, words) of each line of a file that has some, without comments."""
    # Imported here: most runs read no weights.
    from simcore.workload.opening import read_file

    lines = read_file(path).decode("utf-8-sig", "replace").splitlines()
    separators = str.maketrans({",": " ", ";": " ", '"': " "})
    words_by_line = [text.partition("#")[0].translate(separators).split() for text in lines]
    return [(line, words) for line, words in enumerate(words_by_line, 1) if words]


def _read_load(path: str, word: str, line: int, expected: str) -> float:
    value = plain_number(word)
    if value is None or not 0 <= value <= _MOST_LOAD:
        raise _refusal(path, f"found {printable(word, 40)}, expected {expected}", line)
    return float(value)


def _refusal(path: str, message: str, line: int | None = None) -> InputError:
    return InputError(Diagnostic("error", "expert-loads", message, path, line, None if line is None else 1))


def _whole_weights(loads: Sequence[float]) -> list[int]:
    """Returns whole numbers in the ratio of these."""
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

"""What an AICB file states, read from its rows.

Each figure is the one that most rows have (one row may be wrong). The header of rescaled rows has a word of
numbers, from which the reference is exact where rows do not show all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby

from simcore.model.aicb import NEWEST, VERSIONS, AicbConfig, AicbTimes
from simcore.model.sizes import Mla
from simcore.records import NamedTuple, Struct, replace
from simcore.workload import Workload
from simcore.workload.model import Cells

PROLOGUE = frozenset((
    "grad_gather", "grad_param_comm", "grad_param_compute", "grad_norm", "layernorm", "embedding_grads",
    "moe_grad_norm1", "moe_grad_norm2",
))  # fmt: skip
TAIL = frozenset((*(f"cross_entropy{n}" for n in (1, 2, 3)), *(f"optimizer{n}" for n in (1, 2, 3, 4))))
ATTENTION_ENDS = ("attention_row", "attention_o_row", "attention_layer", "attention_norm")
_MLP_ENDS = ("mlp_row", "mlp_layer", "mlp_norm")
_LINEARS = ("attention_column", "attention_row", "mlp_column", "mlp_row")
_LATENT = ("attention_linear_q_lora", "attention_q_column", "attention_linear_kv_lora", "attention_kv_column",
           "attention_o_row")  # fmt: skip
_EXPERTS = "mlp_moelayer"
NAMES = PROLOGUE | TAIL | {
    "embedding_layer", "embedding_norm", "final_column", *ATTENTION_ENDS, *_MLP_ENDS, *_LINEARS, *_LATENT,
    _EXPERTS,
}  # fmt: skip
_KEYS = ("ep", "pp", "vpp", "ga", "all_gpus", "pp_comm")
# Number of rows of experts -> the index of the row that gathers the routed tokens, and that sends them.
_GATHERS, _SENDS = {5: 2, 7: 3}, {5: 4, 7: 2}


class Statement(Struct, frozen=True):
    """What a file states.

    Lists are readings that should agree, with that of most rows first. None: no row states it.
    """

    aiob: bool
    """Whether its cells are measured times."""
    versions: tuple[str, ...]
    """The versions of AICB that may have written it."""
    sequence_parallel: bool
    """Whether activations between linears are divided among tp ranks."""
    recompute: bool
    """Whether activations are recomputed."""
    tp: int
    """The tensor-parallel degree."""
    ep: int
    """The expert-parallel degree."""
    pp: int
    """Pipeline stages."""
    world: int
    """Ranks."""
    microbatches: int
    """Micro-batches of a step."""
    layers: int
    """Layers of a stage."""
    activations: list[int]
    """Bytes of the activations of one micro-batch."""
    tokens: int | None
    """Sequence x micro-batch."""
    dense: list[int]
    """Parameters of a rank without those of experts."""
    total: list[int]
    """All parameters of a rank, in plain files."""
    moe: list[int]
    """Parameters of a rank's experts."""
    words: int | None
    """Hidden x vocabulary, before the vocabulary is padded."""
    experts: int | None
    """Experts of a layer; None without any, 0 where no row states how many."""
    routed: int | None
    """Bytes of the tokens that experts get."""
    mla: bool
    """Whether attention is latent."""
    dense_layers: int
    """Layers of a stage without experts."""
    shared: bool
    """Whether there is a shared expert."""

    @property
    def dp(self) -> int:
        return self.world // (self.tp * self.pp)


def statement_of(workload: Workload) -> Statement | None:
    """Returns what the file states; None where it does not state gradients as AICB does."""
    return _Reader(workload).statement() if workload.dialect == "simai" else None


def first_foreign(workload: Workload) -> int | None:
    """Returns the first row whose name AICB does not write, from 0; None without one."""
    return next((row for row, name in enumerate(workload.name) if name not in NAMES), None)


def rank_by_count(values: Iterable[int | None]) -> list[int]:
    """Returns the values above 0, the most frequent first; of equally frequent ones the first."""
    return [value for value, _ in Counter(value for value in values if value).most_common()]


def most_common(values: Iterable[int | None]) -> int | None:
    """Returns the most frequent value above 0; None without one."""
    return next(iter(rank_by_count(values)), None)


class _Reader:
    def __init__(self, workload: Workload) -> None:
        self.workload = workload
        self.names = workload.name
        starts = [row for row, name in enumerate(self.names) if name == "embedding_layer"]
        tails = [row for row, name in enumerate(self.names) if name in TAIL]
        end = next((row for row in tails if not starts or row > starts[-1]), len(self.names))
        self.blocks = [range(a, b) for a, b in zip(starts, [*starts, end][1:], strict=True)]
        patterns = Counter(tuple(self.names[row] for row in block) for block in self.blocks)
        self.pattern: tuple[str, ...] = (
            max(patterns, key=lambda pattern: patterns[pattern]) if patterns else ()
        )
        self.of_name: dict[str, list[int]] = {}
        for row, name in enumerate(self.names):
            self.of_name.setdefault(name, []).append(row)

    def statement(self) -> Statement | None:
        header, names = self.workload.header, self.of_name
        plain = "grad_norm" in names
        if not plain and not ("grad_gather" in names or "grad_param_comm" in names):
            return None
        linears = sum(self.names.count(name) for name in (*_LINEARS, *_LATENT, "final_column"))
        blocks = sum(self.names.count(name) for name in ("attention_layer", "mlp_layer", "attention_norm"))
        parallel = linears > blocks if self.blocks else "layernorm" not in names
        tp, pp = header.tp or 1, header.pp or 1
        layer_counts = [
            header.vpp,
            sum(self.pattern.count(name) for name in ATTENTION_ENDS) if self.pattern else None,
            sum(self.pattern.count(name) for name in _MLP_ENDS) if self.pattern else None,
        ]
        layers = most_common(layer_counts)
        if layers is None:
            return None
        gather, reduced = self._bytes("grad_gather", "wg", 2), self._bytes("grad_param_comm", "wg", 4)
        dense = [] if plain else [reduced, gather]
        world = header.all_gpus or tp * pp
        if header.all_gpus is None and not plain and gather and reduced and reduced % gather == 0:
            # In an edited file the gather is a share, which tells of how many ranks.
            world = tp * pp * (reduced // gather)
        moe = rank_by_count([self._bytes("moe_grad_norm2", "wg", 4), self._bytes("moe_grad_norm1", "wg", 2)])
        whole = self._bytes("layernorm", "ig", 2)
        if not plain and whole is not None:
            dense.append(whole - (moe[0] if moe else 0))
        total = [self._bytes("grad_norm", "wg", 4), self._bytes("grad_norm", "fwd", 2), whole]
        runs = self._expert_rows()
        fold = most_common(len(run) for run in runs) if runs else None
        runs = [run for run in runs if len(run) == fold]
        tokens = most_common(self._all("fwd", [f"cross_entropy{n}" for n in (1, 2, 3)]))
        tokens = tokens // 4 if tokens else None
        vocab = most_common(self._all("fwd", ["embedding_norm"]))
        activations = self._activations(tp, parallel)
        attention = [name for name in (*_LINEARS[:2], *_LATENT, "attention_layer") if name in names]
        mla = any(name in names for name in _LATENT)
        return Statement(
            aiob=not plain,
            versions=self._versions(fold),
            sequence_parallel=parallel,
            recompute=self._recompute(plain, parallel, attention, activations),
            tp=tp, ep=header.ep or 1, pp=pp, world=world,
            microbatches=self._microbatches(), layers=layers, activations=activations, tokens=tokens,
            dense=rank_by_count(dense), total=rank_by_count(total) if plain else [], moe=moe,
            words=vocab // 2 if vocab else None,
            experts=self._experts(runs, fold, (header.ep or 1) * tp, tokens, activations)
            if runs else 0 if (moe and not self.blocks) or (parallel and (header.ep or 1) > 1) else None,
            routed=self._routed(runs, fold, tp, not plain), mla=mla,
            dense_layers=0 if not mla else self._layers_before_experts() if runs else layers,
            shared=any(self._follows(run) == "mlp_column" for run in runs[:1]),
        )  # fmt: skip

    # -- parts ---------------------------------------------------------------------------

    def _cells(self, phase: str) -> Cells:
        cells: Cells = getattr(self.workload, phase)
        return cells

    def _bytes(self, name: str, phase: str, divisor: int) -> int | None:
        """Returns the bytes of the first row of that name over `divisor`; None without such a row."""
        rows = self.of_name.get(name)
        return self._cells(phase).bytes[rows[0]] // divisor if rows else None

    def _all(self, phase: str, names: Iterable[str]) -> list[int]:
        sizes = self._cells(phase).bytes
        return [sizes[row] for name in names for row in self.of_name.get(name, ())]

    def _microbatches(self) -> int:
        """Returns how often the usual block fits between prologue and loss; else as the markers show."""
        if not self.blocks:
            return 0
        rows = self.blocks[-1].stop - self.blocks[0].start
        count, rest = divmod(rows, len(self.pattern))
        return len(self.blocks) if rest else count

    def _versions(self, fold: int | None) -> tuple[str, ...]:
        header = self.workload.header
        keys = {key for key in _KEYS if getattr(header, key) is not None}
        fitting = [version for version in VERSIONS.values() if set(version.keys) == keys]
        if fold in (5, 7):
            fitting = [version for version in fitting if version.sevenfold == (fold == 7)] or fitting
        return tuple(version.name for version in fitting) or (NEWEST,)

    def _activations(self, tp: int, parallel: bool) -> list[int]:
        between = self.workload.header.pp_comm
        readings = [
            most_common(self._all("fwd", ["embedding_layer"])),
            most_common(self._all("fwd", ["mlp_column", "mlp_row", "mlp_layer", "mlp_norm", "final_column"])),
            most_common(self._all("ig", ["embedding_grads"])),
            between * tp if between and parallel else between,
            # The sizes that attention sends in forward may be doubled.
            most_common(self._all("ig", [*ATTENTION_ENDS])),
            most_common(self._all("fwd", [*ATTENTION_ENDS])),
        ]
        return rank_by_count(readings)

    def _recompute(
        self, plain: bool, parallel: bool, attention: Sequence[str], activations: Sequence[int]
    ) -> bool:
        if plain:
            size = most_common(self._all("fwd", attention))
            return bool(size and activations and size == 2 * activations[0])
        if not parallel:
            return False
        rows = [row for name in attention for row in self.of_name[name]]
        forward_ns, backward_ns = self._cells("fwd").compute_ns, self._cells("ig").compute_ns
        pairs = Counter((forward_ns[row], backward_ns[row]) for row in rows)
        if not pairs:
            return False
        forward, backward = pairs.most_common(1)[0][0]
        return forward != backward and forward // 2 == backward

    def _expert_rows(self) -> list[list[int]]:
        """Returns the rows of the experts of each layer."""
        expert_rows = []
        for block in self.blocks:
            for name, rows in groupby(block, key=self.names.__getitem__):
                if name == _EXPERTS:
                    expert_rows.append(list(rows))
        return expert_rows

    def _experts(
        self, runs: list[list[int]], fold: int | None, ranks: int, tokens: int | None, activations: list[int]
    ) -> int:
        size = most_common(self._cells("fwd").bytes[run[0]] for run in runs)
        each = 2 * ranks
        if fold == 7:
            # The hidden size follows from the tokens first, then from the router's weights.
            hidden = (activations[0] if activations else 0) // max(2 * (tokens or 0), 1)
            each = 2 * hidden if self.workload.header.pp_comm is not None else 2 * (tokens or 0)
        return size // each if size and each else 0

    def _routed(self, runs: list[list[int]], fold: int | None, tp: int, aiob: bool) -> int | None:
        if fold not in _GATHERS:
            return None
        row_of: Callable[[list[int]], int] = lambda run: run[_GATHERS[fold]]  # noqa: E731
        if tp == 1 and aiob:
            row_of = lambda run: run[_SENDS[fold]]  # noqa: E731
        return most_common(self._cells("fwd").bytes[row_of(run)] for run in runs)

    def _layers_before_experts(self) -> int:
        before = self.pattern[: self.pattern.index(_EXPERTS)]
        return sum(before.count(name) for name in ATTENTION_ENDS) - 1

    def _follows(self, run: list[int]) -> str:
        after = run[-1] + 1
        return self.names[after] if after < len(self.names) else ""


_FIELDS = (
    "tp", "pp", "ep", "world", "layers", "global_batch", "hidden", "heads", "ffn", "vocab", "seq",
    "microbatch_size", "experts_per_token", "shared_experts", "dense_layers", "vocab_step",
)  # fmt: skip
_MLA = Mla.__struct_fields__
# Behind the fields: biases, experts and one more (0: none); latent attention (0: none); the times of aiob.
_PLAIN = len(_FIELDS) + 2 + len(_MLA)
_AIOB = _PLAIN + 6


class Reference(NamedTuple):
    """What rows were rescaled from.

    config: as it was before. times: None of plain files.
    """

    config: AicbConfig
    times: AicbTimes | None

    def word(self) -> str:
        """Returns its numbers, between commas."""
        config, times = self
        values = [int(getattr(config, name)) for name in _FIELDS]
        values += [int(config.bias), 0 if config.experts is None else config.experts + 1]
        values += [getattr(config.mla, name) if config.mla else 0 for name in _MLA]
        if times is not None:
            values += [times.embedding, times.attention, times.mlp, *times.optimizer, times.latent]
        return ",".join(map(str, values))


def reference_of(workload: Workload, statement: Statement) -> Reference | None:
    """Returns the reference in the header; None where the header has none that is valid."""
    values = workload.header.rescaled_from
    if len(values) != (_AIOB if statement.aiob else _PLAIN) or not all(
        0 < value < 2**40 for value in values[:12]
    ):
        return None
    rest = values[len(_FIELDS) :]
    latent = rest[2 : 2 + len(_MLA)]
    config = AicbConfig(
        **dict(zip(_FIELDS, values, strict=False)),
        bias=bool(rest[0]),
        experts=rest[1] - 1 if rest[1] else None,
        mla=Mla(*latent) if any(latent) else None,
        sequence_parallel=statement.sequence_parallel,
        recompute=statement.recompute,
        version=statement.versions[0],
    )
    if config.world % (config.tp * config.pp) or not config.vocab_step:
        return None
    times = rest[2 + len(_MLA) :]
    if not times:
        return Reference(config, None)
    return Reference(config, AicbTimes(times[0], times[1], times[2], (times[3], times[4]), times[5]))


def on_layout(reference: Reference, statement: Statement) -> AicbConfig:
    """Returns the config on the layout of the rows, which may be its own or another one."""
    config = replace(
        reference.config, tp=statement.tp, pp=statement.pp, ep=statement.ep, world=statement.world
    )  # fmt: skip
    if config.microbatches == statement.microbatches:
        return config
    return replace(config, global_batch=max(1, statement.microbatches * config.microbatch_size * config.dp))

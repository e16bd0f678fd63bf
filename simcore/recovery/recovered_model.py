"""The config of AICB that makes the rows of a file: found from their figures, proven by making them again."""

from __future__ import annotations

from typing import Any

from simcore.diagnostics import UsageError, printable
from simcore.model.aicb import VERSIONS, AicbConfig, AicbRow, AicbTimes, aicb_rows, times_of_rows
from simcore.model.sizes import Mla, Model, Moe
from simcore.records import Struct, asdict, replace
from simcore.recovery.difference import Difference, RowDifferences, compare_rows
from simcore.recovery.published_models import find_published_model
from simcore.recovery.solving import find_configs
from simcore.recovery.statement import NAMES, Reference, first_foreign, on_layout, reference_of, statement_of
from simcore.shell_words import quote_word
from simcore.units import group_digits, plural
from simcore.workload import Workload

# Candidates whose rows are compared with the file's, and alternatives that are named.
_MOST_COMPARED, _MOST_LISTED = 12, 12
# If a greater share of rows differs the file is not of this config at all.
_MOST_DIFFERENT = 0.1
# Field in which configs with the same rows may differ -> its word.
_FIELD_WORDS = {
    "layers": "layers", "hidden": "hidden", "heads": "heads", "ffn": "ffn", "vocab": "vocabulary",
    "seq": "sequence", "microbatch_size": "micro-batch", "bias": "biases",
    "vocab_step": "vocabulary padded to tp x", "experts": "experts", "experts_per_token": "experts a token",
    "mla": "latent attention", "version": "AICB of",
}  # fmt: skip
_NO_AICB = "AICB states gradients as grad_norm or grad_gather, which no row here is"


class RecoveredModel(Struct, frozen=True, dict=True):
    """What a file was made from."""

    path: str
    """The path of the file."""
    config: AicbConfig | None
    """The config; None where none was found."""
    times: AicbTimes | None
    """The times of its cells; None in plain files."""
    exact: bool
    """Whether its rows are those of `config`, the cells and the header included."""
    fits: bool
    """Whether its rows are those of `config` in names, types and bytes."""
    others: tuple[AicbConfig, ...] = ()
    """Other configs with the same rows, the most common first."""
    config_count: int = 0
    """How many configs have these rows, `config` included."""
    difference: Difference | None = None
    """The first difference from what AICB writes; None without one."""
    differing: int = 0
    """How many rows differ."""
    why: str = ""
    """Why no config was found; "" where one was."""
    reference: Reference | None = None
    """What the rows were rescaled from, as the header states it."""

    @property
    def mode(self) -> str:
        return "plain" if self.times is None else "aiob"

    @property
    def model(self) -> Model | None:
        """The model as AICB counts it: all linears are equal, and there is no gate."""
        return None if self.config is None else model_of(self.config)

    def command(self) -> str:
        """Returns the command that makes the same rows, without `-o`; "" where no config was found."""
        if self.config is None:
            return ""
        arguments = aicb_arguments(self.config, self.times is not None, self.path)
        return f"wltui export --as-aicb {self.mode} --aicb-args {quote_word(arguments)} --format simai"

    def line(self) -> str:
        """Returns a summary in one line."""
        config = self.config
        if config is None:
            return f"not AICB's: {self.why}"
        version = VERSIONS[config.version]
        model_words = f"{_model_name(config)}: " if _model_name(config) else ""
        sizes = f"{model_words}{sizes_words(config)}; {layout_words(config)}"
        text = f"AICB's rows ({self.mode}, {version.period}): {sizes}"
        if self.exact:
            return text + (f"; {self.config_count} configs have them" if self.config_count > 1 else "")
        assert self.difference is not None
        return f"{text}; {self._but()}{self.difference.text()}"

    def paragraph(self) -> str:
        """Returns a summary, and what follows from it for a run, in sentences."""
        line = self.line()
        follows = "These rows are run as they are, with other degrees (--tp, --pp, --ep) too."
        if self.exact:
            follows = "With --rescale on these rows are made anew for other degrees."
        return f"{line[0].upper()}{line[1:]}. {follows}"

    def title(self) -> str:
        """Returns the shortest name, `AICB: Llama 405B, 128 layers`, with a mark where the file differs from
        it.
        """
        config, difference = self.config, self.difference
        line = difference.line if difference is not None and difference.row is not None else None
        if config is None:
            if line is None:
                return "not AICB's rows"
            assert difference is not None
            if difference.field == "name":
                return f"line {line}: not a name AICB writes"
            return f"line {line} is not what AICB writes"
        text = f"AICB: {_model_name(config) or f'hidden {config.hidden}'}, {plural(config.layers, 'layer')}"
        if self.differing == 1 and line is not None:
            return f"{text}; line {line} is not what AICB writes"
        if self.differing:
            first = f", first line {line}" if line is not None else ""
            are = "is" if self.differing == 1 else "are"
            text += f"; {plural(self.differing, 'row')} {are} not what AICB writes{first}"
        return text

    def _but(self) -> str:
        if self.differing > 1:
            return f"{group_digits(self.differing)} rows differ, first "
        return "" if self.differing else "its header or cells differ, first "

    def ambiguities(self) -> list[str]:
        """Returns what the rows leave open, a line each."""
        config = self.config
        if config is None:
            return []
        lines = []
        tokens = config.seq * config.microbatch_size
        lines.append(
            f"sequence x micro-batch: {group_digits(tokens)} as a product, taken {config.seq} x "
            f"{config.microbatch_size}"
        )
        if config.pp > 1:
            least = config.stage_layers * config.pp
            lines.append(
                f"layers: {least} to {least + config.pp - 1} are {config.stage_layers} a stage, taken "
                f"{config.layers}"
            )
        if self.times is not None or config.written_by.norms:
            padded = group_digits(config.padded_vocab)
            lines.append(f"vocabulary: {padded} as it is padded, taken {group_digits(config.vocab)}")
        batch = config.microbatch_size * config.dp
        if batch > 1:
            least = config.microbatches * batch
            lines.append(
                f"global batch: {group_digits(least)} to {group_digits(least + batch - 1)} give "
                f"{plural(config.microbatches, 'micro-batch')}, taken {group_digits(config.global_batch)}"
            )
        if config.mla is None and config.hidden % config.heads == 0:
            lines.append(f"heads: in no row, taken {config.heads}")
        if config.experts is not None and config.mla is None and config.ep == config.dp:
            lines.append(f"inner size of the experts: in no row where ep is dp, taken {config.ffn}")
        if self.times is not None and config.tp == config.ep == 1 and config.experts is not None:
            lines.append("experts, and how many a token gets: in no row")
        return lines

    def other_words(self) -> list[str]:
        """Returns the other configs with the same rows, by what differs."""
        config = self.config
        if config is None:
            return []
        words_of = []
        for other in self.others:
            differing = [name for name in _FIELD_WORDS if getattr(other, name) != getattr(config, name)]
            parts = [f"{_FIELD_WORDS[name]} {_value(getattr(other, name))}" for name in differing]
            words_of.append(", ".join(parts) or sizes_words(other))
        left = self.config_count - 1 - len(self.others)
        return [*words_of, plural(left, "other config")] if left > 0 else words_of

    def values(self) -> dict[str, Any]:
        """Returns the plain values for JSON."""
        config = self.config
        model = self.model
        return {
            "exact": self.exact,
            "model": None if model is None else model_values(model),
            "layout": None if config is None else layout_values(config),
            "aicb": None if config is None else {
                "mode": self.mode, "version": config.version, "period": VERSIONS[config.version].period,
            },
            "first_difference": None if self.difference is None else self.difference.values(),
            "rows_differing": self.differing,
            "why": self.why or None,
            "ambiguous": self.ambiguities(),
            "configs": self.config_count,
            "others": [
                {
                    "model": model_values(model_of(other)),
                    "layout": layout_values(other),
                    "version": other.version,
                }
                for other in self.others
            ],
            "command": self.command() or None,
        }  # fmt: skip


def recover(workload: Workload, data: bytes | None = None) -> RecoveredModel:
    """Returns what made the rows of a workload.

    data: its file, for comparing also what no column has.
    """
    statement = statement_of(workload)
    foreign = first_foreign(workload)
    none = RecoveredModel(workload.path, None, None, False, False)
    if statement is None or (foreign is not None and _foreign_share(workload) > _MOST_DIFFERENT):
        if statement is None or foreign is None:
            row_index = 0 if foreign is None else foreign
            return replace(none, why=_NO_AICB, difference=_name_difference(workload, row_index))
        row = _name_difference(workload, foreign)
        where = f"row {foreign} (line {row.line})"
        why = f"{where} is {printable(row.name, 40)}, a name that AICB does not write"
        return replace(none, why=why, difference=row)
    reference = reference_of(workload, statement)
    # It states layers that are lost where they do not divide, and sizes that no row of this layout has.
    from_reference = [] if reference is None else [on_layout(reference, statement)]
    configs = _valid_configs([*from_reference, *find_configs(statement)])
    if not configs:
        parameters = group_digits((statement.dense or statement.total or [0])[0])
        why = f"no sizes that were tried have the {parameters} parameters of a rank"
        return replace(none, why=why, difference=_name_difference(workload, foreign or 0))
    times = times_of_rows(workload, configs[0]) if statement.aiob else None
    best: tuple[RowDifferences, AicbConfig] | None = None
    for config in configs[:_MOST_COMPARED]:
        rows = _rows(config, times)
        if rows is None:
            continue
        compared_rows = compare_rows(workload, config, rows, data)
        if best is None or _measure(compared_rows) < _measure(best[0]):
            best = compared_rows, config
        if compared_rows.first is None:
            break
    if best is None:
        return replace(
            none, why="AICB writes no such file", difference=_name_difference(workload, foreign or 0)
        )
    differences, config = best
    if differences.rows > max(1, _MOST_DIFFERENT * len(workload)):
        first = differences.first
        how_many = f"{group_digits(differences.rows)} of {group_digits(len(workload))} rows"
        why = f"{how_many} are not AICB's: {first.text() if first else ''}"
        return replace(none, why=why, difference=first, differing=differences.rows)
    same = _equivalent_configs(config, configs, times)
    return RecoveredModel(
        workload.path, config, times, differences.first is None,
        not differences.rows and not differences.header,
        tuple(same[:_MOST_LISTED]), len(same) + 1, differences.first, differences.rows, "", reference,
    )  # fmt: skip


def _measure(compared_rows: RowDifferences) -> tuple[int, int]:
    return compared_rows.rows + compared_rows.header, compared_rows.cells


def _foreign_share(workload: Workload) -> float:
    """Returns the share of rows whose names AICB does not write."""
    return sum(name not in NAMES for name in workload.name) / max(len(workload), 1)


def _name_difference(workload: Workload, row: int) -> Difference:
    name = workload.name[row] if len(workload) else ""
    line = workload.line[row] if len(workload) else workload.header.line
    return Difference(row, line, name, "name", name, "")


def _valid_configs(configs: list[AicbConfig]) -> list[AicbConfig]:
    """Returns the configs that AICB accepts."""
    from simcore.model.aicb_arguments import check_config

    possible = []
    for config in configs:
        try:
            check_config(config)
        except (UsageError, ZeroDivisionError):
            continue
        possible.append(config)
    return possible


def _rows(config: AicbConfig, times: AicbTimes | None) -> list[AicbRow] | None:
    """Returns the rows that AICB writes; None where it stops."""
    try:
        return aicb_rows(config, times)
    except UsageError:
        return None


def _equivalent_configs(
    config: AicbConfig, configs: list[AicbConfig], times: AicbTimes | None
) -> list[AicbConfig]:
    """Returns the other configs that make the same rows, which two micro-batches show."""
    rows = _first_rows(config, times)
    return [other for other in configs if other != config and _first_rows(other, times) == rows]


def _first_rows(config: AicbConfig, times: AicbTimes | None) -> list[AicbRow] | None:
    count = min(config.microbatches, 2)
    batch = count * config.microbatch_size * config.dp if count else config.global_batch
    return _rows(replace(config, global_batch=batch), times)


def _value(value: object) -> str:
    if isinstance(value, Mla):
        return f"with q_lora_rank {value.q_lora_rank}"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "none" if value is None else str(value)


# -- words -------------------------------------------------------------------------------


def _model_name(config: AicbConfig) -> str:
    published = find_published_model(config)
    return published.name if published else ""


def model_of(config: AicbConfig) -> Model:
    """Returns the sizes as a model of wltui; AICB counts two matrices of the feed-forward part, and
    no gate.
    """
    heads = config.heads if config.mla or config.hidden % config.heads == 0 else 1
    moe = None
    if config.experts is not None:
        dense = config.dense_layers if config.mla else 0
        shared = config.shared_experts if config.mla else 0
        topk = min(config.experts_per_token, config.experts)
        moe = Moe(config.experts, topk, config.ffn, shared, min(dense, config.layers))
    return Model(
        _model_name(config) or "recovered", config.layers, config.hidden, heads, heads,
        config.mla.v_head_dim if config.mla else config.hidden // heads, config.ffn, False, config.vocab,
        config.seq, tied_embeddings=False, bias="all" if config.bias else "none", positions=config.seq,
        moe=moe, mla=config.mla,
    )  # fmt: skip


def model_values(model: Model) -> dict[str, Any]:
    return {**asdict(model), "moe": model.moe and asdict(model.moe), "mla": model.mla and asdict(model.mla),
            "parameters": model.parameters}  # fmt: skip


def layout_values(config: AicbConfig) -> dict[str, Any]:
    """Returns degrees, batches and switches."""
    return {
        "world": config.world, "tp": config.tp, "pp": config.pp, "ep": config.ep, "dp": config.dp,
        "microbatches": config.microbatches, "microbatch_size": config.microbatch_size,
        "global_batch": config.global_batch, "seq": config.seq,
        "sequence_parallel": config.sequence_parallel, "recompute": config.recompute,
        "padded_vocab": config.padded_vocab,
    }  # fmt: skip


def sizes_words(config: AicbConfig) -> str:
    """Returns `96 layers, hidden 12288, ffn 49152, vocabulary 50 257 (padded 51 200)`."""
    words = f"{config.layers} layers, hidden {config.hidden}, ffn {config.ffn}"
    words += f", vocabulary {group_digits(config.vocab)}"
    if config.padded_vocab != config.vocab:
        words += f" (padded {group_digits(config.padded_vocab)})"
    if config.experts is not None:
        words += f", {config.experts} experts, {config.experts_per_token} a token"
    if config.mla:
        words += f", latent attention of {config.heads} heads"
    return words + (", biases" if config.bias else "")


def layout_words(config: AicbConfig) -> str:
    """Returns `tp 8, pp 8, ep 1, world 1024, 16 micro-batches of 1 x 2048`."""
    extra = ", sequence-parallel" if config.sequence_parallel else ""
    extra += ", recompute_activations" if config.recompute else ""
    return (
        f"tp {config.tp}, pp {config.pp}, ep {config.ep}, world {config.world}{extra}, "
        f"{plural(config.microbatches, 'micro-batch')} of {config.microbatch_size} x {config.seq}"
    )


def aicb_arguments(config: AicbConfig, aiob: bool, path: str = "") -> str:
    """Returns AICB's arguments for a config. path: the file whose cells are taken."""
    pairs: list[tuple[str, object]] = [
        ("frame", "DeepSeek" if config.mla else "Megatron"), ("world_size", config.world),
        ("tensor_model_parallel_size", config.tp), ("pipeline_model_parallel", config.pp),
        ("expert_model_parallel_size", config.ep), ("global_batch", config.global_batch),
        ("micro_batch", config.microbatch_size), ("num_layers", config.layers), ("seq_length", config.seq),
        ("hidden_size", config.hidden), ("num_attention_heads", config.heads),
        ("ffn_hidden_size", config.ffn), ("vocab_size", config.vocab),
    ]  # fmt: skip
    if config.vocab_step != 128:
        pairs.append(("make_vocab_size_divisible_by", config.vocab_step))
    if config.experts is not None:
        pairs += [("num_experts", config.experts), ("moe_router_topk", config.experts_per_token)]
    if config.mla:
        mla: Mla = config.mla
        pairs += [
            ("n_shared_expert", config.shared_experts), ("n_dense_layers", config.dense_layers),
            ("q_lora_rank", mla.q_lora_rank), ("kv_lora_rank", mla.kv_lora_rank),
            ("qk_nope_dim", mla.qk_nope_head_dim), ("qk_rope_dim", mla.qk_rope_head_dim),
            ("v_head_dim", mla.v_head_dim),
        ]  # fmt: skip
    if config.version != next(iter(VERSIONS)):
        pairs.append(("aicb_version", config.version))
    switches = [
        ("enable_sequence_parallel", config.sequence_parallel), ("recompute_activations", config.recompute),
        ("add_bias_linear", config.bias), ("moe_enable", config.experts is not None), ("aiob_enable", aiob),
    ]  # fmt: skip
    arguments = [f"--{name} {value}" for name, value in pairs]
    arguments += [f"--{name}" for name, on in switches if on]
    if aiob and path:
        arguments.append(f"--comp_filepath {quote_word(path)}")
    return " ".join(arguments)

"""A comparison of two runs, or of two ranks, as a page and as JSON, section by section.

JSON has schema `wltui.compare/1` where ops were matched, `wltui.beside/1` for other runs, `wltui.ranks/1` for
two ranks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import zip_longest
from operator import itemgetter
from typing import TYPE_CHECKING, Any, TypeVar

from simcore.comparison import op_words, words
from simcore.comparison.changes import AccountChange
from simcore.diagnostics import printable
from simcore.render.report.memory import figure_values
from simcore.render.report.name_changes import NAMES
from simcore.render.report.section import (
    WIDTH,
    Field,
    PageOptions,
    Section,
    field_lines,
    field_values,
    keys,
    page,
    values,
    wrap,
)
from simcore.trace.figures import compare_by_work, each_words, is_other_work, microbatch_ns
from simcore.trace.run import common_ns
from simcore.trace.track import COMMON_ACCOUNTS, PROFILE_ACCOUNTS, ranks_of
from simcore.units import (
    column_unit,
    difference,
    duration,
    format_number,
    in_unit,
    percent,
    plural,
    signed_duration,
)

if TYPE_CHECKING:
    from simcore.comparison import AccountPart, Comparison, LanePair, OpChange
    from simcore.comparison.ops import LayerChange, OpChanges
    from simcore.comparison.stages import KindChange, PassPair, StagePair
    from simcore.trace.run import Run
    from simcore.trace.track import Track

Row = TypeVar("Row")
# The fields of a change.
_CHANGE: list[Field[AccountChange]] = [
    Field(key="a_ns"), Field(key="b_ns"), Field(key="difference_ns", value=lambda change: change.ns)
]  # fmt: skip


def _change_values(change: AccountChange) -> dict[str, Any]:
    """Returns a change as JSON has it."""
    return field_values(_CHANGE, (change,))[0]


def _account_values(changes: Sequence[AccountChange]) -> list[dict[str, Any]]:
    """Returns changes of accounts as JSON has them; those of a profiler only where they have time."""
    reported = [
        change for change in changes if change.a_ns or change.b_ns or change.name not in PROFILE_ACCOUNTS
    ]
    return field_values([Field(key="account", value=lambda change: change.name), *_CHANGE], reported)


def _change_fields(
    change: Callable[[Row], AccountChange | None], unit_ns: int, first: str, none: str = ""
) -> list[Field[Row]]:
    """Returns the columns A, B and B - A in a unit, with `=` where they are equal.

    first: heading of A. none: the cell without a change.
    """

    def cell(figure: Callable[[AccountChange], str]) -> Callable[[Row], str]:
        def text(row: Row) -> str:
            row_change = change(row)
            return none if row_change is None else figure(row_change)

        return text

    def b_less_a(account: AccountChange) -> str:
        if account.ns == 0:
            return "="
        return f"{account.ns / unit_ns:+.3f}" if unit_ns > 1 else f"{account.ns:+d}"

    return [
        Field(first, cell(lambda account: in_unit(account.a_ns, unit_ns))),
        Field("B", cell(lambda account: in_unit(account.b_ns, unit_ns))),
        Field("B - A", cell(b_less_a)),
    ]


def slower_words(a_ns: int, b_ns: int, limit: float) -> str | None:
    """Returns one line where step B is longer than A by more than `limit` percent of A; else None."""
    if (b_ns - a_ns) * 100 <= limit * a_ns:
        return None
    slower = f"{percent(b_ns - a_ns, a_ns)} % slower" if a_ns else "slower"
    steps = f"{duration(a_ns)}, {duration(b_ns)}"
    return f"B is {slower} than A ({steps}): more than --fail-if-slower {format_number(limit)}%"


_THEN = "     "


def _of_model(name: str, run: Run) -> Any:
    """Returns a figure of a model; None for any other run."""
    figures = run.model.model_figures
    return None if figures is None else figure_values(figures)[name]


_PART: list[Field[AccountPart]] = [
    Field(key="account"),
    Field(key="difference_ns", value=lambda account_part: account_part.ns),
]
_FILE: Field[Run] = Field(key="file", value=lambda run: run.path)
# A rank of a run, and the track that has its times.
_Rank = tuple["Run", int, "Track"]
# Runs whose ops were matched differ in their parameters, others in their kind and layout.
_MATCHED_RUN: list[Field[Run]] = [
    _FILE,
    *keys("step_time_ns"),
    Field(key="microbatch_ns", value=lambda run: microbatch_ns(run.shape)),
    Field(key="schedule", value=lambda run: run.figures.origin.schedule),
    Field(key="parameters", value=lambda run: run.figures.origin.parameters),
    *(Field(key=name, value=partial(_of_model, name), optional=True) for name in ("throughput", "memory")),
]
_PAIRED_RUN: list[Field[Run]] = [
    _FILE,
    Field(key="run", value=lambda run: run.setup.stamp),
    Field(key="kind", value=lambda run: run.figures.kind),
    *keys("step_time_ns"),
    Field(key="microbatch_ns", value=lambda run: microbatch_ns(run.shape)),
    Field(key="together", value=lambda run: run.recording is None or run.recording.together),
    Field(key="tp", value=lambda run: run.shape.tp),
    Field(key="dp", value=lambda run: run.shape.dp),
    Field(key="pp", value=lambda run: run.shape.pp),
    Field(key="microbatches", value=lambda run: run.shape.scheduled_microbatches),
    Field(key="diagnostics", value=lambda run: [diagnostic.values() for diagnostic in run.diagnostics]),
]
# The fields of one rank.
_PAIRED_RANK: list[Field[_Rank]] = [
    Field(key="file", value=lambda side: side[0].path),
    Field(key="run", value=lambda side: side[0].setup.label),
    Field(key="kind", value=lambda side: side[0].figures.kind),
    Field(key="step_time_ns", value=lambda side: side[0].step_time_ns),
    Field(key="rank", value=lambda side: side[1]),
    Field(key="ranks", value=lambda side: side[2].ranks.text()),
    Field(key="stage", value=lambda side: side[2].stage),
]


def _side_lines(compared: Comparison, options: PageOptions) -> list[str]:
    """Returns the notices, a line for each side, B - A, and why."""
    title = words.title(compared)
    text = [title] if title else []
    for line in compared.notices:
        text += wrap(line, "", _THEN)
    if compared.ranks is not None:
        for name, side in zip("AB", compared.side_texts, strict=True):
            text += wrap(side, f"{name}  ", _THEN)
        return [
            *text,
            *(line for sentence in compared.name_sentences for line in wrap(sentence, "", _THEN)),
        ]
    a_ns, b_ns = compared.a.step_time_ns, compared.b.step_time_ns
    each = [each_words(run.shape) for run in (compared.a, compared.b)]
    width = max(map(len, each)) + 2 if all(each) else 0
    if max(len(side) for side in compared.side_texts) + width + 15 > WIDTH:
        # The texts of the two sides need the room.
        width = 0
    for name, ns, batch, side in zip("AB", (a_ns, b_ns), each, compared.side_texts, strict=True):
        line = f"{name}  {duration(ns):<11} {batch if width else '':<{width}}{side}"
        text.append(line if len(line) <= WIDTH else line[: WIDTH - 3] + "...")
    by_work = compare_by_work(compared.a.shape, compared.b.shape)
    # More micro-batches in a step are more work, not a loss.
    steps = "B - A  " + (f"{by_work.words}; step " if by_work is not None else "") + difference(a_ns, b_ns)
    steps += ", not the same work" if is_other_work(compared.a.shape, compared.b.shape) else ""
    paired = words.paired_words(compared)
    if len(steps) + len(paired) + 2 <= WIDTH:
        text.append(f"{steps}; {paired}")
    else:
        text += [f"{steps};", f"       {paired}"]
    text += wrap(f"Why: {compared.why_text}.", "", _THEN)
    parts = "" if compared.ops is None else op_words.parts_words(compared.ops)
    return text + (wrap(parts, _THEN, _THEN) if parts else [])


def _side_json(compared: Comparison, options: PageOptions) -> dict[str, Any]:
    """Returns `schema`, `a` and `b`; for two ranks `sentences`, for runs `difference_ns`, `why`, `parts` and
    differences of the layouts or parameters.
    """
    runs, ops = (compared.a, compared.b), compared.ops
    if compared.ranks is not None:
        sides = zip(runs, compared.ranks, (track for (track,) in compared.tracks), strict=True)
        a, b = field_values(_PAIRED_RANK, list(sides))
        return {"schema": "wltui.ranks/1", "a": a, "b": b, "sentences": compared.name_sentences}
    if ops is None:
        layout_values: dict[str, Any] = {
            "unlike": [{"what": name, "a": a, "b": b} for name, a, b in compared.layout_differences],
            "paired_by": "rank" if compared.is_by_rank else "stage",
        }
    else:
        layout_values = {
            "changed": {
                name: {"a": _as_plain(a), "b": _as_plain(b)}
                for name, (a, b) in ops.changed_parameters.items()
            },
            "matched": field_values(keys("ops", "a_ops", "b_ops", "ranks"), (ops.op_matches,))[0],
        }
    a, b = field_values(_PAIRED_RUN if ops is None else _MATCHED_RUN, runs)
    a_ns = compared.a.step_time_ns
    return {
        "schema": "wltui.beside/1" if ops is None else "wltui.compare/1",
        "a": a,
        "b": b,
        "difference_ns": compared.difference_ns,
        # How much longer B is, in per cent of A; null where A takes no time.
        "difference_percent": 100 * compared.difference_ns / a_ns if a_ns else None,
        "why": compared.why_text,
        "parts": field_values(_PART, compared.parts),
        **layout_values,
    }


def _as_plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


# An account of the mean rank, and of the ranks that stand out where there are any.
_Accounts = tuple[AccountChange, ...]
_PASS: list[Field[PassPair]] = [
    Field(key="direction", value=lambda matched_pass: matched_pass.a.direction),
    Field(key="microbatch", value=lambda matched_pass: matched_pass.a.microbatch),
    Field(key="part", value=lambda matched_pass: matched_pass.a.part),
    Field(key="a_start_ns", value=lambda matched_pass: matched_pass.a.start_ns),
    Field(key="a_end_ns", value=lambda matched_pass: matched_pass.a.end_ns),
    Field(key="b_start_ns", value=lambda matched_pass: matched_pass.b.start_ns),
    Field(key="b_end_ns", value=lambda matched_pass: matched_pass.b.end_ns),
]  # fmt: skip
_STAGE: list[Field[StagePair]] = [
    Field(key="stage"),
    Field(key="accounts", value=lambda pair: _account_values(pair.accounts)),
    Field(key="passes", value=lambda pair: field_values(_PASS, pair.passes)),
]


def _account_lines(compared: Comparison, options: PageOptions) -> list[str]:
    """Returns the accounts with time, those that change most where not all have room, and the step."""
    step = AccountChange("step", compared.a.step_time_ns, compared.b.step_time_ns)
    unit_ns, unit = column_unit(max(step[1:]))
    columns = compared.account_columns
    nonzero = [row for row in zip(*columns, strict=True) if any(ns for change in row for ns in change[1:])]
    most_changed = sorted(nonzero, key=lambda row: -max(abs(change.ns) for change in row))[: options.rows]
    displayed_rows: list[_Accounts] = [
        *(row for row in nonzero if row in most_changed),
        (step,) * len(columns),
    ]
    fields: list[Field[_Accounts]] = [Field(f"account, {unit}", lambda row: row[0].name, left=True)]
    for column in range(len(columns)):
        fields += _change_fields(itemgetter(column), unit_ns, "A")
    remaining_count = len(nonzero) - len(most_changed)
    more = f" ({remaining_count} that change less: --all)" if remaining_count else ""
    of = words.accounts_title(compared)
    return [f"Accounts{of and f': {of}'}{more}", *field_lines(fields, displayed_rows)]


def _account_json(compared: Comparison, options: PageOptions) -> dict[str, Any]:
    """Returns `accounts`; for runs also `worst`, of the ranks that compute least, or the paired `stages` and
    `lanes`.
    """
    mean, *others = map(_account_values, compared.account_columns)
    if compared.ranks is not None:
        return {"accounts": mean}
    if compared.ops is None:
        stages = field_values(_STAGE, compared.stages)
        return {
            "accounts": mean,
            "stages": stages,
            "lanes": [_lane_json(compared, pair) for pair in compared.pairs],
        }
    worst = compared.ops.slowest_pair
    worst_sides = zip("ab", (compared.a, compared.b), (worst.a, worst.b), strict=True)
    ranks = {f"{name}_ranks": ranks_of(run.tracks, class_id).text() for name, run, class_id in worst_sides}
    return {"accounts": mean, "worst": {**ranks, "accounts": others[0]}}


def _lane_json(compared: Comparison, pair: LanePair) -> dict[str, Any]:
    sides = {"a": _track_json(compared.a, pair.a), "b": _track_json(compared.b, pair.b)}
    return {"stage": pair.stage, "ranks": pair.ranks, **sides}


def _track_json(run: Run, track: Track) -> dict[str, Any]:
    ns = zip(COMMON_ACCOUNTS, common_ns(run, track), strict=True)
    return {
        "first_rank": track.first_rank,
        "accounts_ns": {name: account_ns for name, account_ns in ns if account_ns},
    }


_PATH_ROWS = 5
_NAME_CELLS = 28
_NO_LAYER = "no layer"
# A kind, and a stage or a layer in the same row.
_PathRow = tuple["AccountChange | None", "AccountChange | None"]


def _path_lines(compared: Comparison, options: PageOptions) -> list[str]:
    """Returns the changes of the critical paths: by kind and by stage or layer, whichever changes more."""
    paths = None if compared.ops is None else compared.ops.paths
    if paths is None or not any(change.ns for changes in paths for change in changes):
        return []
    most = None if options.everything else _PATH_ROWS

    def sum_of_changes(changes: list[AccountChange]) -> int:
        return sum(abs(change.ns) for change in changes[:most])

    by_stage = sum_of_changes(paths.stage) > sum_of_changes(paths.layer)
    others = [
        change._replace(
            name=f"stage {change.name}" if by_stage else printable(change.name, _NAME_CELLS) or _NO_LAYER
        )
        for change in (paths.stage if by_stage else paths.layer)
    ]
    unit_ns, unit = column_unit(max(compared.a.step_time_ns, compared.b.step_time_ns))
    fields: list[Field[_PathRow]] = [
        Field(f"kind, {unit}", lambda pair: pair[0].name if pair[0] else "", left=True),
        *_change_fields(lambda pair: pair[0], unit_ns, "A"),
        Field("stage" if by_stage else "layer", lambda pair: pair[1].name if pair[1] else "", left=True),
        *_change_fields(lambda pair: pair[1], unit_ns, "A"),
    ]
    rows = list(zip_longest(paths.kind[:most], others[:most]))
    more = " (--all has all)" if max(len(paths.kind), len(others)) > len(rows) else ""
    return [f"Critical paths, what changes most{more}", *field_lines(fields, rows)]


def _path_json(compared: Comparison, options: PageOptions) -> dict[str, Any]:
    """Returns `critical_path`, for runs that were matched op by op."""
    if compared.ops is None:
        return {}
    paths = compared.ops.paths

    def changes(name: str, of: list[AccountChange], value: Any) -> list[dict[str, Any]]:
        return field_values([Field(key=name, value=value), *_CHANGE], of)

    return {
        "critical_path": {
            "by_kind": changes("kind", paths.kind, lambda change: change.name),
            "by_stage": changes("stage", paths.stage, lambda change: int(change.name)),
            "by_layer": changes("layer", paths.layer, lambda change: change.name or None),
        }
    }


_PASS_ROWS = 4
_DIRECTIONS = ("forward", "backward")


def _pass_change_ns(stage: StagePair) -> int:
    changes = (stage.pass_ns(direction) for direction in _DIRECTIONS)
    return sum(abs(change.ns) for change in changes if change is not None)


def _pass_lines(compared: Comparison, options: PageOptions) -> list[str]:
    """Returns a line for each stage, those that change most; none where no passes are paired."""
    stages = compared.stages if compared.ops is None else ()
    with_passes = [
        stage for stage in stages if any(stage.pass_ns(direction) is not None for direction in _DIRECTIONS)
    ]
    if not with_passes:
        return []
    most_changed = sorted(with_passes, key=lambda pair: -_pass_change_ns(pair))[
        : None if options.everything else _PASS_ROWS
    ]
    displayed_stages = [pair for pair in with_passes if pair in most_changed]
    both = [
        change
        for pair in displayed_stages
        for direction in _DIRECTIONS
        if (change := pair.pass_ns(direction)) is not None
    ]
    unit_ns, unit = column_unit(max(ns for change in both for ns in change[1:]))
    fields: list[Field[StagePair]] = [
        Field("stage", lambda pair: str(pair.stage), left=True),
        Field("passes", lambda pair: str(len(pair.passes))),
        *_change_fields(lambda pair: pair.pass_ns("forward"), unit_ns, f"forward A, {unit}", "-"),
        *_change_fields(lambda pair: pair.pass_ns("backward"), unit_ns, f"backward A, {unit}", "-"),
    ]
    remaining_count = len(with_passes) - len(displayed_stages)
    more = f" ({plural(remaining_count, 'stage')} more: --all)" if remaining_count else ""
    title = f"One pass of a micro-batch, communication in it included, the mean of those that both have{more}"
    return [title, *field_lines(fields, displayed_stages)]


_LAYER_ROWS = 3


def _layer_fields(unit_ns: int, unit: str) -> list[Field[LayerChange]]:
    return [
        Field(f"layer, {unit}", lambda change: printable(change.name, _NAME_CELLS), "name", left=True),
        *_change_fields(lambda layer: layer.compute, unit_ns, "compute A"),
        *_change_fields(lambda layer: layer.exposed, unit_ns, "exposed A"),
        Field(key="compute", value=lambda change: _change_values(change.compute)),
        Field(key="exposed", value=lambda change: _change_values(change.exposed)),
    ]


def _layer_lines(compared: Comparison, options: PageOptions) -> list[str]:
    """Returns a line for each layer that changes; none where none does."""
    layers = () if compared.ops is None else compared.ops.layers
    changed_layers = [layer for layer in layers if layer.total_change_ns]
    if not changed_layers:
        return []
    displayed_layers = changed_layers if options.everything else changed_layers[:_LAYER_ROWS]
    largest = max(
        ns for layer in displayed_layers for change in (layer.compute, layer.exposed) for ns in change[1:]
    )
    remaining_count = len(changed_layers) - len(displayed_layers)
    more = f" ({remaining_count} more: --all)" if remaining_count else ""
    return [
        f"Layers that change most{more}",
        *field_lines(_layer_fields(*column_unit(largest)), displayed_layers),
    ]


def _layer_json(compared: Comparison, options: PageOptions) -> dict[str, Any]:
    """Returns `layers`, for runs that were matched op by op."""
    if compared.ops is None:
        return {}
    return {"layers": field_values(_layer_fields(1, "ns"), compared.ops.layers)}


# The op in words, and its change.
_Op = tuple[str, "OpChange"]
_OP: list[Field[_Op]] = [
    Field("op", lambda op: op[0], left=True),
    Field("what", lambda op: op[1].measure, "measure", lambda op: op[1].measure, left=True),
    Field(key="stage", value=lambda op: op[1].position[0]),
    Field(key="dp", value=lambda op: op[1].position[1]),
    Field(key="tp", value=lambda op: op[1].position[2]),
    Field(key="ranks", value=lambda op: op[1].ranks),
    Field(key="name", value=lambda op: op[1].name),
    Field(key="phase", value=lambda op: op[1].phase),
    Field(key="kind", value=lambda op: op[1].kind),
    Field(key="microbatch", value=lambda op: op[1].microbatch),
    Field("A", lambda op: duration(op[1].a_ns), "a_ns", lambda op: op[1].a_ns),
    Field("B", lambda op: duration(op[1].b_ns), "b_ns", lambda op: op[1].b_ns),
    Field(
        "B - A", lambda op: signed_duration(op[1].b_ns - op[1].a_ns),
        "difference_ns", lambda op: op[1].b_ns - op[1].a_ns,
    ),
]  # fmt: skip
# Where a kind of time changes, in words, and its change.
_Kind = tuple[str, "KindChange"]
_KIND: list[Field[_Kind]] = [
    Field("where", lambda kind: kind[0], left=True),
    Field(key="stage", value=lambda kind: kind[1].stage),
    Field(key="rank", value=lambda kind: kind[1].rank),
    Field("what", lambda kind: kind[1].change.name, "kind", lambda kind: kind[1].change.name, left=True),
    Field("A", lambda kind: duration(kind[1].change.a_ns), "a_ns", lambda kind: kind[1].change.a_ns),
    Field("B", lambda kind: duration(kind[1].change.b_ns), "b_ns", lambda kind: kind[1].change.b_ns),
    Field(
        "B - A", lambda kind: difference(kind[1].change.a_ns, kind[1].change.b_ns),
        "difference_ns", lambda kind: kind[1].change.ns,
    ),
]  # fmt: skip


def _op_movers(ops: OpChanges) -> list[_Op]:
    """Returns the ops that differ most."""
    return [(op_words.op_words(ops, mover), mover) for mover in ops.op_changes]


def _kind_movers(compared: Comparison) -> list[_Kind]:
    """Returns the kinds of time that change most."""
    return [(words.where_words(mover), mover) for mover in compared.kind_changes]


def _mover_lines(compared: Comparison, options: PageOptions) -> list[str]:
    """Returns a line for each op, or for each kind of time of a stage or a rank."""
    if compared.ops is not None:
        ops = _pick_in_turn(_op_movers(compared.ops), options.rows)
        split_lines = wrap(op_words.splits_words(compared.ops), "  ", "  ")
        return ["Ops that differ most", *field_lines(_OP, ops), *split_lines] if ops else []
    kinds = _kind_movers(compared)
    displayed_kinds = kinds[: options.rows]
    remaining_count = len(kinds) - len(displayed_kinds)
    more = f" ({remaining_count} more: --all)" if remaining_count else ""
    alone = (
        ", or a rank that does much more"
        if any(mover.rank is not None for _, mover in displayed_kinds)
        else ""
    )
    title = f"What differs most, the mean of a stage's ranks{alone}{more}"
    return [title, *field_lines(_KIND, displayed_kinds)] if displayed_kinds else []


def _pick_in_turn(movers: Sequence[_Op], most: int | None) -> list[_Op]:
    """Returns ops from each measure in turn until there are `most`, in the order of the comparison."""
    by_measure: dict[str, list[_Op]] = {}
    for mover in movers:
        by_measure.setdefault(mover[1].measure, []).append(mover)
    in_turn = [op for several in zip_longest(*by_measure.values()) for op in several if op is not None]
    return [mover for mover in movers if mover in in_turn[:most]]


def _mover_json(compared: Comparison, options: PageOptions) -> dict[str, Any]:
    """Returns `movers`."""
    if compared.ops is None:
        return {"movers": field_values(_KIND, _kind_movers(compared))}
    return {"movers": field_values(_OP, _op_movers(compared.ops))}


def _unchanged_lines(compared: Comparison, options: PageOptions) -> list[str]:
    """Returns what is unchanged, and the micro-batches in memory where these change."""
    same = wrap(f"Unchanged: {', '.join(compared.unchanged) or 'nothing'}", "", "  ")
    cost = "" if compared.ops is None else op_words.cost_words(compared.ops)
    return [*same, *([cost] if cost else [])]


def _unchanged_json(compared: Comparison, options: PageOptions) -> dict[str, Any]:
    """Returns `unchanged` and, for runs that were matched op by op, `peak_microbatches`."""
    if compared.ops is None:
        return {"unchanged": compared.unchanged}
    cost = compared.ops.memory_change
    return {"unchanged": compared.unchanged, "peak_microbatches": None if cost is None else cost._asdict()}


SIDES: Section[Comparison] = Section("sides", _side_lines, _side_json)
_ACCOUNTS: Section[Comparison] = Section("account-changes", _account_lines, _account_json)
_MOVERS: Section[Comparison] = Section("movers", _mover_lines, _mover_json)
# In the order of the page.
SECTIONS: tuple[Section[Comparison], ...] = (
    SIDES,
    _ACCOUNTS,
    Section("path-changes", _path_lines, _path_json),
    # No JSON: `stages` of the accounts has the passes.
    Section("pass-changes", _pass_lines),
    Section("layer-changes", _layer_lines, _layer_json),
    _MOVERS,
    NAMES,
    Section("unchanged", _unchanged_lines, _unchanged_json),
)
# The sections of two ranks, whose accounts sum to one step and are no means.
_OF_RANKS = (SIDES, _ACCOUNTS, NAMES)
# The most lines of a page, to be read at once; --all has everything.
_LINES = 40
_LEAST_ACCOUNTS, _LEAST_NAMES = 4, 5
_LEAST_MOVERS, _MOST_MOVERS = 3, 7
# Lines of a table without its rows: title, heading and a blank line; the accounts also have the step.
_LINES_PER_TABLE = 3
# The keys that come first, whatever the order of the page.
_FIRST_KEYS = (
    "schema", "a", "b", "difference_ns", "difference_percent", "why", "parts", "changed", "matched",
    "unlike", "paired_by", "accounts", "worst", "layers", "critical_path", "stages", "lanes", "movers",
    "by_name", "unchanged",
)  # fmt: skip


def comparison_page(compared: Comparison, everything: bool = False) -> str:
    """Returns the page, at most 40 lines unless `everything` is set.

    The accounts that change least give way first, then what differs most; for two ranks the names that differ
    least.
    """
    sections = sections_of(compared)
    if everything:
        return page(sections, compared, PageOptions(everything=True))
    if compared.ranks is not None:
        remaining_lines = _count_remaining_lines(compared, (NAMES,)) - _LINES_PER_TABLE
        return page(sections, compared, PageOptions(), {NAMES: max(remaining_lines, _LEAST_NAMES)})
    remaining_lines = _count_remaining_lines(compared, (_ACCOUNTS, _MOVERS))
    has_movers = bool(compared.kind_changes if compared.ops is None else compared.ops.op_changes)
    accounts = max(
        remaining_lines - (_LEAST_MOVERS + _LINES_PER_TABLE if has_movers else 0) - _LINES_PER_TABLE - 1,
        _LEAST_ACCOUNTS,
    )
    remaining_lines -= len(_ACCOUNTS.lines(compared, PageOptions(rows=accounts))) + 1 + _LINES_PER_TABLE
    rows = {
        _ACCOUNTS: accounts,
        _MOVERS: max(_LEAST_MOVERS, min(remaining_lines, _MOST_MOVERS)),
    }
    return page(sections, compared, PageOptions(), rows)


def sections_of(compared: Comparison) -> tuple[Section[Comparison], ...]:
    """Returns the sections of `SECTIONS` that a comparison has."""
    return SECTIONS if compared.ranks is None else _OF_RANKS


def _count_remaining_lines(compared: Comparison, giving_way: Sequence[Section[Comparison]]) -> int:
    """Returns the lines that the other sections leave of a page."""
    others = [section for section in sections_of(compared) if section not in giving_way]
    texts = [section.lines(compared, PageOptions()) for section in others]
    return _LINES - sum(len(lines) + 1 for lines in texts if lines) + 1


def comparison_json(compared: Comparison) -> dict[str, Any]:
    """Returns the comparison as plain values; times in ns, differences B - A."""
    first = _FIRST_KEYS if compared.ranks is None else ()
    return values(sections_of(compared), compared, PageOptions(everything=True), first)

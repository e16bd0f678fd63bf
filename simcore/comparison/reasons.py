"""The reasons why two runs differ, in words: the parts that explain most of B - A, and their causes.

The reason of a new parameter is one entry in `REASONS`: its words, and the accounts that it can change. A
reason says what the figures show.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from simcore.collectives import collectives_of
from simcore.comparison.changes import BUSY, MainCause, format_parts
from simcore.comparison.op_words import find_ignored
from simcore.comparison.parts import BUBBLE_ACCOUNT, PART_ACCOUNTS, WAIT_ACCOUNT, is_pipeline
from simcore.diagnostics import printable
from simcore.parameters import flag_of
from simcore.program.overrides import time_scales
from simcore.records import NamedTuple
from simcore.simulation import other_method
from simcore.trace.critical_path import sum_by_rank
from simcore.trace.run import mean_busy_ns, mean_of_ranks, sum_path
from simcore.units import duration, format_number, plural, short_number

if TYPE_CHECKING:
    from simcore.comparison import OpChanges
    from simcore.runs.simulated import SimulatedRun
    from simcore.words.sentences.shift import PathShift


_MOST_REASONS = 2
_NAME_CELLS = 40
# The parts are of the critical path; accounts in the tables next to them are means of ranks.
_PATH = "on the critical path"
# A reason for less than this share of the largest part does not explain the difference.
_WORTH_A_REASON = 0.1
_EXPOSED = tuple(name for name in PART_ACCOUNTS if name.startswith("exposed "))
# The accounts of passes of micro-batches and of what runs between them.
_PASSES = (BUSY, BUBBLE_ACCOUNT, "exposed tp", "exposed ep", "exposed pp")
_PIPELINE = (BUBBLE_ACCOUNT, WAIT_ACCOUNT, "exposed pp")
_GRADIENTS = ("exposed dp", "exposed dp_ep")
# The noun by kind of group where the kind does not tell it. A transfer counts on two streams: all is counted
# as one.
_COLLECTIVES = dict.fromkeys(("", "pp"), "collectives and transfers")


class Reason(NamedTuple):
    """The effect of a parameter on a run."""

    words: Callable[[OpChanges], str]
    """Returns the reason in words."""
    accounts: tuple[str, ...] = PART_ACCOUNTS
    """The accounts, of PART_ACCOUNTS, that the parameter changes by itself."""
    ns: Callable[[OpChanges], float] | None = None
    """Returns about how much of the path it changes, ns; None where that is not known: then as much as
    `accounts` change.
    """

    def explains_ns(self, ops: OpChanges) -> float:
        """Returns the largest part that it is a reason for, ns."""
        largest = max((abs(part.ns) for part in ops.parts if part.account in self.accounts), default=0)
        return largest if self.ns is None else min(largest, self.ns(ops))


def explain_difference(ops: OpChanges) -> str:
    """Returns the parts that explain most of B - A, then their causes, in words.

    Where nothing changes it says what is equal; where the steps are equal, which parts offset each other. A
    network that follows from the size of a run, and differs, is said.
    """
    method = other_method(ops.a.simulation, ops.b.simulation)
    return f"{_explain_changes(ops)}{f'; {method}' if method else ''}"


def _explain_changes(ops: OpChanges) -> str:
    leading = ops.main_cause
    if leading is None:
        return "nothing changes: the step times are equal"
    if not ops.difference_ns:
        most, against = leading.most, leading.against
        if against is None:
            return f"the step times are equal: {most.words} {_PATH}, which other accounts make up for"
        return f"the step times are equal: {most.words} and {against.words} {_PATH} make up for each other"
    shift = _find_shift(ops)
    reasons, left = _find_reasons(ops, leading, shift)
    # A single change is called by its flag.
    more = f" (and {left[0] or '1 more change'})" if len(left) == 1 else ""
    more = more or (f" (and {plural(len(left), 'more change')})" if left else "")
    if shift is not None:
        parts = f"{format_parts(ops.parts)} {_PATH}"
        return f"{'; '.join([f'{shift.text} ({parts})', *reasons])}{more}"
    return f"{leading.words} {_PATH}{': ' if reasons else ''}{'; '.join(reasons)}{more}"


def _find_shift(ops: OpChanges) -> PathShift | None:
    """Returns what the paths are spent on, for other rows, as a model has on another GPU, and for another
    network that the step waits for as it did not before.
    """
    shift = ops.path_shift
    if shift is None or not shift.text:
        return None
    has_other_wait = shift.is_anew and not ops.changed_parameters.keys().isdisjoint(_NETWORK)
    return shift if ops.has_other_file or has_other_wait else None


def _find_reasons(ops: OpChanges, leading: MainCause, shift: PathShift | None) -> tuple[list[str], list[str]]:
    """Returns the reasons for the named parts, that for most of them first, and the flag of each reason left
    out.

    The flag is "" where a reason has none of its own. A change that has little to do with a named part is
    left out, unless it is the only one: the reason for a small effect would be taken for that of the whole
    difference.
    """
    without_effect_fields = find_ignored(ops)
    reasons = [
        REASONS[field]
        for field in REASONS
        if field in ops.changed_parameters and field not in without_effect_fields
    ]
    named_accounts = {part.account for part in leading.named_parts}
    if shift is not None:
        named_accounts.add(f"exposed {shift.kind}")
    least = abs(leading.most.ns) * _WORTH_A_REASON
    ns = {reason.words: reason.explains_ns(ops) for reason in reasons}
    explain = [
        reason
        for reason in reasons
        if named_accounts.intersection(reason.accounts) and ns[reason.words] >= least
    ]
    # A shift is a reason by itself.
    explain = explain if explain or shift is not None else reasons
    words = dict.fromkeys(reason.words for reason in sorted(explain, key=lambda reason: -ns[reason.words]))
    # Two parameters may have one reason.
    kept_texts = list(dict.fromkeys(words_of(ops) for words_of in words))
    left_out = [words_of for words_of in ns if words_of not in words]
    # Two with one text count as one.
    by_text = {words_of(ops): words_of for words_of in words}
    left_out += [by_text[text] for text in kept_texts[_MOST_REASONS:]]
    left_flags = [_find_flag(ops, words_of) for words_of in left_out]
    return kept_texts[:_MOST_REASONS], left_flags


def _find_flag(ops: OpChanges, words_of: Callable[[OpChanges], str]) -> str:
    """Returns the flag of the one changed parameter with this reason, `--comm-scale`; "" where several have
    it.
    """
    idle = find_ignored(ops)
    fields = [name for name in REASONS if REASONS[name].words is words_of and name in ops.changed_parameters]
    flags = [flag_of(name).option for name in fields if name not in idle]
    return flags[0] if len(flags) == 1 else ""


def _part_ns(ops: OpChanges, account: str) -> int:
    return next((part.ns for part in ops.parts if part.account == account), 0)


def _schedule(ops: OpChanges) -> str:
    before, after = ops.changed_parameters["schedule"]
    chunks = ops.b.simulation.program.virtual_stages
    whole = ops.a.simulation.program.virtual_stages
    shorter = _part_ns(ops, BUBBLE_ACCOUNT) < 0
    was_piped, is_piped = is_pipeline(ops.a), is_pipeline(ops.b)
    if not was_piped and not is_piped:
        return f"{after} runs the rows in another order than {before}"
    if not is_piped:
        return "without a pipeline no stage waits for another"
    if not was_piped:
        return "stages of a pipeline wait for each other"
    if after == "interleaved" and shorter:
        return f"{chunks} virtual stages make each empty slot of the pipeline 1/{chunks} as long"
    if before == "interleaved" and not shorter:
        return f"without virtual stages each empty slot of the pipeline is {whole} times as long"
    did_split, splits = (side.simulation.program.rules.splits_backward for side in (ops.a, ops.b))
    if after == "dualpipe" and shorter:
        return "micro-batches come from both ends at once, and weight gradients fill the waits"
    if splits and not did_split and shorter:
        return "weight gradients fill the wait for the next backward"
    if did_split and not splits and not shorter:
        return "weight gradients no longer fill the wait for the next backward"
    if {before, after} == {"gpipe", "1f1b"}:
        return f"{before} and {after} leave as many slots empty, in another order"
    return f"{after} runs forwards and backwards in another order than {before}"


def _virtual_stages(ops: OpChanges) -> str:
    before, after = ops.changed_parameters["virtual_stages"]
    if "schedule" in ops.changed_parameters:
        return _schedule(ops)
    return f"{after} virtual stages in place of {before}: an empty slot is 1/{after} of a stage"


def _microbatches(ops: OpChanges) -> str:
    before, after = ops.changed_parameters["microbatches"]
    leading = ops.main_cause
    stages = ops.b.simulation.layout.pp
    if leading is not None and leading.most.account == BUBBLE_ACCOUNT and min(stages, after) > 1:
        return f"{after} micro-batches share the {stages - 1} empty slots of the pipeline, before {before}"
    return f"a step has {plural(after, 'micro-batch')} in place of {before}"


def _communication(ops: OpChanges) -> str:
    """Returns how long collectives of the kind that explains most take on a rank, and the bandwidth that
    causes it.
    """
    leading = ops.main_cause
    kinds = (
        []
        if leading is None
        else [
            account_part.account for account_part in leading.named_parts if account_part.account in _EXPOSED
        ]
    )
    kind = kinds[0].removeprefix("exposed ") if kinds else ""
    if not kinds and ops.path_shift is not None:
        kind = ops.path_shift.kind
    what = _COLLECTIVES.get(kind, collectives_of(kind))
    before, after = (_communication_ns(side, kind) for side in (ops.a, ops.b))
    if before == after:
        return f"{what} take {duration(after)} a rank in both"
    return f"{what} take {duration(after)} a rank, before {duration(before)}{_bandwidth(ops)}"


def _communication_ns(results: SimulatedRun, kind: str) -> int:
    """Returns how long the mean rank communicates in groups of a kind, ns.

    Of the kinds "" and `pp` it is all communication, transfers between stages included.
    """
    if kind in ("", "pp"):
        return mean_of_ranks(results, (used.comm_ns for used in results.figures.streams))
    return sum(use.busy_ns for use, _ in results.figures.mean_streams if use.kind == kind)


def _communication_change_ns(ops: OpChanges) -> float:
    """Returns how much longer or shorter a rank communicates, the sum over kinds of groups, ns."""
    kinds = [account.removeprefix("exposed ") for account in _EXPOSED if account != "exposed pp"]
    sides = (ops.a, ops.b)
    return sum(abs(_communication_ns(sides[1], kind) - _communication_ns(sides[0], kind)) for kind in kinds)


def _bandwidth(ops: OpChanges) -> str:
    """Returns `, on dim 0 (tp; 409 GB/s, before 450)`, of the one dimension whose bandwidth explains the
    change.

    It is "" where none or several do, or where the dimensions have other sizes or there are none.
    """
    if [dim.size for dim in ops.a.dims] != [dim.size for dim in ops.b.dims]:
        return ""
    changed = [
        f", on {now.name(index, f'{short_number(now.bandwidth)} GB/s, before {short_number(old.bandwidth)}')}"
        for index, (old, now) in enumerate(zip(ops.a.dims, ops.b.dims, strict=True))
        if (old.bandwidth - now.bandwidth) * ops.difference_ns > 0
    ]
    return changed[0] if len(changed) == 1 else ""


def _compute(ops: OpChanges) -> str:
    sides = (ops.a, ops.b)
    has_equal_ranks = all(len({account.busy_ns for account in side.accounts}) == 1 for side in sides)
    before, after = (mean_busy_ns(side) for side in sides)
    who = "each rank" if has_equal_ranks else "the mean rank"
    return f"{who} computes {duration(after)}, before {duration(before)}"


def _time_scale(ops: OpChanges) -> str:
    """Returns which part of the run takes another share of its time than before, in words."""
    before, after = (dict(time_scales(side.parameters.time_scale)) for side in (ops.a, ops.b))
    changed = [part for part in {**before, **after} if before.get(part, 1.0) != after.get(part, 1.0)]
    part = changed[0]
    factor = format_number(after.get(part, 1.0) / before[part] if before.get(part) else after.get(part, 1.0))
    more = f", and {plural(len(changed) - 1, 'other part')}" if len(changed) > 1 else ""
    return f"{printable(part, _NAME_CELLS)} takes {factor} times as long{more}"


def _compute_change_ns(ops: OpChanges) -> float:
    """Returns how much more a path computes as the mean rank does, ns: fill and drain grow with it."""
    a, b = mean_busy_ns(ops.a), mean_busy_ns(ops.b)
    on_path = (
        sum(ns for kind, ns in sum_path(side, "kind") if kind.startswith(BUSY)) for side in (ops.a, ops.b)
    )
    longer = max(on_path) / max(a, b, 1)
    return abs(b - a) * max(longer, 1.0)


def _slow_rank(ops: OpChanges) -> str:
    """Returns a sentence on the slow rank on which the critical path is longest.

    Where no rank is newly slow, it is on the rank that was slow before.
    """
    before, after = (_parse_factors(texts) for texts in ops.changed_parameters["slow_rank"])
    new_factors = {rank: factor for rank, factor in after.items() if before.get(rank) != factor}
    if not new_factors:
        former_rank, _ = _find_longest_rank(ops.a, before)
        return f"rank {former_rank} no longer computes {before[former_rank]} times as long"
    rank, on_path = _find_longest_rank(ops.b, new_factors)
    more = f" (and {len(new_factors) - 1} more)" if len(new_factors) > 1 else ""
    before_text = f", before {before[rank]} times" if rank in before else ""
    text = f"rank {rank}{more} computes {new_factors[rank]} times as long{before_text}"
    if not on_path:
        return f"{text}, off the critical path"
    return f"{text}, and the ranks that work with it wait" if _part_ns(ops, BUSY) > 0 else text


def _slowdown_ns(ops: OpChanges) -> float:
    """Returns how much longer the path of B is on ranks that are slower than in A, ns.

    Where the path of B is on no such rank, it is how much longer that of A is on ranks slower than in B.
    """
    texts_a, texts_b = ops.changed_parameters["slow_rank"]
    ns = 0.0
    for results, own, other in ((ops.b, texts_b, texts_a), (ops.a, texts_a, texts_b)):
        was, on_rank = _parse_factors(other), sum_by_rank(results.critical_path)
        for rank, factor in _parse_factors(own).items():
            slower = float(factor) / (float(was.get(rank, 1)) or 1) or 1
            ns += abs(1 - 1 / slower) * on_rank.get(int(rank), 0)
        if ns:
            break
    return ns


def _parse_factors(texts: tuple[str, ...]) -> dict[str, str]:
    """Returns the factor of each rank, both as text of the flag: `37=1.3`."""
    pairs = [printable(text, _NAME_CELLS).partition("=") for text in texts]
    return {rank.strip(): factor.strip() for rank, _, factor in pairs}


def _find_longest_rank(results: SimulatedRun, ranks: Mapping[str, str]) -> tuple[str, int]:
    """Returns the rank, of some, on which the critical path is longest, else the first, and the ns of the
    path there.
    """
    on_path = {str(rank): ns for rank, ns in sum_by_rank(results.critical_path).items()}
    longest = max(ranks, key=lambda rank: on_path.get(rank, 0))
    return longest, on_path.get(longest, 0)


def _slow_link(ops: OpChanges) -> str:
    before, after = ops.changed_parameters["slow_link"]
    new_links = [text for text in after if text not in before]
    if new_links:
        return f"port {printable(new_links[0], _NAME_CELLS)} slows down what goes through it"
    return "nothing waits for a slow port any more"


def _link_rate(ops: OpChanges) -> str:
    before, after = ops.changed_parameters["link_rate"]
    changed = [text for text in after if text not in before]
    if not changed:
        return "links have the rates of the topology again"
    ends, _, factor = printable(changed[0], _NAME_CELLS).partition("=")
    does = "fails" if float(factor) == 0 else f"has {factor} times its rate"
    link = "the link between nodes" if ends[0].isdecimal() else "each link between"
    return f"{link} {ends.replace('-', ' and ')} {does}"


def _other_job(ops: OpChanges) -> str:
    _, after = ops.changed_parameters["other_job"]
    if after is None:
        return "no other job uses the links any more"
    return f"{printable(os.path.basename(after), _NAME_CELLS)} uses the same links"


def _job_gpus(ops: OpChanges) -> str:
    return "jobs are on other GPUs, and their flows on other links"


def _grad_reduce(ops: OpChanges) -> str:
    if ops.changed_parameters["overlap_grad_reduce"][1]:
        return "gradients are reduced beside the last backward"
    return "gradients are reduced after the last backward"


def _param_gather(ops: OpChanges) -> str:
    if ops.changed_parameters["overlap_param_gather"][1]:
        return "parameters are gathered beside the first forward"
    return "parameters are gathered at the end of the step"


def _stage_layout(ops: OpChanges) -> str:
    if ops.changed_parameters["stage_layout"][1] == "megatron":
        return "embedding rows run on the first stage alone, final and loss rows on the last"
    return "every stage runs the embedding, final and loss rows too"


def _degrees(ops: OpChanges) -> str:
    a, b = ops.a.simulation.layout, ops.b.simulation.layout
    return f"tp {b.tp} x dp {b.dp} x pp {b.pp}, before tp {a.tp} x dp {a.dp} x pp {a.pp}"


def _overlapped_passes(ops: OpChanges) -> str:
    """Returns a sentence on whether forwards and backwards take turns in B."""
    if ops.changed_parameters["overlap_fwd_bwd"][1]:
        return "collectives of a forward run beside a backward, and the other way round"
    return "a forward and a backward no longer take turns"


def _rank_order(ops: OpChanges) -> str:
    return "ranks, and with them groups, lie elsewhere on the network"


def _jitter(ops: OpChanges) -> str:
    return "durations vary at random, and each group waits for its slowest rank"


def _work(ops: OpChanges) -> str:
    return "a step does another amount of work"


def _dialect(ops: OpChanges) -> str:
    return "the rows are read by the rules of the other simulator"


def _lines(ops: OpChanges) -> str:
    left_out = [side.simulation.workload.left_out for side in (ops.a, ops.b)]
    a, b = (f"runs without {lines} of the file" if lines else "runs all lines" for lines in left_out)
    return f"B {b}, A {a}"


def _estimate_only(ops: OpChanges) -> str:
    return "only SimAI's estimate changes"


# The parameters of the network.
_NETWORK = (
    "network", "cluster", "system", "dim", "algorithm", "splits", "active_chunks", "endpoint_delay",
    "local_mem_bw", "collective_optimization", "nvlink", "nic", "nics_per_server", "gpus_per_server",
    "gpu_type", "nic_type", "flow_model", "send_latency", "ecmp", "nvls", "pxn",
    "congestion",
)  # fmt: skip
# By field of `Parameters`, in the order in which reasons are tried.
REASONS: dict[str, Reason] = {
    "dialect": Reason(_dialect),
    "schedule": Reason(_schedule, _PIPELINE),
    "virtual_stages": Reason(_virtual_stages, _PIPELINE),
    "pp": Reason(_degrees),
    "tp": Reason(_degrees),
    "ep": Reason(_degrees),
    "world": Reason(_degrees),
    "rank_order": Reason(_rank_order, _EXPOSED, _communication_change_ns),
    "microbatches": Reason(_microbatches, _PASSES),
    "passes": Reason(_work),
    "steps": Reason(_work),
    "layers": Reason(_work),
    "without_lines": Reason(_lines),
    "stage_layout": Reason(_stage_layout, _PASSES),
    "overlap_fwd_bwd": Reason(_overlapped_passes),
    "overlap_grad_reduce": Reason(_grad_reduce, _GRADIENTS),
    "overlap_param_gather": Reason(_param_gather, _GRADIENTS),
    "slow_rank": Reason(_slow_rank, (BUSY, WAIT_ACCOUNT), _slowdown_ns),
    "slow_link": Reason(_slow_link, (*_EXPOSED, WAIT_ACCOUNT)),
    "link_rate": Reason(_link_rate, (*_EXPOSED, WAIT_ACCOUNT)),
    "other_job": Reason(_other_job, (*_EXPOSED, WAIT_ACCOUNT)),
    "job_gpus": Reason(_job_gpus, (*_EXPOSED, WAIT_ACCOUNT)),
    "other_job_gpus": Reason(_job_gpus, (*_EXPOSED, WAIT_ACCOUNT)),
    "compute_scale": Reason(_compute, (BUSY,), _compute_change_ns),
    "layer_scale": Reason(_compute, (BUSY,), _compute_change_ns),
    "time_scale": Reason(_time_scale, (BUSY, *_EXPOSED)),
    "jitter": Reason(_jitter),
    "seed": Reason(_jitter),
    **dict.fromkeys(("comm_scale", *_NETWORK), Reason(_communication, _EXPOSED)),
    "overlap": Reason(_estimate_only, ()),
}  # fmt: skip

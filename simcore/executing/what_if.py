"""What would shorten a run of execution traces: possible changes, each a run of its own, and how much each
part of the step matters.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property

from simcore.chakra.nodes import COLL, COLLECTIVES, RECV, SEND, integer
from simcore.cluster import Dimension
from simcore.compat.astra2_rules import collective_rules
from simcore.diagnostics import Diagnostic, InputError, UsageError
from simcore.executing.execution_analysis import ExecutionAnalysis
from simcore.executing.execution_result import Execution, ExecutionResult
from simcore.executing.retimed import ALL_CPU, TraceParts
from simcore.messages.alone import estimate_messages, make_rules
from simcore.messages.collectives import Rules
from simcore.names import COLLECTIVES as COLLECTIVE_NAMES
from simcore.records import NamedTuple, replace
from simcore.trace.changes import Change, ChangeOutcome, Trials
from simcore.trace.findings import WhatIf
from simcore.trace.knobs import BETTER, Knob, Search, sort_by_gain
from simcore.trace.trace_graph import scale_durations
from simcore.units import change_percent, duration, plural

# Knobs of nodes by name: the patterns that take the most time.
_MOST_NAMES = 12
# Parts that a table names in other words.
_NAMES = {ALL_CPU: "CPU nodes"}
# GB/s at which a message takes no time worth a ns, within what `--dim` takes.
_NO_TIME_GBPS = 1e9
# Nodes and messages of one trial run, and of all: some 250,000 are simulated in a second.
_MOST_OF_ONE, _MOST_OF_ALL, _MOST_TO_CHECK = 500_000, 2_000_000, 100_000
# The work of putting a rank into its class, in nodes.
_OF_A_RANK = 100
# So many changes of one family are listed; so many of those without effect are named.
_MOST_LISTED, _MOST_NAMED = 3, 6
# So many of those that gain most are run with shared links, too.
_CHECKED = 4
# Several changes together are named by their flags, unless a table has no room for them.
_TOGETHER, _MOST_FLAGS = "the best of each, together", 64
_SPLITS, _ACTIVE, _QUEUES = (1, 2, 4, 8, 16), (2, 4, 8), (1, 2, 4)
_STEP = 8

Rerun = Callable[[Execution], ExecutionAnalysis]


class ChangeResults(NamedTuple):
    """The rows of a what-if table, and a summary of the changes that were tried."""

    rows: list[WhatIf]
    summary: str


def what_if(
    ran: ExecutionAnalysis,
    rerun: Rerun,
    progress: Callable[[int, int], None],
    cancelled: Callable[[], bool],
) -> ChangeResults:
    """Returns the rows of the what-if table.

    First the changes that shorten the step by 0.1 % or more, those that gain most first; then 10 % less time
    on each part, the greatest gain first: of nodes and streams with the order of everything unchanged, of
    the network by running the set again.

    rerun: runs the set with other parameters. progress(done, total): called before each. Raises `Cancelled`.
    """
    search = Search(0, progress, cancelled)
    reruns = _Reruns(ran, rerun, search)
    of_parts = list(_parts(ran, cancelled))
    search.total = len(of_parts)
    rows = []
    # The rows from a pass of the graph come before those that need a run.
    for knob in of_parts:
        search.begin_next()
        rows.append(knob.sensitivity(ran.step_time_ns))
    changes = reruns.changes()
    rows += [knob.sensitivity(ran.step_time_ns) for knob in reruns.dimensions()]
    search.end()
    return ChangeResults([*changes, *sort_by_gain(row for row in rows if row is not None)], reruns.summary())


def _parts(ran: ExecutionAnalysis, cancelled: Callable[[], bool]) -> Iterator[Knob]:
    """Yields knobs of nodes by name, streams, and compute and communication as a whole."""
    parts = TraceParts(ran)
    nodes = [part for part in parts.by_words if part.startswith("nodes ")]
    nodes.sort(key=lambda part: (-parts.ns(part), part))
    left_out = set(nodes[_MOST_NAMES:])
    graph, parameters = ran.trace_graph, ran.parameters
    durations = graph.durations
    is_folded = len(ran.executed.units.first) < len(ran.ranks)
    for part, duration_ids in parts.by_words.items():
        if part in left_out:
            continue

        def step_ns(factor: float, duration_ids: list[int] = duration_ids) -> int:
            return graph.compute_step_ns(scale_durations(durations, duration_ids, factor), cancelled)

        scales = (*parameters.time_scale, f"{part}={BETTER}")
        covers_equal_ranks = is_folded and part.startswith("stream group ")
        name = _NAMES.get(part) or part.removeprefix("stream ")
        meaning = f"{name}: and the groups of the equal ranks" if covers_equal_ranks else ""
        yield Knob(name, step_ns, parameters.with_value("time_scale", scales), meaning=meaning)


class _Reruns:
    """Runs of a set with other parameters, within a budget of work."""

    def __init__(self, ran: ExecutionAnalysis, rerun: Rerun, search: Search) -> None:
        self.ran = ran
        self._rerun = rerun
        self._search = search
        self._base = ran.executed
        self._traffic = _count_traffic(self._base)
        self._left = _MOST_OF_ALL
        self._trials = self._trials_from(ran.setup, ran.step_time_ns)
        # Runs that are not changes, so that the summary does not count them.
        self._others = self._trials_from(ran.setup, ran.step_time_ns)
        self._not_tried = 0

    # -- changes -----------------------------------------------------------------------

    def changes(self) -> list[WhatIf]:
        """Returns the changes that gain, a family's one after another, and several of them together."""
        trials = self._trials
        candidates: list[Change] = []
        best: list[Change] = []
        families = [list(family) for family in _families(self._base, self._traffic)]
        self._search.total += sum(map(len, families))
        for family in families:
            gaining = _pick_distinct(trials, list(filter(trials.is_worthwhile, trials.keep_possible(family))))
            candidates += gaining[:_MOST_LISTED]
            best += gaining[:1]
        best.sort(key=trials.step_ns)
        if len(best) > 1:
            change = best[0]
            for other in best[1:]:
                both = _together(change, other)
                trials.outcome_of(both)
                if trials.is_worthwhile(both, change):
                    change = both
            if change is not best[0]:
                together = _TOGETHER if len(change.flags) > _MOST_FLAGS else ""
                candidates.append(replace(change, words=together))
        candidates.sort(key=lambda change: (trials.step_ns(change), change.flags))
        rows = [self._make_row(index, change) for index, change in enumerate(candidates)]
        return [row for row, holds in rows if holds] + [row for row, holds in rows if not holds]

    def _make_row(self, index: int, change: Change) -> tuple[WhatIf, bool]:
        """Returns the row of a change, and False if the change is known to gain nothing on shared links."""
        notes = [change.flags] if change.words else []
        holds = True
        if index < _CHECKED and self.ran.setup.network_name == "analytical":
            links = self._on_links
            there = None if links is None else links.outcome_of(change)
            if links is None or there is None:
                notes.append(
                    "here each message has the whole bandwidth; on links those sent at once share it"
                )
            else:
                now, then = links.base_ns, there.ns
                holds = links.is_worthwhile(change)
                change_there = f"{change_percent(now, then)}, {duration(now)} to {duration(then)}"
                notes.append(f"each message has the whole link; shared (--network links) {change_there}")
        row = self._trials.make_row(change)
        name = row.name if holds else f"{row.name} (no gain on links)"
        meaning = f"{row.name}: {'; '.join(notes)}" if notes else ""
        parameters = _apply_change(self.ran.setup, change).parameters
        return replace(row, name=name, parameters=parameters, meaning=meaning), holds

    @cached_property
    def _on_links(self) -> Trials | None:
        """The trials of changes on shared links; None where the run cannot be run there."""
        # A budget of its own: the work of the other trials does not leave the gains unchecked.
        self._left = _MOST_OF_ALL
        on_links = Change({"network": "links"})
        now = self._others.outcome_of(on_links)
        return None if now is None else self._trials_from(_apply_change(self.ran.setup, on_links), now.ns)

    def _trials_from(self, setup: Execution, base_ns: int) -> Trials:
        """Returns trials of changes to a run with these parameters, whose step is base_ns."""
        return Trials(base_ns, lambda change: self._try_run(_apply_change(setup, change)), self._search)

    def _try_run(self, setup: Execution) -> ChangeOutcome | None:
        """Returns the outcome of a run with these parameters; None also where it exceeds the budget."""
        work = _estimate_work(self._base, setup, self._traffic)
        if work > min(self._left, _MOST_OF_ONE):
            self._not_tried += 1
            return None
        self._left -= work
        other = self._rerun(setup)
        return ChangeOutcome(other.step_time_ns, has_effect=not has_equal_times(other.executed, self._base))

    def summary(self) -> str:
        """Returns how many changes were tried, which of them have no effect, and how many were not tried."""
        if self._base.states_times:
            return (
                "No change of the network is tried: the files state what their collectives take; "
                "--cluster, --dim or --system prices them"
            )
        outcomes = {flags: one for flags, one in self._trials.outcomes.items() if one is not None}
        outcome_count = len(outcomes)
        if not outcome_count and not self._not_tried:
            return ""
        sentences = [
            f"{plural(outcome_count, 'change')} of collectives and messages tried" if outcome_count else ""
        ]
        some = [flags.removeprefix("--") for flags, one in outcomes.items() if not one.has_effect]
        if some:
            listed = ", ".join(some[:_MOST_NAMED])
            more = f" and {len(some) - _MOST_NAMED} more" if len(some) > _MOST_NAMED else ""
            sentences.append(f"without any effect on this run: {listed}{more}")
        if self._not_tried:
            sentences.append(f"{self._not_tried} not tried, as the run is large")
        return "; ".join(sentence for sentence in sentences if sentence)

    # -- the network -------------------------------------------------------------------

    def dimensions(self) -> Iterator[Knob]:
        """Yields knobs of bandwidth and latency of each dimension; none where no network prices anything."""
        dims = self._base.cluster.dims
        if not self._traffic or self._base.states_times:
            return
        for index, dim in enumerate(dims):
            for what in ("bandwidth", "latency") if dim.size > 1 else ():

                def cheaper(factor: float, index: int = index, what: str = what) -> Change:
                    return _cheaper_dimension(dims, index, what, factor)

                def step_ns(factor: float, cheaper: Callable[[float], Change] = cheaper) -> int | None:
                    outcome = self._others.outcome_of(cheaper(factor))
                    return None if outcome is None else outcome.ns

                parameters = _apply_change(self.ran.setup, cheaper(BETTER)).parameters
                yield Knob(f"dimension {index} {what}", step_ns, parameters)


def warn_of_ignored(ran: ExecutionAnalysis, rerun: Rerun, fields: Sequence[str]) -> list[Diagnostic]:
    """Returns a warning for each explicit one of some parameters that changes no node's start or end.

    A run of more than 100,000 nodes and messages is not run again for it.
    """
    base, parameters = ran.executed, ran.parameters
    stated_flags = [flag for flag in parameters.explicit_flags() if flag.field in fields]
    traffic = _count_traffic(base)
    diagnostics = []
    for flag in stated_flags:
        default_setup = ran.setup.with_changes(**{flag.field: flag.default})
        if _estimate_work(base, default_setup, traffic) > _MOST_TO_CHECK:
            continue
        try:
            other = rerun(default_setup).executed
        except (InputError, UsageError):
            continue
        if has_equal_times(other, base):
            message = f"{flag.option} has no effect on this run: every node starts and ends as without it"
            diagnostics.append(Diagnostic("warning", "parameter-ignored", message, base.traces.path))
    return diagnostics


def has_equal_times(executed: ExecutionResult, other: ExecutionResult) -> bool:
    """Returns whether every node of every rank starts and ends at the same time in both."""
    return executed.start == other.start and executed.end == other.end


def _count_traffic(executed: ExecutionResult) -> Counter[tuple[str, int]]:
    """Returns how many collectives of each kind and group size go over the network; messages as ("", 2)."""
    traffic: Counter[tuple[str, int]] = Counter()
    if executed.system.replay:
        return traffic
    sizes = Counter(executed.units.of)
    nodes: Counter[tuple[str, int]] = Counter()
    cache: dict[tuple[int, int], tuple[str, int] | None] = {}
    for unit, rank in enumerate(executed.units.first):
        rank_nodes = executed.nodes[rank]
        types, sets = rank_nodes.columns.type, rank_nodes.columns.attributes
        for index, row in enumerate(rank_nodes.row):
            if types[row] not in (COLL, SEND, RECV):
                continue
            key = (types[row], sets[row])
            if key not in cache:
                cache[key] = _traffic_kind(executed, rank, index, types[row])
            what = cache[key]
            if what is not None:
                nodes[what] += sizes[unit]
    for (kind, members), count in nodes.items():
        traffic[kind, members] = -(-count // members)
    return traffic


def _traffic_kind(executed: ExecutionResult, rank: int, index: int, type_of: int) -> tuple[str, int] | None:
    if type_of != COLL:
        return "", 2
    group = executed.group_of(rank, index)
    kind = COLLECTIVES.get(integer(executed.attributes(rank, index).get("comm_type")) or 0)
    if group is None or kind is None or len(group[1]) < 2 or kind in executed.system.custom:
        return None
    return kind, len(group[1])


def _rules(executed: ExecutionResult) -> Rules:
    """Returns the rules of collectives in force."""
    if executed.is_astra:
        return collective_rules(executed.setup, executed.cluster)
    return make_rules(executed.cluster)


def _estimate_work(executed: ExecutionResult, setup: Execution, traffic: Counter[tuple[str, int]]) -> int:
    """Returns about how many nodes and messages a run with these parameters has; closed forms have none."""
    parameters = setup.parameters
    if not executed.is_astra and parameters.network != "links":
        nodes = sum(len(executed.nodes[rank]) for rank in executed.units.first)
        return nodes + _OF_A_RANK * len(executed.nodes)
    total = sum(map(len, executed.nodes))
    rules = _rules(executed)
    if parameters.splits is not None:
        rules = rules._replace(splits=parameters.splits)
    for (kind, members), count in traffic.items():
        total += count * estimate_messages(executed.cluster, members, kind, rules) if kind else count
    return total


def _pick_distinct(trials: Trials, some: list[Change]) -> list[Change]:
    """Returns the best changes, best first; of those that take about as long the first, which changes
    least.
    """
    apart, left = [], some
    while left:
        beyond = min(map(trials.step_ns, left)) + trials.least_ns
        apart.append(next(change for change in left if trials.step_ns(change) < beyond))
        left = [change for change in left if trials.step_ns(change) >= beyond]
    return apart


def _apply_change(setup: Execution, change: Change) -> Execution:
    """Returns the run with a change; its algorithms come behind the present ones, and override them."""
    fields = dict(change.fields)
    if "algorithm" in fields:
        fields["algorithm"] = (*setup.parameters.algorithm, *fields["algorithm"])
    return setup.with_changes(**fields)


def _together(change: Change, other: Change) -> Change:
    both = change.combine(other)
    if "algorithm" in change.fields and "algorithm" in other.fields:
        algorithms = (*change.fields["algorithm"], *other.fields["algorithm"])
        return replace(both, fields=both.fields | {"algorithm": algorithms})
    return both


def _cheaper_dimension(dims: Sequence[Dimension], index: int, attribute: str, factor: float) -> Change:
    """Returns a change of a dimension: its latency times `factor`, or its bandwidth over it, to the
    last digit.
    """
    changed = list(dims)
    changed[index] = changed[index].cheaper(attribute, factor, _NO_TIME_GBPS)
    return Change({"dim": tuple(dim.exact_flag() for dim in changed)})


# -- families of changes ---------------------------------------------------------------


def _families(executed: ExecutionResult, traffic: Counter[tuple[str, int]]) -> Iterator[Iterator[Change]]:
    """Yields families of changes of one kind each: the best of each is compared and combined with the
    others'.
    """
    if executed.states_times or not traffic:
        return
    parameters = executed.setup.parameters
    kinds = sorted({kind for kind, _ in traffic if kind})
    if kinds:
        rules = _rules(executed)
        # The families with most gain in most runs come first, as there may be no time for all.
        yield _chunks(rules)
        if executed.is_astra:
            yield (Change({"num_queues_per_dim": queue}) for queue in _QUEUES if queue != rules.queues)
        if len(executed.cluster.dims) > 1 and "ALLREDUCE" in kinds:
            word = "localBWAware" if rules.baseline else "baseline"
            yield iter([Change({"collective_optimization": word})])
        for kind in kinds:
            sizes = {members for sent_kind, members in traffic if sent_kind == kind}
            for index in range(len(executed.cluster.dims)):
                yield _algorithms(executed, rules, kind, index, sizes)
    if parameters.rendezvous_protocol == "true":
        yield iter([Change({"rendezvous_protocol": "false"})])


def _algorithms(
    executed: ExecutionResult, rules: Rules, kind: str, index: int, sizes: set[int]
) -> Iterator[Change]:
    """Yields the other algorithms of a collective on a dimension."""
    dims = executed.cluster.dims
    there = rules.algorithms.get(kind, ())
    size = dims[index].size
    # ASTRA-sim runs a smaller group as a ring unless one algorithm alone is listed (R5.7).
    of_groups = executed.is_astra and len(there) != 1 and len(executed.nodes) not in sizes
    if index >= len(there) or size < 2 or of_groups:
        return
    names = ["ring", "direct"]
    if not size & (size - 1) and kind != "ALLTOALL":
        names.append("halving-doubling")
        if kind == "ALLREDUCE" and len(dims) == 1:
            names.append("double-binary-tree")
    word = next(name for name, value in COLLECTIVE_NAMES.items() if value == kind)
    for name in names:
        if name != there[index]:
            yield Change({"algorithm": (f"{word}:{index}={name}",)})


def _chunks(rules: Rules) -> Iterator[Change]:
    """Yields more and fewer chunks, and other numbers of chunks that a dimension runs at a time."""
    splits, active = rules.splits or 1, rules.active_chunks
    others = [
        split for split in _SPLITS if split != splits and splits <= split * _STEP and split <= splits * _STEP
    ]
    for count in others:
        yield Change({"splits": count})
    for active_count in _ACTIVE:
        if active_count != active:
            yield Change({"active_chunks": active_count})
    for count in others:
        if count > max(active, 1):
            yield Change({"splits": count, "active_chunks": min(count, _ACTIVE[-1])})

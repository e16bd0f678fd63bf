"""The sentences on the critical path of executed nodes: by name, and its communication by group or kind."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal

from simcore.diagnostics import printable
from simcore.executing.columns import pattern_of
from simcore.kernel_names import short_name
from simcore.names import GROUP_KINDS
from simcore.ranks import RankSet
from simcore.trace.critical_path import path_parts
from simcore.units import duration, join_with_figures, largest_keys, percent, plural, share_word
from simcore.words.rules import Sentence

if TYPE_CHECKING:
    from simcore.executing.execution_analysis import ExecutionAnalysis

_MOST_NAMES = 2
# The kind of groups whose kind is not known.
_UNKNOWN_GROUP = "comm"
# The parts without a group of their own, in words; where another group has all ranks, the words that tell
# them apart.
_ALL_RANKS, _MESSAGES, _COLLECTIVES = "all ranks", "messages", "collectives"
_GROUP_TEXTS = {
    _ALL_RANKS: "that of all ranks together",
    "alone": "what ranks do by themselves",
    _MESSAGES: "messages",
}
_UNNAMED_TEXT = "that of collectives that name no group"


class PathIs(Sentence, frozen=True, kw_only=True):
    """The names that take most of the critical path; names that differ only in a number are one."""

    rule = "critical-path"

    step_ns: int
    """The step time."""
    ns_of: dict[str, int]
    """The longest names, and their ns."""
    others: int
    """How many other names there are."""
    others_ns: int
    """The ns of the longest of these."""

    @property
    def text(self) -> str:
        names = [short_name(name, 40) for name in self.ns_of]
        shares = [f"{percent(ns, self.step_ns)} %" for ns in self.ns_of.values()]
        if next(iter(self.ns_of.values())) == self.step_ns:
            return f"The whole critical path is {names[0]}."
        words = f"Of the critical path {names[0]} takes {shares[0]}"
        words += "".join(f", {name} {share}" for name, share in zip(names[1:], shares[1:], strict=True))
        # Phases of a layer have names of their own: with many names the longest may not be of the longest
        # layer.
        if self.others:
            each = "each of " if self.others > 1 else ""
            less = "as much or less" if self.others_ns == [*self.ns_of.values()][-1] else "less"
            words += f", {each}{plural(self.others, 'other name')} {less}"
        return f"{words}."


def find_path_names(results: ExecutionAnalysis) -> Iterator[PathIs]:
    """Yields a sentence on every run; nodes of one name alone are named in full."""
    by_pattern: dict[str, int] = {}
    names: dict[str, set[str]] = {}
    for track, node_id, ns in results.critical_path:
        node = results.path_source.name(track, node_id)
        pattern = pattern_of(node)
        by_pattern[pattern] = by_pattern.get(pattern, 0) + ns
        names.setdefault(pattern, set()).add(node)
    sums = {
        next(iter(names[pattern])) if len(names[pattern]) == 1 else pattern: ns
        for pattern, ns in by_pattern.items()
    }
    most = sorted(sums.items(), key=lambda pair: (-pair[1], pair[0]))
    yield PathIs(
        step_ns=results.step_time_ns,
        ns_of=dict(most[:_MOST_NAMES]),
        others=len(most[_MOST_NAMES:]),
        others_ns=max((ns for _, ns in most[_MOST_NAMES:]), default=0),
    )


class PathCommunication(Sentence, frozen=True, kw_only=True):
    """The communication that takes most of the critical path."""

    rule = "path-communication"

    step_ns: int
    """The step time."""
    grouping: Literal["group", "kind", "messages"]
    """Whether `ns_of` is by group, by kind (where all kinds are known), or messages and collectives."""
    ns_of: dict[str, int]
    """All communication of the path, ns."""
    is_alone: bool = False
    """Whether there is no other group."""
    has_group_of_all: bool = False
    """Whether a named group has all ranks, too."""

    @property
    def text(self) -> str:
        whole_ns = sum(self.ns_of.values())
        if self.is_alone:
            return f"Communication on the critical path takes {self._figure_text(whole_ns)}."
        most = largest_keys(self.ns_of)
        share_text = share_word(sum(self.ns_of[name] for name in most), whole_ns)
        begin = "Of the communication on the critical path most is"
        if share_text != "most":
            begin = f"{share_text.capitalize()} communication on the critical path is"
        group_texts, figures = (
            [*map(self._group_text, most)],
            [self._figure_text(self.ns_of[name]) for name in most],
        )
        if len(most) == 1:
            return f"{begin} {group_texts[0]}: {figures[0]}."
        return f"{begin} {join_with_figures(group_texts, figures)}."

    def _group_text(self, name: str) -> str:
        if self.grouping == "kind":
            return "transfers between stages" if name == "pp" else f"{name} collectives"
        if self.grouping == "messages" or (name == _ALL_RANKS and self.has_group_of_all):
            return _UNNAMED_TEXT if name == _ALL_RANKS else name
        return _GROUP_TEXTS.get(name) or f"that of {printable(name, 40)}"

    def _figure_text(self, ns: int) -> str:
        return f"{duration(ns)}, {percent(ns, self.step_ns)} % of the step"


def find_path_communication(results: ExecutionAnalysis) -> Iterator[PathCommunication]:
    """Yields a sentence on a path with communication, unless `find_path_names` states the same.

    It is by kind of group where all kinds are known; otherwise by group.
    """
    step_ns, table = results.step_time_ns, results.group_table
    kinds = {name: ns for name, ns in _sum_path(results, "kind").items() if name in GROUP_KINDS}
    if len(kinds) > 1 and _UNKNOWN_GROUP not in kinds:
        yield PathCommunication(step_ns=step_ns, grouping="kind", ns_of=kinds)
        return
    groups = {name: ns for name, ns in _sum_path(results, "group").items() if name not in ("compute", "cpu")}
    whole_ns, messages_ns = sum(groups.values()), groups.get(_MESSAGES, 0)
    is_alone = len(groups) == 1 and (len(table) == 1 or messages_ns > 0)
    if not groups or (is_alone and whole_ns == step_ns):
        # The path is nothing else, and there is no other group: the names state it already.
        return
    if messages_ns >= max(groups.values()) and whole_ns - messages_ns > messages_ns:
        # Many smaller groups together can be longer than messages.
        ns_of = {_COLLECTIVES: whole_ns - messages_ns, _MESSAGES: messages_ns}
        yield PathCommunication(step_ns=step_ns, grouping="messages", ns_of=ns_of)
        return
    all_ranks = RankSet.of(results.ranks).text()
    yield PathCommunication(
        step_ns=step_ns,
        grouping="group",
        ns_of=groups,
        is_alone=is_alone and not messages_ns,
        has_group_of_all=any(use.group != _ALL_RANKS and use.ranks == all_ranks for use in table),
    )


def _sum_path(results: ExecutionAnalysis, by: str) -> dict[str, int]:
    """Returns the ns of each part of the path, without those of 0."""
    sums: dict[str, int] = {}
    for part, ns in path_parts(results.critical_path, results.path_source, by):
        sums[part] = sums.get(part, 0) + ns
    return {part: ns for part, ns in sums.items() if ns}

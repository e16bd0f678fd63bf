"""The sentence on what a step is spent on in one run and no longer in another, by their critical paths."""

from __future__ import annotations

from collections.abc import Iterator

from simcore.collectives import collectives_of
from simcore.names import GROUP_KINDS
from simcore.program.ops import PHASES, WG
from simcore.sources.simulated import EXPOSED_KINDS
from simcore.trace.figures import judge_times
from simcore.trace.run import Run, mean_busy_ns, sum_path
from simcore.units import change_percent, column_unit, in_unit
from simcore.words.rules import Sentence

COMPUTE = "compute"
_NOUNS = {"pp": "transfers between stages", "comm": "communication"}
_KINDS = frozenset((*EXPOSED_KINDS, *GROUP_KINDS))
# Communication is named where its change is at least this share of the largest change of the paths.
_WORTH_NAMING = 0.1
# The step waits anew for what takes so many times as long on the path.
_ANEW = 2


class PathShift(Sentence, frozen=True, kw_only=True):
    """How much longer or shorter a path computes, and the communication whose time on it changes most."""

    rule = "path-shift"

    compute_ns: tuple[int, int]
    """Compute of the path of A and of that of B, ns; 0 where ranks compute as long as before: then only the
    passes on the path are others.
    """
    kind: str = ""
    """The kind of that communication, "" where none changes much."""
    kind_ns: tuple[int, int] = (0, 0)
    """Its time on the path of A and of B, ns."""
    has_gradients: bool = False
    """Whether most of it are gradients."""

    @property
    def is_anew(self) -> bool:
        """Whether the path of B waits for something that is no more than half as long in A."""
        before, after = self.kind_ns
        return bool(self.kind) and after >= _ANEW * before

    @property
    def text(self) -> str:
        share = change_percent(*self.compute_ns)
        clauses = [f"{COMPUTE} {share}"] if judge_times(*self.compute_ns) != "neither" else []
        if self.kind:
            before, after = self.kind_ns
            waits = "now the step waits for" if self.is_anew else "the step waits longer for"
            if after < before:
                waits = "the step waits less for" if after else "the step no longer waits for"
            unit_ns, unit = column_unit(max(self.kind_ns))
            figures = f"{in_unit(before, unit_ns)} -> {in_unit(after, unit_ns)} {unit}"
            clauses.append(f"{waits} {self._noun}: {self.kind} on the path {figures}")
        return ", ".join(clauses)

    @property
    def _noun(self) -> str:
        if self.has_gradients:
            return "gradients"
        return _NOUNS.get(self.kind) or collectives_of(self.kind)


def find_path_shift(a: Run, b: Run) -> Iterator[PathShift]:
    """Yields a sentence on two runs whose critical paths differ in compute or in communication.

    Runs of two kinds name communication in other ways, and the path of a recorded run takes long: none.
    """
    is_recorded = a.recording is not None or b.recording is not None
    if is_recorded or a.trace.columns.keys() != b.trace.columns.keys():
        return
    sides = [_sum_kinds(run) for run in (a, b)]
    ns_of = {kind: (sides[0].get(kind, 0), sides[1].get(kind, 0)) for kind in {**sides[0], **sides[1]}}
    changes = {kind: abs(after - before) for kind, (before, after) in ns_of.items()}
    if not any(changes.values()):
        return
    of_groups = {kind: ns for kind, ns in changes.items() if kind in _KINDS}
    most = max(of_groups, key=lambda kind: (of_groups[kind], kind), default="")
    computes_as_long = judge_times(mean_busy_ns(a), mean_busy_ns(b)) == "neither"
    compute_ns = (0, 0) if computes_as_long else ns_of.get(COMPUTE, (0, 0))
    if not most or changes[most] < _WORTH_NAMING * max(changes.values()):
        yield PathShift(compute_ns=compute_ns)
        return
    before, after = ns_of[most]
    yield PathShift(
        compute_ns=compute_ns, kind=most, kind_ns=(before, after),
        has_gradients=_are_gradients(b if after >= before else a, most),
    )  # fmt: skip


def _sum_kinds(run: Run) -> dict[str, int]:
    """Returns the critical path by kind, ns, compute of all phases as one."""
    sums: dict[str, int] = {}
    for name, ns in sum_path(run, "kind"):
        kind = COMPUTE if name.split()[0] == COMPUTE else name
        sums[kind] = sums.get(kind, 0) + ns
    return sums


def _are_gradients(run: Run, kind: str) -> bool:
    """Returns whether most of a kind on the critical path is of the phase of weight gradients."""
    path, source = run.critical_path, run.figures.path_source
    of_kind = [index for index, (track, span, _) in enumerate(path) if source.kind(track, span) == kind]
    whole_ns = sum(path.lengths[index] for index in of_kind)
    indices = [index for index, one in zip(of_kind, source.segments(path, of_kind), strict=True)
               if one.phase == PHASES[WG]]  # fmt: skip
    return 2 * sum(path.lengths[index] for index in indices) > whole_ns

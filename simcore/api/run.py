"""One run of any kind, as Python has it: figures, tables, changes, pages."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import compress
from typing import TYPE_CHECKING, Any

from simcore.api.table import Table
from simcore.api.values import (
    WrongType,
    check_values,
    errors_in_keywords,
    in_keywords,
    keyword_types,
    split_factors,
    text,
    whole_number,
    with_keywords,
)
from simcore.diagnostics import UsageError
from simcore.records import replace
from simcore.trace import run as of_run
from simcore.trace.spans import COMMUNICATES, NONE, Column
from simcore.trace.track import Track
from simcore.units import duration, plural

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from simcore.api.keywords import RunKeywords


class CriticalPath:
    """The chain of segments that the step time is made of: each begins where the one before ends."""

    def __init__(self, run: of_run.Run) -> None:
        self._run = run

    def __len__(self) -> int:
        """Returns the number of its segments."""
        return len(self._run.critical_path)

    @property
    def groupings(self) -> tuple[str, ...]:
        """What `by` takes for this run."""
        return ("account", *self._run.figures.path_groupings)

    def by(self, what: str) -> dict[str, int]:
        """Returns {name: ns} of the path, the longest first; they sum to the step.

        what: of `groupings`: "account", by the names of `Run.accounts`; "kind", the same with communication
        by the kind of its group alone; "stage", "rank", and others. Raises `UsageError` for another.
        """
        if what not in self.groupings:
            raise UsageError(f"critical_path.by: found {what!r}, expected one of {', '.join(self.groupings)}")
        if what == "account":
            accounts = self._run.trace.categories.all
            kinds = of_run.sum_path(self._run, "kind")
            return {kind if kind in accounts else f"exposed {kind}": ns for kind, ns in kinds}
        return dict(of_run.sum_path(self._run, what))

    def segments(self) -> Table:
        """Returns a row for each segment, in the order of time.

        Columns: start_ns, end_ns, rank, kind, name, microbatch, and reason: why it could not begin earlier.
        """
        rows = list(self._run.figures.path_segments())
        return Table({
            "start_ns": [row.start_ns for row in rows], "end_ns": [row.end_ns for row in rows],
            "rank": [row.rank for row in rows], "kind": [row.kind for row in rows],
            "name": [row.layer for row in rows], "microbatch": [row.microbatch for row in rows],
            "reason": [row.reason for row in rows],
        })  # fmt: skip

    def __repr__(self) -> str:
        return f"<CriticalPath of {plural(len(self), 'segment')}>"


class Run:
    """A run: simulated, measured, replayed or executed. Its figures are computed on first use."""

    def __init__(self, run: of_run.Run) -> None:
        self._run = run

    @property
    def kind(self) -> str:
        """The kind of run: `simulated`, `measured`, `replayed` or `executed`."""
        return self._run.figures.kind

    @property
    def path(self) -> str:
        """The path of the input, as it was given."""
        return self._run.path

    @property
    def step_time_ns(self) -> int:
        """The time at which the last rank ends, ns from the start of the step."""
        return self._run.step_time_ns

    @property
    def ranks(self) -> int:
        """The number of its ranks."""
        return sum(len(track.ranks) for track in self._run.tracks)

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters that are not at their default: `load(...).run(**parameters)` is this run again."""
        return self._run.parameters.explicit_values()

    @property
    def sentences(self) -> list[str]:
        """The run in sentences, the main cause first."""
        return list(self._run.figures.words)

    @property
    def notes(self) -> list[str]:
        """Warnings and assumptions of reading and running."""
        return [in_keywords(one.text()) for one in self._run.diagnostics]

    def accounts(self, rank: int | None = None) -> dict[str, int]:
        """Returns where the time of a rank goes, {account: ns}: compute, exposed communication, wait, bubble.

        rank: one rank, whose accounts sum to the step; None: the mean of all, each rounded. Raises
        `UsageError` for an unknown rank.
        """
        if rank is None:
            return of_run.mean_ns(self._run)
        return of_run.means(
            self._run.trace.categories, [(self._run.accounts[self._find_track(rank).track_id], 1)]
        )

    def streams(self, rank: int | None = None) -> Table:
        """Returns a row for each stream: how a rank uses it in the step, ns. All but `compute` communicate.

        rank: one rank; None: the mean of all, each rounded. Columns: stream; busy_ns: something runs on it;
        overlapped_ns: that while the rank computes, None where a trace does not tell; exposed_ns: compute
        waits for it. Raises `UsageError` for an unknown rank.
        """
        figures = self._run.figures
        track = None if rank is None else self._find_track(rank)
        uses = [use for use, _ in figures.mean_streams]
        if track is not None:
            # An order without times has no streams.
            uses = [use for one in figures.streams[track.track_id :][:1] for use in one.streams]
        return Table({
            "stream": [use.stream for use in uses], "busy_ns": [use.busy_ns for use in uses],
            "overlapped_ns": [use.overlapped_ns for use in uses],
            "exposed_ns": [use.exposed_ns for use in uses],
        })  # fmt: skip

    @cached_property
    def critical_path(self) -> CriticalPath:
        """The chain of segments that the step time is made of."""
        return CriticalPath(self._run)

    def spans(self, rank: int | None = None) -> Table:
        """Returns a row for each span, in the order in which each track begins them.

        rank: those of one rank; None: of all, of equal ranks once. Columns: rank, the first of `ranks` equal
        ones; start_ns, ready_ns, end_ns: a span waits for others until it is ready; category: the account of
        its own time; then what this kind of run has: name, stream, row, microbatch, None where a span has
        none. Raises `UsageError` for an unknown rank.
        """
        tracks = self._run.tracks if rank is None else [self._find_track(rank)]
        columns: dict[str, list[Any]] = {}
        for track in tracks:
            for name, values in self._spans_of(track, rank).items():
                columns.setdefault(name, []).extend(values)
        return Table(columns)

    def _spans_of(self, track: Track, rank: int | None) -> dict[str, Sequence[Any]]:
        trace, track_id = self._run.trace, track.track_id
        track_id = trace.track_of[track_id] if trace.track_of else track_id
        spans, names = trace.spans[track_id], trace.column("name").of[track_id]
        # A span without a name is a gap. Launches on a device are spans of their own, too.
        waits = COMMUNICATES if self._run.recording is not None and trace.overlaps else NONE
        there = [name != NONE and level != waits for name, level in zip(names, spans.level, strict=True)]
        columns: dict[str, Sequence[Any]] = {
            "rank": [track.ranks.first if rank is None else rank] * len(spans),
            "ranks": [len(track.ranks) if rank is None else 1] * len(spans),
            "start_ns": spans.start, "ready_ns": spans.ready, "end_ns": spans.end,
            "category": [trace.categories.all[category] for category in spans.category],
        }  # fmt: skip
        for what in trace.columns:
            columns[what] = list(_labels(trace.column(what), track_id))
        return {name: list(compress(values, there)) for name, values in columns.items()}

    def layers(self) -> Table:
        """Returns a row for each layer, operation or node name: its time in the step, the longest first.

        Columns: name; rows: how many of the file it stands for, 0 of an operation; compute_ns, exposed_ns: on
        the rank where their sum is greatest; critical_ns: on the critical path; slack_ns: how much longer it
        may take before the step does, None of what takes no part in it.
        """
        nodes = self._run.figures.nodes
        lines = self._run.figures.layers(True) if nodes is None else nodes.names
        columns: dict[str, list[Any]] = {
            "name": [line.title for line in lines], "rows": [len(line.rows) for line in lines],
        }  # fmt: skip
        for figure in ("compute_ns", "exposed_ns", "critical_ns", "slack_ns"):
            columns[figure] = [getattr(line.use, figure) for line in lines]
        return Table(columns)

    def steps(self) -> Table:
        """Returns a row for each step and rank of files of several steps, whichever step is shown; empty of
        other runs.

        Columns: step, rank; ns: how long it lasts on the rank, None where the rank lacks it; compute_ns,
        wait_ns: until the last member of its communication has come; late_ns: how much less it waits than the
        median of its peers.
        """
        recording = self._run.recording
        table = None if recording is None else recording.as_read.step_table
        columns: dict[str, list[Any]] = {
            name: [] for name in ("step", "rank", "ns", "compute_ns", "wait_ns", "late_ns")
        }
        if table is None:
            return Table(columns)
        measures = (table.lengths, table.compute, table.waits, table.late)
        for index, rank in enumerate(table.ranks):
            is_there = [ns >= 0 for ns in table.lengths[index]]
            columns["step"] += table.steps
            columns["rank"] += [rank] * len(table)
            for name, by_rank in zip(("ns", "compute_ns", "wait_ns", "late_ns"), measures, strict=True):
                columns[name] += [
                    ns if there else None for ns, there in zip(by_rank[index], is_there, strict=True)
                ]
        return Table(columns)

    def what_if(self) -> Table:
        """Returns a row for each change: the step with it, the greatest gain first.

        Columns: list: `change`, which flags can make, or `sensitivity`; name; flags: of the command line, ""
        of a sensitivity; free_ns: the step if that part takes no time, None of a change; step_ns: with the
        change, or with 10 % less time of the part.
        """
        rows = self._run.what_if()
        return Table({
            "list": [row.list for row in rows], "name": [row.name for row in rows],
            "flags": [row.flags for row in rows], "free_ns": [row.free_ns for row in rows],
            "step_ns": [row.better10_ns for row in rows],
        })  # fmt: skip

    @with_keywords(keyword_types(), stays=True)
    @errors_in_keywords()
    def with_(
        self,
        *,
        bandwidth: Mapping[str | int, float] | None = None,
        latency: Mapping[int, float] | None = None,
        **parameters: Unpack[RunKeywords],
    ) -> Run:
        """Returns the same input run with some parameters changed; the others stay.

        bandwidth: factors, of a dimension by its index, `{0: 0.5}`; of a group by name, `{"tp": 0.5}`,
        whose communication then takes 1 / 0.5 of its time, latency included. latency: factors of dimensions.
        The others are those of `Input.run`. Raises `UsageError`.
        """
        new_parameters = replace(self._run.parameters, **check_values(parameters))
        for name, factor_by_key in (("bandwidth", bandwidth), ("latency", latency)):
            if factor_by_key is not None and not isinstance(factor_by_key, Mapping):
                raise WrongType(name, factor_by_key, "factors by dimension or group, like {0: 0.5}")
            if factor_by_key:
                new_parameters = replace(
                    new_parameters, **check_values(self._scale_network(name, factor_by_key, new_parameters))
                )
        return Run(self._run.with_parameters(new_parameters))

    def _scale_network(
        self, name: str, factor_by_key: Mapping[Any, float], parameters: Any
    ) -> dict[str, Any]:
        """Returns {field: value} of the parameters that put factors on dimensions and groups."""
        run = self._run if parameters == self._run.parameters else self._run.with_parameters(parameters)
        network = run.network
        by_dimension, by_group = split_factors(name, factor_by_key, network.dims)
        if by_group and name == "latency":
            raise UsageError(f"latency[{next(iter(by_group))!r}]: latency is of a dimension, by its number")
        changed: dict[str, Any] = {}
        if by_dimension:
            dims = []
            for index, dim in enumerate(network.dims):
                factor = by_dimension.get(index, 1.0)
                scaled = "latency_ns" if name == "latency" else "bandwidth"
                dims.append(replace(dim, **{scaled: getattr(dim, scaled) * factor}).exact_flag())
            changed["dim"] = dims
            if self._run.shape.simulated is not None:
                # Explicit dimensions would decide the ranks where the file does not.
                changed["world"] = self._run.shape.simulated.layout.world
        if by_group:
            field, of = ("kind_scale", "") if self._run.recording is not None else ("time_scale", "stream ")
            before = list(getattr(parameters, field))
            changed[field] = [*before, *(f"{of}{group}={1 / factor!r}" for group, factor in by_group.items())]
        return changed

    @property
    def tokens_per_s(self) -> float | None:
        """Tokens a second of all ranks; None where the input is not a model."""
        figures = self._run.model.model_figures
        return None if figures is None else figures.throughput.tokens_per_s

    @property
    def fits(self) -> bool | None:
        """Whether the fullest rank fits into the memory of its GPU; None where the input is not a model."""
        figures = self._run.model.model_figures
        return None if figures is None else figures.fits

    def memory(self) -> Table:
        """Returns a row for each pipeline stage of a model: what a rank of it needs, bytes; else no rows."""
        figures = self._run.model.model_figures
        stages = () if figures is None else figures.memory
        rows = [(one.stage, one.needed, None if figures is None else figures.limit) for one in stages]
        return Table(
            dict(zip(("stage", "needed", "limit"), zip(*rows, strict=True), strict=True)) if rows else {}
        )

    def report(self) -> str:
        """Returns the page of `wltui report`, plain text."""
        from simcore.render.report.pages import run_page

        return run_page(self._run)

    def to_dict(self) -> dict[str, Any]:
        """Returns all figures as `wltui report --json` has them, plain values."""
        from simcore.render.report.pages import run_json

        return run_json(self._run)

    @errors_in_keywords()
    def export(self, path: str | os.PathLike[str], format: str, force: bool = False) -> None:
        """Writes the run for another program: `wltui export --format`, gzip where the name ends in .gz.

        force: whether an existing file is overwritten.

        Raises `UsageError` for an unknown format or one that cannot hold it, and for an existing file.
        """
        from simcore.render.export import Request, check_output, find_format, write

        name = text("export", path, "the path of a file to write, as a text or pathlib.Path")
        export_format, setup = find_format(text("format", format), "format"), self._run.setup
        check_output(name, export_format.is_folder, force)
        write(export_format.build_export(Request(setup.source, setup.parameters, run=self._run)), name, force)

    def _find_track(self, rank: int) -> Track:
        rank_id = whole_number("rank", rank)
        track = next((track for track in self._run.tracks if rank_id in track.ranks), None)
        if track is None:
            raise UsageError(f"rank {rank}: not in this run of {plural(self.ranks, 'rank')}")
        return track

    def __repr__(self) -> str:
        untimed = "an order without times" if self._run.figures.has_step else "no step"
        step = duration(self.step_time_ns) if self._run.timed else untimed
        return f"<Run {self.path}: {self.kind}, {plural(self.ranks, 'rank')}, {step}>"

    def _repr_html_(self) -> str:
        from simcore.api.html import run_html

        return run_html(self._run)


def _labels(column: Column, track: int) -> Iterator[Any]:
    labels = [_plain(label) for label in column.labels]
    return (None if label == NONE else labels[label] for label in column.of[track])


def _plain(label: Any) -> Any:
    if isinstance(label, tuple):
        return " in ".join(str(part) for part in reversed(label) if part is not None)
    return label

"""The rows of the table of groups of a hung job, and where each is on the timeline."""

from __future__ import annotations

from simcore.render.report.hang import MemberLine, member_lines
from simcore.trace.figures import HangTables
from simcore.trace.findings import TrackInterval
from simcore.trace.run import Run


def hang_lines(tables: HangTables) -> list[MemberLine]:
    """Returns the rows of the table of groups."""
    return [line for group in tables.groups for line in member_lines(group)]


def find_interval(run: Run, line: MemberLine) -> TrackInterval | None:
    """Returns the last entry of a row's first rank in its group; None of a rank without a dump."""
    member = line.members[0]
    if member.track_id is None:
        return None
    stream = line.group.stream if line.group.stream in run.lanes.streams(member.track_id) else None
    spans = run.lanes.spans(member.track_id, stream)
    if not spans.start:
        return TrackInterval(member.track_id, 0, 1)
    return TrackInterval(member.track_id, spans.start[-1], spans.end[-1], stream)

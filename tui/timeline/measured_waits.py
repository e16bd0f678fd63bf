"""What an operation of a measured run waits, in words: in short at the cursor, all of it in the details."""

from __future__ import annotations

from collections.abc import Sequence

from simcore.measured.kernel_names import shown_name
from simcore.replay import MeasuredResults
from simcore.replay.waits import Wait
from simcore.units import duration
from tui.frame import cells


def wait_words(results: MeasuredResults, waits: Sequence[Wait]) -> str:
    """`waits 1.291 s for rank 0`; for several the sum, and who is waited for longest."""
    if not waits:
        return ""
    late: dict[int, int] = {}
    for one in waits:
        late[one.late] = late.get(one.late, 0) + one.ns
    most = max(late, key=lambda rank: late[rank])
    words = f"for rank {results.measured.ranks[most].number}"
    return f"waits {duration(sum(late.values()))}{f' {words}' if len(late) == 1 else f', most {words}'}"


def all_waits_words(results: MeasuredResults, waits: Sequence[Wait]) -> list[str]:
    """Each wait: how long, for whom, where, and what that rank did before."""
    return [_words(results, one) for one in waits]


def _words(results: MeasuredResults, one: Wait) -> str:
    rank = results.measured.ranks[one.late]
    who = f"rank {rank.number}" + ("" if rank.stage is None else f" of stage {rank.stage}")
    often = f", {one.times} times" if one.times > 1 else ""
    does = "sends" if one.sends else "comes last"
    behind = f", behind {cells(one.after, 40)}" if one.after else ""
    return f"{duration(one.ns)} for {who} in {cells(shown_name(one.name), 40)}{often}: it {does}{behind}"

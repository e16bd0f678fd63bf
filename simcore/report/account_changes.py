"""What changes in the accounts of two runs, and in the passes of their stages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from simcore.analysis.compare.parts import AccountChange
from simcore.report.changes import account_values, change_fields
from simcore.report.section import Field, PageAsked, field_lines, field_values
from simcore.run.track import ALIKE, ranks_of
from simcore.units import column_unit

if TYPE_CHECKING:
    from simcore.analysis.beside import LanePair, MatchedPass, StagePair
    from simcore.analysis.run import Run
    from simcore.analysis.two_runs import Compared
    from simcore.run.track import Track

# An account of the mean rank, and of those that are worst.
_Pair = tuple[AccountChange, AccountChange]
_PASS: list[Field[MatchedPass]] = [
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
    Field(key="accounts", value=lambda pair: account_values(pair.accounts)),
    Field(key="passes", value=lambda pair: field_values(_PASS, pair.passes)),
]


def lines(compared: Compared, asked: PageAsked) -> list[str]:
    """The accounts that there are, those that change most where there is no room for all, and the step."""
    step = AccountChange("step", compared.a.step_time_ns, compared.b.step_time_ns)
    unit_ns, unit = column_unit(max(step[1:]))
    there = [pair for pair in compared.account_pairs if any((*pair[0][1:], *pair[1][1:]))]
    kept = sorted(there, key=lambda pair: -max(abs(change.ns) for change in pair))[: asked.rows]
    shown = [*(pair for pair in there if pair in kept), (step, step)]
    fields: list[Field[_Pair]] = [
        Field(f"account, {unit}", lambda pair: pair[0].name, left=True),
        *change_fields(lambda pair: pair[0], unit_ns, "A"),
    ]
    # Runs that know no stages have none that changes most.
    if compared.worst is not None or any(stage.stage is not None for stage in compared.stages):
        fields += change_fields(lambda pair: pair[1], unit_ns, "A")
    left = len(there) - len(kept)
    more = f" ({left} that change less: --all)" if left else ""
    return [f"Accounts: {compared.accounts_title}{more}", *field_lines(fields, shown)]


def values(compared: Compared, asked: PageAsked) -> dict[str, Any]:
    """`accounts`, and `worst`, of the ranks that compute least, or `stages` and `lanes` that are paired."""
    accounts = {"accounts": account_values([mean for mean, _ in compared.account_pairs])}
    if compared.worst is None:
        stages, lanes = (
            field_values(_STAGE, compared.stages),
            [_lane(compared, lane) for lane in compared.lanes],
        )
        return {**accounts, "stages": stages, "lanes": lanes}
    of = zip("ab", (compared.a, compared.b), (compared.worst.a, compared.worst.b), strict=True)
    ranks = {f"{name}_ranks": ranks_of(run.tracks, number).text() for name, run, number in of}
    return {
        **accounts,
        "worst": {**ranks, "accounts": account_values([change for _, change in compared.account_pairs])},
    }


def _lane(compared: Compared, pair: LanePair) -> dict[str, Any]:
    sides = {"a": _track(compared.a, pair.a), "b": _track(compared.b, pair.b)}
    return {"stage": pair.stage, "ranks": pair.ranks, **sides}


def _track(run: Run, track: Track) -> dict[str, Any]:
    ns = zip(ALIKE, run.common_ns(track), strict=True)
    return {
        "first_rank": track.first_rank,
        "accounts_ns": {name: account_ns for name, account_ns in ns if account_ns},
    }

"""A measured run beside another run as JSON, schema `wltui.beside/1`: keys are added, never renamed."""

from __future__ import annotations

from typing import Any

from simcore.analysis.beside import Beside, LanePair, StagePair
from simcore.analysis.compare import Change
from simcore.analysis.run import Run
from simcore.report.beside_text import why_words
from simcore.report.changes import difference_percent
from simcore.run.accounts import ALIKE, OF_PROFILES
from simcore.run.track import Track

SCHEMA = "wltui.beside/1"


def beside_json(beside: Beside) -> dict[str, Any]:
    """All differences as plain values; times in ns, differences B - A."""
    return {
        "schema": SCHEMA,
        "a": _side(beside.a),
        "b": _side(beside.b),
        "difference_ns": beside.difference_ns,
        "difference_percent": difference_percent(beside.a.step_time_ns, beside.b.step_time_ns),
        "why": why_words(beside),
        "parts": [{"account": one.account, "difference_ns": one.ns} for one in beside.parts],
        "unlike": [{"what": name, "a": a, "b": b} for name, a, b in beside.unlike],
        "paired_by": "rank" if beside.by_rank else "stage",
        "accounts": _accounts(beside.whole),
        "stages": [
            {"stage": one.stage, "accounts": _accounts(one), "passes": _passes(one)} for one in beside.stages
        ],
        "lanes": [_lanes(beside, pair) for pair in beside.pairs],
        "movers": [
            {"stage": one.stage, "rank": one.rank, "kind": one.change.name, **_change(one.change)}
            for one in beside.movers
        ],
        "unchanged": beside.unchanged,
    }


def _side(side: Run) -> dict[str, Any]:
    return {
        "file": side.path,
        "run": side.stamp,
        "kind": side.origin,
        "step_time_ns": side.step_time_ns,
        "together": side.together,
        **side.shape._asdict(),
        "diagnostics": [one.values() for one in side.diagnostics],
    }


def _accounts(stage: StagePair) -> list[dict[str, Any]]:
    return [
        {"account": one.name, **_change(one)}
        for one in stage.accounts
        if one.a_ns or one.b_ns or one.name not in OF_PROFILES
    ]


def _passes(stage: StagePair) -> list[dict[str, Any]]:
    return [
        {
            "direction": one.a.direction, "microbatch": one.a.microbatch, "part": one.a.part,
            "a_start_ns": one.a.start_ns, "a_end_ns": one.a.end_ns,
            "b_start_ns": one.b.start_ns, "b_end_ns": one.b.end_ns,
        }
        for one in stage.passes
    ]  # fmt: skip


def _lanes(beside: Beside, pair: LanePair) -> dict[str, Any]:
    return {
        "stage": pair.stage,
        "ranks": pair.ranks,
        "a": _track(beside.a, pair.a),
        "b": _track(beside.b, pair.b),
    }


def _track(side: Run, track: Track) -> dict[str, Any]:
    return {
        "first_rank": track.first_rank,
        "accounts_ns": {name: ns for name, ns in zip(ALIKE, side.common_ns(track), strict=True) if ns},
    }


def _change(change: Change) -> dict[str, int]:
    return {"a_ns": change.a_ns, "b_ns": change.b_ns, "difference_ns": change.ns}

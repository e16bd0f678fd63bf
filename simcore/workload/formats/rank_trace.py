"""Megatron rank traces and schedule plans: measured runs, which `simcore.measured` opens."""

from __future__ import annotations

import re

from simcore.workload.formats.format import FileHead, Format

FIRST_LINE = re.compile(r"(rank|stage):([0-9]+):\w+\(")


def _is_rank_trace(head: FileHead) -> bool:
    return _kind(head) == "rank"


def _is_schedule_plan(head: FileHead) -> bool:
    return _kind(head) == "stage"


def _kind(head: FileHead) -> str:
    line = FIRST_LINE.match(head.first)
    return "" if line is None else line[1]


FORMATS: tuple[Format, ...] = (
    Format("Megatron rank trace", _is_rank_trace, kind="rank traces"),
    Format("schedule plan", _is_schedule_plan, kind="rank traces"),
)

"""Schedules drawn by themselves, as plain values: each action with its times, the figures of each stage."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from simcore.report.schedule_picture import Picture


def pictures_json(pictures: Sequence[Picture]) -> list[dict[str, Any]]:
    """The pictures; times in units of a micro-batch on a whole stage."""
    return [
        {
            "schedule": picture.name,
            "stages": len(picture.lanes),
            "microbatches": picture.microbatches,
            "microbatch_size": picture.size,
            "chunks": picture.parts,
            "copies": picture.copies,
            "length": picture.length,
            "steady_step": picture.steady,
            "bubble": picture.bubble,
            "held": picture.held,
            "lanes": [
                {
                    "stage": stage,
                    "busy": lane.busy,
                    "bubble": lane.bubble,
                    "held": lane.held * picture.size,
                    "held_chunks": lane.chunks,
                    "step_ends": list(lane.ends),
                    "actions": [box._asdict() for box in lane.boxes],
                }
                for stage, lane in enumerate(picture.lanes)
            ],
        }
        for picture in pictures
    ]

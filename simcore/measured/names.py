"""What the name of a trace file says: of which run and rank it is, and how the run was laid out.

`wd8_tp2_pp4_numl40_bs2_GPT2BPETokenizer_rank7_20240923205004.txt`; older names put `trace_rank7_`
in front, and some folders are called `pp2_tp2_ep1_expnNone_dpNone_nl4_hs512_sl2048`.
"""

from __future__ import annotations

import os
import re

from simcore.records import Struct

_RANK = re.compile(r"rank_?([0-9]{1,9})(?![0-9])")
# Of a schedule plan; a rank trace may be of ZeRO's stage 1.
_STAGE = re.compile(r"(?<![a-z])stage_?([0-9]{1,9})(?![0-9])")
_STAMP = re.compile(r"(?<![0-9])[0-9]{14}(?![0-9])")
_DEGREE = re.compile(r"(?:^|[_/])(wd|tp|pp|dp|exp)([1-9][0-9]{0,8})(?=[_./]|$)")


class Degrees(Struct, frozen=True):
    """Degrees of parallelism, None where they are not known. exp: the expert-parallel degree."""

    world: int | None = None
    tp: int | None = None
    dp: int | None = None
    pp: int | None = None
    exp: int | None = None

    def position(self, rank: int) -> tuple[int, int, int] | None:
        """(tp, dp, stage) of a rank, order tp-dp-pp with tp fastest; None if a degree is not known."""
        if self.tp is None or self.dp is None or self.pp is None or rank >= self.tp * self.dp * self.pp:
            return None
        return rank % self.tp, rank // self.tp % self.dp, rank // (self.tp * self.dp)


class TraceName(Struct, frozen=True):
    """key: the name without rank (or stage) and stamp, equal for all files of a run. stamp: 14 digits."""

    key: str
    stamp: str | None
    rank: int | None
    degrees: Degrees


def read_name(path: str, unit: str = "rank") -> TraceName:
    """What the file's name and, where that says nothing of it, its folder's name say.

    unit: what its lines count, `rank`, or `stage` in a schedule plan: the files of a plan may differ in that.
    """
    folder, name = os.path.split(os.path.abspath(path))
    name = name.removesuffix(".gz")
    stamps = _STAMP.findall(name)
    rank = _RANK.search(name)
    key = _STAMP.sub("*", _RANK.sub("rank*", name))
    if unit == "stage":
        key = _STAGE.sub("stage*", key)
    return TraceName(key, stamps[-1] if stamps else None, int(rank[1]) if rank else None,
                     _degrees(name, os.path.basename(folder)))  # fmt: skip


def _degrees(name: str, folder: str) -> Degrees:
    degrees: dict[str, int] = {}
    for text in (name, folder):
        for key, value in _DEGREE.findall(text):
            degrees.setdefault(key, int(value))
    world, tp, pp, dp = (degrees.get(key) for key in ("wd", "tp", "pp", "dp"))
    if tp is not None and pp is not None:
        if world is None and dp is not None:
            world = tp * pp * dp
        elif world is not None:
            # The name may state a dp of its own meaning; ranks / (tp x pp) is what Megatron makes of it.
            dp = world // (tp * pp) if world % (tp * pp) == 0 else None
    return Degrees(world, tp, dp, pp, degrees.get("exp"))

"""Names of groups in few words, and times of the wall clock."""

from __future__ import annotations

import re
from datetime import datetime, timedelta

from simcore.flight.record import Group
from simcore.ranks import RankSet

_WORD = re.compile(r"[^a-z0-9]+")
_SHORT = {
    "tensor": "tp", "tp": "tp", "data": "dp", "dp": "dp", "pipeline": "pp", "pp": "pp", "expert": "ep",
    "ep": "ep", "context": "cp", "cp": "cp", "sequence": "sp", "embedding": "emb", "position": "pos",
    "fsdp": "fsdp", "shard": "shard", "replicate": "rep",
}  # fmt: skip
# Words that every group has.
_COMMON = {"model", "parallel", "group", "and", "with", "pg", "process", "mesh"}
# The kinds of the groups on the timeline, by their short names.
_KINDS = {"tp": "tp", "dp": "dp", "dp-cp": "dp", "pp": "pp", "emb": "pp", "pos-emb": "pp", "ep": "ep",
          "cp": "cp", "ep-dp": "dp_ep", "all": "all", "fsdp": "dp", "shard": "dp_shard",
          "rep": "dp_replicate"}  # fmt: skip
_SECOND = 10**9


def short_group(description: str) -> str:
    """Returns `tp`, `ep-dp`: a group's description in few letters; raw text of the file where none fit."""
    words = [word for word in _WORD.split(description.lower()) if word]
    if words[:1] in (["default"], ["world"]) or description == "0":
        return "all"
    short = [_SHORT.get(word, word) for word in words if word not in _COMMON]
    return "-".join(dict.fromkeys(short)) or description or "group"


def kind_of_group(description: str) -> str:
    """Returns the kind that a timeline draws a group as; `comm` where none fits."""
    short = short_group(description)
    return _KINDS.get(short, _KINDS.get(short.partition("-")[0], "comm"))


def group_text(group: Group) -> str:
    """Returns `EXPERT_MODEL_PARALLEL_GROUP (ranks 12-15)`; raw text of the file."""
    name = group.description or "a group without a name"
    several = f" no. {group.ordinal + 1}" if group.ordinal else ""
    return f"{name}{several} ({ranks_text(group.ranks)})"


def ranks_text(ranks: tuple[int, ...]) -> str:
    """Returns `rank 12`, `ranks 9,14`, `ranks 0-7`."""
    return f"rank{'' if len(ranks) == 1 else 's'} {RankSet.of(ranks).text()}"


def wall_clock(time_ns: int, digits: int = 3) -> str:
    """Returns `2025-09-23 06:55:05.926`: ns since 1970, in UTC."""
    return f"{_date(time_ns)} {clock_of_day(time_ns, digits)}"


def clock_of_day(time_ns: int, digits: int = 3) -> str:
    """Returns `06:55:05.926`: ns since 1970, in UTC."""
    seconds, ns = divmod(time_ns, _SECOND)
    seconds %= 86400
    text = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    return f"{text}.{ns:09d}"[: 9 + digits] if digits else text


def _date(time_ns: int) -> str:
    try:
        return (datetime(1970, 1, 1) + timedelta(days=time_ns // _SECOND // 86400)).date().isoformat()
    except OverflowError:
        return f"day {time_ns // _SECOND // 86400}"

"""Collectives that state the same share one object, and each has what it states when it is read alone."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from simcore.kineto.reading import read_file_events
from simcore.measured.columns import CollectiveInfo

_KERNEL = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
_USUAL: dict[str, Any] = {
    "Collective name": "allreduce", "In msg nelems": 1024, "Out msg nelems": 1024, "Group size": 8,
    "dtype": "BFloat16", "Process Group Name": "0", "Process Group Description": "default_pg",
    "Process Group Ranks": "[0, 1, 2, 3, 4, 5, 6, 7]", "In split size": "[]", "Seq": 7,
}  # fmt: skip
# True == 1 == 1.0, and each means something else.
_ODD = [True, 1, 1.0, "1", None, [], [1, 2], {"a": 1}, "[0, 1]", -5, 2**70, "send"]
_Statement = dict[str, Any]


def _events(number: int, statement: _Statement, is_on_call: bool) -> list[dict[str, Any]]:
    """The call of a collective, its launch and its kernel; who of them states it."""
    at, ids = number * 30.0, {"External id": number}
    kernel = {"device": 0, "stream": 7, "correlation": number} | ids
    parts = (
        ("cpu_op", "record_param_comms", 1, at, 9, ids | (statement if is_on_call else {})),
        ("cuda_runtime", "cudaLaunchKernelExC", 1, at + 2, 2, {"cbid": 211, "correlation": number}),
        ("kernel", _KERNEL, 7, at + 5, 20, kernel | ({} if is_on_call else statement)),
    )  # fmt: skip
    return [
        {"ph": "X", "cat": cat, "name": name, "pid": 0, "tid": tid, "ts": ts, "dur": dur, "args": args}
        for cat, name, tid, ts, dur, args in parts
    ]


def _collectives(events: list[dict[str, Any]]) -> list[CollectiveInfo]:
    data = json.dumps({"distributedInfo": {"rank": 0, "world_size": 8}, "traceEvents": events}).encode()
    recordings, _ = read_file_events("trace.json", data)
    return list(recordings[0].columns.collectives.values())


def _make_statement(rng: random.Random) -> _Statement:
    statement = {key: value for key, value in _USUAL.items() if rng.random() < 0.9}
    for key in statement:
        if rng.random() < 0.2:
            statement[key] = rng.choice(_ODD)
    if rng.random() < 0.3:
        statement |= {"Input Dims": [[4, rng.randrange(3)]], "Input type": ["c10::BFloat16"]}
    return statement


@pytest.mark.parametrize("seed", range(20))
def test_each_collective_is_what_it_is_alone(seed: int) -> None:
    rng = random.Random(seed)
    parts = [_events(number, _make_statement(rng), rng.random() < 0.5) for number in range(1, 20)]
    whole = [event for part in parts for event in part]
    assert _collectives(whole) == [one for part in parts for one in _collectives(part)]


@pytest.mark.parametrize("is_on_call", [False, True])
def test_what_is_alike_is_one_object(is_on_call: bool) -> None:
    statement = {key: value for key, value in _USUAL.items() if key != "Seq"}
    events = [event for number in range(50) for event in _events(number, statement, is_on_call)]
    assert len({id(one) for one in _collectives(events)}) == 1


@pytest.mark.parametrize("is_on_call", [False, True])
def test_each_call_has_its_number(is_on_call: bool) -> None:
    events = [
        event for number in range(50) for event in _events(number, _USUAL | {"Seq": number}, is_on_call)
    ]
    assert [one.sequence for one in _collectives(events)] == [*range(50)]

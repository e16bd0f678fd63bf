"""Memory snapshots as PyTorch writes them, of an allocator that is simulated: keys and actions are those of
torch/csrc/cuda/Module.cpp and c10/cuda/CUDACachingAllocator.cpp.
"""

from __future__ import annotations

import pickle
import random
from pathlib import Path
from typing import Any

ROUND = 512
BEGIN_US = 1_760_000_000_000_000
BASE = 0x7F0000000000
MB = 1 << 20


def frames(*calls: tuple[str, str, int]) -> list[dict[str, Any]]:
    """A stack, the innermost first."""
    return [{"name": name, "filename": file, "line": line} for name, file, line in calls]


STACKS = [
    frames(
        ("empty_cuda", "??", 0),
        ("forward", "/env/lib/python3.12/site-packages/torch/nn/modules/linear.py", 116),
        (name, f"/train/{file}", line), ("main", "/train/train.py", 9),
    )
    for name, file, line in (
        ("forward", "model.py", 41), ("attention", "model.py", 77), ("loss", "train.py", 30)
    )
]  # fmt: skip


class Allocator:
    """One device. A request is rounded to 512 bytes and takes a free block, else a segment of its own kind:
    of 2 MiB up to 1 MiB, else of 20 MiB or its size; expandable, else what is mapped grows.
    """

    def __init__(self, device: int = 0, expandable: bool = False, first_us: int = BEGIN_US) -> None:
        self.device, self.expandable = device, expandable
        self.now = first_us
        self.events: list[dict[str, Any]] = []
        # Address -> (size, state, asked for, stack), by segment.
        self.segments: dict[int, list[list[Any]]] = {}
        self.next = BASE + (device << 40)

    def _record(self, action: str, address: int, size: int, stack: Any = None) -> None:
        self.now += 7
        key = "device_free" if action == "oom" else "addr"
        self.events.append(
            {"action": action, key: address, "size": size, "stream": 0, "time_us": self.now,
             "frames": [] if stack is None else stack}
        )  # fmt: skip

    def alloc(self, size: int, stack: Any = None) -> int:
        rounded = -(-size // ROUND) * ROUND
        for blocks in self.segments.values():
            for at, block in enumerate(blocks):
                if block[1] == "inactive" and block[0] >= rounded:
                    address = self._address(blocks, at)
                    if block[0] > rounded:
                        blocks.insert(at + 1, [block[0] - rounded, "inactive", 0, None])
                    blocks[at] = [rounded, "active_allocated", size, stack]
                    self._record("alloc", address, size, stack)
                    return address
        needed = 2 * MB if rounded <= MB else max(20 * MB, -(-rounded // (2 * MB)) * 2 * MB)
        self._reserve(needed, stack)
        return self.alloc(size, stack)

    def _reserve(self, size: int, stack: Any) -> None:
        address = self.next
        self.next += size if self.expandable else size + (1 << 30)
        self._record("segment_map" if self.expandable else "segment_alloc", address, size, stack)
        if self.expandable and self.segments:
            first = next(iter(self.segments))
            self.segments[first].append([size, "inactive", 0, None])
        else:
            self.segments[address] = [[size, "inactive", 0, None]]

    def _address(self, blocks: list[list[Any]], at: int) -> int:
        start = next(address for address, of in self.segments.items() if of is blocks)
        before: int = sum(block[0] for block in blocks[:at])
        return start + before

    def _find(self, address: int) -> list[Any]:
        for start, blocks in self.segments.items():
            for block in blocks:
                if start == address and block[1] != "inactive":
                    return block
                start += block[0]
        raise KeyError(address)

    def free(self, address: int, stack: Any = None, pending: bool = False) -> None:
        block = self._find(address)
        self._record("free_requested", address, block[2], stack or block[3])
        block[1] = "active_pending_free"
        if not pending:
            self.complete(address)

    def complete(self, address: int) -> None:
        block = self._find(address)
        self._record("free_completed", address, block[2], block[3])
        block[1:] = ["inactive", 0, None]

    def empty_cache(self) -> None:
        """Gives back segments that nothing is in."""
        for address, blocks in list(self.segments.items()):
            if all(block[1] == "inactive" for block in blocks) and not self.expandable:
                self._record("segment_free", address, sum(block[0] for block in blocks))
                del self.segments[address]

    def fail(self, size: int, free: int, stack: Any = None) -> None:
        self._record("oom", free, size, stack)

    def segment_dicts(self) -> list[dict[str, Any]]:
        results = []
        for address, blocks in self.segments.items():
            at, of_segment = address, []
            for size, state, asked, stack in blocks:
                of_segment.append(
                    {"address": at, "size": size, "requested_size": asked, "state": state,
                     "frames": [] if stack is None else stack}
                )  # fmt: skip
                at += size
            live = [block for block in blocks if block[1] == "active_allocated"]
            rounded, asked_for = (sum(block[of] for block in live) for of in (0, 2))
            results.append(
                {"device": self.device, "address": address, "total_size": at - address, "stream": 0,
                 "allocated_size": rounded, "active_size": rounded, "requested_size": asked_for,
                 "segment_type": "large", "segment_pool_id": (0, 0), "is_expandable": self.expandable,
                 "frames": [], "blocks": of_segment}
            )  # fmt: skip
        return results


def snapshot(*allocators: Allocator, keep: int | None = None, **more: Any) -> dict[str, Any]:
    """What `_snapshot()` returns. keep: how many events the ring of a device has."""
    for allocator in allocators:
        allocator._record("snapshot", 0, 0)
    expandable = any(allocator.expandable for allocator in allocators)
    count = 1 + max((allocator.device for allocator in allocators), default=-1)
    traces: list[list[dict[str, Any]]] = [[] for _ in range(count)]
    for allocator in allocators:
        traces[allocator.device] = allocator.events[-keep:] if keep else allocator.events
    return {
        "segments": [segment for allocator in allocators for segment in allocator.segment_dicts()],
        "device_traces": traces,
        "allocator_settings": {
            "PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True" if expandable else "",
            "max_split_size": -1, "garbage_collection_threshold": 0.0,
            "expandable_segments": expandable,
            "roundup_power2_divisions": {"1": 0, "2": 0},
        },
        "external_annotations": [],
    } | more  # fmt: skip


def write(path: Path, content: Any, protocol: int = 4) -> Path:
    path.write_bytes(pickle.dumps(content, protocol))
    return path


def random_run(seed: int, steps: int = 60, device: int = 0, expandable: bool = False) -> Allocator:
    """An allocator that does something at random."""
    choose = random.Random(seed)
    allocator = Allocator(device, expandable)
    live: list[int] = []
    pending: list[int] = []
    for _ in range(steps):
        what = choose.random()
        if live and what < 0.4:
            address = live.pop(choose.randrange(len(live)))
            waits = choose.random() < 0.2
            allocator.free(address, choose.choice([None, STACKS[0]]), waits)
            pending += [address] * waits
        elif pending and what < 0.5:
            allocator.complete(pending.pop())
        elif what < 0.55:
            allocator.empty_cache()
        elif what < 0.58:
            allocator.fail(choose.randrange(1, 1 << 30), choose.randrange(1 << 20), choose.choice(STACKS))
        else:
            size = choose.choice([1, 100, 512, 4000, MB, 3 * MB, 30 * MB])
            live.append(allocator.alloc(size, choose.choice([None, *STACKS])))
    return allocator


def count_again(content: dict[str, Any], device: int) -> dict[str, Any]:
    """What a device held, counted backwards from its segments, one event after another.

    Returns allocated and reserved after each event and before the first, the peak, and what each stack holds
    there; who allocated before the first event and gives it back is not known, which is not an empty stack.
    """
    segments = [one for one in content["segments"] if one["device"] == device]
    events = content["device_traces"][device] if device < len(content["device_traces"]) else []
    live: dict[int, tuple[int, Any]] = {}
    for segment in segments:
        for block in segment["blocks"]:
            if block["state"] == "active_allocated":
                live[block["address"]] = block["requested_size"], block["frames"]
    reserved = sum(segment["total_size"] for segment in segments)
    # Who allocated what an event gives back.
    owner: dict[int, Any] = {}
    of_free: dict[int, Any] = {}
    for index, event in enumerate(events):
        if event["action"] == "alloc":
            owner[event["addr"]] = event["frames"]
        elif event["action"] == "free_requested":
            of_free[index] = owner.pop(event["addr"], None)
    states = [(sum(size for size, _ in live.values()), reserved, dict(live))]
    for index in reversed(range(len(events))):
        event = events[index]
        action, size = event["action"], event["size"]
        if action == "alloc":
            del live[event["addr"]]
        elif action == "free_requested":
            live[event["addr"]] = size, of_free[index]
        elif action in ("segment_alloc", "segment_map"):
            reserved -= size
        elif action in ("segment_free", "segment_unmap"):
            reserved += size
        states.append((sum(bytes_ for bytes_, _ in live.values()), reserved, dict(live)))
    states.reverse()
    peak = max(range(len(states)), key=lambda at: (states[at][0], -at))
    holders: dict[str, list[int]] = {}
    for size, stack in states[peak][2].values():
        one = holders.setdefault(repr(stack), [0, 0])
        one[0] += size
        one[1] += 1
    return {
        "allocated": [state[0] for state in states], "reserved": [state[1] for state in states],
        "peak": peak - 1, "holders": sorted(map(tuple, holders.values())),
    }  # fmt: skip

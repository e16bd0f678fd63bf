"""One simulated rank: where it stands in its program, and the state of its streams."""

from __future__ import annotations

import re
from array import array
from collections import deque
from collections.abc import Iterator, Sequence

from simcore.program.ops import COMPUTE, STREAMS, TO_NEXT, OpRun, StageProgram
from simcore.records import NamedTuple

# What the engine does with an op. A LOCAL collective's members are all of this actor's class:
# they arrive together, so its start is known here. Others MEET.
RUN_COMPUTE, LOCAL_BLOCKING, LOCAL_ASYNCHRONOUS, MEET_BLOCKING, MEET_ASYNCHRONOUS, SEND = range(6)
NOT_YET = -1
# Fewer ops than this are timed one by one in less time.
_STRETCH = re.compile(b"[%c%c]{8,}" % (RUN_COMPUTE, LOCAL_BLOCKING))


class Codes(NamedTuple):
    """What the engine does with each op of a stage, one for all actors with the same local streams.

    firsts, lasts: the stretches of ops first..last-1 that hold compute and meet nobody.
    """

    of_op: bytes
    firsts: list[int]
    lasts: list[int]

    @classmethod
    def of(cls, program: StageProgram, local_streams: frozenset[int]) -> Codes:
        """local_streams: those whose collectives an actor alone decides on."""
        ops = program.ops
        table = bytearray(256)
        for stream in range(len(STREAMS)):
            for blocking in (0, 1):
                if stream == COMPUTE:
                    code = RUN_COMPUTE
                elif stream >= TO_NEXT:
                    code = SEND
                elif stream in local_streams:
                    code = LOCAL_BLOCKING if blocking else LOCAL_ASYNCHRONOUS
                else:
                    code = MEET_BLOCKING if blocking else MEET_ASYNCHRONOUS
                table[stream * 2 + blocking] = code
        # All of a column in one number: 1,024 actors of 2,700 ops have 2.7 M of them.
        stream, blocking = (int.from_bytes(column, "little") for column in (ops.stream, ops.blocking))
        codes = (stream * 2 + blocking).to_bytes(len(ops), "little").translate(bytes(table))
        stretches = [match_.span() for match_ in _STRETCH.finditer(codes)]
        return cls(codes, [first for first, _ in stretches], [last for _, last in stretches])


class Actor:
    """A rank class while it is simulated. Times are ns from the start of the step.

    start, end: columns over the ops, NOT_YET until known. free: when each stream is next
    free; channels: the same for each class that it sends to. peers: the class so many stages
    on. queued: ops issued on a stream whose meeting is not over, with their issue time.
    inbox: arrival of each message. parked: the message number or op index the actor waits for.
    step: what it does from where it stands, which goes on until it must wait again. run: where it stands.
    """

    __slots__ = (
        "channels",
        "codes",
        "durations",
        "end",
        "free",
        "groups",
        "inbox",
        "index",
        "parked_message",
        "parked_op",
        "pass_end_times",
        "peers",
        "program",
        "queued",
        "run",
        "start",
        "step",
        "time",
    )

    def __init__(
        self,
        index: int,
        program: StageProgram,
        codes: Codes,
        durations: Sequence[int],
        groups: dict[int, int],
        local_streams: frozenset[int],
        peers: dict[int, int],
    ) -> None:
        self.index = index
        self.program = program
        self.durations = durations
        self.groups = groups
        self.peers = peers
        self.codes = codes
        count = len(program.ops)
        self.start = array("q", (NOT_YET,)) * count
        self.end = array("q", (NOT_YET,)) * count
        self.free = [0] * len(STREAMS)
        self.channels: dict[int, int] = {}
        self.queued: dict[int, deque[tuple[int, int]]] = {
            stream: deque() for stream in groups if stream not in local_streams
        }
        self.inbox: dict[int, int] = {}
        self.parked_message = NOT_YET
        self.parked_op = NOT_YET
        self.time = 0
        # By run at whose beginning a pass ends, when that was.
        self.pass_end_times = dict.fromkeys(program.pass_ends, NOT_YET)
        self.run = 0
        self.step: Iterator[None] = iter(())

    def pass_ends(self) -> tuple[int, ...]:
        """When each pass ended."""
        return tuple(self.pass_end_times[run] for run in self.program.pass_ends)

    def current_run(self) -> OpRun | None:
        """The run that the actor is in, None after its last."""
        runs = self.program.packed
        return runs[self.run] if self.run < len(runs) else None

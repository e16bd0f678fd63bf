"""One simulated rank: its position in its program and the state of its streams."""

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
    """What the engine does with each op of a stage; all actors with the same local streams share one."""

    of_op: bytes
    """The code of each op: RUN_COMPUTE to SEND."""
    firsts: list[int]
    """The first op of each stretch of ops that compute and meet nobody."""
    lasts: list[int]
    """The op behind the last one of each of these stretches."""

    @classmethod
    def of(cls, program: StageProgram, local_streams: frozenset[int]) -> Codes:
        """Returns the codes of a stage. local_streams: those whose collectives an actor alone decides on."""
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
        # The whole column is one integer: 1,024 actors of 2,700 ops have 2.7 M ops.
        stream, blocking = (int.from_bytes(column, "little") for column in (ops.stream, ops.blocking))
        codes = (stream * 2 + blocking).to_bytes(len(ops), "little").translate(bytes(table))
        stretches = [match_.span() for match_ in _STRETCH.finditer(codes)]
        return cls(codes, [first for first, _ in stretches], [last for _, last in stretches])


class Actor:
    """A rank class while it is simulated. Times are ns from the start of the step."""

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
        # Columns over the ops, NOT_YET until the time is known.
        self.start = array("q", (NOT_YET,)) * count
        self.end = array("q", (NOT_YET,)) * count
        # When each stream is next free, and the channel to each class that it sends to.
        self.free = [0] * len(STREAMS)
        self.channels: dict[int, int] = {}
        # Ops issued on a stream whose meeting is not over, with their issue time.
        self.queued: dict[int, deque[tuple[int, int]]] = {
            stream: deque() for stream in groups if stream not in local_streams
        }
        # Arrival of each message.
        self.inbox: dict[int, int] = {}
        # The message or the op that the actor waits for.
        self.parked_message = NOT_YET
        self.parked_op = NOT_YET
        self.time = 0
        # By run at whose beginning a pass ends, when that was.
        self.pass_end_times = dict.fromkeys(program.pass_ends, NOT_YET)
        # The index of the run that the actor is in.
        self.run = 0
        # What it does from there, which goes on until it must wait again.
        self.step: Iterator[None] = iter(())

    def pass_ends(self) -> tuple[int, ...]:
        """Returns when each pass ended."""
        return tuple(self.pass_end_times[run] for run in self.program.pass_ends)

    def current_run(self) -> OpRun | None:
        """Returns the run that the actor is in, None after its last."""
        runs = self.program.packed
        return runs[self.run] if self.run < len(runs) else None

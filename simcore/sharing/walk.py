"""The chunks of one transmission: each walks the phases, and a place serves a few at a time."""

from __future__ import annotations

from collections import deque

from simcore.sharing.flows import Transmission


class Walk:
    """Where the chunks of a transmission are. A place (dimension) serves waiting chunks in turn.

    All members go on together here: the same queues as those of an idle network, where ranks
    of a tree alone differ.
    """

    __slots__ = ("missing", "running", "transmission", "waiting")

    def __init__(self, transmission: Transmission) -> None:
        self.transmission = transmission
        self.missing = transmission.chunks
        self.waiting: dict[int, deque[tuple[int, int]]] = {}
        self.running: dict[int, int] = {}

    def begin(self) -> list[tuple[int, int]]:
        """(chunk, phase) of those that start at once."""
        for chunk in range(self.transmission.chunks):
            self._queue(chunk, 0)
        return self._serve(self.transmission.flows[0].place)

    def finish(self, chunk: int, phase: int) -> list[tuple[int, int]]:
        """(chunk, phase) of those that start when a chunk has finished a phase."""
        flows = self.transmission.flows
        place = flows[phase].place
        self.running[place] -= 1
        if phase + 1 == len(flows):
            self.missing -= 1
            return self._serve(place)
        self._queue(chunk, phase + 1)
        following = flows[phase + 1].place
        started = self._serve(place)
        return started if following == place else started + self._serve(following)

    def _queue(self, chunk: int, phase: int) -> None:
        place = self.transmission.flows[phase].place
        self.waiting.setdefault(place, deque()).append((chunk, phase))

    def _serve(self, place: int) -> list[tuple[int, int]]:
        waiting = self.waiting[place]
        started = []
        while waiting and self.running.get(place, 0) < self.transmission.active_chunks:
            self.running[place] = self.running.get(place, 0) + 1
            started.append(waiting.popleft())
        return started

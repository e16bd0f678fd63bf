"""The flows of a run as columns, one entry a flow, in the order in which they ended."""

from __future__ import annotations

from array import array

from simcore.records import NamedTuple


class Transmission(NamedTuple):
    """What flows were sent for: a collective, or a transfer, of the engine."""

    stream: int
    """The stream that it runs on."""
    rank_class: int
    """A rank class that sends."""
    start_ns: int
    job: int = 0
    """Which of several jobs it is of."""


class FlowLog:
    """When each flow was on its links. `transmissions` are what `label` counts."""

    def __init__(self) -> None:
        self.start_ns = array("q")
        self.end_ns = array("q")
        self.size = array("q")
        # Index into `transmissions`, -1 where there is none.
        self.label = array("i")
        self.route = array("i")
        # The directed links of each route: twice the index of a link, + 1 against it.
        self.routes: list[tuple[int, ...]] = []
        # Of routes over all equal paths, the share of the bytes on each link; on those of others are all.
        self.shares: dict[tuple[int, ...], tuple[float, ...]] = {}
        self.transmissions: list[Transmission] = []
        self._index: dict[tuple[int, ...], int] = {}

    def __len__(self) -> int:
        return len(self.start_ns)

    def add(self, links: tuple[int, ...], start_ns: int, end_ns: int, size: int, label: int) -> None:
        """Adds a flow whose last byte was sent at `end_ns`."""
        route = self._index.get(links)
        if route is None:
            route = self._index[links] = len(self.routes)
            self.routes.append(links)
        self.route.append(route)
        self.start_ns.append(start_ns)
        self.end_ns.append(end_ns)
        self.size.append(size)
        self.label.append(label)

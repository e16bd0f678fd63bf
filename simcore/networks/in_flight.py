"""The base of transports that move flows over the links of a topology."""

from __future__ import annotations

from sys import maxsize

from simcore.flows.traffic import FlowReport, FlowTraffic


class FlowsInFlight:
    """What is in flight, and what is over. A subclass has `start`, and then satisfies `PortTransport`."""

    def __init__(self, traffic: FlowTraffic) -> None:
        self.traffic = traffic
        self.over: list[object] = []

    def next_ns(self) -> int | None:
        """Returns when something happens next; None when no flow is in flight."""
        return self.traffic.now if self.over else self.traffic.next_ns()

    def run_ahead(self, last: int | None) -> int:
        """Runs some of what comes before `last`, at most until a transmission is over."""
        if self.over:
            return 0
        instants = self.traffic.run_until(maxsize if last is None else last - 1, self.over)
        if not self.over:
            self.traffic.settle()
        return instants

    def finished(self, now: int) -> list[object]:
        """Returns the tokens of what is over at `now`, in the order in which it ended."""
        self.traffic.run_until(now)
        over, self.over = self.over, []
        return over

    def settle(self, now: int) -> None:
        """Shares links anew, after all starts and ends of `now`."""
        self.traffic.settle()

    def uses(self) -> None:
        """Returns None: links are in `flow_report`."""

    def heat(self) -> None:
        """Returns None, as `uses`."""

    def flow_report(self) -> FlowReport:
        """Returns what the links carried, and when the last flow ended."""
        return self.traffic.report()

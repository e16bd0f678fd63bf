"""What stops a run of messages: of ASTRA-sim's exceptions and aborts, with the rule that says so."""

from __future__ import annotations


class Fault(Exception):
    """An exception there: one rank's event is cut off, or the program, by where it is raised.

    rank: whose event it is. node: the execution trace's node, None where no node is concerned.
    rule: what does not fit. there: what ASTRA-sim does then.
    """

    def __init__(self, rank: int, node: int | None, rule: str, there: str = "throws") -> None:
        super().__init__(rule)
        self.rank = rank
        self.node = node
        self.rule = rule
        self.there = there


class Stop(Fault):
    """An assertion or an exit there: it stops the program wherever it is raised."""

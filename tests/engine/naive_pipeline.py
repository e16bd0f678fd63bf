"""What an order takes, as naive as can be: actions one after another on each stage, nothing of rows or ops.

Transfers are free. Each turn every stage does what it can; it is over when nothing is left.
"""

from __future__ import annotations

from typing import NamedTuple

from simcore.program.order import Action, Order


class Times(NamedTuple):
    """ns of one micro-batch in one chunk."""

    forward: int
    input_grad: int
    weight_grad: int

    def of(self, kind: str) -> int:
        return {
            "F": self.forward,
            "I": self.input_grad,
            "W": self.weight_grad,
            "B": self.input_grad + self.weight_grad,
        }[kind]


# What is made and needed: "F" or "I", a micro-batch, a position.
Made = tuple[str, int, int]


def naive_pipeline(order: Order, times: Times, overlapped: bool = False) -> list[int]:
    """When each stage is done, ns. overlapped: a pair is one piece, which takes as long as both."""
    placement = order.placement
    pieces = [_pieces(actions, overlapped) for actions in order.stages]
    made: dict[Made, int] = {}
    now = [0] * len(pieces)
    place = [0] * len(pieces)
    moved = True
    while moved:
        moved = False
        for stage, actions in enumerate(pieces):
            while place[stage] < len(actions):
                piece = actions[place[stage]]
                positions = [placement.position(stage, action.chunk) for action in piece]
                needs = [
                    need
                    for action, position in zip(piece, positions, strict=True)
                    for need in _needs(action, position, placement.depth)
                ]
                if any(need not in made for need in needs):
                    break
                begin = max([now[stage], *(made[need] for need in needs)])
                now[stage] = begin + sum(times.of(action.kind) for action in piece)
                for action, position in zip(piece, positions, strict=True):
                    if action.kind != "W":
                        made["F" if action.kind == "F" else "I", action.microbatch, position] = now[stage]
                place[stage] += 1
                moved = True
    assert place == [len(actions) for actions in pieces], "an order that cannot go on"
    return now


def _pieces(actions: tuple[Action, ...], overlapped: bool) -> list[list[Action]]:
    pieces: list[list[Action]] = []
    joined = False
    for action in actions:
        if joined:
            pieces[-1].append(action)
        else:
            pieces.append([action])
        joined = overlapped and action.paired
    return pieces


def _needs(action: Action, position: int, depth: int) -> list[Made]:
    if action.kind == "F":
        return [("F", action.microbatch, position - 1)] if position else []
    if action.kind == "W":
        return [("I", action.microbatch, position)]
    last = position == depth - 1
    return [("F", action.microbatch, position) if last else ("I", action.microbatch, position + 1)]

"""Whether an order can be gone through to its end, without times: who stands where and waits for whom."""

from __future__ import annotations

from typing import NamedTuple

from simcore.program.order import Action, Order

# What an action makes: whether forward, a micro-batch, a position.
_Made = tuple[bool, int, int]


class Standstill(NamedTuple):
    """Stages that wait for each other in a ring. first: (stage, action) of one of them; words: all."""

    first: tuple[int, str]
    words: str


def standstill(order: Order, overlapped: bool = False) -> Standstill | None:
    """Where an order comes to a halt; None where it does not.

    overlapped: a pair begins when both of it have what they need.
    """
    walk = _Walk(order, overlapped)
    walk.go()
    return walk.ring()


class _Walk:
    def __init__(self, order: Order, overlapped: bool) -> None:
        self._order = order
        self._overlapped = overlapped
        self._made: set[_Made] = set()
        self._at = [0] * len(order.stages)
        # By what is missing: the stages that stand before it.
        self._waiting: dict[_Made, list[int]] = {}

    def go(self) -> None:
        """Let every stage go on until nothing moves."""
        awake = [*range(len(self._at))]
        while awake:
            stage = awake.pop()
            actions = self._order.stages[stage]
            while self._at[stage] < len(actions):
                missing = self._missing(stage)
                if missing is not None:
                    self._waiting.setdefault(missing, []).append(stage)
                    break
                for action in self._together(stage):
                    if action.kind != "W":
                        made = (action.kind == "F", action.microbatch, self._position(stage, action))
                        self._made.add(made)
                        awake += self._waiting.pop(made, [])
                    self._at[stage] += 1

    def _position(self, stage: int, action: Action) -> int:
        return self._order.placement.position(stage, action.chunk)

    def _together(self, stage: int) -> list[Action]:
        """The action at which a stage stands, and that which begins with it."""
        at, actions = self._at[stage], self._order.stages[stage]
        paired = self._overlapped and actions[at].paired
        return list(actions[at : at + 1 + paired])

    def _missing(self, stage: int) -> _Made | None:
        """What the stage's next action needs and nobody has made."""
        last = self._order.placement.depth - 1
        for action in self._together(stage):
            position, microbatch = self._position(stage, action), action.microbatch
            needed: _Made | None = None
            if action.kind == "F":
                needed = (True, microbatch, position - 1) if position else None
            elif action.kind == "W":
                needed = (False, microbatch, position)
            elif position == last:
                needed = (True, microbatch, position)
            else:
                needed = (False, microbatch, position + 1)
            if needed is not None and needed not in self._made:
                return needed
        return None

    def ring(self) -> Standstill | None:
        """The stages that wait for each other."""
        standing = [stage for stage, at in enumerate(self._at) if at < len(self._order.stages[stage])]
        if not standing:
            return None
        seen: dict[int, int] = {}
        stage = standing[0]
        path: list[tuple[int, _Made]] = []
        while stage not in seen:
            seen[stage] = len(path)
            missing = self._missing(stage)
            assert missing is not None
            path.append((stage, missing))
            stage = self._order.placement.at(missing[1], missing[2]).stage
        ring = path[seen[stage] :]
        words = []
        for place, (one, missing) in enumerate(ring):
            other = ring[(place + 1) % len(ring)][0]
            forward, microbatch, position = missing
            what = f"{position}{'F' if forward else 'B'}{microbatch}"
            words.append(f"rank {one} stands at {self._words(one)} and waits for {what} of rank {other}")
        return Standstill((ring[0][0], self._words(ring[0][0])), ", ".join(words))

    def _words(self, stage: int) -> str:
        action = self._order.stages[stage][self._at[stage]]
        return f"{self._position(stage, action)}{action.kind}{action.microbatch}"

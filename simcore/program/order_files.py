"""Schedule files: reads the order of a file, and checks that it can run.

Import from here: `open_order`, `check_order`, `ReadOrder`.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache

from simcore.diagnostics import Diagnostic, InputError
from simcore.program.order import Action, ChunkPosition, Order, Placement
from simcore.program.order_text import MOST_CELLS, OrderCell, OrderText, Transfer, cells_by_rank, read_text
from simcore.records import NamedTuple
from simcore.units import plural
from simcore.workload.opening import read_file

# The output of an action: (is it forward, micro-batch, position).
_ActionOutput = tuple[bool, int, int]


class Standstill(NamedTuple):
    """Stages that wait for each other in a ring.

    first: (stage, action) of one of them; words: all of them.
    """

    first: tuple[int, str]
    words: str


def find_deadlock(order: Order, overlapped: bool = False) -> Standstill | None:
    """Returns the ring of stages in which an order stops; None where it runs to its end.

    overlapped: whether a pair begins only when both of its actions have their inputs.
    """
    walk = _OrderWalk(order, overlapped)
    walk.go()
    return walk.ring()


class _OrderWalk:
    def __init__(self, order: Order, overlapped: bool) -> None:
        self._order = order
        self._overlapped = overlapped
        self._outputs: set[_ActionOutput] = set()
        self._at = [0] * len(order.stages)
        # Missing output -> the stages that wait for it.
        self._waiting: dict[_ActionOutput, list[int]] = {}

    def go(self) -> None:
        """Let every stage go on until none can."""
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
                        output = (action.kind == "F", action.microbatch, self._position(stage, action))
                        self._outputs.add(output)
                        awake += self._waiting.pop(output, [])
                    self._at[stage] += 1

    def _position(self, stage: int, action: Action) -> int:
        return self._order.placement.position(stage, action.chunk)

    def _together(self, stage: int) -> list[Action]:
        """Returns the next action of a stage, and the action that begins with it."""
        at, actions = self._at[stage], self._order.stages[stage]
        paired = self._overlapped and actions[at].paired
        return list(actions[at : at + 1 + paired])

    def _missing(self, stage: int) -> _ActionOutput | None:
        """Returns the input of the stage's next action that no stage has made; None where all are there."""
        last = self._order.placement.depth - 1
        for action in self._together(stage):
            position, microbatch = self._position(stage, action), action.microbatch
            needed: _ActionOutput | None = None
            if action.kind == "F":
                needed = (True, microbatch, position - 1) if position else None
            elif action.kind == "W":
                needed = (False, microbatch, position)
            elif position == last:
                needed = (True, microbatch, position)
            else:
                needed = (False, microbatch, position + 1)
            if needed is not None and needed not in self._outputs:
                return needed
        return None

    def ring(self) -> Standstill | None:
        """Returns the stages that wait for each other; None where none do."""
        standing = [stage for stage, at in enumerate(self._at) if at < len(self._order.stages[stage])]
        if not standing:
            return None
        first_visit: dict[int, int] = {}
        stage = standing[0]
        path: list[tuple[int, _ActionOutput]] = []
        while stage not in first_visit:
            first_visit[stage] = len(path)
            missing = self._missing(stage)
            assert missing is not None
            path.append((stage, missing))
            stage = self._order.placement.at(missing[1], missing[2]).stage
        ring = path[first_visit[stage] :]
        waits = []
        for index, (rank, missing) in enumerate(ring):
            other = ring[(index + 1) % len(ring)][0]
            forward, microbatch, position = missing
            what = f"{position}{'F' if forward else 'B'}{microbatch}"
            waits.append(f"rank {rank} stands at {self._words(rank)} and waits for {what} of rank {other}")
        return Standstill((ring[0][0], self._words(ring[0][0])), ", ".join(waits))

    def _words(self, stage: int) -> str:
        action = self._order.stages[stage][self._at[stage]]
        return f"{self._position(stage, action)}{action.kind}{action.microbatch}"


# Errors of one code that are listed: in a file that is no schedule every cell would be one.
_MOST_LISTED = 20


class ReadOrder(NamedTuple):
    """A schedule file."""

    path: str
    """As the user gave it."""
    order: Order
    """The order of the file."""
    form: str
    """`pytorch` or `plain`."""
    diagnostics: tuple[Diagnostic, ...]
    """What was found in reading it."""
    pairs_wait: str | None
    """Why its pairs cannot be overlapped; None where they can."""

    @property
    def format(self) -> str:
        """The name of its format among those of workloads and measured runs."""
        return "schedule"


def open_order(path: str) -> ReadOrder:
    """Returns the order in the file at `path`. Raises InputError where no order is there that can run."""
    try:
        state = os.stat(path)
        return _open_order(path, (state.st_mtime_ns, state.st_size))
    except (OSError, ValueError):
        # `read_file` raises the error with its reason.
        return _open_order(path, (0, 0))


@lru_cache(maxsize=4)
def _open_order(path: str, version: tuple[int, int]) -> ReadOrder:
    read, diagnostics = check_order(path)
    errors = [diagnostic for diagnostic in diagnostics if diagnostic.severity == "error"]
    if read is None or errors:
        raise InputError(*errors, all_diagnostics=tuple(diagnostics))
    return read


def check_order(path: str) -> tuple[ReadOrder | None, list[Diagnostic]]:
    """Returns the order in the file at `path`, None where it has errors, and all diagnostics.

    Raises InputError for a file that cannot be read at all.
    """
    data = read_file(path)
    text = data.decode("utf-8-sig", "replace")
    if text.count(",") + text.count(" ") > MOST_CELLS:
        message = f"found more than {MOST_CELLS} cells, expected a schedule"
        raise InputError(Diagnostic("error", "too-large", message, path, 1, 1))
    order_text, errors = read_text(path, text)
    if not order_text.cells and not errors:
        message = "found no action, expected `0F0,0F1,0B0 ...`, a line a rank, or `0: F0 F1 B0 ...`"
        errors.append(Diagnostic("error", "schedule-text", message, path, 1, 1))
    if not errors:
        errors = list(_Check(path, order_text).errors())
    if errors:
        return None, _limit_errors(errors)
    order = _build_order(order_text)
    notes = list(_left_out(path, order_text))
    stuck = find_deadlock(order)
    if stuck is not None:
        first = next(cell for cell in order_text.cells if (cell.rank, cell.words()) == stuck.first)
        message = f"the stages would wait for each other for ever: {stuck.words}"
        location = (path, first.line, first.column)
        return None, [*notes, Diagnostic("error", "schedule-deadlock", message, *location)]
    pairs = find_deadlock(order, overlapped=True)
    return ReadOrder(path, order, order_text.form, tuple(notes), pairs.words if pairs else None), notes


def _limit_errors(errors: list[Diagnostic]) -> list[Diagnostic]:
    """Returns the errors in the order of their places, of each code the first few and how many more there
    are.
    """
    listed: list[Diagnostic] = []
    counts: Counter[str] = Counter()
    for error in sorted(errors, key=lambda error: (error.line or 0, error.column or 0)):
        counts[error.code] += 1
        if counts[error.code] <= _MOST_LISTED:
            listed.append(error)
    for code, count in counts.items():
        if count > _MOST_LISTED:
            last = next(diagnostic for diagnostic in reversed(listed) if diagnostic.code == code)
            message = f"{count - _MOST_LISTED} more of this kind from here on are not listed"
            listed.append(Diagnostic("error", code, message, last.file, last.line, last.column))
    return listed


def _left_out(path: str, order_text: OrderText) -> Iterator[Diagnostic]:
    """Yields a note on each statement of a file that a run ignores."""
    counts = Counter(word for word, *_ in order_text.others)
    if counts:
        counts_text = " and ".join(f"{count} {word}" for word, count in counts.items())
        _, _, _, line, column = order_text.others[0]
        message = f"{counts_text} left out: the workload says when gradients and parameters are exchanged"
        yield Diagnostic("note", "schedule-left-out", message, path, line, column)


# -- what is wrong ---------------------------------------------------------------------


class _Check:
    """Finds what is missing, twice, beyond the micro-batches, misplaced or out of order."""

    def __init__(self, path: str, order_text: OrderText) -> None:
        self._path = path
        self._order_text = order_text
        self._ranks = [*cells_by_rank(order_text)]
        self._depth = 1 + max(cell.position for cell in order_text.cells)
        self._microbatches = self._count()
        # (position, micro-batch) -> its cells.
        self._cells: dict[tuple[int, int], list[OrderCell]] = {}
        for cell in order_text.cells:
            self._cells.setdefault((cell.position, cell.microbatch), []).append(cell)

    def _count(self) -> int:
        """Returns the number of micro-batches of the file: as many as most positions run forward and
        backward.
        """
        microbatches: dict[tuple[int, str], set[int]] = {}
        for cell in self._order_text.cells:
            if cell.kind != "W":
                kind = "F" if cell.kind == "F" else "B"
                microbatches.setdefault((cell.position, kind), set()).add(cell.microbatch)
        counts = Counter(map(len, microbatches.values()))
        return max(counts, key=lambda count: (counts[count], count), default=0)

    def errors(self) -> Iterator[Diagnostic]:
        """Yields all errors; those on placement and order only where nothing is missing or beyond."""
        diagnostics = [*self._check_ranks(), *self._check_microbatches()]
        diagnostics += [] if diagnostics else self._check_positions()
        diagnostics += [*self._check_sequence()]
        if not diagnostics and self._order_text.transfers:
            diagnostics += self._check_transfers()
        return iter(diagnostics)

    def _error(self, code: str, message: str, cell: OrderCell | Transfer | None) -> Diagnostic:
        line, column = (cell.line, cell.column) if cell is not None else (None, None)
        return Diagnostic("error", code, message, self._path, line, column)

    def _check_ranks(self) -> Iterator[Diagnostic]:
        for rank, cells in enumerate(self._ranks):
            if not cells:
                yield self._error("schedule-missing", f"rank {rank} has no action", None)

    def _check_microbatches(self) -> Iterator[Diagnostic]:
        count = self._microbatches
        for (position, microbatch), cells in self._cells.items():
            if microbatch >= count:
                for cell in cells:
                    yield self._error(
                        "schedule-beyond",
                        f"stage {position}: {cell.kind}{microbatch} is beyond the "
                        f"{plural(count, 'micro-batch')} of the file, 0 to {count - 1}",
                        cell,
                    )
        for position in range(self._depth):
            of_rank = next((cell for cell in self._order_text.cells if cell.position == position), None)
            if of_rank is None:
                yield self._error(
                    "schedule-missing", f"stage {position} has no action, stage {self._depth - 1} has", None
                )
                continue
            for microbatch in range(count):
                yield from self._check_microbatch(position, microbatch, of_rank)

    def _check_microbatch(self, position: int, microbatch: int, of_rank: OrderCell) -> Iterator[Diagnostic]:
        """Yields what is missing or twice of a micro-batch at a position. of_rank: a cell of that
        position.
        """
        cells = self._cells.get((position, microbatch), [])
        by_kind: dict[str, list[OrderCell]] = {}
        for cell in cells:
            for part in ("I", "W") if cell.kind == "B" else (cell.kind,):
                by_kind.setdefault(part, []).append(cell)
        whole = "I" not in by_kind and "W" not in by_kind
        for part in ("F", "I", "W"):
            there = by_kind.get(part, [])
            if not there and not (part == "W" and whole):
                name = "B" if part == "I" and whole else part
                near = cells[0] if cells else of_rank
                yield self._error(
                    "schedule-missing",
                    f"stage {position}: {name}{microbatch} is missing on rank {near.rank}",
                    near,
                )
            for again in there[1:]:
                if not (part == "W" and again.kind == "B"):  # reported for its I
                    first = there[0]
                    yield self._error(
                        "schedule-twice",
                        f"stage {position}: {again.kind}{microbatch} comes a second time"
                        f"{'' if again.kind == first.kind else f', after {first.kind}{microbatch}'}"
                        f", first in line {first.line}, column {first.column}",
                        again,
                    )

    def _check_positions(self) -> Iterator[Diagnostic]:
        ranks = self._order_text.ranks
        for (position, microbatch), cells in self._cells.items():
            elsewhere = next((cell for cell in cells if cell.rank != cells[0].rank), None)
            if elsewhere is not None:
                yield self._error(
                    "schedule-place",
                    f"stage {position}: micro-batch {microbatch} is on rank {elsewhere.rank} too, its "
                    f"{cells[0].kind} is on rank {cells[0].rank}",
                    elsewhere,
                )
                return
        if self._depth % ranks:
            near = next(cell for cell in self._order_text.cells if cell.position == self._depth - 1)
            yield self._error(
                "schedule-place",
                f"{plural(self._depth, 'stage')} on {plural(ranks, 'rank')}: each rank must have as many",
                near,
            )
            return
        for microbatch in range(self._microbatches):
            of_rank = Counter(self._cells[position, microbatch][0].rank for position in range(self._depth))
            for rank in range(ranks):
                if of_rank[rank] != self._depth // ranks:
                    yield self._error(
                        "schedule-place",
                        f"micro-batch {microbatch} is in {plural(of_rank[rank], 'stage')} on rank {rank}: "
                        f"of {self._depth} stages each of {ranks} ranks must have {self._depth // ranks}",
                        self._cells[0, microbatch][0],
                    )
                    return
        yield from self._check_routes()

    def _check_routes(self) -> Iterator[Diagnostic]:
        """Yields errors of routes. Several routes are copies of the model: they share no stage of a rank."""
        first_at: dict[tuple[int, ...], int] = {}
        for microbatch, route in enumerate(_routes(self._order_text, self._depth, self._microbatches)):
            first_at.setdefault(route, microbatch)
        for route, microbatch in first_at.items():
            for other, before in first_at.items():
                if before >= microbatch:
                    break
                shared = [position for position, rank in enumerate(route) if other[position] == rank]
                if shared:
                    apart = next(index for index, rank in enumerate(route) if other[index] != rank)
                    cell = self._cells[apart, microbatch][0]
                    yield self._error(
                        "schedule-place",
                        f"stage {apart} is on rank {cell.rank} for micro-batch {microbatch} and on rank "
                        f"{other[apart]} for micro-batch {before}, stage {shared[0]} on one rank for both",
                        cell,
                    )
                    return

    def _check_sequence(self) -> Iterator[Diagnostic]:
        """Yields each cell that comes on its rank before another cell whose output it needs."""
        for cells in self._ranks:
            index_of: dict[tuple[int, int, str], int] = {}
            for index, cell in enumerate(cells):
                for part in ("I", "W") if cell.kind == "B" else (cell.kind,):
                    index_of.setdefault((cell.position, cell.microbatch, part), index)
            for index, cell in enumerate(cells):
                for needed in self._needs_of(cell):
                    at = index_of.get(needed, -1)
                    if at > index:
                        yield self._error(
                            "schedule-order",
                            f"stage {cell.position}: {cell.kind}{cell.microbatch} comes before "
                            f"{cells[at].words()}, which it needs (line {cells[at].line}, column "
                            f"{cells[at].column})",
                            cell,
                        )

    def _needs_of(self, cell: OrderCell) -> list[tuple[int, int, str]]:
        position, microbatch = cell.position, cell.microbatch
        if cell.kind == "W":
            return [(position, microbatch, "I")]
        if cell.kind == "F":
            return [(position - 1, microbatch, "F")]
        after = [(position + 1, microbatch, "I")] if position + 1 < self._depth else []
        return [(position, microbatch, "F"), *after]

    def _check_transfers(self) -> Iterator[Diagnostic]:
        """Yields errors of SENDs and RECVs: each needs the other, behind the action that makes its data and
        before the action that needs it.
        """
        by_key: dict[tuple[bool, bool, int, int], Transfer] = {}
        for transfer in self._order_text.transfers:
            key = (transfer.sends, transfer.forward, transfer.position, transfer.microbatch)
            if key in by_key:
                message = f"{transfer.words()} comes a second time, first in line {by_key[key].line}"
                yield self._error("schedule-twice", message, transfer)
            by_key.setdefault(key, transfer)
        for transfer in by_key.values():
            step = 1 if transfer.forward == transfer.sends else -1
            other = (not transfer.sends, transfer.forward, transfer.position + step, transfer.microbatch)
            if other not in by_key:
                partner = transfer._replace(sends=not transfer.sends, position=transfer.position + step)
                message = f"{transfer.words()} has no {partner.words()}"
                yield self._error("schedule-missing", message, transfer)
            yield from self._check_transfer(transfer)
        for (position, microbatch), cells in self._cells.items():
            there = self._cells.get((position + 1, microbatch))
            if there is None or there[0].rank == cells[0].rank:
                continue
            for forward, at, makers in ((True, position, cells), (False, position + 1, there)):
                if (True, forward, at, microbatch) not in by_key:
                    name = f"{at}SEND_{'F' if forward else 'B'}{microbatch}"
                    kinds = ("F",) if forward else ("B", "I")
                    maker = next(cell for cell in makers if cell.kind in kinds)
                    yield self._error("schedule-missing", f"{name} is missing", maker)

    def _check_transfer(self, transfer: Transfer) -> Iterator[Diagnostic]:
        cells = self._ranks[transfer.rank]
        kinds = ("F",) if transfer.forward else ("B", "I")
        index = next(
            (
                index
                for index, cell in enumerate(cells)
                if (cell.position, cell.microbatch) == (transfer.position, transfer.microbatch)
                and cell.kind in kinds
            ),
            None,
        )
        if index is None:
            action = f"{transfer.position}{kinds[0]}{transfer.microbatch}"
            message = f"{transfer.words()}: rank {transfer.rank} has no {action}"
            yield self._error("schedule-place", message, transfer)
        elif transfer.sends and index >= transfer.after:
            message = f"{transfer.words()} comes before {cells[index].words()}, which makes what it sends"
            yield self._error("schedule-order", message, transfer)
        elif not transfer.sends and index < transfer.after:
            message = f"{transfer.words()} comes after {cells[index].words()}, which needs what it receives"
            yield self._error("schedule-order", message, transfer)


# -- the order -------------------------------------------------------------------------


def _routes(order_text: OrderText, depth: int, microbatches: int) -> list[tuple[int, ...]]:
    """Returns by micro-batch the rank at each position."""
    routes = [[0] * depth for _ in range(microbatches)]
    for cell in order_text.cells:
        routes[cell.microbatch][cell.position] = cell.rank
    return [tuple(route) for route in routes]


def _build_order(order_text: OrderText) -> Order:
    """Returns the order of a file without errors."""
    depth = 1 + max(cell.position for cell in order_text.cells)
    microbatches = 1 + max(cell.microbatch for cell in order_text.cells)
    parts = depth // order_text.ranks
    ranks_of = _routes(order_text, depth, microbatches)
    route_index = {route: index for index, route in enumerate(dict.fromkeys(ranks_of))}
    routes = []
    for route, copy_index in route_index.items():
        met = [0] * order_text.ranks
        positions = []
        for rank in route:
            positions.append(ChunkPosition(rank, copy_index * parts + met[rank]))
            met[rank] += 1
        routes.append(tuple(positions))
    placement = Placement(order_text.ranks, tuple(routes), tuple(route_index[route] for route in ranks_of))
    stages = tuple(
        tuple(
            Action(
                cell.kind,
                cell.microbatch,
                placement.at(cell.microbatch, cell.position).chunk,
                cell.paired,
            )
            for cell in cells
        )
        for cells in cells_by_rank(order_text)
    )
    return Order(placement, stages)

"""ASTRA-sim 2.x's rules said a second time, from the text, sharing no code with simcore: what random runs
must equal.

Nodes are dicts as encoding.py writes them; events are one heap by (time, order of putting), which gives the
order inside a tick. Phases of collectives are closures over their counts.
"""

from __future__ import annotations

import contextlib
import heapq
import itertools
import math
from collections import deque
from typing import Any


class Stopped(Exception):
    """The program ends."""


class Statistics(Stopped):
    """A finished rank's statistics throw: swallowed in the rank's own event."""


def simulate(setup: dict[str, Any]) -> dict[str, Any]:
    """{"finished": {rank: (end, exposed)}, "nodes": [{id: (start, end)}], "stopped": whether the program
    ended}.
    """
    dims, ranks, system = setup["dims"], setup["ranks"], setup["system"]
    world = math.prod(size for _, size, _, _ in dims)
    heap: list[Any] = []
    order = itertools.count()
    now = 0
    own: dict[tuple[int, int], list[Any]] = {}
    arrived: dict[Any, int] = {}
    posted: dict[Any, deque[Any]] = {}
    finished: dict[int, tuple[int, int]] = {}
    spans: list[dict[int, list[int | None]]] = [{} for _ in ranks]
    links: dict[Any, Any] = {}

    def put(delay: int, call: Any) -> None:
        heapq.heappush(heap, (now + delay, next(order), call))

    def put_own(rank: int, delay: int, call: Any) -> None:
        when = now + delay
        if when == 0:
            raise Stopped("event at 0")
        if (rank, when) not in own:
            own[rank, when] = []

            def run() -> None:
                for one in own[rank, when]:
                    with contextlib.suppress(Statistics):
                        one()
                del own[rank, when]

            put(delay, run)
        own[rank, when].append(call)

    # -- network -----------------------------------------------------------------------

    def place(rank: int, dim: int) -> int:
        for _, size, _, _ in dims[:dim]:
            rank //= size
        return rank % dims[dim][1]

    def flight(source: int, target: int, size: int) -> int:
        dim = next(one for one in range(len(dims)) if place(source, one) != place(target, one))
        kind, count, gib, latency = dims[dim]
        gap = abs(place(source, dim) - place(target, dim))
        hops = {"Ring": min(gap, count - gap), "FullyConnected": 1, "Switch": 2}[kind]
        return math.floor(hops * latency + size / (gib * 2**30 / 1e9))

    def arrive(key: Any, over: Any) -> None:
        if over:
            over()
        if posted.get(key):
            posted[key].popleft()()
        else:
            arrived[key] = arrived.get(key, 0) + 1

    def along(route: list[Any], key: Any, over: Any) -> None:
        if not route:
            arrive(key, over)
            return
        link = links.setdefault(route[0], [False, deque()])
        if link[0]:
            link[1].append((route, key, over))
        else:
            take(link, route, key, over)

    def take(link: Any, route: list[Any], key: Any, over: Any) -> None:
        _, _, gib, latency = dims[0]
        rate = gib * 2**30 / 1e9
        busy = math.floor(key[3] / rate)
        if now == 0 and busy == 0:
            raise Stopped("link at 0")
        link[0] = True
        put(math.floor(latency + key[3] / rate), lambda: along(route[1:], key, over))

        def free() -> None:
            link[0] = False
            if link[1]:
                take(link, *link[1].popleft())

        put(busy, free)

    def fly(key: Any, over: Any) -> None:
        _, source, target, size = key
        if setup["links"]:
            kind, count = dims[0][0], dims[0][1]
            if kind == "FullyConnected":
                stops = [source, target]
            elif kind == "Switch":
                stops = [source, "s", target]
            else:
                ahead = (target - source) % count
                turn = 1 if ahead <= count - ahead else -1
                stops = [source]
                while stops[-1] != target:
                    stops.append((stops[-1] + turn) % count)
            along([(a, b) for a, b in itertools.pairwise(stops)], key, over)
            return
        ns = flight(source, target, size)
        if now == 0 and ns == 0:
            raise Stopped("message at 0")
        put(ns, lambda: arrive(key, over))

    def wait(key: Any, call: Any) -> None:
        if arrived.get(key):
            arrived[key] -= 1
            put(0, call)
        else:
            posted.setdefault(key, deque()).append(call)

    def send(key: Any, over: Any) -> None:
        if setup["rendezvous"]:
            wait((("back", key[0]), key[2], key[1], 8192), lambda: fly(key, over))
        else:
            fly(key, over)

    def receive(key: Any, call: Any) -> None:
        if setup["rendezvous"]:
            fly((("back", key[0]), key[2], key[1], 8192), lambda: wait(key, call))
        else:
            wait(key, call)

    # -- collectives -------------------------------------------------------------------

    def reduction(size: int) -> int:
        rate = system.get("memory")
        return 3 * math.floor(size / (rate * 1e9) * 1e9) if rate else 0

    def tree(place_of: int, count: int, last: bool) -> tuple[Any, list[int]]:
        """(parent, children) by laying out the tree in order, node by node."""
        names: dict[Any, int] = {}
        numbers = itertools.count()

        def lay(low: int, high: int, path: str) -> None:
            if low > high:
                return
            middle = (low + high) // 2
            lay(low, middle - 1, path + "l")
            names[path] = next(numbers)
            lay(middle + 1, high, path + "r")

        if last:
            lay(0, count - 2, "t")
            names["root"] = next(numbers)
        else:
            names["root"] = next(numbers)
            lay(0, count - 2, "t")
        path = next(key for key, value in names.items() if value == place_of)
        if path == "root":
            return None, [names["t"]]
        kids = [names[path + side] for side in "lr" if path + side in names]
        return (names["root"] if path == "t" else names[path[:-1]]), kids

    def phase(rank: int, tag: int, one: dict[str, Any], done: Any) -> None:
        kind, algorithm, members, size = one["kind"], one["algorithm"], one["members"], one["size"]
        count, me, delay = len(members), members.index(rank), one["delay"]

        def out(target: int, amount: int) -> None:
            send((tag, rank, target, amount), None)

        def into(source: int, amount: int, call: Any) -> None:
            receive((tag, source, rank, amount), call)

        def through(amount: int | None, call: Any) -> None:
            if amount is None:
                put_own(rank, delay, call)
            else:
                put_own(rank, delay, lambda: put_own(rank, reduction(amount), call))

        if algorithm in ("doubleBinaryTree", "halvingDoubling") and count & (count - 1):
            return
        if algorithm == "doubleBinaryTree":
            parent, kids = tree(me, count, one["last_root"])
            up = None if parent is None else members[parent]
            down = [members[kid] for kid in kids]
            summed = 0

            def finish_down() -> None:
                for kid in down:
                    out(kid, size)
                done()

            def inner_up() -> None:
                nonlocal summed
                summed += 1
                if summed < len(down):
                    return
                if up is None:
                    finish_down()
                else:
                    out(up, size)
                    into(up, size, lambda: through(size, finish_down))

            def leaf_up() -> None:
                out(up, size)  # type: ignore[arg-type]
                into(up, size, lambda: through(None, done))  # type: ignore[arg-type]

            if down:
                for kid in down:
                    into(kid, size, lambda: through(size, inner_up))
            else:
                through(None, leaf_up)
            return

        tokens, later = 1, count - 1
        window = None
        if algorithm.startswith("direct"):
            window = int(algorithm[6:] or count - 1)
            tokens = min(window, count - 1)
            later = (count - 1) * tokens if one["local"] else tokens
        logs = count.bit_length() - 1
        if algorithm == "halvingDoubling":
            later = logs - 1
        total = {
            "ring": {"ALLREDUCE": 2 * (count - 1), "ALLTOALL": count * (count - 1) // 2}.get(kind, count - 1),
            "halvingDoubling": 2 * logs if kind == "ALLREDUCE" else logs,
        }.get(algorithm, 2 * (count - 1) if kind == "ALLREDUCE" else count - 1)
        amount = size if kind == "ALLGATHER" else size // count
        if algorithm == "halvingDoubling":
            amount = size if kind == "ALLGATHER" else size // 2
        state = {
            "left": total,
            "free": 0,
            "seen": 0,
            "got": 0,
            "gap": count // 2 if kind == "ALLGATHER" else 1,
            "size": amount,
            "back": kind == "ALLGATHER",
            "turn": 0,
        }
        line: deque[tuple[int, int, int]] = deque()

        def enter() -> None:
            """A token begins its way: begin's tokens and then all receives, in cycles."""
            cycle, at = divmod(state["seen"], tokens + later)
            state["seen"] += 1
            reduces = at >= tokens and (kind == "REDUCESCATTER" or (kind == "ALLREDUCE" and cycle % 2 == 0))
            if algorithm == "halvingDoubling":
                gap = state["gap"]
                if state["left"]:
                    partner = members[me + gap if me // gap % 2 == 0 else me - gap]
                    line.append((partner, partner, state["size"]))
            elif algorithm == "ring":
                line.append(
                    (members[(me + one["turn"]) % count], members[(me - one["turn"]) % count], amount)
                )
            else:
                step = state["turn"] % (count - 1) + 1
                state["turn"] += 1
                line.append(
                    (
                        members[(me + one["turn"] * step) % count],
                        members[(me - one["turn"] * step) % count],
                        amount,
                    )
                )
            through(state["size"] if reduces else None, token)

        def again() -> None:
            state["got"] += 1
            enter()

        def go() -> None:
            if not state["left"] or not state["free"] or not line:
                return
            target, source, bytes_ = line.popleft()
            state["left"] -= 1
            state["free"] -= 1
            if algorithm == "halvingDoubling":
                if state["back"]:
                    state["gap"], state["size"] = max(state["gap"] // 2, 1), state["size"] * 2
                else:
                    state["gap"], state["size"] = state["gap"] * 2, state["size"] // 2
                    if kind == "ALLREDUCE" and state["gap"] == count:
                        state.update(back=True, gap=count // 2, size=state["size"] * 2)
            out(target, bytes_)
            into(source, bytes_, again)

        def token() -> None:
            state["free"] += 1
            if window is not None and kind == "ALLREDUCE" and state["left"] <= count - 1:
                if state["got"] < count - 1:
                    return
                for _ in range(tokens):
                    go()
            else:
                go()
            if not state["left"] and state["free"] == tokens:
                done()

        for _ in range(tokens):
            enter()

    queues: list[dict[Any, Any]] = [{} for _ in ranks]
    counters: list[dict[Any, int]] = [{} for _ in ranks]
    per_queue = math.ceil(system["active"] / setup["queues"])

    def count_on(rank: int, key: Any, first: int = 0) -> int:
        value = counters[rank].get(key, first)
        counters[rank][key] = value + 1
        return value

    def collective(rank: int, kind: str, size: int, group: int, involved: Any, over: Any) -> bool:
        listed = setup["groups"].get(group)
        names = system["algorithms"][kind]
        flat = names[0].startswith("one")
        if group and len(listed) < world:
            rows = [(list(listed), names[0] if len(names) == 1 else "ring")]
            delay, involved, local = 10, [True], True
        else:
            local, delay = False, math.floor(system["delay"] * setup["injection"])
            if group:
                involved = [True] * 4
            rows = []
            stride = 1
            for dim, name in enumerate(names):
                if flat:
                    rows.append((list(range(world)), name))
                    break
                low = rank - place(rank, dim) * stride
                rows.append(([low + at * stride for at in range(dims[dim][1])], name))
                stride *= dims[dim][1]
        splits = system["splits"]
        chunk = size // splits
        if chunk < world and kind != "ALLGATHER":
            chunk, size = world, splits * world
        parts = [
            (dim, members, name)
            for dim, (members, name) in enumerate(rows)
            if len(members) > 1 and (dim >= len(involved) or involved[dim])
        ]
        if not parts or not chunk:
            return False
        chunks = math.ceil(size / chunk)
        left = chunks

        def chunk_over() -> None:
            nonlocal left
            left -= 1
            if not left:
                over()

        def serve(where: Any) -> None:
            queue = queues[rank][where]
            while queue["line"] and queue["busy"] < per_queue:
                queue["busy"] += 1
                queue["line"].popleft()()

        def run_chunk(steps: deque[Any], tag: int, leaves: Any) -> None:
            def leave() -> None:
                if leaves is not None:
                    queues[rank][leaves]["busy"] -= 1
                    serve(leaves)

            if not steps:
                chunk_over()
                leave()
                return
            one = steps.popleft()
            where = one["queue"]
            queue = queues[rank].setdefault(where, {"busy": 0, "line": deque()})
            queue["line"].append(lambda: phase(rank, tag, one, lambda: run_chunk(steps, tag, where)))
            leave()
            serve(where)

        for _ in range(chunks):
            tag = count_on(rank, ("tag", group), group * 1_000_000) % 500_000_000
            here = chunk
            if kind == "ALLREDUCE" and not system["baseline"]:
                plan = [("REDUCESCATTER", part, "out") for part in parts[:-1]] + [
                    ("ALLREDUCE", parts[-1], "out")
                ]
                plan += [("ALLGATHER", part, "back") for part in parts[-2::-1]]
            else:
                plan = [(kind, part, "") for part in (parts[::-1] if kind == "ALLGATHER" else parts)]
            steps: deque[Any] = deque()
            for what, (dim, members, name), way in plan:
                many = setup["queues"]
                half = many // 2
                if way == "out":
                    queue, turn = count_on(rank, (dim, way)) % max(half, 1), 1
                elif way == "back":
                    queue, turn = half + count_on(rank, (dim, way)) % (many - half), -1
                else:
                    queue = count_on(rank, (dim, way)) % many
                    turn = -1 if many > 1 and queue >= half else 1
                word = name[3].lower() + name[4:] if name.startswith("one") else name
                step = {
                    "kind": what,
                    "algorithm": word,
                    "members": members,
                    "size": here,
                    "turn": turn,
                    "queue": (dim, queue),
                    "delay": delay,
                    "local": local,
                }
                if word == "doubleBinaryTree":
                    step["last_root"] = count_on(rank, ("tree", kind, dim)) % 2 == 0
                elif what == "REDUCESCATTER":
                    here //= len(members)
                elif what == "ALLGATHER":
                    here *= len(members)
                steps.append(step)
            run_chunk(steps, tag, None)
        return True

    # -- ranks -------------------------------------------------------------------------

    memory_free: dict[Any, int] = {}
    table = [{node["id"]: node for node in nodes} for nodes in ranks]
    waits = [
        {key: set(node.get("data", ())) | set(node.get("ctrl", ())) for key, node in nodes.items()}
        for nodes in table
    ]
    free: list[set[int]] = [{key for key, parents in one.items() if not parents} for one in waits]
    slots: list[dict[str, int]] = [{} for _ in ranks]
    running = [0] * len(ranks)
    computed = [0] * len(ranks)
    odd = [False] * len(ranks)

    def slot(node: dict[str, Any]) -> str | None:
        if node["type"] == 6:
            return None
        if node["attributes"].get("is_cpu_op"):
            return "cpu"
        return "gpu" if node["type"] == 4 else "comm"

    def end(rank: int, key: int, in_walk: set[int] | None = None) -> None:
        spans[rank][key][1] = now
        running[rank] -= 1
        if slots[rank].get(slot(table[rank][key]) or "") == key:
            del slots[rank][slot(table[rank][key]) or ""]
        for other, parents in waits[rank].items():
            if key in parents:
                parents.discard(key)
                if not parents:
                    (free[rank] if in_walk is None else in_walk).add(other)

    def ended(rank: int, key: int) -> None:
        end(rank, key)
        walk(rank)
        if not free[rank] and not running[rank] and rank not in finished:
            finished[rank] = (now, (now - computed[rank]) % 2**64)
            if odd[rank]:
                raise Statistics

    def walk(rank: int) -> None:
        later: set[int] = set()
        for key in sorted(free[rank]):
            node = table[rank][key]
            where = slot(node)
            if where is not None and where in slots[rank]:
                continue
            free[rank].discard(key)
            if where is not None:
                slots[rank][where] = key
            running[rank] += 1
            start(rank, key, node, later)
        free[rank] |= later

    def start(rank: int, key: int, node: dict[str, Any], later: set[int]) -> None:
        spans[rank][key] = [now, None]
        values, kind = node["attributes"], node["type"]
        ns = node.get("micros", 0) * 1000 or 1
        on_cpu = bool(values.get("is_cpu_op"))

        def over() -> None:
            ended(rank, key)

        if kind in (0, 2, 3) or (kind == 4 and on_cpu):
            odd[rank] = True
        if system["replay"]:
            if not on_cpu:
                computed[rank] += ns
            put_own(rank, ns, over)
        elif kind == 4:
            if system["roofline"] and not on_cpu:
                if not values["tensor_size"]:
                    end(rank, key, later)
                    return
                rate = min(
                    system["memory"] * 1e9 * (values["num_ops"] / values["tensor_size"]),
                    system["peak"] * 1e12,
                )
                ns = math.floor(values["num_ops"] / rate * 1e9)
            if not on_cpu:
                computed[rank] += ns
            put_own(rank, ns, over)
        elif kind == 0:
            end(rank, key, later)
        elif kind in (2, 3):
            model, latency, rate, each = setup["memory"]
            ns = latency + math.floor(values["tensor_size"] / rate)
            shared = {"MEMORY_POOL": 0, "PER_NODE_MEMORY_EXPANSION": rank // each}.get(model)
            begin = now if shared is None else max(now, memory_free.get(shared, 0))
            if shared is not None:
                memory_free[shared] = begin + ns
            put_own(rank, begin + ns - now, over)
        elif kind == 7:
            number = values["comm_type"]
            if number == 5:
                put_own(rank, ns, over)
                return
            what = {0: "ALLREDUCE", 2: "ALLGATHER", 6: "ALLTOALL", 7: "REDUCESCATTER"}[number]
            collective(
                rank,
                what,
                values["comm_size"],
                int(values.get("pg_name", "0")),
                values.get("involved_dim", [True] * 4),
                over,
            )
        else:
            tag = ("p2p", values["comm_tag"] % 500_000_000)
            if kind == 5:
                send((tag, rank, values["comm_dst"], values["comm_size"]), over)
            else:
                receive((tag, values["comm_src"], rank, values["comm_size"]), over)

    stopped = False
    try:
        for rank in range(len(ranks)):
            walk(rank)
        while heap:
            now, _, call = heapq.heappop(heap)
            call()
    except Stopped:
        stopped = True
    nodes = [{key: tuple(one) for key, one in rank.items()} for rank in spans]
    return {"finished": finished, "nodes": nodes, "stopped": stopped}

"""Random sets of execution traces with their network and system, for the two statements of the rules."""

from __future__ import annotations

import math
import random
from typing import Any

from tests.executing.encoding import COLL, COMP, INVALID, LOAD, RECV, SEND, STORE

KINDS = ("Ring", "Switch", "FullyConnected")
COLLECTIVES = {0: "ALLREDUCE", 2: "ALLGATHER", 6: "ALLTOALL", 7: "REDUCESCATTER"}


def random_setup(seed: int) -> dict[str, Any]:
    """One to three dimensions, all algorithms, groups, messages, memory, roofline, replay, queues,
    rendezvous.
    """
    draw = random.Random(seed)
    links = draw.random() < 0.3
    count = 1 if links else draw.choice((1, 1, 2, 2, 3))
    dims = []
    for _ in range(count):
        size = draw.choice((2, 3, 4, 4, 5, 8) if count == 1 else (2, 3, 4))
        kind = draw.choice(KINDS)
        if links and kind == "Ring" and size == 2:
            size = 4
        dims.append(
            (kind, size, draw.choice((50.0, 450.5, 12.5, 370.67)), draw.choice((500.0, 30.0, 0.5, 300.0)))
        )
    world = math.prod(size for _, size, _, _ in dims)
    algorithms = {}
    for number, name in COLLECTIVES.items():
        if draw.random() < 0.15:
            flat = ["oneRing", "oneDirect", f"oneDirect{draw.randint(1, 3)}"]
            if number != 6 and world & (world - 1) == 0:
                flat.append("oneHalvingDoubling")
            algorithms[name] = [draw.choice(flat)]
            continue
        names = []
        for _, size, _, _ in dims:
            some = ["ring", "direct", f"direct{draw.randint(1, 4)}"]
            if size & (size - 1) == 0 and number != 6:
                some += ["halvingDoubling"] * 2
                if number == 0:
                    some.append("doubleBinaryTree")
            names.append(draw.choice(some))
        # Fewer than dimensions leave the higher ones out.
        few = draw.random() < 0.1 and "doubleBinaryTree" not in names
        algorithms[name] = names[: draw.randint(1, count)] if few else names
    system = {
        "algorithms": algorithms,
        "delay": draw.choice((10, 10, 1, 37, 100)),
        "splits": draw.choice((1, 1, 2, 3, 5)),
        "active": draw.choice((1, 1, 2, 3)),
        "baseline": draw.random() < 0.15,
        "roofline": draw.random() < 0.2,
        "memory": draw.choice((1600, 50, 819.2, 3350)),
        "peak": draw.choice((900, 19.5, 312.5)),
        "replay": draw.random() < 0.06,
    }
    groups: dict[int, list[int]] = {}
    trees = {name for name, names in algorithms.items() if names == ["doubleBinaryTree"]}
    for number in range(1, draw.randint(1, 5)):
        ranks = draw.sample(range(world), draw.randint(2, world) if world > 2 else 2)
        groups[number] = ranks if draw.random() < 0.5 else sorted(ranks)
    model = draw.choice(("PER_NPU_MEMORY_EXPANSION", "MEMORY_POOL", "PER_NODE_MEMORY_EXPANSION"))
    return {
        "dims": dims, "links": links, "system": system, "groups": groups, "rendezvous": draw.random() < 0.12,
        "injection": draw.choice((1, 1, 1, 0.5, 1.7)), "queues": draw.choice((1, 1, 1, 2, 3, 4)),
        "memory": (model, draw.choice((0, 33, 100)), draw.choice((50, 80)), draw.choice((1, 2))),
        "ranks": _ranks(draw, world, groups, trees),
    }  # fmt: skip


def _ranks(
    draw: random.Random, world: int, groups: dict[int, list[int]], trees: set[str]
) -> list[list[dict[str, Any]]]:
    found: list[list[dict[str, Any]]] = [[] for _ in range(world)]
    last: list[dict[str, int]] = [{} for _ in range(world)]
    ids = [draw.choice((0, 1, 5)) for _ in range(world)]
    step = draw.choice((1, 1, 2, 3))
    common = draw.choice((True, True, False))
    micros = [draw.randint(0, 12) for _ in range(8)]

    def add(rank: int, kind: int, us: int, attributes: dict[str, Any], lane: str) -> None:
        parents = []
        if lane in last[rank] and draw.random() < (0.9 if lane == "comm" else 0.4):
            parents.append(last[rank][lane])
        others = [node["id"] for node in found[rank][-6:] if node["id"] not in parents]
        if others and draw.random() < 0.5:
            parents.append(draw.choice(others))
        key = draw.choice(("data", "ctrl"))
        node = {"id": ids[rank], "type": kind, "micros": us, "attributes": attributes, key: parents}
        ids[rank] += step
        last[rank][lane] = node["id"]
        found[rank].append(node)

    for number in range(draw.randint(4, 14)):
        what = draw.random()
        if what < 0.35:
            us = draw.choice(micros)
            for rank in range(world):
                mine = us if common or draw.random() < 0.5 else draw.choice(micros)
                values: dict[str, Any] = {"num_ops": draw.choice((10**6, 10**9, 12345678)),
                                          "tensor_size": draw.choice((4096, 10**6, 0))}  # fmt: skip
                if draw.random() < 0.06:
                    values["is_cpu_op"] = True
                add(rank, COMP, mine, values, "comp")
        elif what < 0.7:
            kind = draw.choice((0, 0, 2, 6, 7, 5))
            values = {"comm_type": kind, "comm_size": draw.choice((0, 8, 1000, 65536, 1 << 20, 12_345_677))}
            if kind == 2:
                values["comm_size"] = max(values["comm_size"], 1024)
            ranks: Any = range(world)
            group = draw.choice((0, *groups)) if groups else 0
            if group and COLLECTIVES.get(kind) not in trees:
                ranks = sorted(groups[group])
                if len(ranks) & (len(ranks) - 1) == 0 or kind == 5:
                    values["pg_name"] = str(group)
                else:
                    ranks = range(world)
            elif draw.random() < 0.1:
                values["involved_dim"] = [True, draw.random() < 0.7, True]
            for rank in ranks:
                add(rank, COLL, 3, dict(values), "comm")
        elif what < 0.9:
            source, target = draw.sample(range(world), 2)
            size = draw.choice((1000, 8192, 65536, 1 << 20))
            add(source, SEND, 0, {"comm_dst": target, "comm_tag": number, "comm_size": size}, "comm")
            add(target, RECV, 0, {"comm_src": source, "comm_tag": number, "comm_size": size}, "recv")
        elif what < 0.96:
            for rank in range(0, world, draw.randint(1, 3)):
                add(
                    rank, draw.choice((LOAD, STORE)), 1, {"tensor_size": draw.choice((4096, 100_000))}, "comm"
                )
        else:
            add(draw.randrange(world), INVALID, 0, {}, "comm")
    for rank in range(world):
        add(rank, COMP, draw.choice(micros), {"num_ops": 10**6, "tensor_size": 4096}, "comp")
    for nodes in found:
        draw.shuffle(nodes)
    return found

"""AICB's rows stated once more, as a table of rules by name: shares no code with simcore.model.aicb.

A row is (name, [type, bytes] of forward, input gradient, weight gradient). `o` are AICB's arguments.
"""

from __future__ import annotations

from typing import Any

Row = tuple[str, tuple[str, int], tuple[str, int], tuple[str, int]]
NO = ("NONE", 0)


def padded(o: dict[str, Any]) -> int:
    vocab = o["vocab_size"]
    while vocab % (128 * o["tp"]):
        vocab += 1
    return int(vocab)


def weights(o: dict[str, Any]) -> list[tuple[str, int]]:
    """(name, numbers) of each module of a stage: every matrix as (rows, columns, bias)."""
    h, t, f = o["hidden_size"], o["tp"], o["ffn"]
    bias = 1 if o["bias"] else 0
    by_column = lambda rows, columns: (rows + bias) * (columns // t)  # noqa: E731
    by_row = lambda rows, columns: (rows // t + bias) * columns  # noqa: E731
    whole = lambda rows, columns: (rows + bias) * columns  # noqa: E731
    heads = o["heads"]
    out = [("embedding_layer", 4 * (padded(o) // t) * h + o["seq_length"] * h)]
    feed = [("mlp_column", by_column(h, f)), ("mlp_row", by_row(f, h))]
    for number in range(o["num_layers"] // o["pp"]):
        if o["deepseek"]:
            q, kv, nope, rope, v = o["mla"]
            attention = [
                ("attention_linear_q_lora", whole(h, q)),
                ("fused", 2 * q),
                ("attention_q_column", by_column(q, heads * (nope + rope))),
                ("attention_linear_kv_lora", whole(h, kv + rope)),
                ("fused", 2 * kv),
                ("attention_kv_column", by_column(kv, heads * (nope + v))),
                ("attention_o_row", by_row(heads * v, h)),
            ]
        else:
            inner = h // heads * heads
            attention = [("attention_column", by_column(h, 3 * inner)), ("attention_row", by_row(inner, h))]
        then = feed
        if o["moe"] and not (o["deepseek"] and number < o["dense"]):
            each = f * (o["experts"] // o["ep"]) // t
            if not o["deepseek"]:
                then = [("mlp_moelayer", 2 * h * each)]
            elif o["shared"]:
                then = [("mlp_moelayer", 3 * h * each + feed[0][1] + feed[1][1]), *feed]
            else:
                then = [("mlp_moelayer", 3 * h * each)]
        if o["sp"]:
            out += [*attention, ("fused", 2 * h), *then]
        else:
            inside = sum(size for name, size in attention if name != "fused")
            out += [("attention_layer", inside), ("mlp_layer", sum(size for _, size in then))]
    return [*out, ("final_column", by_column(h, padded(o)))] if o["sp"] else out


def rows(o: dict[str, Any]) -> list[Row]:
    """Every row of the file."""
    act = 2 * o["micro_batch"] * o["seq_length"] * o["hidden_size"]
    t, e, aiob, dp = o["tp"], o["ep"], o["aiob"], o["world_size"] // (o["tp"] * o["pp"])
    parts = weights(o)
    total, moe = sum(n for _, n in parts), sum(n for name, n in parts if "moe" in name)
    out: list[Row] = []
    if aiob:
        out += [
            ("grad_gather", NO, NO, ("ALLGATHER", 2 * (total - moe))),
            ("grad_param_comm", NO, NO, ("REDUCESCATTER", 4 * (total - moe))),
            ("grad_param_compute", NO, NO, NO),
        ]
    else:
        out.append(("grad_norm", ("ALLGATHER", 2 * total), NO, ("REDUCESCATTER", 4 * total)))
    if not o["sp"]:
        out.append(("layernorm", NO, ("ALLREDUCE", 2 * total), NO))
    if aiob:
        out.append(("embedding_grads", NO, ("ALLREDUCE", act) if t > 1 else NO, NO))
    if e != dp:
        out.append(("moe_grad_norm1", NO, NO, ("ALLGATHER_DP_EP", 2 * moe)))
        out.append(("moe_grad_norm2", NO, NO, ("REDUCESCATTER_DP_EP", 4 * moe)))
    again = lambda name: act * (2 if o["recompute"] and "attention" in name else 1)  # noqa: E731
    top, share = o["topk"] * act, o["topk"] * act // t
    five = [
        (("ALLGATHER", 2 * e * o["experts"] * t), NO),
        (("ALLTOALL_EP", int(share * (1 + 4 / 128) / 2) if aiob and o["deepseek"] else share),
         ("ALLTOALL_EP", share)),
        (("ALLGATHER", top), ("REDUCESCATTER", top)),
        (("REDUCESCATTER", top), ("ALLGATHER", top)),
        (("ALLTOALL_EP", share), ("ALLTOALL_EP", share)),
    ]  # fmt: skip
    if aiob:
        runs = {"ALLTOALL_EP": e > 1}
        five = [
            tuple(one if runs.get(one[0], t > 1 or (number == 0 and e > 1)) else NO for one in pair)  # type: ignore[misc]
            for number, pair in enumerate(five)
        ]
    kinds: dict[tuple[bool, str], Any] = {
        (True, "embedding"): (("ALLREDUCE", act), NO),
        (True, "column"): (("ALLGATHER", act), ("REDUCESCATTER", 0)),
        (True, "row"): (("REDUCESCATTER", act), ("ALLGATHER", act)),
        (True, "layer"): (("ALLREDUCE", act), NO),
        (True, "linear"): (NO, NO),
        (False, "embedding"): (("NONE", act), ("NONE", act)),
    }
    for _ in range(o["global_batch"] // (o["micro_batch"] * dp)):
        for name, _ in parts:
            if name == "fused":
                continue
            if name == "mlp_moelayer":
                out += [(name, forward, back, NO) for forward, back in five]
                continue
            kind = "linear" if "linear" in name else name.rsplit("_", 1)[1]
            if name == "embedding_layer" and o["sp"]:
                kind = "embedding"
            if aiob:
                forward, back = kinds[True, kind] if t > 1 else (NO, NO)
            elif kind == "column":
                forward, back = ("ALLGATHER", again(name)), NO
            elif kind == "row":
                forward, back = ("REDUCESCATTER", again(name)), ("NONE", act)
            elif kind == "layer":
                forward, back = ("ALLREDUCE", again(name)), ("ALLREDUCE", act)
            else:
                forward, back = kinds[False, kind]
            out.append((name, forward, back, NO))
        if not aiob:
            out.append(("embedding_norm", ("ALLREDUCE", 2 * o["vocab_size"] * o["hidden_size"]), NO, NO))
    size = 4 * o["seq_length"] * o["micro_batch"]
    out += [(f"cross_entropy{number}", ("ALLREDUCE", size), NO, NO) for number in (1, 2, 3)]
    return out + [(f"optimizer{number}", ("ALLREDUCE", 4), NO, NO) for number in (1, 2, 3, 4)]


def header(o: dict[str, Any]) -> str:
    """Line 1 of the file."""
    act = 2 * o["micro_batch"] * o["seq_length"] * o["hidden_size"]
    sent = 0 if o["pp"] == 1 else act / o["tp"] if o["sp"] else act
    batches = o["global_batch"] // (o["micro_batch"] * (o["world_size"] // (o["tp"] * o["pp"])))
    return (
        f"HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: {o['tp']} ep: {o['ep']} pp: {o['pp']} "
        f"vpp: {o['num_layers'] // o['pp']} ga: {batches} all_gpus: {o['world_size']} checkpoints: 0 "
        f"checkpoint_initiates: 0 pp_comm: {sent}"
    )

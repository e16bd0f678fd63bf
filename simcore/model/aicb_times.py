"""The times behind the cells of an AICB file: what its rows halve, double and repeat."""

from __future__ import annotations

from collections import Counter

from simcore.model.aicb import AicbConfig, AicbTimes
from simcore.workload import Workload


def times_of_rows(workload: Workload, config: AicbConfig) -> AicbTimes:
    """The times that the cells of an aiob file of that config are made of, ns, each as most rows have it."""
    forward, backward = Counter[tuple[str, int]](), Counter[tuple[str, int]]()
    experts: Counter[int] = Counter()
    before = ""
    optimizer = first = 0
    for row, name in enumerate(workload.name):
        ns, back = workload.fwd.compute_ns[row], workload.ig.compute_ns[row]
        if name == "mlp_moelayer":
            if before != name:
                experts[ns] += 1
        else:
            forward[name, ns] += 1
            backward[name, back] += 1
            if name == "grad_param_compute":
                optimizer = back
            elif name == "embedding_layer" and first == 0:
                first = workload.wg.compute_ns[row] + 1
        before = name

    def usual(counts: Counter[tuple[str, int]], *names: str) -> int:
        return next((one[1] for one, _ in counts.most_common() if one[0] in names), 0)

    # Linears have half of it each: which of two that are halved alike is not seen.
    parallel = config.sequence_parallel
    attention = (
        usual(forward, "attention_column", "attention_row")
        if config.recompute and not config.mla
        else 2 * usual(forward, "attention_column", "attention_row", "final_column")
        if parallel
        else usual(forward, "attention_layer", "attention_norm")
    )
    if config.mla and parallel:
        attention = 2 * usual(forward, "final_column")
    mlp = next((ns for ns, _ in experts.most_common()), 0)
    if not mlp:
        mlp = (
            2 * usual(forward, "mlp_column", "mlp_row")
            if parallel
            else usual(forward, "mlp_layer", "mlp_norm")
        )
    latent = 0
    if config.mla:
        latent = (
            usual(backward, "attention_linear_q_lora", "attention_linear_kv_lora") if parallel else attention
        )
    # The mean of Adam is left in the first embedding's cell; both figures, its least too, are the sum.
    mean = first - 1 if optimizer <= 2 * (first - 1) <= 2 * optimizer else optimizer
    return AicbTimes(usual(forward, "embedding_layer"), attention, mlp, (optimizer - mean, mean), latent)

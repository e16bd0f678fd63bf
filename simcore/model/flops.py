"""FLOPs of a step, as papers count them for MFU and HFU."""

from __future__ import annotations

from simcore.model.training import Training
from simcore.records import replace


def step_flops(training: Training) -> tuple[float, float]:
    """(of the model, of the hardware) of one step of all ranks.

    The model's: three times the forward's products, attention over the whole square of scores, the output
    layer (the formula of arXiv 2104.04473, which counts no causal mask). The hardware's: what is
    recomputed, too.
    """
    # Biases and norms are no products.
    model = replace(training.model, bias="none", norm_bias=False, qk_norm=False)
    linear = sum(model.attention())
    core = 2.0 * training.seq * model.heads * (model.query_dim + model.value_dim)
    layers = 0.0
    for layer in range(model.layers):
        if model.is_moe(layer) and model.moe:
            moe = model.moe
            width = moe.ffn * (moe.experts_per_token + moe.shared_experts)
            mlp = sum(model.mlp(width)) + moe.experts * model.hidden
        else:
            mlp = sum(model.mlp(model.ffn))
        layers += 2.0 * (linear + mlp) + core
    tokens = training.global_batch * training.seq
    forward = layers + 2.0 * model.embedding
    again = (
        layers
        if training.recompute == "full"
        else core * model.layers
        if training.recompute == "selective"
        else 0
    )
    return 3 * forward * tokens, (3 * forward + again) * tokens

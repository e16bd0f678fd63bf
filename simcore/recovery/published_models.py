"""Common sizes, for choosing where rows leave several open: those of AICB's scripts and of published
models.
"""

from __future__ import annotations

from simcore.model.aicb import AicbConfig
from simcore.model.known_models import MODELS
from simcore.records import NamedTuple


class PublishedModel(NamedTuple):
    """The sizes of a published model."""

    name: str
    """What messages call it."""
    layers: int
    """Layers of the model."""
    hidden: int
    """The hidden size."""
    heads: int
    """Attention heads."""
    ffn: int
    """The inner size of the feed-forward part."""
    vocab: int
    """The vocabulary."""
    experts: int = 0
    """Experts of a layer; 0 without any."""
    experts_per_token: int = 0
    """Experts that a token is sent to; 0 without any."""
    dense_layers: int = 3
    """Layers without experts, of a model with experts."""
    shared_experts: int = 2
    """Experts that every token takes, of a model with experts."""

    def fits(self, config: AicbConfig) -> bool:
        """Returns whether a config has its sizes, the vocabulary aside."""
        return (self.hidden, self.ffn) == (config.hidden, config.ffn) and self.experts in (
            0 if config.experts is None else config.experts,
        )


# The models that AICB's scripts and SimAI's tutorial set for --model_size; then those of `wltui models`.
PUBLISHED_MODELS: tuple[PublishedModel, ...] = (
    PublishedModel("GPT 7B", 36, 4096, 32, 16384, 50257),
    PublishedModel("GPT 13B", 40, 5120, 40, 20480, 50257),
    PublishedModel("GPT 22B", 48, 6144, 64, 24576, 50257),
    PublishedModel("GPT 175B", 96, 12288, 96, 49152, 50257),
    PublishedModel("Llama 7B", 32, 4096, 32, 11008, 32000),
    PublishedModel("Llama 65B", 80, 8192, 64, 28672, 32000),
    PublishedModel("Llama 405B", 128, 16384, 128, 53248, 128256),
    PublishedModel("Mixtral 8x7B", 32, 4096, 32, 14336, 32000, 8, 2),
    PublishedModel("DeepSeek 236B", 60, 5120, 128, 1536, 102400, 160, 6, 1, 2),
    PublishedModel("DeepSeek 671B", 61, 7168, 128, 2048, 129280, 256, 8, 3, 1),
    # The scripts' presets have the dense inner size in place of the hidden size.
    PublishedModel("DeepSeek 236B preset", 60, 12288, 128, 1536, 102400, 160, 6, 1, 2),
    PublishedModel("DeepSeek 671B preset", 61, 18432, 128, 2048, 129280, 256, 8, 3, 1),
    *(
        PublishedModel(
            model.name, model.layers, model.hidden, model.heads,
            model.moe.ffn if model.moe else model.ffn, model.vocab,
            model.moe.experts if model.moe else 0, model.moe.experts_per_token if model.moe else 0,
            model.moe.dense_layers if model.moe else 0, model.moe.shared_experts if model.moe else 0,
        )
        for model in MODELS.values()
    ),
)  # fmt: skip

# In the order in which they are tried: GPT-2's (AICB's scripts have it), then those of most models.
VOCABULARIES = (
    50257, 32000, 128256, 51200, 129280, 102400, 151936, 152064, 32768, 50304, 64000, 100256, 65536, 250880,
    256000, 49152, 200064,
)  # fmt: skip
_SEQUENCES = {2048: 0.0, 4096: 0.0, 8192: 1.0, 1024: 2.0, 16384: 2.5, 32768: 3.0, 512: 3.0}
_ROUND = ((1024, 3.0), (256, 4.0), (128, 5.0), (64, 6.0))
_SIZES = {1: 0.0, 2: 0.5, 4: 1.0, 8: 1.5}


def pad_to_multiple(vocab: int, step: int) -> int:
    """Returns the next multiple of `step`."""
    return -(-vocab // step) * step


def swiglu_ffn(hidden: int) -> int:
    """Returns the inner size that AICB takes with --swiglu alone."""
    return int((4 * hidden * 2 / 3) / 64) * 64


def common_ffns(hidden: int) -> list[int]:
    """Returns the inner sizes to try first."""
    published = [model.ffn for model in PUBLISHED_MODELS if model.hidden == hidden]
    # These include the dense layers of models with experts.
    published += [model.ffn for model in MODELS.values() if model.hidden == hidden and model.ffn]
    others = [
        4 * hidden,
        swiglu_ffn(hidden),
        pad_to_multiple(8 * hidden // 3, 256),
        7 * hidden // 2,
        3 * hidden,
        2 * hidden,
        hidden,
    ]
    return list(dict.fromkeys([*published, *others]))


def guess_vocabulary(vocab: int, step: int) -> int:
    """Returns a common vocabulary that is padded to `vocab`; `vocab` if there is none."""
    return next((common for common in VOCABULARIES if pad_to_multiple(common, step) == vocab), vocab)


def find_published_model(config: AicbConfig) -> PublishedModel | None:
    """Returns the model of these sizes whose layers fit the stages; None without one."""
    layers = config.stage_layers
    fitting = [model for model in PUBLISHED_MODELS if model.fits(config)]
    return next((model for model in fitting if model.layers // config.pp == layers), None)


def rarity(config: AicbConfig) -> float:
    """Returns how uncommon a config is: 0 for a very common one."""
    weight = _SEQUENCES.get(config.seq, 4.0 if config.seq & (config.seq - 1) == 0 else 8.0)
    weight += _SIZES.get(config.microbatch_size, 3.0)
    ffn = config.ffn
    published = find_published_model(config)
    if published:
        weight -= 4.0 if published.vocab == config.vocab else 2.5
    elif ffn in (4 * config.hidden, swiglu_ffn(config.hidden)):
        weight += 0.5
    elif ffn in common_ffns(config.hidden):
        weight += 1.5
    else:
        weight += next((cost for step, cost in _ROUND if ffn % step == 0), 12.0)
    if config.vocab not in VOCABULARIES:
        weight += 3.0 if config.vocab % 1000 == 0 else 5.0
    if config.vocab_step != 128:
        weight += 10.0
    if config.bias:
        weight += 2.0
    if config.hidden % config.heads:
        # By default AICB takes as many as layers.
        weight += 2.0 if config.heads == config.layers else 5.0
    if config.hidden % 256:
        weight += 3.0
    if config.mla:
        weight += 0.0 if config.mla.q_lora_rank == 1536 else 2.0
        weight += 0.0 if config.heads == 128 else 1.0
        weight += 0.0 if config.sequence_parallel else 4.0
    return weight

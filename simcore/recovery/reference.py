"""What rows were rescaled from: a config and its times as one word of numbers in the header of a file.

Another layout may not show all of it: layers that do not divide, an inner size that no row has. With the
reference the way back is exact.
"""

from __future__ import annotations

from simcore.model.aicb import AicbConfig, AicbTimes
from simcore.model.sizes import Mla
from simcore.records import NamedTuple, replace
from simcore.recovery.statement import Statement
from simcore.workload import Workload

_FIELDS = (
    "tp", "pp", "ep", "world", "layers", "global_batch", "hidden", "heads", "ffn", "vocab", "seq",
    "microbatch_size", "experts_per_token", "shared_experts", "dense_layers", "vocab_step",
)  # fmt: skip
_MLA = Mla.__struct_fields__
# Biases, experts and one more (0: none); then what latent attention has (0: none); then the times of aiob.
_PLAIN = len(_FIELDS) + 2 + len(_MLA)
_AIOB = _PLAIN + 6


class Reference(NamedTuple):
    """config: as it was before. times: ns, None of plain files."""

    config: AicbConfig
    times: AicbTimes | None

    def word(self) -> str:
        """The numbers, between commas."""
        config, times = self
        numbers = [int(getattr(config, name)) for name in _FIELDS]
        numbers += [int(config.bias), 0 if config.experts is None else config.experts + 1]
        numbers += [getattr(config.mla, name) if config.mla else 0 for name in _MLA]
        if times is not None:
            numbers += [times.embedding, times.attention, times.mlp, *times.optimizer, times.latent]
        return ",".join(map(str, numbers))


def reference_of(workload: Workload, stated: Statement) -> Reference | None:
    """What the header says; None where it says nothing that can be."""
    numbers = workload.header.rescaled_from
    if len(numbers) != (_AIOB if stated.aiob else _PLAIN) or not all(0 < one < 2**40 for one in numbers[:12]):
        return None
    rest = numbers[len(_FIELDS) :]
    latent = rest[2 : 2 + len(_MLA)]
    config = AicbConfig(
        **dict(zip(_FIELDS, numbers, strict=False)),
        bias=bool(rest[0]), experts=rest[1] - 1 if rest[1] else None,
        mla=Mla(*latent) if any(latent) else None,
        sequence_parallel=stated.sequence_parallel, recompute=stated.recompute, version=stated.versions[0],
    )  # fmt: skip
    if config.world % (config.tp * config.pp) or not config.vocab_step:
        return None
    times = rest[2 + len(_MLA) :]
    if not times:
        return Reference(config, None)
    return Reference(config, AicbTimes(times[0], times[1], times[2], (times[3], times[4]), times[5]))


def on_layout(reference: Reference, stated: Statement) -> AicbConfig:
    """The config on the layout of the rows, which have it or not."""
    config = replace(
        reference.config, tp=stated.tp, pp=stated.pp, ep=stated.ep, world=stated.world
    )  # fmt: skip
    if config.microbatches == stated.microbatches:
        return config
    return replace(config, global_batch=max(1, stated.microbatches * config.microbatch_size * config.dp))

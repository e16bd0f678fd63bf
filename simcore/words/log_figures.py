"""What logs of trainers state of a step beside its time: by the key of JSON the heading and the form."""

from __future__ import annotations

from simcore.units import byte_size

LOG_FIGURES = {
    "loss": ("loss", "{:.5g}".format),
    "tokens_per_second": ("tokens/s/GPU", "{:,.0f}".format),
    "tflops": ("TFLOP/s/GPU", "{:.1f}".format),
    "memory_bytes": ("memory", lambda value: byte_size(round(value))),
}

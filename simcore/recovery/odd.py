"""Oddities of a file of AICB: cells that no GPU reaches, lost layers, missing or too large collectives."""

from __future__ import annotations

import os

from simcore.diagnostics import Diagnostic, Severity
from simcore.model.aicb import AicbConfig, AicbTimes
from simcore.model.gpu import find_gpu
from simcore.names import GPU_NAMES
from simcore.recovery.published_models import find_published_model
from simcore.recovery.recovered_model import RecoveredModel
from simcore.units import group_digits
from simcore.workload import Workload
from simcore.workload.traffic import traffic_warnings

# The times of AICB's workload/aiob_inputs/Example.txt, ns: embedding, attention (also with flash run twice),
# mlp, Adam's mean.
_EXAMPLE = (799_000, (1_820_000, 2_332_000), 2_478_000, 17_374_000)


def oddities(workload: Workload, recovered: RecoveredModel) -> list[Diagnostic]:
    """Returns a diagnostic on each oddity, with its first row and how many rows have it."""
    return _Odd(workload, recovered).all()


class _Odd:
    def __init__(self, workload: Workload, recovered: RecoveredModel) -> None:
        self.workload = workload
        self.recovered = recovered
        self.diagnostics: list[Diagnostic] = []

    def all(self) -> list[Diagnostic]:
        self.diagnostics += traffic_warnings(self.workload)
        config, times = self.recovered.config, self.recovered.times
        if config is not None:
            self._lost_layers(config)
            if times is not None:
                self._example(times)
                self._above_peak(config)
        return self.diagnostics

    def _add(self, severity: Severity, code: str, message: str, rows: list[int]) -> None:
        line = self.workload.line[rows[0]] if rows else self.workload.header.line
        times = f" ({group_digits(len(rows))} rows, first here)" if len(rows) > 1 else ""
        self.diagnostics.append(Diagnostic(severity, code, message + times, self.workload.path, line))

    def _rows(self, *names: str) -> list[int]:
        return [row for row, name in enumerate(self.workload.name) if name in names]

    def _lost_layers(self, config: AicbConfig) -> None:
        published = find_published_model(config)
        lost = config.layers - config.stage_layers * config.pp
        if published is not None and lost:
            message = (
                f"{config.stage_layers} layers on each of {config.pp} stages are "
                f"{config.stage_layers * config.pp}: {published.name} has {published.layers}, AICB has "
                f"lost {lost}"
            )
            self._add("warning", "lost-layers", message, [])

    def _example(self, times: AicbTimes) -> None:
        embedding, attention, mlp, mean = _EXAMPLE
        equal = times.embedding == embedding, times.attention in attention, times.mlp == mlp
        if sum(equal) < 2:
            return
        cells = (
            f"{group_digits(times.embedding)}, {group_digits(times.attention)}, "
            f"{group_digits(times.mlp)}, {group_digits(mean)} ns"
        )
        gpu = gpu_of(self.workload.path)
        subject = f"the file's name says {gpu.upper()}, but its" if gpu else "its"
        message = f"{subject} cells are those of AICB's Example.txt ({cells}), whatever the model and the GPU"
        self._add("warning", "example-cells", message, self._rows("embedding_layer")[:1])

    def _above_peak(self, config: AicbConfig) -> None:
        """Checks the FLOPs of the products of a layer's parts against the time of their cells."""
        gpu = gpu_of(self.workload.path)
        if gpu:
            peak, whose = find_gpu(_full_gpu_name(gpu)).peak, f"{gpu.upper()}'s peak"
        else:
            peak, whose = max(find_gpu(name).peak for name in GPU_NAMES), "the peak of any GPU here"
        tokens, tp = config.microbatch_size * config.seq, config.tp
        attention = 8.0 * tokens * config.hidden * config.hidden / tp
        mlp = 4.0 * tokens * config.hidden * config.ffn / tp
        again = 2 if config.recompute and config.sequence_parallel else 1
        parts = []
        if config.mla is None:
            parts.append((("attention_column", "attention_row"), attention * again / 2))
            parts.append((("attention_layer", "attention_norm"), attention))
        parts += [(("mlp_column", "mlp_row"), mlp / 2), (("mlp_layer", "mlp_norm"), mlp)]
        if config.experts is not None:
            parts = [part for part in parts if part[0][0].startswith("attention")]
        cells = self.workload.fwd.compute_ns
        for names, flops in parts:
            rows = [row for row in self._rows(*names) if cells[row] > 1 and flops / cells[row] > peak * 1e3]
            if rows:
                needed = flops / cells[rows[0]] / 1e3
                message = (
                    f"{self.workload.name[rows[0]]} takes {group_digits(cells[rows[0]])} ns, which needs "
                    f"{needed:.0f} TFLOP/s for its products alone: {whose} is {peak:.0f}"
                )
                self._add("warning", "above-peak", message, rows)


def gpu_of(path: str) -> str:
    """Returns the GPU in a file's name: `h100` of `H100-gpt_22B-...`; "" where there is none."""
    parts = os.path.basename(path).lower().replace("_", "-").replace(".", "-").split("-")
    names = {name.partition("-")[0] for name in GPU_NAMES}
    return next((word for word in parts if word in names), "")


def _full_gpu_name(name: str) -> str:
    return next(gpu_name for gpu_name in reversed(GPU_NAMES) if gpu_name.partition("-")[0] == name)

"""The words that a parameter may be where they stand for no code: what `--help` says without loading a room.

Those that do stand for code are in its registry: `SCHEDULES` and `NETWORKS`.
"""

from __future__ import annotations

from typing import Literal

Dialect = Literal["simai", "astra-sim-1"]
DIALECTS: tuple[Dialect, ...] = ("simai", "astra-sim-1")
Optimization = Literal["localBWAware", "baseline"]
OPTIMIZATIONS: tuple[Optimization, ...] = ("localBWAware", "baseline")
# Fastest first (Megatron-LM's two).
RANK_ORDERS = ("tp-ep-dp-pp", "tp-pp-dp")
STAGE_LAYOUTS = ("uniform", "megatron")
# GiB/s of NVLink and of one NIC by type: SimAI's own presets.
GPU_TYPES = {"H100": 370.8, "H20": 370.8, "H800": 164.8, "A100": 240.0, "A800": 160.0}
NIC_TYPES = {"cx7": 48.5, "cx6": 23.5, "bf3": 48.5}

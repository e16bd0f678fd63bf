"""Fits the parameters of a workload's run to a measured step: compute scale, bandwidths of the cluster.

The calls of both runs are counted by the same kinds (`kinds`), measured ones without their waiting.
Import from here: `calibrate`, `calibrate_run`, `Calibration`.
"""

from simcore.calibration.calibrate import (
    BandwidthFit,
    Calibration,
    ComputeFit,
    KindFit,
    RankFit,
    calibrate,
    calibrate_run,
)

__all__ = ["BandwidthFit", "Calibration", "ComputeFit", "KindFit", "RankFit", "calibrate", "calibrate_run"]

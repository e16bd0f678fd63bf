"""simcore simulates distributed-training workloads; it has no screen and imports none.

Data flows one way: workload -> program -> engine -> timeline -> analysis -> report,
with cluster and collectives beside the engine. Times are int nanoseconds everywhere,
sizes int bytes, bandwidths float bytes per nanosecond (= GB/s, 10^9).
"""

__version__ = "0.1.0"

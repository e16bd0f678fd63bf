"""Has HolisticTraceAnalysis read a folder of traces and prints, as JSON, what it says of each rank.

Runs by the Python that has the package. Argument: the folder.
"""

import contextlib
import json
import logging
import sys
import warnings

warnings.filterwarnings("ignore")
with contextlib.redirect_stdout(sys.stderr):
    from hta.trace_analysis import TraceAnalysis

    logging.disable(logging.WARNING)
    analysis = TraceAnalysis(trace_dir=sys.argv[1])
    overlap = analysis.get_comm_comp_overlap(visualize=False)
    times = analysis.get_temporal_breakdown(visualize=False)
    kernels, _ = analysis.get_gpu_kernel_breakdown(visualize=False)
    idle, _ = analysis.get_idle_time_breakdown(ranks=sorted(analysis.t.traces), visualize=False)
print(
    json.dumps(
        {
            "overlap": {int(rank): float(share) for rank, share in overlap.to_numpy()},
            "compute_us": dict(
                zip(map(int, times["rank"]), map(float, times["compute_time(us)"]), strict=True)
            ),
            "window_us": dict(
                zip(map(int, times["rank"]), map(float, times["kernel_time(us)"]), strict=True)
            ),
            "kernels": {
                str(name): float(us) for name, us in zip(kernels["kernel_type"], kernels["sum"], strict=True)
            },
            "idle_streams": sorted({int(stream) for stream in idle["stream"]}),
        }
    )
)

"""Has HolisticTraceAnalysis read a trace and prints, as JSON, its breakdown of the device's time.

Runs by the Python that has the package, with HTA_DISABLE_NS_ROUNDING=1. Argument: the file.
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
    analysis = TraceAnalysis(trace_files={0: sys.argv[1]}, include_last_profiler_step=True)
    times = analysis.get_temporal_breakdown(visualize=False)
print(json.dumps(times.to_dict("records")[0]))

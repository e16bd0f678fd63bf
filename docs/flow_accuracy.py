"""Makes the table of `--network flows` against SimAI's packet simulator, by effect, in docs/accuracy.md.

    python -m docs.flow_accuracy

The measured runs are in ../shared/golden/simai_ns3.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from simcore.parameters import Parameters
from simcore.simulation import simulate
from simcore.workload import open_workload

ROOT = Path(__file__).resolve().parents[1]
GOLDEN = ROOT.parent / "shared" / "golden" / "simai_ns3"
BEGIN, END = "<!-- made by python -m docs.flow_accuracy -->", "<!-- end -->"
_SMALL = 1 << 20


class Measured(NamedTuple):
    """A run of ns-3 and the same by flows."""

    run: dict[str, Any]
    last_ns: int
    flows: int
    shares_ports: bool
    """Whether more flows than one of a GPU meet on a port of a switch."""

    @property
    def error(self) -> float:
        """The difference of the last flow's end, percent; 0 inside the range of repeats."""
        low, high = self.run.get("repeat_last_flow_ns_min_max") or (self.run["last_flow_end_ns"],) * 2
        nearest = min(max(self.last_ns, low), high)
        return 100 * (self.last_ns - nearest) / nearest


def parameters_of(run: dict[str, Any]) -> Parameters:
    """The parameters of wltui that a run of SimAI has."""
    environment = run["env"]
    # Unset, it is 6 ms.
    latency = int(environment.get("AS_SEND_LAT", 6000)) * 1000
    return Parameters(
        cluster=str(GOLDEN / "topo" / run["topo"]),
        system=str(GOLDEN / "conf" / run["conf"]),
        network="flows",
        send_latency=latency,
        nvls="on" if environment.get("AS_NVLS_ENABLE") == "1" else "off",
        pxn="on" if environment.get("AS_PXN_ENABLE") == "1" else "off",
        congestion="none" if "ccnone" in run["conf"] else "dcqcn",
        dialect="simai-sim",
    )


def measure(wanted_run: Callable[[dict[str, Any]], bool] = lambda _: True) -> list[Measured]:
    """Runs what ns-3 has finished."""
    return [
        Measured(run, *simulate_once(run["workload"], parameters_of(run)))
        for run in json.loads((GOLDEN / "runs.json").read_text())["runs"]
        if run["status"] == "ok" and wanted_run(run)
    ]


@cache
def simulate_once(workload: str, parameters: Parameters) -> tuple[int, int, bool]:
    """Returns when the last flow ends, how many there are, and whether any share a port of a switch: ns-3 ran
    some inputs several times.
    """
    simulation = simulate(open_workload(str(GOLDEN / "workloads" / workload)), parameters)
    report, topology = simulation.flow_report, simulation.cluster.topology
    assert report is not None
    assert topology is not None
    shares = any(
        port.most_flows > 1 and port.full_ns and port.source >= topology.gpus and port.gbps < 1000
        for port in report.ports
    )
    return report.last_flow_end_ns, report.flows, shares


def effect_of(one: Measured) -> str:
    """What decides the time of a run."""
    run = one.run
    if run["id"].startswith("wl_"):
        return "small workloads"
    if run["group"] == "TP" and run["tp"] <= (4 if "gps4" in run["topo"] else 8):
        return "inside a server, to 1 MiB" if run["bytes"] <= _SMALL else "inside a server, 16 MiB and more"
    if not one.shares_ports:
        return "across servers, no shared port"
    if "ccnone" in run["conf"]:
        return "shared ports, no congestion control"
    return f"shared ports, DCQCN, {'all-to-all' if run['op'] == 'A2A' else 'rings'}"


def table(results: list[Measured]) -> str:
    """The rows of the table."""
    effects: dict[str, list[float]] = {}
    for one in results:
        effects.setdefault(effect_of(one), []).append(abs(one.error))
    lines = ["| case | runs | median % | p90 % | worst % | within 3 % |", "|---|---|---|---|---|---|"]
    for effect in sorted(effects):
        errors = sorted(effects[effect])
        near = round(100 * sum(error <= 3 for error in errors) / len(errors))
        high = errors[min(len(errors) - 1, int(0.9 * len(errors)))]
        lines.append(
            f"| {effect} | {len(errors)} | {median(errors):.2f} | {high:.1f} | {errors[-1]:.1f} | {near} % |"
        )
    return "\n".join(lines)


def main() -> None:
    """Writes the table into docs/accuracy.md."""
    page = ROOT / "docs" / "accuracy.md"
    before, _, rest = page.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    page.write_text(f"{before}{BEGIN}\n{table(measure())}\n{END}{after}")


if __name__ == "__main__":
    main()

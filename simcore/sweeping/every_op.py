"""The step time of a run whose ops each have a factor of their own (`--jitter`): no two ranks are alike.

All ranks of a stage are walked together, op by op: what a rank computes between two collectives is one step.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from simcore.diagnostics import UsageError
from simcore.engine.finish import RUN, ScriptStep, finish_ns, make_script, whole_script
from simcore.engine.jitter import Jitter, Normals
from simcore.engine.running import RunPricing, is_fixed
from simcore.engine.teams import Clocks, Team, find_teams
from simcore.folding import Folding, fold
from simcore.networks import Network, check_flags
from simcore.program import Program, StageProgram, build_program
from simcore.program.ops import STREAM_OF_GROUP, TO_NEXT, TransferCost
from simcore.records import NamedTuple
from simcore.setup import Setup
from simcore.simulation import check_size

_ALL = STREAM_OF_GROUP["all"]
# Of a merged step the first op and the op behind its last one; None for other steps.
_Span = tuple[int, int]


class JitteredRun(NamedTuple):
    """A run with jitter, without its seed: of every seed program, classes and scripts are the same."""

    setup: Setup
    program: Program
    folding: Folding
    network: Network
    scripts: tuple[list[ScriptStep], ...]
    """The script of each stage, in which computes that follow each other are one step."""
    spans: tuple[list[_Span], ...]
    """By stage the ops of each slot of its script."""
    teams: list[Team]
    """The classes that are walked together."""

    def find_step_ns(self, seed: int, normals: Normals) -> int:
        """Returns the step time, ns. normals: those of the seed. Raises as `simulate_setup` does."""
        program, folding, overrides = self.program, self.folding, self.setup.overrides
        try:
            jitter = Jitter(overrides.jitter, seed, normals)
            run = RunPricing(self.setup.cluster, self.network, program, folding, overrides, jitter)
            durations = run.durations()
            teams = []
            for team in self.teams:
                spans = self.spans[folding.classes[team.classes[0]].stage]
                columns = [_sum_spans(durations[class_id], spans) for class_id in team.classes]
                table: list[Clocks] = [*map(list, zip(*columns, strict=True))]
                teams.append((team, table))
            peers = [
                {step: link.neighbour for step, link in rank_class.links.items()}
                for rank_class in folding.classes
            ]
            of_class = [whole_script(self.scripts[rank_class.stage]) for rank_class in folding.classes]
            return finish_ns(of_class, [()] * len(of_class), peers, teams=teams)
        except OverflowError:
            raise UsageError(
                "the step would take 2^63 ns (292 years) or more: too long for its times"
            ) from None


def prepare_jittered(setup: Setup) -> JitteredRun | None:
    """Returns a run with jitter before it is timed; None where only the whole run tells its step time.

    Raises as `simulate_setup` does.
    """
    workload, layout, overrides = setup.workload, setup.layout, setup.overrides
    check_flags(setup.rules.network, setup.network, setup.schedule.explicit_names)
    program, _ = build_program(
        workload, layout, setup.schedule, overrides.layer_scales, setup.least_forward_bytes
    )
    network = setup.open_network()
    spans_stages = any(_ALL in stage.ops.stream for stage in program.stages)
    if not program.has_pipeline_schedule or not is_fixed(program, network) or spans_stages:
        return None
    network.diagnostics(workload, program.structure)
    folding = fold(layout, setup.cluster, program, overrides, setup.unfolded)
    check_size(setup, program, folding)
    scripts, spans = zip(*(_merge_computes(stage, program) for stage in program.stages), strict=True)
    return JitteredRun(setup, program, folding, network, scripts, spans, find_teams(folding))


def _merge_computes(stage: StageProgram, program: Program) -> tuple[list[ScriptStep], list[_Span]]:
    """Returns the script of a stage, in which computes that follow each other are one step, and by slot its
    ops.
    """
    costs = program.costs
    steps = {}
    for op, stream in enumerate(stage.ops.stream):
        if stream >= TO_NEXT:
            cost = costs[stage.ops.cost[op]]
            assert isinstance(cost, TransferCost)
            steps[op] = cost.step
    script, _ = make_script(stage, range(len(stage.ops)), steps)
    merged: list[ScriptStep] = []
    spans: list[_Span] = []
    for step in script:
        code, op, what, other, awaited_op = step
        if code == RUN and merged and merged[-1][0] == RUN and spans[-1][1] == op:
            spans[-1] = spans[-1][0], op + 1
            continue
        merged.append((code, len(spans), what, other, awaited_op))
        spans.append((op, op + 1))
    return merged, spans


def _sum_spans(durations: Sequence[int], spans: Sequence[_Span]) -> list[int]:
    """Returns what the ops of each span take one after another."""
    over = [0, *accumulate(durations)]
    return [over[last] - over[first] for first, last in spans]

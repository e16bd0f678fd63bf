"""Folding: finds ranks whose timelines are provably equal, so that one of each class is simulated.

Classes are colours refined on the bipartite graph of ranks and groups until nothing splits:
the first colour holds the stage and the rank's overrides; a group's colour its price
signature and its members' colours; a rank's colour those of its groups and of its pipeline
neighbours, with the price signature of the link to each. Equal colours then mean equal
inputs at every instant, so equal timelines (the coarsest equitable partition).

Import from here: `fold`, `Folding`, `RankClass`, `GroupClass`.
"""

from simcore.folding.folding import fold
from simcore.folding.graph import Folding, GroupClass, RankClass

__all__ = ["Folding", "GroupClass", "RankClass", "fold"]

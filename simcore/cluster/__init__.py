"""The cluster room: dimensions of the network, presets, and where a group lies on them.

The room knows positions and hops; it knows nothing of workloads or of what a collective costs.
Import from here all that `__all__` names.
"""

from simcore.cluster.choice import (
    ClusterChoice,
    ClusterParameters,
    changes_of_default,
    choose_cluster,
    parameter_values,
)
from simcore.cluster.model import Cluster, Dimension, direct_window
from simcore.cluster.parsing import algorithm_words, check_algorithm, parse_algorithm, parse_dimension
from simcore.cluster.placement import (
    GroupDimension,
    GroupShape,
    TransferShape,
    group_ranks,
    group_shape,
    name_groups,
    transfer_shape,
)
from simcore.cluster.presets import DEFAULT_PRESET, PRESETS
from simcore.names import ALGORITHM_NAMES

__all__ = [
    "ALGORITHM_NAMES",
    "DEFAULT_PRESET",
    "PRESETS",
    "Cluster",
    "ClusterChoice",
    "ClusterParameters",
    "Dimension",
    "GroupDimension",
    "GroupShape",
    "TransferShape",
    "algorithm_words",
    "changes_of_default",
    "check_algorithm",
    "choose_cluster",
    "direct_window",
    "group_ranks",
    "group_shape",
    "name_groups",
    "parameter_values",
    "parse_algorithm",
    "parse_dimension",
    "transfer_shape",
]

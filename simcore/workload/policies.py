"""The policies of ASTRA-sim 1.0: the first word of a workload text."""

from __future__ import annotations

TRANSFORMER = ("HYBRID_TRANSFORMER", "HYBRID_TRANSFORMER_FWD_IN_BCKWD")
DLRM = ("HYBRID_DLRM", "HYBRID_DLRM_ENHANCED")
CUSTOMIZED = "HYBRID_CUSTOMIZED"
MICRO = "MICRO"
INFERENCE = "DISTRIBUTED_INFERENCE"
# The policy of a text without a header, which states none (LIBRA's have no header).
NO_POLICY = "LIBRA"

# Policies of single rows, under HYBRID_CUSTOMIZED: they decide which ranks take part in a row's collectives.
ROW_POLICIES = ("DATA", "MODEL", "HYBRID_DATA_MODEL", "HYBRID_MODEL_DATA", MICRO, INFERENCE)
POLICIES = (*TRANSFORMER, *DLRM, CUSTOMIZED, *ROW_POLICIES)
# Policies that SimAI's generator writes too: the content of a file tells whether it is for SimAI.
OF_BOTH_DIALECTS = (*TRANSFORMER, MICRO)

"""The policies of ASTRA-sim 1.0: the first word of a workload text."""

from __future__ import annotations

TRANSFORMER = ("HYBRID_TRANSFORMER", "HYBRID_TRANSFORMER_FWD_IN_BCKWD")
DLRM = ("HYBRID_DLRM", "HYBRID_DLRM_ENHANCED")
CUSTOMIZED = "HYBRID_CUSTOMIZED"
MICRO = "MICRO"
INFERENCE = "DISTRIBUTED_INFERENCE"
# A text without a header states none (LIBRA's are so).
NO_POLICY = "LIBRA"

# Who takes part in a row's collectives goes by the row's own policy under HYBRID_CUSTOMIZED.
ROW_POLICIES = ("DATA", "MODEL", "HYBRID_DATA_MODEL", "HYBRID_MODEL_DATA", MICRO, INFERENCE)
POLICIES = (*TRANSFORMER, *DLRM, CUSTOMIZED, *ROW_POLICIES)
# Policies that SimAI's generator writes too: whether a file is for SimAI is found from its content.
OF_BOTH_DIALECTS = (*TRANSFORMER, MICRO)

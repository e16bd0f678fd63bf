"""What other simulators do, bit for bit: SimAI, ASTRA-sim 1.0 and 2.x."""

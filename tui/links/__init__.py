"""Screen 9: the ports of a network, tier by tier, and what is on them."""

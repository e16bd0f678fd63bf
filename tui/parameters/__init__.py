"""The parameters screen: every parameter of a run, and what changing it does to the step time."""

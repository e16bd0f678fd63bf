"""The summary: where the step goes at a glance, and the ways on from there."""

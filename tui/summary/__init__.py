"""The summary: where the step goes at a glance, and links to the other screens."""

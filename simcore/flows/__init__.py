"""Flows on the links of a topology: routes, max-min fair shares, and collectives as flows (docs/flows.md)."""

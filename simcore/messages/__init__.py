"""Collectives and transfers message by message, as ASTRA-sim 2.x runs them (docs/execution-traces.md)."""

"""The run room: a finished run as a graph of who waits for whom, whatever it came from.

`Graph` and its passes know nothing of simulations or traces: only a builder does. A builder may import
programs, timelines and measured runs; nothing here imports analysis, reports or the screen.
"""

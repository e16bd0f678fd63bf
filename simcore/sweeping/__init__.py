"""The sweep room: many points of a space of parameters, each a run, and the few of them worth running.

A `Space` gives points, an `Evaluator` finds the figures of each, an engine runs them where there are
processes; a `ResultsFile` stores every point as a line, a `ParetoFront` selects the best. May import all
rooms but the screen's; nothing of `simcore` imports it.
"""

"""Chrome traces of any program: ranks, steps and work by what their events are called."""

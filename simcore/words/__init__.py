"""The words on each kind of run, a catalogue per kind: only here the kind of a run is asked."""

"""What is said of a run, a catalogue a kind of run: only here it is asked which kind it is."""

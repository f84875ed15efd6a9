"""Faults planted in what judges: comparison, judge, codec, gate, and the executor; the self-tests have to notice."""

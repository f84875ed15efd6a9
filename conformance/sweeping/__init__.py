"""Exhaustive sweeps: every input of a range, in chunks, as a campaign that can be broken off and taken up again."""

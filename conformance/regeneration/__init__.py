"""Regeneration: hands oracles to the fixtures, and holds what is recorded to what they say today."""

"""Trellis-coded weights: the 1MAD codebook, decoding, and the single-row projections over packed codes."""

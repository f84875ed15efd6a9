"""What differing places have in common: a histogram, a map, and diagnoses in words."""

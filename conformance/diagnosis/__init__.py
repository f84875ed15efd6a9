"""What the differing places of two outputs have in common."""

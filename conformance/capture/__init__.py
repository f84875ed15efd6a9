"""Captures: what a device does where no specification says it, recorded as one file."""

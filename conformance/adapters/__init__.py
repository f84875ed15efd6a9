"""Implementations from outside: programs behind a pipe, and what they are told and may answer."""

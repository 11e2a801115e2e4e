"""Logs of other programs: found, read in order however they are rotated, and sent to a topic."""

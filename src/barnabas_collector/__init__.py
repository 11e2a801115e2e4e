"""Collects the logs of other programs: finds them, reads them in order across rotations, and
sends them."""

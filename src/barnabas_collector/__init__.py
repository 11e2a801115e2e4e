"""Collects logs of other programs: finds them, reads them in order across rotations, sends them."""

"""Collects other programs' logs: finds them, reads them in order across rotations, and sends
them."""

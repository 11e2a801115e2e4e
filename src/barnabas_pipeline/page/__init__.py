"""Holds what all pages share: their frame, pictures and words, and the files next to them."""

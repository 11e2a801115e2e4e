"""Provides what all pages share: frame, pictures, words and the files next to a page."""

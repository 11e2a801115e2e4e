"""Provides everything that all pages share: frame, pictures, words and the files next to a page."""

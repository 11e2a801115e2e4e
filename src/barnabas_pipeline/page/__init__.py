"""Provides the parts common to all pages: frame, pictures, words, and the files next to a page."""

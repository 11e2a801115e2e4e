"""Turns events from pages and apps, as stored by `barnabas track`, into tables and a page."""

"""Turns the events of pages and apps, as `barnabas track` stores them, into tables and a page."""

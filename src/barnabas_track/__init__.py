"""Receives what visitors of pages and apps do, and sends it to a topic as events."""

"""Analyses system logs: entries, templates, bursts, silent components and SSH logins."""

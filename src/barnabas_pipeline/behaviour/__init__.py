"""Derives user behaviour from a web server's access log: hits, sessions, traffic and pages."""

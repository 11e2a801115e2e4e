"""Analyses user behaviour in a web server's access log: hits, sessions, traffic and pages."""

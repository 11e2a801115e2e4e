"""User behaviour from the access log of a web server: hits, sessions, traffic, pages."""

"""Whole brokers and real clients in one thread, under virtual time, on a simulated machine room."""

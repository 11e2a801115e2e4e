"""Runs a cluster in which something happens all the time, for `barnabas demo`."""

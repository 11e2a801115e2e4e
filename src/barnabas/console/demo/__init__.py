"""Runs an eventful cluster for `barnabas demo`."""

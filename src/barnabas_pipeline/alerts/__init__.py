"""Alerts by rule over the tables of a pipeline, and the ways they are sent."""

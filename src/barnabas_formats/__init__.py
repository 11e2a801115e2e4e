"""Provides a catalogue of the formats in which programs write their logs, with one file per
format."""

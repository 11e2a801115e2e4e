"""Provides a catalogue of log formats, with one file per format."""

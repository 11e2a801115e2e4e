"""Receives events from pages and apps, and sends them to a topic."""

from barnabas_track.tracker import InvalidEvent, NotSent, Tracker, TrackerClosed, TrackerFull

__all__ = ["InvalidEvent", "NotSent", "Tracker", "TrackerClosed", "TrackerFull"]

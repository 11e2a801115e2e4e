"""Receives what visitors of pages and apps do, and sends it to a topic as events."""

from barnabas_track.tracker import InvalidEvent, NotSent, Tracker, TrackerClosed, TrackerFull

__all__ = ["InvalidEvent", "NotSent", "Tracker", "TrackerClosed", "TrackerFull"]

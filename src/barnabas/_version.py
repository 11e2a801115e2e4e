"""Holds only the version, so that reading it loads nothing else."""

from __future__ import annotations

__version__ = "0.1.0"

"""Holds the version alone, so that what needs it loads nothing else."""

from __future__ import annotations

__version__ = "0.1.0"

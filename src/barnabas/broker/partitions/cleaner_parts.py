"""Defines the parts of a broker that its log cleaner uses.

This class has its own module because it is needed both by the schedule and by the cleaner, which
the schedule loads later. Those two modules must not import each other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.named_tuple import NamedTuple

if TYPE_CHECKING:
    from barnabas.broker.configs.current_config import CurrentConfig
    from barnabas.broker.partitions.directory_failure import DirectoryFailures
    from barnabas.broker.partitions.replicas import Replicas
    from barnabas.broker.runtime.watched_clock import WatchedClock
    from barnabas.storage.files import Files


class CleanerParts(NamedTuple):
    """The parts of a broker that its log cleaner uses. The cleaner itself is loaded later."""

    config: CurrentConfig
    clock: WatchedClock
    replicas: Replicas
    failures: DirectoryFailures
    files: Files
    inline: bool = False
    """Whether to clean in this process rather than in a child process (see `LogCleaner`)."""

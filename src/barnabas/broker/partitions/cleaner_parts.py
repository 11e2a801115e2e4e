"""Names the parts of a broker that its log cleaner uses.

They are here since the schedule, which is given them, and the cleaner, which it loads later, both
need this class, and modules do not import each other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from barnabas.broker.configs.current_config import CurrentConfig
    from barnabas.broker.partitions.directory_failure import DirectoryFailures
    from barnabas.broker.partitions.replicas import Replicas
    from barnabas.broker.runtime.watched_clock import WatchedClock
    from barnabas.storage.files import Files


class CleanerParts(NamedTuple):
    """The parts of a broker that its log cleaner uses, which is loaded later than they are."""

    config: CurrentConfig
    clock: WatchedClock
    replicas: Replicas
    failures: DirectoryFailures
    files: Files
    inline: bool = False
    """Whether to clean in this process, see `LogCleaner`."""

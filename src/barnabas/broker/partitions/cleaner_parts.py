"""What the log cleaner of a broker uses of its other parts."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from barnabas.broker.configs.current_config import CurrentConfig
    from barnabas.broker.partitions.directory_failure import DirectoryFailures
    from barnabas.broker.partitions.replicas import Replicas
    from barnabas.broker.runtime.watched_clock import WatchedClock
    from barnabas.storage.files import Files


class CleanerParts(NamedTuple):
    """Handed on by the cleaner's schedule, which loads the cleaner later."""

    config: CurrentConfig
    clock: WatchedClock
    replicas: Replicas
    failures: DirectoryFailures
    files: Files
    inline: bool = False
    """Whether to clean in this process, see `LogCleaner`."""

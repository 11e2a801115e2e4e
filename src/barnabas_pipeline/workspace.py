"""Manages the output directory of a run: its layout and its lock.

    broker/        the broker's log            tables/      Delta tables
    registry.json  positions of the files      checkpoint/  the query's checkpoint
    input/         the generated log           run.log      the log of broker and clients
    report.html    the page                    spark.log    the log of Spark's Java side
    lock           held while a run uses the directory
    cluster.id     replaces broker/ if the lines are sent to a cluster: the cluster's id
    visitors.key   the secret with which visitors are hashed, for events only

These files must be kept together: without the checkpoint, for example, all lines in the broker's
log would be counted again.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import time
from pathlib import Path

from barnabas.errors import ConfigError

LOCK_PATIENCE_S = 20.0
_LEAST_FREE_BYTES = 8_388_608


class Workspace:
    """An output directory, locked from construction to `close`. Use it as a context manager."""

    def __init__(self, directory: Path, *, patience_s: float = LOCK_PATIENCE_S) -> None:
        """Raises `ConfigError` if the directory is not writable or another run uses it."""
        self.directory = directory
        try:
            directory.mkdir(parents=True, exist_ok=True)
            self.lock_fd = os.open(directory / "lock", os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise ConfigError(
                f"cannot write to {directory}: {error.strerror}; choose another directory "
                "with --out"
            ) from None
        self._lock(patience_s)

    def _lock(self, patience_s: float) -> None:
        # Spark's Java process inherits the descriptor, and therefore also holds the lock. It
        # briefly outlives a killed run, and may be writing.
        give_up_at = time.monotonic() + patience_s
        while True:
            try:
                fcntl.flock(self.lock_fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except BlockingIOError:
                if time.monotonic() > give_up_at:
                    os.close(self.lock_fd)
                    raise ConfigError(
                        f"another run is using {self.directory}: wait for it, stop it, or choose "
                        "another directory with --out"
                    ) from None
                time.sleep(0.2)

    def check_own_broker(self) -> None:
        """Raise `ConfigError` if the lines were previously sent to a cluster."""
        if (known := self._cluster_id()) is not None:
            raise ConfigError(
                f"the tables in {self.directory} were filled from the cluster {known}: give its "
                "addresses with --bootstrap-servers, or choose another directory with --out"
            )

    def check_cluster(self, cluster_id: str) -> None:
        """Raise `ConfigError` if earlier lines were sent elsewhere, because offsets are valid only
        in one log."""
        if self.broker.exists():
            raise ConfigError(
                f"the tables in {self.directory} were filled from a broker that the pipeline "
                "started: leave out --bootstrap-servers, or choose another directory with --out"
            )
        known = self._cluster_id()
        if known is None:
            # Write atomically, because a partial id left by a crash would refer to another cluster.
            written = self._cluster_file.with_suffix(".new")
            written.write_text(f"{cluster_id}\n", "utf-8")
            written.replace(self._cluster_file)
        elif known != cluster_id:
            raise ConfigError(
                f"the tables in {self.directory} were filled from the cluster {known}, but this "
                f"is {cluster_id}: choose another directory with --out"
            )

    def _cluster_id(self) -> str | None:
        try:
            return self._cluster_file.read_text("utf-8").strip()
        except FileNotFoundError:
            return None

    def is_full(self) -> bool:
        """Return whether the disk is full: less than 8 MiB is free."""
        return shutil.disk_usage(self.directory).free < _LEAST_FREE_BYTES

    def close(self) -> None:
        os.close(self.lock_fd)

    def __enter__(self) -> Workspace:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def _cluster_file(self) -> Path:
        return self.directory / "cluster.id"

    @property
    def broker(self) -> Path:
        return self.directory / "broker"

    @property
    def registry(self) -> Path:
        return self.directory / "registry.json"

    @property
    def tables(self) -> Path:
        return self.directory / "tables"

    @property
    def checkpoint(self) -> Path:
        return self.directory / "checkpoint"

    @property
    def run_log(self) -> Path:
        return self.directory / "run.log"

    @property
    def spark_log(self) -> Path:
        return self.directory / "spark.log"

    @property
    def report(self) -> Path:
        return self.directory / "report.html"

    def input_path(self, name: str) -> Path:
        """Return the path of a generated input."""
        directory = self.directory / "input"
        directory.mkdir(exist_ok=True)
        return directory / name

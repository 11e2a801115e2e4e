"""The tables on disk: what a batch writes appears at once and whole, or not at all.

    events/batch=000007/*.parquet              one directory per batch, never changed
    dead_letters/batch=000007/*.parquet
    versions/000007/manifest.json              the state after batch 7, never changed
    versions/000007/files/*.parquet
    versions/000007/sessions/day=2015-05-17/*.parquet       likewise traffic, pages, ...
    current -> versions/000007                 a symbolic link, replaced atomically
    sessions -> current/sessions               likewise files, traffic, pages, ...
    staging/                                   what the batch under way has written so far

The version is the commit: a batch whose version exists is done, and is skipped when Spark replays
it. Before that, replaying writes the same again (a batch has the same records each time, and the
state before it is kept). So every record counts exactly once, whenever the process is killed.

A version takes over from the one before it, by hard link, the days in which nothing can have
changed: its cost is that of the days it touches. Who reads for long resolves `current` first
(`Tables.read` does); the last versions are kept for that. Needs a file system with symbolic links
that all of Spark's processes see.
"""

from __future__ import annotations

import json
import os
import shutil
from datetime import date
from pathlib import Path
from typing import NamedTuple

from pyspark.sql import DataFrame, SparkSession

from barnabas.errors import ConfigError
from barnabas.pipeline.behaviour import DEAD_LETTERS, EVENTS, FILES
from barnabas.pipeline.schema import struct
from barnabas.pipeline.sessions import SESSIONS
from barnabas.pipeline.traffic import PAGES, REFERRERS, STATUSES, TRAFFIC

APPENDED = {"events": EVENTS, "dead_letters": DEAD_LETTERS}
DAILY = {
    "sessions": SESSIONS,
    "traffic": TRAFFIC,
    "pages": PAGES,
    "referrers": REFERRERS,
    "statuses": STATUSES,
}
WHOLE = {"files": FILES}
SCHEMAS = {**APPENDED, **DAILY, **WHOLE}

_KEPT_VERSIONS = 3


class Manifest(NamedTuple):
    """What a version is the state of: every batch of a query up to this one."""

    batch: int
    query: str  # the streaming query's id, which its checkpoint keeps
    newest_s: int | None  # time of the newest hit, seconds since the epoch


class Tables:
    """All tables of one pipeline, in one directory."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    # ---- reading ----

    def manifest(self) -> Manifest | None:
        """Of the current version; None before the first batch."""
        try:
            text = (self.directory / "current" / "manifest.json").read_text("utf-8")
        except FileNotFoundError:
            return None
        return Manifest(**json.loads(text))

    def read(self, spark: SparkSession, name: str, *, since: date | None = None) -> DataFrame:
        """A table as it is now; of a daily one only the days from `since` on, if that is given.

        Does not change under the reader's hands, unless several batches end meanwhile.
        """
        schema = struct(SCHEMAS[name])
        reader = spark.read.schema(schema)
        if name in APPENDED:
            root = self.directory / name
            parts = [str(path) for path in sorted(root.glob("batch=*"))]
            return reader.parquet(*parts) if parts else spark.createDataFrame([], schema)
        root = (self.directory / "current").resolve() / name
        if name in WHOLE:
            return reader.parquet(str(root)) if root.exists() else spark.createDataFrame([], schema)
        days = [str(path) for day, path in _days(root) if since is None or day >= since]
        if not days:
            return spark.createDataFrame([], schema)
        return reader.option("basePath", str(root)).parquet(*days)

    # ---- writing ----

    def check_query(self, query: str | None) -> None:
        """Raises `ConfigError` unless these tables come from this query (None: from none yet)."""
        manifest = self.manifest()
        made_by = manifest.query if manifest else None
        if made_by != query:
            raise ConfigError(
                f"the tables in {self.directory} and the checkpoint beside them do not belong"
                " together: remove both, or choose another output directory"
            )

    def begin(self, batch: int) -> Writing | None:
        """Start to write a batch; None if it has been written before."""
        manifest = self.manifest()
        done = manifest.batch if manifest else -1
        if batch <= done:
            return None
        if batch != done + 1:
            raise ConfigError(
                f"batch {batch} comes after batch {done} in {self.directory}: versions of the"
                " tables were lost; remove the output directory and run again"
            )
        return Writing(self.directory, batch)


class Writing:
    """One batch's tables on their way. `commit` makes them visible."""

    def __init__(self, directory: Path, batch: int) -> None:
        self._directory = directory
        self._batch = batch
        self._staging = directory / "staging"
        self.is_replay = self._staging.exists()
        """Whether an earlier attempt at a batch was cut off: it may have had effects outside."""
        self._staging.mkdir(parents=True, exist_ok=True)
        for path in self._staging.iterdir():  # the directory stays: it says that this is a replay
            shutil.rmtree(path)

    def append(self, name: str, rows: DataFrame) -> None:
        """Add rows to `events` or `dead_letters`; without effect if that was done before."""
        target = self._directory / name / f"batch={self._batch:06}"
        if target.exists():
            return
        written = self._staging / name
        rows.write.parquet(str(written))
        target.parent.mkdir(exist_ok=True)
        written.rename(target)

    def put(self, name: str, rows: DataFrame) -> None:
        """Write the rows of a table's days from `since` of `commit` on; or all of table `files`."""
        written = str(self._staging / "version" / name)
        if name in WHOLE:
            rows.coalesce(1).write.parquet(written)
        else:
            # One file per day: a table of a year is hundreds of files, not thousands.
            rows.repartition("day").write.partitionBy("day").parquet(written)

    def commit(self, query: str, newest_s: int | None, since: date | None) -> None:
        """Make the version that has what was put, and the days before `since` as they were.

        `since` None: nothing was put, all days are as they were.
        """
        version = self._staging / "version"
        version.mkdir(exist_ok=True)
        before = (self._directory / "current").resolve()
        for name in DAILY:
            (version / name).mkdir(exist_ok=True)
            for day, path in _days(before / name):
                if since is None or day < since:
                    _link_tree(path, version / name / path.name)
        for name in WHOLE:
            if not (version / name).exists() and (before / name).exists():
                _link_tree(before / name, version / name)
        manifest = Manifest(self._batch, query, newest_s)
        (version / "manifest.json").write_text(json.dumps(manifest._asdict()), "utf-8")
        self._publish(version)

    def _publish(self, version: Path) -> None:
        versions = self._directory / "versions"
        versions.mkdir(exist_ok=True)
        target = versions / f"{self._batch:06}"
        # One that is there and not current: the process was killed between these two steps.
        shutil.rmtree(target, ignore_errors=True)
        version.rename(target)
        _point(self._directory / "current", Path("versions", target.name))
        for name in (*DAILY, *WHOLE):
            link = self._directory / name
            if not link.is_symlink():
                _point(link, Path("current", name))
        shutil.rmtree(self._staging)
        # By their numbers: as text, version 1000000 would be the oldest one.
        for old in sorted(versions.iterdir(), key=lambda path: int(path.name))[:-_KEPT_VERSIONS]:
            shutil.rmtree(old)


def _days(table: Path) -> list[tuple[date, Path]]:
    return [
        (date.fromisoformat(path.name.removeprefix("day=")), path)
        for path in sorted(table.glob("day=*"))
    ]


def _point(link: Path, target: Path) -> None:
    temporary = link.with_name(f".{link.name}.new")
    temporary.unlink(missing_ok=True)
    temporary.symlink_to(target)
    temporary.replace(link)


def _link_tree(source: Path, target: Path) -> None:
    shutil.copytree(source, target, copy_function=_link)


def _link(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:
        # Some file systems have no hard links.
        shutil.copy2(source, target)

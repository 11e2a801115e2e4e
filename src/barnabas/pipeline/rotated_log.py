"""A log as its lines in order, however its files are rotated: what a collector has to send of it.

- Its files are the one at its path and the rotated ones beside it (`siblings.py`), compressed by
  gzip or not. Which of them is which is decided by `recognition.py`. A file that was moved into
  another directory, or removed, is read on for as long as it is held open (`log_directory.py`).
- A line without its line feed waits for it. As the last line of a file it is taken as it is when
  the file is certainly complete, which is: compressed, and whole; renamed, replaced and quiet; or,
  at the last look of a run, open for writing in no process.
- Lines written between the two steps of copy-and-truncate are in neither file: no reader
  can have them. All others are read: those that the truncated file has no more, from its copy.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from barnabas.errors import ConfigError
from barnabas.pipeline.file_progress import FileProgress
from barnabas.pipeline.line_reader import Line, LineReader
from barnabas.pipeline.log_directory import LogDirectory
from barnabas.pipeline.log_file import DAMAGED, LogFile
from barnabas.pipeline.recognition import Found, Recognised, recognise
from barnabas.pipeline.registry import Registry

QUIET_S = 60.0
_log = logging.getLogger(__name__)


class Portion(NamedTuple):
    """Lines of one file that follow one another. `progress` is to be saved once they are sent."""

    progress: FileProgress
    lines: list[Line]


class RotatedLog:
    """The log at one path. Use it as a context manager."""

    def __init__(self, path: Path, registry: Registry, *, quiet_s: float = QUIET_S) -> None:
        """Raises `ConfigError` where there is no such log, or it cannot be read."""
        self._registry = registry
        self._directory = LogDirectory(path, quiet_s)
        self._damaged: set[str] = set()
        self.unfinished_bytes = 0  # of lines that wait for their ends, at the last look
        if not registry.knows(str(self._directory.live)):
            file = LogFile(path)
            file.check()
            file.close()

    def portions(self, *, is_last_look: bool = False) -> Iterator[Portion]:
        """What was not sent yet, up to now. Asking for the next means: the one before is saved.

        `is_last_look`: no other follows in this run. Raises `ConfigError` where the file at
        the log's path cannot be read.
        """
        found = self._directory.look()
        log = str(self._directory.live)
        passed_over = self._registry.passed_over(log)
        recognised = recognise(log, found, self._registry.files, passed_over)
        if passed_over is None:
            self._registry.pass_over(log, recognised.passed_over)
        for progress in recognised.files.values():
            if self._registry.find(progress.file_id) is not None:
                self._registry.save(progress)
        self.unfinished_bytes = 0
        is_replaced = bool(found) and found[-1].is_live
        for place, progress in recognised.files.items():
            this = found[place]
            if not _is_sent(this, progress) and (file := self._directory.open(this)) is not None:
                is_old = is_replaced and not this.is_live and self._directory.is_quiet(this)
                is_complete = True if is_old else None if is_last_look else False
                yield from self._read(file, this, progress, is_complete)
        self._release(found, recognised)

    def close(self) -> None:
        self._directory.close()

    def __enter__(self) -> RotatedLog:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _read(
        self, file: LogFile, found: Found, progress: FileProgress, is_complete: bool | None
    ) -> Iterator[Portion]:
        """`is_complete`: so that its last line is one even without a line feed; None: if nobody
        is writing to it."""
        try:
            reader = LineReader(file.text, progress.position, progress.line)
            for lines in reader.portions():
                if not file.begins(found.beginning):
                    return  # it was truncated meanwhile, and these may be other lines
                self._registry.save(progress)
                progress = _after(reader, progress)
                yield Portion(progress, lines)
        except (EOFError, *DAMAGED) as error:
            if found.is_live:
                raise ConfigError(f"cannot read {file.path} any further: {error}") from None
            if not isinstance(error, EOFError):  # else it is still being compressed
                self._tell_damage(progress, error)
            return
        if is_complete is None:  # asked now, so that nothing can have been written since
            end = reader.position + reader.unfinished_bytes
            is_complete = file.has_no_writer() and file.size_bytes() == end
        if not (file.is_compressed or (is_complete and file.begins(found.beginning))):
            self.unfinished_bytes += reader.unfinished_bytes
        elif last := reader.last_line():
            self._registry.save(progress)
            progress = _after(reader, progress)
            yield Portion(progress, [last])
        if file.is_compressed:
            self._registry.save(progress._replace(is_complete=True))

    def _tell_damage(self, progress: FileProgress, error: Exception) -> None:
        if progress.file_id not in self._damaged:
            self._damaged.add(progress.file_id)
            what = "a rotated file of %s cannot be decompressed behind byte %d of its text: %s"
            _log.error(what, progress.path, progress.position, error)

    def _release(self, found: list[Found], recognised: Recognised) -> None:
        is_replaced = bool(found) and found[-1].is_live
        for place, this in enumerate(found):
            if this.is_live:
                continue
            progress = recognised.files.get(place)
            is_unknown = progress is None and bool(this.beginning)
            stored = None if progress is None else self._registry.find(progress.file_id)
            is_finished = (
                is_replaced
                and self._directory.is_quiet(this)
                and (stored is None or _is_sent(this, stored))
            )
            if is_unknown or is_finished or this.size_bytes is None:
                self._directory.release(this)


def _is_sent(found: Found, progress: FileProgress) -> bool:
    if found.size_bytes is None:
        return progress.is_complete
    return progress.position >= found.size_bytes


def _after(reader: LineReader, progress: FileProgress) -> FileProgress:
    return progress._replace(position=reader.position, line=reader.number)

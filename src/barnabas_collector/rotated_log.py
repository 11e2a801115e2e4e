"""Reads the unsent lines of a log, in order, however its files are rotated.

- Its files are the one at its path and the rotated ones next to it (`siblings.py`), compressed or
  not. `recognition.py` identifies them. Reading continues in a file that was moved to another
  directory, or removed, as long as it is held open (`log_directory.py`).
- A line without a line feed is held back until it has one. If it is the last line of a file, it is
  read as it is once the file is certainly complete: compressed and whole; renamed, replaced and
  quiet; or, at the last look of a run, not open for writing in any process.
- Lines written between the two steps of copy-and-truncate are in neither file, and are lost to
  every reader. All other lines are read. Lines that were truncated are read from the copy.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from barnabas.errors import ConfigError
from barnabas.records.record import Headers
from barnabas_collector.container_logs import ContainerReader, container_of
from barnabas_collector.file_progress import FileProgress
from barnabas_collector.fingerprint import BEGINNING_BYTES, Fingerprint, is_binary
from barnabas_collector.known_files import KnownFiles
from barnabas_collector.line_cutter import Line
from barnabas_collector.line_reader import LineReader
from barnabas_collector.listings import Listings
from barnabas_collector.log_directory import Choice, LogDirectory
from barnabas_collector.log_file import LogFile
from barnabas_collector.packed_text import DamagedText
from barnabas_collector.passed_over import PassedOver
from barnabas_collector.recognition import Found, Known, Recognised, recognise
from barnabas_collector.record_joiner import IsStart
from barnabas_collector.record_reader import Reader, RecordReader
from barnabas_collector.w3c_columns import W3cColumns, columns_at

QUIET_S = 60.0
SETTLED_S = 1.0
"""A record of several lines is considered complete once nothing has been written for this long."""
_LOOKS = 10
_log = logging.getLogger(__name__)


class Portion(NamedTuple):
    """Holds consecutive lines of one file.

    `progress` must be saved once the lines have been sent.
    """

    progress: FileProgress
    lines: Sequence[Line]
    more: Headers = ()  # headers shared by all lines of the log


class RotatedLog:
    """Reads the log at one path. Use it as a context manager."""

    def __init__(
        self,
        path: Path,
        files: KnownFiles,
        *,
        quiet_s: float = QUIET_S,
        is_start: IsStart | None = None,
        listings: Listings | None = None,
        choice: Choice | None = None,
    ) -> None:
        """`is_start` recognises first lines. It is None if each line is a record. `listings` are
        shared by the logs of a directory. `choice` tells what the user named. None means this log
        and no rotated file.

        Raises `ConfigError` if the log does not exist or cannot be read.
        """
        self._is_start = is_start
        self._files = files
        self._container = container_of(path)
        self._directory = LogDirectory(path, quiet_s, listings, choice)
        self._damaged: set[str] = set()
        self.unfinished_bytes = 0  # the size of unfinished lines at the last look
        self.left: list[Path] = []  # rotated files that the first look passed over
        self.binary: set[Path] = set()  # files that are not sent because they are not text
        self.file_ids: tuple[str, ...] | None = None  # the ids of the files found by the last look
        self._sizes: dict[str, int] = {}  # by file: the size at the last look, if uncompressed
        self.is_empty = False  # whether the last look found no file at all
        # By file: the position reached, and W3C's columns there.
        self._columns: dict[str, tuple[int, W3cColumns | None]] = {}
        if not files.knows(str(self._directory.live)):
            file = LogFile(path)
            file.check()
            file.close()

    def portions(
        self, *, is_last_look: bool = False, starts_at_end: bool = False
    ) -> Iterator[Portion]:
        """Yield the lines that have not been sent. Before asking for the next portion, save the
        last one.

        If `is_last_look`, no other look follows in this run. If `starts_at_end` and this is the
        first look, only lines written from now on count as unsent. Raises `ConfigError` if the file
        at the log's path cannot be read. The lines of the other files are yielded before the error
        is raised, because those files may be removed before the file at the log's path can be read.
        """
        found, recognised = self._look()
        self.is_empty = not found
        log = str(self._directory.live)
        passed_over = self._files.passed_over(log)
        self._pass_over(found, recognised.passed_over)
        self._part_from_emptied(found, recognised)
        texts = self._texts(found, recognised.files)
        if starts_at_end and passed_over is None:
            texts = {place: self._at_end(found[place], each) for place, each in texts.items()}
        recognised = recognised._replace(files=texts)
        self.file_ids = tuple(each.file_id for each in recognised.files.values())
        self._columns = {
            each: self._columns[each] for each in self.file_ids if each in self._columns
        }
        for progress in recognised.files.values():
            # A new file is saved with its first lines only, by `_portion`.
            if self._files.find(progress.file_id) is not None:
                self._files.save(progress)
        self._sizes = {
            progress.file_id: found[place].size_bytes or 0
            for place, progress in recognised.files.items()
        }
        self.unfinished_bytes = 0
        is_replaced = bool(found) and found[-1].is_live
        for place, progress in recognised.files.items():
            this = found[place]
            if not _is_sent(this, progress) and (file := self._directory.open(this)) is not None:
                # Until a new file exists at the log's path, the server may still write to the
                # renamed file, even if that file has been quiet for a long time.
                is_old = is_replaced and not this.is_live and self._directory.is_quiet(this)
                is_complete = True if is_old else None if is_last_look else False
                yield from self._read(file, this, progress, is_complete)
        self._release(found, recognised)
        if self._directory.refusal is not None:
            raise self._directory.refusal

    def _pass_over(self, found: list[Found], passed_over: dict[int, PassedOver]) -> None:
        """Record the first look at the log, and at a link to it.

        The look at the log is recorded even if no file was passed over, so that future rotated
        files are sent. Most links have no rotated files next to them and need no record.
        """
        paths = [(self._directory.live, False)]
        if self._directory.link is not None and any(each.is_by_link for each in found):
            paths.append((self._directory.link, True))
        for path, is_link in paths:
            if self._files.passed_over(str(path)) is None:
                places = [each for each in passed_over if found[each].is_by_link == is_link]
                self._files.pass_over(str(path), [passed_over[each] for each in places])
                self.left += [self._directory.path(found[each]) for each in places]

    def _part_from_emptied(self, found: list[Found], recognised: Recognised) -> None:
        """Let the known files lose their inodes if these are now empty.

        If a program then writes the same lines again, they are new lines. Only a copy can still
        contain the old ones.
        """
        ids = {each.file_id for each in recognised.files.values()}
        emptied = {(each.inode, each.born_ns) for each in found if each.size_bytes == 0}
        for inode, born_ns in emptied:
            for known in self._files.candidates(self.path, {inode}):
                is_same = (known.inode, known.born_ns) == (inode, born_ns)
                if is_same and known.position and known.file_id not in ids:
                    self._files.save(known._replace(inode=0, born_ns=0))

    def _look(self) -> tuple[list[Found], Recognised]:
        """Return the files of the log, and the known ones among them.

        If the log is truncated between these two steps, its copy no longer resembles any known file
        and would be sent again as a new file. In that case, the look is repeated.
        """
        for _ in range(_LOOKS):
            found = self._directory.look()
            recognised = recognise(str(self._directory.live), found, self._known(found))
            if not self._directory.has_been_truncated(found):
                break
        return found, recognised

    def _texts(self, found: list[Found], files: dict[int, FileProgress]) -> dict[int, FileProgress]:
        """Return the files, except binary files that the user did not name and of which no line was
        sent."""
        texts = {}
        for place, progress in files.items():
            this = found[place]
            is_new = self._files.find(progress.file_id) is None
            if is_new and is_binary(this.beginning) and not self._directory.is_literal(this):
                self.binary.add(self._directory.path(this))
            else:
                texts[place] = progress
        return texts

    def _at_end(self, found: Found, progress: FileProgress) -> FileProgress:
        """Return and save a new file as if everything up to its last line feed had been sent."""
        file = self._directory.open(found)
        if file is None or self._files.find(progress.file_id) is not None:
            return progress
        # Do not count its lines, which would take as long as sending them.
        if file.is_compressed:
            progress = progress._replace(is_complete=True)
        else:
            progress = progress.sent_to(file.end_of_lines(), progress.line, file)
        self._files.save(progress)
        return progress

    def _known(self, found: list[Found]) -> Known:
        log = self._directory.live
        link = self._directory.link
        files = self._files.candidates(str(log), {each.inode for each in found})
        if link is not None:
            of_link = self._files.candidates(str(link), ())
            files = list({each.file_id: each for each in (*files, *of_link)}.values())
        inodes = {(each.inode, each.born_ns) for each in files}
        unknown = [each for each in found if (each.inode, each.born_ns) not in inodes]
        # A log with known files is a separate log, not this one under another name.
        is_new = all(each.path != str(log) for each in files)
        alike = _alike_files(log, unknown, self._files) if is_new else []
        # As long as the original exists, it is read, and the copy is a separate file.
        gone = [each for each in alike if not _is_there(each)]
        held = [each for each in gone if _is_in(each, self._directory.held_anywhere(each.inode))]
        return Known(
            files,
            self._files.passed_over(str(log)),
            [each for each in gone if each not in held],
            held,
            is_forgetful=self._files.is_forgetful,
            link="" if link is None else str(link),
            passed_over_by_link=() if link is None else self._files.passed_over(str(link)),
        )

    @property
    def path(self) -> str:
        """The path of the log, with links resolved."""
        return str(self._directory.live)

    @property
    def lag_bytes(self) -> int:
        """The number of unread bytes found by the last look."""
        lag_bytes = 0
        for file_id, size_bytes in self._sizes.items():
            file = self._files.find(file_id)
            lag_bytes += max(0, size_bytes - (0 if file is None else file.position))
        return lag_bytes

    @property
    def open_files(self) -> int:
        return self._directory.open_files

    @property
    def holds_rotated(self) -> bool:
        """Return whether any rotated files are held open because programs may still write
        to them.
        """
        return self._directory.holds_rotated

    @property
    def is_settled(self) -> bool:
        """Return whether new lines can appear only if the log's file or directory changes."""
        return not self.unfinished_bytes and not self.holds_rotated

    def close(self) -> None:
        self._directory.close()

    def __enter__(self) -> RotatedLog:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _read(
        self, file: LogFile, found: Found, progress: FileProgress, is_complete: bool | None
    ) -> Iterator[Portion]:
        """Read one file.

        If `is_complete`, the last line is read even without a line feed. If it is None, this is
        done only if no process has the file open for writing.
        """
        try:
            columns = self._columns_at(file, found, progress)
            reader = self._reader(file, progress)
            for lines in reader.portions():
                after = _after(reader, progress, file)
                # Check this only after `_after` has hashed the lines, so that a truncation between
                # reading and hashing is also noticed.
                if not _is_still(file, found, progress):
                    return  # it has been truncated, so the lines may differ
                portion = self._with_columns(self._portion(file, progress, after, lines), columns)
                progress = portion.progress
                yield portion
        except (EOFError, DamagedText) as error:
            if found.is_live:
                raise ConfigError(f"cannot continue reading {file.path}: {error}") from None
            if not isinstance(error, EOFError):  # EOFError means that it is still being compressed
                self._report_damage(progress, error)
            return
        if is_complete is None:  # checked after reading, so nothing was written since
            end = reader.position + reader.unfinished_bytes
            is_all = file.size_bytes() == end and not reader.ends_in_hole
            is_complete = is_all and file.has_no_writer()
        rest: list[Line] = []
        # No process continues a compressed file, so the end of its text ends its last line.
        if file.is_compressed or (is_complete and _is_still(file, found, progress)):
            rest = reader.last()
        # A record of several lines is complete after a period of silence. A line without a line
        # feed waits, because a program may be in the middle of writing it.
        elif file.quiet_s() >= SETTLED_S and _is_still(file, found, progress):
            rest = reader.take_waiting()
        self.unfinished_bytes += reader.unfinished_bytes
        if rest or reader.position > progress.position:  # otherwise, a hole at the end was left out
            after = _after(reader, progress, file)
            if _is_still(file, found, progress):
                portion = self._with_columns(self._portion(file, progress, after, rest), columns)
                progress = portion.progress
                yield portion
        if file.is_compressed:
            # The compressed size does not show whether the position is the end of the text.
            self._files.save(progress._replace(is_complete=True))

    def _portion(
        self, file: LogFile, before: FileProgress, after: FileProgress, lines: Sequence[Line]
    ) -> Portion:
        """Save what identifies the file, in case its lines are sent and the process is then killed.

        At the time of the look, the file may have contained only its header, which does not
        identify a copy.
        """
        if before.beginning_bytes < BEGINNING_BYTES and not file.is_compressed:
            seen = Fingerprint.of(file.beginning())
            before, after = before.with_beginning(seen), after.with_beginning(seen)
        self._files.save(before)
        return Portion(after, lines, self._container or ())

    def _columns_at(self, file: LogFile, found: Found, progress: FileProgress) -> W3cColumns | None:
        """Return the W3C columns at the file's current position, which may be in the middle of the
        file.
        """
        position, columns = self._columns.get(progress.file_id, (-1, None))
        if position == progress.position:
            return columns
        return columns_at(file.text, progress.position, found.beginning)

    def _with_columns(self, portion: Portion, columns: W3cColumns | None) -> Portion:
        """Add the W3C columns to the lines, and remember the columns at the end of the portion."""
        self._columns[portion.progress.file_id] = portion.progress.position, columns
        if columns is None:
            return portion
        lines, headers = columns.with_headers(portion.lines)
        return portion._replace(lines=lines, more=(*portion.more, *headers))

    def _reader(self, file: LogFile, progress: FileProgress) -> Reader:
        if self._container is not None:
            return ContainerReader(file.text, progress.position, progress.line, self._is_start)
        if self._is_start is None:
            return LineReader(file.text, progress.position, progress.line)
        return RecordReader(file.text, progress.position, progress.line, self._is_start)

    def _report_damage(self, progress: FileProgress, error: Exception) -> None:
        if progress.file_id not in self._damaged:
            self._damaged.add(progress.file_id)
            what = "cannot decompress a rotated file of %s after byte %d of its text: %s"
            _log.error(what, progress.path, progress.position, error)

    def _release(self, found: list[Found], recognised: Recognised) -> None:
        is_replaced = bool(found) and found[-1].is_live
        for place, this in enumerate(found):
            if this.is_live:
                continue
            progress = recognised.files.get(place)
            # Copies and passed-over files are not read. Keep an empty file open, because it is not
            # identified until its first lines are written, and it may be renamed before then.
            is_unknown = progress is None and bool(this.beginning)
            stored = None if progress is None else self._files.find(progress.file_id)
            is_abandoned = not this.is_listed and self._directory.is_abandoned(this)
            is_finished = (
                (is_replaced or is_abandoned)
                and self._directory.is_quiet(this)
                and (stored is None or _is_sent(this, stored))
            )
            # A compressed file no longer changes and can be reopened.
            if is_unknown or is_finished or this.size_bytes is None:
                self._directory.release(this)


def _is_sent(found: Found, progress: FileProgress) -> bool:
    if found.size_bytes is None:
        return progress.is_complete
    return progress.position >= found.size_bytes


def _is_still(file: LogFile, found: Found, progress: FileProgress) -> bool:
    """Return whether the found file has been neither replaced, truncated nor rewritten."""
    if file.is_compressed:
        return True
    extent = progress.extent
    return file.begins(found.beginning) and (not extent.size_bytes or file.ends(extent))


def _after(reader: Reader, progress: FileProgress, file: LogFile) -> FileProgress:
    text = None if file.is_compressed else file
    return progress.sent_to(reader.position, reader.number, text)


def _alike_files(log: Path, found: Iterable[Found], files: KnownFiles) -> list[FileProgress]:
    """Return known files of other logs in this directory of which a found file may be a copy. Both
    files must begin in the same way, and the found file must be compressed or contain times.
    """
    names: dict[str, FileProgress] = {}
    for file in found:
        if file.beginning and (file.size_bytes is None or _is_timed(file)):
            for known in files.alike(log.parent, file.beginning):
                # This log's files are compared in any case.
                if known.path != str(log):
                    names[known.file_id] = known
    return list(names.values())


def _is_there(known: FileProgress) -> bool:
    """Return whether the file is still in its directory and has not been truncated."""
    try:
        file = LogFile(_present_path(known))
    except (OSError, ConfigError):
        return False
    try:
        return _is_in(known, file)
    finally:
        file.close()


def _is_in(known: FileProgress, file: LogFile | None) -> bool:
    """Return whether an open file is the known file and has not been truncated."""
    if file is None or file.inode != known.inode or not known.begins(file.beginning()):
        return False
    if file.is_compressed:
        return True
    # After a truncation, the inode is the same, but only a copy may contain the lines.
    return file.size_bytes() >= known.position and file.ends(known.extent)


def _present_path(known: FileProgress) -> Path:
    """Return the file's current path, which may have changed because programs may compress a log
    and give it any name.

    Raises OSError if the file is no longer in its directory.
    """
    path = Path(known.path)
    if path.exists() and path.stat().st_ino == known.inode:
        return path
    with os.scandir(path.parent) as entries:
        for entry in entries:
            if entry.inode() == known.inode:
                return path.with_name(entry.name)
    raise FileNotFoundError(known.path)


def _is_timed(file: Found) -> bool:
    return Fingerprint(len(file.beginning), "").is_timed(file.beginning)

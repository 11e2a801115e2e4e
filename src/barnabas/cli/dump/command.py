"""Implements `barnabas dump`, which works like Kafka's DumpLogSegments on every file that a broker
keeps.

It only reads files, and contacts no broker. A running broker's file may end in a batch that is
still being written.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

import click

from barnabas.cli.complaint import complain, explain
from barnabas.cli.dump.index import (
    aborted_lines,
    base_offset,
    offset_index_lines,
    time_index_lines,
)
from barnabas.cli.dump.internal_records import show_group_record, show_transaction_record
from barnabas.cli.dump.log import LogWalk, RecordLines, batch_line, show_text
from barnabas.cli.dump.small_files import SMALL_FILES, Lines, snapshot_lines
from barnabas.cli.dump.verify import (
    Findings,
    verify_aborted,
    verify_epochs,
    verify_log,
    verify_offset_index,
    verify_time_index,
)
from barnabas.cli.main import EXIT_FAILURE, EXIT_OK
from barnabas.cluster.layout import GROUP_TOPIC, TRANSACTION_TOPIC
from barnabas.counted import counted
from barnabas.errors import CorruptData
from barnabas.storage.epochs import FILE_NAME as LEADER_EPOCHS

_WHO = "barnabas dump"
_LOG = ".log"
_BY_SUFFIX: dict[str, Lines] = {
    ".index": offset_index_lines,
    ".timeindex": time_index_lines,
    ".txnindex": aborted_lines,
    ".snapshot": snapshot_lines,
}
_VERIFY = {
    ".index": verify_offset_index,
    ".timeindex": verify_time_index,
    ".txnindex": verify_aborted,
    LEADER_EPOCHS: verify_epochs,
}
_UNFINISHED = (".deleted", ".cleaned", ".swap")  # suffixes that compaction adds to a file's name
_INTERNAL = {GROUP_TOPIC: show_group_record, TRANSACTION_TOPIC: show_transaction_record}
_STYLES = {"Dumping": {"bold": True}, "|": {"dim": True}}


class Wanted(NamedTuple):
    records: bool
    raw: bool
    deep: bool


@click.command()
@click.argument("paths", nargs=-1, metavar="FILE...")
@click.option(
    "--files",
    multiple=True,
    metavar="FILE[,FILE...]",
    help="The files, in the syntax of Kafka's tool.",
)
@click.option(
    "--records",
    "--print-data-log",
    "records",
    is_flag=True,
    help="Include keys, values and header names.",
)
@click.option("--raw", is_flag=True, help="Do not decode the records of internal topics.")
@click.option(
    "--deep-iteration", "deep", is_flag=True, help="Include each record's offset and sizes."
)
@click.option("--verify", is_flag=True, help="Print only the problems found.")
def dump(
    paths: tuple[str, ...],
    files: tuple[str, ...],
    records: bool,
    raw: bool,
    deep: bool,
    verify: bool,
) -> int:
    """Print the files of a log directory, or check them.

    FILE is a .log, .index, .timeindex, .txnindex or .snapshot file, a checkpoint, meta.properties
    or partition.metadata; a directory stands for all such files in it. The output lines are those
    of Kafka's DumpLogSegments. With --verify, it prints a line for each problem found, and the exit
    code is 1 if there are any; --verify --records also checks every record.

    \b
    Examples:
      barnabas dump /srv/log/test-0/00000000000000000000.log
      barnabas dump --records /srv/log/test-0
      barnabas dump --records /srv/log/__consumer_offsets-12
      barnabas dump --verify /srv/log/*/
      barnabas dump /srv/log/replication-offset-checkpoint
      barnabas dump --files /srv/log/test-0/00000000000000000000.log --print-data-log
    """
    paths += tuple(path for listed in files for path in listed.split(",") if path)
    if not paths:
        raise click.UsageError("name a file or a directory")
    if raw and not records:
        raise click.UsageError("--raw needs --records")
    found, problems = 0, 0
    output = Output(sys.stdout.buffer, sys.stdout.isatty())
    wanted = Wanted(records, raw, deep)
    for path, shown_as in _files(paths):
        found += 1
        try:
            # The findings are the output. All findings for a file are printed before the next file
            # is read.
            if verify:
                problems += output.findings(shown_as, _findings(path, wanted))
            else:
                output.line(f"Dumping {shown_as}")
                output.lines(_lines(path, shown_as, wanted))
        except BrokenPipeError:
            raise  # the reader closed the pipe; the file is fine
        except (CorruptData, OSError) as error:
            problems += 1
            # Standard error is unbuffered, so without a flush, the error would appear before the
            # preceding lines.
            output.flush()
            complain(_WHO, _reason(shown_as, error))
    output.flush()
    if verify:
        click.echo(f"Verified {counted(found, 'file')}, problems found: {problems}", err=True)
    return EXIT_FAILURE if problems else EXIT_OK


class Output:
    """Writes to standard output, and escapes control characters if it is a terminal."""

    def __init__(self, output: BinaryIO, is_terminal: bool) -> None:
        self._output = output
        self._is_terminal = is_terminal

    def line(self, text: str) -> None:
        if self._is_terminal:
            text = _style(text)
        self._output.write(text.encode("utf-8", "surrogateescape") + b"\n")

    def lines(self, texts: Iterable[str]) -> None:
        for text in texts:
            self.line(text)

    def findings(self, shown_as: str, findings: Findings) -> int:
        """Print the findings and return their number. An unreadable file counts as a finding."""
        count = 0
        try:
            for finding in findings:
                self.line(f"{shown_as}: {finding}")
                count += 1
        except CorruptData as error:
            self.line(_reason(shown_as, error))
            count += 1
        return count

    def flush(self) -> None:
        self._output.flush()


def _style(text: str) -> str:
    """Escape control characters, which a terminal would interpret, and set colours."""
    shown = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
    if shown.endswith("isvalid: false"):
        return click.style(shown, fg="red")
    return click.style(shown, **_STYLES.get(shown.partition(" ")[0], {}))


def _reason(shown_as: str, error: Exception) -> str:
    reason = str(error) if isinstance(error, CorruptData) else explain(error)
    return reason if shown_as in reason else f"{shown_as}: {reason}"


def _files(paths: Iterable[str]) -> Iterator[tuple[Path, str]]:
    """Yield each file under the name given by the user, and the known files of each directory."""
    for given in paths:
        path = Path(given)
        if not path.is_dir():
            yield path, given
            continue
        names = sorted(each.name for each in path.iterdir() if each.is_file())
        for name in names:
            if name in SMALL_FILES or Path(name).suffix in (_LOG, *_BY_SUFFIX):
                yield path / name, f"{given.rstrip('/')}/{name}"


def _kind(path: Path) -> str:
    """Return the suffix or name that identifies the kind of a file. Raises CorruptData."""
    if path.name in SMALL_FILES:
        return path.name
    # A segment renamed by a compaction or deletion is still a segment.
    suffix = path.suffix if path.suffix not in _UNFINISHED else path.with_suffix("").suffix
    if suffix == _LOG or suffix in _BY_SUFFIX:
        return suffix
    known = ", ".join((_LOG, *_BY_SUFFIX, *SMALL_FILES))
    raise CorruptData(f"not a file that can be dumped; these can be: {known}")


def _lines(path: Path, shown_as: str, wanted: Wanted) -> Iterator[str]:
    kind = _kind(path)
    if kind == _LOG:
        return _log_lines(path, shown_as, wanted)
    return (_BY_SUFFIX.get(kind) or SMALL_FILES[kind])(path, shown_as)


def _log_lines(path: Path, shown_as: str, wanted: Wanted) -> Iterator[str]:
    contents = None
    if wanted.records:
        # The directory's name is `topic-partition`, and a topic's name may contain dashes.
        topic = path.absolute().parent.name.rpartition("-")[0]
        contents = show_text if wanted.raw else _INTERNAL.get(topic, show_text)
    lines = RecordLines(contents)
    with path.open("rb") as file:
        yield f"Log starting offset: {base_offset(path)}"
        walk = LogWalk(file)
        for batch in walk:
            yield batch_line(batch)
            if not (wanted.records or wanted.deep):
                continue
            try:
                yield from lines.of(batch)
            except CorruptData as error:
                # Report the damage, and continue with the next batch.
                yield f"| position: {batch.position} unreadable: {error}"
        if walk.trailing_bytes:
            yield f"Found {walk.trailing_bytes} invalid bytes at the end of {path.name}"


def _findings(path: Path, wanted: Wanted) -> Findings:
    kind = _kind(path)
    if kind == _LOG:
        return verify_log(path, records=wanted.records)
    if kind in _VERIFY and path.suffix not in _UNFINISHED:
        return _VERIFY[kind](path)
    return _unreadable(path, wanted)


def _unreadable(path: Path, wanted: Wanted) -> Findings:
    """Read the whole file. If this raises CorruptData, the error is the only finding."""
    for _ in _lines(path, "", wanted):
        pass
    yield from ()

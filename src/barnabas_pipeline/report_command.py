"""Implements `barnabas report`, which turns log files into a page without a broker or Spark."""

from __future__ import annotations

import glob
import json
import os
import socket
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from importlib.abc import MetaPathFinder
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click

from barnabas.cli.main import EXIT_OK
from barnabas.cli.options import as_json
from barnabas.cli.progress import Progress
from barnabas.errors import ConfigError
from barnabas_collector.w3c_columns import W3cColumns
from barnabas_formats.user_formats import access_formats, of_kind, read_formats
from barnabas_pipeline.accounts import read_accounts
from barnabas_pipeline.application import Report
from barnabas_pipeline.file_pass import (
    STANDARD_INPUT,
    MemoryView,
    Origin,
    batches,
    head,
    read_ahead,
    take_batch,
)
from barnabas_pipeline.page.page import PageOptions
from barnabas_pipeline.rejections import complaint
from barnabas_pipeline.summary import account
from barnabas_pipeline.view import View
from barnabas_pipeline.work import Definition

if TYPE_CHECKING:
    import pyarrow as pa  # type: ignore[import-untyped]

    from barnabas_formats.format import Format

_SAMPLE_LINES: Final = 1_000
_ACCESS: Final = "access"
_SYSTEM: Final = "system"


class _Pipeline(NamedTuple):
    """Everything needed to report on one kind of log."""

    definition: Definition
    origin: Origin
    counted: str
    expected: str


@click.command()
@click.argument("paths", nargs=-1, required=True, metavar="FILE|DIR|GLOB|-...")
@click.option(
    "--kind",
    type=click.Choice((_ACCESS, _SYSTEM)),
    help="access: a web server's access log; system: any other log. [default: the kind that more "
    "of the first lines are]",
)
@click.option(
    "--formats",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Formats of your own, which are tried before the built-in ones.",
)
@click.option(
    "--zone",
    metavar="ZONE",
    help="The zone of times without an offset, such as Europe/Vienna. [default: UTC]",
)
@click.option(
    "-o",
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    default=Path("report.html"),
    show_default=True,
    metavar="FILE",
    help="The page to write; its figures go next to it as CSV and JSON.",
)
@click.option(
    "--tables",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Also write the tables that the Spark job writes, in Delta's format.",
)
@click.option(
    "--show-addresses",
    is_flag=True,
    help="Print full network addresses instead of only their networks.",
)
@as_json
def report(paths: tuple[str, ...], kind: str | None, out: Path, as_json: bool, **given: Any) -> int:
    """Write a page about log files: visitors and pages, or levels, messages and bursts.

    The files are processed as the Spark job processes a topic, but in this process alone. Files may
    be compressed. With -, standard input is read to its end.

    \b
    Examples:
      barnabas report /var/log/nginx/access.log
      barnabas report access.log access.log.1 access.log.2.gz -o site.html
      zcat access.log.*.gz | barnabas report -
      barnabas report /var/log --kind system --tables tables
    """
    with _without_pandas():
        return _report(paths, kind, out, as_json, **given)


@contextmanager
def _without_pandas() -> Iterator[None]:
    """Keep pyarrow from importing pandas at its first conversion, because the import takes as long
    as a pass over a hundred thousand lines."""
    refusal = _NoPandas()
    sys.meta_path.insert(0, refusal)
    try:
        yield
    finally:
        sys.meta_path.remove(refusal)


class _NoPandas(MetaPathFinder):
    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        if name == "pandas":
            raise ModuleNotFoundError(f"{name} is not needed here", name=name)


def _report(
    paths: tuple[str, ...], kind: str | None, out: Path, as_json: bool, **given: Any
) -> int:
    began_s = time.monotonic()
    if not out.absolute().parent.is_dir():
        raise ConfigError(f"cannot write {out}: {out.parent} is not a directory")
    files = _files(paths)
    own = read_formats(given["formats"]) if given["formats"] is not None else ()
    kind = kind or kind_of(files, own)
    pipeline = _pipeline(kind, given["formats"], own, given["zone"])
    view = _process(files, pipeline, given["tables"], is_shown=not as_json)
    if not read_accounts(view)[0].read:
        # A page would suggest that there is something to report.
        raise ConfigError(f"there are no lines in {', '.join(files)}: no page is written")
    options = PageOptions(datetime.now().astimezone(), None, given["show_addresses"])
    try:
        accounts, summary, letters, failure, _ = _write(kind, view, out, options)
    except OSError as error:
        raise ConfigError(f"cannot write {out}: {error.strerror or error}") from None
    if as_json:
        click.echo(
            json.dumps({"kind": kind, **accounts._asdict(), **dict(summary), "page": str(out)})
        )
    else:
        took_s = time.monotonic() - began_s
        for label, text in [(pipeline.counted, account(accounts)), *summary]:
            click.echo(f"{label:<11} {text}")
        click.echo(f"{'report':<11} {out}  ({took_s:.1f} s)")
    # The page explains the rejections; a script sees them from the exit code.
    what = pipeline.counted.removesuffix("s")
    if (why := complaint(accounts, letters, what)) is not None:
        raise ConfigError(f"{why}; {pipeline.expected}")
    if failure is not None:
        raise ConfigError(failure)
    return EXIT_OK


def _files(given: Iterable[str]) -> list[str]:
    """Return the files that match the arguments, without duplicates."""
    found: dict[str, None] = {}
    for each in given:
        path = Path(each)
        if each == STANDARD_INPUT or path.is_file():
            found[each] = None
        elif path.is_dir():
            names = sorted(entry.name for entry in os.scandir(path) if entry.is_file())
            # As in the collector, a file whose name begins with a dot is not a log.
            found.update((str(path / name), None) for name in names if not name.startswith("."))
        else:
            matches = sorted(glob.glob(each, recursive=True))  # noqa: PTH207  # also absolute
            found.update((match, None) for match in matches if Path(match).is_file())
            if not matches:
                raise ConfigError(f"cannot read {each}: there is no such file or directory")
    if not found:
        raise ConfigError(f"there are no files in {', '.join(given)}")
    return list(found)


def kind_of(files: list[str], own: Sequence[Format] = ()) -> str:
    """Return the kind of log whose formats match more of the first lines, or the kind of the user's
    `own` formats if they all have the same kind."""
    if len(kinds := {each.kind for each in own}) == 1:
        return kinds.pop()
    import polars as pl

    from barnabas_formats.catalogue import catalogue
    from barnabas_formats.format import RAW
    from barnabas_pipeline.behaviour.access_lines import parse_lines as parse_access
    from barnabas_pipeline.logs.log_records import parse_texts
    from barnabas_pipeline.texts import texts

    lines: list[bytes] = []
    columns: list[bytes | None] = []
    for file in files:
        lines += head(file, _SAMPLE_LINES - len(lines))
        columns += W3cColumns().of(lines[len(columns) :])
        if len(lines) >= _SAMPLE_LINES:
            break
    values = pl.Series(lines, dtype=pl.Binary)
    is_cut = pl.repeat(False, len(lines), eager=True)
    fields = texts(pl.Series(columns, dtype=pl.Binary))
    access = parse_access(values, is_cut, of_kind(own, _ACCESS), fields)["reason"].null_count()
    if access == len(lines):
        return _ACCESS  # the usual case; a line never matches formats of both kinds
    received_us = pl.repeat(time.time_ns() // 1_000, len(lines), eager=True)
    formats = (*of_kind(own, _SYSTEM), *catalogue(_SYSTEM))
    rows = parse_texts(values, is_cut, received_us, formats)
    system = rows.filter((pl.col("format") != RAW) & pl.col("reason").is_null()).height
    return _ACCESS if access and access >= system else _SYSTEM


def _pipeline(
    kind: str, formats: Path | None, own: Sequence[Format], zone: str | None
) -> _Pipeline:
    if kind == _ACCESS:
        from barnabas_pipeline.behaviour.definition import Behaviour

        if zone is not None and formats is None:
            raise click.UsageError(
                "--zone is for system logs or --formats: in built-in access log formats,"
                " times have an offset or are in UTC"
            )
        return _Pipeline(
            Behaviour(() if formats is None else access_formats(formats, own, zone)),
            Origin("web-access"),
            "lines",
            "an access log in a format of `barnabas formats list` is expected",
        )
    from barnabas_formats.catalogue import catalogue
    from barnabas_formats.continuation import RecordStart
    from barnabas_formats.format import in_zone
    from barnabas_pipeline.logs.definition import SystemLogs

    own = of_kind(own, _SYSTEM)
    return _Pipeline(
        SystemLogs(in_zone((*own, *catalogue(_SYSTEM)), zone or "UTC")),
        Origin("system-logs", socket.gethostname(), RecordStart(own)),
        "records",
        "lines of text are expected, and formats whose times are possible",
    )


def _process(files: list[str], pipeline: _Pipeline, tables: Path | None, *, is_shown: bool) -> View:
    sizes = [Path(file).stat().st_size for file in files if file != STANDARD_INPUT]
    # A compressed file contains more text than its size suggests, and a stream any amount.
    is_known = len(sizes) == len(files)
    with Progress(sum(sizes) if is_known else None, wanted=is_shown) as progress:
        records = 0

        def on_bytes(size_bytes: int) -> None:
            progress.advance(size_bytes, records)

        if tables is None:
            view = MemoryView(pipeline.definition.layout)
            found = batches(files, pipeline.origin, on_bytes)
            # A thread waiting for standard input cannot be interrupted.
            for batch in read_ahead(found) if is_known else found:
                take_batch(pipeline.definition, view, batch)
                records += batch.num_rows
            return view
        return _with_tables(tables, pipeline, batches(files, pipeline.origin, on_bytes))


def _with_tables(directory: Path, pipeline: _Pipeline, records: Iterable[pa.Table]) -> View:
    """Write the tables batch by batch, like the Spark job, and return them."""
    from barnabas_pipeline.snapshot import Snapshot
    from barnabas_pipeline.step import Query
    from barnabas_pipeline.tables import Tables

    if directory.exists() and any(directory.iterdir()):
        raise ConfigError(f"{directory} is not empty: --tables needs a new directory")

    def send(letters: pa.Table, batch: int, *, since: Mapping[int, int]) -> dict[int, int]:
        return {}  # there is no topic; the table contains them

    definition = pipeline.definition
    # Delta's log requires absolute paths.
    tables = Tables(directory.absolute(), definition.layout)
    query = Query("report", definition, tables, send)
    for number, batch in enumerate(records):
        query.take(number, lambda one_pass, rows=batch: one_pass.results(rows))  # type: ignore[misc]
    return Snapshot(directory.absolute(), definition.layout)


def _write(kind: str, view: View, out: Path, options: PageOptions) -> Report:
    if kind == _ACCESS:
        from barnabas_pipeline.behaviour.report import write_page

        return write_page(view, out, options)
    from barnabas_pipeline.logs.report import write_page as write_logs_page

    return write_logs_page(view, out, options)

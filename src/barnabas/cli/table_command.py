"""Implements `barnabas table`, which keeps Delta tables small despite many micro-batches."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

import click

from barnabas.cli.group import command_group
from barnabas.cli.main import EXIT_OK
from barnabas.cli.options import as_json, storage, storage_options
from barnabas.counted import counted
from barnabas.errors import BarnabasError, in_one_line
from barnabas.extras import install_line

if TYPE_CHECKING:
    from pyspark_barnabas.delta.options import DeltaOptions

T = TypeVar("T")


class TableError(BarnabasError):
    """Raised if a table does not exist or cannot currently be changed."""


@command_group()
def table() -> None:
    """Merge the small files of Delta tables, and remove files and logs that no reader needs.

    \b
    Examples:
      barnabas table compact /tables/events
      barnabas table vacuum /tables/events --dry-run
    """


@table.command()
@click.argument("path")
@storage
@as_json
def compact(path: str, storage_pairs: tuple[str, ...], as_json: bool) -> int:
    """Merge small files into large ones, in one commit; the rows do not change.

    The small files are kept for readers of older versions until a vacuum removes them. Writers may
    continue to write.

    \b
    Example:
      barnabas table compact /tables/events
    """

    def merge(options: dict[str, str]) -> tuple[int, int]:
        from pyspark_barnabas.delta.compaction import compact as merged

        return merged(_delta_options(path, options))

    removed, added = _run(path, storage_pairs, merge)
    if as_json:
        click.echo(json.dumps({"filesRemoved": removed, "filesAdded": added}, indent=2))
    else:
        click.echo(f"merged {counted(removed, 'file')} into {added}")
    return EXIT_OK


@table.command()
@click.argument("path")
@storage
def checkpoint(path: str, storage_pairs: tuple[str, ...]) -> int:
    """Write a checkpoint of the log, and remove log entries that are older than the retention.

    The retention is 30 days, or the table property delta.logRetentionDuration, which the option
    logRetentionHours of format("barnabas.delta") sets for tables that it creates. Each commit lists
    the log, so a long log makes commits slow.

    \b
    Example:
      barnabas table checkpoint /tables/events
    """

    def write(options: dict[str, str]) -> None:
        from pyspark_barnabas.delta.log import cut
        from pyspark_barnabas.delta.storage import existing_table

        given = _delta_options(path, options)
        existing_table(given)
        cut(given)

    _run(path, storage_pairs, write)
    click.echo("written")
    return EXIT_OK


@table.command()
@click.argument("path")
@click.option(
    "--retain-hours",
    type=click.IntRange(0),
    metavar="N",
    help="Keep files younger than this: readers may be using them, or writers may not have "
    "committed them yet. "
    "The default is the table's own retention (delta.deletedFileRetentionDuration), or a week. A "
    "value below the duration of the longest batch or query is safe only while the table is not "
    "in use.",
)
@click.option("--dry-run", is_flag=True, help="List the files without removing them.")
@storage
@as_json
def vacuum(
    path: str,
    retain_hours: int | None,
    dry_run: bool,
    storage_pairs: tuple[str, ...],
    as_json: bool,
) -> int:
    """Remove files that no version of the table still needs, or that were never committed.

    \b
    Examples:
      barnabas table vacuum /tables/events --dry-run
      barnabas table vacuum /tables/events --retain-hours 24
    """

    def remove(options: dict[str, str]) -> list[str]:
        from pyspark_barnabas.delta.storage import existing_table
        from pyspark_barnabas.delta.vacuum import vacuum as removed_files

        found = existing_table(_delta_options(path, options))
        return removed_files(found, retain_hours, dry_run=dry_run)

    removed = _run(path, storage_pairs, remove)
    if as_json:
        click.echo(json.dumps(sorted(removed), indent=2))
    elif dry_run:
        for name in sorted(removed):
            click.echo(name)
    else:
        click.echo(f"removed {counted(len(removed), 'file')}")
    return EXIT_OK


def _delta_options(path: str, storage: dict[str, str]) -> DeltaOptions:
    from pyspark_barnabas.delta.options import delta_options

    given = {f"storage.{name}": value for name, value in storage.items()}
    return delta_options({"path": path, **given})


def _run(path: str, storage_pairs: tuple[str, ...], work: Callable[[dict[str, str]], T]) -> T:
    """Call `work` with the object store options, and return its result. Raises TableError."""
    try:
        # The library is an extra, because `barnabas` itself does not need it.
        from deltalake.exceptions import DeltaError
    except ImportError:
        raise TableError(
            f"Delta tables need deltalake: {install_line('delta', ['deltalake'])}"
        ) from None
    options = storage_options(storage_pairs)
    try:
        return work(options)
    except (DeltaError, OSError) as error:
        # The library's errors span several lines and include a stack trace.
        raise TableError(f"{path}: {in_one_line(error)}") from error

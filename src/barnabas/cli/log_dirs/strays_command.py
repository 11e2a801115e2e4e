"""Implements `barnabas log-dirs strays`, which lists or deletes the logs that brokers have set
aside."""

from __future__ import annotations

from pathlib import Path

import click

from barnabas.cli.main import EXIT_OK
from barnabas.storage.files import OsFiles
from barnabas.storage.strays import delete_stray, strays


@click.command("strays")
@click.argument(
    "directories",
    nargs=-1,
    required=True,
    metavar="LOG-DIR...",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
)
@click.option(
    "--delete", "names", multiple=True, metavar="NAME", help="Delete this one; may be repeated."
)
@click.option("--delete-all", "is_all", is_flag=True, help="Delete all of them.")
def strays_of(directories: tuple[Path, ...], names: tuple[str, ...], is_all: bool) -> int:
    """List the logs of earlier topics that a broker has set aside, or delete them.

    They are next to the broker's other logs on this machine, and have the suffix -stray. The broker
    never opens them, so it may keep running.

    \b
    Examples:
      barnabas log-dirs strays /var/lib/barnabas
      barnabas log-dirs strays /disk1/kafka /disk2/kafka --delete-all
    """
    files = OsFiles()
    try:
        found = {
            path / name: size for path in directories for name, size in strays(files, path).items()
        }
        unknown = set(names) - {path.name for path in found}
        if unknown:
            raise click.UsageError(f"--delete {min(unknown)}: no such stray log")
        for path, size in sorted(found.items()):
            is_deleted = is_all or path.name in names
            if is_deleted:
                delete_stray(files, path)
            click.echo(f"{'deleted ' if is_deleted else ''}{path}  {size} bytes")
    except OSError as error:
        raise click.ClickException(f"{error.filename}: {error.strerror}") from error
    return EXIT_OK

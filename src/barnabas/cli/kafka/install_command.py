"""`barnabas install-scripts`: Kafka's scripts as files of a directory, each calling `barnabas`."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path

import click

from barnabas.cli.complaint import complain
from barnabas.cli.kafka.names import every_script
from barnabas.cli.main import EXIT_FAILURE, EXIT_OK

_MARK = "# Written by `barnabas install-scripts`."


@click.command("install-scripts")
@click.argument("directory", metavar="DIR", type=click.Path(path_type=Path, file_okay=False))
@click.option("--force", is_flag=True, help="Replace files that this command has not written.")
def install_scripts(directory: Path, force: bool) -> int:
    """Write scripts with the names of Kafka's into DIR, which run the commands of Barnabas.

    Each is the same as `barnabas` with its name: kafka-topics.sh runs `barnabas kafka-topics.sh`.
    All of them take --explain, which prints our own command instead of running it. If DIR has a
    file of such a name that this command has not written, nothing is written.

    \b
    Examples:
      barnabas install-scripts ~/kafka-scripts
      barnabas install-scripts /opt/kafka/bin --force
    """
    scripts = {directory / f"{name}.sh": _script(f"{name}.sh") for name in every_script()}
    foreign = sorted(path for path in scripts if not _is_ours(path))
    if foreign and not force:
        complain(
            "barnabas install-scripts",
            f"{foreign[0]} is not a script of ours{_others(len(foreign) - 1)}: nothing was "
            "written; choose an empty directory, or replace what is there by --force",
        )
        return EXIT_FAILURE
    directory.mkdir(parents=True, exist_ok=True)
    for path, text in scripts.items():
        path.unlink(missing_ok=True)  # a link must not lead to another file that is overwritten
        path.write_text(text, encoding="utf-8")
        path.chmod(0o755)
    click.echo(f"Wrote {len(scripts)} scripts into {directory}.")
    if str(directory.absolute()) not in os.environ.get("PATH", "").split(os.pathsep):
        click.echo(f'To call them by name: export PATH="{directory.absolute()}:$PATH"')
    return EXIT_OK


def _script(name: str) -> str:
    # With -P a directory called barnabas where the user happens to be is not taken for ours.
    command = f"exec {shlex.quote(sys.executable)} -P -m barnabas.cli.main {name}"
    return f'#!/bin/sh\n{_MARK}\n{command} "$@"\n'


def _is_ours(path: Path) -> bool:
    """Whether it may be written: not there, or written by this command."""
    if not os.path.lexists(path):
        return True
    try:
        with path.open("rb") as file:
            return _MARK.encode() in file.read(200)
    except OSError:
        return False


def _others(count: int) -> str:
    return f", and {count} more" * bool(count)

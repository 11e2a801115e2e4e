"""Implements `barnabas install-scripts`, which writes Kafka's scripts into a directory. Each script
calls `barnabas`.

bin/kafka-topics.sh ...             the scripts
config/server.properties ...        files to edit; beside the directory if it is called bin
"""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path

import click

from barnabas.cli.complaint import complain
from barnabas.cli.kafka.names import every_script
from barnabas.cli.kafka.sample_configs import sample_configs
from barnabas.cli.main import EXIT_FAILURE, EXIT_OK

_MARK = "# Written by `barnabas install-scripts`."


@click.command("install-scripts")
@click.argument("directory", metavar="DIR", type=click.Path(path_type=Path, file_okay=False))
@click.option("--force", is_flag=True, help="Replace files that this command did not write.")
def install_scripts(directory: Path, force: bool) -> int:
    """Write scripts into DIR that have the names of Kafka's scripts and run Barnabas's commands.

    For example, kafka-topics.sh runs `barnabas kafka-topics.sh`. All scripts accept --explain,
    which prints our own command instead of running it. If DIR already contains a file with one of
    these names that was not written by this command, nothing is written.

    It also writes config/server.properties, zookeeper.properties, producer.properties and
    consumer.properties, with comments, for you to edit. The directory config is in DIR or, if DIR
    is called bin, next to it, as in a Kafka distribution. An existing file is not changed.

    \b
    Examples:
      barnabas install-scripts ~/kafka/bin
      barnabas install-scripts /opt/kafka/bin --force
    """
    config = _config_directory(directory)
    scripts = {directory / f"{name}.sh": _script(f"{name}.sh", config) for name in every_script()}
    # Write all scripts or none, because replacing some of Kafka's scripts would mix two
    # distributions.
    foreign = sorted(path for path in scripts if not _is_ours(path))
    if foreign and not force:
        complain(
            "barnabas install-scripts",
            f"{foreign[0]} is not one of our scripts{_others(len(foreign) - 1)}: nothing was "
            "written; choose an empty directory, or replace the files with --force",
        )
        return EXIT_FAILURE
    directory.mkdir(parents=True, exist_ok=True)
    for path, text in scripts.items():
        path.unlink(missing_ok=True)  # do not overwrite another file through a link
        path.write_text(text, encoding="utf-8")
        path.chmod(0o755)
    click.echo(f"Wrote {len(scripts)} scripts into {directory}.")
    _write_configs(config)
    # This process cannot change the PATH of the shell that started it.
    if str(directory.absolute()) not in os.environ.get("PATH", "").split(os.pathsep):
        click.echo(f'To call them by name: export PATH="{directory.absolute()}:$PATH"')
    return EXIT_OK


def _config_directory(directory: Path) -> Path:
    scripts = directory.absolute()
    return (scripts.parent if scripts.name == "bin" else scripts) / "config"


def _write_configs(config: Path) -> None:
    """Write any missing files, but keep existing ones, because the user may have edited them."""
    config.mkdir(parents=True, exist_ok=True)
    written = []
    for name, text in sample_configs(config, config.parent / "data").items():
        try:
            # "x" either creates the file or fails, so no other process can create the file between
            # a check and the write.
            with (config / name).open("x", encoding="utf-8") as file:
                file.write(text)
        except FileExistsError:
            click.echo(f"Left {config / name} unchanged.")
        else:
            written.append(name)
    if written:
        click.echo(f"Wrote {', '.join(written)} into {config}.")


def _script(name: str, config: Path) -> str:
    # With -P, a directory called barnabas in the working directory is not mistaken for ours.
    command = f"exec {shlex.quote(sys.executable)} -P -m barnabas.cli.main {name}"
    lines = ["#!/bin/sh", _MARK]
    # ZooKeeper's script looks for its configuration in this directory, unless the variable is set.
    if name == "zkServer.sh":
        lines.append(f'[ -n "$ZOOCFGDIR" ] || export ZOOCFGDIR={shlex.quote(str(config))}')
    return "\n".join([*lines, f'{command} "$@"\n'])


def _is_ours(path: Path) -> bool:
    """Return whether the path may be written. This is so if it does not exist or if this command
    wrote it.
    """
    # `lexists` is true for a dangling link, which is not ours.
    if not os.path.lexists(path):
        return True
    try:
        with path.open("rb") as file:
            return _MARK.encode() in file.read(200)
    except OSError:
        return False


def _others(count: int) -> str:
    return f", and {count} more" * bool(count)

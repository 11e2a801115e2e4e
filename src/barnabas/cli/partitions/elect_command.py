"""Implements `barnabas elect-leaders`, which works like `kafka-leader-election.sh`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import click

from barnabas.cli.complaint import complain
from barnabas.cli.completion import topic_names
from barnabas.cli.connection import bootstrap_server, client_options
from barnabas.cli.main import EXIT_FAILURE, EXIT_OK
from barnabas.cli.options import INT32, run_client
from barnabas.cli.partitions.reassign_plan import BadPlan, read_names
from barnabas.client.admin.admin import Admin
from barnabas.client.admin.partition_admin import PREFERRED, UNCLEAN
from barnabas.errors import ElectionNotNeeded, KafkaError
from barnabas.types import TopicPartition

_WHO = "barnabas elect-leaders"


@click.command("elect-leaders")
@click.option(
    "--election-type",
    type=click.Choice(["preferred", "unclean"], case_sensitive=False),
    required=True,
    help="The first replica, if in sync; or, for partitions without a leader, any live replica.",
)
@click.option(
    "--topic",
    metavar="NAME",
    shell_complete=topic_names,
    help="With --partition: only this partition.",
)
@click.option("--partition", type=INT32, metavar="N")
@click.option(
    "--path-to-json-file",
    "path",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    metavar="FILE",
    help='The partitions of {"partitions":[{"topic":"test","partition":0}]}.',
)
@click.option(
    "--all-topic-partitions",
    "all_of_them",
    is_flag=True,
    help=("All partitions that need an election."),
)
@bootstrap_server
def elect_leaders(
    election_type: str,
    topic: str | None,
    partition: int | None,
    path: Path | None,
    all_of_them: bool,
    servers: str,
) -> int:
    """Elect partitions' preferred replicas, or any live replicas, as leaders.

    An unclean election loses acknowledged records that the new leader does not have. Use it only
    for partitions whose in-sync replicas will not come back.

    \b
    Examples:
      barnabas elect-leaders --election-type preferred --all-topic-partitions
      barnabas elect-leaders --election-type preferred --topic test --partition 0
      barnabas elect-leaders --election-type unclean --path-to-json-file partitions.json
    """
    if (topic is not None) + (path is not None) + all_of_them != 1:
        raise click.UsageError(
            "name the partitions: --topic with --partition, --path-to-json-file or "
            "--all-topic-partitions"
        )
    if (topic is None) != (partition is None):
        raise click.UsageError("--topic and --partition must be given together")
    names: list[TopicPartition] | None = None
    if topic is not None and partition is not None:
        names = [TopicPartition(topic, partition)]
    elif path is not None:
        names = _read(path)
    kind = UNCLEAN if election_type == "unclean" else PREFERRED

    async def work() -> Mapping[TopicPartition, KafkaError | None]:
        async with Admin(servers, **client_options()) as admin:
            return await admin.elect_leaders(kind, names)

    return _report(election_type.upper(), run_client(work()))


def _read(path: Path) -> list[TopicPartition]:
    try:
        return read_names(path.read_text(encoding="utf-8"))
    except (BadPlan, UnicodeDecodeError) as error:
        raise BadPlan(f"{path}: {error}") from error


def _report(kind: str, outcomes: Mapping[TopicPartition, KafkaError | None]) -> int:
    """Print what Kafka prints, and return the exit code: 1 if any election failed."""
    elected = [name for name, error in sorted(outcomes.items()) if error is None]
    unneeded = [
        name for name, error in sorted(outcomes.items()) if isinstance(error, ElectionNotNeeded)
    ]
    if elected:
        click.echo(
            f"Successfully completed leader election ({kind}) for partitions "
            f"{', '.join(map(str, elected))}"
        )
    if unneeded:
        click.echo(f"Valid replica already elected for partitions {', '.join(map(str, unneeded))}")
    failed = 0
    for name, error in sorted(outcomes.items()):
        if error is not None and name not in unneeded:
            failed += 1
            click.echo(
                f"Error completing leader election ({kind}) for partition: {name}: "
                f"{error} ({error.name})"
            )
    if failed:
        complain(_WHO, f"{failed} replica(s) could not be elected")
    return EXIT_FAILURE if failed else EXIT_OK

"""Implements Kafka 2.3's `kafka-preferred-replica-election.sh`, which elects preferred leaders."""

from __future__ import annotations

from pathlib import Path

import click

from barnabas.cli.kafka.java_errors import java_text
from barnabas.cli.kafka.options import BadCommandLine, Given, values
from barnabas.cli.kafka.tool import BROKER_LIST, Line, Tool, admin_of, at_servers, option_words
from barnabas.cli.kafka.zookeeper_brokers import at_brokers, is_by_zookeeper, warn_of_zookeeper
from barnabas.cli.main import EXIT_FAILURE, EXIT_OK
from barnabas.cli.options import run_client
from barnabas.cli.partitions.reassign_plan import current, read_names
from barnabas.client.admin.partition_admin import PREFERRED
from barnabas.errors import ElectionNotNeeded, KafkaError
from barnabas.types import TopicPartition

_CONFIG = "admin.config"
_FILE = "path-to-json-file"


def _check(given: Given) -> bool:
    """Return whether to use ZooKeeper. Raises BadCommandLine if no cluster is specified."""
    by_zookeeper = is_by_zookeeper(given)
    if not by_zookeeper and "bootstrap-server" not in given:
        raise BadCommandLine(
            "Exactly one of '[bootstrap-server]' or '[zookeeper]' must be provided: add "
            "--bootstrap-server localhost:9092"
        )
    return by_zookeeper


def explain(given: Given) -> list[Line]:
    """Return the equivalent `barnabas` command."""
    _check(given)
    # Without a file, 2.3.1 elects leaders for all partitions.
    which = option_words(given, _FILE) or ["--all-topic-partitions"]
    at = at_servers(at_brokers(given, _CONFIG), _CONFIG)
    return [["elect-leaders", "--election-type", "preferred", *which, *at]]


def run(given: Given) -> int:
    """Elect leaders, and return the exit code: 1 if any election failed."""
    by_zookeeper = _check(given)
    wanted = None
    if _FILE in given:
        path = Path(given.required_text(_FILE))
        wanted = read_names(path.read_text(encoding="utf-8", errors="replace"))
    if by_zookeeper:
        warn_of_zookeeper()
    outcomes, missing = run_client(_elect(at_brokers(given, _CONFIG), wanted))
    failed = {name: error for name, error in outcomes.items() if error is not None}
    done = [str(name) for name in outcomes if name not in failed]
    # 2.3.1 only wrote the partitions to /admin/preferred_replica_election, for the controller. We
    # ask the brokers, and print the lines when they have responded.
    if by_zookeeper:
        tried = [str(name) for name in outcomes]
        click.echo(f"Created preferred replica election path with {','.join(tried)}")
        click.echo(
            "Successfully started preferred replica election for partitions "
            f"Set({', '.join(tried)})"
        )
        # With ZooKeeper, skip nonexistent partitions. With brokers, they are errors.
        for name in missing:
            click.echo(
                f"Skipping preferred replica leader election for partition {name} since it doesn't "
                "exist."
            )
    elif done:
        click.echo(
            "Successfully completed preferred replica election for partitions " + ", ".join(done)
        )
    if not by_zookeeper:
        failed |= missing
    for name, error in failed.items():
        text = java_text(error)
        click.echo(f"Error completing preferred replica election for partition {name}: {text}")
    if failed:
        click.echo(f"{len(failed)} preferred replica(s) could not be elected", err=True)
    return EXIT_FAILURE if failed else EXIT_OK


Outcomes = dict[TopicPartition, KafkaError | None]


async def _elect(
    given: Given, wanted: list[TopicPartition] | None
) -> tuple[Outcomes, dict[TopicPartition, KafkaError]]:
    """Return the outcome for each existing partition, and an error for each nonexistent one. As in
    Kafka 2.3, it is not an error if a preferred replica already leads.
    """
    async with admin_of(given, _CONFIG) as admin:
        there = current(await admin.describe_topics())
        # List the partitions, because with None, the response would omit those that need no
        # election.
        names = sorted(there) if wanted is None else wanted
        found = dict(sorted((await admin.elect_leaders(PREFERRED, names)).items())) if names else {}
    outcomes: Outcomes = {
        name: None if isinstance(error, ElectionNotNeeded) else error
        for name, error in found.items()
        if name in there
    }
    missing = {
        name: error for name, error in found.items() if error is not None and name not in there
    }
    return outcomes, missing


TOOL = Tool(
    "This tool helps to causes leadership for each partition to be transferred back to the "
    "'preferred replica', it can be used to balance leadership among the servers.",
    values(
        "admin.config=FILE bootstrap-server=HOST:PORT path-to-json-file=FILE "
        "zookeeper=HOST:PORT[/CHROOT]"
    ),
    explain,
    run,
    {"broker-list": BROKER_LIST},
)

"""Implements `barnabas dead-letters`, which lists and resends records that a pipeline rejected."""

from __future__ import annotations

import json
from collections import Counter
from typing import Final

import click

from barnabas.cli.connection import bootstrap_server, client_options
from barnabas.cli.group import command_group
from barnabas.cli.main import EXIT_OK
from barnabas.cli.options import as_json, run_client
from barnabas.client.consumer.consumer import Consumer
from barnabas.counted import counted
from barnabas_collector.dead_letter_headers import REASON
from barnabas_collector.replay import replay as replayed
from barnabas_collector.topic_end import assign_all, records_until

_NO_REASON: Final = "(not a dead letter: it has no reason)"


@command_group(name="dead-letters")
def dead_letters() -> None:
    """List the reasons for dead letters, and resend them once the reasons have been fixed.

    \b
    Examples:
      barnabas dead-letters list system-logs-dead-letters
      barnabas dead-letters replay system-logs-dead-letters
    """


@dead_letters.command("list")
@click.argument("topic")
@bootstrap_server
@as_json
def list_(topic: str, servers: str, as_json: bool) -> int:
    """Count the dead letters in a topic by reason, including those that were replayed.

    \b
    Example:
      barnabas dead-letters list system-logs-dead-letters
    """
    reasons = run_client(_reasons(servers, topic))
    if as_json:
        rows = [{"reason": reason, "letters": count} for reason, count in reasons.most_common()]
        click.echo(json.dumps(rows, indent=2))
    else:
        if not reasons:
            click.echo(f"no dead letters in {topic}")
        for reason, count in reasons.most_common():
            click.echo(f"{count:>9,}  {reason}")
    return EXIT_OK


@dead_letters.command()
@click.argument("topic")
@click.option(
    "--to", metavar="TOPIC", help="Send all of them to this topic, not back to their own."
)
@bootstrap_server
@as_json
def replay(topic: str, to: str | None, servers: str, as_json: bool) -> int:
    """Send the dead letters in a topic back to their original topics.

    It sends each dead letter that has arrived since the last replay once, even if it is killed and
    run again, because its position is written in the transactions that send them. A record that is
    rejected again becomes another dead letter.

    \b
    Examples:
      barnabas dead-letters replay system-logs-dead-letters
      barnabas dead-letters replay web-access-dead-letters --to web-access-fixed
    """
    done = run_client(replayed(servers, topic, to=to, client_options=client_options()))
    if as_json:
        click.echo(json.dumps({"letters": done.letters, "byTopic": done.by_topic}, indent=2))
        return EXIT_OK
    for name, count in sorted(done.by_topic.items()):
        click.echo(f"{counted(count, 'dead letter')} sent again to {name}")
    if not done.letters:
        click.echo(f"no new dead letters in {topic} since its last replay")
    return EXIT_OK


async def _reasons(servers: str, topic: str) -> Counter[str]:
    found: Counter[str] = Counter()
    options = {
        **client_options(),
        "isolation_level": "read_committed",
        "allow_auto_create_topics": False,
    }
    async with Consumer(servers, **options) as consumer:
        ends = await assign_all(consumer, topic)
        await consumer.seek_to_beginning()
        async for letters in records_until(consumer, ends):
            for record in letters:
                reason = dict(record.headers).get(REASON)
                found[_NO_REASON if reason is None else reason.decode("utf-8", "replace")] += 1
    return found

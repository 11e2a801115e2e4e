"""Implements `barnabas copy`, which copies a cluster through Kafka's protocol."""

from __future__ import annotations

import asyncio
import json
import signal
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

import click

from barnabas.cli.complaint import warn
from barnabas.cli.copy.clusters import Side, Sides, both_sides, partitions_of
from barnabas.cli.copy.copier import Copier, Pace, Total
from barnabas.cli.copy.groups import commit_groups, group_plans
from barnabas.cli.copy.offset_map import OffsetMap
from barnabas.cli.copy.plan import TopicPlan, plan_topics
from barnabas.cli.copy.progress import Progress
from barnabas.cli.copy.setup import (
    copy_settings,
    create_topics,
    set_times,
    settings_notes,
    settings_of,
)
from barnabas.cli.copy.verify import compacted_topics, compare, config_differences
from barnabas.cli.copy.writer import Writer
from barnabas.cli.group import command_group
from barnabas.cli.main import EXIT_FAILURE, EXIT_OK
from barnabas.cli.options import as_json, run_client
from barnabas.cli.progress import Progress as Bar
from barnabas.counted import counted

F = TypeVar("F", bound=Callable[..., Any])

_MIB = 1024 * 1024


class Choice(NamedTuple):
    """Which clusters, topics and groups a command is about."""

    addresses: tuple[str, str]
    files: tuple[str | None, str | None]
    topics: Sequence[str]
    groups: Sequence[str]


def _sides(command: F) -> F:
    """Add the options that all commands have. The command receives them as `choice`."""
    servers: dict[str, Any] = {"metavar": "HOST:PORT[,...]", "required": True}
    config: dict[str, Any] = {"metavar": "FILE", "type": click.Path(exists=True, dir_okay=False)}

    def call(**options: Any) -> Any:
        take = options.pop
        addresses = (take("source"), take("target"))
        files = (take("source_config"), take("target_config"))
        choice = Choice(addresses, files, take("topics"), take("groups"))
        return command(choice=choice, **options)

    call.__name__, call.__doc__ = command.__name__, command.__doc__
    if params := getattr(command, "__click_params__", None):
        call.__click_params__ = params  # type: ignore[attr-defined]
    for option in reversed(
        (
            click.option("--from", "source", help="Brokers of the cluster to copy.", **servers),
            click.option("--to", "target", help="Brokers of the cluster to copy to.", **servers),
            click.option(
                "--from-config",
                "source_config",
                help="A properties file of client configs for --from: security.protocol, ...",
                **config,
            ),
            click.option("--to-config", "target_config", help="The same for --to.", **config),
            click.option(
                "--topic",
                "topics",
                multiple=True,
                metavar="PATTERN",
                help="Only topics that match, such as 'web-*'; may be repeated.",
            ),
            click.option(
                "--group",
                "groups",
                multiple=True,
                metavar="PATTERN",
                help="Only groups that match; may be repeated.",
            ),
        )
    ):
        call = option(call)
    return call  # type: ignore[return-value]


@command_group()
def copy() -> None:
    """Copy topics, records, group offsets and access rules from another cluster.

    The source may be any Kafka cluster, including one with KRaft. It is only read. Repeat `run` to
    continue: each record is copied exactly once.

    \b
    Examples:
      barnabas copy plan --from kraft:9092 --to localhost:9092
      barnabas copy run --from kraft:9092 --to localhost:9092
      barnabas copy verify --from kraft:9092 --to localhost:9092
    """


@copy.command()
@_sides
@click.option(
    "--replication-factor", "replicas", type=click.IntRange(1), metavar="N", help="As for `run`."
)
def plan(choice: Choice, replicas: int | None) -> int:
    """Show what would be copied, and what cannot be. Nothing is changed.

    Lines with "blocks" must be resolved first; then the exit code is 1.

    \b
    Examples:
      barnabas copy plan --from kraft:9092 --to localhost:9092
      barnabas copy plan --from kraft:9092 --to localhost:9092 --topic 'web-*'
    """
    return run_client(_plan(choice, replicas))


async def _plan(choice: Choice, replicas: int | None) -> int:
    async with both_sides(choice.addresses, choice.files) as sides:
        progress = await sides.target.progress_of(sides.source.cluster_id)
        plans = await _topic_plans(sides, choice, replicas, progress)
        names = [name for each in plans for name in each.partitions]
        maps = {name: progress.maps.get(name, OffsetMap()) for name in names}
        groups = await group_plans(sides, choice.groups, maps)
        source, target = await settings_of(sides.source), await settings_of(sides.target)
    for each in plans:
        size = counted(each.source.partitions, "partition")
        verb = "continue" if each.exists else "create"
        click.echo(f"{verb} {each.name}: {size}, {counted(each.replicas, 'replica')}")
        for name, value in sorted(each.configs.items()):
            click.echo(f"  {name}={value}")
        for note in each.notes:
            click.echo(f"  note: {note}")
    for note in settings_notes(source, target):
        click.echo(f"note: {note}")
    problems = _echo_problems(plans)
    click.echo(
        f"{counted(len(plans), 'topic')}, {counted(len(source.acls), 'access rule')}, "
        f"{counted(len(source.quotas), 'quota')}; {counted(len(groups), 'group')} of copied topics"
    )
    return EXIT_FAILURE if problems else EXIT_OK


@copy.command()
@_sides
@click.option(
    "--replication-factor",
    "replicas",
    type=click.IntRange(1),
    metavar="N",
    help="Replicas of new topics. Default: as many as in the source, if there are enough brokers.",
)
@click.option("--follow", is_flag=True, help="Continue with new records until Ctrl-C.")
@click.option(
    "--rate",
    type=click.IntRange(0),
    default=0,
    metavar="MIB",
    help="Limit the copy to this many MiB per second. Default: no limit.",
)
def run(choice: Choice, replicas: int | None, follow: bool, rate: int) -> int:
    """Copy all records that exist when the command starts, and then the offsets of groups.

    Run it again to continue, even after it was killed: each record is copied exactly once. The
    progress is kept in the topic _barnabas_copy of the target. Offsets are committed for groups
    without members in the target, and are never set back.

    \b
    Examples:
      barnabas copy run --from kraft:9092 --to localhost:9092
      barnabas copy run --from kraft:9092 --to localhost:9092 --follow
    """
    return run_client(_run(choice, replicas, follows=follow, rate=rate * _MIB), None)


async def _run(choice: Choice, replicas: int | None, *, follows: bool, rate: int) -> int:
    began_at = time.monotonic()
    pace = Pace(follows, rate, asyncio.Event())
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, pace.stopping.set)
    async with both_sides(choice.addresses, choice.files) as sides:
        progress = await sides.target.progress_of(sides.source.cluster_id)
        plans = await _topic_plans(sides, choice, replicas, progress)
        if _echo_problems(plans):
            return EXIT_FAILURE
        await sides.target.create_progress_topic()
        rules, quotas = await copy_settings(sides)
        created = await create_topics(sides.target, plans)
        click.echo(
            f"created {counted(created, 'topic')}, {counted(rules, 'access rule')} and "
            f"{counted(quotas, 'quota')}"
        )
        await set_times(sides.target, plans, is_copying=True)
        copier = await _copy_records(sides, plans, pace)
        await set_times(sides.target, plans, is_copying=False)
        total = copier.total
        click.echo(
            f"copied {counted(total.records, 'record')} ({counted(total.size_bytes, 'byte')}) in "
            f"{time.monotonic() - began_at:.2f} s"
        )
        groups = await group_plans(sides, choice.groups, copier.progress.maps)
        for line in await commit_groups(sides, groups):
            click.echo(f"group {line}")
    return EXIT_OK


async def _copy_records(sides: Sides, plans: Sequence[TopicPlan], pace: Pace) -> Copier:
    source_id = sides.source.cluster_id
    writer = Writer(sides.target.cluster, f"barnabas-copy-{source_id}")
    with Bar(None, wanted=True) as bar:
        copier = Copier(
            sides.source.fetches, writer, source_id, pace, lambda text: warn("barnabas copy", text)
        )
        before = Total()

        def show(total: Total) -> None:
            bar.advance(total.size_bytes - before.size_bytes, total.records)
            before.size_bytes = total.size_bytes

        copier.on_commit = show
        ids = await _ids_in(sides.target, [each.name for each in plans])
        await copier.run(ids, [name for each in plans for name in each.partitions])
    return copier


async def _ids_in(side: Side, topics: Sequence[str]) -> dict[str, str]:
    described = await side.admin.describe_topics(list(topics)) if topics else []
    return {each.name: each.topic_id.hex() for each in described}


@copy.command()
@_sides
@as_json
def status(choice: Choice, as_json: bool) -> int:
    """Show how far each partition is copied. The exit code is 1 if something is not copied yet.

    \b
    Examples:
      barnabas copy status --from kraft:9092 --to localhost:9092
      barnabas copy status --from kraft:9092 --to localhost:9092 --json
    """
    rows = run_client(_status(choice))
    if as_json:
        click.echo(json.dumps(rows, indent=2))
    else:
        for row in rows:
            click.echo(
                f"{row['partition']}\tcopied to: {row['position']}\tof: {row['end']}\t"
                f"records: {row['records']}"
            )
    behind = sum(row["end"] - row["position"] for row in rows)
    if not as_json:
        click.echo(f"{counted(behind, 'offset')} left in {counted(len(rows), 'partition')}")
    return EXIT_FAILURE if behind else EXIT_OK


async def _status(choice: Choice) -> list[dict[str, Any]]:
    async with both_sides(choice.addresses, choice.files) as sides:
        progress = await sides.target.progress_of(sides.source.cluster_id)
        topics = await sides.source.topics(choice.topics)
        names = [name for topic in topics for name in partitions_of(topic)]
        ends = await sides.source.fetches.ends(names)
    rows = []
    for name in sorted(names):
        copied = progress.maps.get(name)
        position = copied.position if copied is not None else ends[name].start
        rows.append(
            {
                "partition": str(name),
                "position": position,
                "end": ends[name].end,
                "records": copied.record_count if copied is not None else 0,
            }
        )
    return rows


@copy.command()
@_sides
def verify(choice: Choice) -> int:
    """Compare all records, configs, access rules and group offsets of both clusters.

    For each partition, the command prints the number of records and a checksum of their keys,
    values, headers and times. In compacted topics, it compares only the last record of each key. If
    there is a difference, the exit code is 1, and the first one in each partition is described.

    \b
    Examples:
      barnabas copy verify --from kraft:9092 --to localhost:9092
      barnabas copy verify --from kraft:9092 --to localhost:9092 --topic orders
    """
    differences = run_client(_verify(choice))
    found = counted(differences, "difference") if differences else "no differences"
    click.echo(found)
    return EXIT_FAILURE if differences else EXIT_OK


async def _verify(choice: Choice) -> int:
    differences = 0
    async with both_sides(choice.addresses, choice.files) as sides:
        progress = await sides.target.progress_of(sides.source.cluster_id)
        plans = await _topic_plans(sides, choice, None, progress)
        existing = [each.name for each in plans if each.exists]
        own = await sides.target.own_configs(existing)
        compacted = await compacted_topics(sides.source, existing)
        for each in plans:
            exists = each.exists
            lines = config_differences(each, own[each.name]) if exists else ["is not copied"]
            for line in lines:
                click.echo(f"{each.name} {line}")
            differences += len(lines)
            if not exists:
                continue
            is_compacted = each.name in compacted
            for name in each.partitions:
                copied = progress.maps.get(name, OffsetMap())
                verdict = await compare(sides, name, copied, is_compacted=is_compacted)
                kind = "key" if is_compacted else "record"
                if verdict.difference:
                    click.echo(f"{name} differs: {verdict.difference}")
                    differences += 1
                else:
                    same = counted(verdict.records, kind)
                    click.echo(f"{name} is equal: {same}, checksum {verdict.checksum}")
        differences += await _other_differences(sides, choice, progress.maps)
    return differences


async def _other_differences(sides: Sides, choice: Choice, maps: Any) -> int:
    """Compare group offsets, access rules and quotas. Prints and counts the differences."""
    lines = []
    for group in await group_plans(sides, choice.groups, maps):
        for name, each in group.offsets.items():
            lines.append(f"group {group.group_id}: {name} is not committed, at {each.offset}")
        lines += [f"group {group.group_id}: {note}" for note in group.notes]
    source, target = await settings_of(sides.source), await settings_of(sides.target)
    if target.has_rules:
        for rule in sorted(source.acls - target.acls, key=repr):
            lines.append(f"access rule {rule.pattern} {rule.entry} is missing")
    for entity, values in source.quotas.items():
        if target.quotas.get(entity) != values:
            lines.append(f"the quota of {dict(entity)} is not {values}")
    for note in settings_notes(source, target):
        click.echo(f"note: {note}")
    for line in lines:
        click.echo(line)
    return len(lines)


async def _topic_plans(
    sides: Sides, choice: Choice, replicas: int | None, progress: Progress
) -> list[TopicPlan]:
    source = await sides.source.topic_facts(choice.topics)
    if choice.topics and not source:
        raise click.UsageError(f"no topic of the source matches {' or '.join(choice.topics)}")
    target = await sides.target.topic_facts(choice.topics)
    return plan_topics(source, target, progress.topics, sides.target.brokers, replicas)


def _echo_problems(plans: Sequence[TopicPlan]) -> int:
    problems = [each for each in plans if each.problem]
    for each in problems:
        click.echo(f"blocks: {each.name}: {each.problem}")
    return len(problems)

"""Derives the plan for `consume` from all of its options."""

from __future__ import annotations

from typing import NamedTuple

import click

from barnabas.cli.groups.instants import BadInstant, moment_ms
from barnabas.cli.options import one_topic
from barnabas.cli.records.positions import Start, Subscribed, beginning, start_of
from barnabas.clock import SystemClock, SystemRandom

_OWN_GROUPS = 100_000


class Place(NamedTuple):
    """Holds the options as given."""

    topic_argument: str | None = None
    topic_option: str | None = None
    include: str | None = None
    group: str | None = None
    from_beginning: bool = False
    partitions: tuple[int, ...] = ()
    offset: str | None = None
    since: str | None = None
    until: str | None = None
    exit_at_end: bool = False

    @property
    def has_end(self) -> bool:
        return self.exit_at_end or self.until is not None

    @property
    def names_a_position(self) -> bool:
        """Return whether the options require assignment, without a group."""
        named = self.partitions or self.offset or self.since or self.has_end
        return bool(named) and self.include is None


class Plan(NamedTuple):
    start: Start | Subscribed
    group: str | None
    is_own_group: bool  # a private group, which commits nothing (UX-2)
    from_beginning: bool  # for a group without commits
    has_end: bool
    to_ms: int | None  # the time at which to stop; None means at the end of the log


def make_plan(place: Place) -> Plan:
    """Return the plan that the options together describe. Raises UsageError."""
    topic = _topic(place)
    since_ms, to_ms = _times(place.since, place.until)
    origin = beginning(place.offset, place.from_beginning, place.partitions, since_ms)
    from_beginning = place.from_beginning
    if place.has_end and not (place.offset or place.since):
        origin, from_beginning = "earliest", True  # "latest" would end the command immediately
    group = place.group
    if (place.offset or place.since) and (group or place.include):
        named = "--offset" if place.offset else "--from"
        raise click.UsageError(f"a group starts at its committed offsets: leave out {named}")
    is_own_group = group is None and not place.names_a_position
    # As in Kafka's tool, a private group lets the command read partitions added later.
    if is_own_group:
        group = own_group_id()
    start = start_of(topic, place.include, group, place.partitions, origin)
    if isinstance(start, Subscribed):
        start = start._replace(
            is_own_group=is_own_group, from_now=is_own_group and origin == "latest"
        )
    return Plan(start, group, is_own_group, from_beginning, place.has_end, to_ms)


def own_group_id() -> str:
    """Return a private group id for this command, in the form used by Kafka's console consumer."""
    return f"console-consumer-{SystemRandom().below(_OWN_GROUPS)}"


def _topic(place: Place) -> str | None:
    """Return the only topic, or None with --include. Raises UsageError."""
    if place.include is None:
        return one_topic(place.topic_argument, place.topic_option)
    if place.topic_argument or place.topic_option:
        raise click.UsageError("--include cannot be combined with a topic")
    return None


def _times(since: str | None, until: str | None) -> tuple[int | None, int | None]:
    """Return the times of --from and --to in ms. Raises UsageError."""
    now_ms = SystemClock().wall_ms()
    since_ms, to_ms = _time("--from", since, now_ms), _time("--to", until, now_ms)
    # The end of each partition is looked up once, so future records would be left out.
    if to_ms is not None and to_ms > now_ms:
        raise click.UsageError(f"--to {until} is in the future: leave it out to read on")
    if since_ms is not None and to_ms is not None and to_ms < since_ms:
        raise click.UsageError(f"--to {until} is before --from {since}")
    return since_ms, to_ms


def _time(option: str, text: str | None, now_ms: int) -> int | None:
    try:
        return None if text is None else moment_ms(text, now_ms)
    except BadInstant as error:
        raise click.UsageError(f"{option} {error}") from error

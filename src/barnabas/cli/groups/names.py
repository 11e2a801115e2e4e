"""Defines the options that select groups (names, `--group` and `--all-groups`) and topics
(`--topic`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, NamedTuple, TypeVar

import click

from barnabas.cli.completion import group_ids, topic_names
from barnabas.client.admin.admin import Admin

F = TypeVar("F", bound=Callable[..., Any])


class GroupNames(NamedTuple):
    """Holds the groups of a command. If none is named, a read-only command applies to all
    groups.
    """

    names: tuple[str, ...]
    all_groups: bool

    def require(self) -> None:
        """Raise UsageError if no group is named. Commands that change groups require a name."""
        if not self.names and not self.all_groups:
            raise click.UsageError("name a group")

    @property
    def unique_ids(self) -> list[str] | None:
        """The names without duplicates, or None for all groups in the cluster."""
        return list(dict.fromkeys(self.names)) or None

    async def of(self, admin: Admin) -> list[str]:
        """Return the names without duplicates, or all groups in the cluster if there are none."""
        if self.unique_ids is not None:
            return self.unique_ids
        return [listing.group_id for listing in await admin.list_groups()]


def group_names(command: F) -> F:
    """Accept names as arguments or, like Kafka's tool, with `--group`, and pass them as `names`."""

    @click.argument("arguments", nargs=-1, metavar="[NAME]...", shell_complete=group_ids)
    @click.option(
        "--group",
        "named",
        multiple=True,
        metavar="NAME",
        shell_complete=group_ids,
        help="The same as NAME.",
    )
    @click.option("--all-groups", is_flag=True, help="Every group of the cluster.")
    # The command keeps its name and help.
    @wraps(command)
    def call(
        *args: Any,
        arguments: tuple[str, ...],
        named: tuple[str, ...],
        all_groups: bool,
        **rest: Any,
    ) -> Any:
        names = arguments + named
        if all_groups and names:
            raise click.UsageError("--all-groups cannot be combined with the name of a group")
        return command(*args, names=GroupNames(names, all_groups), **rest)

    return call  # type: ignore[return-value]


topic_selections = click.option(
    "--topic",
    "topics",
    multiple=True,
    metavar="NAME[:PARTITION,...]",
    shell_complete=topic_names,
    help="This topic, or only these partitions of it; may be repeated.",
)

"""Defines the options that select groups: names, `--group` and `--all-groups`; also `--topic`."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, NamedTuple, TypeVar

import click

from barnabas.cli.completion import group_ids, topic_names
from barnabas.client.admin.admin import Admin

F = TypeVar("F", bound=Callable[..., Any])


class GroupNames(NamedTuple):
    """Holds the groups of a command. If none is named, a command that only reads applies to all
    groups."""

    names: tuple[str, ...]
    all_groups: bool

    def require(self) -> None:
        """Raise UsageError if no group is named; for commands that change groups."""
        if not self.names and not self.all_groups:
            raise click.UsageError("name a group")

    @property
    def unique_ids(self) -> list[str] | None:
        """Each name once; None: all groups of the cluster."""
        return list(dict.fromkeys(self.names)) or None

    async def of(self, admin: Admin) -> list[str]:
        """Return each name once, or all groups of the cluster if there are no names."""
        if self.unique_ids is not None:
            return self.unique_ids
        return [listing.group_id for listing in await admin.list_groups()]


def group_names(command: F) -> F:
    """Add names as arguments or, as in Kafka's tool, with `--group`. They are passed on as
    `names`."""

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
    # The command keeps its own name and help, and gets these additional options.
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

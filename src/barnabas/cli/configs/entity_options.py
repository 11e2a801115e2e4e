"""Defines the options that specify the owner of configs: a topic, a broker or clients. Pure."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, NamedTuple, TypeVar

import click

from barnabas.cli.completion import topic_names
from barnabas.client.admin.configs import BROKER, BROKER_LOGGER, TOPIC, ConfigResource

F = TypeVar("F", bound=Callable[..., Any])

_OPTIONS = (
    click.option(
        "--topic", metavar="NAME", shell_complete=topic_names, help="The configs of this topic."
    ),
    click.option(
        "--broker", type=click.IntRange(0), metavar="ID", help="The configs of this broker."
    ),
    click.option(
        "--broker-defaults",
        is_flag=True,
        help="The defaults for brokers without a value of their own.",
    ),
    click.option(
        "--broker-loggers",
        type=click.IntRange(0),
        metavar="ID",
        help="The log levels of this broker, until it stops.",
    ),
    click.option(
        "--user",
        metavar="NAME",
        help="The quotas and SCRAM credentials of this user; secrets are not shown.",
    ),
    click.option(
        "--user-defaults", is_flag=True, help=("The quotas of each user that has none of its own.")
    ),
    click.option(
        "--client",
        metavar="ID",
        help=(
            "The quotas of this client id, or with --user those of the user's clients with this id."
        ),
    ),
    click.option(
        "--client-defaults",
        is_flag=True,
        help=("The quotas of each client id that has none of its own."),
    ),
    click.option("--ip", metavar="ADDRESS", help="The connection rate of this address."),
    click.option(
        "--ip-defaults",
        is_flag=True,
        help=("The connection rate of each address that has none of its own."),
    ),
)


class EntityOptions(NamedTuple):
    """Holds the values of the options that specify the owner of configs."""

    topic: str | None
    broker: int | None
    broker_defaults: bool
    broker_loggers: int | None
    user: str | None
    user_defaults: bool
    client: str | None
    client_defaults: bool
    ip: str | None
    ip_defaults: bool

    def resource(self) -> ConfigResource:
        """Return the topic, broker or loggers. Raises UsageError."""
        given = [
            each for each in (self.topic, self.broker, self.broker_loggers) if each is not None
        ]
        if len(given) + self.broker_defaults != 1 or self._entity():
            raise click.UsageError(
                "choose one of --topic, --broker, --broker-defaults, --broker-loggers, --user, "
                "--client and --ip"
            )
        if self.broker_loggers is not None:
            return ConfigResource(BROKER_LOGGER, str(self.broker_loggers))
        if self.topic is not None:
            if not self.topic:
                raise click.UsageError("--topic needs a name")
            return ConfigResource(TOPIC, self.topic)
        return ConfigResource(BROKER, "" if self.broker is None else str(self.broker))

    def entity(self) -> dict[str, str | None]:
        """Return the owner of quotas as names by type (`user`, `client-id`, `ip`). None stands for
        the default.

        The result is empty if no owner is given. Raises UsageError.
        """
        found = self._entity()
        if not found:
            return {}
        # The value of a missing flag is False, which would count as given.
        others = (self.topic, self.broker, self.broker_loggers, self.broker_defaults or None)
        if any(each is not None for each in others):
            raise click.UsageError(
                "--user, --client and --ip cannot be combined with a topic or broker"
            )
        # The only quota for an address is connection_creation_rate (KIP-612), which is applied
        # before the user is known.
        if "ip" in found and len(found) > 1:
            raise click.UsageError(
                "--ip cannot be combined with --user or --client: its quota applies before a "
                "user is known"
            )
        return found

    def _entity(self) -> dict[str, str | None]:
        found: dict[str, str | None] = {}
        for kind, option, name, is_default in (
            ("user", "--user", self.user, self.user_defaults),
            ("client-id", "--client", self.client, self.client_defaults),
            ("ip", "--ip", self.ip, self.ip_defaults),
        ):
            if name is not None and is_default:
                raise click.UsageError(f"use either {option} or {option}-defaults, not both")
            if name == "":
                raise click.UsageError(
                    f"{option} must not be empty; use {option}-defaults to set the default"
                )
            if name is not None or is_default:
                found[kind] = name
        return found


def entity_options(command: F) -> F:
    """Add these options to a command, which receives them as the argument `chosen`."""

    @wraps(command)
    def collect(**options: Any) -> Any:
        return command(chosen=EntityOptions(*map(options.pop, EntityOptions._fields)), **options)

    for option in reversed(_OPTIONS):
        collect = option(collect)
    return collect  # type: ignore[return-value]  # called by click alone, by names

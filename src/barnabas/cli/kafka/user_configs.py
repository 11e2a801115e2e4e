"""`kafka-configs.sh` for users: their SCRAM credentials."""

from __future__ import annotations

import click

from barnabas.cli.configs.changes import BadChange
from barnabas.cli.configs.users import describe_user_text, described_users, scram_alterations
from barnabas.cli.kafka.options import BadCommandLine, Given
from barnabas.cli.kafka.tool import Line, NotCovered, admin_of, at_servers, named
from barnabas.client.admin.scram_admin import ScramAlteration


def is_about_users(given: Given) -> bool:
    """Whether the line is about users, and nothing else."""
    return given.texts("entity-type") == ["users"] or "user" in given


def explain(given: Given, action: str) -> list[Line]:
    """Our commands for the line."""
    users = _users(given)
    if users is None:
        raise NotCovered("our command shows one user at a time: add its name by --entity-name")
    if action == "alter":
        _alterations(given, users[0])
    options = named(given, "add-config", "add") + named(given, "delete-config", "delete")
    return [["configs", action, "--user", user, *options, *at_servers(given)] for user in users]


async def describe(given: Given) -> None:
    """Print what Kafka prints."""
    users = _users(given)
    async with admin_of(given) as admin:
        for user, iterations in (await described_users(admin, users)).items():
            click.echo(describe_user_text(user, iterations))


async def alter(given: Given) -> None:
    """Change credentials, with Kafka's line."""
    users = _users(given)
    if users is None:
        raise BadCommandLine("an entity-name or default entity must be specified with --alter")
    async with admin_of(given) as admin:
        for user in users:
            await admin.alter_user_scram_credentials(_alterations(given, user))
            click.echo(f"Completed updating config for user {user}.")


def _users(given: Given) -> list[str] | None:
    """The users; None for all of them."""
    if "entity-default" in given or "user-defaults" in given:
        raise NotCovered("--entity-default: all users together have quotas alone")
    others = [name for name in ("client", "client-defaults", "topic", "broker") if name in given]
    if others:
        raise NotCovered(f"--{others[0]}: `barnabas` has no command for quotas")
    return given.texts("entity-name") or given.texts("user") or None


def _alterations(given: Given, user: str) -> list[ScramAlteration]:
    if "add-config-file" in given:
        raise NotCovered("--add-config-file: give credentials by --add-config")
    try:
        return scram_alterations(user, given.texts("add-config"), given.texts("delete-config"))
    except BadChange as error:
        raise BadCommandLine(str(error)) from error

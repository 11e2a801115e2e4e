"""Implements `barnabas users`, which manages SCRAM users and their passwords."""

from __future__ import annotations

import json
import os
import secrets
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

import click

from barnabas.cli.connection import bootstrap_server, client_options
from barnabas.cli.group import command_group
from barnabas.cli.options import as_json, run_client
from barnabas.cli.users.client_files import ClientFiles, client_files
from barnabas.client.admin.admin import Admin
from barnabas.client.admin.configs import BROKER, ConfigResource
from barnabas.client.admin.scram_admin import (
    DEFAULT_ITERATIONS,
    SCRAM_MECHANISMS,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)
from barnabas.counted import counted
from barnabas.errors import (
    BarnabasError,
    ClusterAuthorizationFailed,
    ResourceNotFound,
    SecurityDisabled,
)
from barnabas.security.acl_binding import AclBinding, AclFilter, PermissionType
from barnabas.security.acl_text import rule_text

_PASSWORD_BYTES: Final = 24
_REAUTH: Final = "connections.max.reauth.ms"
_ENDS: Final = "barnabas.connections.end.with.user"
_SUPER: Final = "super.users"

_mechanism = click.option(
    "--mechanism",
    type=click.Choice(SCRAM_MECHANISMS),
    default=SCRAM_MECHANISMS[-1],
    show_default=True,
    help="The SCRAM mechanism with which the user authenticates.",
)
_iterations = click.option(
    "--iterations",
    type=click.IntRange(4096, 16_384),
    default=DEFAULT_ITERATIONS,
    show_default=True,
    help="Iterations of the password hash.",
)
_password_stdin = click.option(
    "--password-stdin",
    is_flag=True,
    help="Read the password from standard input instead of generating one.",
)


def _writable(context: click.Context, parameter: click.Parameter, file: Path | None) -> Path | None:
    """Return the file if it is probably writable. This is checked first, because once the brokers
    have a password, it cannot be shown again.
    """
    if file is not None and not os.access(file.parent, os.W_OK | os.X_OK):
        raise click.BadParameter(f"directory {file.parent} is missing or not writable")
    return file


_file = click.option(
    "--file",
    type=click.Path(dir_okay=False, path_type=Path),
    callback=_writable,
    metavar="FILE",
    help="Write the user's connection settings to this file instead of printing the password. "
    "The settings for librdkafka and the authority's certificate are written next to it.",
)


class UserExists(BarnabasError):
    """Raised if a user to be added already has a password."""


class UserNeeded(BarnabasError):
    """Raised if the cluster itself needs the user to be deleted."""


@command_group()
def users() -> None:
    """Add, list and delete the users who log in with SCRAM, and change their passwords.

    If you do not specify a password, one is generated. It is shown only once, because brokers store
    only what they need to verify it. Use `barnabas acls` to define what a user may do.

    \b
    Examples:
      barnabas users add alice --file alice.properties
      barnabas users list
      barnabas users rotate alice --file alice.properties
      barnabas users delete alice
    """


@users.command()
@click.argument("user", metavar="NAME")
@_mechanism
@_iterations
@_password_stdin
@_file
@bootstrap_server
def add(
    user: str,
    mechanism: str,
    iterations: int,
    password_stdin: bool,
    file: Path | None,
    servers: str,
) -> None:
    """Add a user.

    \b
    Examples:
      barnabas users add alice --file alice.properties
      barnabas users add bob --password-stdin < password
    """
    wanted = UserScramCredentialUpsertion(user, _password(password_stdin), mechanism, iterations)
    files = _client_files(file, servers)
    run_client(_set(servers, wanted, is_new=True))
    _hand_over(wanted, files, f"Added user {user}")


@users.command()
@click.argument("user", metavar="NAME")
@_mechanism
@_iterations
@_password_stdin
@_file
@bootstrap_server
def rotate(
    user: str,
    mechanism: str,
    iterations: int,
    password_stdin: bool,
    file: Path | None,
    servers: str,
) -> None:
    """Give a user a new password. Open connections stay open unless connections.max.reauth.ms is
    set on the brokers.

    \b
    Examples:
      barnabas users rotate alice --file alice.properties
    """
    wanted = UserScramCredentialUpsertion(user, _password(password_stdin), mechanism, iterations)
    files = _client_files(file, servers)
    run_client(_set(servers, wanted, is_new=False))
    _hand_over(wanted, files, f"Changed the password of user {user}")


@users.command("list")
@bootstrap_server
@as_json
def list_(servers: str, as_json: bool) -> None:
    """List the users, with the mechanisms that each can use to log in.

    \b
    Examples:
      barnabas users list
      barnabas users list --json
    """
    found = run_client(_describe_all(servers))
    if as_json:
        click.echo(json.dumps(found, indent=2))
        return
    for user, mechanisms in found.items():
        shown = ", ".join(
            f"{name} ({counted(rounds, 'iteration')})" for name, rounds in mechanisms.items()
        )
        click.echo(f"{user}\t{shown}")


@users.command()
@click.argument("user", metavar="NAME")
@click.option(
    "--revoke", is_flag=True, help=("Also delete the rules that grant permissions to the user.")
)
@click.option(
    "--force", is_flag=True, help="Delete the user even if it is one of the brokers' super.users."
)
@bootstrap_server
def delete(user: str, revoke: bool, force: bool, servers: str) -> None:
    """Delete a user's passwords for all mechanisms, and list what remains.

    The user's rules remain, and so do open connections unless barnabas.connections.end.with.user is
    set on the brokers. With --revoke, the user's allow rules are deleted too, so that open
    connections may do only what every user may do. Deny rules always remain.

    \b
    Examples:
      barnabas users delete alice
      barnabas users delete alice --revoke
    """
    left = run_client(_delete(servers, user, revokes=revoke, is_forced=force))
    click.echo(f"Deleted user {user}.")
    for line in left.lines(user):
        click.echo(line)


class Left(NamedTuple):
    """Holds what remains of a user after deleting the passwords. `rules` is None if the rules could
    not be read.
    """

    removed: list[AclBinding]
    rules: list[AclBinding] | None
    settings: Mapping[str, str]
    """The settings of a broker, or empty if they cannot be read."""

    def lines(self, user: str) -> Iterator[str]:
        """Yield lines that tell an administrator what remains."""
        if self.removed:
            yield f"Deleted {counted(len(self.removed), 'rule')}:"
            yield from (f"  {rule_text(rule)}" for rule in self.removed)
        if self.rules is None:
            yield f"Rules that name {user}, if any, remain; you are not authorized to see them."
        elif self.rules:
            yield (
                f"Rules that name {user} remain, and will apply to a later user of this name "
                f"(`barnabas acls delete --user {user}`):"
            )
            yield from (f"  {rule_text(rule)}" for rule in self.rules)
        max_reauth_ms = int(self.settings.get(_REAUTH) or 0)
        if self.settings.get(_ENDS) == "true":
            until = f"end now ({_ENDS})"
        elif max_reauth_ms:
            until = f"end within {max_reauth_ms / 60_000:g} min ({_REAUTH})"
        else:
            until = f"stay open until clients close them ({_ENDS} or {_REAUTH} would end them)"
        yield f"Open connections of {user} {until}."


def _password(from_stdin: bool) -> str:
    if not from_stdin:
        # The password has 192 bits, and needs no escaping in a shell, a JAAS line or a properties
        # file.
        return secrets.token_urlsafe(_PASSWORD_BYTES)
    password = sys.stdin.readline().rstrip("\r\n")
    if not password:
        raise click.UsageError("--password-stdin: standard input has no password")
    return password


async def _set(servers: str, wanted: UserScramCredentialUpsertion, *, is_new: bool) -> None:
    async with Admin(servers, **client_options()) as admin:
        # Brokers do not distinguish new users from existing ones, but `add` must not accidentally
        # replace a password.
        known = await _mechanisms_of(admin, wanted.user)
        if is_new and known:
            raise UserExists(
                f"user {wanted.user} already has a password: `barnabas users rotate` changes it"
            )
        if not is_new and not known:
            raise ResourceNotFound(
                f"user {wanted.user} does not exist; `barnabas users add` creates it"
            )
        await admin.alter_user_scram_credentials(wanted)


async def _describe_all(servers: str) -> Mapping[str, Mapping[str, int]]:
    async with Admin(servers, **client_options()) as admin:
        return await admin.describe_user_scram_credentials()


async def _delete(servers: str, user: str, *, revokes: bool, is_forced: bool) -> Left:
    async with Admin(servers, **client_options()) as admin:
        mechanisms = await _mechanisms_of(admin, user)
        if not mechanisms:
            raise ResourceNotFound(f"user {user} does not exist")
        settings = await _settings(admin)
        # The names in super.users are separated by semicolons, because TLS names contain commas.
        if not is_forced and f"User:{user}" in settings.get(_SUPER, "").split(";"):
            raise UserNeeded(
                f"user {user} is one of the brokers' {_SUPER}: it administers the cluster, or "
                "brokers connect to each other as this user; to delete it anyway, give --force"
            )
        await admin.alter_user_scram_credentials(
            [UserScramCredentialDeletion(user, mechanism) for mechanism in mechanisms]
        )
        removed: list[AclBinding] = []
        try:
            if revokes:
                removed = await admin.delete_acls(
                    AclFilter(principal=f"User:{user}", permission=PermissionType.ALLOW)
                )
            rules = await admin.describe_acls(AclFilter(principal=f"User:{user}"))
        except SecurityDisabled:  # there are no rules without an authorizer
            return Left([], [], settings)
        # Deleting users and reading rules require separate permissions. Here, the user was deleted,
        # but the rules could not be read.
        except ClusterAuthorizationFailed:
            if revokes:
                raise
            return Left([], None, settings)
        return Left(removed, rules, settings)


async def _settings(admin: Admin) -> Mapping[str, str]:
    """Return the broker settings that determine the effect of a deletion, or nothing if they cannot
    be read.
    """
    try:
        broker = (await admin.describe_cluster()).brokers[0]
        resource = ConfigResource(BROKER, str(broker.broker_id))
        entries = await admin.describe_configs(resource, [_REAUTH, _ENDS, _SUPER])
    except (BarnabasError, LookupError):
        return {}
    return {each.name: each.value for each in entries if each.value is not None}


async def _mechanisms_of(admin: Admin, user: str) -> list[str]:
    try:
        return list((await admin.describe_user_scram_credentials(user))[user])
    except ResourceNotFound:
        return []


def _client_files(file: Path | None, servers: str) -> ClientFiles | None:
    """Prepare the files before the brokers have the password, which cannot be shown again."""
    return None if file is None else client_files(file, servers, client_options())


def _hand_over(wanted: UserScramCredentialUpsertion, files: ClientFiles | None, done: str) -> None:
    """Print the password, or write it to a file with everything else that a client needs."""
    if files is None:
        click.echo(f"{done}; the password, which is shown only once: {wanted.password}")
    else:
        click.echo(f"{done}; {files.write(wanted)}")

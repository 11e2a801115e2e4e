"""Implements `barnabas profile`, which names clusters, so that users need not type addresses."""

from __future__ import annotations

import json
from pathlib import Path

import click

from barnabas.cli.completion import profile_names
from barnabas.cli.group import command_group
from barnabas.cli.options import as_json
from barnabas.cli.profile.store import (
    BadProfile,
    Profile,
    check_name,
    profiles_path,
    read_profiles,
    write_profiles,
)
from barnabas.client.config import parse_servers
from barnabas.errors import ConfigError


@command_group()
def profile() -> None:
    """Name clusters, so that `--profile NAME` stands for a cluster's addresses and client configs.

    Without --bootstrap-server, a command uses --profile, then bootstrap.servers in the file of
    --command-config, then BARNABAS_BOOTSTRAP_SERVER, then BARNABAS_PROFILE, then the profile
    selected by `profile use`, then localhost:9092.

    \b
    Examples:
      barnabas profile add staging --bootstrap-server broker1:9092,broker2:9092
      barnabas topics list --profile staging
      barnabas profile use staging
    """


@profile.command()
@click.argument("name", metavar="NAME")
@click.option(
    "--bootstrap-server",
    "servers",
    required=True,
    metavar="HOST:PORT[,...]",
    help="Bootstrap brokers; one that responds is enough.",
)
@click.option(
    "--command-config",
    type=click.Path(dir_okay=False, exists=True, path_type=Path),
    metavar="FILE",
    help="A properties file of client configs, such as request.timeout.ms=5000.",
)
@click.option("--replace", is_flag=True, help="Replace a profile of that name.")
def add(name: str, servers: str, command_config: Path | None, replace: bool) -> None:
    """Add a profile. Its file is in the user's config directory, and only the user can read it.

    \b
    Examples:
      barnabas profile add staging --bootstrap-server broker1:9092,broker2:9092
      barnabas profile add slow --bootstrap-server far:9092 --command-config slow.properties
    """
    try:
        check_name(name)
        parse_servers(servers)
    except (BadProfile, ConfigError) as error:
        raise click.UsageError(str(error)) from error
    profiles = read_profiles()
    if name in profiles.by_name and not replace:
        raise BadProfile(f"profile {name} already exists; to replace it, use --replace")
    config = None if command_config is None else str(command_config.resolve())
    added = {**profiles.by_name, name: Profile(servers, config)}
    write_profiles(profiles._replace(by_name=added))
    click.echo(f"Added profile {name} to {profiles_path()}.")


@profile.command("list")
@as_json
def list_(as_json: bool) -> None:
    """List the profiles, one per line; a star marks the one in use.

    \b
    Examples:
      barnabas profile list
      barnabas profile list --json
    """
    profiles = read_profiles()
    if as_json:
        values = [
            {"name": name, **each._asdict(), "in_use": name == profiles.current}
            for name, each in profiles.by_name.items()
        ]
        click.echo(json.dumps(values, indent=2))
        return
    for name, each in profiles.by_name.items():
        mark = "*" if name == profiles.current else " "
        click.echo(f"{mark} {name}\t{each.bootstrap_servers}")


@profile.command()
@click.argument("name", metavar="[NAME]", required=False, shell_complete=profile_names)
def show(name: str | None) -> None:
    """Show a profile, or the one in use if no name is given.

    \b
    Examples:
      barnabas profile show
      barnabas profile show staging
    """
    profiles = read_profiles()
    name = name or profiles.current
    if name is None:
        raise click.UsageError("no profile is in use; name a profile")
    found = profiles.find(name, "profile")
    click.echo(f"bootstrap.servers={found.bootstrap_servers}")
    if found.command_config is not None:
        click.echo(f"command-config={found.command_config}")


@profile.command()
@click.argument("name", metavar="NAME", shell_complete=profile_names)
def delete(name: str) -> None:
    """Delete a profile.

    \b
    Examples:
      barnabas profile delete staging
    """
    profiles = read_profiles()
    profiles.find(name, "profile")
    left = {each: kept for each, kept in profiles.by_name.items() if each != name}
    current = None if profiles.current == name else profiles.current
    write_profiles(profiles._replace(by_name=left, current=current))
    click.echo(f"Deleted profile {name}.")


@profile.command()
@click.argument("name", metavar="[NAME]", required=False, shell_complete=profile_names)
@click.option("--none", "nothing", is_flag=True, help="Use no profile from now on.")
def use(name: str | None, nothing: bool) -> None:
    """Use a profile whenever nothing else specifies the brokers.

    \b
    Examples:
      barnabas profile use staging
      barnabas profile use --none
    """
    if (name is None) != nothing:
        raise click.UsageError("name a profile, or --none")
    profiles = read_profiles()
    if name is not None:
        profiles.find(name, "profile")
    write_profiles(profiles._replace(current=name))
    click.echo("No profile is in use." if name is None else f"Profile {name} is in use.")

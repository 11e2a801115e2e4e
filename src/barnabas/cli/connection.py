"""Determines a command's brokers, and how to connect to them, from its options, the environment or
a profile.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import click
from click.core import ParameterSource

from barnabas.cli.complaint import warn
from barnabas.cli.completion import profile_names
from barnabas.errors import ConfigError

F = TypeVar("F", bound=Callable[..., Any])

DEFAULT_SERVERS = "localhost:9092"
_VARIABLE, _PROFILE_VARIABLE = "BARNABAS_BOOTSTRAP_SERVER", "BARNABAS_PROFILE"
# These are keys of the context's `meta`.
_PROFILE, _OPTIONS = "barnabas.profile", "barnabas.client_options"
_FILES_SERVERS = "barnabas.bootstrap_servers"


def bootstrap_server(command: F) -> F:
    """Add `--bootstrap-server`, `--profile` and `--command-config`. The command receives the
    addresses as `servers`.
    """
    servers = click.option(
        "--bootstrap-server",
        "servers",
        envvar=_VARIABLE,
        show_envvar=True,
        callback=_servers,
        metavar="HOST:PORT[,...]",
        help=f"Bootstrap brokers; one that responds is enough. Default: {DEFAULT_SERVERS}.",
    )
    profile = click.option(
        "--profile",
        expose_value=False,
        is_eager=True,
        callback=_remember_profile,
        shell_complete=profile_names,
        metavar="NAME",
        help=f"The brokers of a profile (`barnabas profile`); also {_PROFILE_VARIABLE}.",
    )
    config = click.option(
        "--command-config",
        expose_value=False,
        callback=_read_config,
        type=click.Path(dir_okay=False),
        metavar="FILE",
        help="A properties file of client configs: security.protocol, bootstrap.servers, ...",
    )
    return servers(profile(config(command)))


def client_options(context: click.Context | None = None) -> dict[str, Any]:
    """Return the client configs from `--command-config` or the profile, as keyword arguments.
    `context` defaults to the current context.
    """
    context = context or click.get_current_context(silent=True)
    options: dict[str, Any] = {} if context is None else context.meta.get(_OPTIONS, {})
    return options


def _remember_profile(context: click.Context, _: click.Parameter, name: str | None) -> None:
    context.meta[_PROFILE] = name


def _servers(context: click.Context, parameter: click.Parameter, servers: str | None) -> str:
    assert parameter.name is not None
    source = context.get_parameter_source(parameter.name)
    # As documented in `barnabas profile --help`, values on the command line override stored ones.
    if source is ParameterSource.COMMANDLINE and servers is not None:
        return servers
    name = context.meta.get(_PROFILE)
    if name is None and _FILES_SERVERS in context.meta:
        of_file: str = context.meta[_FILES_SERVERS]
        return of_file
    # --profile and the file override this value from the environment, but BARNABAS_PROFILE does
    # not.
    if name is None and servers is not None:
        return servers
    from barnabas.cli.profile.store import BadProfile, read_profiles

    given_by = "--profile"
    if name is None and (name := os.environ.get(_PROFILE_VARIABLE)):
        given_by = _PROFILE_VARIABLE
    try:
        profiles = read_profiles()
        if name is None and (name := profiles.current) is None:
            return DEFAULT_SERVERS
        profile = profiles.find(name, given_by)
    except BadProfile as error:
        raise click.UsageError(str(error), context) from error
    # --command-config on the command line replaces the profile's own file.
    if profile.command_config is not None and _OPTIONS not in context.meta:
        properties = _properties(context, profile.command_config)
        context.meta[_OPTIONS] = _options_of(context, profile.command_config, properties)
    return profile.bootstrap_servers


def _read_config(context: click.Context, _: click.Parameter, path: str | None) -> None:
    if path is None:
        return
    properties = _properties(context, path)
    context.meta[_OPTIONS] = _options_of(context, path, properties)
    if properties.get("bootstrap.servers"):
        context.meta[_FILES_SERVERS] = properties["bootstrap.servers"]


def _properties(context: click.Context, path: str) -> dict[str, str]:
    from barnabas.config import load_properties

    try:
        return load_properties(path)
    except ConfigError as error:
        raise click.UsageError(str(error), context) from error


def _options_of(context: click.Context, path: str, properties: Mapping[str, str]) -> dict[str, Any]:
    """Return the options in a properties file that every client supports, omitting the others."""
    from barnabas.client.config import ClientConfig, configure, of_every_client
    from barnabas.client.known_options import unknown_options

    try:
        common = of_every_client(properties)
        if context.params.get("signs_in"):
            common = _without_login(common)
        else:
            configure(ClientConfig, common)
    except ConfigError as error:
        raise click.UsageError(f"{path}: {error}", context) from error
    # Only warn, because a file for Kafka's clients may contain settings that our clients do not
    # need.
    for line in unknown_options(properties):
        warn(context.command_path, f"{path}: {line}")
    return common


def _without_login(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options without a user name and password, and check the others. Users supply their
    own names and passwords later.
    """
    from barnabas.client.config import ClientConfig, configure

    login = ("sasl_jaas_config", "sasl_plain_username", "sasl_plain_password")
    others = {name: value for name, value in options.items() if name not in login}
    if str(others.get("security_protocol", "")).strip().upper().startswith("SASL_"):
        configure(ClientConfig, {**others, login[1]: "user", login[2]: "password"})
    else:
        configure(ClientConfig, others)
    return others

"""Implements `barnabas certificates`, which shows and issues the certificates in a directory
created by `--secure`.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from barnabas.cli.complaint import warn
from barnabas.cli.group import command_group
from barnabas.cli.options import as_json
from barnabas.counted import counted
from barnabas.errors import ConfigError
from barnabas.extras import install_line
from barnabas.security.pem import LIFE_DAYS

if TYPE_CHECKING:
    from types import ModuleType

    from barnabas.security.authority import Described

_WARN_DAYS: Final = 30

_secure_dir = partial(
    click.option,
    "--secure-dir",
    "directory",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    metavar="DIR",
    help="The directory of `server start --secure`.",
)
_names = click.option(
    "--name",
    "names",
    multiple=True,
    metavar="HOST",
    help="A host name or address; may be repeated.",
)
_days = click.option(
    "--days",
    type=click.IntRange(1, 3650),
    default=LIFE_DAYS,
    show_default=True,
    help="How long the certificate is valid.",
)


@command_group()
def certificates() -> None:
    """Show, renew and issue the certificates of brokers and clients.

    \b
    Examples:
      barnabas certificates show --secure-dir ~/barnabas-secure
      barnabas certificates renew --secure-dir ~/barnabas-secure
      barnabas certificates issue --secure-dir ~/barnabas-secure --user alice --file alice.pem
    """


@certificates.command()
@click.argument("files", nargs=-1, type=click.Path(path_type=Path, dir_okay=False))
@_secure_dir()
@as_json
def show(files: tuple[Path, ...], directory: Path | None, as_json: bool) -> None:
    """Show the names in certificates and when the certificates expire. Warn about those that expire
    within 30 days.

    FILES must be in PEM.

    \b
    Examples:
      barnabas certificates show --secure-dir ~/barnabas-secure
      barnabas certificates show broker.pem --json
    """
    own = _own_authority()
    paths = list(files)
    if directory is not None:
        paths += [directory / own.AUTHORITY, directory / own.SERVER]
    if not paths:
        raise click.UsageError("name files, or a directory: --secure-dir DIR")
    found = {path: own.certificate_in(path) for path in paths}
    left = {path: _days_left(each) for path, each in found.items()}
    if as_json:
        rows = [_as_json(path, found[path], left[path]) for path in paths]
        click.echo(json.dumps(rows, indent=2))
    else:
        for path, each in found.items():
            names = ", ".join(sorted(each.names)) or "-"
            click.echo(
                f"{path}\t{each.subject}\t{names}\texpires {_end(each)}, days left: {left[path]}"
            )
    for path, days in left.items():
        if days < 0:
            warn("barnabas certificates", f"{path} has expired: renew it")
        elif days < _WARN_DAYS:
            warn("barnabas certificates", f"{path} expires in {counted(days, 'day')}: renew it")


@certificates.command()
@_secure_dir(required=True)
@_names
@_days
def renew(directory: Path, names: tuple[str, ...], days: int) -> None:
    """Renew the brokers' certificate, with its current names and any added by --name.

    Running brokers load the new certificate within seconds. Brokers on other machines need a copy
    of server.pem. The authority's key, ca.key, must be in the directory.

    \b
    Examples:
      barnabas certificates renew --secure-dir ~/barnabas-secure
      barnabas certificates renew --secure-dir ~/barnabas-secure --name kafka.example.org
    """
    own = _own_authority()
    made: Described = own.renew(directory, names, days)
    click.echo(
        f"Renewed {directory / own.SERVER}, for {', '.join(sorted(made.names))}; it expires on "
        f"{_end(made)}."
    )


@certificates.command()
@_secure_dir(required=True)
@click.option("--user", metavar="NAME", help="Issue a client's certificate, for CN=NAME.")
@_names
@_days
@click.option(
    "--file",
    required=True,
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Write key and certificate to this file, readable only by you.",
)
def issue(directory: Path, user: str | None, names: tuple[str, ...], days: int, file: Path) -> None:
    """Issue a certificate for a client (--user) or for a host (--name).

    \b
    Examples:
      barnabas certificates issue --secure-dir ~/barnabas-secure --user alice --file alice.pem
      barnabas certificates issue --secure-dir ~/barnabas-secure --name b2.example.org --file b2.pem
    """
    # A certificate is either for a client or for hosts, never for both.
    if (user is None) == (not names):
        raise click.UsageError("name a user or hosts: --user NAME, or --name HOST")
    made: Described = _own_authority().issue(directory, file, user or "barnabas", names, days)
    click.echo(f"Wrote {file}, for {made.subject}; it expires on {_end(made)}.")


def _own_authority() -> ModuleType:
    """Import the module that issues certificates. Raises ConfigError if its library is missing."""
    try:
        from barnabas.broker.security import own_authority
    except ImportError:
        raise ConfigError(
            f"certificates require a library: {install_line('security', ['cryptography'])}"
        ) from None
    return own_authority


def _days_left(certificate: Described) -> int:
    return (certificate.ends_at - datetime.now(UTC)).days


def _end(certificate: Described) -> str:
    return f"{certificate.ends_at:%Y-%m-%d}"


def _as_json(path: Path, certificate: Described, days: int) -> dict[str, Any]:
    return {
        "file": str(path),
        "subject": certificate.subject,
        "names": sorted(certificate.names),
        "ends": certificate.ends_at.isoformat(),
        "days_left": days,
    }

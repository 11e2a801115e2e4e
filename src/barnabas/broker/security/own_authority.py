"""Manages the certificates in a `--secure` directory, such as those of the authority and the
brokers.

    ca.pem, ca.key    the authority; its key is needed only to issue certificates
    server.pem        the brokers' key and certificate

The authority's key can be stored elsewhere. If it is missing, a broker logs a warning and runs
until its certificate expires.
"""

from __future__ import annotations

import logging
from collections.abc import Collection
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from barnabas.errors import ConfigError
from barnabas.security.authority import Authority, Described, Issued, describe
from barnabas.security.pem import LIFE_DAYS
from barnabas.security.secret_file import write_secret

_log = logging.getLogger(__name__)

AUTHORITY: Final = "ca.pem"
AUTHORITY_KEY: Final = "ca.key"
SERVER: Final = "server.pem"
RENEW_BEFORE: Final = timedelta(days=30)

_AUTHORITY_LIFE = timedelta(days=3650)
_COMMAND = "barnabas certificates renew"


def ensure_certificates(directory: Path, names: Collection[str]) -> None:
    """Create any files that are missing. Reissue the brokers' certificate if it will expire soon or
    lacks one of the names.

    If the authority's key is missing, a certificate that is still valid is kept and a warning is
    logged. Raises ConfigError or OSError.
    """
    if not (directory / AUTHORITY).exists():
        authority = Authority.new("Barnabas CA", _AUTHORITY_LIFE)
        write_secret(directory / AUTHORITY_KEY, authority.key)
        (directory / AUTHORITY).write_bytes(authority.certificate)
    path = directory / SERVER
    known = certificate_in(path) if path.exists() else None
    now = datetime.now(UTC)
    missing = sorted(set(names) - known.names) if known is not None else []
    # There is nothing to do at nearly every start, and the authority's key is then not read.
    if known is not None and not missing and known.ends_at > now + RENEW_BEFORE:
        return
    if (directory / AUTHORITY_KEY).exists():
        renew(directory, names)
        return
    again = (
        f"run `{_COMMAND} --secure-dir DIR` on the machine that has {AUTHORITY_KEY} and copy "
        f"{SERVER} here"
    )
    if known is None:
        raise ConfigError(f"{path} and {AUTHORITY_KEY}, which issues it, are missing: {again}")
    if known.ends_at <= now:
        raise ConfigError(f"{path} expired on {known.ends_at:%Y-%m-%d}: {again}")
    lacks = f" and lacks {', '.join(missing)}" if missing else ""
    _log.warning("%s expires on %s%s: %s", path, f"{known.ends_at:%Y-%m-%d}", lacks, again)


def renew(directory: Path, names: Collection[str] = (), days: int = LIFE_DAYS) -> Described:
    """Reissue the brokers' certificate with these names, in addition to the names that it already
    contains.

    Raises ConfigError or OSError.
    """
    path = directory / SERVER
    known = certificate_in(path).names if path.exists() else frozenset()
    wanted = sorted(known | set(names))
    if not wanted:
        raise ConfigError(f"{path} is missing: name its hosts with --name")
    issued = load_authority(directory).issue("barnabas", timedelta(days=days), wanted)
    write_secret(path, issued.key + issued.certificate)
    return describe(issued.certificate)


def issue(
    directory: Path, file: Path, common_name: str, names: Collection[str], days: int
) -> Described:
    """Write a new key and its certificate to a file. Raises ConfigError or OSError."""
    if file.exists():
        raise ConfigError(f"{file} already exists: name another file, or remove it")
    issued = load_authority(directory).issue(common_name, timedelta(days=days), sorted(names))
    write_secret(file, issued.key + issued.certificate)
    return describe(issued.certificate)


def load_authority(directory: Path) -> Authority:
    """Return the authority together with its key. Raises ConfigError."""
    key, certificate = directory / AUTHORITY_KEY, directory / AUTHORITY
    try:
        return Authority.load(Issued(key.read_bytes(), certificate.read_bytes()))
    except OSError as error:
        raise ConfigError(
            f"{error.filename} cannot be read ({error.strerror}): issue certificates on the "
            "machine that has the authority's key"
        ) from error
    except ValueError as error:
        raise ConfigError(f"{key}, {certificate}: {error}. Restore them from a backup") from error


def certificate_in(path: Path) -> Described:
    """Return the first certificate in a PEM file. Raises ConfigError."""
    try:
        return describe(path.read_bytes())
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from error
    except ValueError:
        raise ConfigError(f"{path} contains no valid PEM certificate") from None

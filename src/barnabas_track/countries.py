"""Looks up the country of an address in a database file, such as GeoLite2-Country.mmdb.

Only the country's code is added to an event. The address itself is not kept.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import maxminddb

from barnabas.errors import ConfigError

_CODE: Final = re.compile("[A-Z]{2}")


class Countries:
    """A database in MaxMind's DB format, which MaxMind, DB-IP and IPinfo publish."""

    def __init__(self, path: Path) -> None:
        """Raises ConfigError if the file is not a database of countries."""
        try:
            self._database = maxminddb.open_database(path)
        except OSError as error:
            raise ConfigError(f"--countries {path}: {error.strerror or error}") from error
        except (maxminddb.InvalidDatabaseError, ValueError) as error:
            raise ConfigError(
                f"--countries {path}: this is not a database in MaxMind's DB format, such as "
                "GeoLite2-Country.mmdb"
            ) from error

    def country_of(self, address: str) -> str | None:
        """Return the ISO 3166 code of the country of an address, such as AT, or None if unknown."""
        try:
            found = self._database.get(address.partition("%")[0])
        except ValueError:  # not an address, or an IPv6 address in a database of IPv4
            return None
        return _code(found)


def _code(found: Any) -> str | None:
    """Return the code in an entry of MaxMind's or DB-IP's database, or of IPinfo's."""
    if not isinstance(found, Mapping):
        return None
    country = found.get("country", found.get("country_code"))
    if isinstance(country, Mapping):
        country = country.get("iso_code")
    if not isinstance(country, str) or _CODE.fullmatch(country) is None:
        country = found.get("country_code")
    is_code = isinstance(country, str) and _CODE.fullmatch(country) is not None
    return country if is_code else None

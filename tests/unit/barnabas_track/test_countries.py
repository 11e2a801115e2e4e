"""BT-6: an event gets the country of its address, and never the address."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.errors import ConfigError
from barnabas_track.countries import Countries
from tests.kit.country_database import write_database

VALUES = {
    "192.0.2.0/24": {"country": {"iso_code": "AT", "names": {"en": "Austria"}}},
    "198.51.100.0/25": {"country_code": "NZ", "country": "New Zealand"},
    "203.0.113.0/24": {"continent": {"code": "EU"}},
    "2001:db8::/32": {"country": "CA"},
    "2001:db9::/32": {"country": {"iso_code": "<b>"}},
}


@pytest.fixture
def countries(tmp_path: Path) -> Countries:
    return Countries(write_database(tmp_path / "countries.mmdb", VALUES))


@pytest.mark.parametrize(
    ("address", "country"),
    [
        ("192.0.2.7", "AT"),
        ("198.51.100.1", "NZ"),
        ("198.51.100.200", None),
        ("203.0.113.9", None),
        ("2001:db8::1", "CA"),
        ("2001:db8::1%eth0", "CA"),
        ("2001:db9::1", None),
        ("10.0.0.1", None),
        ("not an address", None),
        ("", None),
    ],
)
def test_the_country_of_an_address(countries: Countries, address: str, country: str | None) -> None:
    assert countries.country_of(address) == country


def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "countries.mmdb"
    path.write_bytes(b"country,code\n" * 100)
    with pytest.raises(
        ConfigError, match=r"--countries .*: this is not a database in MaxMind's DB format"
    ):
        Countries(path)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"no\.mmdb: No such file"):
        Countries(tmp_path / "no.mmdb")

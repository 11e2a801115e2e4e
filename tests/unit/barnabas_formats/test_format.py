"""Files of formats: what is wrong with one (UX-4), and JSON keys."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.errors import ConfigError
from barnabas_formats.format import Format, in_zone, read_format

HEAD = 'title = "t"\nsource = "https://example.org"\n'


def test_a_file(tmp_path: Path) -> None:
    path = tmp_path / "shop.toml"
    path.write_text(
        f'{HEAD}wraps = true\n[[json]]\ntime = ["a.b"]\nrequired = ["c"]\nunit = "ms"\n'
    )
    found = read_format(path, "system")
    assert (found.name, found.kind, found.wraps, found.is_built_in) == (
        "shop",
        "system",
        True,
        True,
    )
    (keys,) = found.json
    assert (keys.keys["time"], keys.required, keys.unit) == (("a.b",), ("c",), "ms")


@pytest.mark.parametrize(
    ("content", "what"),
    [
        ("colour = 1", "colour: no such key"),
        ("[[json]]\ntime = 'a'", "json: time is not a list of keys"),
        ("[[json]]\nunit = 'weeks'", "'weeks' is not a unit of time"),
        ("patterns = ['x']", "{message} is missing"),
        ("zone = 'Mars'", "'Mars' is not a time zone"),
        ("[[json", "shop.toml"),
    ],
)
def test_ux_4_what_is_wrong_with_a_file(tmp_path: Path, content: str, what: str) -> None:
    path = tmp_path / "shop.toml"
    path.write_text(HEAD + content)
    with pytest.raises(ConfigError) as raised:
        read_format(path, "system")
    assert what in str(raised.value)
    assert str(path) in str(raised.value)


def test_a_zone_for_formats_without_one() -> None:
    own = [Format("a"), Format("b", zone="Asia/Tokyo")]
    assert [each.zone for each in in_zone(own, "Europe/Vienna")] == ["Europe/Vienna", "Asia/Tokyo"]
    with pytest.raises(ConfigError, match="'Mars' is not a time zone"):
        in_zone(own, "Mars")

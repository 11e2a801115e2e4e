"""The file of profiles: private, replaced as a whole, and judged when it is read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from barnabas.cli.profile.store import (
    BadProfile,
    Profile,
    Profiles,
    check_name,
    profiles_path,
    read_profiles,
    write_profiles,
)

STAGING = Profile("a:9092,b:9092", "/etc/staging.properties")


@pytest.fixture(autouse=True)
def home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    return tmp_path


def test_what_is_written_is_read_and_for_its_owner_only(home: Path) -> None:
    assert read_profiles() == Profiles()
    written = Profiles({"staging": STAGING, "local": Profile("localhost:9092")}, "staging")
    write_profiles(written)
    assert read_profiles() == written
    path = home / "barnabas" / "profiles.json"
    assert path == profiles_path()
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    write_profiles(Profiles())
    assert read_profiles() == Profiles()
    assert [each.name for each in path.parent.iterdir()] == ["profiles.json"]


def test_a_failed_write_leaves_the_file_as_it_was(home: Path) -> None:
    write_profiles(Profiles({"staging": STAGING}))
    with pytest.raises(TypeError):
        write_profiles(Profiles({"bad": Profile("a:1", object())}))  # type: ignore[arg-type]
    assert read_profiles() == Profiles({"staging": STAGING})
    assert len(list((home / "barnabas").iterdir())) == 1


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{", "is not JSON"),
        ("[]", "has no profiles"),
        (json.dumps({"version": 1}), "has no profiles"),
        (json.dumps({"version": 1, "profiles": {"a": {}}}), "has no profiles"),
        (json.dumps({"version": 2, "profiles": {}}), "unknown version, 2"),
    ],
)
def test_ux_4_a_file_that_is_broken_is_named(text: str, problem: str) -> None:
    profiles_path().parent.mkdir()
    profiles_path().write_text(text)
    with pytest.raises(BadProfile, match=problem) as raised:
        read_profiles()
    assert str(profiles_path()) in str(raised.value)


def test_a_mistyped_name_is_answered_with_what_there_is() -> None:
    profiles = Profiles({"staging": STAGING, "prod": STAGING})
    assert profiles.find("staging", "--profile") == STAGING
    with pytest.raises(BadProfile, match=r"^--profile stagin: .*; did you mean staging\?$"):
        profiles.find("stagin", "--profile")
    with pytest.raises(BadProfile, match=r"the profiles are prod, staging$"):
        profiles.find("x", "--profile")
    with pytest.raises(BadProfile, match="`barnabas profile add` creates one"):
        Profiles().find("x", "--profile")


@pytest.mark.parametrize("name", ["", "a b", "-a", "a/b", "x" * 65])
def test_what_is_no_name(name: str) -> None:
    with pytest.raises(BadProfile, match="is not a valid profile name"):
        check_name(name)

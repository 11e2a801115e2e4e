"""Stores the user's profiles, which name clusters, in a file.

    $XDG_CONFIG_HOME/barnabas/profiles.json    ~/.config/barnabas, or the platform's directory

The file is replaced as a whole. Only its owner can read it, because a command config may refer to
secrets.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import click

from barnabas.disk_sync import sync_descriptor
from barnabas.errors import BarnabasError

_FILE_NAME = "profiles.json"
_VERSION = 1
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


class BadProfile(BarnabasError):
    """Raised if a profile does not exist or is invalid; the message says what to do."""


class Profile(NamedTuple):
    bootstrap_servers: str
    command_config: str | None = None  # a properties file of client configs


class Profiles(NamedTuple):
    by_name: Mapping[str, Profile] = {}
    current: str | None = None  # the default profile

    def find(self, name: str, given_by: str) -> Profile:
        """Return the profile with this name. Raises BadProfile, which mentions `given_by`."""
        found = self.by_name.get(name)
        if found is not None:
            return found
        from barnabas.similar_names import did_you_mean

        advice = did_you_mean(name, self.by_name) or (
            f"the profiles are {', '.join(sorted(self.by_name))}"
            if self.by_name
            else "`barnabas profile add` creates one"
        )
        raise BadProfile(f"{given_by} {name}: there is no such profile; {advice}")


def profiles_path() -> Path:
    return Path(click.get_app_dir("barnabas")) / _FILE_NAME


def read_profiles() -> Profiles:
    """Return the profiles, or none if the file does not exist. Raises BadProfile or OSError."""
    path = profiles_path()
    try:
        stored = json.loads(path.read_bytes())
    except FileNotFoundError:
        return Profiles()
    except ValueError as error:
        raise BadProfile(f"{path} is not JSON ({error}): correct it, or remove it") from error
    try:
        if stored["version"] != _VERSION:
            raise BadProfile(f"{path} has an unknown version, {stored['version']}")
        return Profiles(
            {str(name): _profile(each) for name, each in stored["profiles"].items()},
            stored.get("current"),
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise BadProfile(f"{path} has no profiles ({error!r}): correct it, or remove it") from error


def write_profiles(profiles: Profiles) -> None:
    """Replace the file, atomically. Raises OSError."""
    path = profiles_path()
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    stored = {
        "version": _VERSION,
        "current": profiles.current,
        "profiles": {name: each._asdict() for name, each in sorted(profiles.by_name.items())},
    }
    # The new file has mode 600, and is in the same directory for an atomic rename.
    descriptor, written = tempfile.mkstemp(dir=path.parent, prefix=f".{_FILE_NAME}.")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(json.dumps(stored, indent=2) + "\n")
            file.flush()
            # Sync before the rename, so that a power failure leaves either the old file or the
            # complete new one.
            sync_descriptor(file.fileno())
        Path(written).replace(path)
    except BaseException:
        Path(written).unlink()
        raise


def check_name(name: str) -> str:
    """Raise BadProfile unless the text can name a profile."""
    if not _NAME.fullmatch(name):
        raise BadProfile(
            f"{name!r} is not a valid profile name: use 1 to 64 of the characters a-z, A-Z, 0-9, "
            "'.', '_' and '-', a letter or digit first"
        )
    return name


def _profile(stored: Mapping[str, Any]) -> Profile:
    config = stored.get("command_config")
    return Profile(str(stored["bootstrap_servers"]), None if config is None else str(config))

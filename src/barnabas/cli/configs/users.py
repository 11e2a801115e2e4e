"""Handles SCRAM credentials in user configs, in the notation of `kafka-configs.sh`.

    --add 'SCRAM-SHA-256=[iterations=8192,password=secret]'     --delete SCRAM-SHA-512

Messages never show the values, because they may be passwords.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from barnabas.cli.configs.changes import BadChange, parse_names, parse_pairs
from barnabas.client.admin.admin import Admin
from barnabas.client.admin.scram_admin import (
    DEFAULT_ITERATIONS,
    SCRAM_MECHANISMS,
    ScramAlteration,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)

_VALUE = re.compile(r"(?:iterations=(?P<iterations>[0-9]{1,10}),)?password=(?P<password>.+)", re.S)
_FORM = "such as SCRAM-SHA-256=[iterations=8192,password=...]"


def scram_alterations(
    user: str, add: Iterable[str], delete: Iterable[str]
) -> list[ScramAlteration]:
    """Return the change to a user's credentials that the options describe. Raises BadChange."""
    try:
        pairs, names = parse_pairs(add, "--add"), parse_names(delete, "--delete")
    except BadChange:
        raise BadChange(f"--add and --delete take names of SCRAM mechanisms, {_FORM}") from None
    changes: list[ScramAlteration] = [_upsertion(user, *pair) for pair in pairs.items()]
    for name in names:
        _check(name, "--delete")
        changes.append(UserScramCredentialDeletion(user, name))
    return changes


def _upsertion(user: str, name: str, value: str) -> UserScramCredentialUpsertion:
    _check(name, "--add")
    found = _VALUE.fullmatch(value)
    if found is None:
        raise BadChange(f"--add {name}: its value must have the form [iterations=N,password=TEXT]")
    iterations = int(found["iterations"] or DEFAULT_ITERATIONS)
    return UserScramCredentialUpsertion(user, found["password"], name, iterations)


def _check(name: str, option: str) -> None:
    if name not in SCRAM_MECHANISMS:
        raise BadChange(
            f"{option}: the SCRAM credentials of a user are {' and '.join(SCRAM_MECHANISMS)}, "
            f"{_FORM}"
        )


def describe_user_text(user: str, iterations: Mapping[str, int]) -> str:
    """Return the line that kafka-configs.sh prints for a user's credentials."""
    infos = ", ".join(f"{name}=iterations={count}" for name, count in iterations.items())
    return f"SCRAM credential configs for user-principal '{user}' are {infos}"


async def described_users(admin: Admin, users: list[str] | None) -> dict[str, dict[str, int]]:
    """Return the credentials of these users, or of all users if None. Users without credentials are
    omitted.
    """
    found = await admin.describe_user_scram_credentials()
    return found if users is None else {user: found[user] for user in users if user in found}

"""Shows and changes the quotas of users, client ids and addresses, and the credentials of users."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from barnabas.cli.configs.changes import BadChange, parse_names, parse_pairs
from barnabas.cli.configs.quotas import Alteration, alteration, names_for
from barnabas.cli.configs.users import described_users, scram_alterations
from barnabas.client.admin.admin import Admin
from barnabas.client.admin.quota_admin import QuotaEntity
from barnabas.client.admin.scram_admin import SCRAM_MECHANISMS, ScramAlteration

Entity = Mapping[str, str | None]
"""Maps types (`user`, `client-id`, `ip`) to names. None stands for the default."""


class Described(NamedTuple):
    """Holds the quotas and credentials that are set."""

    quotas: dict[QuotaEntity, dict[str, float]]
    iterations: dict[str, dict[str, int]]
    """The number of hash iterations by user and mechanism."""


class Change(NamedTuple):
    """Describes a change to either quotas or credentials."""

    entity: Entity
    quotas: Alteration
    credentials: list[ScramAlteration]


async def describe_entity(admin: Admin, entity: Entity, types: Iterable[str] = ()) -> Described:
    """Return the settings of the entities that have the names in `entity` and any name for each of
    `types`. Credentials are read only for one named user or for all users.
    """
    types = list(types)
    quotas = await admin.describe_client_quotas(entity, types=types, is_strict=True)
    iterations: dict[str, dict[str, int]] = {}
    if types == ["user"] and not entity:
        iterations = await described_users(admin, None)
    elif not types and list(entity) == ["user"]:
        name = entity["user"]
        iterations = {} if name is None else await described_users(admin, [name])
    return Described(quotas, iterations)


def change_of(entity: Entity, add: Iterable[str], delete: Iterable[str]) -> Change:
    """Return the change that the options describe.

    Raises BadChange, which never shows text that may be a password.
    """
    add, delete = list(add), list(delete)
    if _names_credentials(add, delete):
        user = entity.get("user")
        # Credentials belong to a user (/config/users/<user>), never to a default or a pair (SE-3).
        if user is None or len(entity) > 1:
            raise BadChange("SCRAM credentials belong to one user: specify only --user")
        return Change(entity, {}, scram_alterations(user, add, delete))
    try:
        return Change(entity, alteration(entity, add, delete), [])
    except BadChange:
        # Only a change to a single user can contain a password. In all other cases, it is safe to
        # show the detailed message.
        if list(entity) != ["user"] or entity["user"] is None:
            raise
    # The text may be a mistyped password, so it is not printed.
    raise BadChange(
        f"--add and --delete take quotas of a user ({', '.join(names_for(entity))}, each a number) "
        f"or SCRAM credentials ({' and '.join(SCRAM_MECHANISMS)}), such as "
        "producer_byte_rate=1048576 or SCRAM-SHA-256=[iterations=8192,password=...]"
    )


def _names_credentials(add: Iterable[str], delete: Iterable[str]) -> bool:
    try:
        names = [*parse_pairs(add, "--add"), *parse_names(delete, "--delete")]
    except BadChange:
        return any(name in text for text in add for name in SCRAM_MECHANISMS)
    return any(name in SCRAM_MECHANISMS for name in names)


async def apply(admin: Admin, change: Change) -> None:
    """Apply a change. Raises BadChange if a quota to be removed is not set."""
    if change.credentials:
        await admin.alter_user_scram_credentials(change.credentials)
        return
    # Brokers accept the removal of a quota that is not set. Kafka's tool rejects it, to catch
    # mistyped names.
    removed = {name for name, value in change.quotas.items() if value is None}
    if removed:
        found = await admin.describe_client_quotas(change.entity, is_strict=True)
        unset = removed.difference(*found.values())
        if unset:
            raise BadChange(f"Invalid config(s): {','.join(sorted(unset))}: not set")
    await admin.alter_client_quotas(change.entity, change.quotas)


def entity_words(entity: Entity) -> str:
    """Return Kafka's description of the changed entity. If the entity has two parts, the
    description omits the second one.
    """
    kind, name = next(iter(entity.items()))
    word = "client" if kind == "client-id" else kind
    return f"config for {word} {name}" if name else f"default config for {word}s in the cluster"

"""The limits of one kind for users and client ids, and which of them holds for a client. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from barnabas.broker.quotas.entity import Entity
from barnabas.cluster.config_changes import DEFAULT


class Limits:
    """Limits by entity; the most specific one holds, and a user comes before a client id."""

    __slots__ = ("_limits",)

    def __init__(self) -> None:
        self._limits: dict[Entity, float] = {}

    def __bool__(self) -> bool:
        return bool(self._limits)

    def __contains__(self, entity: object) -> bool:
        return entity in self._limits

    def set(self, entity: Entity, limit: float | None) -> None:
        """Set a limit; None removes it."""
        if limit is None:
            self._limits.pop(entity, None)
        else:
            self._limits[entity] = limit

    def of(self, user: str, client_id: str) -> tuple[Entity, float] | None:
        """The limit for a client, by encoded names, and who shares it; None if it has none.

        A limit for a user, or for all users, is shared by all clients of each user; one with a
        client id by all connections of that user with that id; one for client ids by all that use
        the same id.
        """
        for place, sharing in _places(user, client_id):
            limit = self._limits.get(place)
            if limit is not None:
                return sharing, limit
        return None


def _places(user: str, client_id: str) -> Iterator[tuple[Entity, Entity]]:
    """Where a limit may be set for a client, the strongest place first, and who shares it then."""
    for name in (user, DEFAULT):
        if client_id:
            yield Entity(name, client_id), Entity(user, client_id)
            yield Entity(name, DEFAULT), Entity(user, client_id)
        yield Entity(name), Entity(user)
    if client_id:
        yield Entity("", client_id), Entity("", client_id)
        yield Entity("", DEFAULT), Entity("", client_id)

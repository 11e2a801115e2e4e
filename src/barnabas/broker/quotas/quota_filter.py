"""Implements the filter of DescribeClientQuotas. The filter lists entity types and says how each of
them must match.

    exact      the part has this name            default    it is the default
    any        the part exists, under any name
    strict     an entity must have no other parts
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from barnabas.errors import InvalidRequest, UnsupportedVersion
from barnabas.named_tuple import NamedTuple

USER, CLIENT_ID, IP = "user", "client-id", "ip"
"""The wire names of entity part types."""

EXACT, DEFAULT, ANY = 0, 1, 2
"""The ways to match a part, with their codes on the wire."""

_MATCHES = (EXACT, DEFAULT, ANY)
_SHOWN = {USER: "user", CLIENT_ID: "client", IP: "ip"}

Named = Mapping[str, str | None]
"""The names of an entity's parts, keyed by type. None stands for the default."""


class Component(NamedTuple):
    """A condition on the part of an entity that has a certain type."""

    match_type: int
    name: str | None  # for EXACT


class QuotaFilter:
    """Selects entities. The request is checked when the filter is constructed."""

    __slots__ = ("_components", "_is_strict")

    def __init__(self, components: Iterable[tuple[str, Component]], *, is_strict: bool) -> None:
        """Raises InvalidRequest or UnsupportedVersion, with the same error messages as Kafka."""
        self._components: dict[str, Component] = {}
        self._is_strict = is_strict
        for entity_type, component in components:
            if entity_type in self._components:
                raise InvalidRequest(
                    f"Duplicate {_SHOWN[entity_type]} filter component entity type"
                )
            if not entity_type:
                raise InvalidRequest("Unexpected empty filter component entity type")
            if entity_type not in _SHOWN:
                raise UnsupportedVersion(f"Custom entity type '{entity_type}' not supported")
            _check(component)
            self._components[entity_type] = component
        # As in Kafka, an address cannot be combined with other parts (KIP-612).
        if IP in self._components and len(self._components) > 1:
            raise InvalidRequest(
                "Invalid entity filter component combination, IP filter component should not be "
                "used with user or clientId filter component."
            )

    def matches(self, entity: Named) -> bool:
        for entity_type, component in self._components.items():
            if entity_type not in entity:
                return False
            name = entity[entity_type]
            if component.match_type == EXACT and (name is None or name != component.name):
                return False
            if component.match_type == DEFAULT and name is not None:
                return False
        # If the filter is strict, the entity must consist of exactly the parts that were requested.
        return not self._is_strict or entity.keys() == self._components.keys()


def _check(component: Component) -> None:
    if component.match_type not in _MATCHES:
        raise InvalidRequest(f"Unexpected match type: {component.match_type}")
    if component.match_type == EXACT and component.name is None:
        raise InvalidRequest("Request specifies MATCH_TYPE_EXACT, but `match` is set to null.")

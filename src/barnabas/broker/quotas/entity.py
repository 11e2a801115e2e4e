"""Defines the entities for which quotas can be set, and their names in the metadata tree.

    users/<user>/clients/<client-id>     a user's client
    users/<user>                         a user
    clients/<client-id>                  a client id of any user
    ips/<address>                        an address

As in Kafka, names are URL-encoded. `<default>` stands for all users, client ids or addresses
without their own entry. No encoded name can be equal to it.
"""

from __future__ import annotations

from urllib.parse import quote, unquote_plus

from barnabas.cluster.config_changes import DEFAULT
from barnabas.named_tuple import NamedTuple

USERS, CLIENTS, IPS = "users", "clients", "ips"
KINDS = (USERS, CLIENTS, IPS)


class Entity(NamedTuple):
    """A user, a client id or both, identified by their encoded names. A missing part is ""."""

    user: str = ""
    client_id: str = ""

    @property
    def path(self) -> str:
        """Return the entity's path relative to `/config`."""
        if not self.user:
            return f"{CLIENTS}/{self.client_id}"
        if not self.client_id:
            return f"{USERS}/{self.user}"
        return f"{USERS}/{self.user}/{CLIENTS}/{self.client_id}"


def entity_of(path: str) -> Entity | None:
    """Return the entity with this path relative to `/config`, or None if it is neither a user nor a
    client id.
    """
    match path.split("/"):
        case ["users", user] if user:
            return Entity(user)
        case ["users", user, "clients", client_id] if user and client_id:
            return Entity(user, client_id)
        case ["clients", client_id] if client_id:
            return Entity("", client_id)
    return None


def encode_name(name: str | None) -> str:
    """Encode a name for the tree by escaping all characters except letters, digits and `.-_`.

    None is encoded as the name of the default.
    """
    # Kafka's Sanitizer uses Java's URLEncoder, with %20 for a blank and %2A for an asterisk. Apart
    # from these, `quote` differs from it only for the tilde.
    return DEFAULT if name is None else quote(name, safe="").replace("~", "%7E")


def decode_name(name: str) -> str | None:
    """Decode an encoded name. The result is None for the default."""
    # Java's URLDecoder decodes a plus sign as a blank.
    return None if name == DEFAULT else unquote_plus(name)

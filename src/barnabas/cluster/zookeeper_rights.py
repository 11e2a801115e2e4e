"""The rights of ZooKeeper's nodes, as Kafka sets them under `zookeeper.set.acl` (SE-6).

    /consumers and below                                     everybody may do everything
    /config/users, /config/brokers, the delegation tokens    the brokers alone
    all others                                               the brokers write, everybody reads

"The brokers" are all whose connection has the identity of the one that set the rights.
"""

from __future__ import annotations

from collections.abc import Iterable

from kazoo.security import (  # type: ignore[import-untyped]
    ACL,
    ANYONE_ID_UNSAFE,
    CREATOR_ALL_ACL,
    OPEN_ACL_UNSAFE,
    READ_ACL_UNSAFE,
    Permissions,
)

OPEN_TO_ALL = "/consumers"
_SECRET = ("/config/users", "/config/brokers", "/delegation_token/tokens")


def rights_of(path: str, *, is_protected: bool) -> list[ACL]:
    """ZooKeeper's ACL of a path of the tree, below the chroot."""
    if not is_protected or _is_below(path, OPEN_TO_ALL):
        return list(OPEN_ACL_UNSAFE)
    if any(_is_below(path, top) for top in _SECRET):
        return list(CREATOR_ALL_ACL)
    return [*CREATOR_ALL_ACL, *READ_ACL_UNSAFE]


def is_open_to_all(rights: Iterable[ACL]) -> bool:
    """Whether a node's rights let every client create or delete nodes directly below it."""
    changes = Permissions.CREATE | Permissions.DELETE
    return any(each.id == ANYONE_ID_UNSAFE and each.perms & changes for each in rights)


def _is_below(path: str, top: str) -> bool:
    return path == top or path.startswith(f"{top}/")

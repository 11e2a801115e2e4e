"""Decides who may do what with a node: identities, and the ACLs that name them. Pure.

An identity is a scheme and an id. Every connection has the identity `ip`; `digest` is added with a
password, and `sasl` by a login.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from barnabas.zookeeper.codes import Code, Perm, Refusal
from barnabas.zookeeper.jute import Acl

Identity = tuple[str, str]
"""The scheme and the id."""

SUPER: Identity = ("super", "")
"""May do everything."""

_ANYONE = ("world", "anyone")
# These identities prove who the client is; an address does not.
_AUTHENTICATED = ("digest", "sasl")
# In ZooKeeper, this user has the permissions of all others.
_SASL_SUPER = ("sasl", "super")


def digest_identity(auth: bytes) -> Identity | None:
    """Return the identity that `user:password` proves, or None if there is no password."""
    from base64 import b64encode
    from hashlib import sha1

    user, separator, _ = auth.partition(b":")
    if not separator:
        return None
    hashed = b64encode(sha1(auth, usedforsecurity=False).digest()).decode()
    return ("digest", f"{user.decode(errors='replace')}:{hashed}")


def check(acl: Sequence[Acl], perm: int, identities: Sequence[Identity]) -> None:
    """Raise Refusal unless the ACL grants one of the permissions to one of the identities."""
    if not is_permitted(acl, perm, identities):
        raise Refusal(Code.NO_AUTH)


def is_permitted(acl: Sequence[Acl], perm: int, identities: Sequence[Identity]) -> bool:
    if not acl or SUPER in identities:
        return True
    for each in acl:
        if not each.perms & perm:
            continue
        if (each.scheme, each.id) == _ANYONE:
            return True
        if any(_matches(scheme, id_, each) for scheme, id_ in identities):
            return True
    return False


def resolve(acl: Iterable[Acl], identities: Sequence[Identity]) -> tuple[Acl, ...]:
    """Return the ACL to store. `auth` becomes the identities that the client has proved.

    Raises Refusal if the ACL is empty, or if an identity in it is invalid.
    """
    found: dict[Acl, None] = {}
    for each in dict.fromkeys(acl):
        if each.scheme == "auth":
            own = [Acl(each.perms, *known) for known in identities if known[0] in _AUTHENTICATED]
            if not own:
                raise Refusal(Code.INVALID_ACL)
            found.update(dict.fromkeys(own))
        elif (each.scheme, each.id) == _ANYONE or _is_valid(each):
            found[each] = None
        else:
            raise Refusal(Code.INVALID_ACL)
    if not found:
        raise Refusal(Code.INVALID_ACL)
    return tuple(found)


def without_hashes(acl: Iterable[Acl]) -> tuple[Acl, ...]:
    """Return the ACL without password hashes, for clients that may not change it."""
    return tuple(
        each._replace(id=f"{each.id.partition(':')[0]}:x") if each.scheme == "digest" else each
        for each in acl
    )


def may_change_acl(acl: Sequence[Acl], identities: Sequence[Identity]) -> bool:
    return is_permitted(acl, Perm.ADMIN, identities)


def _matches(scheme: str, id_: str, entry: Acl) -> bool:
    if scheme != entry.scheme:
        return False
    if (scheme, id_) == _SASL_SUPER:
        return True
    if scheme != "ip" or "/" not in entry.id:
        return id_ == entry.id
    from ipaddress import ip_address, ip_network

    return ip_address(id_) in ip_network(entry.id, strict=False)


def _is_valid(entry: Acl) -> bool:
    if entry.scheme == "digest":
        return len(entry.id.split(":")) == 2
    if entry.scheme == "ip":
        from ipaddress import ip_network

        try:
            ip_network(entry.id, strict=False)
        except ValueError:
            return False
        return True
    return entry.scheme == "sasl" and bool(entry.id)

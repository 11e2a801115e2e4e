"""Creates the first users of a cluster, so that clients are able to authenticate."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from barnabas.cluster import config_changes, layout
from barnabas.cluster.store import BadVersion, Create, MetadataStore, NodeExists, NoNode, Set
from barnabas.cluster.user_nodes import USER_CONFIGS, encoded_user, user_path
from barnabas.errors import CorruptData
from barnabas.security.scram import is_of_password, new_credential, parse_credential

_PARENTS: Final = ("/config", USER_CONFIGS, config_changes.CHANGES)


async def ensure_users(
    store: MetadataStore, mechanism: str, passwords: Mapping[str, str]
) -> list[str]:
    """Create a SCRAM credential for each user that has none, and return these users.

    Any other settings that a user has in the tree are preserved. Raises MetadataError or
    CorruptData.
    """
    given = []
    for user, password in passwords.items():
        # Several brokers may be starting at the same time and creating the same users.
        while not await _has(store, user, mechanism, password):
            if await _try_give(store, user, mechanism, password):
                given.append(user)
                break
    return given


async def _has(store: MetadataStore, user: str, mechanism: str, password: str) -> bool:
    path = user_path(user)
    node = await store.read(path)
    text = None if node is None else layout.decode_config(path, node.data).get(mechanism)
    if text is None:
        return False
    try:
        return is_of_password(mechanism, parse_credential(mechanism, text), password)
    except CorruptData:
        return False  # an invalid credential matches no password


async def _try_give(store: MetadataStore, user: str, mechanism: str, password: str) -> bool:
    path = user_path(user)
    node = await store.read(path)
    settings = {} if node is None else layout.decode_config(path, node.data)
    settings[mechanism] = new_credential(mechanism, password).text()
    data = layout.encode_config(settings)
    # In ZooKeeper, these nodes may not exist until the first broker has registered.
    missing = [Create(parent) for parent in _PARENTS if await store.read(parent) is None]
    entity = config_changes.entity(config_changes.USERS, encoded_user(user))
    try:
        await store.commit(
            [
                *missing,
                Create(path, data) if node is None else Set(path, data, node.version),
                Create(
                    config_changes.CHANGE_PREFIX,
                    config_changes.encode_change(entity),
                    sequential=True,
                ),
            ]
        )
    except (NodeExists, BadVersion, NoNode):
        return False
    return True

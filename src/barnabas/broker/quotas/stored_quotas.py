"""Reads quotas from the metadata tree and watches them for changes. See `entity` for the paths.

A value that cannot be used is logged and ignored. Someone may have edited it by hand, or another
version may have written it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from barnabas.broker.quotas.client_quotas import FETCH, KINDS, PRODUCE
from barnabas.broker.quotas.entity import CLIENTS, IPS, USERS, decode_name, entity_of
from barnabas.broker.quotas.ip_quotas import CONNECTION_RATE
from barnabas.broker.quotas.quota_filter import CLIENT_ID, IP, USER
from barnabas.cluster import layout
from barnabas.cluster.config_changes import DEFAULT, config_path
from barnabas.errors import CorruptData

if TYPE_CHECKING:
    from barnabas.broker.quotas.client_quotas import ClientQuotas
    from barnabas.broker.quotas.ip_quotas import IpQuotas
    from barnabas.cluster.store import MetadataStore, Znode

_log = logging.getLogger(__name__)

_WHOLE = (PRODUCE, FETCH, CONNECTION_RATE)  # Kafka reads these as whole numbers
_KINDS = (*KINDS, CONNECTION_RATE)
_TYPES = {USERS: USER, CLIENTS: CLIENT_ID, IPS: IP}


class StoredQuotas:
    """Applies the quotas that are stored in the tree for users, client ids and addresses."""

    kinds = (USERS, CLIENTS, IPS)

    def __init__(self, store: MetadataStore, quotas: ClientQuotas, ip_quotas: IpQuotas) -> None:
        self._store = store
        self._quotas = quotas
        self._ip_quotas = ip_quotas

    async def load(self) -> None:
        """Read and apply all quotas."""
        for path, node in await _nodes(self._store):
            self._apply(path, node)

    async def on_changed(self, path: str) -> None:
        """Read one entity's quotas again."""
        self._apply(path, await self._store.read(config_path(path)))

    def _apply(self, path: str, node: Znode | None) -> None:
        try:
            limits = _quotas_of(path, node)
        except CorruptData as error:
            _log.error("keeping the previous quotas of %s: %s", path, error)
            return
        kind, _, name = path.partition("/")
        if kind == IPS:
            self._apply_to_address(name, limits.get(CONNECTION_RATE))
            return
        entity = entity_of(path)
        if entity is None:
            _log.error("ignoring quotas of %s: it is neither a user nor a client id", path)
        # The node may contain only credentials or other configs. In that case, there is nothing to
        # apply.
        elif limits or self._quotas.has(entity):
            _log.info("quotas of %s: %s", path, limits or "none")
            self._quotas.set(entity, {kind: limits[kind] for kind in KINDS if kind in limits})

    def _apply_to_address(self, name: str, limit: float | None) -> None:
        from ipaddress import ip_address  # few brokers need it

        try:
            address = DEFAULT if name == DEFAULT else str(ip_address(decode_name(name) or ""))
        except ValueError:
            _log.error("ignoring quotas of ips/%s: it is not an IP address", name)
            return
        _log.info("connections per second of ips/%s: %s", name, "any" if limit is None else limit)
        self._ip_quotas.set(address, limit)


async def quotas_in(
    store: MetadataStore,
) -> list[tuple[dict[str, str | None], dict[str, float]]]:
    """Return the quotas of all entities that have quotas, keyed by the entity's types and names."""
    found = []
    for path, node in await _nodes(store):
        quotas = _quotas_of(path, node)
        if quotas:
            words = path.split("/")
            kinds_and_names = zip(words[::2], words[1::2], strict=True)
            found.append(
                ({_TYPES[kind]: decode_name(name) for kind, name in kinds_and_names}, quotas)
            )
    return found


def _quotas_of(path: str, node: Znode | None) -> dict[str, float]:
    """Return the quotas in a node. Raises CorruptData if the node cannot be read."""
    if node is None:
        return {}
    stored = layout.decode_config(config_path(path), node.data)
    return _numbers_of(path, {key: stored[key] for key in _KINDS if key in stored})


def _numbers_of(path: str, quotas: Mapping[str, str]) -> dict[str, float]:
    numbers = {}
    for key, text in quotas.items():
        try:
            number = float(int(text)) if key in _WHOLE else float(text)
        except ValueError:
            number = float("nan")
        if number != number:
            _log.error("ignoring %s=%s of %s: it is not a number", key, text, path)
        else:
            numbers[key] = number
    return numbers


async def _nodes(store: MetadataStore) -> list[tuple[str, Znode]]:
    """Return the nodes of all users, client ids, pairs of user and client id, and addresses, keyed
    by path.
    """
    found = await _below(store, (USERS, CLIENTS, IPS))
    users = [path for path, node in found if path.startswith(USERS) and CLIENTS in node.children]
    return found + await _below(store, [f"{path}/{CLIENTS}" for path in users])


async def _below(store: MetadataStore, paths: Iterable[str]) -> list[tuple[str, Znode]]:
    paths = list(paths)
    nodes = await store.read_many([config_path(path) for path in paths])
    names = [
        f"{path}/{name}"
        for path, node in zip(paths, nodes, strict=True)
        if node is not None
        for name in sorted(node.children)
    ]
    if not names:
        return []
    found = await store.read_many([config_path(name) for name in names])
    return [(name, node) for name, node in zip(names, found, strict=True) if node is not None]

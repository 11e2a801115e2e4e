"""The quotas of the metadata tree, read at the start and followed: see `entity` for their places.

A value that cannot be used (written by hand, or by another version) is logged and left out.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from barnabas.broker.quotas.client_quotas import FETCH, KINDS, PRODUCE
from barnabas.broker.quotas.entity import CLIENTS, IPS, USERS, entity_of
from barnabas.cluster import layout
from barnabas.cluster.config_changes import config_path
from barnabas.errors import CorruptData

if TYPE_CHECKING:
    from barnabas.broker.quotas.client_quotas import ClientQuotas
    from barnabas.cluster.store import MetadataStore, Znode

_log = logging.getLogger(__name__)

_WHOLE = (PRODUCE, FETCH)  # numbers of bytes, which Kafka reads as whole ones


class StoredQuotas:
    """Brings into force what the tree holds for users and client ids."""

    kinds = (USERS, CLIENTS)

    def __init__(self, store: MetadataStore, quotas: ClientQuotas) -> None:
        self._store = store
        self._quotas = quotas

    async def load(self) -> None:
        """Bring all quotas into force."""
        for path, node in await entity_nodes(self._store):
            self._apply(path, node)

    async def changed(self, path: str) -> None:
        """Read the quotas of one entity again."""
        self._apply(path, await self._store.read(config_path(path)))

    def _apply(self, path: str, node: Znode | None) -> None:
        entity = entity_of(path)
        if entity is None:
            _log.error("a quota was changed for %s, which is no user and no client id", path)
            return
        try:
            stored = {} if node is None else layout.decode_config(config_path(path), node.data)
        except CorruptData as error:
            _log.error("quotas of %s stay as they were: %s", path, error)
            return
        limits = _limits_of(path, stored)
        if limits or self._quotas.has(entity):
            _log.info("quotas of %s: %s", path, limits or "none")
            self._quotas.set(entity, limits)


def _limits_of(path: str, stored: Mapping[str, str]) -> dict[str, float]:
    limits = {}
    for kind in KINDS:
        text = stored.get(kind)
        if text is None:
            continue
        try:
            limit = float(int(text)) if kind in _WHOLE else float(text)
        except ValueError:
            limit = float("nan")
        if limit != limit:
            _log.error("%s=%s of %s is not a number, and left out", kind, text, path)
        else:
            limits[kind] = limit
    return limits


async def entity_nodes(store: MetadataStore, *, ips: bool = False) -> list[tuple[str, Znode]]:
    """All users, client ids and both (or all addresses) that have a node, by their path."""
    tops = (IPS,) if ips else (USERS, CLIENTS)
    found = await _below(store, tops)
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

"""Reads the ACLs in the metadata tree, tracks changes to them, and writes changes (SE-4).

    request -> read -> compare and set, with a change node -> rules here -> answer
    watch on the change nodes -> reread the patterns that they name -> rules here

Invariant: the ACLs in memory never allow anything that the tree does not allow. If part of the tree
cannot be read, the broker does not start. If a node becomes unreadable later, everything is denied
for its resource pattern.

Any broker can write ACLs. A node is written only if its version is still the one that was read, and
the change node is created in the same commit. If the response is lost, the update is tried again.
The second attempt finds nothing to do if the first commit succeeded.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from barnabas.cluster.loading import children
from barnabas.cluster.store import (
    BadVersion,
    Create,
    Delete,
    MetadataError,
    NodeExists,
    NoNode,
    Operation,
    OutcomeUnknown,
    SessionExpired,
    SessionState,
    Set,
)
from barnabas.errors import (
    BarnabasError,
    CorruptData,
    InvalidRequest,
    KafkaError,
    UnknownServerError,
)
from barnabas.security import acl_nodes
from barnabas.security.acl import Operation as AclOperation
from barnabas.security.acl_binding import (
    WILDCARD,
    WILDCARD_PRINCIPAL,
    AclBinding,
    AclEntry,
    AclFilter,
    Pattern,
    PermissionType,
    by_pattern,
    parse_principal,
)

if TYPE_CHECKING:
    from barnabas.clock import Clock, Random
    from barnabas.cluster.store import MetadataStore, Znode
    from barnabas.security.acl_rules import AclRules

_log = logging.getLogger(__name__)

_CHANGES_KEPT_MS = 15 * 60 * 1000
_ATTEMPTS = 11
_BACKOFF_MS, _JITTER_MS = 100, 50
_READ_AT_ONCE = 500
_RETRY_S = 1.0

_DENY_ALL = AclEntry(WILDCARD_PRINCIPAL, WILDCARD, AclOperation.ALL, PermissionType.DENY)

Entries = frozenset[AclEntry]


class _Known(NamedTuple):
    """A resource pattern's node as it was read. The version is None if the node does not exist."""

    entries: Entries
    version: int | None


class Deleted(NamedTuple):
    """An ACL that matches a filter, with the error that prevented its deletion, if any."""

    binding: AclBinding
    error: KafkaError | None


class AclStore:
    """Keeps a broker's ACLs in sync with the tree. Call `open` and `close` once each."""

    __slots__ = (
        "_changed",
        "_clock",
        "_due",
        "_is_stale",
        "_lock",
        "_random",
        "_rules",
        "_seen_at_ms",
        "_store",
        "_task",
    )

    def __init__(
        self,
        store: MetadataStore,
        rules: AclRules,
        changed: Callable[[], None],
        clock: Clock,
        random: Random,
    ) -> None:
        """`rules` is kept in sync with the tree, and `changed` is called after every change."""
        self._store = store
        self._rules = rules
        self._changed = changed
        self._clock = clock
        self._random = random
        self._seen_at_ms: dict[str, int] = {}
        self._lock = asyncio.Lock()  # protects the rules while the tree is read
        self._due = asyncio.Event()
        self._is_stale = False  # whether changes may have been missed
        self._task: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Create any missing base nodes, read all ACLs, and start watching for changes.

        Raises MetadataError or CorruptData if any of them cannot be read.
        """
        missing = [
            path
            for path, node in zip(
                acl_nodes.BASE_PATHS,
                await self._store.read_many(acl_nodes.BASE_PATHS),
                strict=True,
            )
            if node is None
        ]
        for path in missing:
            with suppress(NodeExists):
                await self._store.commit([Create(path)])
        self._watch()
        # Changes made before this point are included in what is read below.
        for path in await self._change_paths():
            self._seen_at_ms[path] = self._clock.monotonic_ms()
        for pattern, node in await self._read_all():
            self._apply(pattern, _decode(pattern, node).entries)
        self._store.on_session(self._on_session)
        self._task = asyncio.get_running_loop().create_task(self._follow())
        _log.info("loaded %d ACLs", len(self._rules))

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    # --- requests --------------------------------------------------------------------------------

    def describe(self, wanted: AclFilter) -> dict[Pattern, list[AclEntry]]:
        """Return all rules that match the filter."""
        return by_pattern(self._rules.bindings(wanted))

    async def create(self, bindings: Sequence[AclBinding]) -> list[KafkaError | None]:
        """Add ACLs. The result for each is an error, or None."""
        errors: dict[AclBinding, KafkaError] = {}
        valid = []
        for binding in bindings:
            # The name becomes the last part of the node's path, so it must not contain a slash.
            if "/" in binding.pattern.name:
                errors[binding] = InvalidRequest(
                    f"{binding.pattern.name!r}: the resource name of an ACL must not contain a "
                    "slash"
                )
            else:
                valid.append(binding)
        async with self._lock:
            for pattern, entries in by_pattern(valid).items():
                try:
                    _check_principals(entries)
                    await self._update(pattern, _adding(entries))
                except KafkaError as error:
                    errors.update({AclBinding(pattern, entry): error for entry in entries})
        return [errors.get(binding) for binding in bindings]

    async def delete(self, filters: Sequence[AclFilter]) -> list[list[Deleted]]:
        """Remove the ACLs that match filters.

        If an ACL matches several filters, it is reported only for the first one.
        """
        results: list[list[Deleted]] = [[] for _ in filters]
        async with self._lock:
            patterns = dict.fromkeys(self._rules.patterns())
            for each in filters:
                # A recent ACL may not have been reported by a watch yet, so read the resource
                # patterns that a filter names even if they are not known here.
                patterns.update(dict.fromkeys(each.named_patterns()))
            for pattern in patterns:
                matching = [
                    (number, each)
                    for number, each in enumerate(filters)
                    if each.matches_pattern(pattern)
                ]
                if matching:
                    await self._delete_of(pattern, matching, results)
        return results

    async def _delete_of(
        self,
        pattern: Pattern,
        matching: Sequence[tuple[int, AclFilter]],
        results: list[list[Deleted]],
    ) -> None:
        removed: dict[AclEntry, int] = {}

        def remaining(entries: Entries) -> Entries:
            removed.clear()
            for entry in entries:
                for number, each in matching:
                    if each.matches_entry(entry):
                        removed[entry] = number
                        break
            return entries - removed.keys()

        failure = None
        try:
            await self._update(pattern, remaining)
        except KafkaError as error:
            failure = error
        for entry, number in removed.items():
            results[number].append(Deleted(AclBinding(pattern, entry), failure))

    async def _update(self, pattern: Pattern, edit: Callable[[Entries], Entries]) -> None:
        """Replace a resource pattern's ACLs with the result of `edit`. The caller must hold the
        lock.

        Raises UnknownServerError if the tree cannot be read or written.
        """
        try:
            known = await self._load(pattern)
            for _ in range(_ATTEMPTS):
                after = edit(known.entries)
                if after == known.entries:
                    self._apply(pattern, after)
                    return
                try:
                    await self._commit(pattern, known.version, after)
                # Another broker changed the node first, or the response was lost. Read the node
                # again. If the commit did succeed, `edit` finds nothing to do.
                except (BadVersion, NoNode, NodeExists, OutcomeUnknown):
                    await asyncio.sleep((_BACKOFF_MS + self._random.below(_JITTER_MS)) / 1000)
                    known = await self._load(pattern)
                    continue
                _log.info("ACLs of %s changed; now %d ACLs", pattern, len(after))
                self._apply(pattern, after)
                return
        except (MetadataError, CorruptData) as error:
            raise UnknownServerError(f"cannot change the ACLs of {pattern}: {error}") from error
        raise UnknownServerError(
            f"the ACLs of {pattern} were changed by other clients {_ATTEMPTS} times in a row; retry"
        )

    async def _commit(self, pattern: Pattern, version: int | None, after: Entries) -> None:
        path = acl_nodes.pattern_path(pattern)
        operation: Operation
        if not after:
            assert version is not None, f"{pattern} without a node had rules"
            # As in Kafka, a resource pattern's node is deleted together with its last ACL.
            operation = Delete(path, version)
        elif version is None:
            operation = Create(path, acl_nodes.encode_entries(after))
        else:
            operation = Set(path, acl_nodes.encode_entries(after), version)
        notice = Create(
            acl_nodes.change_path(pattern.pattern_type),
            acl_nodes.encode_change(pattern),
            sequential=True,
        )
        await self._store.commit([operation, notice])

    async def _load(self, pattern: Pattern) -> _Known:
        return _decode(pattern, await self._store.read(acl_nodes.pattern_path(pattern)))

    def _apply(self, pattern: Pattern, entries: Entries) -> None:
        if entries != self._rules.entries_of(pattern):
            self._rules.replace(pattern, entries)
            self._changed()

    # --- changes by other brokers ----------------------------------------------------------------

    async def _follow(self) -> None:
        while True:
            await self._due.wait()
            self._due.clear()
            # A watch also fires when its session ends. Until the next session, nothing can be read.
            if self._store.session_state is SessionState.EXPIRED:
                continue  # everything is read at the start of the next session
            try:
                self._watch()
                if self._is_stale:
                    await self._reload()
                await self._take_up_changes()
            except Exception as error:
                _log_failure(error)
                self._is_stale = True
                # The next attempt reads everything, because it is not known how far this attempt
                # got.
                await asyncio.sleep(_RETRY_S)
                self._due.set()

    def _on_session(self, state: SessionState) -> None:
        if state is SessionState.EXPIRED:
            self._is_stale = True
        self._due.set()

    def _watch(self) -> None:
        """Set the watch before reading, so that a change made in the meantime triggers another
        round.
        """
        for path in acl_nodes.CHANGES.values():
            self._store.watch(path, self._due.set)

    async def _change_paths(self) -> list[str]:
        return [
            f"{root}/{name}"
            for root in acl_nodes.CHANGES.values()
            for name in await children(self._store, root)
        ]

    async def _take_up_changes(self) -> None:
        paths = await self._change_paths()
        now_ms = self._clock.monotonic_ms()
        patterns: dict[Pattern, None] = {}
        new = [path for path in paths if path not in self._seen_at_ms]
        for path, node in zip(new, await self._store.read_many(new), strict=True):
            if node is not None:  # if None, another broker removed it after a quarter of an hour
                try:
                    patterns[acl_nodes.decode_change(path, node.data)] = None
                except CorruptData as error:
                    _log.error("malformed ACL change; reloading all ACLs: %s", error)
                    await self._reload()
        for pattern in patterns:
            async with self._lock:
                self._take_up(pattern, await self._store.read(acl_nodes.pattern_path(pattern)))
        for path in new:
            self._seen_at_ms[path] = now_ms
        await self._remove_old(frozenset(paths), now_ms)

    def _take_up(self, pattern: Pattern, node: Znode | None) -> None:
        try:
            entries = _decode(pattern, node).entries
        except CorruptData as error:
            _log.error(
                "denying everyone access to %s because its ACLs cannot be read: %s", pattern, error
            )
            # A DENY rule must take effect even if it cannot be read (SE-4).
            entries = frozenset({_DENY_ALL})
        self._apply(pattern, entries)

    async def _reload(self) -> None:
        async with self._lock:
            self._is_stale = False
            found = await self._read_all()
            # Forget the patterns whose nodes were deleted while no watch was set. Their change
            # nodes no longer exist.
            gone = set(self._rules.patterns()) - {pattern for pattern, _ in found}
            for pattern, node in found:
                self._take_up(pattern, node)
            for pattern in gone:
                self._take_up(pattern, None)

    async def _read_all(self) -> list[tuple[Pattern, Znode]]:
        patterns = [
            Pattern(resource_type, name, pattern_type)
            for pattern_type in acl_nodes.ROOTS
            for resource_type in acl_nodes.RESOURCE_TYPES
            for name in await children(
                self._store, acl_nodes.type_path(pattern_type, resource_type)
            )
        ]
        found = []
        for at in range(0, len(patterns), _READ_AT_ONCE):
            some = patterns[at : at + _READ_AT_ONCE]
            nodes = await self._store.read_many([acl_nodes.pattern_path(each) for each in some])
            found += [
                (each, node) for each, node in zip(some, nodes, strict=True) if node is not None
            ]
        return found

    async def _remove_old(self, paths: frozenset[str], now_ms: int) -> None:
        """Remove change nodes that every broker has had enough time to read."""
        for path, seen_at_ms in list(self._seen_at_ms.items()):
            if path in paths and now_ms - seen_at_ms < _CHANGES_KEPT_MS:
                continue
            if path in paths:
                with suppress(NoNode):
                    await self._store.commit([Delete(path)])
            del self._seen_at_ms[path]


def _decode(pattern: Pattern, node: Znode | None) -> _Known:
    if node is None:
        return _Known(frozenset(), None)
    path = acl_nodes.pattern_path(pattern)
    return _Known(acl_nodes.decode_entries(path, node.data), node.version)


def _adding(entries: Iterable[AclEntry]) -> Callable[[Entries], Entries]:
    added = frozenset(entries)
    return lambda before: before | added


def _check_principals(entries: Iterable[AclEntry]) -> None:
    for entry in entries:
        try:
            parse_principal(entry.principal)
        except ValueError as error:
            raise UnknownServerError(str(error)) from None


def _log_failure(error: Exception) -> None:
    if isinstance(error, SessionExpired):
        _log.warning("ACL changes will be applied in the next session: %s", error)
    elif isinstance(error, BarnabasError):
        _log.error("ACL changes were not applied: %s", error)
    else:
        _log.error("ACL changes were not applied", exc_info=error)

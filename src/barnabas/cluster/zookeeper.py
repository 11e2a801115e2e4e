"""Implements a metadata store in a ZooKeeper ensemble, using kazoo.

Each commit is sent only once. If it cannot be sent, it waits for the next connection; if it was
sent but no response arrived, it raises OutcomeUnknown. Operations begun before EXPIRED was reported
raise SessionExpired or OutcomeUnknown, and change nothing in the next session. Each connection
starts with a sync, so if the outcome of a commit is unknown, a later read shows it.

A watch is set by two requests: one for the node's existence and data, and one for its children. The
server executes the requests of a connection in order, so a read that is sent later cannot miss a
change.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

from kazoo.exceptions import (  # type: ignore[import-untyped]
    AuthFailedError,
    ConnectionLoss,
    NoNodeError,
    OperationTimeoutError,
    RequestTimeoutError,
    SessionExpiredError,
    UnimplementedError,
    ZookeeperError,
)
from kazoo.protocol import serialization as wire  # type: ignore[import-untyped]
from kazoo.security import (  # type: ignore[import-untyped]
    ACL,
    ANYONE_ID_UNSAFE,
    CREATOR_ALL_ACL,
    OPEN_ACL_UNSAFE,
    READ_ACL_UNSAFE,
    Permissions,
)

from barnabas.cluster.remote_store import RemoteStore
from barnabas.cluster.store import (
    Create,
    NodeExists,
    Operation,
    OutcomeUnknown,
    SessionExpired,
    SessionState,
    Znode,
)
from barnabas.cluster.zookeeper_connection import Connection, NotUnderstood
from barnabas.cluster.zookeeper_requests import (
    Commit,
    MultiRead,
    metadata_error,
    single_reads,
    under,
    znode,
)
from barnabas.cluster.zookeeper_settings import Settings
from barnabas.config.zookeeper_keys import hosts_and_chroot
from barnabas.errors import ConfigError
from barnabas.shielded import retrieve_error, shielded

_log = logging.getLogger(__name__)

_NO_ANSWER = (
    ConnectionLoss,
    AuthFailedError,
    OperationTimeoutError,
    RequestTimeoutError,
    NotUnderstood,
)
_NO_NODE = (0, 0, 0)
_SERVERS_LIMIT_BYTES = 1_000_000  # ZooKeeper's default limit on a request
_REPORTS_AFTER_S = 2.5
_LOOK_EVERY_S = 1.0
_COMPLAIN_EVERY_S = 60
_ANY = -1

OPEN_TO_ALL = "/consumers"
_SECRET = ("/config/users", "/config/brokers", "/delegation_token/tokens")


class ZooKeeperStore(RemoteStore):
    """A store in a ZooKeeper ensemble, with successive sessions. It is used on one event loop."""

    def __init__(self, settings: Settings) -> None:
        """Create a store that is not connected. Call `open` to create a connected store."""
        super().__init__(SessionState.SUSPENDED)
        self._settings = settings
        self._hosts, self._chroot = hosts_and_chroot(settings.connect)
        self._connection = Connection(settings, self._on_state)
        self._can_read_many = True
        self._patience: asyncio.Task[None] | None = None
        self._is_given_up = False

    @classmethod
    async def open(cls, settings: Settings, *, makes_chroot: bool = True) -> ZooKeeperStore:
        """Connect, create the chroot if it is missing, and return the store.

        Raises ConfigError if no server responds in time, or MetadataError if creating the chroot
        fails.
        """
        store = cls(settings)
        store._connection.start()
        report = asyncio.get_running_loop().call_later(_REPORTS_AFTER_S, store._report_waiting)
        try:
            async with asyncio.timeout(settings.first_timeout_ms / 1000):
                while store._state is not SessionState.CONNECTED:
                    await shielded(store._changed)
            if makes_chroot:
                await store._make_chroot()
                await store._report_open_root()
        except SessionExpired:
            words = store._connection.last_words
            await store.close()
            raise ConfigError(
                f"zookeeper.connect={settings.connect}: ZooKeeper closed the session right after "
                f"it started ({words or 'without a reason'}); check the credentials"
            ) from None
        except TimeoutError:
            words = store._connection.last_words
            await store.close()
            raise ConfigError(
                f"zookeeper.connect={settings.connect}: no response from ZooKeeper within "
                f"{settings.first_timeout_ms} ms ({words or 'connected, but got no reply'}); "
                "check the address, and that ZooKeeper is running"
            ) from None
        except BaseException:
            await store.close()
            raise
        finally:
            report.cancel()
        return store

    def _report_waiting(self) -> None:
        """Log early that the broker is waiting for ZooKeeper, because the address may be wrong."""
        _log.warning(
            "zookeeper.connect=%s: no response from ZooKeeper yet (%s); will keep trying for up "
            "to %d ms (zookeeper.connection.timeout.ms)",
            self._settings.connect,
            self._connection.last_words or "connected, but got no reply",
            self._settings.first_timeout_ms,
        )

    async def _report_open_root(self) -> None:
        """Log a warning if everyone can write to the root, which makes the nodes' ACLs useless.

        Whether a client may delete /controller depends on the ACL of its parent, not on the node's
        own ACL.
        """
        if self._settings.is_protected and await self.is_open_to_all("/"):
            _log.warning(
                "zookeeper.set.acl=true, but every client of ZooKeeper may create and delete nodes "
                "in the root of zookeeper.connect=%s, /controller among them: run `barnabas "
                "metadata secure --config server.properties` once all brokers have this setting",
                self._settings.connect,
            )

    async def commit(self, operations: Sequence[Operation]) -> list[str | int]:
        session_id = self._session_id
        path = operations[0].path if operations else "/"
        if not operations:
            await self._until_connected(session_id, path)
            return []
        return await self._commit(operations, self._chroot, session_id)

    async def close(self) -> None:
        if self._is_closed:
            return
        if self._patience is not None:
            self._patience.cancel()
        self._end()
        await self._connection.stop()

    def give_up(self) -> None:
        self._is_given_up = True
        self._connection.end_session()

    async def _read(self, paths: Sequence[str], session_id: int) -> list[Znode | None]:
        while True:
            path = paths[0]
            await self._until_connected(session_id, path)
            try:
                if self._can_read_many:
                    whole = [under(self._chroot, path) for path in paths]
                    answers = await self._connection.send(MultiRead(whole))
                else:
                    answers = await self._read_singly(paths)
                found: list[Znode | None] = []
                for pair in answers:
                    path = paths[len(found)]
                    found.append(znode(*pair))
            except ConnectionLoss:
                continue
            except UnimplementedError:  # a server before 3.6, which also ends the connection
                self._can_read_many = False
            except SessionExpiredError:
                raise SessionExpired(path, "the session has expired") from None
            except (ZookeeperError, NotUnderstood) as error:
                raise metadata_error(path, error) from error
            else:
                return found

    async def _read_singly(self, paths: Sequence[str]) -> list[tuple[Any, Any]]:
        """Send all requests, and only then wait for the responses."""
        answers = []
        for path in paths:
            for request in single_reads(under(self._chroot, path)):
                answer = self._connection.send(request)
                answer.add_done_callback(retrieve_error)
                answers.append(answer)
        parts = [await _answer_or_error(answer) for answer in answers]
        return list(zip(parts[::2], parts[1::2], strict=True))

    async def _commit(
        self, operations: Sequence[Operation], chroot: str, session_id: int
    ) -> list[str | int]:
        path = operations[0].path
        is_in_session = partial(self._connection.is_in_session, session_id)
        rights = partial(rights_of, is_protected=self._settings.is_protected)
        commit = Commit(operations, chroot, rights, is_in_session)
        while not commit.was_sent:
            await self._until_connected(session_id, path)
            try:
                answers = await self._connection.send(commit)
            except _NO_ANSWER:
                continue  # it was not sent, so wait for the next connection
            except SessionExpiredError:
                break
            except ZookeeperError as error:
                raise metadata_error(path, error) from error
            # The session ended while the request was in the queue, so the request may be based on
            # outdated data.
            if commit.is_void:
                break
            return commit.results(answers)
        else:
            reason = "the connection to ZooKeeper was lost before the response arrived"
            if commit.size_bytes > _SERVERS_LIMIT_BYTES:  # then the server disconnects
                reason += f"; {commit.size_bytes} bytes may exceed its jute.maxbuffer"
            raise OutcomeUnknown(path, reason)
        raise SessionExpired(path, "the session in which this request was sent has expired")

    def _set_watch(self, path: str, is_set: Callable[[object], None]) -> None:
        def on_answer(answer: asyncio.Future[Any]) -> None:
            if not answer.cancelled() and answer.exception() is None:
                stat = answer.result()
                # The zxids of the node's creation, of the last write to it, and of the last change
                # to its children.
                is_set(_NO_NODE if stat is None else (stat.czxid, stat.mzxid, stat.pzxid))

        whole = under(self._chroot, path)
        watcher = self._connection.watcher(path, self._watches.fire)
        self._connection.send(wire.Exists(whole, watcher)).add_done_callback(on_answer)
        children = self._connection.send(wire.GetChildren(whole, watcher))
        children.add_done_callback(retrieve_error)  # a node that does not exist has no children

    def _on_state(self, state: SessionState, session_id: int) -> None:
        before, self._state = self._state, state
        if state is SessionState.CONNECTED:
            self._log_connected(session_id)
            self._session_id = session_id
            # The new server may lag behind the previous one. Without a sync, a read could return an
            # older state of the tree.
            self._connection.send(wire.Sync("/")).add_done_callback(retrieve_error)
            self._watches.on_reconnected()
        elif state is SessionState.SUSPENDED:
            _log.warning("connection to ZooKeeper at %s lost; reconnecting", self._hosts)
        else:
            _log.warning("ZooKeeper session 0x%x expired", self._session_id)
            self._connection.give_up_waiting()
            self._watches.fire_all()
        self._wake()
        if state is not SessionState.CONNECTED and self._patience is None:
            self._patience = asyncio.ensure_future(self._be_patient())
        if state is not before:
            self._notify()

    def _log_connected(self, session_id: int) -> None:
        if session_id == self._session_id:
            _log.warning("reconnected to ZooKeeper, session 0x%x continues", session_id)
        else:
            _log.info("connected to ZooKeeper at %s, session 0x%x", self._hosts, session_id)

    async def _be_patient(self) -> None:
        """Make kazoo try to connect until it succeeds, and log the wait at intervals."""
        seconds = 0.0
        while self._state is not SessionState.CONNECTED:
            await asyncio.sleep(_LOOK_EVERY_S)
            seconds += _LOOK_EVERY_S
            if self._is_given_up:
                return
            if self._connection.has_given_up:
                await self._connection.restart()
            if seconds % _COMPLAIN_EVERY_S == 0:
                words = self._connection.last_words
                _log.warning(
                    "no connection to ZooKeeper at %s for %d s (%s)", self._hosts, seconds, words
                )
        self._patience = None

    async def _make_chroot(self) -> None:
        names = self._chroot.split("/")[1:]
        for depth in range(1, len(names) + 1):
            path = "/" + "/".join(names[:depth])
            try:
                # The chroot itself is created here, so it must not be prepended to the path.
                await self._commit([Create(path)], "", self._session_id)
            except NodeExists:
                continue

    async def is_open_to_all(self, path: str) -> bool:
        """Return whether any client may create and delete nodes directly below this one.

        Raises MetadataError or OutcomeUnknown.
        """
        await self._until_connected(self._session_id, path)
        try:
            rights, _ = await self._connection.send(wire.GetACL(under(self._chroot, path)))
        except _NO_ANSWER as error:
            raise OutcomeUnknown(path, "the connection to ZooKeeper was lost") from error
        except ZookeeperError as error:
            raise metadata_error(path, error) from error
        return _let_all_change(rights)

    async def set_rights(self, path: str, *, is_protected: bool) -> bool:
        """Set the ACL of an existing node to the one that a new node gets with `zookeeper.set.acl`.

        Returns whether the node exists. If `is_protected` is false, everyone gets access to the
        node. Raises OutcomeUnknown or MetadataError (for example, if this connection is not allowed
        to change the ACL).
        """
        rights = rights_of(path, is_protected=is_protected)
        await self._until_connected(self._session_id, path)
        try:
            await self._connection.send(wire.SetACL(under(self._chroot, path), rights, _ANY))
        except NoNodeError:
            return False
        except _NO_ANSWER as error:
            raise OutcomeUnknown(path, "the connection to ZooKeeper was lost") from error
        except ZookeeperError as error:
            raise metadata_error(path, error) from error
        return True


async def _answer_or_error(answer: asyncio.Future[Any]) -> Any:
    try:
        return await answer
    except ZookeeperError as error:
        return error


def rights_of(path: str, *, is_protected: bool) -> list[ACL]:
    """Return Kafka's ACL for a path below the chroot if `zookeeper.set.acl` is set (SE-6).

        /consumers and everything under it                       everyone may do everything
        /config/users, /config/brokers, the delegation tokens    only the brokers have access
        all others                                               brokers may write, anyone may read

    "The brokers" are all clients that connect with the same identity as the client that set the
    ACL.
    """
    if not is_protected or _is_below(path, OPEN_TO_ALL):
        return list(OPEN_ACL_UNSAFE)
    if any(_is_below(path, top) for top in _SECRET):
        return list(CREATOR_ALL_ACL)
    return [*CREATOR_ALL_ACL, *READ_ACL_UNSAFE]


def _let_all_change(rights: Iterable[ACL]) -> bool:
    # It only matters whether any client can create or delete children.
    changes = Permissions.CREATE | Permissions.DELETE
    return any(each.id == ANYONE_ID_UNSAFE and each.perms & changes for each in rights)


def _is_below(path: str, top: str) -> bool:
    return path == top or path.startswith(f"{top}/")

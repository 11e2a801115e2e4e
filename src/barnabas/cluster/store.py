"""Defines the metadata seam: a small tree of nodes, described in ZooKeeper's terms.

A node has data, children, and a data version that is incremented by each write. Each commit has a
number (zxid) that is greater than all earlier ones; the czxid of a node is the number of the commit
that created it. An ephemeral node is owned by a session and is removed when the session ends. A
commit performs either all of its operations or none. A watch fires only once, even after several
changes, and just tells the caller to read again. If the response to a commit is lost, the outcome
is unknown, and the caller must read before it does anything else. Once a session has expired,
operations begun in it have no effect, and a new session has to start by reading.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from typing import Protocol

from barnabas.errors import BarnabasError
from barnabas.named_tuple import NamedTuple

ANY_VERSION = -1
"""The version in a Set or Delete that matches any data version."""


class Znode(NamedTuple):
    """A node that was read. `owner` is the session that owns the node if it is ephemeral, otherwise
    0.
    """

    data: bytes | None
    version: int
    czxid: int
    owner: int
    children: tuple[str, ...]  # names (not paths) in any order


class Create(NamedTuple):
    """Creates a node.

    If `sequential` is set, the parent's counter is appended as ten digits. The result is the path.
    """

    path: str
    data: bytes | None = None
    ephemeral: bool = False
    sequential: bool = False


class Set(NamedTuple):
    """Replaces the data of a node. The result is the new version."""

    path: str
    data: bytes | None
    version: int = ANY_VERSION


class Delete(NamedTuple):
    """Removes a node that has no children. The result is the last version.

    If the version is ANY_VERSION, a store on a server returns ANY_VERSION, because the server does
    not return the actual version.
    """

    path: str
    version: int = ANY_VERSION


class Check(NamedTuple):
    """Changes nothing, but the commit fails unless the node has this version.

    The result is the version.
    """

    path: str
    version: int


Operation = Create | Set | Delete | Check


class MetadataError(BarnabasError):
    """Raised if a commit failed. In the case of OutcomeUnknown, the commit may have succeeded."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path


class NodeExists(MetadataError):
    """The node to be created already exists."""


class NoNode(MetadataError):
    """The node does not exist, or the parent of the node to be created does not exist."""


class BadVersion(MetadataError):
    """The node has been written since the caller read it."""


class NotEmpty(MetadataError):
    """The node has children, so it cannot be removed."""


class OutcomeUnknown(MetadataError):
    """The connection was lost before the response arrived, so the commit may have succeeded."""


class SessionExpired(MetadataError):
    """The session has ended, and its ephemeral nodes have been removed."""


class SessionState(Enum):
    """The state of a session."""

    CONNECTED = "connected"
    SUSPENDED = "suspended"  # disconnected; the session may have expired
    EXPIRED = "expired"


class MetadataStore(Protocol):
    """The metadata seam.

    There are implementations for embedded use, for ZooKeeper, and in the simulator.
    """

    @property
    def session_id(self) -> int:
        """The id of the session that owns the ephemeral nodes of this process; never 0."""
        ...

    @property
    def session_state(self) -> SessionState: ...

    def on_session(self, callback: Callable[[SessionState], None]) -> None:
        """Call `callback` with each new state of the session until the store is closed.

        EXPIRED is followed by CONNECTED, with a new session id. EXPIRED is always reported before
        any operation can begin in the next session.
        """
        ...

    async def read(self, path: str) -> Znode | None:
        """Read the node, or return None if it does not exist."""
        ...

    async def read_many(self, paths: Sequence[str]) -> list[Znode | None]:
        """Read the nodes at these paths, in order. The read is not atomic.

        On a server, hundreds of nodes are read with one request.
        """
        return [await self.read(path) for path in paths]

    async def commit(self, operations: Sequence[Operation]) -> list[str | int]:
        """Apply all operations in order, or none of them, and return their results.

        Raises MetadataError.
        """
        ...

    def watch(self, path: str, callback: Callable[[], None]) -> None:
        """Call `callback` once, after the node's data, existence or set of children has changed.

        A callback that is registered several times for a path is called only once. It is called as
        soon as `read` shows the change, even if the commit is not on disk and acknowledged yet, or
        when the session ends, if that happens first. It may also be called although nothing has
        changed.
        """
        ...

    async def close(self) -> None:
        """End the session and remove its ephemeral nodes immediately.

        The store must not be used afterwards.
        """
        ...

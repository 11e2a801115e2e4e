"""Defines the metadata seam, a small tree of nodes, in ZooKeeper's terms.

A node has data, a data version that each write increments, and children. Every commit has a number
(zxid), larger than all earlier ones; a node's czxid is that of its creation. A node may be
ephemeral: it belongs to a session and is removed with it. A commit performs either all of its
operations or none. A watch fires once, even for several changes, and only means "read again". If
the response to a commit is lost, the outcome is unknown: read before doing anything else. Once a
session has expired, no operation begun in it takes effect; a new session begins with reads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from typing import Protocol

from barnabas.errors import BarnabasError
from barnabas.named_tuple import NamedTuple

ANY_VERSION = -1
"""A version in Set and Delete that matches any version."""


class Znode(NamedTuple):
    """A node, as read. `owner` is the session of an ephemeral node, otherwise 0."""

    data: bytes | None
    version: int
    czxid: int
    owner: int
    children: tuple[str, ...]  # names, not paths; in no order


class Create(NamedTuple):
    """Creates a node; `sequential` appends ten digits, counted by the parent. Result: its path."""

    path: str
    data: bytes | None = None
    ephemeral: bool = False
    sequential: bool = False


class Set(NamedTuple):
    """Replaces a node's data. Result: its new version."""

    path: str
    data: bytes | None
    version: int = ANY_VERSION


class Delete(NamedTuple):
    """Removes a node without children. Result: its last version.

    For ANY_VERSION, a store on a server returns ANY_VERSION, because the server does not return the
    real version.
    """

    path: str
    version: int = ANY_VERSION


class Check(NamedTuple):
    """Changes nothing, but fails the commit unless the node has this version.

    Result: the version.
    """

    path: str
    version: int


Operation = Create | Set | Delete | Check


class MetadataError(BarnabasError):
    """Raised if a commit failed (with OutcomeUnknown, it may have succeeded)."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path


class NodeExists(MetadataError):
    """The node to create already exists."""


class NoNode(MetadataError):
    """The node, or the parent of the node to create, does not exist."""


class BadVersion(MetadataError):
    """The node has been written since it was read."""


class NotEmpty(MetadataError):
    """A node with children cannot be removed."""


class OutcomeUnknown(MetadataError):
    """The connection broke before the response arrived; the commit may or may not have
    succeeded."""


class SessionExpired(MetadataError):
    """The session has ended, and its ephemeral nodes are gone."""


class SessionState(Enum):
    """The state of the session with the store."""

    CONNECTED = "connected"
    SUSPENDED = "suspended"  # disconnected: the session may continue, or may have expired
    EXPIRED = "expired"


class MetadataStore(Protocol):
    """The metadata seam, implemented for embedded use, for ZooKeeper and by the simulator."""

    @property
    def session_id(self) -> int:
        """The `owner` of this process's ephemeral nodes; never 0."""
        ...

    @property
    def session_state(self) -> SessionState: ...

    def on_session(self, callback: Callable[[SessionState], None]) -> None:
        """Call `callback` with each new session state, as long as the store is open.

        EXPIRED is followed by CONNECTED, with another session id. EXPIRED is reported before any
        operation of the next session can begin.
        """
        ...

    async def read(self, path: str) -> Znode | None:
        """Read the node; None if it does not exist."""
        ...

    async def read_many(self, paths: Sequence[str]) -> list[Znode | None]:
        """Read the paths in order, but not atomically.

        A server is sent one request for hundreds of nodes.
        """
        return [await self.read(path) for path in paths]

    async def commit(self, operations: Sequence[Operation]) -> list[str | int]:
        """Apply all operations in order, or none, and return their results.

        Raises MetadataError.
        """
        ...

    def watch(self, path: str, callback: Callable[[], None]) -> None:
        """Call `callback` once after the node's data, existence or set of children has changed.

        A callback is registered only once per path. It is called when `read` shows the change,
        possibly before the commit is on disk and acknowledged, or at the end of the session, if
        that comes first. It may be called without a change.
        """
        ...

    async def close(self) -> None:
        """End the session and immediately remove its ephemeral nodes. Further use is an error."""
        ...

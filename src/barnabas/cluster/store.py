"""The metadata seam: a small tree of nodes, in ZooKeeper's terms.

A node has data, a data version that grows by one with each write, and children. Every commit has
a number (zxid), larger than all before it; that of a node's creation is its czxid. A node may be
ephemeral: it belongs to a session and is removed with it. A commit does all of its operations or
none. A watch fires once, may stand for several changes, and only means "read again". If the answer
to a commit is lost, the outcome is unknown: read before doing anything else. After a session has
expired, nothing that was begun in it happens any more; a new one begins with reading.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from typing import NamedTuple, Protocol

from barnabas.errors import BarnabasError

ANY_VERSION = -1
"""In Set and Delete: any version."""


class Znode(NamedTuple):
    """A node as it was read. `owner` is the session of an ephemeral node, else 0."""

    data: bytes | None
    version: int
    czxid: int
    owner: int
    children: tuple[str, ...]  # names, not paths; in no order


class Create(NamedTuple):
    """Create a node; `sequential` appends ten digits, counted by the parent. Result: its path."""

    path: str
    data: bytes | None = None
    ephemeral: bool = False
    sequential: bool = False


class Set(NamedTuple):
    """Replace a node's data. Result: its new version."""

    path: str
    data: bytes | None
    version: int = ANY_VERSION


class Delete(NamedTuple):
    """Remove a node that has no children. Result: its last version.

    Given ANY_VERSION, a store on a server returns that: the server does not return the version.
    """

    path: str
    version: int = ANY_VERSION


class Check(NamedTuple):
    """Change nothing, but fail the commit unless the node has this version. Result: the version."""

    path: str
    version: int


Operation = Create | Set | Delete | Check


class MetadataError(BarnabasError):
    """A commit that did not happen (OutcomeUnknown: it may have)."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path


class NodeExists(MetadataError):
    """The node to create already exists."""


class NoNode(MetadataError):
    """The node, or the parent of the one to create, does not exist."""


class BadVersion(MetadataError):
    """The node has been written since it was read."""


class NotEmpty(MetadataError):
    """A node with children cannot be removed."""


class OutcomeUnknown(MetadataError):
    """The connection broke before the answer came: the commit may have happened or not."""


class SessionExpired(MetadataError):
    """The session has ended, and its ephemeral nodes are gone."""


class SessionState(Enum):
    """The state of the session with the store."""

    CONNECTED = "connected"
    SUSPENDED = "suspended"  # disconnected: the session may continue, or have expired already
    EXPIRED = "expired"


class MetadataStore(Protocol):
    """The seam. The embedded store, ZooKeeper and the simulator's store are its implementations."""

    @property
    def session_id(self) -> int:
        """The Znode.owner of this process's ephemeral nodes; never 0."""
        ...

    @property
    def session_state(self) -> SessionState: ...

    def on_session(self, callback: Callable[[SessionState], None]) -> None:
        """Call back with each new state of the session, for as long as the store is open.

        After EXPIRED comes CONNECTED, with another session id. EXPIRED is called back before
        anything can be begun in the next session.
        """
        ...

    async def read(self, path: str) -> Znode | None:
        """The node; None if it does not exist."""
        ...

    async def read_many(self, paths: Sequence[str]) -> list[Znode | None]:
        """Read each path, in their order; not as of one moment.

        On a server this takes one request for hundreds of nodes.
        """
        return [await self.read(path) for path in paths]

    async def commit(self, operations: Sequence[Operation]) -> list[str | int]:
        """Do all operations in their order, or none; a result for each. Raises MetadataError."""
        ...

    def watch(self, path: str, callback: Callable[[], None]) -> None:
        """Call back once after the node's data, existence or set of children has changed.

        The same callback is kept once per path. It is called when `read` shows the change, which
        may be before the commit is on disk and answered. If the session ends first it is called
        then. It may be called without a change.
        """
        ...

    async def close(self) -> None:
        """End the session: its ephemeral nodes go at once. Further use is an error."""
        ...

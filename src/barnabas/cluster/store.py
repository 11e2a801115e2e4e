"""The metadata seam: a small tree of nodes, in ZooKeeper's terms.

A node has data, a data version that grows by one with each write, and children. Every commit has
a number (zxid), larger than all before it; the one that made a node is its czxid. A node may be
ephemeral: it belongs to a session and is gone with it. A commit does all of its operations or
none. A watch fires once, may stand for several changes, and only says "read again". If the answer
to a commit is lost, the outcome is unknown: read before doing anything else. After a session has
expired, nothing that was begun in it happens any more; a new one begins with reading.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from typing import NamedTuple, Protocol

from barnabas.errors import BarnabasError

ANY_VERSION = -1
"""In Set and Delete: whatever the version is."""


class Znode(NamedTuple):
    """A node as it was read. `owner` is the session of an ephemeral node, else 0."""

    data: bytes | None
    version: int
    czxid: int
    owner: int
    children: tuple[str, ...]  # names, not paths; in no order


class Create(NamedTuple):
    """Make a node; `sequential` appends ten digits, counted by the parent. Result: its path."""

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

    Given ANY_VERSION, a store on a server answers with that: the server does not tell.
    """

    path: str
    version: int = ANY_VERSION


class Check(NamedTuple):
    """Change nothing, but fail the commit unless the node has this version. Result: the version."""

    path: str
    version: int


Operation = Create | Set | Delete | Check


class MetadataError(BarnabasError):
    """A commit that did not happen (OutcomeUnknown: that may or may not have)."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path


class NodeExists(MetadataError):
    """There is a node already where one was to be made."""


class NoNode(MetadataError):
    """The node, or the parent of the one to be made, is not there."""


class BadVersion(MetadataError):
    """Somebody else has written the node since it was read."""


class NotEmpty(MetadataError):
    """A node with children cannot be removed."""


class OutcomeUnknown(MetadataError):
    """The connection broke before the answer came: the commit may have happened or not."""


class SessionExpired(MetadataError):
    """The session is over, and its ephemeral nodes with it."""


class SessionState(Enum):
    """How this process stands with the store."""

    CONNECTED = "connected"
    SUSPENDED = "suspended"  # cut off for the moment: the session may live on, or be over already
    EXPIRED = "expired"


class MetadataStore(Protocol):
    """The seam. The embedded store, ZooKeeper and the simulator's store are its implementations."""

    @property
    def session_id(self) -> int:
        """What Znode.owner is for this process's ephemeral nodes; never 0."""
        ...

    @property
    def session_state(self) -> SessionState: ...

    def on_session(self, callback: Callable[[SessionState], None]) -> None:
        """Call back with each new state of the session, for as long as the store is open.

        After EXPIRED comes CONNECTED: that is another session, of another id. Whoever is told
        EXPIRED is told before anything can be begun in the next one.
        """
        ...

    async def read(self, path: str) -> Znode | None:
        """The node, or None where there is none."""
        ...

    async def read_many(self, paths: Sequence[str]) -> list[Znode | None]:
        """What `read` gives for each path, in their order; not all of the same moment.

        On a server this takes one question for hundreds of nodes.
        """
        return [await self.read(path) for path in paths]

    async def commit(self, operations: Sequence[Operation]) -> list[str | int]:
        """Do all operations in their order, or none; a result for each. Raises MetadataError."""
        ...

    def watch(self, path: str, callback: Callable[[], None]) -> None:
        """Call back once after the node's data, existence or set of children has changed.

        The same callback is kept once, however often it is given. It is called when `read` shows
        the change, which may be before the commit is on disk and answered. If the session ends
        first it is called then. It may be called where nothing has changed.
        """
        ...

    async def close(self) -> None:
        """End the session: its ephemeral nodes are gone at once. Further use is an error."""
        ...

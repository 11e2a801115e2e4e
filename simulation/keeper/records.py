"""What a client of a ZooKeeper server has seen, in the order in which it arrived."""

from __future__ import annotations

from typing import NamedTuple

OK, NO_NODE, NODE_EXISTS, BAD_VERSION, NOT_EMPTY = 0, -101, -110, -103, -111
LOST = 1
"""The connection was lost before the response arrived, so the outcome is unknown."""

CREATE, DELETE, SET, GET, EXISTS, CHILDREN, CLOSE = (
    *("create", "delete", "set", "get", "exists", "children", "close"),
)
WRITES = (CREATE, DELETE, SET)
READS = (GET, EXISTS, CHILDREN)


class Stat(NamedTuple):
    """The fields of a node's description that are judged."""

    czxid: int
    mzxid: int
    version: int
    owner: int


class Request(NamedTuple):
    """An operation as it was sent."""

    kind: str
    path: str = ""
    data: bytes = b""
    version: int = -1
    is_ephemeral: bool = False
    is_sequential: bool = False
    watch: bool = False


class Answer(NamedTuple):
    """A response, or the loss of one (`LOST`)."""

    session: int
    connection: int
    """The number of the connection, of all that the client has had."""
    request: Request
    sent_at: float
    at: float
    zxid: int = 0
    error: int = OK
    path: str = ""
    """The path of a created node."""
    data: bytes = b""
    stat: Stat | None = None
    children: tuple[str, ...] = ()


class Event(NamedTuple):
    """The notification of a watch."""

    session: int
    kind: int
    path: str
    at: float


class Expired(NamedTuple):
    """The server has refused to let a session continue."""

    session: int
    at: float
    silent_s: float
    """The time since the last request that was answered."""
    timeout_s: float


Record = Answer | Event | Expired


class History(NamedTuple):
    """What each client has seen."""

    by_client: list[list[Record]]

    @property
    def answers(self) -> list[Answer]:
        """All responses of all clients, and what was lost."""
        return [each for records in self.by_client for each in records if isinstance(each, Answer)]

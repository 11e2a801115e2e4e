"""Implements requests that kazoo does not have: commits bound to a session, and bulk reads.

These classes have the same interface as kazoo's own requests: they are encoded by kazoo's thread
when it sends them. At that moment, a commit checks whether its session is still the current one. If
it is not, the commit sends only a request that has no effect. The check is needed because kazoo
begins a new session by itself, and sends the queued requests in it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from kazoo.exceptions import (  # type: ignore[import-untyped]  # kazoo has no types
    BadVersionError,
    KazooException,
    NoChildrenForEphemeralsError,
    NodeExistsError,
    NoNodeError,
    NotEmptyError,
    RolledBackError,
    RuntimeInconsistency,
)
from kazoo.protocol import serialization as wire  # type: ignore[import-untyped]
from kazoo.protocol.states import ZnodeStat  # type: ignore[import-untyped]
from kazoo.security import ACL  # type: ignore[import-untyped]

from barnabas.cluster.store import (
    BadVersion,
    Check,
    Create,
    Delete,
    MetadataError,
    NodeExists,
    NoNode,
    NotEmpty,
    Operation,
    Set,
    Znode,
)

_EPHEMERAL, _SEQUENTIAL = 1, 2
_GET_DATA, _GET_CHILDREN, _ERROR = wire.GetData.type, wire.GetChildren.type, -1
_MULTI_READ = 22
_END = wire.multiheader_struct.pack(-1, True, -1)

_ERRORS: tuple[tuple[type[KazooException], type[MetadataError], str], ...] = (
    (NodeExistsError, NodeExists, "already exists"),
    (NoNodeError, NoNode, "does not exist, or its parent does not"),
    (NoChildrenForEphemeralsError, NoNode, "its parent is ephemeral and has no children"),
    (BadVersionError, BadVersion, "has been written since it was read"),
    (NotEmptyError, NotEmpty, "has children"),
)

AclOf = Callable[[str], list[ACL]]
"""Returns the ACL for a node that is created at this path."""


class Commit:
    """A commit of all operations or none. It is bound to one session.

    If `was_sent` is true, the commit may have taken effect, even if there is no response. If
    `is_void` is true, the commit was not sent, because its session had expired.
    """

    type = wire.Transaction.type

    def __init__(
        self,
        operations: Sequence[Operation],
        chroot: str,
        acl_of: AclOf,
        is_in_session: Callable[[], bool],
    ) -> None:
        """Create a commit. `is_in_session` is called in kazoo's thread."""
        self.operations = operations
        self.size_bytes = 0
        self.was_sent = False
        self.is_void = False
        self._chroot = chroot
        self._acl_of = acl_of
        self._is_in_session = is_in_session

    def serialize(self) -> bytes:
        if not self._is_in_session():
            self.is_void = True
            return bytes(_END)  # a request without operations
        self.was_sent = True
        parts = []
        for operation in self.operations:
            request = self._request(operation)
            parts.append(wire.MultiHeader(request.type, False, -1).serialize())
            parts.append(request.serialize())
        whole = b"".join([*parts, _END])
        self.size_bytes = len(whole)
        return whole

    def deserialize(self, answer: bytes, offset: int) -> list[Any]:
        results: list[Any] = wire.Transaction.deserialize(answer, offset)
        return results

    def results(self, answers: Sequence[Any]) -> list[str | int]:
        """Return the results in the form that the store uses.

        If an operation failed, raises its MetadataError.
        """
        for operation, answer in zip(self.operations, answers, strict=True):
            # One of these two errors is reported for each operation that did not itself fail.
            if isinstance(answer, Exception) and not isinstance(
                answer, RolledBackError | RuntimeInconsistency
            ):
                raise metadata_error(operation.path, answer)
        return [
            self._result(operation, answer)
            for operation, answer in zip(self.operations, answers, strict=True)
        ]

    def _request(self, operation: Operation) -> Any:
        path = under(self._chroot, operation.path)
        if isinstance(operation, Create):
            flags = operation.ephemeral * _EPHEMERAL | operation.sequential * _SEQUENTIAL
            return wire.Create(path, operation.data, self._acl_of(operation.path), flags)
        if isinstance(operation, Set):
            return wire.SetData(path, operation.data, operation.version)
        if isinstance(operation, Delete):
            return wire.Delete(path, operation.version)
        return wire.CheckVersion(path, operation.version)

    def _result(self, operation: Operation, answer: Any) -> str | int:
        if isinstance(operation, Create):
            path: str = answer
            return path[len(self._chroot) :]
        if isinstance(operation, Set):
            version: int = answer.version
            return version
        assert isinstance(operation, Delete | Check)
        return operation.version


class MultiRead:
    """Reads the data and children of many nodes with one request (ZooKeeper 3.6 or later)."""

    type = _MULTI_READ

    def __init__(self, paths: Sequence[str]) -> None:
        """Create a read of `paths`, which must be absolute and include the chroot."""
        self._paths = paths

    def serialize(self) -> bytes:
        parts = []
        for path in self._paths:
            for kind in (_GET_DATA, _GET_CHILDREN):
                parts.append(wire.multiheader_struct.pack(kind, False, -1))
                # the last byte says that no watch is set
                parts.append(wire.write_string(path) + b"\0")
        return b"".join([*parts, _END])

    def deserialize(self, answer: bytes, offset: int) -> list[tuple[Any, Any]]:
        """Return two responses for each path, to be passed to `znode`.

        Responses that are errors are returned, not raised.
        """
        results: list[Any] = []
        header, offset = wire.MultiHeader.deserialize(answer, offset)
        while not header.done:
            if header.type == _GET_DATA:
                data, offset = wire.read_buffer(answer, offset)
                stat = ZnodeStat._make(wire.stat_struct.unpack_from(answer, offset))
                offset += wire.stat_struct.size
                results.append((data, stat))
            elif header.type == _GET_CHILDREN:
                names, offset = _names(answer, offset)
                results.append(names)
            else:
                (code,) = wire.int_struct.unpack_from(answer, offset)
                offset += wire.int_struct.size
                results.append(wire.EXCEPTIONS[code]())
            header, offset = wire.MultiHeader.deserialize(answer, offset)
        return list(zip(results[::2], results[1::2], strict=True))


def single_reads(path: str) -> tuple[Any, Any]:
    """Return two requests that read a node on older servers. `znode` combines the responses."""
    return wire.GetData(path, None), wire.GetChildren(path, None)


def znode(data: Any, children: Any) -> Znode | None:
    """Build a node from its two responses.

    If the node does not exist, return None. Any other error is raised.

    The node may have been removed after the first response.
    """
    for answer in (data, children):
        if isinstance(answer, NoNodeError):
            return None
        if isinstance(answer, Exception):
            raise answer
    content, stat = data
    return Znode(content, stat.version, stat.czxid, stat.ephemeralOwner, tuple(children))


def metadata_error(path: str, error: Exception) -> MetadataError:
    """Convert an error from ZooKeeper to the corresponding error of the store."""
    for theirs, ours, reason in _ERRORS:
        if isinstance(error, theirs):
            return ours(path, reason)
    detail = f": {error}" if str(error) else ""
    return MetadataError(path, f"ZooKeeper refused it, {type(error).__name__}{detail}")


def under(chroot: str, path: str) -> str:
    """Return the absolute path of a node, which includes the chroot."""
    return chroot + path if path != "/" else chroot or path


def _names(answer: bytes, offset: int) -> tuple[list[str], int]:
    (count,) = wire.int_struct.unpack_from(answer, offset)
    offset += wire.int_struct.size
    names = []
    for _ in range(count):
        name, offset = wire.read_string(answer, offset)
        names.append(name)
    return names, offset

"""Checks the paths of nodes as ZooKeeper does. Pure."""

from __future__ import annotations

from barnabas.zookeeper.codes import Code, Refusal

_FORBIDDEN = frozenset(
    chr(each)
    for low, high in ((0x00, 0x1F), (0x7F, 0x9F), (0xFFF0, 0xFFFF))
    for each in range(low, high + 1)
)


def check_path(path: str) -> None:
    """Raise Refusal unless the path is absolute, normalized and printable."""
    if path == "/":
        return
    if not path.startswith("/") or path.endswith("/"):
        raise Refusal(Code.BAD_ARGUMENTS)
    names = path[1:].split("/")
    if "" in names or "." in names or ".." in names:
        raise Refusal(Code.BAD_ARGUMENTS)
    if not path.isascii() and any("\ud800" <= each <= "\uf8ff" or each > "\uffff" for each in path):
        raise Refusal(Code.BAD_ARGUMENTS)
    if not _FORBIDDEN.isdisjoint(path):
        raise Refusal(Code.BAD_ARGUMENTS)


def check_parent(path: str) -> None:
    """Raise Refusal unless a parent can be derived from the path."""
    if "/" not in path or "\0" in path:
        raise Refusal(Code.BAD_ARGUMENTS)

"""The files of our ZooKeeper server, filled and loaded without the server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from barnabas.cluster.journal_disk import OS_DISK, JournalDisk
from barnabas.zookeeper import tree as trees
from barnabas.zookeeper.journal import Journal
from barnabas.zookeeper.jute import long_bytes
from barnabas.zookeeper.sessions import Session, Sessions
from barnabas.zookeeper.transactions import snapshot_bytes, transaction_bytes
from barnabas.zookeeper.tree import OPEN_ACL, Effect, Tree

BATCHES = (
    (Effect(trees.OPEN_SESSION, "", b"password", (), 7, 2000),),
    (Effect(trees.CREATE, "/a", b"first", OPEN_ACL),),
    (Effect(trees.SET_DATA, "/a", b"second"), Effect(trees.SET_DATA, "/a", b"third")),
    (Effect(trees.CREATE, "/a/b", None, OPEN_ACL, 7),),
    (Effect(trees.DELETE, "/a/b"), Effect(trees.CLOSE_SESSION, "", number=7)),
)
"""Each effect is a transaction."""


def steps() -> Iterator[tuple[bytes, bytes]]:
    """Yields each batch, and the whole state after it."""
    tree, sessions = Tree(), Sessions(1000, 5000)
    for effects in BATCHES:
        parts = []
        for effect in effects:
            transaction = tree.begin(1000)
            transaction.do(effect)
            transaction.commit()
            parts.append(transaction_bytes(transaction))
            if effect.kind == trees.OPEN_SESSION:
                sessions.open(Session(effect.number, effect.timeout_ms, effect.data or b""))
            elif effect.kind == trees.CLOSE_SESSION:
                sessions.close(effect.number)
        yield b"".join((long_bytes(tree.zxid), *parts)), snapshot_bytes(tree, sessions)


EMPTY = snapshot_bytes(Tree(), Sessions(1000, 5000))
STATES = (EMPTY, *(state for _, state in steps()))
"""The state before the first batch, and after each."""


def load(directory: Path, disk: JournalDisk = OS_DISK) -> bytes:
    """Returns the whole state that the files contain, as the server loads it."""
    tree, sessions = Tree(), Sessions(1000, 5000)
    journal = Journal(directory, disk)
    journal.load(tree, sessions)
    journal.close()
    return snapshot_bytes(tree, sessions)
